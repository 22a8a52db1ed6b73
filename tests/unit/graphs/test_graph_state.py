"""What somebody edits in a thread's state is refused before it is kept, in words that say what to give."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver

from rag_kit.errors import InvalidInputError
from rag_kit.graphs import build_crag
from rag_kit.models import chat_model


@pytest.mark.parametrize("key", ["history", "documents", "notes", "usage", "retrieved", "strips", "external"])
@pytest.mark.parametrize("value", [None, 5, "x", {"calls": "many"}, float("nan")])
def test_a_wrong_type_is_refused_and_the_thread_goes_on(key: str, value: Any) -> None:
    """No bare TypeError, no text taken apart into its letters; what was kept before is there still."""
    retriever: Any = RunnableLambda(lambda query: [Document("The fan starts at 60 degrees.")])
    graph = build_crag(retriever, chat_model("extractive"), checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "1"}}
    before = graph.invoke({"question": "When does the fan start?"}, config)
    with pytest.raises(InvalidInputError, match="give "):
        graph.update_state(config, {key: value})
    assert graph.get_state(config).values[key] == before[key]
