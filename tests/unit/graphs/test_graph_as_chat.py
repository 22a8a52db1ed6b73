"""The graphs over ``MessagesState``, as chat front ends use them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from langchain_core.outputs import ChatGenerationChunk
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command
from support.by_task import by_task
from support.graphs import BUILDERS, each_graph, fixed, go, thread

from rag_kit.errors import InvalidInputError, ModelUnreachableError
from rag_kit.graphs import Guards, as_chat, build_adaptive_rag, build_plain_rag
from rag_kit.graphs.guards import Refusal
from rag_kit.models import chat_model
from rag_kit.retrieval import BM25Retriever

FAN = Document("The fan starts at 60 degrees.", metadata={"file": "fan.md"})


def asked(*texts: str) -> Any:
    return {"messages": [HumanMessage(text) for text in texts]}


@each_graph
async def test_the_answer_is_appended(name: str, native: bool) -> None:
    """With a checkpointer, in both forms: each turn adds one message, with status and citations as data."""
    chat = as_chat(BUILDERS[name](fixed(FAN), chat_model("extractive"), checkpointer=InMemorySaver()))
    for turn in (1, 2):
        given = asked("At how many degrees does the fan start?")
        result = await go(chat, native, given, thread())
        assert [message.type for message in result["messages"]] == ["human", "ai"] * turn
        reply = result["messages"][-1]
        assert reply.text.startswith("The fan starts at 60 degrees.")
        assert reply.additional_kwargs["status"] == "grounded"
        assert reply.additional_kwargs["citations"][0]["file"] == "fan.md"


@pytest.mark.parametrize("kept", [False, True], ids=["all sent", "checkpointer"])
def test_earlier_messages_are_the_history(kept: bool) -> None:
    """A follow-up is made complete, whether the front end sends the whole conversation or the thread keeps it."""
    retriever = fixed(FAN)
    graph = build_plain_rag(
        retriever, chat_model("extractive"), checkpointer=InMemorySaver() if kept else None
    )
    chat = as_chat(graph)
    first = chat.invoke(asked("When does the fan start?"), thread())
    more: Any = HumanMessage([{"type": "text", "text": "Why does it start?"}])
    chat.invoke({"messages": [more] if kept else [*first["messages"], more]}, thread())
    assert len(retriever.queries) == 2 and "fan" in retriever.queries[1]


@pytest.mark.parametrize("sent", ["new", "all", "texts"])
@pytest.mark.parametrize("name", ["plain", "conversational", "crag", "adaptive"])
async def test_what_guards_masked_or_refused_is_not_shown_to_the_model_later(name: str, sent: str) -> None:
    """The history has each question as the guards left it, also where the front end sends nothing but texts."""

    def check(text: str, config: Any) -> Any:
        return Refusal("No.") if "salary" in text else text.replace("Smith", "[name]")

    llm = by_task({"answer": f"{FAN.page_content}[1]", "condense": {"query": "Why?"}})
    memory = InMemorySaver() if sent == "new" else None
    graph = BUILDERS[name](fixed(FAN), llm, guards=Guards(question=[check]), checkpointer=memory)
    chat, messages = as_chat(graph), list[Any]()
    questions = ("Smith asks: when does the fan start?", "What is the salary?", "Why does it?")
    for number, question in enumerate(questions):
        earlier = [] if memory else messages
        if sent == "texts":
            earlier = [(message.type, message.text) for message in messages]
        given = {"messages": [*earlier, ("user", question)]}
        messages = (await go(chat, number > 1, given, thread()))["messages"]
    assert [message.text for message in messages[3::2]] == ["No.", f"{FAN.page_content}[1]"]
    assert (messages[3].additional_kwargs.get("status") == "refused") == (sent != "texts")
    shown = [body for _, body in llm.asked]
    assert "condense" in llm.tasks() and any("[name] asks" in body for body in shown)
    assert not any("Smith" in body or "salary" in body for body in shown)


def test_a_question_back_is_a_message_and_waits_only_if_asked_to() -> None:
    """The reply is the next message; with clarify=True the run waits as the graph does."""
    documents = [FAN, Document("The pump starts at 40 degrees.")]
    chat = as_chat(
        build_adaptive_rag(fixed(*documents), chat_model("extractive"), checkpointer=InMemorySaver())
    )
    back = chat.invoke(asked("When does it start?"), thread())["messages"][-1]
    assert "question about?" in back.text and back.additional_kwargs["status"] == "clarify"
    assert "60 degrees" in chat.invoke(asked("the fan"), thread())["messages"][-1].text
    options: Any = {"config": thread("2"), "context": {"clarify": True}}
    assert chat.invoke(asked("When does it start?"), **options)["__interrupt__"]
    resume: Any = Command(resume="the fan")
    assert "60 degrees" in chat.invoke(resume, **options)["messages"][-1].text


def test_it_is_a_node_among_others_and_settings_are_those_of_the_graph() -> None:
    """As a node of any graph over messages; a misspelt setting is refused; tokens come from inside."""
    chat = as_chat(build_plain_rag(fixed(FAN), chat_model("extractive")))
    assert "rag:retrieve" in chat.get_graph(xray=True).nodes
    parent = StateGraph(MessagesState)
    parent.add_node("rag", chat)
    parent.add_edge(START, "rag")
    assert isinstance(parent.compile().invoke(asked("When does the fan start?"))["messages"][-1], AIMessage)
    with pytest.raises(InvalidInputError, match="did you mean 'filter'"):
        chat.invoke(asked("When?"), context={"fitler": {}})
    with pytest.raises(InvalidInputError, match="none of the user's"):
        chat.invoke({"messages": [AIMessage("Hello.")]})
    with pytest.raises(InvalidInputError, match="what a builder"):
        as_chat(chat)
    tokens = [
        message.content
        for _, (message, _) in chat.stream(
            asked("When does the fan start?"), stream_mode="messages", subgraphs=True
        )
    ]
    assert len(tokens) > 3


class _BreaksOff(GenericFakeChatModel):
    """Streams the beginning of an answer, then loses its connection."""

    def _stream(self, *args: Any, **kwargs: Any) -> Iterator[ChatGenerationChunk]:
        for word in ("The pump starts ", "at nine "):
            yield ChatGenerationChunk(message=AIMessageChunk(content=word))
        raise ConnectionError("reset")


def test_after_a_stream_broke_off_no_fallback_writes_the_answer_again() -> None:
    """A reader of the stream would read two answers, one of them half: it gets the error, as in LangChain."""
    spare = GenericFakeChatModel(messages=iter([AIMessage("The pump starts at nine.[1]")]))
    model = _BreaksOff(messages=iter([])).with_fallbacks([spare])
    graph = as_chat(build_plain_rag(BM25Retriever.from_texts(["The pump starts at nine."]), model))
    question = {"messages": [("user", "When does the pump start?")]}
    ids: set[str] = set()
    with pytest.raises(ModelUnreachableError, match="reset"):
        ids.update(
            chunk.id for _, (chunk, _) in graph.stream(question, stream_mode="messages", subgraphs=True)
        )
    assert len(ids) == 1
