"""The adaptive graph, put together; CRAG is one of its nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Unpack

from langchain_core.documents import Document
from langchain_core.runnables import Runnable
from langgraph.graph import END
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Overwrite

from rag_kit.errors import BudgetExceededError, InvalidInputError
from rag_kit.graphs.adaptive.nodes import FIRST_NODE, AdaptiveNodes, Classifier, classify_by_rule
from rag_kit.graphs.adaptive.state import MAX_CLARIFICATIONS, MAX_HOPS, AdaptiveContext, AdaptiveState
from rag_kit.graphs.context import both_filters, run_context
from rag_kit.graphs.crag.build import build_crag
from rag_kit.graphs.running import GraphNode, name_caps, remaining_caps, run_graph
from rag_kit.graphs.state import Update, empty_state, question_of
from rag_kit.graphs.wiring import READY, CompiledRag, GraphOptions, RagGraph, by_key, if_set, uncompiled

#: Steps of the longest run: each clarification takes three, each hop three; and the rest, with room for CRAG's own.
STEPS = 3 * MAX_CLARIFICATIONS + 3 * MAX_HOPS + 20
#: The keys that are taken over from the state of CRAG.
_KEYS_FROM_CRAG = (
    "search_query", "documents", "answer", "cut_off", "citations", "uncited", "status", "unsearched", "usage",
)  # fmt: skip


def build_adaptive_rag(
    retriever: Runnable[str, list[Document]],
    llm: Runnable[Any, Any],
    *,
    classifier: Classifier | Literal["model", "rule"] = "model",
    evaluator: Any = None,
    web_search: Any = None,
    **options: Unpack[GraphOptions],
) -> CompiledRag[AdaptiveState]:
    """Build Adaptive-RAG: a classifier judges what a question needs, and it is answered in that way.

    - ``direct``: talk is answered without looking anything up (status ``unsourced``).
    - ``single``: one search, by CRAG as a subgraph.
    - ``multi``: sub-questions one after the other, each with the answers so far in view, at most ``max_hops``; then
      an answer from the passages of all of them.
    - ``clarify``: a question back to the user. With a checkpointer the run waits (``interrupt``) and goes on with
      ``Command(resume="...")``; else the question back is the answer (status ``clarify``).

    What the classifier gives beside these is looked up in one step, and ``notes`` say so. It sees the user's own
    words alone. Paper: Jeong et al., Adaptive-RAG, arXiv 2403.14403; the question back is ours.

    Args:
        retriever: Any LangChain retriever, or another runnable from a string to documents.
        llm: Any LangChain chat model.
        classifier: ``"model"``, ``"rule"`` (`classify_by_rule`), or a function of the question and the user's earlier
            questions that gives a ``Classification`` or the name of a route; a coroutine function too.
        evaluator: CRAG's evaluator of passages; see `build_crag`.
        web_search: CRAG's web search; None: nothing ever leaves.
        **options: Those of all graphs: prompts, guards, output, checkpointer and others; see `GraphOptions`.

    Returns:
        A compiled graph. Per-run settings are `AdaptiveContext`.

    Raises:
        InvalidInputError: A part is of the wrong kind, or a prompt file is wrong.

    Example:
        >>> from rag_kit.models import chat_model
        >>> from rag_kit.retrieval import BM25Retriever
        >>> texts = ["Alien was released in 1979.", "Blade Runner was released in 1982."]
        >>> retriever = BM25Retriever.from_texts(texts, k=2)
        >>> graph = build_adaptive_rag(retriever, chat_model("extractive"), output="full")
        >>> result = graph.invoke({"question": "Compare Alien and Blade Runner in terms of release."})
        >>> result["route"], [hop["question"] for hop in result["hops"]]
        ('multi', ['Alien release', 'Blade Runner release'])
        >>> graph.invoke({"question": "When does it start?"})["answer"]
        'What is your question about?'
    """
    if classifier not in ("model", "rule") and not callable(classifier):
        raise InvalidInputError(
            f"classifier is {classifier!r}; give 'model', 'rule' or a function of a question and earlier ones."
        )
    by_name = {"model": None, "rule": classify_by_rule}
    function: Any = by_name[classifier] if isinstance(classifier, str) else classifier
    nodes = AdaptiveNodes(retriever, llm, options, classifier=function)
    inner: GraphOptions = {**options, "output": "full", "checkpointer": None, "store": None}
    crag = uncompiled(build_crag(retriever, llm, evaluator=evaluator, web_search=web_search, **inner))
    crag.input_schema = crag.state_schema  # so that it takes an edited query too

    graph = RagGraph(AdaptiveState, AdaptiveContext, "adaptive_rag", options, STEPS)
    ways = {"classify": READY}
    graph.add_step("begin", nodes.begin, ways, route="classify", first=True, refused_by="question")
    ways = {"direct": "talk", "single": "one step", "next_hop": "several steps", "ask_back": "unclear"}
    graph.add_step("classify", nodes.classify, ways, route=by_key("route", FIRST_NODE), gives=["route"])
    ways = {"single": "cannot", "finish": "answered"}
    route = by_key("route", {"single": "single"}, "finish")
    graph.add_step("direct", nodes.direct, ways, route=route, streams=True)
    graph.add_step("single", single_node(crag.compile()), "finish", gives=["answer", "status"])
    ways = {"clarify": "can wait", "finish": "cannot wait"}
    route = by_key("status", {"clarify": "finish"}, "clarify")
    graph.add_step("ask_back", nodes.ask_back, ways, route=route, refused_by="answer")
    ways = {"classify": "reply", "single": "no reply"}
    route = by_key("route", {"single": "single"}, "classify")
    graph.add_step("clarify", nodes.clarify, ways, route=route, refused_by="question")
    ways = {"search_hop": "goes on", "conclude": "enough, or max_hops"}
    route = if_set("sub_question", "search_hop", "conclude")
    graph.add_step("next_hop", nodes.next_hop, ways, route=route, gives=["sub_question"])
    graph.add_step("search_hop", nodes.search_hop, "answer_hop", gives=["documents", "hops"], fetches=True)
    graph.add_step("answer_hop", nodes.answer_hop, "next_hop")
    graph.add_step("conclude", nodes.conclude, "finish", gives=["answer"], streams=True)
    graph.add_step("finish", nodes.finish, END, gives=["status"])
    return graph.compile_with_options()


def single_node(crag: CompiledStateGraph[Any, Any, Any, Any]) -> GraphNode:
    """Make a node that runs CRAG on the question, within what is left of the caps.

    A node calls CRAG, instead of CRAG being the node: its settings are of another class, and its first node would
    forget the usage so far.
    """

    async def answer(state: AdaptiveState, graph: Any) -> Update:
        context = run_context(AdaptiveContext)
        with name_caps(context):
            left = remaining_caps(state.get("usage"), context)
            if left["max_tokens"] == 0:  # which CRAG's settings do not allow
                raise BudgetExceededError("tokens", 0)
            common = ("model", "index", "k", "citation_check", "answer_instructions")
            settings = {name: getattr(context, name) for name in common} | (context.single or {})
            settings["filter"] = both_filters(context.filter, (context.single or {}).get("filter"))
            settings |= {"language": state["language"], **left}
            input = {"question": question_of(state)}
            if state["search_query"] not in ("", input["question"]):
                input["search_query"] = state["search_query"]
            return _update_from(await run_graph(graph, input, graph.context_schema(**settings)), state)

    return GraphNode(crag, answer)


def _update_from(result: Mapping[str, Any], state: AdaptiveState) -> Update:
    """Make the update that takes over the result of CRAG; if it was refused, the rest of the state is emptied."""
    notes = list(result.get("notes") or [])
    taken = {key: result[key] for key in _KEYS_FROM_CRAG if key in result}
    # by these hashes the guards know what they saw in CRAG
    guarded = {key: mark for key, mark in (result.get("guarded") or {}).items() if key in taken}
    update: Update = {"notes": notes, "checked": result["answer"], "guarded": guarded, **taken}
    if result.get("status") == "refused":  # nothing of the run so far may tell what was refused
        update |= {"asked": state["asked"], "notes": Overwrite(notes)}
        return {**empty_state(AdaptiveState), **update}
    return update
