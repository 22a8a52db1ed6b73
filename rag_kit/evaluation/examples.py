"""One question to evaluate with, and what is known of its right answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Any, Self, TypeVar, cast, dataclass_transform

from pydantic import AfterValidator, BeforeValidator, ConfigDict, ValidationError
from pydantic.dataclasses import dataclass

from rag_kit.documents.identity import to_plain
from rag_kit.errors import InvalidInputError
from rag_kit.text import detect_language

T = TypeVar("T")
Plain = Annotated[Mapping[str, Any], BeforeValidator(to_plain)]  # anything by name, copied as plain JSON


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("give a text that is not blank")
    return text


_Text = Annotated[str, AfterValidator(_not_blank)]  # a pattern would refuse half of a surrogate pair


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def checked(cls: type[T]) -> type[T]:
    """Make a frozen dataclass whose fields Pydantic checks; a value that does not fit raises `InvalidInputError`."""
    checked_class: Any = dataclass(frozen=True, config=ConfigDict(extra="forbid"))(cls)
    names, create = tuple(checked_class.__dataclass_fields__), checked_class.__init__

    def create_checked(self: Any, *args: Any, **fields: Any) -> None:
        try:
            create(self, *args, **fields)
        except ValidationError as error:
            fault = error.errors(include_url=False)[0]
            path = list(fault["loc"])  # to the value: field, position in a list, ...
            if path and type(path[0]) is int:  # the number of a positional argument
                path[0] = names[path[0]]
            example_id = fields.get("id", args[0] if args and names[0] == "id" else "")
            raise InvalidInputError(
                f"{cls.__name__} {example_id!r:.80}: {'.'.join(map(str, path))} is {fault['input']!r:.120}; "
                f"{fault['msg']} (fields: {', '.join(names)})"
            ) from error

    checked_class.__init__ = create_checked
    return cast(type[T], checked_class)


class Recorded:
    """Base of what is kept as plain JSON."""

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Self:
        """Read what ``to_json`` made, or a record of your own with the same names."""
        return cls(**record)


@checked
class GoldSpan:
    """A stretch of a document that answers the question; ``start`` is its offset there, ``None`` if not known."""

    document: str
    text: _Text
    start: int | None = None


def check_span(span: Any) -> Any:
    """Return a `GoldSpan`, or the fields of one; a text is a span of any document; ValueError for anything else."""
    if isinstance(span, str):
        span = {"text": span.strip()}
    if isinstance(span, Mapping) and "text" in span and not set(span) - {"document", "text", "start"}:
        return {"document": "", **span}  # "": any document
    if not isinstance(span, GoldSpan):
        raise ValueError(
            "give a text, or an object with document (an id; '' for any), text and, where it is known, start"
        )
    return span


def _none_if_blank(text: Any) -> Any:
    return None if isinstance(text, str) and not text.strip() else text


def _stringify_values(tags: Any) -> Any:
    return {str(key): str(value) for key, value in tags.items()} if isinstance(tags, Mapping) else tags


def _check_turn(turn: Any) -> Any:
    if not isinstance(turn, Mapping) or not {"question", "answer"} <= set(turn):
        raise ValueError("a turn is an object with question and answer")
    return dict(turn)


@checked
class Example(Recorded):
    """One question and what is known of its gold; a metric that needs more is not applicable.

    Args:
        id: Unique in its set.
        question: What is asked.
        reference: The right answer as a person would write it; a blank one is none.
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

    id: _Text
    question: _Text
    reference: Annotated[str | None, BeforeValidator(_none_if_blank)] = None
    answers: tuple[str, ...] = ()
    reference_contexts: tuple[str, ...] = ()
    relevant: Mapping[str, int] = field(default_factory=dict)
    spans: tuple[Annotated[GoldSpan, BeforeValidator(check_span)], ...] = ()
    answerable: bool | None = None
    history: tuple[Annotated[Mapping[str, str], BeforeValidator(_check_turn)], ...] = ()
    tags: Annotated[Mapping[str, str], BeforeValidator(_stringify_values)] = field(default_factory=dict)
    metadata: Plain = field(default_factory=dict)

    @property
    def conversation(self) -> str:
        """The question as a judge reads it: after the earlier turns, if any.

        Example:
            >>> turn = {"question": "长江在哪里？", "answer": "在中国。"}
            >>> print(Example("q2", "它有多长？", history=(turn,)).conversation)
            用户：长江在哪里？
            助手：在中国。
            用户：它有多长？
        """
        if not self.history:
            return self.question
        is_chinese = detect_language(self.question) == "zh"
        user, assistant = ("用户：", "助手：") if is_chinese else ("User: ", "Assistant: ")
        lines = [f"{user}{turn['question']}\n{assistant}{turn['answer']}" for turn in self.history]
        return "\n".join([*lines, user + self.question])

    @property
    def turn(self) -> int:
        """The number of its turn in the conversation, from 1."""
        return len(self.history) + 1

    def missing(self, needs: set[str] | frozenset[str]) -> list[str]:
        """Return the needed fields that are empty, and the needed keys (``metadata.key``) that are missing."""
        return [name for name in sorted(needs) if self._is_missing(name)]

    def _is_missing(self, name: str) -> bool:
        field, _, key = name.partition(".")
        return self.metadata.get(key) is None if key else getattr(self, field) in (None, (), {})

    def to_json(self) -> dict[str, Any]:
        """Return the example as plain JSON, without unknown fields."""
        record = vars(self) | {"spans": [vars(span) for span in self.spans]}
        return {key: value for key, value in to_plain(record).items() if value not in (None, [], {})}


FIELDS = tuple(vars(Example)["__dataclass_fields__"])
