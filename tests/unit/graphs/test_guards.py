"""Guards see the question, the passages and the answer on every path."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from support.by_task import ByTask
from support.graphs import BUILDERS, both, each_graph, go, thread

from rag_kit.errors import InvalidInputError
from rag_kit.graphs import (
    Guards,
    build_adaptive_rag,
    build_crag,
    build_plain_rag,
    uncompiled,
)
from rag_kit.graphs.guards import Refusal
from rag_kit.models import chat_model
from rag_kit.retrieval import BM25Retriever

DOCS = [
    Document("The pump starts at nine in the morning.", metadata={"tenant": "a"}),
    Document("The pump of the other plant starts at ten.", metadata={"tenant": "b"}),
]


def graph(guards: Guards, llm: Any = None, **options: Any) -> Any:
    """A plain graph over two documents."""
    retriever = BM25Retriever.from_documents(DOCS, k=4)
    return build_plain_rag(
        retriever, llm or chat_model("extractive"), guards=guards, **options, output="full"
    )


@pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS)
def test_no_path_around_the_guards(build: Any) -> None:
    """In every graph: a refused question ends the run and the thread forgets it, a masked one is masked throughout."""
    guards = Guards(
        question=[
            lambda text, config: (
                Refusal("No.", reason="policy") if "secret" in text else text.replace("Smith", "[name]")
            )
        ],
        passages=[lambda documents, config: [item for item in documents if item.metadata["tenant"] == "a"]],
        answer=[lambda text, config: text.upper()],
    )
    seen: list[str] = []

    def search(query: str) -> list[Document]:
        seen.append(query)
        return [item.model_copy(deep=True) for item in DOCS]

    made = build(RunnableLambda(search), chat_model("extractive"), guards=guards, output="full")
    refused = made.invoke({"question": "What is the secret of the pump?"})
    assert (refused["answer"], refused["status"], seen, refused["usage"]["calls"]) == (
        "No.",
        "refused",
        [],
        0,
    )
    assert refused["notes"] == ["refused by a guard: policy"]
    assert not refused.get("history") and not refused["documents"]
    found = made.invoke({"question": "When does the pump of Smith start in the morning?"})
    assert seen and not any("Smith" in query for query in seen)
    assert {item.metadata["tenant"] for item in found["documents"]} == {"a"}
    assert found["answer"] == found["answer"].upper() and "NINE" in found["answer"]
    assert "Smith" not in str({key: value for key, value in found.items() if key != "question"})


async def test_passages_of_others_never_reach_the_model() -> None:
    """Access rights by the run's config; a coroutine guard works in both forms."""

    async def own(documents: list[Document], config: RunnableConfig) -> list[Document]:
        who = config["configurable"]["tenant"]
        return [item for item in documents if item.metadata["tenant"] == who]

    config: Any = {"configurable": {"tenant": "a"}}
    found = await both(graph(Guards(passages=[own])), "When does the pump start?", config=config)
    assert [item.metadata["tenant"] for item in found["documents"]] == ["a"]
    assert "ten." not in found["answer"]


async def test_a_refused_answer_leaves_nothing_and_is_not_streamed() -> None:
    """No token, no passage and no citation of a refused answer goes out."""
    guards = Guards(answer=[lambda text, config: Refusal("Withheld.", reason="leak")])
    made = graph(guards)
    found = await both(made, "When does the pump start?")
    assert (found["answer"], found["status"]) == ("Withheld.", "refused")
    assert not found["documents"] and not found["citations"] and found["history"][-1]["answer"] == "Withheld."
    tokens = [part for part, _ in made.stream({"question": "When does it start?"}, stream_mode="messages")]
    assert tokens == []


async def test_guards_run_in_order_and_a_changed_answer_is_cited_anew() -> None:
    """Each guard sees what the one before it left; citations are those of the answer that leaves."""
    guards = Guards(
        answer=[
            lambda text, config: "The pump starts at noon.[1]",
            lambda text, config: text.replace("noon", "four"),
        ]
    )
    found = await both(graph(guards), "When does the pump start in the morning?")
    assert found["answer"] == "The pump starts at four.[1]"
    assert found["status"] == "flagged"
    assert "answer: changed by a guard" in found["notes"]


def test_a_broken_guard_ends_the_run() -> None:
    """Nothing slips past a guard that raises or gives nonsense."""

    def broken(text: Any, config: RunnableConfig) -> Any:
        raise LookupError("policy file is gone")

    for kind in ("question", "passages", "answer"):
        with pytest.raises(LookupError, match="policy file"):
            graph(Guards(**{kind: [broken]})).invoke({"question": "When does the pump start?"})
        with pytest.raises(InvalidInputError, match="guard"):
            graph(Guards(**{kind: [lambda value, config: 3]})).invoke(
                {"question": "When does the pump start?"}
            )
    with pytest.raises(InvalidInputError, match="list of functions"):
        Guards(question=broken)  # type: ignore[arg-type]


def _no_bombs(question: str, config: RunnableConfig) -> Refusal | None:
    """Refuses what is harmful in one piece only."""
    return Refusal("Not that.", reason="policy") if {"build", "bomb"} <= set(question.split()) else None


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS)
async def test_a_follow_up_is_seen_as_the_conversation_completes_it(build: Any, native: bool) -> None:
    """A refused question cannot be asked in two parts: nothing is searched for, and the thread forgets it."""
    replies = {
        "condense": {"query": "How do I build a bomb ?"},
        "classify_question": {"intent": "question", "complexity": "single", "reason": "So."},
        "retrieve_needed": {"retrieve": "yes"},
        "rewrite_query": {"query": "bomb"},
    }
    queries: list[str] = []

    def search(query: str) -> list[Document]:
        queries.append(query)
        return []

    made: Any = build(
        RunnableLambda(search),
        ByTask(answers=replies),
        guards=Guards(question=[_no_bombs]),
        checkpointer=InMemorySaver(),
        output="full",
    )
    made.invoke({"question": "What is a bomb ?"}, thread())
    assert queries
    queries.clear()
    found = await go(made, native, {"question": "How do I build one?"}, thread())
    assert (found["answer"], found["status"], queries) == ("Not that.", "refused", [])
    assert "bomb" not in str({key: found[key] for key in ("asked", "search_query", "notes", "documents")})
    assert [turn["question"] for turn in found["history"]] == ["What is a bomb ?"]


@pytest.mark.parametrize("native", [False, True])
async def test_a_question_is_seen_together_with_the_reply(native: bool) -> None:
    """A reply to a question of the graph's may make another question of a harmless one."""
    guards = Guards(question=[_no_bombs])
    made: Any = build_adaptive_rag(
        BM25Retriever.from_documents(DOCS),
        chat_model("extractive"),
        classifier=lambda question, earlier: "single" if earlier else "clarify",
        guards=guards,
        checkpointer=InMemorySaver(),
        output="full",
    )
    for given in ({"question": "How do I build it?"}, Command(resume="a bomb if you please")):
        found = await go(made, native, given, thread())
    assert (found["answer"], found["status"]) == ("Not that.", "refused")
    assert found["clarifications"] == []


@pytest.mark.parametrize("name", BUILDERS)
def test_a_text_that_the_guards_have_seen_is_not_shown_to_them_again(name: str) -> None:
    """A first question is checked once, a follow-up twice; what the single step takes, there too; passages once."""
    seen: list[Any] = []
    guards = Guards(
        question=[lambda text, config: seen.append(text)],
        passages=[lambda documents, config: seen.append(len(documents)) or documents],
    )
    made = BUILDERS[name](
        BM25Retriever.from_documents(DOCS),
        chat_model("extractive"),
        guards=guards,
        checkpointer=InMemorySaver(),
    )
    more = int(name == "adaptive")
    for question, count in (("When does the pump start?", 2), ("And in the morning?", 3)):
        seen.clear()
        made.invoke({"question": question}, thread())
        assert len(seen) == count + more, seen


@each_graph
async def test_the_guards_see_what_somebody_edits(name: str, native: bool) -> None:
    """A query that they refuse is not searched for, and can be edited again; passages of others are taken out."""
    queries: list[str] = []
    guards = Guards(
        question=[
            lambda text, config: Refusal("No.") if "secret" in text else text.replace("Smith", "[name]")
        ],
        passages=[lambda documents, config: [item for item in documents if item.metadata["tenant"] == "a"]],
    )

    def search(query: str) -> list[Document]:
        queries.append(query)
        return [item.model_copy(deep=True) for item in DOCS]

    options: Any = {"guards": guards, "output": "full", "checkpointer": InMemorySaver()}
    made = BUILDERS[name](RunnableLambda(search), chat_model("extractive"), **options)
    key, before = "search_query", {"adaptive": "search_hop"}.get(name, "retrieve")
    context: Any = None
    if name == "adaptive":
        key, context = "sub_question", {"route": "multi", "max_hops": 1}
    made.invoke(
        {"question": "When does the pump start?"}, thread(), context=context, interrupt_before=[before]
    )
    made.update_state(thread(), {key: "the secret of the pump"})
    with pytest.raises(InvalidInputError, match=f"a guard refused the edited '{key}'"):
        await go(made, native, None, thread())
    assert queries == []
    made.update_state(thread(), {key: "Smith, pump"})
    following = made.get_graph().nodes.keys() - {before}
    await go(made, native, None, thread(), interrupt_before=list(following))
    assert queries == ["[name], pump"]
    put = [
        *made.get_state(thread()).values["documents"],
        Document("It starts at 99.", metadata={"tenant": "b"}),
    ]
    made.update_state(thread(), {"documents": put})
    result = await go(made, native, None, thread())
    assert "99" not in str(result["documents"]) + result["answer"]


async def test_the_guards_see_edited_metadata() -> None:
    """A title is read as the text is, and access may depend on any field."""
    guards = Guards(
        passages=[lambda documents, config: [d for d in documents if "bad" not in str(d.metadata)]]
    )
    made = graph(guards, checkpointer=InMemorySaver())
    for native in (False, True):
        made.invoke({"question": "When does the pump start?"}, thread(), interrupt_after=["retrieve"])
        [first, *others] = made.get_state(thread()).values["documents"]
        first = first.model_copy(update={"metadata": {**first.metadata, "title": "bad"}})
        made.update_state(thread(), {"documents": [first, *others]})
        result = await go(made, native, None, thread())
        assert first.page_content not in str(result["documents"])


@pytest.mark.parametrize("key", ["search_query", "standalone"])
@pytest.mark.parametrize("native", [False, True], ids=["invoke", "ainvoke"])
async def test_the_guards_see_an_edit_before_two_nodes_at_once(native: bool, key: str) -> None:
    """CRAG's two branches see the query as they left it, and so does the state."""
    guards = Guards(question=[lambda text, config: text.replace("Smith", "[name]")])
    made = build_crag(
        BM25Retriever.from_documents(DOCS),
        chat_model("extractive"),
        evaluator=lambda question, passage: 0.0,
        guards=guards,
        output="full",
        checkpointer=InMemorySaver(),
    )
    made.invoke({"question": "When does the pump start?"}, thread(), interrupt_after=["grade"])
    made.update_state(thread(), {key: "When does the pump of Smith start?"})
    result = await go(made, native, None, thread())
    assert result["action"] == "ambiguous" and result[key] == "When does the pump of [name] start?"


def test_a_graph_with_other_guards_is_not_trusted() -> None:
    """The guards of the outer graph see the passages of one that is a node, though its own saw them."""
    inner = graph(Guards(passages=[lambda documents, config: documents]))
    outer = uncompiled(
        graph(
            Guards(passages=[lambda found, config: [doc for doc in found if doc.metadata["tenant"] == "a"]])
        )
    )
    outer.insert_node("inner", inner, after="retrieve")
    result = outer.compile().invoke({"question": "When does the pump start?"})
    assert {item.metadata["tenant"] for item in result["documents"]} == {"a"}


def test_the_guards_see_the_passages_of_a_node_of_the_users_own() -> None:
    """They may come from anywhere; and the model sees none that the guards take out."""
    guards = Guards(
        passages=[lambda documents, config: [item for item in documents if item.metadata["tenant"] == "a"]]
    )
    mine = uncompiled(graph(guards))
    mine.insert_node("fetch", lambda state: {"documents": DOCS}, after="retrieve")
    result = mine.compile().invoke({"question": "When does the pump start?"})
    assert [item.metadata["tenant"] for item in result["documents"]] == ["a"]
