"""A question in parts as a graph: decompose -> answer the parts side by side -> merge -> cite."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.retrievers import BaseRetriever
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore
from langgraph.types import Command

from rag_kit.concurrency.outcome import describe_failure
from rag_kit.documents.identity import document_key
from rag_kit.errors import BranchTimeoutError, BudgetExceededError, ModelOutputError
from rag_kit.graphs.adaptive.hopping import hop_history, interleaved
from rag_kit.graphs.adaptive.state import Hop
from rag_kit.graphs.answering import Answering, check_parts
from rag_kit.graphs.context import PlainRagContext, instructions_field, setting
from rag_kit.graphs.guards import Guards
from rag_kit.graphs.plain import PlainNodes
from rag_kit.graphs.prompting import GraphPrompts
from rag_kit.graphs.running import report, transient
from rag_kit.graphs.state import QuestionInput, RagState, Update
from rag_kit.graphs.steps import ask, attempt, beside, fetch, inner, write
from rag_kit.graphs.wiring import READY, REFUSED, Output, RagGraph
from rag_kit.text import fold
from rag_kit.text.citations.statements import renumbered

MAX_PARTS = 8
#: Of the time that is left, the parts may take this share, so that one that hangs leaves time for the answer.
_SHARE = 0.6


class DecomposedState(RagState, total=False):
    """State of the graph after and between its nodes.

    ``parts`` are the sub-questions with their answers, whose citations are numbered as ``documents`` are; empty for a
    question that was answered in one piece.
    """

    parts: list[Hop]


class DecomposedContext(PlainRagContext):
    """Settings of one run; each has a default.

    Example:
        >>> DecomposedContext(max_parts=2).max_parts
        2
    """

    decompose_instructions: str | None = instructions_field("decompose", "decompose")
    merge_instructions: str | None = instructions_field("merge_answers", "merge")
    max_parts: int = setting(
        4,
        "Parts that a question is split into at most; each takes one model call.",
        "decompose",
        ge=2,
        le=MAX_PARTS,
    )


def build_decomposed_rag(
    retriever: BaseRetriever,
    llm: BaseChatModel,
    *,
    prompts: Path | None = None,
    max_passage_chars: int = 12_000,
    guards: Guards | None = None,
    output: Output = "answer",
    checkpointer: BaseCheckpointSaver[Any] | None = None,
    store: BaseStore | None = None,
) -> CompiledStateGraph[DecomposedState, Any, QuestionInput, Any]:
    """Build RAG for questions of several parts: each part is searched for and answered, then the answers are merged.

    One model call splits the question. The parts are answered at the same time, each from passages of its own, and one
    call makes one answer of theirs, which keeps their citations: these are numbered as ``documents`` are, and checked
    as everywhere. A part that fails or finds nothing is named in ``notes``, and the others are answered. A question
    without parts, or none of which is answered, is answered in one piece as plain RAG does, for one call more.

    For parts that do not depend on each other; `build_adaptive_rag` asks one after the other.

    Args:
        retriever: Any LangChain retriever.
        llm: Any LangChain chat model; the tokens of the last answer are streamed where it streams.
        prompts: Folder whose prompt files replace the packaged ones of the same name.
        max_passage_chars: Characters of passages that go into the prompt of a part.
        guards: Functions that see each question, passage and answer, those of the parts too; see `Guards`.
        output: ``"answer"``: `invoke` gives back question, answer, status, citations, documents, notes and usage;
            ``"full"``: the whole state, with ``parts``.
        checkpointer: Memory of threads; leave it out for LangGraph Studio, which brings its own.
        store: LangGraph's long-term store, passed through.

    Returns:
        A compiled graph. Per-run settings are `DecomposedContext`.

    Raises:
        PromptError: A prompt file is wrong.
        InvalidInputError: The retriever or the model is something else.

    Example:
        >>> from rag_kit.models import chat_model
        >>> from rag_kit.retrieval import BM25Retriever
        >>> texts = ["The Rhine is 1230 km long.", "The Po is 652 km long."]
        >>> graph = build_decomposed_rag(BM25Retriever.from_texts(texts, k=1), chat_model("extractive"))
        >>> result = graph.invoke({"question": "Which river is longer, the Rhine or the Po?"})
        >>> result["answer"], result["status"]
        ('The Rhine is 1230 km long.[1] The Po is 652 km long.[2]', 'grounded')
    """
    check_parts(retriever, llm)
    guards = guards or Guards()
    loaded = GraphPrompts(["condense", "decompose", "answer", "merge_answers"], prompts)
    plain = PlainNodes(retriever, llm, loaded, guards, max_passage_chars)
    # the passages of each part fit into its prompt, so the check of the citations sees those of all parts
    checks = Answering(llm, loaded, guards, max_passage_chars * MAX_PARTS)
    nodes = _Nodes(plain)
    graph = RagGraph(DecomposedState, DecomposedContext, output, "decomposed_rag")
    ends = {END: REFUSED} if guards.question else {}
    graph.add_edge(START, "condense")
    graph.add_step("condense", nodes.condense, {"decompose": READY, **ends}, first=True)
    graph.add_step("decompose", nodes.decompose, {"answer_parts": "parts", "retrieve": "one piece"})
    graph.add_step("answer_parts", nodes.answer_parts, {"merge": "answers", "retrieve": "no answer"})
    graph.add_step("merge", nodes.merge, "cite", on_cap=_concatenated)
    graph.add_step("retrieve", plain.retrieve, "answer", fetches=True)
    graph.add_step("answer", plain.answer, "cite")
    graph.add_step("cite", checks.cite, END)
    return graph.compile(checkpointer, store=store)


class _Nodes:
    """The nodes of a question in parts; one in a single piece goes through those of plain RAG."""

    def __init__(self, plain: PlainNodes) -> None:
        self.plain, answering = plain, plain.answering
        self.llm, self.prompts, self.guards = answering.llm, answering.prompts, answering.guards

    async def condense(self, state: DecomposedState, context: DecomposedContext) -> Command[Any]:
        """Make a follow-up question stand alone; no model call at the first turn of a thread."""
        return await self.plain.opening.begin(state, context, {"parts": []}, goto="decompose")

    async def decompose(self, state: DecomposedState, context: DecomposedContext) -> Command[Any]:
        """Split the question, unless it asks for one thing or the calls that are left do not suffice for parts."""
        most = context.max_parts
        if context.max_calls is not None:
            further = 2 + (context.citation_check == "model")  # this call, the merged answer, its check
            most = min(most, context.max_calls - state["usage"]["calls"] - further)
        if most < 2:
            note = f"decompose: answered in one piece, for max_calls={context.max_calls} leaves no calls for parts"
            return Command(update={"notes": [note]}, goto="retrieve")
        prompt = self.prompts.pick("decompose", state["language"], context.decompose_instructions)
        values = {"question": state["search_query"], "count": most}
        written = await ask(self.llm, prompt, values, fallback=None)
        if written is None:
            note = "decompose: the model gave no usable parts; answered in one piece"
            return Command(update={"notes": [note]}, goto="retrieve")
        parts = list({fold(part): part for part in written.queries}.values())[:most]
        if len(parts) < 2:
            return Command(goto="retrieve")
        report("decomposed", parts=parts)
        return Command(
            update={"parts": [Hop(question=part, answer="") for part in parts]}, goto="answer_parts"
        )

    async def answer_parts(self, state: DecomposedState, context: DecomposedContext) -> Command[Any]:
        """Search for each part and answer it, all at the same time."""
        questions = [part["question"] for part in state["parts"]]
        left = None if context.deadline is None else context.deadline - state["usage"]["seconds"]
        fan = await beside(
            [inner(question, lambda q=question: self._part(q, state, context)) for question in questions],  # type: ignore[misc]
            on_error="skip",
            timeout=None if left is None else _SHARE * left,
        )
        found: list[tuple[list[Document], str]] = []
        notes = []
        for question, outcome in zip(questions, fan.outcomes, strict=True):
            if outcome.error is not None and not isinstance(outcome.error, BranchTimeoutError):
                raise outcome.error  # a guard's, or the caller's mistake: not a matter of this part alone
            given = outcome.error or outcome.value
            if isinstance(given, Exception):
                notes.append(f"parts: {describe_failure(repr(question), given)}")
                given = ([], "")
            elif not given[1]:
                notes.append(f"parts: no answer was found for {question!r}")
            found.append(given)
        documents = interleaved([passages for passages, _ in found])
        places = {document_key(document): place for place, document in enumerate(documents, start=1)}
        parts = []
        for question, (passages, answer) in zip(questions, found, strict=True):
            numbers = {n: places[document_key(document)] for n, document in enumerate(passages, start=1)}
            parts.append(Hop(question=question, answer=renumbered(answer, numbers)))
        answered = sum(bool(part["answer"]) for part in parts)
        report("answered", parts=answered)
        update: Update = {"parts": parts, "documents": documents, "notes": notes}
        return Command(update=update, goto="merge" if answered else "retrieve")

    async def _part(
        self, question: str, state: DecomposedState, context: DecomposedContext
    ) -> tuple[list[Document], str] | Exception:
        """The passages for a part that this user may see, and the answer to it; or why there is none."""
        given = await attempt(
            fetch(self.plain.retriever, question, k=context.k, filter=context.filter), _is_of_one_part
        )
        if isinstance(given, Exception):
            return given
        documents = await self.guards.allowed(given)
        answering, language = self.plain.answering, state["language"]
        options: dict[str, Any] = {"instructions": context.answer_instructions, "stream": False}
        written = await attempt(
            inner("answer", lambda: answering.answer(question, documents, language, **options)),
            _is_of_one_part,
        )
        if isinstance(written, Exception):
            return written
        return documents, (await answering.allowed_part(written["answer"]))

    async def merge(self, state: DecomposedState, context: DecomposedContext) -> Update:
        """Make one answer of the answers to the parts; where the model fails, these stand as they are."""
        prompt = self.prompts.pick("merge_answers", state["language"], context.merge_instructions)
        values = {"question": state["search_query"], "history": hop_history(state["parts"], None)}
        merged = write(self.llm, prompt, values, stream=not self.guards.answer)
        text = await attempt(merged, _is_of_one_part)
        if isinstance(text, Exception):
            return _concatenated(state, context, text)
        return {"answer": text.strip()}


def _concatenated(state: DecomposedState, context: DecomposedContext, error: Exception) -> Update:
    """The answers to the parts one after the other, where no call is left to merge them, or it failed."""
    answers = [part["answer"] for part in state["parts"] if part["answer"]]
    return {"answer": "\n\n".join(answers), "notes": [f"merge: the answers stand as they are ({error})"]}


def _is_of_one_part(error: Exception) -> bool:
    """Whether an error is one that the other parts need not have: passing, a cap, or an unusable reply."""
    return transient(error) or isinstance(error, (BudgetExceededError, ModelOutputError))
