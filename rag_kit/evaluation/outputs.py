"""What a pipeline gave for one question, in one plain form, whatever kind of pipeline it was."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from rag_kit.documents import get_provenance, to_plain
from rag_kit.errors import InvalidInputError

if TYPE_CHECKING:
    from langchain_core.documents import Document

#: Most calls and tokens that one question can have taken: more is a mistake in counting, and is charged one by one.
MOST_CALLS = 100_000
MOST_TOKENS = 10**12

#: Metadata that name the document which a passage was cut from.
DOCUMENT_IDS = ("corpus_id", "parent_id", "doc_id", "source_id", "file")


@dataclass(frozen=True)
class Passage:
    """One retrieved passage.

    Args:
        id: The document's id; a content hash where it has none.
        text: Its text.
        metadata: Plain JSON, without provenance.
        provenance: Why it is here: score, rank, stages, notes (`rag_kit.documents.get_provenance`).

    Raises:
        InvalidInputError: If a field has the wrong form.
    """

    id: str
    text: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check(isinstance(self.id, str) and isinstance(self.text, str), self, "id and text", "texts")
        both = isinstance(self.metadata, Mapping) and isinstance(self.provenance, Mapping)
        _check(both, self, "metadata and provenance", "mappings")

    @property
    def ids(self) -> tuple[str, ...]:
        """Every id that a judgement may name: its own, that of its document, and the name of its file."""
        found = [self.id, *(str(self.metadata[name]) for name in DOCUMENT_IDS if self.metadata.get(name))]
        if self.metadata.get("file"):
            found.append(str(self.metadata["file"]).rpartition("/")[2])
        return tuple(dict.fromkeys(found))

    @classmethod
    def of(cls, document: Document) -> Passage:
        """A LangChain document as plain data."""
        from rag_kit.documents import document_key

        metadata = {key: value for key, value in document.metadata.items() if key != "rag_kit"}
        return cls(
            document_key(document), document.page_content, to_plain(metadata), get_provenance(document)
        )


@dataclass(frozen=True)
class Output:
    """What a pipeline gave for one question.

    Args:
        answer: Its answer; ``None`` from a retriever alone.
        passages: What it retrieved, best first; ``None`` when it does not say.
        citations: What the answer cites, as the graphs give it (``number``, ``statement``, ``quote``, ``status``).
        status: How the graph judges its own answer: ``grounded``, ``flagged``, ``declined``, ...
        queries: The queries that were searched for, the rewritten ones too.
        messages: The conversation of an agent, as plain dicts (``type``, ``content``, ``tool_calls``).
        notes: What went another way than usual.
        calls: Model calls that the pipeline made.
        tokens: Tokens in and out.
        seconds: Wall-clock seconds of the call.
        error: Why there is no answer: the exception's class and text, no key in it.
        extra: Other plain fields of the result.

    Raises:
        InvalidInputError: If a field has the wrong form.
    """

    answer: str | None = None
    passages: tuple[Passage, ...] | None = None
    citations: tuple[Mapping[str, Any], ...] = ()
    status: str | None = None
    queries: tuple[str, ...] = ()
    messages: tuple[Mapping[str, Any], ...] = ()
    notes: tuple[str, ...] = ()
    calls: int = 0
    tokens: int = 0
    seconds: float = 0.0
    error: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("answer", "status", "error"):
            value = getattr(self, name)
            _check(value is None or isinstance(value, str), self, name, "a text or None")
        for name, kind, allowed in _LISTS:
            items = getattr(self, name)
            if items is None and name == "passages":
                continue
            right = isinstance(items, Sequence) and not isinstance(items, (str, bytes))
            _check(right and all(isinstance(item, kind) for item in items), self, name, allowed)
            if type(items) is not tuple:
                object.__setattr__(self, name, tuple(items))
        for name, most in (("calls", MOST_CALLS), ("tokens", MOST_TOKENS)):
            _check(_is_count(getattr(self, name), most), self, name, f"a whole number from 0 to {most}")
        seconds = self.seconds
        number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
        _check(number and 0 <= seconds < math.inf, self, "seconds", "a number from 0 on")
        _check(isinstance(self.extra, Mapping), self, "extra", "a mapping")

    @property
    def contexts(self) -> list[str]:
        """Texts of the passages."""
        return [passage.text for passage in self.passages or ()]

    @classmethod
    def of(cls, value: Any) -> Output:
        """Read a pipeline's result.

        Args:
            value: An ``Output``; a text; a chat message; a list of Documents; or a mapping with any of ``answer``
                (or ``output``, ``result``), ``documents`` (or ``context``, ``contexts``, ``passages``; Documents
                or texts), ``citations``, ``status``, ``search_query``, ``queries``, ``messages``, ``notes``,
                ``usage``: the state of a graph, or the result of a LangChain chain.

        Raises:
            InvalidInputError: If it is none of these.

        Example:
            >>> Output.of({"answer": "Yes [1].", "context": ["It is so."]}).contexts
            ['It is so.']
        """
        from rag_kit.evaluation._reading import read_output

        return read_output(value)

    def missing(self, needs: set[str] | frozenset[str]) -> list[str]:
        """Those of the named fields that the pipeline did not give; an empty list of passages was given."""
        empty: tuple[Any, ...] = (None, "")
        return [
            name for name in sorted(needs)
            if (getattr(self, name) in empty or (name != "passages" and getattr(self, name) == ()))
        ]  # fmt: skip

    def to_json(self) -> dict[str, Any]:
        """As plain JSON; empty fields are left out, an empty list of passages is kept."""
        record = cast(
            "dict[str, Any]", to_plain({name: getattr(self, name) for name in _FIELDS if name != "passages"})
        )
        record = {key: value for key, value in record.items() if value not in (None, [], {}, "", 0)}
        if self.passages is not None:
            record["passages"] = [
                to_plain({"id": p.id, "text": p.text, "metadata": p.metadata, "provenance": p.provenance})
                for p in self.passages
            ]
        return record

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Output:
        """What ``to_json`` gave.

        Raises:
            InvalidInputError: If it is no such record.

        Example:
            >>> output = Output(answer="Yes.", passages=(Passage("d1", "It is so."),), calls=2)
            >>> Output.from_json(output.to_json()) == output
            True
        """
        if not isinstance(record, Mapping) or not set(record) <= set(_FIELDS):
            raise InvalidInputError(f"{record!r:.200} is no output of a pipeline")
        fields = dict(record)
        if "passages" in fields:
            fields["passages"] = tuple(Passage(**each) for each in fields["passages"])
        return cls(**fields)


_LISTS: tuple[tuple[str, type, str], ...] = (
    ("passages", Passage, "a list of Passage objects, or None"),
    ("citations", Mapping, "a list of mappings"),
    ("queries", str, "a list of texts"),
    ("messages", Mapping, "a list of mappings"),
    ("notes", str, "a list of texts"),
)
_FIELDS = tuple(Output.__dataclass_fields__)


def _is_count(value: Any, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most


def _check(right: bool, of: Passage | Output, name: str, allowed: str) -> None:
    if not right:
        given = ", ".join(f"{getattr(of, each)!r:.80}" for each in name.split(" and "))
        what = "an output's" if isinstance(of, Output) else "a passage's"
        raise InvalidInputError(f"{what} {name}: {given}; give {allowed}")
