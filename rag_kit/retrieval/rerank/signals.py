"""Reranking by what metadata says about a passage, beside its score: how new it is, how much its source is trusted."""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from typing import Any

from langchain_core.documents import Document

from rag_kit.documents.identity import document_key
from rag_kit.documents.provenance import peek_score
from rag_kit.errors import InvalidInputError
from rag_kit.retrieval.call import Call
from rag_kit.retrieval.fields import check_number
from rag_kit.retrieval.rerank.base import Ranking, Reranker, by_scores

# year, and perhaps month and day: "2024", "2024-3", "2024/03/05", "2024年3月5日"
_DATE = re.compile(r"([12]\d{3})(?:\s*[-/.年]\s*(\d{1,2})(?:\s*[-/.月]\s*(\d{1,2})\s*日?|\s*月)?|\s*年)?")
_LAST_YEAR = 3000  # a larger number is seconds since 1970


class Signal(ABC):
    """A value from 0 to 1 read from a document's metadata field.

    ``weight`` is its weight beside the score's, above 0; ``missing`` the value of a document without a usable field.
    """

    name: str = "signal"

    def __init__(self, *, field: str, weight: float = 0.5, missing: float = 0.0) -> None:
        if not isinstance(field, str) or not field:
            raise InvalidInputError(f"field={field!r} was given; it must be the name of a metadata field.")
        self.field = field
        self.weight = check_number("weight", weight, above=0.0)
        self.missing = check_number("missing", missing, maximum=1.0)

    @abstractmethod
    def value(self, doc: Document) -> float | None:
        """The value of one document, 0 to 1; ``None`` where the field is absent or unusable."""

    def value_of(self, doc: Document) -> float:
        """Return the value of a document, else ``missing``; refuse a value that is not from 0 to 1."""
        value = self.value(doc)
        return self.missing if value is None else check_number(f"the value of {self.name}", value, maximum=1)


class Recency(Signal):
    """How new a document is: 1 today, half after ``half_life`` days, a quarter after two of them...

    Args:
        field: Metadata field with the date, as ``read_date`` takes it; a date to come counts as today.
        half_life: Days after which the value is halved, above 0.
        now: The present moment; by default the clock.
        **more: ``weight`` and ``missing``, see ``Signal``.
    """

    name = "recency"

    def __init__(
        self, *, field: str = "date", half_life: float = 365.25, now: Any = None, **more: float
    ) -> None:
        super().__init__(field=field, **more)
        self.half_life = check_number("half_life", half_life, above=0.0)
        self.now = read_date(now)
        if now is not None and self.now is None:
            raise InvalidInputError(f"now={now!r} was given; it must be a date.")

    def value(self, doc: Document) -> float | None:
        """Return how new the document is; ``None`` without a usable date."""
        written = read_date(doc.metadata.get(self.field))
        if written is None:
            return None
        age = max(timedelta(), (self.now or datetime.now(UTC)) - written)
        return float(0.5 ** (age / timedelta(days=1) / self.half_life))


class Authority(Signal):
    """How much the source of a document is trusted.

    Args:
        values: Trust by value of the field, each 0 to 1: ``{"handbook": 1.0, "forum": 0.2}``.
        field: Metadata field that names the source.
        missing: What a source that is not named counts.
        **more: ``weight``, see ``Signal``.
    """

    name = "authority"

    def __init__(
        self, values: Mapping[Any, float], *, field: str = "source", missing: float = 0.5, **more: float
    ) -> None:
        super().__init__(field=field, missing=missing, **more)
        for name, value in dict(values).items():
            check_number(f"values[{name!r}]", value, maximum=1.0)
        self.values = values

    def value(self, doc: Document) -> float | None:
        """Return the trust in the document's source; ``None`` where it is not named."""
        source = doc.metadata.get(self.field)
        return self.values.get(source) if isinstance(source, Hashable) else None


def read_date(value: Any) -> datetime | None:
    """Return the first moment of a date, a year, seconds since 1970, or a text such as ``2024-03-05``.

    It has a time zone (UTC where none is given); ``None`` if the value is not a date.

    Example:
        >>> read_date("2024年3月").isoformat()
        '2024-03-01T00:00:00+00:00'
        >>> read_date(2024).year, read_date("soon")
        (2024, None)
    """
    with suppress(ValueError, OverflowError, OSError):  # no such day, or out of the range of dates
        if isinstance(value, str):
            match = _DATE.fullmatch(value.strip())
            if match:
                year, month, day = (int(part or 1) for part in match.groups())  # no month or day: the first
                value = datetime(year, month, day)
            else:
                value = datetime.fromisoformat(value.strip())
        elif isinstance(value, int) and 1000 <= value < _LAST_YEAR:  # larger numbers are seconds
            value = datetime(value, 1, 1)
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            value = datetime.fromtimestamp(value, tz=UTC)
        elif isinstance(value, date) and not isinstance(value, datetime):
            value = datetime(value.year, value.month, value.day)
        if isinstance(value, datetime):
            return value if value.tzinfo else value.replace(tzinfo=UTC)
    return None


class MetadataReranker(Reranker):
    """Combine the score that passages come with and signals from their metadata; lower what was shown already.

    The new score is the weighted mean of the score brought to 0 to 1 by min-max (weight ``score_weight``) and the
    signals (each from 0 to 1, with its own weight), minus ``shown_penalty`` for a passage that was shown already.
    The parts stand in the provenance. Passages without scores count by rank, and a note says so.

    Args:
        signals: ``Recency``, ``Authority`` or your own ``Signal``.
        score_weight: Weight of the normalised score, 0 or more.
        shown_penalty: What a passage loses whose id ``retriever.invoke(query, shown=[...])`` names; 0 or more.
        depth: See ``Reranker``.
    """

    name = "metadata"

    def __init__(
        self,
        signals: Sequence[Signal] = (),
        *,
        score_weight: float = 1.0,
        shown_penalty: float = 0.5,
        depth: int | None = None,
    ) -> None:
        super().__init__(depth=depth)
        self.signals = list(signals)
        if wrong := [signal for signal in self.signals if not isinstance(signal, Signal)]:
            raise InvalidInputError(
                f"signals holds {type(wrong[0]).__name__}; each must be a Signal, such as Recency(field='date')."
            )
        self.score_weight = check_number("score_weight", score_weight)
        if self.score_weight + sum(signal.weight for signal in self.signals) <= 0:
            raise InvalidInputError(
                "score_weight is 0 and there is no signal, so there is nothing to rank by."
            )
        self.shown_penalty = check_number("shown_penalty", shown_penalty)

    async def rank(self, query: str, documents: Sequence[Document], call: Call) -> Ranking:
        """Order the documents; see ``Reranker.rank``."""
        shown = call.arguments.get("shown") or ()
        if isinstance(shown, (str, bytes)) or not hasattr(shown, "__iter__"):
            raise InvalidInputError(f"shown={shown!r} was given; it must be a list of document ids.")
        shown_ids = set(shown)
        scaled_scores, note = _min_max_scaled([peek_score(doc) for doc in documents])
        names = ["score", *(f"{signal.name}:{signal.field}" for signal in self.signals)]
        weights = [self.score_weight, *(signal.weight for signal in self.signals)]
        scores: list[float] = []
        details: list[dict[str, Any]] = []
        for doc, scaled_score in zip(documents, scaled_scores, strict=True):
            values = [scaled_score, *(signal.value_of(doc) for signal in self.signals)]
            score = sum(weight * value for weight, value in zip(weights, values, strict=True)) / sum(weights)
            detail: dict[str, Any] = {"parts": dict(zip(names, values, strict=True))}
            if document_key(doc, call.owner.id_key) in shown_ids:
                score -= self.shown_penalty
                detail["shown"] = True
            scores.append(score)
            details.append(detail)
        notes = [f"rerank:{self.name}: {note}"] if note and self.score_weight else []
        return by_scores(scores, details=details, notes=notes)


def _min_max_scaled(scores: Sequence[float | None]) -> tuple[list[float], str | None]:
    """Scale scores to 0 (lowest) to 1 (highest, or all equal); by rank, with a note, if a score is missing."""
    usable = [score for score in scores if score is not None and math.isfinite(score)]
    note = None
    if len(usable) < len(scores):
        note = "no scores, so the ranks were used"
        usable = [1 - position / len(scores) for position in range(len(scores))]
    low, high = min(usable), max(usable)
    if high == low:
        return [1.0] * len(usable), note
    return [(score - low) / (high - low) for score in usable], note
