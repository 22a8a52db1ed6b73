"""Reranking by what metadata says about a passage, beside its score: how new it is, how much its source is trusted."""

from __future__ import annotations

import datetime
import re
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from langchain_core.documents import Document

from rag_kit.documents.identity import document_key
from rag_kit.documents.provenance import peek_score
from rag_kit.errors import InvalidInputError
from rag_kit.retrieval.base import check_number
from rag_kit.retrieval.convex import normalise
from rag_kit.retrieval.query_call import QueryCall
from rag_kit.retrieval.rerank.base import Ranking, Reranker, by_scores

_UTC = datetime.UTC
_DATE = re.compile(
    r"(?P<year>[12]\d{3})(?:\s*[-/.年]\s*(?P<month>\d{1,2})(?:\s*[-/.月]\s*(?P<day>\d{1,2})\s*日?|\s*月)?|\s*年)?"
)
# Below this a number is a year, above it seconds since 1970 (or milliseconds, above the second).
_LAST_YEAR, _FIRST_MILLISECONDS = 3000, 100_000_000_000


class Signal(ABC):
    """A value from 0 to 1 read from a document's metadata.

    Args:
        field: The metadata field.
        weight: Its weight beside the score's, above 0.
        missing: The value of a document without a usable field, 0 to 1.
    """

    name: str = "signal"

    def __init__(self, *, field: str, weight: float, missing: float) -> None:
        if not isinstance(field, str) or not field:
            raise InvalidInputError(f"field={field!r} was given; it must be the name of a metadata field.")
        self.field = field
        self.weight = check_number("weight", weight, above=0.0)
        self.missing = check_number("missing", missing, most=1.0)

    @abstractmethod
    def value(self, doc: Document) -> float | None:
        """The value of one document, 0 to 1; ``None`` where the field is absent or unusable."""


class Recency(Signal):
    """How new a document is: 1 today, half after ``half_life`` days, a quarter after two of them...

    Args:
        field: Metadata field with the date: a date, a year, a time stamp or a text (see ``read_date``). A date to come
            counts as today.
        half_life: Days after which the value is halved, above 0.
        weight: See ``Signal``.
        missing: What a document without a date counts.
        now: The present moment; by default the clock.
    """

    name = "recency"

    def __init__(
        self,
        *,
        field: str = "date",
        half_life: float = 365.25,
        weight: float = 0.5,
        missing: float = 0.0,
        now: Any = None,
    ) -> None:
        super().__init__(field=field, weight=weight, missing=missing)
        self.half_life = check_number("half_life", half_life, above=0.0)
        self.now = read_date(now)
        if now is not None and self.now is None:
            raise InvalidInputError(f"now={now!r} was given; it must be a date.")

    def value(self, doc: Document) -> float | None:
        """See ``Signal.value``."""
        found = read_date(doc.metadata.get(self.field))
        if found is None:
            return None
        age = (self.now or datetime.datetime.now(_UTC)) - found
        days = max(datetime.timedelta(), age) / datetime.timedelta(days=1)
        return float(0.5 ** (days / self.half_life))


class Authority(Signal):
    """How much the source of a document is trusted.

    Args:
        values: Trust by value of the field, each 0 to 1: ``{"handbook": 1.0, "forum": 0.2}``.
        field: Metadata field that names the source.
        weight: See ``Signal``.
        missing: What a source that is not named counts.
    """

    name = "authority"

    def __init__(
        self,
        values: Mapping[Any, float],
        *,
        field: str = "source",
        weight: float = 0.5,
        missing: float = 0.5,
    ) -> None:
        super().__init__(field=field, weight=weight, missing=missing)
        if not isinstance(values, Mapping):
            raise InvalidInputError(
                f"values is {type(values).__name__}; it must map sources to numbers from 0 to 1."
            )
        for name, value in values.items():
            check_number(f"values[{name!r}]", value, most=1.0)
        self.values = values

    def value(self, doc: Document) -> float | None:
        """See ``Signal.value``."""
        source = doc.metadata.get(self.field)
        return self.values.get(source) if isinstance(source, Hashable) else None


def read_date(value: Any) -> datetime.datetime | None:
    """Read a date, a year, seconds or milliseconds since 1970, or a text such as ``2024-03-05`` or ``2024年3月5日``.

    Returns:
        The first moment of it, with a time zone (UTC where none is given); ``None`` if it is no date.

    Example:
        >>> read_date("2024年3月").isoformat()
        '2024-03-01T00:00:00+00:00'
        >>> read_date(2024).year, read_date("soon")
        (2024, None)
    """
    found: Any = value
    with suppress(ValueError, OverflowError, OSError):
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            found = _from_number(float(value))
        elif isinstance(value, str):
            found = _from_text(value.strip())
        if isinstance(found, datetime.datetime):
            return found if found.tzinfo else found.replace(tzinfo=_UTC)
        if isinstance(found, datetime.date):
            return datetime.datetime(found.year, found.month, found.day, tzinfo=_UTC)
    return None


def _from_number(value: float) -> datetime.date | None:
    if 1000 <= value < _LAST_YEAR:
        return datetime.date(int(value), 1, 1) if value.is_integer() else None
    seconds = value / 1000 if abs(value) >= _FIRST_MILLISECONDS else value
    return datetime.datetime.fromtimestamp(seconds, tz=_UTC)


def _from_text(text: str) -> datetime.date:
    if match := _DATE.fullmatch(text):
        return datetime.date(*(int(part or 1) for part in match.group("year", "month", "day")))
    return datetime.datetime.fromisoformat(text)


class MetadataReranker(Reranker):
    """Combine the score that passages come with and signals from their metadata; lower what was shown already.

    The new score is the weighted mean of the score brought to 0 to 1 by min-max (weight ``score_weight``) and the
    signals (each from 0 to 1, with its own weight), minus ``shown_penalty`` for a passage that was shown already.
    The parts stand in the provenance. Passages without scores count by rank, and a note says so.

    Args:
        signals: ``Recency``, ``Authority`` or your own ``Signal``.
        score_weight: Weight of the normalised score, 0 or more.
        shown_penalty: What is taken off the new score of a passage whose id the call names as shown already,
            ``retriever.invoke(query, shown=[...])``; 0 or more.
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
        for signal in self.signals:
            if not isinstance(signal, Signal):
                raise InvalidInputError(
                    f"signals holds {type(signal).__name__}; each must be a Signal, such as Recency(field='date')."
                )
        self.score_weight = check_number("score_weight", score_weight)
        if self.score_weight + sum(signal.weight for signal in self.signals) <= 0:
            raise InvalidInputError(
                "score_weight is 0 and there is no signal, so there is nothing to rank by."
            )
        self.shown_penalty = check_number("shown_penalty", shown_penalty)

    async def rank(self, query: str, documents: Sequence[Document], call: QueryCall) -> Ranking:
        """Order the documents; see ``Reranker.rank``."""
        shown = _ids(call.request.extra.get("shown") or ())
        scaled = normalise([peek_score(doc) for doc in documents])
        names = [f"{signal.name}:{signal.field}" for signal in self.signals]
        weights = [self.score_weight, *(signal.weight for signal in self.signals)]
        scores: list[float] = []
        details: list[dict[str, Any]] = []
        for doc, base in zip(documents, scaled.values, strict=True):
            values = [base, *(_value(signal, doc) for signal in self.signals)]
            mean = sum(weight * value for weight, value in zip(weights, values, strict=True)) / sum(weights)
            seen = document_key(doc, call.owner.id_key) in shown
            scores.append(mean - (self.shown_penalty if seen else 0.0))
            detail = {"parts": dict(zip(["score", *names], values, strict=True))}
            details.append({**detail, "shown": True} if seen else detail)
        notes = [f"rerank:{self.name}: {scaled.note}"] if scaled.note and self.score_weight else []
        return by_scores(scores, details=details, notes=notes)


def _value(signal: Signal, doc: Document) -> float:
    found = signal.value(doc)
    return signal.missing if found is None else check_number(f"the value of {signal.name}", found, most=1.0)


def _ids(value: Any) -> set[str]:
    """Ids of documents; one text alone is a likely slip."""
    if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
        raise InvalidInputError(f"shown={value!r} was given; it must be a list of document ids.")
    return set(value)
