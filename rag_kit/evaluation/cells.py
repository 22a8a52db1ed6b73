"""One score of one question: a value, or why there is none. A failed cell never turns into a number."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast, get_args

from rag_kit.documents.plain import to_plain
from rag_kit.errors import InvalidInputError

#: ``ok``: there is a value; ``undefined``: the metric has none for this answer (no statement, nothing cited);
#: ``error``: it could not be computed (model, time-out, value out of range); ``not_applicable``: the question or
#: the pipeline lacks what the metric reads (no reference, no passages).
Status = Literal["ok", "undefined", "error", "not_applicable"]

STATUSES: tuple[Status, ...] = get_args(Status)


@dataclass(frozen=True)
class Cell:
    """The score that one metric gives one question, or the reason why there is none.

    Args:
        value: The score; ``None`` unless ``status`` is ``"ok"``.
        status: Whether there is a score, and if not, of which kind its absence is.
        reason: Why there is none, or what the judge said of it; for people.
        calls: Model calls that it took; a reply from the cache is none.
        tokens: Tokens in and out.
        seconds: Wall-clock seconds.
        details: Plain JSON behind the value: statements with verdicts, matched spans.

    Raises:
        InvalidInputError: If value and status do not fit each other, or a count is no number from 0 on.

    Example:
        >>> Cell.ok(0.75).value, Cell.undefined("the answer holds no statement").value
        (0.75, None)
    """

    value: float | None
    status: Status = "ok"
    reason: str = ""
    calls: int = 0
    tokens: int = 0
    seconds: float = 0.0
    details: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.status not in STATUSES:
            raise InvalidInputError(f"status is {self.status!r}; allowed are {', '.join(STATUSES)}")
        if self.status == "ok":
            number = isinstance(self.value, (int, float)) and not isinstance(self.value, bool)
            if not number or not abs(cast("float", self.value)) <= sys.float_info.max:  # NaN is not, either
                raise InvalidInputError(
                    f"an ok cell has the value {self.value!r:.80}; give a number, or Cell.undefined with a reason"
                )
        elif self.value is not None:
            raise InvalidInputError(f"a cell that is {self.status} has no value; {self.value!r} was given")
        for name in ("calls", "tokens", "seconds"):
            number = getattr(self, name)
            if type(number) not in (int, float) or not 0 <= number <= sys.float_info.max:
                raise InvalidInputError(f"{name} is {number!r:.80}; give a number from 0 on")

    @classmethod
    def ok(cls, value: float, reason: str = "", **details: Any) -> Cell:
        """A score, and the plain data behind it."""
        return cls(value, "ok", reason, details=details)

    @classmethod
    def undefined(cls, reason: str, **details: Any) -> Cell:
        """The metric has no value here."""
        return cls(None, "undefined", reason, details=details)

    @classmethod
    def error(cls, reason: str, **details: Any) -> Cell:
        """The value could not be computed."""
        return cls(None, "error", reason, details=details)

    @classmethod
    def not_applicable(cls, reason: str) -> Cell:
        """The question or the pipeline lacks what the metric reads."""
        return cls(None, "not_applicable", reason)

    def to_json(self) -> dict[str, Any]:
        """The cell as plain JSON; empty fields are left out."""
        record = {
            "value": self.value, "status": self.status, "reason": self.reason, "calls": self.calls,
            "tokens": self.tokens, "seconds": round(self.seconds, 6), "details": to_plain(self.details),
        }  # fmt: skip
        return {key: item for key, item in record.items() if item or key in ("value", "status")}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Cell:
        """Read a cell that ``to_json`` made.

        Raises:
            InvalidInputError: If it is no such record.

        Example:
            >>> Cell.from_json(Cell.ok(1.0, statements=["a"]).to_json()) == Cell.ok(1.0, statements=["a"])
            True
        """
        if not isinstance(record, Mapping) or not {"value", "status"} <= set(record) <= set(_FIELDS):
            raise InvalidInputError(f"{record!r:.200} is no cell; it needs value and status")
        return cls(**cast("dict[str, Any]", dict(record)))


_FIELDS = ("value", "status", "reason", "calls", "tokens", "seconds", "details")
