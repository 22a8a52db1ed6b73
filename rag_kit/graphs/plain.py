"""Plain RAG as a graph: condense -> retrieve -> answer -> cite."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.retrievers import BaseRetriever
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore
from langgraph.types import Command

from rag_kit.graphs.answering import Answering, check_parts
from rag_kit.graphs.context import PlainRagContext
from rag_kit.graphs.guards import Guards
from rag_kit.graphs.opening import Opening
from rag_kit.graphs.prompting import GraphPrompts
from rag_kit.graphs.state import PlainRagState, QuestionInput, Update
from rag_kit.graphs.wiring import READY, REFUSED, Output, RagGraph
from rag_kit.text.analysis import warm_up

PlainRag = CompiledStateGraph[PlainRagState, Any, QuestionInput, Any]


def build_plain_rag(
    retriever: BaseRetriever,
    llm: BaseChatModel,
    *,
    prompts: Path | None = None,
    max_passage_chars: int = 12_000,
    guards: Guards | None = None,
    output: Output = "answer",
    checkpointer: BaseCheckpointSaver[Any] | None = None,
    store: BaseStore | None = None,
) -> PlainRag:
    """Build plain RAG: retrieve, answer from the passages, check each citation.

    What comes back holds ``answer``, ``citations`` (each with a verbatim quote and whether it holds),
    ``status`` (``grounded``, ``flagged``, ``undecided``, ``uncited`` or ``declined``), ``documents`` with their
    provenance, ``notes`` (anything that was degraded) and ``usage``. With a checkpointer the turns of a
    thread are remembered and a follow-up question is made to stand alone before it is searched for; ``question``
    itself is never changed. Retrieved text is handed to the model as escaped data between tags.

    Args:
        retriever: Any LangChain retriever.
        llm: Any LangChain chat model; tokens are streamed where it streams.
        prompts: Folder whose ``condense`` and ``answer`` prompt files replace the packaged ones.
        max_passage_chars: Characters of retrieved text that go into the answer prompt; later passages that do
            not fit are left out of the prompt, and the run's ``notes`` say so.
        guards: Functions that see each question, passage and answer; see `Guards`.
        output: ``"answer"``: `invoke` gives back question, answer, status, citations, documents, notes and usage;
            ``"full"``: the whole state.
        checkpointer: Memory of threads; leave it out for LangGraph Studio, which brings its own.
        store: LangGraph's long-term store, passed through.

    Returns:
        A compiled graph. Per-run settings are `PlainRagContext`:
        ``graph.invoke({"question": ...}, context={"k": 3})``.

    Raises:
        PromptError: A prompt file is wrong.
        InvalidInputError: The retriever or the model is something else.

    Example:
        >>> from rag_kit.models import chat_model
        >>> from rag_kit.retrieval import BM25Retriever
        >>> texts = ["The index is written to the folder named by --index.", "Bananas are yellow."]
        >>> graph = build_plain_rag(BM25Retriever.from_texts(texts, k=1), chat_model("extractive"))
        >>> result = graph.invoke({"question": "Which folder is the index written to?"})
        >>> result["answer"], result["status"]
        ('The index is written to the folder named by --index.[1]', 'grounded')
    """
    check_parts(retriever, llm)
    loaded = GraphPrompts(["condense", "answer"], prompts)
    nodes = PlainNodes(retriever, llm, loaded, guards or Guards(), max_passage_chars)
    graph = RagGraph(PlainRagState, PlainRagContext, output, "plain_rag")
    ends = {END: REFUSED} if nodes.opening.guards.question else {}
    graph.add_edge(START, "condense")
    graph.add_step("condense", nodes.condense, {"retrieve": READY, **ends}, first=True)
    graph.add_step("retrieve", nodes.retrieve, "answer", fetches=True)
    graph.add_step("answer", nodes.answer, "cite")
    graph.add_step("cite", nodes.answering.cite, END)
    return graph.compile(checkpointer, store=store)


class PlainNodes:
    """The four nodes; dictionaries are warmed here, so that no node blocks on a file."""

    def __init__(
        self,
        retriever: BaseRetriever,
        llm: BaseChatModel,
        prompts: GraphPrompts,
        guards: Guards,
        max_passage_chars: int,
    ) -> None:
        self.retriever = retriever
        self.opening = Opening(llm, prompts, guards)
        self.answering = Answering(llm, prompts, guards, max_passage_chars)
        warm_up()

    async def condense(self, state: PlainRagState, context: PlainRagContext) -> Command[Any]:
        """Make a follow-up question stand alone; no model call at the first turn of a thread."""
        return await self.opening.begin(state, context, {}, goto="retrieve")

    async def retrieve(self, state: PlainRagState, context: PlainRagContext) -> Update:
        """Fetch the passages that this user may see."""
        return await self.opening.retrieve(self.retriever, state, context)

    async def answer(self, state: PlainRagState, context: PlainRagContext) -> Update:
        """Answer from the passages alone."""
        # a thread's follow-up is answered in its stand-alone form, or its pronouns would refer to nothing
        return await self.answering.answer(
            state["search_query"],
            state["documents"],
            state["language"],
            instructions=context.answer_instructions,
        )
