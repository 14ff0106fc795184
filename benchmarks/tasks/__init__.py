"""All tasks by id; each module in this folder lists its tasks in `TASKS`."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from benchmarks.errors import unknown
from benchmarks.tasks.base import DataSource, Skipped, Task, TaskData, TextExamples

__all__ = ["DataSource", "Skipped", "Task", "TaskData", "TextExamples", "add_task", "task", "tasks"]


def tasks() -> tuple[Task, ...]:
    """All tasks, by module in alphabetical order."""
    return tuple(_registry().values())


def task(task_id: str) -> Task:
    """The task with that id; UserError if there is none."""
    if task_id not in _registry():
        raise unknown("task", task_id, _registry())
    return _registry()[task_id]


def add_task(new: Task) -> None:
    """Add a task from outside this folder; it replaces a task with the same id."""
    _registry()[new.id] = new


@cache
def _registry() -> dict[str, Task]:
    registry: dict[str, Task] = {}
    for module in pkgutil.iter_modules(__path__, prefix=f"{__name__}."):
        for each in getattr(importlib.import_module(module.name), "TASKS", ()):
            if each.id in registry:
                raise ValueError(f"two tasks have the id {each.id!r}; one of them is in {module.name}")
            registry[each.id] = each
    return registry
