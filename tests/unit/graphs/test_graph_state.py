"""What somebody edits in a thread's state is refused before it is kept, in words that say what to give."""

from __future__ import annotations

from asyncio import to_thread
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from support.graphs import BUILDERS, fixed, thread

from rag_kit.errors import InvalidInputError
from rag_kit.graphs import build_crag
from rag_kit.graphs.crag.state import CragContext
from rag_kit.models import chat_model

FAN = "The fan starts at 60 degrees."


@pytest.mark.parametrize("key", ["history", "documents", "notes", "usage", "strips", "web_documents"])
@pytest.mark.parametrize("value", [None, 5, "x", {"calls": "many"}, float("nan")])
def test_a_wrong_type_is_refused_and_the_thread_goes_on(key: str, value: Any) -> None:
    """No bare TypeError, no text taken apart into its letters; what was kept before is there still."""
    retriever: Any = RunnableLambda(lambda query: [Document("The fan starts at 60 degrees.")])
    graph = build_crag(retriever, chat_model("extractive"), checkpointer=InMemorySaver(), output="full")
    config: Any = {"configurable": {"thread_id": "1"}}
    before = graph.invoke({"question": "When does the fan start?"}, config)
    with pytest.raises(InvalidInputError, match="give "):
        graph.update_state(config, {key: value})
    assert graph.get_state(config).values[key] == before[key]


AFTER = {
    "plain": "retrieve",
    "conversational": "retrieve",
    "crag": "retrieve",
    "self-rag": "finish",
    "reflect": "finish",
    "adaptive": "search_hop",
}


@pytest.mark.parametrize("native", [False, True], ids=["invoke", "ainvoke"])
@pytest.mark.parametrize("name", BUILDERS)
async def test_a_state_of_another_version_is_named_and_a_new_turn_goes_on(name: str, native: bool) -> None:
    """Resumed in the middle with keys missing, as an older version left them: the kit's own error, no KeyError."""
    graph = BUILDERS[name](fixed(FAN), chat_model("extractive"), checkpointer=InMemorySaver(), output="full")
    given = {"question": "When does the fan start?"}
    graph.update_state(thread(), given, as_node=AFTER[name])
    with pytest.raises(InvalidInputError, match=r"has no '.*another version.*Ask the question again"):
        await (graph.ainvoke(None, thread()) if native else to_thread(graph.invoke, None, thread()))
    assert graph.invoke(given, thread())["status"] == "grounded"


def test_a_prompts_own_text_is_shown_and_means_itself() -> None:
    """Studio's form holds the text of the prompt file; sent back unchanged, a Chinese run has the Chinese one."""
    shown = CragContext.model_json_schema()["properties"]["answer_instructions"]["default"]
    assert shown.startswith("You answer questions about a collection of documents.")
    assert CragContext(answer_instructions=shown).answer_instructions is None
    assert CragContext(answer_instructions=f"{shown} Be kind.").answer_instructions.endswith("Be kind.")  # type: ignore[union-attr]
