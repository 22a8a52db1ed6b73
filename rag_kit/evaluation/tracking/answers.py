"""A tracker's answer, taken apart: what must be there is there, or the error says what came instead."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rag_kit.errors import TrackingError

#: Longer ids are none that a tracker gives.
_LONGEST_ID = 1000


@dataclass(frozen=True)
class Answer:
    """What a tracker answered.

    Args:
        status: HTTP status.
        value: JSON value (``None`` without one); the text where it is no JSON.
        headers: Their names in lower case.
        complain: Makes the error for an answer that cannot be understood, from what is wrong with it.
    """

    status: int
    value: Any
    headers: Mapping[str, str]
    complain: Callable[[str], TrackingError]

    @property
    def whole(self) -> Part:
        """The value, to be read."""
        return Part(self.value, "the answer", self.complain)


@dataclass(frozen=True)
class Part:
    """A value in an answer, and where it stands there.

    Example:
        >>> answer = Answer(200, {"data": [{"id": 7}]}, {}, TrackingError)
        >>> [each.part("id").id() for each in answer.whole.part("data").items()]
        ['7']
    """

    value: Any
    place: str
    complain: Callable[[str], TrackingError]

    def fields(self) -> dict[str, Any]:
        """The value as an object.

        Raises:
            TrackingError: If it is none; so do the other methods where the value is not what they give.
        """
        if not isinstance(self.value, dict):
            raise self.complain(f"{self.place} is {_kind(self.value)} where an object belongs")
        return self.value

    def find(self, name: str) -> Part | None:
        """An entry of the object; ``None`` where it is missing or null."""
        value = self.fields().get(name)
        return None if value is None else Part(value, f"{name!r} of {self.place}"[:120], self.complain)

    def part(self, name: str) -> Part:
        """An entry of the object that must be there."""
        found = self.find(name)
        if found is None:
            state = "null" if name in self.fields() else "missing"
            raise self.complain(f"{name!r} of {self.place} is {state}")
        return found

    def items(self) -> list[Part]:
        """The entries of a list."""
        if not isinstance(self.value, list):
            raise self.complain(f"{self.place} is {_kind(self.value)} where a list belongs")
        place = f"an entry of {self.place}"[:120]
        return [Part(each, place, self.complain) for each in self.value]

    def text(self) -> str:
        """A text, or a whole number as one."""
        if isinstance(self.value, str):
            return self.value
        if isinstance(self.value, int) and not isinstance(self.value, bool):
            return str(self.value)
        raise self.complain(f"{self.place} is {_kind(self.value)} where a text belongs")

    def id(self) -> str:
        """A text that can stand in an address."""
        text = self.text()
        if not text.strip() or not text.isprintable() or len(text) > _LONGEST_ID:
            raise self.complain(f"{self.place} is no id")
        return text

    def count(self) -> int:
        """A whole number from 0."""
        if not isinstance(self.value, int) or isinstance(self.value, bool) or self.value < 0:
            raise self.complain(f"{self.place} is {_kind(self.value)} where a count belongs")
        return self.value


def _kind(value: Any) -> str:
    if value is None:
        return "empty"
    names = {dict: "an object", list: "a list", str: "a text", bool: "true or false", int: "a number"}
    return names.get(type(value), "a number")
