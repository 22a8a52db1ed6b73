"""The events of a search's log as trials, whether they were just made or read from the file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.tuning.checking import VERSION, is_event
from rag_kit.evaluation.tuning.held import HeldAside, judge_held
from rag_kit.evaluation.tuning.log import FILE, read_events
from rag_kit.evaluation.tuning.pruning import best_number
from rag_kit.evaluation.tuning.result import Trial, TuningResult

Part = Literal["search", "held"]


@dataclass
class Tried:
    """What the log says of one setting: its scores on both parts, and how it ended."""

    settings: dict[str, Any]
    search: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    held: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    end: Mapping[str, Any] | None = None
    seconds: float = 0.0

    def part(self, part: Part) -> dict[str, Mapping[str, Any]]:
        """Question -> event."""
        return self.search if part == "search" else self.held

    def values(self, part: Part = "search") -> dict[str, float]:
        """Question -> value, where there is one."""
        return {
            key: float(event["value"]) for key, event in self.part(part).items() if event["value"] is not None
        }


class History:
    """All events so far.

    Args:
        events: As the log has them.
    """

    def __init__(self, events: Iterable[Mapping[str, Any]] = ()) -> None:
        self.header: Mapping[str, Any] = {}
        self.tried: dict[int, Tried] = {}
        self.stopped: Mapping[str, Any] = {}
        self.elapsed = 0.0
        self.calls = self.tokens = 0
        self.money: float | None = 0.0
        for event in events:
            self.add(event)

    def add(self, event: Mapping[str, Any]) -> None:
        """Take in one event.

        Raises:
            InvalidInputError: If it is none.
        """
        kind = event.get("event")
        if not is_event(event) or not self._fits(kind, event):
            raise InvalidInputError(
                f"{FILE} holds a line that is no event of a search (or not of this one): {dict(event)!r:.200}; "
                "remove it, or give another folder"
            )
        self.elapsed = max(self.elapsed, event.get("elapsed", 0.0))
        if kind == "search":
            self.header = event
        elif kind == "trial":
            self.tried[event["trial"]] = Tried(dict(event["settings"]))
        elif kind == "score":
            self._score(event)
        elif kind == "end":
            self.tried[event["trial"]].end = event
        else:
            self.stopped = event

    def _fits(self, kind: Any, event: Mapping[str, Any]) -> bool:
        """Whether it may come now: what is searched first and once, settings in their order, then their scores."""
        if kind == "search":
            return not self.header
        if kind == "trial":
            return bool(self.header) and event["trial"] == len(self.tried)
        return bool(self.header) and (kind == "stopped" or event["trial"] in self.tried)

    def _score(self, event: Mapping[str, Any]) -> None:
        tried = self.tried[event["trial"]]
        tried.part(event["part"])[event["id"]] = event
        tried.seconds += event["seconds"]
        self.calls += event["calls"]
        self.tokens += event["tokens"]
        money = event["money"]
        self.money = None if self.money is None or money is None else self.money + money

    def finished(self) -> dict[int, dict[str, float]]:
        """Number -> scores, of the settings that answered every question."""
        return {
            number: tried.values()
            for number, tried in self.tried.items()
            if tried.end is not None and tried.end["state"] == "complete"
        }

    def best(self) -> int | None:
        """The best setting that is finished."""
        return best_number(self.finished(), self.header["higher_is_better"])

    def trial(self, number: int) -> Trial:
        """One trial."""
        tried = self.tried[number]
        events = [*tried.search.values(), *tried.held.values()]
        money = [event["money"] for event in events]
        end = tried.end or {"state": "unfinished", "reason": ""}
        return Trial(
            number, tried.settings, end["state"], tried.values(), len(tried.search), end["reason"],
            sum(event["calls"] for event in events), sum(event["tokens"] for event in events),
            None if None in money else sum(money), round(tried.seconds, 3),
        )  # fmt: skip

    def held_aside(self, level: float) -> HeldAside | None:
        """The winner against the default, where both have answered."""
        best = self.best()
        if best is None or not self.header["counts"]["held"]:
            return None
        if best not in self.tried or 0 not in self.finished():
            return None
        return judge_held(
            self.tried[best].values("held"),
            self.tried[0].values("held"),
            total=self.header["counts"]["held"],
            higher_is_better=self.header["higher_is_better"],
            level=level,
            looks=sum(bool(tried.held) for number, tried in self.tried.items() if number),
        )

    def result(self) -> TuningResult:
        """Everything, as the user gets it."""
        header, stopped = self.header, self.stopped
        best = self.best()
        maker = stopped.get("maker")
        held = self.held_aside(stopped.get("level", 0.95))
        return TuningResult(
            best=self.tried[0 if best is None else best].settings,
            trials=tuple(self.trial(number) for number in sorted(self.tried)),
            held_aside=held,
            metric=header["metric"],
            higher_is_better=header["higher_is_better"],
            stopped=stopped.get("reason", "it still goes on, or was killed"),
            notes=tuple(_notes(header, held)),
            setup=header,
            usage={
                "calls": self.calls,
                "tokens": self.tokens,
                "money": self.money,
                "seconds": round(self.elapsed, 3),
            },
            maker=None if maker is None else ((maker[0][0], maker[0][1]), maker[1]),
        )


def load_result(folder: Path) -> TuningResult:
    """`TuningResult.load`."""
    path = folder / FILE
    if not path.is_file():
        raise InvalidInputError(f"{str(folder)!r} holds no {FILE}; give the folder that tune got as out")
    events = read_events(path)
    if events and events[0].get("version", VERSION) != VERSION:
        raise InvalidInputError(
            f"{str(path)!r} is of version {events[0]['version']!r:.40}; this one reads {VERSION}. Search anew in "
            "another folder"
        )
    history = History(events)
    if not history.tried:
        raise InvalidInputError(f"{str(path)!r} holds no setting yet")
    return history.result()


def _notes(header: Mapping[str, Any], held: HeldAside | None) -> list[str]:
    counts, notes = header["counts"], []
    if counts["left_out"]:
        notes.append(f"{counts['left_out']} questions lack what the metric reads and were left out.")
    if counts["search"] < 30 or 0 < counts["held"] < 30:
        notes.append(
            f"{counts['search']} questions to search with and {counts['held']} held aside are few: only great "
            "differences can be told from noise."
        )
    if held is not None and held.looks > 1:
        notes.append(
            f"{held.looks} settings were judged on the questions held aside, one after the other; each further look "
            "makes the verdict weaker."
        )
    if held is not None and held.pairs < held.total:
        notes.append(
            f"{held.total - held.pairs} of the {held.total} questions held aside have no value of both."
        )
    return notes
