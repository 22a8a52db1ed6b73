"""One question to evaluate with, and what is known of its right answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from rag_kit.documents import to_plain
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
        >>> Example("q1", "Who wrote it?", reference="Ada wrote it.", relevant={"d1": 1}).needs_met({"reference"})
        True
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
        self._check(self.reference is None or isinstance(self.reference, str), "reference", "a text or None")
        for name in ("answers", "reference_contexts"):
            object.__setattr__(self, name, self._texts(name))
        relevant = self.relevant
        self._check(
            isinstance(relevant, Mapping)
            and all(isinstance(k, str) and type(grade) is int for k, grade in relevant.items()),
            "relevant", "ids with whole-number grades, such as {'d1': 1}",
        )  # fmt: skip
        for name in ("spans", "history"):
            items = getattr(self, name)
            listed = isinstance(items, Sequence) and not isinstance(items, (str, bytes))
            self._check(listed, name, "a list")
        spans = tuple(_span(item) for item in self.spans)
        self._check(None not in spans, "spans", "objects with document, text and start")
        object.__setattr__(self, "spans", spans)
        self._check(self.answerable in (None, True, False), "answerable", "true, false or null")
        self._check(
            all(isinstance(turn, Mapping) and {"question", "answer"} <= set(turn) for turn in self.history),
            "history", "a list of turns, each with question and answer",
        )  # fmt: skip
        object.__setattr__(self, "history", tuple(dict(turn) for turn in self.history))
        self._check(isinstance(self.tags, Mapping), "tags", "names with texts")
        object.__setattr__(self, "tags", {str(key): str(value) for key, value in self.tags.items()})
        self._check(isinstance(self.metadata, Mapping), "metadata", "an object")
        object.__setattr__(self, "metadata", to_plain(self.metadata))

    def needs_met(self, needs: set[str] | frozenset[str]) -> bool:
        """Whether every field named is there."""
        return not self.missing(needs)

    def missing(self, needs: set[str] | frozenset[str]) -> list[str]:
        """Those of the named fields that are empty."""
        return [name for name in sorted(needs) if getattr(self, name) in (None, (), {}, "")]

    def to_json(self) -> dict[str, Any]:
        """As plain JSON; what is not known is left out."""
        record = cast(
            "dict[str, Any]", to_plain({name: getattr(self, name) for name in FIELDS if name != "spans"})
        )
        record["spans"] = [{"document": s.document, "text": s.text, "start": s.start} for s in self.spans]
        return {key: value for key, value in record.items() if value not in (None, [], {}, "")}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Example:
        """What ``to_json`` gave, or a record of your own with the same names.

        Raises:
            InvalidInputError: If a field is unknown, missing, or has the wrong form.
        """
        if not isinstance(record, Mapping):
            raise InvalidInputError(f"{record!r:.80} is no example; give an object with id and question")
        unknown = sorted(set(map(str, record)) - set(FIELDS))
        if unknown or not {"id", "question"} <= set(record):
            raise InvalidInputError(
                f"the example {record.get('id')!r} has the unknown field {unknown[0]!r}; "
                f"allowed are {', '.join(FIELDS)}; put your own values below metadata"
                if unknown
                else f"an example needs id and question; it has {', '.join(map(str, record)) or 'nothing'}"
            )
        return cls(**cast("dict[str, Any]", dict(record)))

    def _texts(self, name: str) -> tuple[str, ...]:
        value = getattr(self, name)
        right = not isinstance(value, (str, bytes)) and isinstance(value, Sequence)
        self._check(right and all(isinstance(item, str) for item in value), name, "a list of texts")
        return tuple(value)

    def _check(self, right: bool, name: str, allowed: str) -> None:
        if not right:
            raise InvalidInputError(
                f"example {self.id!r:.80}: {name} is {getattr(self, name)!r:.120}; give {allowed}"
            )


FIELDS = tuple(Example.__dataclass_fields__)


def _span(item: Any) -> GoldSpan | None:
    if isinstance(item, GoldSpan):
        return item
    if not isinstance(item, Mapping) or not {"document", "text"} <= set(item) <= {
        "document",
        "text",
        "start",
    }:
        return None
    span = GoldSpan(item["document"], item["text"], item.get("start"))
    texts = isinstance(span.document, str) and isinstance(span.text, str) and span.text
    return span if texts and (span.start is None or type(span.start) is int) else None
