"""The web search of the CRAG graph: any tool or retriever, bounded, marked, never fatal."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import BaseTool, StructuredTool, Tool, tool
from support.graphs import fixed

from rag_kit.concurrency.steps import arun, run
from rag_kit.documents import get_provenance
from rag_kit.errors import BudgetExceededError, InvalidInputError
from rag_kit.graphs import build_crag
from rag_kit.graphs.crag.web import WebSearch, web_documents
from rag_kit.models import chat_model

PAGE = {"url": "https://a.example/x", "title": "Pumps", "content": "The pump starts at 40 degrees."}


@tool
def dicts(query: str) -> list[dict[str, str]]:
    """Search."""
    return [{**PAGE, "content": PAGE["content"] + query}]


@tool
def as_json(query: str, max_results: int = 5) -> str:
    """Search."""
    return json.dumps({"query": query, "results": [{**PAGE, "content": PAGE["content"] + query}]})


@tool
def documents(query: str) -> list[Document]:
    """Search."""
    return [
        Document(PAGE["content"] + query, metadata={"source": PAGE["url"], "title": PAGE["title"], "page": 3})
    ]


@tool
async def only_async(query: str) -> list[dict[str, str]]:
    """Search."""
    await asyncio.sleep(0)
    return [{**PAGE, "content": PAGE["content"] + query}]


@tool(response_format="content_and_artifact")
def with_artifact(search_query: str) -> tuple[str, list[Document]]:
    """Search."""
    return "one result", documents.invoke(search_query)


@tool(response_format="content_and_artifact")
async def async_artifact(query: str, depth: str = "basic") -> tuple[str, dict[str, Any]]:
    """Search."""
    found = {**PAGE, "content": PAGE["content"] + query}
    return json.dumps(found), {"results": [found]}


class Own(BaseTool):
    """A tool of a class of its own, whose sync form is missing."""

    name: str = "own"
    description: str = "Search."

    def _run(self, question: str) -> Any:
        raise NotImplementedError("asynchronous only")

    async def _arun(self, question: str) -> Any:
        return [{"link": PAGE["url"], "title": PAGE["title"], "snippet": PAGE["content"] + question}]


plain = Tool(
    name="plain", description="Search.", func=lambda q: json.dumps([{**PAGE, "content": PAGE["content"] + q}])
)


@tool
def all_optional(limit: int = 5, query: str = "") -> list[dict[str, str]]:
    """Search."""
    return [{**PAGE, "content": PAGE["content"] + query}][:limit]


SEARCHES = {
    "list of dicts": dicts,
    "all arguments optional": all_optional,
    "JSON text": as_json,
    "documents": documents,
    "asynchronous only": only_async,
    "content and artifact": with_artifact,
    "both": async_artifact,
    "own class": Own(),
    "single input": plain,
    "bound": dicts.with_config(tags=["x"]),
    "retried": as_json.with_retry(),
    "with fallbacks": dicts.with_fallbacks([documents]),
    "runnable": RunnableLambda(lambda q: [{**PAGE, "content": PAGE["content"] + q}]),
    "retriever": fixed(
        Document(PAGE["content"] + "fan", metadata={"source": PAGE["url"], "title": PAGE["title"]})
    ),
}


def find(search: Any, query: str = "fan", **options: Any) -> tuple[list[Document], str | None]:
    """Search blocking."""
    bounds = {"max_results": 5, "max_chars": 1000, "timeout": 5.0, **options}
    return run(WebSearch(search).find(query, **bounds), {})


async def afind(search: Any, query: str = "fan", **options: Any) -> tuple[list[Document], str | None]:
    """Search natively."""
    bounds = {"max_results": 5, "max_chars": 1000, "timeout": 5.0, **options}
    return await arun(WebSearch(search).find(query, **bounds), {})


def results_in(value: Any, max_results: int = 5, max_chars: int = 100) -> list[Document]:
    """The documents that are made of what a search returned."""
    return web_documents(value, max_results=max_results, max_chars=max_chars, query="q", tool="t")


@pytest.mark.parametrize("kind", SEARCHES)
async def test_every_kind_of_search_gives_marked_documents(kind: str) -> None:
    """Sync and async alike: text, address, title, and the mark that it is from the web."""
    (found, why), (other, why_async) = find(SEARCHES[kind]), await afind(SEARCHES[kind])
    assert why is None and why_async is None
    assert found == other
    [document] = found
    assert document.page_content.endswith("fan")
    assert {document.metadata[name] for name in ("source", "url")} == {PAGE["url"]}
    assert document.metadata["origin"] == "web"
    assert document.metadata["title"] == "Pumps"
    assert get_provenance(document)["stages"][-1]["stage"] == "web"
    assert get_provenance(document)["stages"][-1]["query"] == "fan"


@pytest.mark.parametrize(
    ("value", "texts"),
    [
        (None, []),
        ("", []),
        ("   ", []),
        ([], []),
        ({}, []),
        ("Plain words.", ["Plain words."]),
        ("[not json", ["[not json"]),
        (["a", "b", "a"], ["a", "b"]),
        ('["a", {"snippet": "b"}]', ["a", "b"]),
        ({"organic": [{"snippet": "a"}], "ads": [{"snippet": "no"}]}, ["a"]),
        ({"webPages": {"value": [{"snippet": "a", "name": "n"}]}}, ["a"]),
        ({"input": "q", "context": [Document("a")], "answer": "b"}, ["a"]),
        ({"error": "no key"}, []),
        ([{"title": "no text"}, 3, None, b"x", {"content": 7}], []),
        ({"content": "one"}, ["one"]),
        ({"answer": "one", "errors": ["one of two engines failed"]}, ["one"]),
        ([{"error": "E4", "text": "Clean the filter."}], ["Clean the filter."]),
        (
            [{"type": "text", "text": '{"results": [{"content": "a"}]}'}, {"type": "text", "text": "b"}],
            ["a", "b"],
        ),
        ("[" * 100_000, ["[" * 50]),
    ],
)
def test_the_shapes_of_results(value: Any, texts: list[str]) -> None:
    """Whatever comes: texts are taken, repeats and the rest are left out, nothing raises."""
    assert [document.page_content for document in results_in(value, max_chars=50)] == texts


def test_results_are_bounded_in_number_and_size() -> None:
    """Hundreds of results of a hundred kilobytes become what was allowed."""
    found = results_in([{"content": f"{n} " + "x" * 100_000} for n in range(300)], max_results=3)
    assert [len(document.page_content) for document in found] == [100, 100, 100]


def test_hostile_text_is_shown_as_what_it_is() -> None:
    """Control characters are escaped, an address that is none is dropped."""
    title = "t\n\x07" + "x" * 9999
    text = "a\x1b[31m\x00\u202eb\ud800"
    [found] = results_in([{"content": text, "url": "javascript:alert(1)", "title": title}])
    assert found.page_content == "a\\x1b[31m\\x00\\u202eb\\ud800"
    assert found.metadata["source"] == "web"
    assert "url" not in found.metadata
    assert len(found.metadata["title"]) == 300 and "\n" not in found.metadata["title"]


async def test_a_search_that_hangs_is_given_up() -> None:
    """It costs its time-out, no more."""

    @tool
    def slow(query: str) -> str:
        """Search."""
        time.sleep(3)
        return "late"

    @tool
    async def slow_async(query: str) -> str:
        """Search."""
        await asyncio.sleep(30)
        return "late"

    begun = time.monotonic()
    results = [find(slow, timeout=0.1), await afind(slow, timeout=0.1)]
    results += [find(slow_async, timeout=0.1), await afind(slow_async, timeout=0.1)]
    assert time.monotonic() - begun < 3
    for found, why in results:
        assert found == []
        assert why is not None and "did not answer in time" in why


def test_a_tool_that_reports_its_error_as_a_message_has_failed() -> None:
    """``handle_tool_error`` makes a message of an error; its text is no result."""
    from langchain_core.tools import ToolException

    def fail(query: str) -> Any:
        raise ToolException("quota is used up")

    failing = StructuredTool.from_function(
        fail, name="f", description="d", handle_tool_error=True, response_format="content_and_artifact"
    )
    found, why = find(failing)
    assert found == []
    assert why is not None and "quota is used up" in why


def test_a_cap_of_the_run_is_not_a_failed_search() -> None:
    """A search that uses up the run's budget ends the run."""

    def costly(query: str) -> Any:
        raise BudgetExceededError("max_calls", 1)

    with pytest.raises(BudgetExceededError):
        find(RunnableLambda(costly))


def test_what_leaves_is_logged_without_keys(caplog: pytest.LogCaptureFixture) -> None:
    """One line at INFO names the tool and the query; what looks like a key is masked."""
    with caplog.at_level(logging.INFO, "rag_kit.graphs.crag"):
        find(dicts, "pump\x1b[0m api_key=abcd1234efgh")
    [record] = [r for r in caplog.records if r.levelno == logging.INFO]
    assert record.getMessage() == "web search with dicts: pump\\x1b[0m api_key=***"


@tool
def needs_more(query: str, site: str) -> str:
    """Search."""
    return ""


@pytest.mark.parametrize(
    ("given", "said"),
    [
        *((one, "web_search is a") for one in ("tavily", 3, lambda query: [], [dicts])),
        (needs_more, "query and site"),
    ],
)
def test_a_search_of_the_wrong_kind_is_refused(given: Any, said: str) -> None:
    """When the graph is built, with what is allowed; it is not guessed what else a tool wants."""
    with pytest.raises(InvalidInputError, match=said):
        WebSearch(given)


def over_quota(query: str) -> Any:
    """A search that is down."""
    raise ValueError("quota used up, key sk-abcdefghijklmnop1234")


NOTHING: Any = RunnableLambda(lambda query: [])


@pytest.mark.parametrize(
    "search",
    [
        RunnableLambda(lambda query: {"error": "quota used up, key sk-abcdefghijklmnop1234"}),
        RunnableLambda(lambda query: {"error": ValueError("quota used up")}),
        RunnableLambda(lambda query: '{"error": {"code": 403, "message": "quota used up"}}'),
        RunnableLambda(lambda query: '{"message": "quota used up", "statusCode": 429}'),
        RunnableLambda(lambda query: {"detail": {"error": "quota used up"}}),
        RunnableLambda(lambda query: {"status": "error", "description": "quota used up"}),
        RunnableLambda(lambda query: {"errors": ["quota used up"], "results": []}),
        RunnableLambda(
            lambda query: {"detail": "quota used up", "status": 429, "url": "https://api.example/v1"}
        ),
        RunnableLambda(lambda query: [{"type": "text", "text": '{"error": "quota used up"}'}]),
        RunnableLambda(over_quota).with_fallbacks([NOTHING]),
    ],
)
async def test_a_failure_that_is_not_raised_is_told(search: Any) -> None:
    """The notes say why, without a key; the run is incomplete, for it could not look there."""
    graph = build_crag(NOTHING, chat_model("extractive"), web_search=search, output="full")
    question: Any = {"question": "When does the fan start?"}
    for result in (graph.invoke(question), await graph.ainvoke(question)):
        assert result["status"] == "incomplete"
        assert any("failed" in note and "quota used up" in note for note in result["notes"])
        assert "sk-abc" not in str(result["notes"])
