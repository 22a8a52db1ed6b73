"""What a pipeline gave for one question, in one plain form, whatever kind of pipeline it was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from rag_kit.documents import get_provenance, to_plain
from rag_kit.errors import InvalidInputError

if TYPE_CHECKING:
    from langchain_core.documents import Document

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
    """

    id: str
    text: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ids(self) -> tuple[str, ...]:
        """Every id that a judgement may know it by: its own, and the document's that it was cut from."""
        found = [self.id, *(str(self.metadata[name]) for name in DOCUMENT_IDS if self.metadata.get(name))]
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
        if isinstance(value, cls):
            return value
        if isinstance(value, str):
            return cls(answer=value)
        if isinstance(value, Mapping):
            return _of_mapping(value)
        if _is_message(value):
            return cls(answer=_text(value), messages=(message_dict(value),))
        if isinstance(value, Sequence) and not isinstance(value, bytes) and not any(map(_is_message, value)):
            return cls(passages=_passages(value))
        raise InvalidInputError(
            f"the pipeline gave a {type(value).__name__}; give a text, a list of Documents, or a mapping with "
            "answer and documents"
        )

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
        for name in ("citations", "queries", "messages", "notes"):
            fields[name] = tuple(fields.get(name, ()))
        return cls(**fields)


_FIELDS = tuple(Output.__dataclass_fields__)
_PASSAGES = ("documents", "context", "contexts", "passages", "source_documents")
_ANSWER = ("answer", "output", "result", "response")
_READ = {*_PASSAGES, *_ANSWER, "citations", "status", "search_query", "queries", "messages", "notes", "usage"}


def _of_mapping(value: Mapping[str, Any]) -> Output:
    answer = next((value[name] for name in _ANSWER if value.get(name) is not None), None)
    documents = next((value[name] for name in _PASSAGES if value.get(name) is not None), None)
    messages = value.get("messages") or ()
    if answer is None and documents is None and not messages:
        raise InvalidInputError(
            f"the pipeline gave a mapping with {', '.join(map(str, value)) or 'nothing'}; "
            "it needs answer, documents or messages"
        )
    if answer is None and messages and _is_message(messages[-1]):
        answer = messages[-1]
    usage = value.get("usage") or {}
    queries = [*(value.get("queries") or ()), value.get("search_query")]
    return Output(
        answer=None if answer is None else _text(answer),
        passages=None
        if documents is None
        else _passages([documents] if isinstance(documents, str) else documents),
        citations=tuple(dict(item) for item in to_plain(value.get("citations") or ())),
        status=value.get("status"),
        queries=tuple(dict.fromkeys(query for query in queries if isinstance(query, str) and query)),
        messages=tuple(message_dict(message) for message in messages),
        notes=tuple(str(note) for note in value.get("notes") or ()),
        calls=int(usage.get("calls", 0)),
        tokens=int(usage.get("tokens", 0)),
        extra=to_plain({key: item for key, item in value.items() if key not in _READ and key != "question"}),
    )


def _passages(items: Sequence[Any]) -> tuple[Passage, ...]:
    from langchain_core.documents import Document

    found = []
    for item in items:
        if isinstance(item, Passage):
            found.append(item)
        elif isinstance(item, Document):
            found.append(Passage.of(item))
        elif isinstance(item, str):
            found.append(Passage.of(Document(page_content=item)))
        elif isinstance(item, Mapping) and isinstance(item.get("page_content"), str):
            fields = {key: item[key] for key in ("page_content", "metadata", "id") if item.get(key)}
            found.append(Passage.of(Document(**fields)))
        else:
            raise InvalidInputError(f"a passage is a {type(item).__name__}; give Documents or texts")
    return tuple(found)


def _is_message(value: Any) -> bool:
    return hasattr(value, "content") and hasattr(value, "type") and not isinstance(value, type)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if _is_message(value):
        text = getattr(value, "text", value.content)
        return str(text if isinstance(text, str) else value.content)
    raise InvalidInputError(f"the pipeline's answer is a {type(value).__name__}; give a text or a message")


def message_dict(message: Any) -> dict[str, Any]:
    """A chat message as plain JSON: ``type``, ``content``, and ``tool_calls`` where there are any."""
    if isinstance(message, Mapping):
        return cast("dict[str, Any]", to_plain(message))
    record: dict[str, Any] = {"type": str(message.type), "content": _text(message)}
    if calls := getattr(message, "tool_calls", None):
        record["tool_calls"] = to_plain([{"name": call["name"], "args": call["args"]} for call in calls])
    return record
