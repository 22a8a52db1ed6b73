"""Plain RAG as a graph: condense -> retrieve -> answer -> cite."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, cast

from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore

from rag_kit.errors import InvalidInputError
from rag_kit.graphs.citing import cited
from rag_kit.graphs.context import PlainRagContext
from rag_kit.graphs.running import metered, node, report, run_context
from rag_kit.graphs.state import PlainRagInput, PlainRagState, Turn, Update
from rag_kit.models import astructured_call, atext_call, structured_call, text_call
from rag_kit.prompts import PromptTemplate, load_prompt, render_history, render_passages
from rag_kit.prompts.schemas import Query
from rag_kit.retrieval.compose import acall_retriever, call_retriever
from rag_kit.text import check_question, detect_language, warm_up
from rag_kit.text.citations import DECLINED

PlainRag = CompiledStateGraph[PlainRagState, PlainRagContext, PlainRagInput, PlainRagState]


def build_plain_rag(
    retriever: BaseRetriever,
    llm: BaseChatModel,
    *,
    prompts: Path | None = None,
    max_passage_chars: int = 12_000,
    checkpointer: BaseCheckpointSaver[Any] | None = None,
    store: BaseStore | None = None,
) -> PlainRag:
    """Build the graph behind ``rag-kit ask``: retrieve, answer from what was retrieved, check each citation.

    The state that comes back holds ``answer``, ``citations`` (each with a verbatim quote and whether it holds),
    ``status`` (``grounded``, ``flagged``, ``uncited`` or ``declined``), ``documents`` with their provenance,
    ``search_query``, ``notes`` (anything that was degraded) and ``usage``. With a checkpointer the turns of a
    thread are remembered and a follow-up question is made to stand alone before it is searched for; ``question``
    itself is never changed. Retrieved text is handed to the model as escaped data between tags.

    Args:
        retriever: Any LangChain retriever.
        llm: Any LangChain chat model; tokens are streamed where it streams.
        prompts: Folder whose ``condense`` and ``answer`` prompt files replace the packaged ones.
        max_passage_chars: Characters of retrieved text that go into the answer prompt; later passages that do
            not fit are left out of the prompt, and the run's ``notes`` say so.
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
    _check_parts(retriever, llm)
    if max_passage_chars < 1:
        raise InvalidInputError(
            f"max_passage_chars is {max_passage_chars}; give a whole number of 1 or more."
        )
    nodes = _Nodes(retriever, llm, prompts, max_passage_chars)
    graph = StateGraph(PlainRagState, context_schema=PlainRagContext, input_schema=PlainRagInput)
    graph.add_node("condense", node(nodes.condense, nodes.acondense))
    graph.add_node("retrieve", node(nodes.retrieve, nodes.aretrieve))
    graph.add_node("answer", node(nodes.answer, nodes.aanswer))
    graph.add_node("cite", node(nodes.cite, nodes.acite))
    graph.add_edge(START, "condense")
    graph.add_edge("condense", "retrieve")
    graph.add_edge("retrieve", "answer")
    graph.add_edge("answer", "cite")
    graph.add_edge("cite", END)
    return graph.compile(checkpointer=checkpointer, store=store, name="plain_rag")


def _check_parts(retriever: Any, llm: Any) -> None:
    """Refuse parts of the wrong kind when the graph is built, and not when it is first asked."""
    if not isinstance(retriever, Runnable) or isinstance(retriever, BaseChatModel):
        raise InvalidInputError(
            f"retriever is a {type(retriever).__name__}; give a LangChain retriever, "
            "e.g. BM25Retriever.from_texts(...)."
        )
    if not isinstance(llm, Runnable) or isinstance(llm, BaseRetriever):
        raise InvalidInputError(
            f"llm is a {type(llm).__name__}; give a LangChain chat model, e.g. chat_model('extractive')."
        )


class _Nodes:
    """The four nodes; prompts are loaded and dictionaries warmed here, so that no node blocks on a file."""

    def __init__(
        self, retriever: BaseRetriever, llm: BaseChatModel, folder: Path | None, max_passage_chars: int
    ) -> None:
        self.retriever = retriever
        self.llm = llm
        self.max_passage_chars = max_passage_chars
        self.prompts: dict[tuple[str, str], PromptTemplate] = {
            (name, language): load_prompt(name, language=language, folder=folder)
            for name in ("condense", "answer")
            for language in ("en", "zh")
        }
        warm_up()

    # condense: a follow-up question becomes one that stands alone; no model call at the first turn

    def condense(self, state: PlainRagState, config: RunnableConfig) -> Update:
        """Make the question stand alone."""
        update, context, values = self._begin(state)
        if values is None:
            return update
        with metered(None, **_caps(context)) as meter:
            query = structured_call(
                self.llm, self._prompt("condense", update), values, fallback=_keep(state), config=config
            )
        return self._condensed(state, update, query, meter.usage)

    async def acondense(self, state: PlainRagState, config: RunnableConfig) -> Update:
        """Make the question stand alone, asynchronously."""
        update, context, values = self._begin(state)
        if values is None:
            return update
        with metered(None, **_caps(context)) as meter:
            query = await astructured_call(
                self.llm, self._prompt("condense", update), values, fallback=_keep(state), config=config
            )
        return self._condensed(state, update, query, meter.usage)

    def _begin(self, state: PlainRagState) -> tuple[Update, PlainRagContext, dict[str, Any] | None]:
        """Check the input and clear what an earlier turn of the thread left behind."""
        question = check_question(state.get("question"), example="{'question': 'How ...?'}")
        context = run_context(PlainRagContext)
        language = detect_language(question) if context.language == "auto" else context.language
        update: Update = {
            "search_query": question,
            "language": language,
            "documents": [],
            "answer": "",
            "citations": [],
            "uncited": [],
            "notes": [],
            "usage": {"calls": 0, "tokens": 0, "seconds": 0.0},
        }
        history = state.get("history")
        if not history:
            return update, context, None
        messages = [
            message
            for turn in history
            for message in (("user", turn["question"]), ("assistant", turn["answer"]))
        ]
        return update, context, {"question": question, "history": render_history(messages)}

    def _condensed(self, state: PlainRagState, update: Update, query: Query | None, usage: Any) -> Update:
        if query is None:
            update["notes"] = [
                "condense: the model gave no usable rewriting; searched for the question as asked"
            ]
        else:
            update["search_query"] = query.query
            report("condensed", search_query=query.query)
        return {**update, "usage": usage}

    # retrieve

    def retrieve(self, state: PlainRagState, config: RunnableConfig) -> Update:
        """Fetch the passages."""
        context = run_context(PlainRagContext)
        with metered(state["usage"], **_caps(context)) as meter:
            documents = call_retriever(
                self.retriever, state["search_query"], config=config, k=context.k, filter=context.filter
            )
        return _retrieved(documents, meter.usage)

    async def aretrieve(self, state: PlainRagState, config: RunnableConfig) -> Update:
        """Fetch the passages, asynchronously."""
        context = run_context(PlainRagContext)
        with metered(state["usage"], **_caps(context)) as meter:
            documents = await acall_retriever(
                self.retriever, state["search_query"], config=config, k=context.k, filter=context.filter
            )
        return _retrieved(documents, meter.usage)

    # answer: from the passages alone; with none the model is not asked

    def answer(self, state: PlainRagState, config: RunnableConfig) -> Update:
        """Answer from the passages."""
        if not state["documents"]:
            return {"answer": DECLINED[state["language"]]}
        prompt, values, notes = self._answer_input(state)
        with metered(state["usage"], **_caps(run_context(PlainRagContext))) as meter:
            text = text_call(self.llm, prompt, values, config=config)
        return {"answer": text.strip(), "usage": meter.usage, "notes": notes}

    async def aanswer(self, state: PlainRagState, config: RunnableConfig) -> Update:
        """Answer from the passages, asynchronously."""
        if not state["documents"]:
            return {"answer": DECLINED[state["language"]]}
        prompt, values, notes = self._answer_input(state)
        with metered(state["usage"], **_caps(run_context(PlainRagContext))) as meter:
            text = await atext_call(self.llm, prompt, values, config=config)
        return {"answer": text.strip(), "usage": meter.usage, "notes": notes}

    def _answer_input(self, state: PlainRagState) -> tuple[PromptTemplate, dict[str, Any], list[str]]:
        documents = fitting(state["documents"], self.max_passage_chars)
        notes = list(state["notes"])
        if left_out := len(state["documents"]) - len(documents):
            notes.append(
                f"answer: {left_out} passages did not fit into max_passage_chars={self.max_passage_chars}"
            )
        values = {
            # a thread's follow-up is answered in its stand-alone form, or its pronouns would refer to nothing
            "question": state["search_query"],
            "passages": render_passages(documents, max_chars=self.max_passage_chars),
        }
        return self._prompt("answer", cast(Update, state)), values, notes

    # cite

    def cite(self, state: PlainRagState, config: RunnableConfig) -> Update:
        """Check every citation against the passage that it names."""
        documents = fitting(state["documents"], self.max_passage_chars)
        update = cited(state["answer"], documents, language=state["language"])
        turn = Turn(question=state["question"], answer=state["answer"])
        report("cited", status=update["status"])
        return {**update, "history": [turn]}

    async def acite(self, state: PlainRagState, config: RunnableConfig) -> Update:
        """Check every citation; pure computation, so the same as `cite`."""
        return self.cite(state, config)

    def _prompt(self, name: str, state: Update) -> PromptTemplate:
        return self.prompts[name, state["language"]]


def fitting(documents: list[Document], max_chars: int) -> list[Document]:
    """The longest run of leading documents that fits, and at least the first (which is cut when rendered)."""
    kept: list[Document] = []
    used = 0
    for document in documents:
        used += len(document.page_content)
        if kept and used > max_chars:
            break
        kept.append(document)
    return kept


def _caps(context: PlainRagContext) -> dict[Literal["max_calls", "max_tokens", "deadline"], Any]:
    return {"max_calls": context.max_calls, "max_tokens": context.max_tokens, "deadline": context.deadline}


def _keep(state: PlainRagState) -> Any:
    """Fallback of the condense call: None, which `_condensed` reads as "keep the question"."""
    return lambda error: None


def _retrieved(documents: list[Document], usage: Any) -> Update:
    report("retrieved", passages=len(documents))
    return {"documents": documents, "usage": usage}
