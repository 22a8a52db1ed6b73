"""From what is low and what is high to the cause, and to the parts of this kit that remedy it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal, get_args

from rag_kit.evaluation.wording import in_chinese

Level = Literal["high", "low"]

#: The causes. ``model`` to ``retrieval`` are the four of a low answer score, ``invented`` is an answer that the
#: documents do not hold; the others are of a good answer.
CaseName = Literal[
    "model", "noise", "coverage", "retrieval", "invented",
    "right", "right_noisy", "right_unsupported", "right_declined",
]  # fmt: skip
CASES: tuple[CaseName, ...] = get_args(CaseName)
#: (answer, recall, precision) -> cause.
TABLE: Mapping[tuple[Level | None, ...], CaseName] = {
    ("low", "high", "high"): "model",
    ("low", "high", "low"): "noise",
    ("low", "low", "high"): "coverage",
    ("low", "low", "low"): "retrieval",
    ("high", "high", "high"): "right",
    ("high", "high", "low"): "right_noisy",
    ("high", "low", "high"): "right_unsupported",
    ("high", "low", "low"): "right_unsupported",
}
_TEXTS: Mapping[str, Any] = json.loads((files(__package__) / "remedies.json").read_text("utf-8"))


@dataclass(frozen=True)
class Text:
    """A text in both languages."""

    en: str
    zh: str


@dataclass(frozen=True)
class Remedy:
    """A remedy for a cause, and the part of this kit that provides it."""

    name: str
    text: Text


@dataclass(frozen=True)
class Cause:
    """A cause: its key, a short name, what is wrong, and what to do, the cheapest first."""

    name: CaseName
    title: Text
    cause: Text
    remedies: tuple[Remedy, ...]

    @property
    def good(self) -> bool:
        """Whether the answer is right."""
        return self.name.startswith("right")


def text_of(key: str, *values: Any) -> Text:
    """Return a text of the kit with values filled in; in the Chinese one, `in_chinese` translates the values."""
    english, chinese = _TEXTS["words"][key]
    return Text(english.format(*values), chinese.format(*(in_chinese(str(value)) for value in values)))


@cache
def case_of(name: CaseName) -> Cause:
    """Return a cause by its name: title, explanation and remedies, in both languages."""
    texts = _TEXTS["cases"][name]
    parts = [_TEXTS["remedies"][key] for key in texts["remedies"]]
    remedies = tuple(Remedy(part, Text(en, zh)) for part, en, zh in parts)
    return Cause(name, Text(*texts["title"]), Text(*texts["cause"]), remedies)
