"""Objectives: what a model is trained for, and how it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from fedsim.errors import FederationError
from fedsim.objectives.base import NO_WORDS
from fedsim.objectives.base import Objective as Objective
from fedsim.objectives.base import Vocabulary as Vocabulary
from fedsim.objectives.kinds import CausalLM as CausalLM
from fedsim.objectives.kinds import Classification as Classification
from fedsim.objectives.kinds import MaskedLM as MaskedLM
from fedsim.objectives.kinds import Regression as Regression
from fedsim.objectives.kinds import TokenClassification as TokenClassification
from fedsim.objectives.kinds import TokenRecovery as TokenRecovery

OBJECTIVES: Mapping[str, type[Objective]] = {
    "classification": Classification,
    "regression": Regression,
    "token_classification": TokenClassification,
    "token_recovery": TokenRecovery,
    "masked_lm": MaskedLM,
    "causal_lm": CausalLM,
}
LANGUAGE_MODELS = tuple(name for name, kind in OBJECTIVES.items() if not kind.own_words)


def build_objective(
    name: str, classes: int = 1, vocabulary: Vocabulary | None = None, options: Mapping[str, Any] | None = None
) -> Objective:
    """The objective of that name.

    classes: of its labels or tags. vocabulary: that of a language model. options: the objective's own, such as `share`.
    FederationError where the name or an option is unknown.
    """
    if name not in OBJECTIVES:
        raise FederationError(f"unknown objective {name!r}: expected one of {', '.join(OBJECTIVES)}")
    kind, given = OBJECTIVES[name], dict(options or {})
    vocabulary = vocabulary or NO_WORDS
    if kind is MaskedLM:
        given["vocabulary"] = vocabulary
    known = {each.name for each in fields(kind)}
    if unknown := sorted(set(given) - known):
        raise FederationError(f"objective {name}: unknown options {unknown}; it takes {', '.join(sorted(known))}")
    return kind(**{"outputs": 1 if kind is Regression else classes if kind.own_words else vocabulary.words, **given})
