"""What a pipeline gave for one question, in one plain form, whatever kind of pipeline it was."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from rag_kit.documents import get_provenance
from rag_kit.documents.plain import to_plain
from rag_kit.errors import InvalidInputError

if TYPE_CHECKING:
    from langchain_core.documents import Document

#: Most calls and tokens that one question can have taken: more is a mistake in counting, and is charged one by one.
MOST_CALLS = 100_000
MOST_TOKENS = 10**12

_PASSAGES = ("documents", "context", "contexts", "passages", "source_documents")
_ANSWER = ("answer", "output", "result", "response")
_READ = {
    *_PASSAGES, *_ANSWER, "citations", "status", "search_query", "queries", "messages", "notes", "usage", "question",
}  # fmt: skip

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
        for names, kind in ((("id", "text"), str), (("metadata", "provenance"), Mapping)):
            for name in names:
                _check(isinstance(getattr(self, name), kind), self, name, f"a {kind.__name__}")

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
        from rag_kit.documents.identity import document_key

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
            _check(isinstance(getattr(self, name), str | None), self, name, "a text or None")
        for name, kind in _LISTS.items():
            items = getattr(self, name)
            if items is None and name == "passages":
                continue
            right = isinstance(items, Sequence) and not isinstance(items, (str, bytes))
            right = right and all(isinstance(item, kind) for item in items)
            _check(right, self, name, f"a list of {kind.__name__}")
            object.__setattr__(self, name, tuple(items))
        for name, most in (("calls", MOST_CALLS), ("tokens", MOST_TOKENS)):
            count = getattr(self, name)
            _check(type(count) is int and 0 <= count <= most, self, name, f"a whole number from 0 to {most}")
        seconds = type(self.seconds) in (int, float) and 0 <= self.seconds < math.inf
        _check(seconds, self, "seconds", "a number from 0")
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
        if isinstance(value, Output):
            return value
        if isinstance(value, str):
            return cls(answer=value)
        if isinstance(value, Mapping):
            return _of_mapping(value)
        if _is_message(value):
            return cls(answer=_text(value), messages=(_message(value),))
        if isinstance(value, Sequence) and not isinstance(value, bytes) and not any(map(_is_message, value)):
            return cls(passages=_passages(value))
        raise InvalidInputError(
            f"the pipeline gave a {type(value).__name__}; give a text, a list of Documents, or a mapping with "
            "answer and documents"
        )

    def missing(self, needs: set[str] | frozenset[str]) -> list[str]:
        """Names of the needed fields that the pipeline did not give; an empty list of passages was given."""
        empty: tuple[Any, ...] = (None, "")
        return [
            name for name in sorted(needs)
            if (getattr(self, name) in empty or (name != "passages" and getattr(self, name) == ()))
        ]  # fmt: skip

    def to_json(self) -> dict[str, Any]:
        """The output as plain JSON; empty fields are left out, an empty list of passages is kept."""
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
        """Read an output that ``to_json`` made.

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


_LISTS: dict[str, type] = {
    "passages": Passage, "citations": Mapping, "queries": str, "messages": Mapping, "notes": str,
}  # fmt: skip
_FIELDS = tuple(Output.__dataclass_fields__)


def _check(right: bool, of: Passage | Output, name: str, allowed: str) -> None:
    if not right:
        what = "an output's" if isinstance(of, Output) else "a passage's"
        raise InvalidInputError(f"{what} {name} is {getattr(of, name)!r:.80}; give {allowed}")


def _of_mapping(value: Mapping[str, Any]) -> Output:
    answer = next((value[name] for name in _ANSWER if value.get(name) is not None), None)
    documents = next((value[name] for name in _PASSAGES if value.get(name) is not None), None)
    messages = _items(value.get("messages"), "messages")
    if answer is None and documents is None and not messages:
        names = ", ".join(map(str, value)) or "nothing"
        raise InvalidInputError(
            f"the pipeline gave a mapping with {names}; it needs answer, documents or messages"
        )
    if answer is None and messages and _is_message(messages[-1]):
        answer = messages[-1]
    usage = value.get("usage") or {}
    if not isinstance(usage, Mapping):
        raise InvalidInputError(
            f"the pipeline's usage is {usage!r:.80}; give a mapping with calls and tokens"
        )
    queries = [*_items(value.get("queries"), "queries"), value.get("search_query")]
    extra = {key: _opened(item) for key, item in value.items() if key not in _READ}
    return Output(
        answer=None if answer is None else _text(answer),
        passages=None if documents is None else _passages(_items(documents, "documents")),
        citations=tuple(to_plain(item) for item in _items(value.get("citations"), "citations")),
        status=value.get("status"),
        queries=tuple(dict.fromkeys(query for query in queries if isinstance(query, str) and query)),
        messages=tuple(map(_message, messages)),
        notes=tuple(map(str, _items(value.get("notes"), "notes"))),
        calls=usage.get("calls") or 0,
        tokens=usage.get("tokens") or 0,
        extra=to_plain(extra),
    )


def _opened(item: Any) -> Any:
    """Documents as mappings: as plain text they would be their ``repr``, which nobody can read."""
    if isinstance(item, (list, tuple)):
        return [_opened(each) if hasattr(each, "page_content") else each for each in item]
    if hasattr(item, "page_content"):
        return {"text": item.page_content, "metadata": getattr(item, "metadata", {})}
    return item


def _items(found: Any, name: str) -> list[Any]:
    """A field that holds several things; one text is a list of one."""
    if found is None or isinstance(found, str):
        return [] if found is None else [found]
    if isinstance(found, (Mapping, bytes)) or not isinstance(found, Iterable):
        raise InvalidInputError(f"the pipeline's {name} is a {type(found).__name__}; give a list")
    return list(found)


def _passages(items: Sequence[Any]) -> tuple[Passage, ...]:
    from langchain_core.documents import Document

    def passage(item: Any) -> Passage:
        if isinstance(item, Passage):
            return item
        if isinstance(item, str):
            item = Document(page_content=item)
        elif isinstance(item, Mapping) and isinstance(item.get("page_content"), str):
            fields = {key: item[key] for key in ("page_content", "metadata", "id") if item.get(key)}
            if not isinstance(fields.get("metadata", {}), Mapping):
                raise InvalidInputError(
                    f"a passage has the metadata {fields['metadata']!r:.80}; give a mapping"
                )
            item = Document(**fields)
        if not isinstance(item, Document):
            raise InvalidInputError(f"a passage is a {type(item).__name__}; give Documents or texts")
        return Passage.of(item)

    return tuple(map(passage, items))


def _is_message(value: Any) -> bool:
    return hasattr(value, "content") and hasattr(value, "type") and not isinstance(value, type)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if not _is_message(value):
        raise InvalidInputError(
            f"the pipeline's answer is a {type(value).__name__}; give a text or a message"
        )
    text = getattr(value, "text", None)
    return text if isinstance(text, str) else str(value.content)


def _message(message: Any) -> dict[str, Any]:
    """A chat message as plain JSON: ``type``, ``content``, and ``tool_calls`` where there are any."""
    if isinstance(message, Mapping):
        return cast("dict[str, Any]", to_plain(message))
    if not _is_message(message):
        raise InvalidInputError(f"a message is a {type(message).__name__}; give chat messages or mappings")
    calls = [
        {"name": call["name"], "args": call["args"]} for call in getattr(message, "tool_calls", None) or ()
    ]
    record = {"type": str(message.type), "content": _text(message)}
    return {**record, "tool_calls": to_plain(calls)} if calls else record
