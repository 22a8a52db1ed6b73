"""Self-RAG as a graph, in two modes."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal, Unpack

from langchain_core.documents import Document
from langchain_core.runnables import Runnable
from langgraph.graph import END

from rag_kit.errors import InvalidInputError
from rag_kit.graphs.self_rag.paper import Paper, ScoringChoice, wants_passages
from rag_kit.graphs.self_rag.reflect import Reflect, another_query
from rag_kit.graphs.self_rag.shared import SelfRagContext, SelfRagState
from rag_kit.graphs.wiring import READY, CompiledRag, GraphOptions, RagGraph, Route, choice_of, if_set
from rag_kit.models.model_call import is_extractive

# more steps than the widest settings need (10 rounds of 24 nodes, 20 segments of 4): the loops are bounded by
# counters in the state, never by this
_MAX_STEPS = 300
_CAPPED, _AGAIN = {"finish": "a cap was reached"}, {"rewrite_query": "no usable answer"}
#: The nodes of each mode between the first and the last: where each leads, and where by default, if it wrote no choice.
_PAPER: dict[str, tuple[dict[str, str], str | Route]] = {
    "decide_retrieval": (
        {"retrieve": "P(yes) > delta", "generate_direct": "no passage needed", **_CAPPED},
        wants_passages,
    ),
    "retrieve": ({"generate_segments": "found", **_CAPPED}, "generate_segments"),
    "generate_direct": ({"rank_segments": "judged", **_CAPPED}, "rank_segments"),
    "generate_segments": ({"rank_segments": "judged", **_CAPPED}, "rank_segments"),
    "rank_segments": ({"decide_retrieval": "goes on", "finish": "ended"}, ""),
}
_REFLECT: dict[str, tuple[dict[str, str], str | Route]] = {
    "retrieve": ({"grade_documents": "found", **_CAPPED}, "grade_documents"),
    "grade_documents": (
        {"generate": "some are relevant", "rewrite_query": "none is", "finish": "none, no round left"},
        "",
    ),
    "rewrite_query": ({"retrieve": "another query", "finish": "no other query, or a cap"}, another_query),
    "generate": ({"grade_support": "answered", **_AGAIN, **_CAPPED}, ""),
    "grade_support": (
        {"grade_usefulness": "supported", "generate": "not supported", **_AGAIN, **_CAPPED},
        "",
    ),
    "grade_usefulness": ({"rewrite_query": "not useful", "finish": "useful, or no round left"}, ""),
}
#: The keys that a node which replaces one of these must write.
_KEYS_GIVEN = {"retrieve": ["documents"], "grade_documents": ["documents"], "finish": ["answer"]}


def build_self_rag(
    retriever: Runnable[str, list[Document]],
    llm: Runnable[Any, Any],
    *,
    mode: Literal["paper", "reflect"] | None = None,
    scoring: ScoringChoice = "auto",
    evaluator: Any = None,
    **options: Unpack[GraphOptions],
) -> CompiledRag[SelfRagState]:
    """Build Self-RAG (Asai et al., arXiv 2310.11511) with any chat model in place of the trained one.

    ``mode="paper"``: the answer is written in segments. For each one the model decides whether documents are looked
    up; if so, one continuation is written for each passage, all side by side, and those of a beam are judged in one
    call: the relevance of the passage, its support, and the usefulness of the text. ``f = p(y) + w_rel s_rel + w_sup
    s_sup + w_use s_use`` decides which beams are kept. Where the endpoint serves log-probabilities, those of the labels
    and p(y) are the model's own (``scoring`` in the state is ``"logprobs"``); else a label is certain and p(y) is 1
    (``"labels"``).

    ``mode="reflect"``: the loop that is better known. Passages are graded; if none is relevant, the query is rewritten.
    An answer without support is written again; one that does not resolve the question leads to another search.

    Several texts compete for the answer in both modes, so no tokens are streamed: decisions are sent as custom events
    (``{"event": "segment", "text": ...}``). The state's ``trace`` holds every candidate or verdict and why it lost. A
    cap that is reached on the way gives the best so far, with a note, and an error only where there is nothing yet.

    Args:
        retriever: Any LangChain retriever, or another runnable from a string to documents.
        llm: Any LangChain chat model.
        mode: ``"paper"`` or ``"reflect"``. None: the paper's; with ``chat_model("extractive")``, which is no language
            model, ``"reflect"``: one sentence for each passage loses right answers (docs/benchmarks.md).
        scoring: ``"auto"``: log-probabilities where the model's class and endpoint have them; ``"logprobs"``: try
            with any model, by ``bind(logprobs=True, top_logprobs=...)``; ``"labels"``: never.
        evaluator: What grades passages in ``reflect``, as in ``build_crag``; None: ``llm`` itself, several passages in
            a call; with ``extractive``, lexical evidence. In ``paper`` the critique judges them.
        **options: Those of all graphs: prompts, guards, output, checkpointer and others; see `GraphOptions`.

    Returns:
        A compiled graph. Per-run settings are `SelfRagContext`.

    Raises:
        InvalidInputError: A part or an option is something else, or a prompt file is wrong.

    Example:
        >>> from rag_kit.models import chat_model
        >>> from rag_kit.retrieval import BM25Retriever
        >>> texts = ["The fan starts at 60 degrees.", "The fan is loud. Nobody likes the fan."]
        >>> graph = build_self_rag(BM25Retriever.from_texts(texts), chat_model("extractive"), output="full")
        >>> result = graph.invoke({"question": "At how many degrees does the fan start?"})
        >>> result["answer"], result["status"], result["mode"]
        ('The fan starts at 60 degrees.[1]', 'grounded', 'reflect')
    """
    if mode is None:
        mode = "reflect" if is_extractive(llm) else "paper"
    for option, value, allowed in (
        ("mode", mode, ("paper", "reflect")),
        ("scoring", scoring, ("auto", "logprobs", "labels")),
    ):
        if value not in allowed:
            raise InvalidInputError(f"{option} is {value!r}; allowed: {', '.join(map(repr, allowed))}.")
    if mode == "paper" and evaluator is not None:
        raise InvalidInputError(
            "evaluator was given with mode='paper', whose critique judges; give it to 'reflect'."
        )
    nodes: Paper | Reflect
    if mode == "paper":
        nodes, steps, start = Paper(retriever, llm, options, scoring=scoring), _PAPER, "decide_retrieval"
    else:
        nodes, steps, start = Reflect(retriever, llm, options, evaluator=evaluator), _REFLECT, "retrieve"
    # two names, since a server takes them for the names of its tools
    name = "self_rag" if mode == "paper" else "self_rag_reflect"
    graph: RagGraph[Any] = RagGraph(nodes.state, SelfRagContext, name, options, _MAX_STEPS)
    graph.add_step("begin", nodes.begin, {start: READY}, route=start, first=True, refused_by="question")
    for step, (edges, default) in steps.items():
        route = choice_of(step, default)
        if step == "grade_documents":
            # passages that an editor put there are answered from, whatever was chosen
            route = if_set("documents", "generate", route)
        options_of_step: Any = {"gives": _KEYS_GIVEN.get(step, ()), "fetches": step == "retrieve"}
        asks_model = step != "rank_segments"
        options_of_step |= {"capped": asks_model, "on_cap": partial(nodes.at_cap, step)}
        graph.add_step(step, getattr(nodes, step), edges, route=route, **options_of_step)
    graph.add_step("finish", nodes.finish, "cite", gives=_KEYS_GIVEN["finish"], capped=False)
    graph.add_step("cite", nodes.cite, END, gives=["status"], capped=False)
    return graph.compile_with_options()
