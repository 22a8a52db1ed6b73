"""The kit with a real language model on loopback: forms, bounds, statuses and notes; never the sense of an answer.

Every prompt in both languages, every retriever that asks a model, every graph, the structured call, the judge, the
generator and ``doctor``; sync, async, streamed, four at once.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.outputs import LLMResult
from langchain_core.prompts import ChatPromptTemplate
from pydantic import BaseModel
from support.graphs import BUILDERS
from support.small_model import SLOTS, serve, weights

import rag_kit.retrieval as kit
from rag_kit.cli.main import main
from rag_kit.concurrency.notes import use_notes
from rag_kit.errors import BudgetExceededError, ModelOutputError
from rag_kit.evaluation import EvaluationSet, Example, Judge, evaluate, generate
from rag_kit.models import astructured_call, chat_model, structured_call
from rag_kit.prompts import load_prompt, render_passages
from rag_kit.prompts.library import PromptLibrary
from rag_kit.query_construction import SelfQueryRetriever

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

#: Most tokens of a reply; a reply that is cut off may be asked for once more with twice as many.
BOUND = 48
STATUSES = {"grounded", "flagged", "uncited", "undecided", "declined", "incomplete", "clarify"}
DOCS = [
    Document("The pump starts at 40 degrees.", id="pump", metadata={"year": 2020}),
    Document("The warranty lasts two years. 保修期为两年。", id="warranty", metadata={"year": 2024}),
]
QUESTIONS = {"en": "When does the pump start?", "zh": "保修期是多少年？"}
VALUES = {
    "passages": render_passages(DOCS), "count": "2", "number": "1", "max_rows": "5", "most": "1", "max_chars": "200",
    "today": "2026-01-01", "dialect": "sqlite", "schema": "pumps(id, year)", "fields": "year: number",
    "sources": "manuals: about pumps", "target": "English", "names": "year", "history": "user: The pump?",
    "answer": "It starts at 40 degrees [1].", "statement": "It starts at 40 degrees.", "statements": "1. It starts.",
}  # fmt: skip


class Replies(BaseCallbackHandler):
    """Keeps how many tokens each reply has."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def on_llm_end(self, response: LLMResult, **kwargs: Any) -> None:
        """Read the usage of a reply."""
        message: Any = response.generations[0][0]
        usage = message.message.usage_metadata
        self.sizes.append(usage["output_tokens"] if usage else 0)

    def check(self) -> None:
        """There were replies, and none was longer than twice its bound."""
        assert self.sizes and max(self.sizes) <= 2 * BOUND


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """The address of the running endpoint."""
    if find_spec("xllamacpp") is None:
        pytest.skip("xllamacpp is not installed: pip install 'rag-kit[slow]'")
    with serve(weights()) as url:
        yield url


@pytest.fixture(scope="module")
def llm(endpoint: str) -> Any:
    """The model, bounded and without chance."""
    settings: dict[str, Any] = {"max_tokens": BOUND, "temperature": 0.0, "timeout": 300.0, "max_retries": 0}
    return chat_model("openai:smollm2", base_url=endpoint, api_key="none", **settings)


def words() -> kit.BM25Retriever:
    """A keyword retriever over two passages."""
    return kit.BM25Retriever.from_documents(DOCS, k=2)


#: A prompt of some hundred tokens takes a second of two cores to read: each is asked in one of its languages, or, with
#: ``RAG_KIT_REAL=all``, in both.
ASKED = [
    (name, language)
    for place, name in enumerate(PromptLibrary().names())
    for language in (["en", "zh"] if os.environ.get("RAG_KIT_REAL") == "all" else [["en", "zh"][place % 2]])
]


@pytest.mark.parametrize("part", range(4))
async def test_every_prompt(llm: Any, part: int) -> None:
    """Four at once: each reply is a text, or an object of the prompt's schema, or an error that says what is wrong."""
    replies, slots = Replies(), asyncio.Semaphore(SLOTS)

    async def ask(name: str, language: str) -> None:
        prompt: Any = load_prompt(name, language=language)
        values = {key: VALUES.get(key, QUESTIONS[language]) for key in prompt.input_variables}
        config: Any = {"callbacks": [replies]}
        async with slots:
            if prompt.output_schema is None:
                reply = await llm.ainvoke(prompt.format_messages(**values), config)
                assert isinstance(reply.text, str)
                return
            try:
                value = await astructured_call(llm, prompt, values, config=config, max_calls=1)
            except (ModelOutputError, BudgetExceededError):  # cut off at the bound, or not of the schema
                return
            assert isinstance(value, prompt.output_schema)

    asked = ASKED[part::4]
    await asyncio.gather(*(ask(*one) for one in asked))
    replies.check()
    assert len(replies.sizes) == len(asked)


class Pump(BaseModel):
    """A pump."""

    loud: bool


def test_structured_calls_sync_async_and_at_once(llm: Any) -> None:
    """An object of the class each time; where the endpoint has JSON schema a small form is always filled in."""
    prompt, values = ChatPromptTemplate([("user", "Is the pump loud? {form}")]), {"form": "Answer as JSON."}
    assert isinstance(structured_call(llm, prompt, values, Pump), Pump)

    async def together() -> list[Any]:
        return await asyncio.gather(*(astructured_call(llm, prompt, values, Pump) for _ in range(SLOTS)))

    assert all(isinstance(value, Pump) for value in asyncio.run(together()))


def _routing(llm: Any) -> Any:
    return kit.RoutingRetriever.from_llm(llm, {"a": (words(), "pumps"), "b": (words(), "warranties")})


RETRIEVERS: dict[str, Callable[[Any], Any]] = {
    "multi_query": lambda llm: kit.MultiQueryRetriever.from_llm(llm, words()),
    "step_back": lambda llm: kit.StepBackRetriever.from_llm(llm, words()),
    "hyde": lambda llm: kit.HyDERetriever.from_llm(llm, words()),
    "query2doc": lambda llm: kit.Query2DocRetriever.from_llm(llm, words()),
    "decomposition": lambda llm: kit.DecompositionRetriever.from_llm(llm, words()),
    "conversational": lambda llm: kit.ConversationalRetriever.from_llm(llm, words()),
    "expansion": lambda llm: kit.ExpansionRetriever.from_llm(llm, words()),
    "self_query": lambda llm: SelfQueryRetriever.from_llm(llm, words()),
    "routing": _routing,
    "listwise": lambda llm: kit.RerankRetriever.from_llm(llm, words()),
    "pointwise": lambda llm: kit.RerankRetriever.from_llm(llm, words(), mode="pointwise"),
    "compression": lambda llm: kit.CompressionRetriever.from_llm(llm, words()),
}


@pytest.mark.parametrize("name", RETRIEVERS)
def test_every_retriever_that_asks(llm: Any, name: str) -> None:
    """Sync and async: documents, or none and a note of what failed; no reply over its bound."""
    retriever = RETRIEVERS[name](llm)
    question: Any = QUESTIONS[["en", "zh"][list(RETRIEVERS).index(name) % 2]]
    if name == "conversational":
        question = {"question": question, "history": [("user", "The pump?"), ("assistant", "Yes.")]}
    for ask in (retriever.invoke, lambda *given: asyncio.run(retriever.ainvoke(*given))):
        replies = Replies()
        with use_notes() as notes:
            found = ask(question, {"callbacks": [replies]})
        replies.check()
        assert all(isinstance(document, Document) for document in found)
        assert found or notes.texts or name in ("self_query", "routing", "compression")


#: Model calls of a run.
CAP = 6


def check_answer(result: dict[str, Any]) -> None:
    """What every graph gives back, whatever the model wrote."""
    assert result["status"] in STATUSES
    assert isinstance(result["answer"], str) and all(isinstance(note, str) for note in result["notes"])
    assert result["usage"]["calls"] <= CAP
    if result["status"] == "grounded":
        assert result["citations"]


@pytest.mark.parametrize("name", BUILDERS)
def test_every_graph(llm: Any, name: str) -> None:
    """Sync, streamed, and four at once: no exception, a known status, no call over the cap."""
    graph = BUILDERS[name](words(), llm)
    question = {"question": QUESTIONS[["en", "zh"][list(BUILDERS).index(name) % 2]]}
    context, replies = {"max_calls": CAP, "k": 1}, Replies()
    check_answer(graph.invoke(question, {"callbacks": [replies]}, context=context))
    replies.check()
    steps = list(graph.stream(question, context=context, stream_mode="updates"))
    assert steps and all(isinstance(step, dict) for step in steps)

    async def together() -> list[Any]:
        return await asyncio.gather(*(graph.ainvoke(question, context=context) for _ in range(SLOTS)))

    for result in asyncio.run(together()):
        check_answer(result)


def test_an_answer_is_streamed_in_pieces(llm: Any) -> None:
    """The answer's tokens come one after the other, and nothing else is streamed."""
    graph = BUILDERS["plain"](words(), llm)
    asked = {"question": QUESTIONS["en"]}
    pieces = [piece for piece, _ in graph.stream(asked, context={"max_calls": CAP}, stream_mode="messages")]
    assert len(pieces) > 1 and "".join(piece.text for piece in pieces)


def test_the_judge_scores_or_says_why_not(llm: Any) -> None:
    """A metric of the kit's with a judge: each cell has a value from 0 to 1, or the reason for none."""
    data = EvaluationSet("one", [Example("q", QUESTIONS["en"])])
    graph = BUILDERS["plain"](words(), llm)
    results = evaluate(graph, data, ["ours_citations_judged"], judge=Judge(llm), progress=False)
    (row,) = results.rows
    cell = row.cells["ours_citations_judged"]
    assert (cell.value is not None and 0 <= cell.value <= 1) or cell.reason


def test_questions_are_generated_or_counted_as_refused(llm: Any) -> None:
    """Questions in the form of the set, at most as many as asked for, and a report of what became of the others."""
    made = generate([DOCS[0]], llm, n=1, kinds=("single_hop",), max_calls=4)
    assert len(made.examples) <= 1 and all(example.question for example in made.examples)


def test_doctor_examines_the_endpoint(
    llm: Any, endpoint: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each ability is found or not, and none of them stops the examination."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    main(["doctor", "--model", "openai:smollm2", "--base-url", endpoint, "--json"])
    findings = {row["name"]: row["state"] for row in json.loads(capsys.readouterr().out)}
    assert findings["text"] == "ok" and set(findings.values()) <= {"ok", "off"}
    assert {"JSON schema", "streaming", "log-probabilities"} <= findings.keys()
