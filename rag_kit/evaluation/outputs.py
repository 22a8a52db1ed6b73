"""Outputs of pipelines in one plain form, whatever kind of pipeline it was."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from rag_kit.documents import get_provenance
from rag_kit.documents.identity import document_key, to_plain
from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.examples import Recorded, checked

if TYPE_CHECKING:
    from langchain_core.documents import Document

#: Metadata that name the document which a passage was cut from.
DOCUMENT_IDS = ("corpus_id", "parent_id", "doc_id", "source_id", "file")


@checked
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

    @property
    def ids(self) -> tuple[str, ...]:
        """Every id that a judgement may name: the passage's, its document's, and the name of its file."""
        ids = [self.id, *(str(self.metadata[name]) for name in DOCUMENT_IDS if self.metadata.get(name))]
        if self.metadata.get("file"):
            ids.append(str(self.metadata["file"]).rpartition("/")[2])
        return tuple(dict.fromkeys(ids))

    @classmethod
    def of(cls, document: Document) -> Passage:
        """Read a LangChain document."""
        metadata = {key: value for key, value in document.metadata.items() if key != "rag_kit"}
        key, text = document_key(document), document.page_content
        return cls(key, text, to_plain(metadata), get_provenance(document))


@checked
class Output(Recorded):
    """Output of a pipeline for one question.

    Args:
        answer: Its answer; ``None`` from a retriever alone.
        passages: What it retrieved, best first; ``None`` when it does not say.
        citations: What the answer cites, as the graphs give it (``number``, ``statement``, ``quote``, ``status``).
        status: How the graph judges its own answer: ``grounded``, ``flagged``, ``declined``, ...
        queries: The queries that were searched for, the rewritten ones too.
        messages: The conversation of an agent, as plain dicts (``type``, ``content``, ``tool_calls``).
        notes: What went another way than usual.
        calls: Model calls that the pipeline made; ``tokens``, in and out, and wall-clock ``seconds`` likewise.
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
    #: Each is charged, so that more than the greatest number is a mistake in counting.
    calls: Annotated[int, Field(ge=0, le=100_000)] = 0
    tokens: Annotated[int, Field(ge=0)] = 0
    seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    error: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def contexts(self) -> list[str]:
        """Texts of the passages."""
        return [passage.text for passage in self.passages or ()]

    @property
    def declined(self) -> bool:
        """Whether it says that the documents hold no answer, by its status or its words."""
        from rag_kit.text.citations.decline import is_declined  # loads slowly

        return self.status == "declined" or is_declined(self.answer or "")

    @classmethod
    def of(cls, value: Any) -> Output:
        """Read a pipeline's result.

        Args:
            value: An ``Output``; a text; a chat message; a list of Documents; or the state of a graph or the result of
                a chain: a mapping with ``answer``, ``documents`` or ``context``, or ``messages``, and perhaps
                ``citations``, ``status``, ``search_query``, ``queries``, ``notes``, ``usage``.

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
        if _is_message(value):
            return cls(answer=value.text, messages=(_message_record(value),))
        if isinstance(value, (list, tuple)):
            return cls(passages=_read_passages(value))
        if isinstance(value, Mapping):
            return _read_mapping(value)
        raise InvalidInputError(
            f"the pipeline gave a {type(value).__name__}; give a text, a list of Documents, or a mapping with "
            "answer and documents"
        )

    def missing(self, needs: set[str] | frozenset[str]) -> list[str]:
        """Return the needed fields that are empty; an empty result of a search does not count as missing."""
        not_missing = {"passages"} if self.passages == () else set()
        return sorted(name for name in needs - not_missing if getattr(self, name) in (None, "", ()))

    def to_json(self) -> dict[str, Any]:
        """Return the output as plain JSON without empty fields; an empty list of passages is kept."""
        record = to_plain(vars(self) | {"passages": None})
        record = {key: value for key, value in record.items() if value not in (None, [], {}, "", 0)}
        if self.passages is not None:
            record["passages"] = [to_plain(vars(passage)) for passage in self.passages]
        return record


#: Fields of a mapping that are read, or say nothing new; any other is kept as ``extra``.
_READ_KEYS = {"answer", "documents", "context", "search_query", "usage", "status", "question", "passages",
                 "citations", "queries", "messages", "notes"}  # fmt: skip


def _read_mapping(value: Mapping[str, Any]) -> Output:
    """Make an output of a mapping: answer, documents or messages, usage, and the kit's own fields."""
    documents, usage = value.get("documents", value.get("context")), value.get("usage") or {}
    messages = tuple(map(_message_record, value.get("messages") or ()))
    answer: Any = value.get("answer")
    if answer is None and messages:
        answer = messages[-1].get("content")
    if (answer is None and documents is None) or not isinstance(usage, Mapping):
        raise InvalidInputError(
            f"the pipeline gave a mapping with {', '.join(map(str, value))}; it needs answer, documents or messages, "
            "and usage, if it has any, must be a mapping"
        )
    queries = dict.fromkeys([*(value.get("queries") or ()), value.get("search_query")])
    return Output(
        answer=answer.text if _is_message(answer) else answer,
        passages=None if documents is None else _read_passages(documents),
        citations=to_plain(value.get("citations") or []),
        status=value.get("status"),
        queries=tuple(query for query in queries if query),
        messages=messages,
        notes=value.get("notes") or (),
        calls=usage.get("calls") or 0,
        tokens=usage.get("tokens") or 0,
        extra=to_plain({key: _plain_documents(item) for key, item in value.items() if key not in _READ_KEYS}),
    )


def _plain_documents(item: Any) -> Any:
    """Turn documents, also within lists, into mappings: `to_plain` would use their ``repr``."""
    if isinstance(item, (list, tuple)):
        return [_plain_documents(element) for element in item]
    return {"text": item.page_content, "metadata": item.metadata} if hasattr(item, "page_content") else item


def _read_passages(items: Any) -> tuple[Passage, ...]:
    """Read passages from a list of Documents or texts, or from a single one."""
    from langchain_core.documents import Document

    listed = items if isinstance(items, (list, tuple)) else [items]
    documents = [Document(item) if isinstance(item, str) else item for item in listed]
    if not all(isinstance(document, Document) for document in documents):
        raise InvalidInputError(f"the documents are {items!r:.80}; give a list of Documents, or of texts")
    return tuple(map(Passage.of, documents))


def _is_message(value: Any) -> bool:
    return hasattr(value, "content") and hasattr(value, "type") and not isinstance(value, type)


def _message_record(message: Any) -> dict[str, Any]:
    """Turn a chat message into plain JSON: ``type``, ``content``, any ``tool_calls``; a mapping stays as it is."""
    if isinstance(message, Mapping):
        return dict(to_plain(message))
    if not _is_message(message):
        raise InvalidInputError(f"a message is a {type(message).__name__}; give chat messages or mappings")
    calls = [{"name": call["name"], "args": call["args"]} for call in getattr(message, "tool_calls", ())]
    record = {"type": str(message.type), "content": str(message.text)}
    return {**record, "tool_calls": to_plain(calls)} if calls else record
