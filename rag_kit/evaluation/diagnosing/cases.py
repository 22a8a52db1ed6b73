"""From what is low and what is high to the cause, and to the parts of this kit that remedy it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.resources import files
from typing import Any, Literal, get_args

Level = Literal["high", "low"]

#: The causes. ``model`` to ``retrieval`` are the four of a low answer score; the other three are of a good answer.
CaseName = Literal["model", "noise", "coverage", "retrieval", "right", "right_noisy", "right_unsupported"]
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

#: Texts in English and Chinese: ``cases``, ``remedies``, ``words`` of the tables, ``hints``.
TEXTS: Mapping[str, Any] = json.loads((files(__package__) / "texts.json").read_text("utf-8"))


@dataclass(frozen=True)
class Text:
    """A text in both languages."""

    en: str
    zh: str

    def of(self, language: str) -> str:
        """The text of a language; English for any other than Chinese."""
        return self.zh if language == "zh" else self.en


@dataclass(frozen=True)
class Remedy:
    """What to do, and the part of this kit that does it.

    Args:
        part: ``"module:name"`` of the part.
        text: What it is for here.
    """

    part: str
    text: Text

    @property
    def name(self) -> str:
        """The part as one would import it, such as ``rag_kit.retrieval.RerankRetriever``."""
        return self.part.replace(":", ".")

    def load(self) -> Any:
        """The class or function itself."""
        module, _, name = self.part.partition(":")
        return getattr(import_module(module), name)


@dataclass(frozen=True)
class Case:
    """A cause and its remedies, the cheapest to try first.

    Args:
        name: Its key.
        title: A few words.
        cause: What is wrong.
        remedies: What to do.
    """

    name: CaseName
    title: Text
    cause: Text
    remedies: tuple[Remedy, ...] = ()


def _case(name: CaseName) -> Case:
    texts, remedies = (
        TEXTS["cases"][name],
        [TEXTS["remedies"][key] for key in TEXTS["cases"][name]["remedies"]],
    )
    made = tuple(Remedy(part, Text(en, zh)) for part, en, zh in remedies)
    return Case(name, Text(*texts["title"]), Text(*texts["cause"]), made)


CASE_OF: Mapping[CaseName, Case] = {name: _case(name) for name in CASES}
