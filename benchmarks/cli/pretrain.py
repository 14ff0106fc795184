"""The command that makes a backbone of this project: pretrain. It runs the benchmark that trains it."""

from __future__ import annotations

import argparse

from benchmarks.encoders.backbones import KNOWN
from benchmarks.errors import UserError


def pretrain_command(args: argparse.Namespace) -> int:
    """Pre-train a backbone, or find it: the same as running its benchmark, or whatever begins from it."""
    from benchmarks.cli.run import run_command

    made = {backbone.id: backbone.made_by for backbone in KNOWN.values() if backbone.made_by}
    if args.backbone_id not in made:
        raise UserError(f"unknown backbone {args.backbone_id!r}: expected one of {', '.join(made)}, trained here")
    args.id, args.scale = made[args.backbone_id]
    return run_command(args)
