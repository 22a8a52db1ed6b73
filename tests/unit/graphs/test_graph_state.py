"""The state of a thread: what a checkpointer can keep of it, and what somebody edits in it."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from support.graphs import BUILDERS, each_graph, fixed, go, thread

from rag_kit.errors import InvalidInputError
from rag_kit.graphs import build_crag, build_plain_rag, uncompiled
from rag_kit.graphs.crag.state import CragContext
from rag_kit.graphs.state import as_storable
from rag_kit.models import chat_model


class Identifier:
    """Stands for what a store's client gives."""

    def __str__(self) -> str:
        return "65a1"


CYCLE: dict[str, Any] = {}
CYCLE["again"] = CYCLE
ODD: list[Any] = [Identifier(), 10**30, {"half \ud800": 1}, {"deep": [Identifier()]}, len, CYCLE]


@pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS)
async def test_odd_metadata_do_not_end_a_run(build: Any) -> None:
    """In every graph: the answer comes, and what can be kept of the metadata is."""

    def search(query: str) -> list[Document]:
        odd = {f"odd {number}": value for number, value in enumerate(ODD)}
        return [Document("The fan starts at 60 degrees.", metadata={"file": "fan.md", **odd})]

    made = build(
        RunnableLambda(search), chat_model("extractive"), checkpointer=InMemorySaver(), output="full"
    )
    config: Any = {"configurable": {"thread_id": "1"}}
    question = {"question": "At how many degrees does the fan start?"}
    for found in (made.invoke(question, config), await made.ainvoke(question, config)):
        assert found["answer"] == "The fan starts at 60 degrees.[1]"
        assert found["citations"][0]["file"] == "fan.md"


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        ("At how many degrees{} does the fan start?", "The fan{} starts at 60 degrees."),
        ("风扇在多少度{}启动？", "风扇{}在六十度启动。"),
    ],
)
@pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS)
async def test_what_postgresql_refuses_is_replaced(build: Any, question: str, sentence: str) -> None:
    """In question, passages and answer: what is kept of a thread has neither NUL nor half a surrogate pair."""
    bad = "\0\ud800"

    def search(query: str) -> list[Document]:
        assert not {*bad} & {*query}
        metadata = {"file": f"fan{bad}.md", f"key{bad}": [{"tags": bad}]}
        return [Document(sentence.format(bad), metadata=metadata)]

    made = build(
        RunnableLambda(search), chat_model("extractive"), checkpointer=InMemorySaver(), output="full"
    )
    config: Any = {"configurable": {"thread_id": "1"}}
    given = {"question": question.format(bad)}
    for found in (made.invoke(given, config), await made.ainvoke(given, config)):
        assert found["question"] == question.format("\ufffd\ufffd")
        assert found["answer"] == sentence.format("\ufffd\ufffd") + "[1]" and found["status"] == "grounded"
        kept = repr([saved.values for saved in made.get_state_history(config)])
        assert "\\x00" not in kept and "\\ud800" not in kept


@pytest.mark.parametrize(
    "update",
    [
        Command(update=[("answer", "It runs\0.")]),
        [Command(update={"answer": "It runs\0."}), {"notes": ["\0"]}],
    ],
    ids=["pairs", "several"],
)
def test_all_that_a_node_of_ones_own_gives_is_replaced(update: Any) -> None:
    """In whichever form LangGraph takes its update: pairs in a command, a command beside a dict."""
    retriever: Any = RunnableLambda(lambda query: [Document("The fan starts at 60 degrees.")])
    editable = uncompiled(build_plain_rag(retriever, chat_model("extractive")))
    editable.insert_node("own", lambda state: update, after="answer")
    graph, config = editable.compile(InMemorySaver()), thread()
    graph.invoke({"question": "When does the fan start?"}, config)
    kept = repr([saved.values for saved in graph.get_state_history(config)])
    assert "It runs\ufffd." in kept and "\\x00" not in kept


def test_what_can_be_kept_stays_as_it_is() -> None:
    """Objects become their text; what was plain, and a document without fault, are left alone."""
    odd = as_storable(Document("Text.", metadata={"id": Identifier(), "page": 2, "tags": ["a"]}, id="7"))
    assert odd.metadata == {"id": "65a1", "page": 2, "tags": ["a"]}
    assert (odd.page_content, odd.id) == ("Text.", "7")
    plain = Document("Half \ud800.", metadata={"page": 2, "at": 0.5, "none": None})
    assert as_storable(plain) is plain


FAN = "The fan starts at 60 degrees."


def test_a_wrong_type_is_refused_and_the_thread_goes_on() -> None:
    """No bare TypeError, no text taken apart into its letters; what was kept before is there still."""
    graph = build_crag(fixed(FAN), chat_model("extractive"), checkpointer=InMemorySaver(), output="full")
    before = graph.invoke({"question": "When does the fan start?"}, thread())
    for key in ("history", "documents", "notes", "usage", "strips", "web_documents"):
        for value in (None, 5, "x", {"calls": "many"}, float("nan")):
            with pytest.raises(InvalidInputError, match="give "):
                graph.update_state(thread(), {key: value})
            assert graph.get_state(thread()).values[key] == before[key]


AFTER = {
    "plain": "retrieve",
    "conversational": "retrieve",
    "crag": "retrieve",
    "self-rag": "finish",
    "reflect": "finish",
    "adaptive": "search_hop",
}


@each_graph
async def test_a_state_of_another_version_is_named_and_a_new_turn_goes_on(name: str, native: bool) -> None:
    """Resumed in the middle with keys missing, as an older version left them: the kit's own error, no KeyError."""
    graph = BUILDERS[name](fixed(FAN), chat_model("extractive"), checkpointer=InMemorySaver(), output="full")
    given = {"question": "When does the fan start?"}
    graph.update_state(thread(), given, as_node=AFTER[name])
    with pytest.raises(
        InvalidInputError, match=r"has no '.*another version.*in the place of.*Ask the question again"
    ):
        await go(graph, native, None, thread(), context={})
    assert graph.invoke(given, thread())["status"] == "grounded"


def test_a_prompts_own_text_is_shown_and_means_itself() -> None:
    """Studio's form holds the text of the prompt file; sent back unchanged, a Chinese run has the Chinese one."""
    shown = CragContext.model_json_schema()["properties"]["answer_instructions"]["default"]
    assert shown.startswith("You answer questions about a collection of documents.")
    assert CragContext(answer_instructions=shown).answer_instructions is None
    assert CragContext(answer_instructions=f"{shown} Be kind.").answer_instructions.endswith("Be kind.")  # type: ignore[union-attr]
