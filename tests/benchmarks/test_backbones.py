"""Backbones known by name: their sizes follow from their configurations alone."""

from __future__ import annotations

import pytest
import torch

from benchmarks.encoders.backbones import KNOWN, architecture, depth, locate
from benchmarks.errors import UserError
from fedsim.models.encoder import encoder_from_config
from fedsim.models.sequence import with_head


def megabytes(backbone: str, outputs: int) -> float:
    """Size of encoder, pooler and classifier in fp32."""
    with torch.device("meta"):
        model = with_head(encoder_from_config(architecture(backbone)), outputs, seed=0)
    return 4 * sum(parameter.numel() for parameter in model.parameters()) / 1e6


def test_marbert_has_the_size_that_fedfreezebert_prints() -> None:
    assert megabytes("MARBERT", outputs=3) == pytest.approx(651.37, abs=0.005)
    assert depth("MARBERT") == 12


def test_the_hubs_models_are_pinned() -> None:
    assert {name for name, backbone in KNOWN.items() if backbone.hub and not backbone.revision} == set()


def test_marbert_is_looked_for_where_it_has_safetensors(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def snapshot_download(name: str, revision: str, **_: object) -> str:
        asked.append((name, revision))
        raise OSError("offline")

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot_download)
    with pytest.raises(UserError, match="it was not found"):
        locate("MARBERT")
    assert asked == [("UBC-NLP/MARBERT", "refs/pr/1")]
