"""What is asked for a set, and what came of it, in an order that no chance of timing changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.sets.generating.filters import duplicates, looked_at
from rag_kit.evaluation.sets.generating.sources import Piece


@dataclass(frozen=True)
class Attempt:
    """Pieces to show, and what the attempt is called in the file."""

    key: str
    kind: str
    pieces: tuple[Piece, ...]


@dataclass
class State:
    """What is known: records by key, and what they came to, always in the order of the attempts.

    So the set is the same whichever attempt ended first, and however often the run was ended.
    """

    wanted: Mapping[str, int]
    records: dict[str, dict[str, Any]]
    stopped_by: str | None = None
    asked: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    shown: list[dict[str, str]] = field(default_factory=list)
    language: str = "auto"
    _examples: dict[str, list[Example]] = field(default_factory=dict)
    _next: dict[str, int] = field(default_factory=dict)

    def accepted(self, kind: str) -> list[Example]:
        """The questions of a kind."""
        return self._examples.setdefault(kind, [])

    def take(self, kind: str, attempts: Sequence[Attempt]) -> None:
        """Look at what has come in, up to the first attempt that is still missing."""
        place = self._next.get(kind, 0)
        while (
            place < len(attempts)
            and attempts[place].key in self.records
            and len(self.accepted(kind)) < self.wanted[kind]
        ):
            self._look(attempts[place], self.records[attempts[place].key])
            place += 1
        self._next[kind] = place

    def _look(self, attempt: Attempt, record: Mapping[str, Any]) -> None:
        self.asked += 1
        items = record.get("items", [])
        if not items:
            self._drop("model_failed" if record.get("error") else "nothing_to_ask", attempt.kind, "")
        for each in items:
            item, check = each["item"], each["check"]
            failed = bool(check and check.get("failed"))
            found = looked_at(item, None if failed else check, attempt.kind, attempt.pieces)
            if failed and isinstance(found, Example):
                found = "model_failed"
            if isinstance(found, Example) and self.language not in ("auto", found.tags["language"]):
                found = "wrong_language"  # a page in the language asked for quotes another one
            if isinstance(found, Example):
                everything = [example for examples in self._examples.values() for example in examples]
                if duplicates(found, everything) or any(found.id == other.id for other in everything):
                    found = "duplicate"
                elif len(self.accepted(attempt.kind)) < self.wanted[attempt.kind]:
                    self.accepted(attempt.kind).append(found)
                    continue
                else:
                    continue
            self._drop(found, attempt.kind, str(item["question"]))

    def _drop(self, reason: str, kind: str, question: str) -> None:
        self.dropped[reason] = self.dropped.get(reason, 0) + 1
        self.shown.append({"kind": kind, "question": question[:500], "reason": reason})
