"""States that a person edits: what follows stays, and follows from what was edited; a turn begins clean."""

from __future__ import annotations

import itertools
from typing import Any, Literal

import pytest
from langchain_core.documents import Document
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, Overwrite
from support.by_task import by_task, labels
from support.graphs import BUILDERS, each_graph, fixed, go, thread

from rag_kit.errors import InvalidInputError
from rag_kit.graphs import (
    Guards,
    build_adaptive_rag,
    build_conversational_rag,
    build_crag,
    build_self_rag,
    uncompiled,
)
from rag_kit.graphs.adaptive.nodes import FIRST_NODE
from rag_kit.graphs.crag.state import CragState
from rag_kit.graphs.state import check_types
from rag_kit.models import chat_model
from rag_kit.retrieval import BM25Retriever

FAN, TEA = "The fan starts at 60 degrees.", "Tea is hot."
ASKED: Any = {"question": "At how many degrees does the fan start?"}


def extractive() -> Any:
    return chat_model("extractive")


def searching(*texts: str) -> Any:
    return BM25Retriever.from_texts(list(texts or (FAN, TEA)), k=2)


@tool
def web(query: str) -> Any:
    """Search the web."""
    return [{"url": "https://a.example/x", "content": "The lamp of the web starts at 90 degrees."}]


QUESTIONS = {
    "one step": "At how many degrees does the fan start?",
    "nothing is found": "Who painted the ceiling?",
    "several steps": "Is the fan older than the lamp?",
    "talk": "Thanks!",
    "unclear": "When does it start?",
}
CONTEXTS: dict[str, Any] = {
    "conversational": {"related_questions": 2, "max_history_turns": 1},
    "adaptive": {"clarify": False},
}


def checkpoints(graph: Any, question: str, context: Any) -> list[Any]:
    """All checkpoints of a second turn, the first of them first."""
    graph.invoke(ASKED, thread(), context=context)
    graph.invoke({"question": question}, thread(), context=context)
    return list(graph.get_state_history(thread()))[::-1]


@pytest.mark.parametrize(
    ("name", "question"),
    [
        pytest.param(name, QUESTIONS[kind], id=f"{name}, {kind}", marks=pytest.mark.slow if often else [])
        for name in BUILDERS
        for kind in QUESTIONS
        for often in [name != "adaptive" and kind not in ("one step", "nothing is found")]
    ],
)
def test_an_edit_as_any_node_leaves_what_follows(name: str, question: str) -> None:
    """``update_state(..., as_node=node)`` after each node of each run: the run would go on as it did."""
    options: Any = {"web_search": web} if name in ("crag", "adaptive") else {}
    graph = BUILDERS[name](searching(), extractive(), checkpointer=InMemorySaver(), **options)
    history = checkpoints(graph, question, CONTEXTS.get(name))
    seen = 0
    for before, after in itertools.pairwise(history):
        if len(before.next) != 1 or before.next == ("__start__",):
            continue  # of several at once each has its own way; the next test is about those
        edited = graph.update_state(after.config, {"notes": ["edited"]}, as_node=before.next[0])
        assert graph.get_state(edited).next == after.next, before.next
        seen += 1
    assert seen >= 8


def test_an_edit_after_two_nodes_at_once_goes_on_with_the_one_that_is_named() -> None:
    """Refinement and the web run side by side; as either of them, its own way is taken."""
    graph = build_crag(searching(), extractive(), web_search=web, checkpointer=InMemorySaver())
    graph.invoke(ASKED, thread(), context={"lower": -1.0, "upper": 1.0})
    history = list(graph.get_state_history(thread()))[::-1]
    both = next(state for state in history if {*state.next} == {"refine", "rewrite_query"})
    after = history[history.index(both) + 1]
    as_web = graph.update_state(after.config, {"web_query": "lamp"}, as_node="rewrite_query")
    assert "web_search" in graph.get_state(as_web).next
    as_inside = graph.update_state(after.config, {"notes": ["mine"]}, as_node="refine")
    assert graph.get_state(as_inside).next == ("generate",)


@each_graph
async def test_another_query_at_a_pause_is_searched_for(name: str, native: bool) -> None:
    """The pause before the search, an edit of ``search_query``; what is answered is the user's own question."""
    retriever = fixed(FAN)
    graph = BUILDERS[name](retriever, extractive(), checkpointer=InMemorySaver())
    before = "classify" if name == "adaptive" else "retrieve"
    graph.invoke({"question": "Is tea hot?"}, thread())
    graph.invoke(ASKED, thread(), interrupt_before=[before])
    graph.update_state(thread(), {"search_query": "another query"})
    assert graph.get_state(thread()).next == (before,)
    result = await go(graph, native, None, thread())
    assert retriever.queries[-1].startswith("another query")  # of Self-RAG with the answer so far
    assert (result["answer"], result["status"]) == (f"{FAN}[1]", "grounded")


@pytest.mark.parametrize(
    ("name", "pause", "key"),
    [
        *((name, {"interrupt_before": ["retrieve"]}, "search_query") for name in ("plain", "conversational", "crag")),
        ("adaptive", {"interrupt_after": ["next_hop"], "context": {"route": "multi"}}, "sub_question"),
    ],
)  # fmt: skip
async def test_an_empty_query_searches_nothing(name: str, pause: Any, key: str) -> None:
    """A store of vectors would find whatever is there; the answer says that nothing was searched."""
    retriever = fixed(FAN)
    graph = BUILDERS[name](retriever, extractive(), checkpointer=InMemorySaver())
    for native in (False, True):
        graph.invoke(ASKED, thread(), **pause)
        graph.update_state(thread(), {key: ""})
        result = await go(graph, native, None, thread())
        assert (result["status"], retriever.queries) == ("incomplete", [])
        assert "nothing was searched" in " ".join(result["notes"])


@pytest.mark.parametrize(
    ("edit", "answered"),
    [({"search_query": "bulb"}, "When does the lamp start?"), ({"standalone": "Which fan?"}, "Which fan?")],
    ids=["search_query", "standalone"],
)
@pytest.mark.parametrize("name", BUILDERS)
def test_another_query_of_a_follow_up_is_searched_for(name: str, edit: Any, answered: str) -> None:
    """The question that the conversation completed is answered, or what an editor puts in its place."""
    good = {"relevant": True, "score": 0.9, "reason": ""}
    answers = {
        "condense": {"query": "When does the lamp start?"},
        "classify_question": {"intent": "question", "complexity": "single", "reason": ""},
        "retrieve_needed": {"retrieve": "yes"},
        "grade_passages": {"grades": [{"id": 1, **good}]},
        **dict.fromkeys(("answer", "continue_answer"), f"{FAN}[1]"),
        **dict.fromkeys(("grade_support", "grade_usefulness"), good),
        "critique": labels(),
    }
    llm = by_task(answers)
    retriever = fixed(FAN)
    graph = BUILDERS[name](retriever, llm, checkpointer=InMemorySaver())
    before = {"adaptive": "classify", "self-rag": "decide_retrieval"}.get(name, "retrieve")
    graph.invoke(ASKED, thread())
    graph.invoke({"question": "And the lamp?"}, thread(), interrupt_before=[before])
    graph.update_state(thread(), edit)
    llm.asked.clear()
    graph.invoke(None, thread())
    assert retriever.queries[-1].startswith(edit.get("search_query", "When does the lamp start?"))
    assert all(f"<question>{answered}</question>" in body for _, body in llm.asked), llm.asked


@pytest.mark.parametrize("name", [name for name in BUILDERS if name != "adaptive"])
def test_other_documents_at_a_pause_are_answered_from(name: str) -> None:
    """Passages that a person puts in after the search, as Documents or as JSON, are what the answer rests on."""
    graph = BUILDERS[name](fixed("It is 20 degrees outside."), extractive(), checkpointer=InMemorySaver())
    for put in (
        Document(FAN, metadata={"file": "fan.md"}),
        {"page_content": FAN, "metadata": {"file": "fan.md"}},
    ):
        config = thread(str(put)[:20])
        graph.invoke(ASKED, config, interrupt_after=["retrieve"])
        graph.update_state(config, {"documents": [put]})
        result = graph.invoke(None, config)
        assert (result["answer"], result["status"]) == (f"{FAN}[1]", "grounded"), name
        assert [document.metadata["file"] for document in result["documents"]] == ["fan.md"]


def test_other_documents_of_a_step_are_noted_and_answered_from() -> None:
    """In the steps of the adaptive graph too, before the step's answer and before the last one."""
    graph = build_adaptive_rag(
        searching("The Rhine is 1230 km long.", "The Danube is 2850 km long."),
        extractive(),
        checkpointer=InMemorySaver(),
        output="full",
    )
    question = {"question": "Compare the length of the Danube and the Rhine."}
    graph.invoke(question, thread(), interrupt_after=["search_hop"])
    mine = [Document("The Danube is 2 km long."), Document("The Rhine is 1 km long.")]
    graph.update_state(thread(), {"documents": mine})
    result = graph.invoke(None, thread(), interrupt_after=["answer_hop"])
    assert result["hops"][0]["answer"] == "The Danube is 2 km long."
    result = graph.invoke(None, thread(), interrupt_before=["conclude"])
    graph.update_state(thread(), {"documents": [Document("The Danube is 9 km long.")]})
    assert "9 km" in graph.invoke(None, thread())["answer"]


def test_an_edit_of_the_action_takes_the_other_way() -> None:
    """Corrective RAG at the pause after grading."""
    graph = build_crag(searching(), extractive(), web_search=web, checkpointer=InMemorySaver())
    asked = {"question": "At how many degrees does the lamp start?"}
    for action, follows in (
        ("correct", {"refine"}),
        ("incorrect", {"rewrite_query"}),
        ("ambiguous", {"refine", "rewrite_query"}),
    ):
        graph.invoke(asked, thread(action), interrupt_after=["grade"])
        graph.update_state(thread(action), {"action": action})
        assert {*graph.get_state(thread(action)).next} == follows
    result = graph.invoke(None, thread("incorrect"))
    assert [document.metadata["origin"] for document in result["documents"]] == ["web"]
    assert {"origin": "web"}.items() <= graph.invoke(None, thread("ambiguous"))["documents"][
        -1
    ].metadata.items()
    assert not any("origin" in d.metadata for d in graph.invoke(None, thread("correct"))["documents"])


def test_an_edit_of_the_web_query_is_what_leaves_or_keeps_it_in() -> None:
    """Another query is searched for; an empty one keeps the run from the web."""
    asked: list[str] = []

    @tool
    def noting(query: str) -> Any:
        """Search the web."""
        asked.append(query)
        return []

    graph = build_crag(searching(), extractive(), web_search=noting, checkpointer=InMemorySaver())
    for query in ("lamp degrees", ""):
        graph.invoke(
            {"question": "Who painted the ceiling?"}, thread(query), interrupt_after=["rewrite_query"]
        )
        graph.update_state(thread(query), {"web_query": query})
        assert graph.get_state(thread(query)).next == (("web_search",) if query else ("generate",))
        graph.invoke(None, thread(query))
    assert asked == ["lamp degrees"]
    alone = build_crag(searching(), extractive(), checkpointer=InMemorySaver())
    alone.invoke({"question": "Who painted the ceiling?"}, thread(), interrupt_after=["rewrite_query"])
    alone.update_state(thread(), {"web_query": "lamp"})
    assert any("no web search was given" in note for note in alone.invoke(None, thread())["notes"])


def test_a_query_that_was_put_in_waits_for_a_person_where_the_run_asks_one() -> None:
    """A node of a user's own that writes the query alone does not lead past the approval."""
    graph = uncompiled(build_crag(searching(), extractive(), web_search=web))
    graph.replace_node("rewrite_query", lambda state: {"web_query": "lamp", "documents": []})
    made = graph.compile(InMemorySaver())
    question: Any = {"question": "Who painted the ceiling?"}
    waiting = made.invoke(question, thread(), context={"approve_web": True})
    assert waiting["__interrupt__"][0].value["query"] == "lamp"
    assert made.invoke(Command(resume=False), thread(), context={"approve_web": True})["status"] == "declined"
    assert "__interrupt__" not in made.invoke(question, thread("2"))


MULTI = {"route": "multi"}


@pytest.mark.parametrize(
    ("name", "context", "ran", "edited", "edit", "follows"),
    [
        *(
            ("adaptive", None, "classify", "classify", {"route": route}, node)
            for route, node in FIRST_NODE.items()
        ),
        ("adaptive", MULTI, "next_hop", "next_hop", {"sub_question": ""}, "conclude"),
        ("adaptive", MULTI, "next_hop", "next_hop", {"sub_question": "When?"}, "search_hop"),
        ("reflect", None, "grade_documents", "grade_documents", {"documents": []}, "rewrite_query"),
        ("reflect", None, "grade_documents", "grade_documents", {"documents": [Document(FAN)]}, "generate"),
        ("reflect", None, "grade_documents", "rewrite_query", {"search_query": "fan start"}, "retrieve"),
        ("reflect", None, "grade_documents", "rewrite_query", {"search_query": ASKED["question"]}, "finish"),
    ],
)
def test_an_edit_of_what_chooses_the_way_is_followed(
    name: str, context: Any, ran: str, edited: str, edit: Any, follows: str
) -> None:
    """The route, another step or none, passages or none, a new query or one that was tried."""
    graph = BUILDERS[name](searching(), extractive(), checkpointer=InMemorySaver())
    graph.invoke(ASKED, thread(), context=context, interrupt_after=[ran])
    graph.update_state(thread(), edit, as_node=edited)
    assert graph.get_state(thread()).next == (follows,)


@pytest.mark.parametrize(
    ("name", "route"), [("plain", None), ("adaptive", {"route": "single"}), ("adaptive", MULTI)]
)
def test_an_edited_answer_is_what_is_checked(name: str, route: Any) -> None:
    """The citations of the edit, not those of what the model wrote, nor those that a step checked before."""
    graph = BUILDERS[name](fixed(FAN, TEA), extractive(), checkpointer=InMemorySaver())
    graph.invoke(ASKED, thread(), context=route, interrupt_before=["finish" if route else "cite"])
    graph.update_state(thread(), {"answer": "The fan starts at 75 degrees.[1]"})
    result = graph.invoke(None, thread())
    assert (result["status"], result["answer"]) == ("flagged", "The fan starts at 75 degrees.[1]")
    edit = {"answer": "The fan starts at 80 degrees.[1]"}  # after the end of the turn
    graph.update_state(thread(), edit, as_node="conclude" if route else "answer")
    assert graph.invoke(None, thread())["status"] == "flagged"
    assert graph.get_state(thread()).values["history"] == [{**ASKED, **edit}]


@pytest.mark.parametrize(
    "replace", [Overwrite, lambda turns: {"__overwrite__": turns}], ids=["python", "http"]
)
def test_edited_turns_are_what_later_ones_are_told(replace: Any) -> None:
    """Somebody takes a name out of ``history``; a list alone, as of an earlier script, is one turn more."""
    graph = BUILDERS["plain"](fixed(FAN), extractive(), checkpointer=InMemorySaver())
    graph.invoke({"question": "I am Ann. When does the fan start?"}, thread())
    turns = [{"question": "When does the fan start?", "answer": f"{FAN}[1]"}]
    graph.update_state(thread(), {"history": replace(turns)})
    graph.update_state(thread(), {"history": [{"question": "What is tea?", "answer": "A drink."}]})
    graph.invoke({"question": "Is tea hot?"}, thread())
    history = graph.get_state(thread()).values["history"]
    assert history[:1] == turns and len(history) == 3 and "Ann" not in str(history)
    graph.update_state(thread(), {"history": replace([{"question": "Is tea hot?"}])})
    with pytest.raises(
        InvalidInputError, match="as 'history'; give turns, a list of dicts with question and answer"
    ):
        graph.invoke(ASKED, thread())
    graph.update_state(thread(), {"history": replace(None)})
    graph.invoke({"question": "Is tea hot?"}, thread(), interrupt_before=["retrieve"])
    graph.update_state(thread(), {key: replace(None) for key in ("guarded", "notes", "unsearched")})
    graph.invoke(None, thread())
    assert len(graph.get_state(thread()).values["history"]) == 1


@pytest.mark.parametrize("name", BUILDERS)
def test_a_question_that_is_asked_twice_is_two_turns(name: str) -> None:
    """In the history each stays, also where the single step gave the answer."""
    graph = BUILDERS[name](fixed(FAN), extractive(), checkpointer=InMemorySaver())
    for _ in range(2):
        graph.invoke(ASKED, thread())
    assert [turn["question"] for turn in graph.get_state(thread()).values["history"]] == [
        ASKED["question"]
    ] * 2


@pytest.mark.parametrize("name", BUILDERS)
def test_a_turn_begins_with_nothing_of_the_one_before(name: str) -> None:
    """Before its first node has run already, and also where that node fails: no answer, status or passage is left."""
    graph = BUILDERS[name](fixed(FAN), extractive(), checkpointer=InMemorySaver())
    graph.invoke(ASKED, thread())
    first = "condense" if name == "plain" else "begin"
    result = graph.invoke({"question": "Is tea hot?"}, thread(), interrupt_before=[first])
    values = graph.get_state(thread()).values
    assert values["question"] == "Is tea hot?" and len(values["history"]) == 1
    for key in (
        "answer",
        "status",
        "citations",
        "uncited",
        "documents",
        "notes",
        "unsearched",
        "cut_off",
        "choices",
    ):
        assert not values[key], key
    assert values["usage"] == {"calls": 0, "tokens": 0, "seconds": 0.0}
    assert not result["answer"] and not result["status"]

    def broken(question: str, config: Any) -> None:
        if "tea" in question:
            raise RuntimeError("no guard")

    failing = BUILDERS[name](
        fixed(FAN), extractive(), checkpointer=InMemorySaver(), guards=Guards(question=[broken])
    )
    assert failing.invoke(ASKED, thread())["status"] == "grounded"
    with pytest.raises(RuntimeError, match="no guard"):
        failing.invoke({"question": "Is tea hot?"}, thread())
    values = failing.get_state(thread()).values
    assert values["question"] == "Is tea hot?" and not values["status"] and not values["answer"]


@pytest.mark.parametrize("name", BUILDERS)
def test_nodes_stand_before_and_after_every_node(name: str) -> None:
    """Also the first, the last, and those that choose the way; each inserted node runs with its neighbour."""
    given = BUILDERS[name](fixed(FAN, TEA), extractive())
    for node in list(given.builder.nodes):
        graph = uncompiled(given)
        graph.insert_node("ahead", lambda state: None, before=node)
        graph.insert_node("behind", lambda state: None, after=node)
        made = graph.compile()
        visited = [key for part in made.stream(ASKED, stream_mode="updates") for key in part]
        assert visited.count("ahead") == visited.count("behind") == visited.count(node), node
        if node in visited:
            at = visited.index(node)
            assert "ahead" in visited[:at] and "behind" in visited[at:], node
    graph = uncompiled(given)
    for options in ({}, {"after": "cite", "before": "cite"}):
        with pytest.raises(InvalidInputError, match="one of after= and before="):
            graph.insert_node("mine", lambda state: {}, **options)


@pytest.mark.parametrize(
    ("name", "node", "key"),
    [
        ("plain", "retrieve", "documents"),
        ("plain", "answer", "answer"),
        ("conversational", "retrieve", "documents"),
        ("crag", "retrieve", "documents"),
        ("crag", "grade", "action"),
        ("crag", "generate", "answer"),
        ("self-rag", "retrieve", "documents"),
        ("reflect", "grade_documents", "documents"),
        ("adaptive", "classify", "route"),
        ("adaptive", "single", "answer"),
        ("adaptive", "finish", "status"),
        *((name, "cite", "status") for name in BUILDERS if name != "adaptive"),
    ],
)
def test_a_replaced_node_that_forgets_a_key_is_named_with_it(name: str, node: str, key: str) -> None:
    """No answer from nothing: an error that says which node gave no which key."""
    forms: list[Any] = [lambda state: None]
    if (name, node) == ("plain", "retrieve"):
        forms += [lambda state: {"retrieved": []}, lambda state: Command(update={"x": 1})]
    for forgetful in forms:
        graph = uncompiled(BUILDERS[name](fixed(FAN), extractive()))
        graph.replace_node(node, forgetful)
        with pytest.raises(InvalidInputError, match=f"the node '{node}' gave no '{key}'"):
            graph.compile().invoke(ASKED)


def test_a_replaced_node_that_chooses_says_so_or_is_named() -> None:
    """By the state's ``choices``, or by a Command, which takes the place of the edges."""
    given = build_conversational_rag(fixed(FAN), extractive())
    graph = uncompiled(given)
    graph.replace_node(
        "begin", lambda state: {"language": "en", "asked": "q", "search_query": "q", "facts": []}
    )
    with pytest.raises(
        InvalidInputError, match=r"which node follows 'begin' .*'choices|which node follows 'begin'"
    ):
        graph.compile().invoke(ASKED)
    begun = {"language": "en", "asked": ASKED["question"], "search_query": "fan start", "facts": []}
    graph.replace_node("begin", lambda state: {**begun, "choices": {"begin": "retrieve"}})
    assert graph.compile().invoke(ASKED)["status"] == "grounded"

    def begin(state: Any) -> Command[Any]:
        return Command(update=begun, goto="retrieve")

    begin.__annotations__["return"] = Command[Literal["retrieve"]]
    graph.replace_node("begin", begin)
    assert graph.compile().invoke(ASKED)["status"] == "grounded"


@pytest.mark.parametrize("name", BUILDERS)
def test_a_checkpoint_holds_each_passage_once(name: str) -> None:
    """Whatever the graph has done with them: no key repeats the text of a passage."""
    long = "The fan starts at 60 degrees. " + "The paint of the fan is blue, and nobody knows why it is. " * 6
    graph = BUILDERS[name](fixed(long, TEA), extractive(), checkpointer=InMemorySaver())
    for question in (ASKED["question"], "Is the fan older than the lamp?"):
        graph.invoke({"question": question}, thread(question))
        for state in graph.get_state_history(thread(question)):
            held = {
                key: value
                for key, value in state.values.items()
                if key not in ("answer", "history", "citations")
            }
            assert str(held).count("nobody knows why it is. The paint of the fan") <= 6, state.next


def test_the_modes_of_self_rag_have_states_of_their_own() -> None:
    """Each mode hides the keys of the other, in the state and in its schema."""
    states = {}
    for mode in ("paper", "reflect"):
        graph = build_self_rag(fixed(FAN), extractive(), mode=mode, output="full")
        states[mode] = set(graph.invoke(ASKED))
        assert states[mode] <= set(graph.get_output_jsonschema()["properties"])
    assert {"beams", "candidates", "scoring", "segment"} <= states["paper"] - states["reflect"]
    assert {"drafts", "round", "tried", "generations"} <= states["reflect"] - states["paper"]


def test_an_edit_that_cannot_be_read_says_so() -> None:
    """Whatever is put in, the error is the caller's (400 of a server), and names what is allowed."""
    graph = build_crag(searching(), extractive(), checkpointer=InMemorySaver())
    graph.invoke(ASKED, thread())
    for documents in ([{"text": "The fan"}], [None], "The fan", [{"page_content": None}]):
        with pytest.raises(InvalidInputError, match="give Documents, or dicts with page_content"):
            graph.update_state(thread(), {"documents": documents}, as_node="retrieve")
    with pytest.raises(InvalidInputError, match="notes or unsearched; give a list"):
        graph.update_state(thread(), {"notes": [{}]}, as_node="retrieve")
    for key, allowed in (
        ("web_documents", "Documents, or dicts with"),
        ("strips", "a list"),
        ("notes", "a list"),
    ):
        with pytest.raises(InvalidInputError, match=f"as '{key}'; give {allowed}"):
            check_types(CragState, {key: "x"})  # as a node finds it after an edit that overwrites it
    for action in (["correct"], {}, "right", None):
        with pytest.raises(InvalidInputError, match=r"the action .*; allowed: correct, incorrect, ambiguous"):
            graph.update_state(thread(), {"action": action}, as_node="grade")
    adaptive = build_adaptive_rag(searching(), extractive(), checkpointer=InMemorySaver())
    adaptive.invoke(ASKED, thread())
    for route in (["single"], "next_hop"):
        with pytest.raises(InvalidInputError, match=r"the route .*; allowed: direct, single, multi, clarify"):
            adaptive.update_state(thread(), {"route": route}, as_node="classify")


@pytest.mark.parametrize(
    ("name", "before", "edit"),
    [
        ("plain", "retrieve", {"search_query": 7}),
        ("crag", "refine", {"gradings": 5}),
        ("crag", "web_search", {"web_query": 7}),
        ("reflect", "retrieve", {"tried": 5}),
        ("conversational", "cite", {"answer": 5}),
    ],
)
async def test_a_value_of_the_wrong_type_is_named_with_its_key(name: str, before: str, edit: Any) -> None:
    """By the node that cannot use it, in both forms."""
    options: Any = {"web_search": web} if before == "web_search" else {}
    graph = BUILDERS[name](searching(), extractive(), checkpointer=InMemorySaver(), **options)
    context: Any = {"lower": 0.9, "upper": 1.0} if options else None
    graph.invoke(ASKED, thread(), context=context, interrupt_before=[before])
    graph.update_state(thread(), edit)
    [(key, value)] = edit.items()
    with pytest.raises(InvalidInputError, match=f"the state holds {value} as '{key}'; give a "):
        graph.invoke(None, thread())
    with pytest.raises(InvalidInputError, match=f"as '{key}'"):
        await graph.ainvoke(None, thread())
