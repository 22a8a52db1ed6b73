"""``stream_mode="messages"`` shows the answer, once, without thoughts, and nothing of other models."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel, FakeListChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from support import tenants
from support.graphs import BUILDERS, each_graph, fixed, in_turn, thread
from typing_extensions import TypedDict

from rag_kit.concurrency.bridge import blocking
from rag_kit.errors import ModelUnreachableError
from rag_kit.graphs import Guards, as_chat, build_adaptive_rag, build_crag, build_plain_rag, uncompiled
from rag_kit.graphs.evaluators.function import FunctionEvaluator
from rag_kit.graphs.streaming import ThoughtFilter
from rag_kit.models import astructured_call, chat_model
from rag_kit.models.extractive.blocks import read_prompt
from rag_kit.prompts import load_prompt
from rag_kit.query_construction import SelfQueryRetriever
from rag_kit.retrieval import BM25Retriever, EnsembleRetriever, MultiQueryRetriever

FAN = "The fan starts at 60 degrees."
ASKED: Any = {"question": "At how many degrees does the fan start?"}
JSON = '{"queries": ["fan start", "start degrees"]}'


class Chatty(FakeListChatModel):
    """Streams character by character, whatever it is asked; counts nothing."""

    responses: list[str] = ["HIDDEN"]


def unreachable(query: Any) -> Any:
    """A store or a model that is down."""
    raise ConnectionError("no route to host")


class Reply(BaseChatModel):
    """Gives its reply in one message, without streaming."""

    reply: str

    @property
    def _llm_type(self) -> str:
        return "reply"

    def _generate(self, messages: Any, *args: Any, **kwargs: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=AIMessage(self.reply))])


async def shown(graph: Any, given: Any = None, native: bool = False, **options: Any) -> list[Any]:
    """The messages that are streamed."""
    given = given or ASKED
    if native:
        parts = [part async for part in graph.astream(given, stream_mode="messages", **options)]
    else:
        parts = list(graph.stream(given, stream_mode="messages", **options))
    return [part[1][0] if options.get("subgraphs") else part[0] for part in parts]


def text_of(messages: list[Any]) -> str:
    return "".join(message.text for message in messages)


async def lists_queries(query: str) -> list[Document]:
    """A foreign chain that asks a model of its own, without handing a config on."""
    await Chatty().ainvoke(query)
    return [Document(FAN)]


def lists_queries_blocking(query: str) -> list[Document]:
    """The same, blocking."""
    Chatty().invoke(query)
    return [Document(FAN)]


@pytest.mark.parametrize("native", [False, True], ids=["stream", "astream"])
async def test_models_of_retrievers_are_not_shown(native: bool) -> None:
    """No message of retrievers or chains is streamed, be they of this kit or of others."""
    answer = FakeListChatModel(responses=["At 60 degrees.[1]"])
    words = BM25Retriever.from_texts([FAN])
    rewriting = MultiQueryRetriever.from_llm(FakeListChatModel(responses=[JSON]), words)
    foreign: Any = RunnableLambda(lists_queries_blocking, lists_queries)

    class Own(BaseRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            Chatty().invoke(query, {"callbacks": run_manager.get_child()})
            return [Document(FAN)]

    for retriever in (rewriting, foreign, Own()):
        assert text_of(await shown(build_plain_rag(retriever, answer), native=native)) == "At 60 degrees.[1]"


@each_graph
async def test_no_graph_shows_json_or_text_that_is_no_answer(name: str, native: bool) -> None:
    """Grades, keywords, classifications, sub-questions and critiques stay inside; the answer is shown once."""

    class Told(BaseChatModel):
        @property
        def _llm_type(self) -> str:
            return "told"

        def _generate(self, messages: Any, *args: Any, **kwargs: Any) -> ChatResult:
            task = read_prompt(messages).task
            answers = task in ("answer", "answer_from_hops", "direct_answer")
            text = f"{FAN}[1]" if answers else json.dumps({"HIDDEN": task})
            return ChatResult(generations=[ChatGeneration(message=AIMessage(text))])

        def _stream(self, messages: Any, *args: Any, **kwargs: Any) -> Iterator[ChatGenerationChunk]:
            for letter in self._generate(messages).generations[0].message.text:
                yield ChatGenerationChunk(message=AIMessageChunk(letter))

    graph = BUILDERS[name](fixed(FAN), Told(), checkpointer=InMemorySaver())
    for question in ("At how many degrees does the fan start?", "And the lamp?"):
        messages = await shown(graph, {"question": question}, native, config=thread(), subgraphs=True)
        assert "HIDDEN" not in text_of(messages)
        assert text_of(messages) in ("", f"{FAN}[1]")
    if name in ("plain", "conversational", "crag", "adaptive"):
        assert text_of(messages) == f"{FAN}[1]"


@pytest.mark.parametrize("native", [False, True], ids=["stream", "astream"])
async def test_models_in_guards_graders_classifiers_and_web_tools_are_not_shown(native: bool) -> None:
    """Functions of the user's that call a model, with the config they are handed or with none."""

    def guard(text: str, config: Any) -> None:
        Chatty().invoke(text, config)
        Chatty().invoke(text)

    def grader(question: str, passages: list[str]) -> list[float]:
        Chatty().invoke(question)
        return [0.0 for _ in passages]

    def classifier(question: str, earlier: Any) -> str:
        Chatty().invoke(question)
        return "single"

    web: Any = RunnableLambda(lists_queries_blocking, lists_queries)
    answer = FakeListChatModel(responses=["At 60 degrees.[1]"])
    guards = Guards(question=[guard], passages=[lambda items, config: (guard("p", config), items)[1]])
    options: Any = {"evaluator": FunctionEvaluator(grader), "web_search": web, "guards": guards}
    crag = build_crag(fixed(FAN), answer, **options)
    assert text_of(await shown(crag, native=native)) == "At 60 degrees.[1]"
    adaptive = build_adaptive_rag(fixed(FAN), answer, classifier=classifier, **options)
    assert text_of(await shown(adaptive, native=native, subgraphs=True)) == "At 60 degrees.[1]"
    seen = build_plain_rag(fixed(FAN), answer, guards=Guards(answer=[guard]))
    assert (
        text_of(await shown(seen, native=native)) == ""
    )  # not yet allowed, and nothing of the guard's model


async def test_a_node_in_the_place_of_another_shows_what_that_one_did() -> None:
    """A search of the user's own keeps its model's words inside; an answer of the user's own is streamed."""

    def retrieve(state: Any) -> Any:
        return {"documents": lists_queries_blocking(state["search_query"])}

    def answer(state: Any) -> Any:
        return {"answer": FakeListChatModel(responses=["At 60 degrees.[1]"]).invoke("?").text}

    graph = uncompiled(build_plain_rag(fixed(FAN), chat_model("extractive")))
    graph.replace_node("retrieve", retrieve)
    graph.replace_node("answer", answer)
    assert text_of(await shown(graph.compile())) == "At 60 degrees.[1]"


THOUGHT = "<think>Is it 60?\nYes, [1] says so: 1 < 2.</think>\n\nAt 60 degrees.[1]"


REPLIES = [
    (THOUGHT, "At 60 degrees.[1]"),
    ("<Thinking>a</Thinking>At 60 < 70 degrees.[1]", "At 60 < 70 degrees.[1]"),
    ("At 60 degrees.[1] <think>and now?", "At 60 degrees.[1]"),
    ("<reasoning>想一想</reasoning>六十度。[1]", "六十度。[1]"),
    ("At 60 <t", "At 60 <t"),
    ("At 60 degrees.[1]", "At 60 degrees.[1]"),
    ("At 60 degrees, as it seems", "At 60 degrees, as it seems"),
    ("Is it 60?\nYes, [1] says so: 1 < 2.</think>\n\nAt 60 degrees.[1]", "At 60 degrees.[1]"),
    ("六十度吗？段落[1]写了。</THINK>六十度。[1]", "六十度。[1]"),
]


@pytest.mark.parametrize(("reply", "seen", "native"), in_turn(REPLIES))
async def test_thoughts_are_cut_from_the_stream(reply: str, seen: str, native: bool) -> None:
    """As they are from the answer, which stays whole in the state."""
    graph = build_plain_rag(fixed(FAN), FakeListChatModel(responses=[reply]))
    messages = await shown(graph, native=native)
    assert text_of(messages) == seen
    assert len(messages) > 4  # token by token, not in one piece
    assert graph.invoke(ASKED)["answer"] == seen.strip()
    chat = as_chat(build_plain_rag(fixed(FAN), FakeListChatModel(responses=[reply])))
    given = {"messages": [("user", ASKED["question"])]}
    assert text_of(await shown(chat, given, native, subgraphs=True)) == seen


@pytest.mark.parametrize("native", [False, True], ids=["stream", "astream"])
async def test_an_answer_is_held_back_to_its_first_citation_and_only_once(native: bool) -> None:
    """A model that is not known yet may be thinking; one that was heard without a tag is shown at once."""
    answer = "At 60 degrees.[1] It is loud.[1] It is old.[1]"
    graph = build_plain_rag(fixed(FAN), FakeListChatModel(responses=[answer]))
    first, second = [await shown(graph, native=native) for _ in range(2)]
    assert text_of(first) == text_of(second) == answer
    held = answer.index("]")
    assert not text_of(first[:held]) and text_of(first[: held + 2]).startswith("At 60 degrees.[1]")
    assert text_of(second[:3]) == "At"
    graph = build_plain_rag(fixed(FAN), FakeListChatModel(responses=[answer]))
    messages = await shown(graph, native=native, config={"tags": ["rag_kit:at_once"]})
    assert text_of(messages[:3]) == "At"


@pytest.mark.parametrize("native", [False, True], ids=["stream", "astream"])
async def test_a_model_whose_thoughts_have_no_opening_tag_is_known_from_then_on(native: bool) -> None:
    """A later thought that cites as an answer does is not shown; nor is one of two sentences."""
    thought = "The passage says: at 60 degrees.[1] That is the answer.</think>"
    replies = [f"{THOUGHT[7:]}", f"{thought}At 60 degrees.[1]", "At 60 degrees.[1]"]
    graph = build_plain_rag(fixed(FAN), FakeListChatModel(responses=replies))
    for _ in replies:
        assert text_of(await shown(graph, native=native)) == "At 60 degrees.[1]"


def test_a_model_that_does_not_stream_shows_its_answer_without_thoughts() -> None:
    """One message at the end; its thoughts are cut too."""
    graph = build_plain_rag(fixed(FAN), Reply(reply=THOUGHT))
    [(message, _)] = list(graph.stream(ASKED, stream_mode="messages"))
    assert message.text == "At 60 degrees.[1]"


NONE, OWN_WORDS = "The answer is not in the documents.", "The documents do not say when it starts."
DOWN: Any = RunnableLambda(unreachable, name="store")
DECLINES: list[Any] = [
    (FakeListChatModel(responses=[NONE]), NONE.replace(".", " that could be searched.")),
    (
        FakeListChatModel(responses=[f"<think>Hm.</think>{NONE}\n"]),
        NONE.replace(".", " that could be searched."),
    ),
    (FakeListChatModel(responses=[OWN_WORDS]), OWN_WORDS),
    (Reply(reply=NONE), NONE.replace(".", " that could be searched.")),
    (FakeListChatModel(responses=[f"{FAN}[1]"]), f"{FAN}[1]"),
]


@pytest.mark.parametrize(("model", "begin", "native"), in_turn(DECLINES))
async def test_a_decline_is_streamed_with_what_could_not_be_searched(
    model: Any, begin: str, native: bool
) -> None:
    """Whoever reads the tokens alone is not told that the documents lack it, where a store was down."""
    retriever = EnsembleRetriever(retrievers=[fixed(FAN), DOWN], k=2)
    for build in (build_plain_rag, build_crag):
        graph: Any = build(retriever, model)
        answer = graph.invoke(ASKED)["answer"]
        for _ in range(2):  # a model that is not known yet, and one that is
            assert text_of(await shown(graph, native=native)) == answer
        assert answer.startswith(begin) and ("[1]" in answer or "could not be searched." in answer)


@pytest.mark.parametrize("native", [False, True], ids=["stream", "astream"])
async def test_a_stream_that_nobody_reads_is_asked_for_again(native: bool) -> None:
    """A broken stream inside a retriever is asked for anew; one of an answer, which was seen, is an error."""

    class Breaking(FakeListChatModel):
        breaks: int = 1

        def _stream(self, *args: Any, **kwargs: Any) -> Iterator[ChatGenerationChunk]:
            for part in super()._stream(*args, **kwargs):
                yield part
                if self.breaks:
                    self.breaks -= 1
                    raise ConnectionError("it broke off")

        async def _astream(self, *args: Any, **kwargs: Any) -> Any:
            for part in self._stream(*args, **kwargs):
                yield part

    fan, answer = BM25Retriever.from_texts([FAN]), f"{FAN}[1]"
    inside = MultiQueryRetriever.from_llm(Breaking(responses=[JSON]), fan)
    graph = build_plain_rag(inside, FakeListChatModel(responses=[answer]), checkpointer=InMemorySaver())
    assert text_of(await shown(graph, native=native, config=thread())) == answer
    assert not any("degraded" in note for note in graph.get_state(thread()).values["notes"])
    with pytest.raises(ModelUnreachableError, match="broke off"):
        await shown(build_plain_rag(fan, Breaking(responses=[answer])), native=native)


def test_a_decline_of_a_stand_by_is_streamed_as_the_answer_is() -> None:
    """The model was away, so the run is incomplete, though all was searched."""
    away: Any = FakeListChatModel(responses=[]) | DOWN
    model = away.with_fallbacks([chat_model("extractive")])
    graph = build_plain_rag(fixed("Tea is hot."), model)
    streamed = "".join(part[0].text for part in graph.stream(ASKED, stream_mode="messages"))
    result = graph.invoke(ASKED)
    assert (result["status"], streamed) == ("incomplete", result["answer"])


@pytest.mark.parametrize("size", range(1, 12))
def test_the_filter_gives_the_same_for_any_cut(size: int) -> None:
    """Wherever the pieces of a stream end."""
    for text in (THOUGHT, THOUGHT.removeprefix("<think>")):
        for untagged in (None, True, False) if text == THOUGHT else (None, True):
            only = ThoughtFilter(untagged)
            pieces = [text[at : at + size] for at in range(0, len(text), size)]
            assert "".join(map(only.feed, pieces)) + only.flush() == "At 60 degrees.[1]"


@pytest.mark.parametrize("native", [False, True], ids=["stream", "astream"])
async def test_the_chat_streams_the_answer_once_under_one_id(native: bool) -> None:
    """The message in the state has the id of the chunks, and says what it took; also inside a parent graph."""
    chat = as_chat(build_plain_rag(fixed(FAN), FakeListChatModel(responses=["At 60 degrees.[1]"])))
    given = {"messages": [("user", ASKED["question"])]}
    messages = await shown(chat, given, native, subgraphs=True)
    assert text_of(messages) == "At 60 degrees.[1]" and len({message.id for message in messages}) == 1
    kept = (await chat.ainvoke(given) if native else chat.invoke(given))["messages"][-1]
    usage = kept.usage_metadata
    assert (
        usage["total_tokens"]
        == usage["input_tokens"] + usage["output_tokens"]
        > 20
        < usage["input_tokens"] + 20
    )
    whole = await shown(
        chat, given, native
    )  # without its inner graph, the message itself is all that is shown
    assert [message.text for message in whole] == ["At 60 degrees.[1]"]
    parent: Any = StateGraph(MessagesState)
    parent.add_node("rag", chat)
    parent.add_edge(START, "rag")
    assert text_of(await shown(parent.compile(), given, native, subgraphs=True)) == "At 60 degrees.[1]"


def test_messages_of_one_id_do_not_take_each_others_place() -> None:
    """A model (a cache) that gives its message the same id at each turn: all turns stay in the thread."""

    class Same(FakeListChatModel):
        responses: list[str] = ["At 60 degrees.[1]"]

        def _generate(self, *args: Any, **kwargs: Any) -> Any:
            result = super()._generate(*args, **kwargs)
            result.generations[0].message.id = "same"
            return result

    chat = as_chat(build_plain_rag(fixed(FAN), Same(), checkpointer=InMemorySaver()))
    for count in (2, 4, 6):
        result = chat.invoke({"messages": [("user", ASKED["question"])]}, thread())
        assert len(result["messages"]) == count


def test_the_reported_usage_of_the_answer_is_the_messages() -> None:
    """It stands in the message where the model says what it took."""

    class Reporting(FakeListChatModel):
        responses: list[str] = ["At 60 degrees.[1]"]

        def _generate(self, *args: Any, **kwargs: Any) -> Any:
            result = super()._generate(*args, **kwargs)
            usage = {"input_tokens": 100, "output_tokens": 7, "total_tokens": 107}
            result.generations[0].message.usage_metadata = usage  # type: ignore[attr-defined]
            return result

    chat = as_chat(build_plain_rag(fixed(FAN), Reporting()))
    kept = chat.invoke({"messages": [("user", ASKED["question"])]})["messages"][-1]
    assert kept.usage_metadata == {"input_tokens": 100, "output_tokens": 7, "total_tokens": 107}


class Asked(TypedDict, total=False):
    """The state of somebody's own graph."""

    question: str
    found: list[Document]


async def structured(question: str) -> list[Document]:
    """Calls of the kit that are no retriever's."""
    writer = SelfQueryRetriever.from_llm(
        Chatty(responses=['{"query": "fan", "filter": null}']), [Document(FAN)]
    )
    await writer.aconstruct_query(question)
    model = Chatty(responses=['{"query": "HIDDEN"}'])
    await astructured_call(model, load_prompt("step_back"), {"question": question})
    return [Document(FAN)]


IN_OTHERS: dict[str, Any] = {
    **{name: wrap(tenants.words(k=6), k=3) for name, wrap in tenants.wrappers().items()},
    "foreign": EnsembleRetriever(retrievers=[RunnableLambda(lists_queries_blocking, lists_queries)]),
    "no retriever": RunnableLambda(blocking(structured, "structured"), structured),
}


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("name", IN_OTHERS)
async def test_models_of_retrievers_are_not_streamed_by_other_graphs(name: str, native: bool) -> None:
    """Called in a node of a graph of one's own, as in a tool of an agent; what the node's own model says is shown."""

    def node(state: Asked, config: RunnableConfig) -> Asked:
        found = IN_OTHERS[name].invoke(state["question"], config)
        return {"found": found, "question": Chatty(responses=["shown"]).invoke("?", config).text}

    async def later(state: Asked, config: RunnableConfig) -> Asked:
        found = await IN_OTHERS[name].ainvoke(state["question"], config)
        return {"found": found, "question": (await Chatty(responses=["shown"]).ainvoke("?", config)).text}

    own: Any = StateGraph(Asked)
    own.add_node("search", later if native else node)
    own.add_edge(START, "search")
    assert text_of(await shown(own.compile(), {"question": tenants.QUESTION}, native)) == "shown"
