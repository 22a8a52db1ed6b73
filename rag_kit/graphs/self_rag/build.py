"""Self-RAG as a graph, in two modes."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from langchain_core.language_models import BaseChatModel
from langchain_core.retrievers import BaseRetriever
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore

from rag_kit.errors import InvalidInputError
from rag_kit.graphs.answering import Answering, check_parts
from rag_kit.graphs.evaluators.base import Evaluator
from rag_kit.graphs.evaluators.coerce import grader_of
from rag_kit.graphs.guards import Guards
from rag_kit.graphs.prompting import GraphPrompts
from rag_kit.graphs.running import Body
from rag_kit.graphs.self_rag import candidates, reflect
from rag_kit.graphs.self_rag.candidates import Writer
from rag_kit.graphs.self_rag.context import SelfRagContext
from rag_kit.graphs.self_rag.opening import Ends
from rag_kit.graphs.self_rag.paper import Paper, ScoringChoice
from rag_kit.graphs.self_rag.reflect import Reflect
from rag_kit.graphs.self_rag.state import SelfRagState
from rag_kit.graphs.state import QuestionInput
from rag_kit.graphs.wiring import READY, REFUSED, Output, RagGraph
from rag_kit.models.chat import is_extractive
from rag_kit.text.analysis import warm_up

SelfRag = CompiledStateGraph[SelfRagState, Any, QuestionInput, Any]
_Graph = RagGraph[SelfRagState]

_SHOWN = 1_000_000_000
_CAP, _AGAIN = "a cap was reached", "no usable answer"
# more steps than the widest settings need (10 rounds of 24 nodes, 20 segments of 4): the loops are bounded by
# counters in the state, never by this
_MOST_STEPS = 300


def build_self_rag(
    retriever: BaseRetriever,
    llm: BaseChatModel,
    *,
    mode: Literal["paper", "reflect"] | None = None,
    scoring: ScoringChoice = "auto",
    evaluator: Any = None,
    prompts: Path | None = None,
    max_passage_chars: int = 12_000,
    guards: Guards | None = None,
    output: Output = "answer",
    checkpointer: BaseCheckpointSaver[Any] | None = None,
    store: BaseStore | None = None,
) -> SelfRag:
    """Build Self-RAG (Asai et al., arXiv 2310.11511) with any chat model in place of the trained one.

    ``mode="paper"``: the answer is written in segments. For each one the model decides whether documents are looked
    up; if so, one continuation is written for each passage, all side by side, and each is judged for the passage's
    relevance, its support and the usefulness of the text. ``f = p(y) + w_rel s_rel + w_sup s_sup + w_use s_use``
    decides which beams are kept. With an endpoint that serves log-probabilities the label probabilities and p(y) are
    the model's own (``scoring == "logprobs"`` in the state); else a label counts as certain and p(y) is 1
    (``"labels"``).

    ``mode="reflect"``: the loop that is better known: passages are graded, with none relevant the query is rewritten,
    an answer without support is written again, one that does not resolve the question leads to another search.

    Text competes in both modes, so no tokens are streamed: what is decided is sent as custom events
    (``{"event": "segment", "text": ...}``), which joined are the answer. The state's ``trace`` holds every candidate
    or verdict and why it lost. Loops are bounded by counters in the state; a cap that is reached on the way gives the
    best so far, with a note, and an error only where there is nothing yet.

    Args:
        retriever: Any LangChain retriever.
        llm: Any LangChain chat model.
        mode: ``"paper"`` or ``"reflect"``. None: the paper's, and ``"reflect"`` beside ``extractive``, which is no
            language model: one sentence for each passage loses right answers (docs/benchmarks.md).
        scoring: ``"auto"``: log-probabilities where the model's class and endpoint have them; ``"logprobs"``: try
            with any model, by ``bind(logprobs=True, top_logprobs=...)``; ``"labels"``: never.
        evaluator: What grades passages in ``reflect``, as in ``build_crag``; None: ``llm`` itself, several passages in
            a call, and beside ``extractive`` lexical evidence. In ``paper`` the critique judges them.
        prompts: Folder whose prompt files replace the packaged ones of the same name.
        max_passage_chars: Characters of one passage (reflect: of all passages) that go into a prompt.
        guards: Functions that see each question, passage and answer; see `Guards`.
        output: ``"answer"``: `invoke` gives back question, answer, status, citations, documents, notes and usage;
            ``"full"``: the whole state, with ``trace`` and ``scoring``.
        checkpointer: Memory of threads; leave it out for LangGraph Studio, which brings its own.
        store: LangGraph's long-term store, passed through.

    Returns:
        A compiled graph. Per-run settings are `SelfRagContext`.

    Raises:
        PromptError: A prompt file is wrong.
        InvalidInputError: A part or an option is something else.

    Example:
        >>> from rag_kit.models import chat_model
        >>> from rag_kit.retrieval import BM25Retriever
        >>> texts = ["The fan starts at 60 degrees.", "The fan is loud. Nobody likes the fan."]
        >>> graph = build_self_rag(BM25Retriever.from_texts(texts), chat_model("extractive"), output="full")
        >>> result = graph.invoke({"question": "At how many degrees does the fan start?"})
        >>> result["answer"], result["status"], result["scoring"]
        ('The fan starts at 60 degrees.[1]', 'grounded', 'labels')
    """
    check_parts(retriever, llm)
    if mode is None:
        mode = "reflect" if is_extractive(llm) else "paper"
    for option, given, allowed in (
        ("mode", mode, ("paper", "reflect")),
        ("scoring", scoring, ("auto", "logprobs", "labels")),
    ):
        if given not in allowed:
            raise InvalidInputError(f"{option} is {given!r}; allowed: {', '.join(map(repr, allowed))}.")
    if mode == "paper" and evaluator is not None:
        raise InvalidInputError(
            "evaluator was given with mode='paper', whose critique judges; give it to 'reflect'."
        )
    warm_up()
    guards = guards or Guards()
    # two names, since a server takes them for the names of its tools
    name = "self_rag" if mode == "paper" else "self_rag_reflect"
    graph = RagGraph(SelfRagState, SelfRagContext, output, name, _MOST_STEPS)
    if mode == "paper":
        _paper(graph, retriever, llm, scoring, prompts, max_passage_chars, guards)
    else:
        judge = grader_of(evaluator, llm, prompts)
        _reflect(graph, retriever, llm, judge, prompts, max_passage_chars, guards)
    return graph.compile(checkpointer, store=store)


def _paper(
    graph: _Graph,
    retriever: BaseRetriever,
    llm: BaseChatModel,
    scoring: ScoringChoice,
    folder: Path | None,
    max_passage_chars: int,
    guards: Guards,
) -> None:
    files = GraphPrompts(["condense", *candidates.PROMPTS], folder)
    # the check of the citations sees each passage that the answer rests on: there are few, and each was shown
    answering = Answering(llm, files, guards, _SHOWN)
    nodes = Paper(retriever, answering, Writer(llm, files, _checked(max_passage_chars)), scoring)
    ends = Ends(answering, "paper", "decide_retrieval")
    _first(graph, ends)
    ranked, capped = {"rank_segments": "judged"}, {"finish": _CAP}
    steps: dict[str, tuple[Body, dict[str, str]]] = {
        "decide_retrieval": (
            nodes.decide_retrieval,
            {"retrieve": "P(yes) > delta", "generate_direct": "no passage needed", **capped},
        ),
        "retrieve": (nodes.retrieve, {"generate_segments": "found", **capped}),
        "generate_direct": (nodes.generate_direct, {**ranked, **capped}),
        "generate_segments": (nodes.generate_segments, {**ranked, **capped}),
    }
    for name, (body, to) in steps.items():
        graph.add_step(name, body, to, on_cap=nodes.at_cap, fetches=name == "retrieve")
    graph.add_step(
        "rank_segments", nodes.rank_segments, {"decide_retrieval": "goes on", "finish": "ended"}, capped=False
    )
    graph.add_step("finish", nodes.finish, "cite", capped=False)
    graph.add_step("cite", ends.cite, END, capped=False)


def _reflect(
    graph: _Graph,
    retriever: BaseRetriever,
    llm: BaseChatModel,
    judge: Evaluator,
    folder: Path | None,
    max_passage_chars: int,
    guards: Guards,
) -> None:
    files = GraphPrompts(["condense", *reflect.PROMPTS], folder)
    answering = Answering(llm, files, guards, max_passage_chars)
    nodes = Reflect(retriever, answering, judge)
    ends = Ends(answering, "reflect", "retrieve")
    _first(graph, ends)
    again, capped = {"rewrite_query": _AGAIN}, {"finish": _CAP}
    ways = {
        "retrieve": {"grade_documents": "found", **capped},
        "grade_documents": {
            "generate": "some are relevant",
            "rewrite_query": "none is",
            "finish": "none, no round left",
        },
        "rewrite_query": {"retrieve": "another query", "finish": "no other query, or a cap"},
        "generate": {"grade_support": "answered", **again, **capped},
        "grade_support": {"grade_usefulness": "supported", "generate": "not supported", **again, **capped},
        "grade_usefulness": {"rewrite_query": "not useful", "finish": "useful, or no round left"},
    }
    for name, to in ways.items():
        graph.add_step(name, getattr(nodes, name), to, on_cap=nodes.at_cap, fetches=name == "retrieve")
    graph.add_step("finish", nodes.finish, "cite", capped=False)
    graph.add_step("cite", ends.cite, END, capped=False)


def _first(graph: _Graph, ends: Ends) -> None:
    refused = {END: REFUSED} if ends.answering.guards.question else {}
    graph.add_step("begin", ends.begin, {ends.after_begin: READY, **refused}, first=True)
    graph.add_edge(START, "begin")


def _checked(max_passage_chars: int) -> int:
    if isinstance(max_passage_chars, bool) or max_passage_chars < 1:
        raise InvalidInputError(
            f"max_passage_chars is {max_passage_chars}; give a whole number of 1 or more."
        )
    return max_passage_chars
