"""Read what any kind of pipeline gave, into the fields of an `Output`; what cannot be read is named."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from rag_kit.documents import to_plain
from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.outputs import Output, Passage

_PASSAGES = ("documents", "context", "contexts", "passages", "source_documents")
_ANSWER = ("answer", "output", "result", "response")
_READ = {*_PASSAGES, *_ANSWER, "citations", "status", "search_query", "queries", "messages", "notes", "usage"}


def read_output(value: Any) -> Output:
    """See `Output.of`."""
    if isinstance(value, Output):
        return value
    if isinstance(value, str):
        return Output(answer=value)
    if isinstance(value, Mapping):
        return _of_mapping(value)
    if _is_message(value):
        return Output(answer=_text(value), messages=(message_dict(value),))
    if isinstance(value, Sequence) and not isinstance(value, bytes) and not any(map(_is_message, value)):
        return Output(passages=_passages(value))
    raise InvalidInputError(
        f"the pipeline gave a {type(value).__name__}; give a text, a list of Documents, or a mapping with "
        "answer and documents"
    )


def _of_mapping(value: Mapping[str, Any]) -> Output:
    answer = next((value[name] for name in _ANSWER if value.get(name) is not None), None)
    documents = next((value[name] for name in _PASSAGES if value.get(name) is not None), None)
    messages = _listed(value, "messages")
    if answer is None and documents is None and not messages:
        raise InvalidInputError(
            f"the pipeline gave a mapping with {', '.join(map(str, value)) or 'nothing'}; "
            "it needs answer, documents or messages"
        )
    if answer is None and messages and _is_message(messages[-1]):
        answer = messages[-1]
    usage = value.get("usage") or {}
    if not isinstance(usage, Mapping):
        raise InvalidInputError(
            f"the pipeline's usage is {usage!r:.80}; give a mapping with calls and tokens"
        )
    return Output(
        answer=None if answer is None else _text(answer),
        passages=None if documents is None else _passages(_items(documents, "documents")),
        citations=tuple(to_plain(item) for item in _listed(value, "citations")),
        status=value.get("status"),
        queries=tuple(
            dict.fromkeys(
                query
                for query in [*_listed(value, "queries"), value.get("search_query")]
                if isinstance(query, str) and query
            )
        ),
        messages=tuple(message_dict(message) for message in messages),
        notes=tuple(map(str, _listed(value, "notes"))),
        calls=usage.get("calls") or 0,
        tokens=usage.get("tokens") or 0,
        extra=to_plain(
            {key: _opened(item) for key, item in value.items() if key not in _READ and key != "question"}
        ),
    )


def _opened(item: Any) -> Any:
    """Documents as mappings: as plain text they would be their ``repr``, which nobody can read."""
    if isinstance(item, (list, tuple)):
        return [_opened(each) if hasattr(each, "page_content") else each for each in item]
    if hasattr(item, "page_content"):
        return {"text": item.page_content, "metadata": getattr(item, "metadata", {})}
    return item


def _listed(value: Mapping[str, Any], name: str) -> list[Any]:
    """A field that holds several things; one text is a list of one."""
    found = value.get(name)
    return [] if found is None else _items(found, name)


def _items(found: Any, name: str) -> list[Any]:
    if isinstance(found, str):
        return [found]
    if isinstance(found, (Mapping, bytes)) or not isinstance(found, Iterable):
        raise InvalidInputError(f"the pipeline's {name} is a {type(found).__name__}; give a list")
    return list(found)


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
            if not isinstance(fields.get("metadata", {}), Mapping):
                raise InvalidInputError(
                    f"a passage has the metadata {fields['metadata']!r:.80}; give a mapping"
                )
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
    if not _is_message(message):
        raise InvalidInputError(f"a message is a {type(message).__name__}; give chat messages or mappings")
    record: dict[str, Any] = {"type": str(message.type), "content": _text(message)}
    if calls := getattr(message, "tool_calls", None):
        record["tool_calls"] = to_plain([{"name": call["name"], "args": call["args"]} for call in calls])
    return record
