"""The command that makes an encoder: pretrain."""

from __future__ import annotations

import argparse
import ctypes
import math
import platform
import sys
import time
from typing import TYPE_CHECKING

from benchmarks.cli.select import settings
from benchmarks.pretraining.recipes import recipe

if TYPE_CHECKING:
    from rich.console import Console

    from benchmarks.pretraining.training import Trainer

ESTIMATE_STEPS = 20  # of this start, before the time left is said for the first time
M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4  # as glibc's malloc.h numbers mallopt's options


def pretrain_command(words: argparse.Namespace) -> int:
    """Pre-train an encoder, or find it."""
    from rich.console import Console

    chosen = recipe(words.recipe)
    made = settings(words)

    from benchmarks.pretraining.pretrain import pretrain

    hold_freed_memory()
    with Display(Console(stderr=True)) as display:
        folder = pretrain(chosen, made, display)
    print(f"{chosen.id}: {folder}")
    return 0


def hold_freed_memory() -> None:
    """Keep freed memory for the next step: a large vocabulary's tensors take a third longer on fresh pages."""
    if sys.platform == "linux" and platform.libc_ver()[0] == "glibc":
        libc = ctypes.CDLL("libc.so.6")
        for option, value in ((M_MMAP_MAX, 0), (M_TRIM_THRESHOLD, 2**31 - 1)):
            libc.mallopt(option, value)


class Display:
    """Live bar in a terminal; a line for each epoch everywhere, with the time that is left."""

    def __init__(self, console: Console) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        self.console = console
        columns = (TextColumn("{task.description}"), BarColumn(bar_width=24), MofNCompleteColumn(), TimeElapsedColumn())
        self.bars = Progress(*columns, TextColumn("{task.fields[note]}"), console=console)
        self.bar = self.bars.add_task("steps", total=None, note="")
        self.begun: tuple[float, int] | None = None  # when, and after how many steps
        self.epochs = 0

    def __enter__(self) -> Display:
        if self.console.is_terminal:
            self.bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.console.is_terminal:
            self.bars.stop()

    def __call__(self, trainer: Trainer, step: int) -> None:
        """Show that so many steps are done."""
        progress, epochs = trainer.progress, trainer.recipe.epochs
        if self.begun is None:
            self.begun, self.epochs = (time.monotonic(), step), progress.epochs
            data = trainer.corpus.sources["data"]
            parts = f"{data['texts']} texts, {data['tokens']} tokens, {data['held_out']} held out"
            self._line(f"{trainer.recipe.id}: {parts}; {epochs} epochs of {trainer.epoch_steps} steps")
            if step:
                self._line(f"{trainer.recipe.id}: goes on after epoch {progress.epochs} of {epochs}")
        left = self._left(trainer.steps, step)
        self.bars.update(self.bar, total=trainer.steps, completed=step, note=left)
        if step - self.begun[1] == ESTIMATE_STEPS:
            self._line(f"{trainer.recipe.id}: {left}")
        if progress.epochs > self.epochs:
            self.epochs = progress.epochs
            loss, held_out = progress.losses[-1], progress.held_out_losses[-1]
            self._line(
                f"epoch {progress.epochs} of {epochs}: loss {loss:.3f}, held-out loss {held_out:.3f} "
                f"(perplexity {math.exp(held_out):.0f})  {left}".rstrip()
            )

    def _left(self, steps: int, step: int) -> str:
        from benchmarks.progress import duration

        assert self.begun is not None
        start, first = self.begun
        done, ahead = step - first, steps - step
        if done < ESTIMATE_STEPS or not ahead:
            return ""
        return f"about {duration(ahead * (time.monotonic() - start) / done)} left"

    def _line(self, text: str) -> None:
        self.console.print(text, highlight=False, markup=False, soft_wrap=True)
