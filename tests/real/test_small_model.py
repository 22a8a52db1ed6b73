"""The kit with a real language model on loopback: form, bounds, statuses and notes; never the sense of an answer.

Prompts in both languages, each retriever that asks a model, each graph; the structured call, four at once; ``doctor``.
``RAG_KIT_REAL=all`` takes every prompt, retriever and graph in each form, half an hour; without it a few of each.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.util import find_spec
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.outputs import LLMResult
from langchain_core.prompts import ChatPromptTemplate
from pydantic import BaseModel
from support.graphs import BUILDERS
from support.small_model import DOCS, SLOTS, VALUES, serve, weights

import rag_kit.retrieval as kit
from rag_kit.cli.main import main
from rag_kit.concurrency.notes import use_notes
from rag_kit.errors import BudgetExceededError, ModelOutputError
from rag_kit.models import astructured_call, chat_model, structured_call
from rag_kit.prompts import load_prompt
from rag_kit.prompts.library import PromptLibrary
from rag_kit.query_construction import SelfQueryRetriever

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

EVERYTHING = os.environ.get("RAG_KIT_REAL") == "all"
#: Most tokens of a reply, where the prompt does not say otherwise.
BOUND = 48
STATUSES = {"grounded", "flagged", "uncited", "undecided", "declined", "incomplete", "unsourced", "clarify"}
QUESTIONS = {"en": "When does the pump start?", "zh": "保修期是多少年？"}


class Replies(BaseCallbackHandler):
    """Counts the requests, and keeps how many tokens each reply has; one that is cut off in its object is none."""

    def __init__(self) -> None:
        self.requests, self.sizes = 0, list[int]()

    def on_chat_model_start(self, *args: Any, **kwargs: Any) -> None:
        """Count a request."""
        self.requests += 1

    def on_llm_end(self, response: LLMResult, **kwargs: Any) -> None:
        """Read the usage of a reply."""
        message: Any = response.generations[0][0]
        usage = message.message.usage_metadata
        self.sizes.append(usage["output_tokens"] if usage else 0)

    def check(self) -> None:
        """The model was asked, and no reply was longer than twice its bound."""
        assert self.requests and max(self.sizes, default=0) <= 2 * BOUND


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


@pytest.mark.parametrize("language", QUESTIONS)
async def test_every_prompt(llm: Any, language: str) -> None:
    """Four at once: each reply is a text, or an object of the prompt's schema, or an error that says what is wrong."""
    replies, slots = Replies(), asyncio.Semaphore(SLOTS)

    async def ask(name: str) -> None:
        prompt: Any = load_prompt(name, language=language)
        values = {key: VALUES.get(key, QUESTIONS[language]) for key in prompt.input_variables}
        config: Any = {"callbacks": [replies]}
        async with slots:
            if prompt.output_schema is None:
                assert isinstance((await llm.ainvoke(prompt.format_messages(**values), config)).text, str)
                return
            try:
                value = await astructured_call(llm, prompt, values, config=config, max_calls=1)
            except (ModelOutputError, BudgetExceededError):  # cut off at the bound, or not of the schema
                return
            assert isinstance(value, prompt.output_schema)

    names = [name for name, written in PromptLibrary().entries() if written == language]
    asked = names if EVERYTHING else names[:: 12 if language == "en" else 24]
    await asyncio.gather(*map(ask, asked))
    replies.check()
    assert replies.requests >= len(asked) > 2


RETRIEVERS: dict[str, Callable[[Any], Any]] = {
    "multi_query": lambda llm: kit.MultiQueryRetriever.from_llm(llm, words()),
    "step_back": lambda llm: kit.StepBackRetriever.from_llm(llm, words()),
    "hyde": lambda llm: kit.HyDERetriever.from_llm(llm, words()),
    "query2doc": lambda llm: kit.Query2DocRetriever.from_llm(llm, words()),
    "decomposition": lambda llm: kit.DecompositionRetriever.from_llm(llm, words()),
    "conversational": lambda llm: kit.ConversationalRetriever.from_llm(llm, words()),
    "expansion": lambda llm: kit.ExpansionRetriever.from_llm(llm, words()),
    "self_query": lambda llm: SelfQueryRetriever.from_llm(llm, words()),
    "routing": lambda llm: kit.RoutingRetriever.from_llm(
        llm, {"a": (words(), "pumps"), "b": (words(), "fans")}
    ),
    "listwise": lambda llm: kit.RerankRetriever.from_llm(llm, words()),
    "pointwise": lambda llm: kit.RerankRetriever.from_llm(llm, words(), mode="pointwise"),
    "compression": lambda llm: kit.CompressionRetriever.from_llm(llm, words()),
}


def in_forms(names: Iterable[str], forms: Sequence[str], few: Sequence[str]) -> list[Any]:
    """Each name with each form; or a few, one form each in turn."""
    pairs = [(name, form) for name in names for form in forms]
    return pairs if EVERYTHING else [(name, forms[n % len(forms)]) for n, name in enumerate(few)]


@pytest.mark.parametrize(
    ("name", "form"), in_forms(RETRIEVERS, ["invoke", "ainvoke"], ["hyde", "routing", "conversational"])
)
def test_every_retriever_that_asks(llm: Any, name: str, form: str) -> None:
    """Documents, or none and a note of what failed; no reply over its bound. English sync, Chinese async."""
    retriever, replies, native = RETRIEVERS[name](llm), Replies(), form == "ainvoke"
    question: Any = QUESTIONS["zh" if native else "en"]
    history = [("user", "The pump?"), ("assistant", "Yes.")]
    more: Any = {"history": history} if name == "conversational" else {}
    config: Any = {"callbacks": [replies]}
    with use_notes() as notes:
        found = (
            asyncio.run(retriever.ainvoke(question, config, **more))
            if native
            else retriever.invoke(question, config, **more)
        )
    replies.check()
    assert all(isinstance(document, Document) for document in found)
    assert found or notes.texts or name in ("self_query", "routing", "compression")


#: Settings that keep the loops short, as far as a graph has them.
SHORT = {"max_segments": 1, "max_rounds": 1, "max_generations": 1, "max_hops": 1, "related_questions": 1}


@pytest.mark.parametrize(
    ("name", "form"), in_forms(BUILDERS, ["stream", "invoke", "ainvoke"], ["plain", "reflect", "self-rag"])
)
def test_every_graph(llm: Any, name: str, form: str) -> None:
    """No exception, a known status, texts as notes, calls that are counted; async in Chinese."""
    graph, replies = BUILDERS[name](words(), llm), Replies()
    asked: Any = {"question": QUESTIONS["zh" if form == "ainvoke" else "en"]}
    context = {key: value for key, value in SHORT.items() if key in graph.context_schema.model_fields}
    config: Any = {"callbacks": [replies]}
    if form == "stream":
        result = list(graph.stream(asked, config, context=context, stream_mode="values"))[-1]
    elif form == "ainvoke":
        result = asyncio.run(graph.ainvoke(asked, config, context=context))
    else:
        result = graph.invoke(asked, config, context=context)
    replies.check()
    assert result["status"] in STATUSES and isinstance(result["answer"], str) and result["answer"]
    assert all(isinstance(note, str) for note in result["notes"])
    assert result["usage"]["calls"] == replies.requests and result["usage"]["tokens"] > 0
    assert result["citations"] or result["status"] != "grounded"
    assert result["notes"] or result["status"] != "incomplete"


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


def test_an_answer_is_streamed_in_pieces(llm: Any) -> None:
    """The answer's tokens come one after the other, and nothing else is streamed."""
    graph = BUILDERS["plain"](words(), llm)
    asked = {"question": QUESTIONS["en"]}
    pieces = [piece for piece, _ in graph.stream(asked, context={"max_calls": 4}, stream_mode="messages")]
    assert len(pieces) > 1 and "".join(piece.text for piece in pieces)


def test_doctor_examines_the_endpoint(
    llm: Any, endpoint: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each ability is found or not, and none of them stops the examination."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    main(["doctor", "--model", "openai:smollm2", "--base-url", endpoint, "--json"])
    findings = {row["name"]: row["state"] for row in json.loads(capsys.readouterr().out)}
    assert findings["text"] == "ok" and set(findings.values()) <= {"ok", "off"}
    assert {"JSON schema", "streaming", "log-probabilities"} <= findings.keys()
