"""One score of one question: a value, or why there is none; and what many say together."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from rag_kit.documents.identity import to_plain
from rag_kit.evaluation.examples import Recorded, checked

#: ``ok``: there is a value; ``undefined``: the metric has none for this answer (no statement, nothing cited);
#: ``error``: it could not be computed (model, time-out, value out of range); ``not_applicable``: the question or
#: the pipeline lacks what the metric reads (no reference, no passages).
Status = Literal["ok", "undefined", "error", "not_applicable"]

#: What a metric looks at, as the diagnosis and the tables group it.
Stage = Literal["retrieval", "generation", "end_to_end", "agent"]
Scale = tuple[float | None, float | None]  # least and greatest value of a metric; None: no bound


@checked
class Cell(Recorded):
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
        InvalidInputError: If value and status do not fit each other, or a count is not a number from 0 on.

    Example:
        >>> Cell.ok(0.75).value, Cell.undefined("the answer holds no statement").value
        (0.75, None)
    """

    value: Annotated[float, Field(allow_inf_nan=False)] | None
    status: Status = "ok"
    reason: str = ""
    calls: Annotated[int, Field(ge=0)] = 0
    tokens: Annotated[int, Field(ge=0)] = 0
    seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    details: Mapping[str, Any] = field(default_factory=dict)

    @model_validator(mode="after")
    def _fits(self) -> Cell:
        if (self.status == "ok") != (self.value is not None):
            raise ValueError(f"a cell that is {self.status} has the value {self.value}; only ok has one")
        return self

    @classmethod
    def ok(cls, value: float, reason: str = "", **details: Any) -> Cell:
        """Make a cell with a score, and the plain data behind it."""
        return cls(value, "ok", reason, details=details)

    @classmethod
    def undefined(cls, reason: str, **details: Any) -> Cell:
        """Make a cell without a value: the metric has none here."""
        return cls(None, "undefined", reason, details=details)

    @classmethod
    def error(cls, reason: str, **details: Any) -> Cell:
        """Make a cell without a value: it could not be computed."""
        return cls(None, "error", reason, details=details)

    @classmethod
    def not_applicable(cls, reason: str) -> Cell:
        """Make a cell without a value: the question or the pipeline lacks what the metric reads."""
        return cls(None, "not_applicable", reason)

    def to_json(self) -> dict[str, Any]:
        """Return the cell as plain JSON; empty fields are left out."""
        record = to_plain(vars(self))
        record["seconds"] = round(self.seconds, 6)
        return {key: item for key, item in record.items() if item or key in ("value", "status")}


@dataclass(frozen=True)
class Labelled:
    """The mean that people would give, estimated from their ``n`` verdicts and the judge's values."""

    n: int
    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"with {self.n} labels {self.mean:.3f} [{self.low:.3f}, {self.high:.3f}]"


@dataclass(frozen=True)
class Summary:
    """Summary of a metric over all questions: mean, bootstrap interval, counts of cells by kind.

    ``n + undefined + errors + not_applicable + missing == total``. ``mean`` is ``None`` without a value, ``low`` and
    ``high`` below two. ``missing`` are examples that the run has not come to yet. ``labelled`` is there from ten
    verdicts by people on (`rag_kit.evaluation.labelling.label`).
    """

    mean: float | None
    low: float | None
    high: float | None
    n: int
    total: int
    undefined: int = 0
    errors: int = 0
    not_applicable: int = 0
    missing: int = 0
    labelled: Labelled | None = None

    @classmethod
    def of(
        cls,
        cells: Iterable[Cell],
        total: int,
        ends: tuple[float | None, float | None] = (None, None),
        labelled: Labelled | None = None,
    ) -> Summary:
        """Summarize the cells of some of ``total`` examples; ``ends`` are low and high end of the interval."""
        all_cells = list(cells)
        counts = Counter(cell.status for cell in all_cells)
        values = [float(cell.value) for cell in all_cells if cell.value is not None]
        mean = math.fsum(values) / len(values) if values else None
        unscored = (counts["undefined"], counts["error"], counts["not_applicable"], total - len(all_cells))
        return cls(mean, *ends, len(values), total, *unscored, labelled)  # in the order of the fields

    @property
    def coverage(self) -> float:
        """Share of the examples that have a value."""
        return self.n / self.total if self.total else 0.0
