"""What metadata says about a passage: how new it is, how much its source is trusted."""

from __future__ import annotations

import datetime
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

from langchain_core.documents import Document

from rag_kit.errors import InvalidInputError
from rag_kit.retrieval.numbers import check_number
from rag_kit.retrieval.rerank.dates import read_date
from rag_kit.retrieval.showing import Shown

_SECONDS_A_DAY = 86_400.0


class Signal(Shown, ABC):
    """A value from 0 to 1 read from a document's metadata.

    Args:
        field: The metadata field.
        weight: Its weight beside the score's, above 0.
        missing: The value of a document without a usable field, 0 to 1.

    Raises:
        InvalidInputError: If an argument is not allowed.
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
        now: The present moment, or a function that gives it; by default the clock.

    Raises:
        InvalidInputError: If an argument is not allowed.

    Example:
        >>> recency = Recency(field="year", half_life=365.25, now=datetime.date(2026, 1, 1))
        >>> round(recency.value(Document("t", metadata={"year": 2024})), 2)
        0.25
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
        if now is not None and not callable(now) and read_date(now) is None:
            raise InvalidInputError(
                f"now={now!r} was given; it must be a date, or a function that gives one."
            )
        self.now: Any = now

    def value(self, doc: Document) -> float | None:
        """See ``Signal.value``."""
        found = read_date(doc.metadata.get(self.field))
        if found is None:
            return None
        given = self.now() if callable(self.now) else self.now
        now = datetime.datetime.now(datetime.UTC) if given is None else read_date(given)
        if now is None:
            raise InvalidInputError(f"The function now gave {given!r}; it must give a date.")
        days = max(0.0, (now - found).total_seconds() / _SECONDS_A_DAY)
        return float(0.5 ** (days / self.half_life))


class Authority(Signal):
    """How much the source of a document is trusted.

    Args:
        values: Trust by value of the field, each 0 to 1: ``{"handbook": 1.0, "forum": 0.2}``; or a function from the
            field's value to such a number, or ``None``.
        field: Metadata field that names the source.
        weight: See ``Signal``.
        missing: What a source that is not named counts.

    Raises:
        InvalidInputError: If an argument is not allowed.

    Example:
        >>> authority = Authority({"handbook": 1.0, "forum": 0.2}, field="source")
        >>> authority.value(Document("t", metadata={"source": "forum"}))
        0.2
    """

    name = "authority"

    def __init__(
        self,
        values: Mapping[Any, float] | Callable[[Any], float | None],
        *,
        field: str = "source",
        weight: float = 0.5,
        missing: float = 0.5,
    ) -> None:
        super().__init__(field=field, weight=weight, missing=missing)
        if isinstance(values, Mapping):
            for name, value in values.items():
                check_number(f"values[{name!r}]", value, most=1.0)
        elif not callable(values):
            raise InvalidInputError(
                f"values is {type(values).__name__}; it must map sources to numbers from 0 to 1, or be a function."
            )
        self.values = values

    def value(self, doc: Document) -> float | None:
        """See ``Signal.value``."""
        source = doc.metadata.get(self.field)
        if source is None:
            return None
        if not isinstance(self.values, Mapping):
            found = self.values(source)
            return None if found is None else check_number("the value of the function", found, most=1.0)
        try:
            return None if source not in self.values else float(self.values[source])
        except TypeError:  # a list or dict is no key
            return None
