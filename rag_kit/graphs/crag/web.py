"""Any LangChain tool or retriever as the web search of a graph, and what may leave for it."""

from __future__ import annotations

import json
import logging
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from langchain_core.documents import Document
from langchain_core.language_models import BaseLanguageModel
from langchain_core.messages import ToolMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool, Tool
from langchain_core.utils.function_calling import convert_to_openai_tool

from rag_kit._redact import redact
from rag_kit.concurrency.branches import describe_failure
from rag_kit.concurrency.bridge import run_coroutine, run_in_thread
from rag_kit.concurrency.steps import ends_run
from rag_kit.documents import clean_text, copy_document, with_provenance
from rag_kit.errors import InvalidInputError, RagKitError
from rag_kit.graphs.running import call_within_deadline
from rag_kit.graphs.state import clean_texts
from rag_kit.models.runnables import acall_runnable, bare_model, ended_runs, note_handled, shield
from rag_kit.text import fold

logger = logging.getLogger("rag_kit.graphs.crag")

_QUERY_ARGUMENTS = ("query", "q", "search_query", "question", "keywords", "input", "text", "__arg1")
_TEXT_KEYS = ("page_content", "content", "snippet", "text", "body", "description", "summary", "answer")
_TITLE_KEYS = ("title", "name", "heading")
_LINK_KEYS = ("url", "link", "href", "source")
_LIST_KEYS = (
    "results", "organic", "organic_results", "items", "webPages", "web", "value", "documents", "data", "hits",
)  # fmt: skip
_MAX_DEPTH = 4  # of lists and texts of JSON inside one another
_MAX_LINK, _MAX_TITLE = 2_000, 300
_MAX_JSON = 2_000_000
_MAX_QUERY = 400
_FAILED_STATUS = re.compile(r"[45]\d\d|error|fail(?:ed|ure)?", re.IGNORECASE)
_YES_WORDS = "yes|yes please|y|true|ok|okay|sure|approve|approved|是|是的|同意|好|好的|可以|批准"


class WebSearch:
    """Calls a web search, and returns its results as documents."""

    def __init__(self, search: Any) -> None:
        if not isinstance(search, Runnable) or isinstance(search, BaseLanguageModel):
            raise InvalidInputError(
                f"web_search is a {type(search).__name__}; give a LangChain tool (@tool makes one of a function) "
                "or a retriever."
            )
        self.search = shield(search)  # whose fallbacks and retries let the end of a run pass
        tool = bare_model(search)
        self.tool = tool if isinstance(tool, BaseTool) else None
        self.argument = None if self.tool is None else _query_argument(self.tool)
        self.name = clean_text(str(search.get_name() if self.tool is None else self.tool.name))[:100]

    async def find(
        self, query: str, *, max_results: int, max_chars: int, timeout: float
    ) -> tuple[list[Document], str | None]:
        """Search within bounds; return the results, and why the search failed, if it did."""
        # the one place where anything leaves: who runs the graph can see what did
        logger.info("web search with %s: %s", self.name, clean_text(redact(query)))
        tool_input = self._tool_input(query)
        sync, native = partial(self._search, tool_input), partial(self._asearch, tool_input)
        try:
            with ended_runs():  # unwraps an error that ends the run, which `shield` wraps
                reply = await call_within_deadline("web search", sync, native, timeout=timeout)
            if isinstance(reply, ToolMessage):  # its artifact holds the results whole
                if reply.status == "error":
                    raise RagKitError(f"the tool says: {reply.text[:300]}")
                reply = reply.artifact or reply.content
            options: Any = {"max_results": max_results, "max_chars": max_chars, "query": query}
            documents = web_documents(reply, tool=self.name, **options)
            failures = [item.message for item in _items_in(reply) if isinstance(item, _Failure)]
            if failures and not documents:
                raise RagKitError(f"the tool says: {failures[0]!s:.300}")
        except Exception as error:
            if ends_run(error):
                raise
            why = clean_text(describe_failure(f"web search ({self.name})", error))
            logger.warning("%s", why)
            return [], why
        return documents, None

    def _search(self, tool_input: Any, config: RunnableConfig) -> Any:
        """Call the search; what a fallback inside it hides is noted."""
        with note_handled(config) as watched:
            try:
                return self.search.invoke(tool_input, watched)
            except NotImplementedError:  # a tool that is only asynchronous
                return run_coroutine(self.search.ainvoke(tool_input, watched))

    async def _asearch(self, tool_input: Any, config: RunnableConfig) -> Any:
        """Call the search on the event loop; a tool that only blocks would queue in asyncio's small pool."""
        only_blocks = isinstance(self.tool, (StructuredTool, Tool)) and self.tool.coroutine is None
        with note_handled(config) as watched:
            if only_blocks:
                return await run_in_thread(self.search.invoke, tool_input, watched)
            return await acall_runnable(self.search, tool_input, watched)

    def _tool_input(self, query: str) -> Any:
        """Return the input of the search: the query, or the arguments of a tool."""
        if self.tool is None:
            return query
        arguments = {self.argument: query}
        if self.tool.response_format != "content_and_artifact":
            return arguments
        # only as a call does such a tool give its artifact
        return {"type": "tool_call", "id": uuid.uuid4().hex, "name": self.tool.name, "args": arguments}


def _query_argument(tool: BaseTool) -> str:
    """Choose the argument of a tool for the query: the required one, else one with a usual name, else the first."""
    schema = convert_to_openai_tool(tool)["function"].get("parameters", {})
    names: list[str] = list(schema.get("properties", {}))
    required = [name for name in schema.get("required", []) if name in names]
    if len(required) > 1 or not names:
        raise InvalidInputError(
            f"web_search is the tool {tool.name!r}, which needs {' and '.join(required) or 'no argument'}; "
            "give a tool that needs the query alone."
        )
    usual = [name for name in _QUERY_ARGUMENTS if name in names]
    return (required or usual or names)[0]


def web_documents(value: Any, *, max_results: int, max_chars: int, query: str, tool: str) -> list[Document]:
    """Turn a search tool's results into documents with their source, without repeats and within the bounds."""
    by_text: dict[str, Document] = {}
    for document in documents_in(value):
        # cut before, so that a long page costs nothing, and after: cleaning writes some characters as several
        text = clean_text(document.page_content[:max_chars]).strip()[:max_chars]
        if not text or text in by_text:
            continue
        result = copy_document(document)
        result.page_content = text
        result.metadata.pop("url", None)
        if link := _web_address(document.metadata):
            result.metadata["url"] = link
        result.metadata.update(origin="web", source=link or "web")
        if title := _first_text(document.metadata, _TITLE_KEYS):
            result.metadata["title"] = " ".join(clean_text(title).split())[:_MAX_TITLE]
        by_text[text] = with_provenance(
            result, score=None, rank=len(by_text) + 1, stage="web", retriever=tool, query=query
        )
        if len(by_text) >= max_results:
            break
    return list(by_text.values())


class _Failure(NamedTuple):
    """The message of a search that failed, in place of results."""

    message: Any


def documents_in(value: Any) -> Iterator[Document]:
    """Yield the results in what a tool returned: documents, texts, JSON, mappings, and lists of these."""
    return (item for item in _items_in(value) if isinstance(item, Document))


def _items_in(value: Any, depth: int = 0) -> Iterator[Document | _Failure]:
    """Yield the results and the failures in what a tool returned."""
    if depth > _MAX_DEPTH:
        return
    if isinstance(value, Document):
        yield value
    elif isinstance(value, str):
        parsed = _parse_json(value)
        if parsed is None:
            yield Document(value)
        else:
            yield from _items_in(parsed, depth + 1)
    elif isinstance(value, Mapping):
        yield from _items_in_mapping(value, depth)
    elif isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        for item in value:
            yield from _items_in(item, depth + 1)


def _items_in_mapping(value: Mapping[Any, Any], depth: int) -> Iterator[Document | _Failure]:
    """Yield the results of ``{"results": [...]}``, or the one that a mapping is, such as ``{"snippet": ...}``."""
    metadata, failure = value.get("metadata"), _failure_in(value)
    lists = [value[name] for name in _LIST_KEYS if isinstance(value.get(name), list | tuple | Mapping)]
    # LangChain's documents are results under whatever name, as in {"context": [...]} of a retrieval chain
    items = [item for each in value.values() if isinstance(each, list) for item in each]
    lists = lists or [item for item in items if isinstance(item, Document)]
    yield from _items_in(lists, depth)
    if failure:
        yield _Failure(failure)
    elif lists:
        return
    elif value.get("type") == "text":  # a content block, as tools of MCP give their results
        yield from _items_in(value.get("text"), depth)
    elif isinstance(value.get("page_content"), str) and isinstance(metadata, Mapping):
        # a document as JSON, as the artifact of a tool message is once a checkpoint was read
        doc_id = value["id"] if isinstance(value.get("id"), str) else None
        yield Document(value["page_content"], metadata=dict(metadata), id=doc_id)
    elif text := _first_text(value, _TEXT_KEYS):
        fields = {**(metadata if isinstance(metadata, Mapping) else {}), **value}
        link, title = _first_text(fields, _LINK_KEYS), _first_text(fields, _TITLE_KEYS)
        yield Document(text, metadata={"source": link or None, "title": title})


def _failure_in(value: Mapping[Any, Any]) -> Any:
    """Return the message of a failure, ``{"status": 429, "message": "quota"}`` -> ``"quota"``; None of results."""
    has_text = bool(_first_text(value, _TEXT_KEYS))
    if has_text and _first_text(value, _LINK_KEYS):
        return None
    message = next((value[key] for key in ("error", "errors", "message", "detail") if value.get(key)), None)
    status = next((value[key] for key in ("status", "statusCode", "status_code") if value.get(key)), "")
    if value.get("success") is False or _FAILED_STATUS.fullmatch(str(status)):
        return message or dict(value)
    if has_text:  # a result all the same, as where one of several engines failed
        return None
    has_results = bool(value.keys() & {*_LIST_KEYS})
    is_error = bool(value.get("error") or value.get("errors"))
    return message if is_error or not has_results else None  # beside results a "message" is no error


def _parse_json(text: str) -> list[Any] | dict[str, Any] | None:
    """Parse a text as a JSON list or object; return None for any other text."""
    if text.lstrip()[:1] not in ("[", "{") or len(text) > _MAX_JSON:
        return None
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return parsed if isinstance(parsed, list | dict) else None


def _first_text(item: Mapping[Any, Any], names: Sequence[str]) -> str:
    texts = (item.get(name) for name in names)
    return next((text for text in texts if isinstance(text, str) and text.strip()), "")


def _web_address(metadata: Mapping[str, Any]) -> str:
    """Return the first http or https address in a result's metadata; "" if there is none."""
    for value in (metadata.get(name) for name in _LINK_KEYS):
        link = clean_text(value).strip()[:_MAX_LINK] if isinstance(value, str) else ""
        try:
            parts = urlsplit(link)
        except ValueError:
            continue
        if parts.scheme.lower() in ("http", "https") and parts.netloc:
            return link
    return ""


def read_approval(reply: Any) -> tuple[str | None, str]:
    """Read a person's reply: another query, "" for the one shown, or None and the reason for a refusal.

    A mapping, or a text that is one in JSON, has the query as ``query``, or True or False as ``approved``. Any other
    text than a yes refuses: who writes "I would rather not" must not see it sent.

    Example:
        >>> read_approval("OK!"), read_approval('{"approved": false}'), read_approval({"query": "fan start"})
        (('', ''), (None, 'a person refused'), ('fan start', ''))
    """
    if isinstance(reply, str):
        parsed = _parse_json(reply)
        if parsed is None and fold(reply).strip(" .,!?。！") not in _YES_WORDS.split("|"):
            return None, 'the reply was no "yes"; another query is given as {"query": "..."}'
        reply = True if parsed is None else parsed
    if isinstance(reply, Mapping) and {"approved", "query"} & {*reply}:
        query = reply.get("query")
        is_approved = reply.get("approved", bool(query)) is True  # a query alone approves itself
        is_readable = isinstance(query, str | None)
        return (query or "", "") if is_approved and is_readable else (None, "a person refused")
    if reply is True:
        return "", ""
    if reply is False or reply is None:
        return None, "a person refused"
    return None, f"the reply was a {type(reply).__name__}; allowed: True, False or {{'query': '...'}}"


def one_line(text: str) -> str:
    """Cut a query to one line, short enough for a search engine."""
    return " ".join(str(clean_texts(text)).split())[:_MAX_QUERY].strip()
