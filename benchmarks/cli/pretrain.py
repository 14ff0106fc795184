"""The command that makes a backbone of this project: pretrain. It runs the benchmark that trains it."""

from __future__ import annotations

import argparse

from benchmarks.backbones import KNOWN
from benchmarks.errors import UserError


def pretrain_command(words: argparse.Namespace) -> int:
    """Pre-train a backbone, or find it: the same as running its benchmark, or whatever begins from it."""
    from benchmarks.cli.run import run_command

    made = {backbone.id: backbone.made_by for backbone in KNOWN.values() if backbone.made_by}
    if words.backbone_id not in made:
        raise UserError(f"unknown backbone {words.backbone_id!r}: expected one of {', '.join(made)}, trained here")
    words.id, words.scale = made[words.backbone_id]
    return run_command(words)
