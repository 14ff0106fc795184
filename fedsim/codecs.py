"""Codecs: how floating-point tensors are encoded for the wire. Byte counts depend only on shapes.

A codec has a name: `fp32`, `fp16`, `bf16`; `int8`, one scale per tensor; `qsgd:LEVELS:BUCKET` (Alistarh et al. 2017,
section 3.1); `topk:SHARE`, the entries of largest magnitude (Stich et al. 2018). The last three compress parameter
*changes*; see `fedsim.wire.Channel`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from fedsim.errors import FederationError
from fedsim.precision import DTYPES

Encoded = tuple[Tensor, ...]  # what is sent; its bytes are counted
LARGEST_CODE = 127  # for int8; also QSGD's maximum number of levels, so that level and sign fit into a byte


class Codec(ABC):
    """Encodes and decodes a tensor; both also work on the `meta` device, where tensors have no values.

    by_change: whether parameters are sent as differences from the receiver's copy. keeps_dropped: whether a client adds
    what an upload dropped to its next upload (error feedback).
    """

    by_change: ClassVar[bool] = True
    keeps_dropped: ClassVar[bool] = False

    @abstractmethod
    def encode(self, tensor: Tensor, generator: torch.Generator) -> Encoded:
        """The encoded form of a tensor with at least one value."""

    @abstractmethod
    def decode(self, encoded: Encoded, shape: torch.Size) -> Tensor:
        """The received tensor, in fp32."""


@dataclass(frozen=True)
class Cast(Codec):
    """Each value, cast to another floating-point type."""

    dtype: torch.dtype
    by_change: ClassVar[bool] = False

    def encode(self, tensor: Tensor, generator: torch.Generator) -> Encoded:
        return (tensor.to(self.dtype),)

    def decode(self, encoded: Encoded, shape: torch.Size) -> Tensor:
        return encoded[0].to(torch.float32)


@dataclass(frozen=True)
class Int8(Codec):
    """One byte per value and one fp32 scale per tensor; a value's error is at most max|x| / 254."""

    def encode(self, tensor: Tensor, generator: torch.Generator) -> Encoded:
        scale = tensor.abs().amax() / LARGEST_CODE
        codes = torch.where(scale > 0, tensor / scale, 0.0).round().clamp(-LARGEST_CODE, LARGEST_CODE)
        return scale[None], codes.to(torch.int8)

    def decode(self, encoded: Encoded, shape: torch.Size) -> Tensor:
        scale, codes = encoded
        return codes * scale


@dataclass(frozen=True)
class Qsgd(Codec):
    """‖v‖ sgn(v) ξ, with random ξ in {0, 1/s, …, 1} and mean |v| / ‖v‖: an unbiased estimate of v.

    A value takes 1 + ⌈log2(s + 1)⌉ bits and a norm 4 bytes; the paper's Elias code is omitted, as its length depends on
    the values. The expected squared error is at most ω ‖v‖², with ω = min(n/s², √n/s) for n values per norm, so that
    large tensors need buckets or many levels.

    Args:
        levels: s.
        bucket: The number of values that share a norm; None: the whole tensor.
        damped: Whether decoding multiplies by 1 / (1 + ω). The expected squared error is then at most ω / (1 + ω) ‖v‖²,
            but the estimate is biased.
    """

    levels: int = 7
    bucket: int | None = None
    damped: bool = False

    def __post_init__(self) -> None:
        if not (1 <= self.levels <= LARGEST_CODE and (self.bucket is None or self.bucket > 0)):
            raise ValueError(
                f"qsgd: expected 1 to {LARGEST_CODE} levels and a bucket above 0, found {self.levels} and {self.bucket}"
            )

    @property
    def bits(self) -> int:
        """Bits per value, for sign and level."""
        return 1 + self.levels.bit_length()

    def encode(self, tensor: Tensor, generator: torch.Generator) -> Encoded:
        values_RC = self._rows(tensor.flatten())
        norms_R1 = values_RC.norm(dim=1, keepdim=True)
        level_RC = torch.where(norms_R1 > 0, self.levels * values_RC.abs() / norms_R1, 0.0)
        level_RC = (level_RC + _uniform(values_RC, generator)).floor().clamp(max=self.levels)
        codes = (level_RC * values_RC.sign() + self.levels).to(torch.uint8).flatten()
        return norms_R1.flatten(), pack(codes[: tensor.numel()], self.bits)

    def decode(self, encoded: Encoded, shape: torch.Size) -> Tensor:
        norms, packed = encoded
        codes = unpack(packed, self.bits, shape.numel())
        level_RC = self._rows(codes.to(torch.float32) - self.levels)
        arrived = (level_RC * (norms[:, None] / self.levels)).flatten()[: shape.numel()].view(shape)
        count = level_RC.shape[1]
        omega = min(count / self.levels**2, count**0.5 / self.levels)
        return arrived / (1 + omega) if self.damped else arrived

    def _rows(self, flat: Tensor) -> Tensor:
        """One row of values per norm, the last row padded with zeros."""
        width = min(self.bucket or flat.numel(), flat.numel())
        return torch.nn.functional.pad(flat, (0, -flat.numel() % width)).view(-1, width)


@dataclass(frozen=True)
class TopK(Codec):
    """The given share of a tensor's values (at least one) with the largest magnitudes, in fp32.

    Their positions are sent as 4-byte indices, or as one bit per value of the tensor if that is shorter.
    """

    share: float = 0.1
    keeps_dropped: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise ValueError(f"topk: expected a share in (0, 1], found {self.share}")

    def encode(self, tensor: Tensor, generator: torch.Generator) -> Encoded:
        flat = tensor.flatten()
        kept = max(1, round(self.share * flat.numel()))
        places = flat.abs().topk(kept, sorted=False).indices.sort().values
        values = flat.gather(0, places)
        if 4 * kept <= (flat.numel() + 7) // 8:
            return values, places.to(torch.int32)
        return values, pack(torch.zeros_like(flat, dtype=torch.uint8).scatter(0, places, 1), 1)

    def decode(self, encoded: Encoded, shape: torch.Size) -> Tensor:
        values, places = encoded
        arrived = torch.zeros(shape.numel(), device=values.device)
        if places.dtype == torch.int32:
            return arrived.scatter(0, places.long(), values).view(shape)
        return arrived.masked_scatter(unpack(places, 1, shape.numel()).bool(), values).view(shape)


def for_downloads(codec: Codec) -> Codec:
    """The codec for downloads: QSGD is damped, so that the error left for the next download does not grow."""
    return replace(codec, damped=True) if isinstance(codec, Qsgd) else codec


def pack(codes: Tensor, bits: int) -> Tensor:
    """Pack codes below 2^bits, uint8 [n], into ⌈bits n / 8⌉ bytes."""
    flags = ((codes[:, None] >> torch.arange(bits, dtype=torch.uint8, device=codes.device)) & 1).flatten()
    flags = torch.nn.functional.pad(flags, (0, -len(flags) % 8)).view(-1, 8)
    places = torch.arange(8, dtype=torch.uint8, device=codes.device)
    return (flags << places).sum(1, dtype=torch.uint8)


def unpack(packed: Tensor, bits: int, count: int) -> Tensor:
    """The first `count` codes packed by `pack`, uint8."""
    flags = (packed[:, None] >> torch.arange(8, dtype=torch.uint8, device=packed.device)) & 1
    flags = flags.flatten()[: bits * count].view(count, bits)
    return (flags << torch.arange(bits, dtype=torch.uint8, device=packed.device)).sum(1, dtype=torch.uint8)


def _uniform(like: Tensor, generator: torch.Generator) -> Tensor:
    """Uniform samples from [0, 1), equal on every device; on `meta` no sampling."""
    return like if like.is_meta else torch.rand(like.shape, generator=generator).to(like.device)


# ---- names -------------------------------------------------------------------------------------------------------

CODECS: Mapping[str, tuple[str, Callable[..., Codec], tuple[Callable[[str], int | float], ...]]] = {
    "int8": ("int8", Int8, ()),
    "qsgd": ("qsgd:LEVELS:BUCKET, such as qsgd:7 or qsgd:7:512, with 1 to 127 levels", Qsgd, (int, int)),
    "topk": ("topk:SHARE, such as topk:0.1, with a share in (0, 1]", TopK, (float,)),
}


def build_codec(text: str) -> Codec:
    """Build the codec that a text names; FederationError if there is no such codec."""
    name, *given = text.split(":")
    if name in DTYPES and not given:
        return Cast(DTYPES[name])
    try:
        _, build, parameters = CODECS[name]
        if len(given) > len(parameters):
            raise ValueError
        return build(*(read(part) for read, part in zip(parameters, given, strict=False)))
    except (KeyError, ValueError):
        forms = "; ".join(form for form, *_ in CODECS.values())
        raise FederationError(f"unknown codec {text!r}: expected one of {', '.join(DTYPES)}; {forms}") from None


def codec_dtype(name: str) -> torch.dtype:
    """The element type of the codec `fp32`, `fp16` or `bf16`; FederationError for another codec."""
    if name not in DTYPES:
        raise FederationError(f"unknown element type {name!r}: expected one of {', '.join(DTYPES)}")
    return DTYPES[name]
