"""One question to evaluate with, and what is known of its right answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from rag_kit.documents.plain import to_plain
from rag_kit.errors import InvalidInputError


@dataclass(frozen=True)
class GoldSpan:
    """A stretch of a document that answers the question.

    Args:
        document: The document's id.
        text: The words.
        start: Offset of its first character in the document's text; ``None`` where it is not known.
    """

    document: str
    text: str
    start: int | None = None


@dataclass(frozen=True)
class Example:
    """One question and its gold: whatever is known; a metric that wants more is not applicable.

    Args:
        id: Unique in its set.
        question: What is asked.
        reference: The right answer as a person would write it.
        answers: Short strings of which one must occur in a right answer.
        reference_contexts: Texts of the passages that hold the answer.
        relevant: Document or chunk id -> grade; above 0 is relevant.
        spans: Stretches that a right retrieval brings.
        answerable: False when the corpus does not answer the question; ``None`` where it is not known.
        history: Earlier turns, each a dict with ``question`` and ``answer``.
        tags: What results are sliced by: ``type``, ``language``, and names of your own.
        metadata: Anything else, as plain JSON: rubrics, reference tool calls, feedback.

    Raises:
        InvalidInputError: If a field has the wrong form; the message names the example and the field.

    Example:
        >>> example = Example("q1", "Who wrote it?", reference="Ada wrote it.", relevant={"d1": 1})
        >>> example.missing({"reference", "spans"})
        ['spans']
    """

    id: str
    question: str
    reference: str | None = None
    answers: tuple[str, ...] = ()
    reference_contexts: tuple[str, ...] = ()
    relevant: Mapping[str, int] = field(default_factory=dict)
    spans: tuple[GoldSpan, ...] = ()
    answerable: bool | None = None
    history: tuple[Mapping[str, str], ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.id, str) or not self.id.strip():
            raise InvalidInputError(f"an example has the id {self.id!r:.80}; give a text that is not blank")
        self._check(isinstance(self.question, str) and bool(self.question.strip()), "question", "a text")
        self._check(isinstance(self.reference, str | None), "reference", "a text or None")
        self._check(self.answerable in (None, True, False), "answerable", "true, false or null")
        for name in ("relevant", "tags", "metadata"):
            self._check(isinstance(getattr(self, name), Mapping), name, "names with values")
        grades = all(isinstance(key, str) and type(grade) is int for key, grade in self.relevant.items())
        self._check(grades, "relevant", "ids with whole-number grades, such as {'d1': 1}")
        for name, (take, allowed) in _LISTS.items():
            given = getattr(self, name)
            items = list(map(take, given)) if isinstance(given, (list, tuple)) else [None]
            self._check(None not in items, name, f"a list of {allowed}")
            object.__setattr__(self, name, tuple(items))
        object.__setattr__(self, "tags", {str(key): str(value) for key, value in self.tags.items()})
        object.__setattr__(self, "metadata", to_plain(self.metadata))

    def missing(self, needs: set[str] | frozenset[str]) -> list[str]:
        """Names of the needed fields that are empty."""
        return [name for name in sorted(needs) if getattr(self, name) in (None, (), {}, "")]

    def to_json(self) -> dict[str, Any]:
        """The example as plain JSON; what is not known is left out."""
        record: dict[str, Any] = to_plain({name: getattr(self, name) for name in FIELDS if name != "spans"})
        record["spans"] = [asdict(span) for span in self.spans]
        return {key: value for key, value in record.items() if value not in (None, [], {}, "")}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Example:
        """Read an example that ``to_json`` made, or a record of your own with the same names.

        Raises:
            InvalidInputError: If a field is unknown, missing, or has the wrong form.
        """
        if not isinstance(record, Mapping) or not {"id", "question"} <= set(record):
            raise InvalidInputError(f"{record!r:.80} is no example; give an object with id and question")
        if unknown := sorted(set(map(str, record)) - set(FIELDS)):
            raise InvalidInputError(
                f"the example {record['id']!r} has the unknown field {unknown[0]!r}; allowed are {', '.join(FIELDS)}; "
                "put your own values below metadata"
            )
        return cls(**record)

    def _check(self, right: bool, name: str, allowed: str) -> None:
        if not right:
            raise InvalidInputError(
                f"example {self.id!r:.80}: {name} is {getattr(self, name)!r:.120}; give {allowed}"
            )


FIELDS = tuple(Example.__dataclass_fields__)


def _span(item: Any) -> GoldSpan | None:
    if isinstance(item, Mapping) and {"document", "text"} <= set(item) <= {"document", "text", "start"}:
        item = GoldSpan(**item)
    if not isinstance(item, GoldSpan):
        return None
    texts = isinstance(item.document, str) and isinstance(item.text, str) and item.text
    return item if texts and (item.start is None or type(item.start) is int) else None


def _turn(item: Any) -> dict[str, str] | None:
    return dict(item) if isinstance(item, Mapping) and {"question", "answer"} <= set(item) else None


def _text(item: Any) -> str | None:
    return item if isinstance(item, str) else None


#: Field -> how an item is read (``None``: it cannot be), and what is allowed.
_LISTS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "answers": (_text, "texts"),
    "reference_contexts": (_text, "texts"),
    "spans": (_span, "objects with document, text and start"),
    "history": (_turn, "turns, each with question and answer"),
}
