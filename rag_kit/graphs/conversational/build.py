"""The conversational graph: its state and settings, its nodes, and how they are put together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Unpack

from langchain_core.documents import Document
from langchain_core.runnables import Runnable
from langgraph.graph import END
from langgraph.runtime import get_runtime
from langgraph.types import Overwrite
from pydantic import field_validator

from rag_kit.errors import BudgetExceededError, ModelError
from rag_kit.graphs.context import RagContext, instructions_field, setting
from rag_kit.graphs.conversational import facts as user_facts
from rag_kit.graphs.guards import Refusal
from rag_kit.graphs.nodes import RagNodes, render_turns
from rag_kit.graphs.running import attempt, note_no_reply, report
from rag_kit.graphs.state import MAX_TURNS, RagState, Turn, Update, is_refused, question_of
from rag_kit.graphs.wiring import READY, CompiledRag, GraphOptions, RagGraph
from rag_kit.models.structured import RAISE
from rag_kit.prompts.rendering import Markup, escape_tags
from rag_kit.retrieval.fields import check_count
from rag_kit.text.evidence.questions import terms
from rag_kit.text.evidence.sentences import passage_texts
from rag_kit.text.evidence.usefulness import usefulness

_MAX_HISTORY_CHARS = 8_000
_MAX_QUESTION_CHARS = 300
_REPEAT_SHARE = 0.8  # share of common words from which two questions count as one
_MIN_USEFULNESS = 0.5  # usefulness from which a passage helps to answer a question
MAX_SUMMARISED = 64_000  # characters of turns that a summary is made of
_HISTORY_NODES = ("begin", "summarise")


class ConversationalContext(RagContext):
    """Settings of one run of the conversational graph; each has a default."""

    max_history_turns: int = setting(
        10, "Turns kept word for word; older ones are summarised.", *_HISTORY_NODES, ge=1, le=MAX_TURNS - 1
    )
    max_history_chars: int = setting(
        8_000, "Characters of history that go into a prompt.", *_HISTORY_NODES, "condense", ge=200, le=64_000
    )
    user_id: str | None = setting(
        None, "Who asks; empty: nothing is known or remembered about the user.", "begin", "remember"
    )
    related_questions: int = setting(0, "How many questions to offer at the end.", "suggest", ge=0, le=5)
    summarise_history_instructions: str | None = instructions_field("summarise_history", "summarise")
    condense_instructions: str | None = instructions_field("condense", "condense")
    condense_for_user_instructions: str | None = instructions_field("condense_for_user", "condense")
    answer_instructions: str | None = instructions_field("answer", "answer")
    answer_for_user_instructions: str | None = instructions_field("answer_for_user", "answer")
    remember_facts_instructions: str | None = instructions_field("remember_facts", "remember")
    related_questions_instructions: str | None = instructions_field("related_questions", "suggest")

    # "", as Studio's form sends it, is no user
    _check = field_validator("user_id")(lambda value: user_facts.check_user_id(value) if value else None)


class ConversationalState(RagState, total=False):
    """State of the conversational graph: ``summary`` holds the turns that are no longer in ``history``.

    ``facts`` is what is known about the user in this run; ``related_questions`` what may be asked next.
    """

    summary: str
    facts: list[str]
    related_questions: list[str]


class ConversationalNodes(RagNodes):
    """Nodes of the conversational graph; each reads the state and returns an update of it."""

    files = (
        "summarise_history", "condense", "condense_for_user", "answer", "answer_for_user", "remember_facts",
        "related_questions",
    )  # fmt: skip
    state = ConversationalState

    def __init__(self, retriever: Any, llm: Any, options: Any, *, max_facts: int) -> None:
        super().__init__(retriever, llm, options)
        self.max_facts = max_facts

    async def begin(self, state: ConversationalState, context: ConversationalContext) -> Update:
        """Check the question, read what is known about the user, choose the next node; no model is called."""
        update = await self.first_update(state, context)
        if is_refused(update):
            return update
        if context.user_id:
            update["facts"], update["notes"] = await self._recall(context.user_id)
        history, summary = state.get("history") or [], state.get("summary") or ""
        if is_long(history, summary, context.max_history_turns, context.max_history_chars):
            follows = "summarise"
        elif history or summary or update.get("facts"):
            follows = "condense"
        else:
            follows = "retrieve"
        if follows != "retrieve":
            update["standalone"] = ""  # the node that completes the question writes it
        return {**update, "choices": {"begin": follows}}

    async def _recall(self, user_id: str) -> tuple[list[str], list[str]]:
        """Return the facts known about the user, and notes that say why there are none."""
        store = get_runtime().store
        if not self.max_facts:
            return [], ["memory: this graph was built without remember=True; user_id is not used"]
        user_facts.check_signed_in(user_id)
        if store is None:
            return [], ["memory: the graph has no store; nothing is known or remembered about the user"]
        facts = await attempt(user_facts.read(store, user_id), Exception)
        if isinstance(facts, Exception):
            return [], [f"memory: the facts about the user could not be read ({type(facts).__name__})"]
        report("recalled", facts=len(facts))
        return facts, []

    async def summarise(self, state: ConversationalState, context: ConversationalContext) -> Update:
        """Add the older turns to the summary; if that fails, only the newest turns are used."""
        max_chars = context.max_history_chars // 4
        older, newer = split_history(state["history"], context.max_history_turns, context.max_history_chars)
        values = {"history": render_conversation(older, state.get("summary") or ""), "max_chars": max_chars}
        written = await attempt(self.write("summarise_history", state, context, values))
        if isinstance(written, ModelError):
            return {"notes": [note_no_reply("summarise", written, "no summary; the newest turns were used")]}
        report("summarised", turns=len(older))
        return {
            "summary": written.text.strip()[:max_chars],
            "history": Overwrite(newer),
            "notes": [f"summarise: {len(older)} older turns were put into the summary"],
        }

    async def condense(self, state: ConversationalState, context: ConversationalContext) -> Update:
        """Complete the question from the conversation and, if there are some, the facts about the user."""
        history, summary = state.get("history") or [], state.get("summary") or ""
        name = "condense_for_user" if state["facts"] else "condense"
        conversation = render_conversation(history, summary, context.max_history_chars)
        return await self.complete_question(state, context, conversation, name, **_prompt_facts(state))

    async def answer(self, state: ConversationalState, context: ConversationalContext) -> Update:
        """Answer from the passages alone; facts about the user only say what matters to them."""
        name = "answer_for_user" if state["facts"] else "answer"
        question, documents = question_of(state), state["documents"]
        return await self.answer_from(question, documents, state, context, name=name, **_prompt_facts(state))

    async def cite(self, state: ConversationalState, context: ConversationalContext) -> Update:
        """Check every citation; then remember facts and suggest questions, side by side, if wanted."""
        update = await super().cite(state, context)
        extras = []
        if update["status"] != "refused":
            if self.max_facts and context.user_id and get_runtime().store is not None:
                extras.append("remember")
            if context.related_questions and state["documents"]:
                extras.append("suggest")
        return {**update, "choices": {"cite": extras or END}}

    async def remember(self, state: ConversationalState, context: ConversationalContext) -> Update:
        """Keep facts that users state about themselves; the model finds them in the question, and sees no passage."""
        values = {"question": state["asked"], "facts": user_facts.render_facts(state["facts"])}
        reply = await attempt(self.ask("remember_facts", state, context, values, RAISE))
        if isinstance(reply, Exception):
            return {"notes": [note_no_reply("remember", reply, "left out")]}
        if not reply.facts:
            return {}
        facts = await attempt(self._merge_facts(context.user_id, reply.facts, state["asked"]), Exception)
        if isinstance(facts, Exception):
            return {"notes": [f"remember: the facts could not be kept ({type(facts).__name__})"]}
        return {"facts": facts}

    async def _merge_facts(self, user_id: Any, new: Sequence[str], message: str) -> list[str]:
        """Merge the new facts into those known about a user, and store changes."""
        store: Any = get_runtime().store
        # read again, since another run of the same user may have written meanwhile
        stored = await user_facts.read(store, user_id)
        facts = user_facts.merge_facts(stored, new, message, self.max_facts)
        if facts != stored:
            await user_facts.write(store, user_id, facts)
            report("remembered", facts=len([fact for fact in facts if fact not in stored]))
        return facts

    async def suggest(self, state: ConversationalState, context: ConversationalContext) -> Update:
        """Suggest questions that the passages answer and that were not asked yet; guards see each."""
        earlier, count = state.get("history") or [], context.related_questions
        values = {
            "question": question_of(state),
            "answer": state["answer"],
            "passages": self.render_fitting_passages(state["documents"]),
            "history": render_conversation(earlier, state.get("summary") or "", _MAX_HISTORY_CHARS),
            "count": count,
        }
        offered = await attempt(self.ask("related_questions", state, context, values, RAISE))
        if isinstance(offered, Exception):
            return {"notes": [note_no_reply("related questions", offered, "left out")]}
        earlier_questions = [state["asked"], question_of(state), *(turn["question"] for turn in earlier)]
        questions = select_questions(offered.queries, state["documents"], earlier_questions, count)
        verdicts = [await self.guards.check_answer(question) for question in questions]
        allowed = [verdict for verdict in verdicts if not isinstance(verdict, Refusal)]
        report("suggested", questions=len(allowed))
        return {"related_questions": allowed}


def note_cap(left_out: str, state: Any, context: Any, error: BudgetExceededError) -> Update:
    """Make the update of a node after the answer that reached a cap: a note says what was left out."""
    return {"notes": [f"{left_out}: left out, a cap of the run was reached ({error.what})"]}


def is_long(history: Sequence[Turn], summary: str, max_turns: int, max_chars: int) -> bool:
    """Tell whether a history has outgrown one of its caps."""
    return len(history) > max_turns or _count_chars(history) + len(summary) > max_chars


def split_history(history: Sequence[Turn], max_turns: int, max_chars: int) -> tuple[list[Turn], list[Turn]]:
    """Split a history into the older turns, to be summarised, and the newer ones, to be kept.

    The newer ones fill half of what the caps allow, so that a summary is written every few turns and not at each. The
    newest turn is kept, unless it is too long.
    """
    newer: list[Turn] = []
    for turn in reversed(history):
        max_newer_chars = max_chars // 2 if newer else max_chars  # all of it for the newest turn
        if len(newer) == max(1, max_turns // 2) or _count_chars([turn, *newer]) > max_newer_chars:
            break
        newer.insert(0, turn)
    return list(history[: len(history) - len(newer)]), newer


def render_conversation(history: Sequence[Turn], summary: str, max_chars: int = MAX_SUMMARISED) -> Markup:
    """Render summary and turns for a prompt; if they do not fit, the newest turns."""
    turns = render_turns(history, max_chars)
    summary_turn = f'<turn role="summary">{escape_tags(summary)}</turn>'
    return Markup(f"{summary_turn}\n{turns}") if summary else turns


def _count_chars(history: Sequence[Turn]) -> int:
    return sum(len(turn["question"]) + len(turn["answer"]) for turn in history)


def _prompt_facts(state: ConversationalState) -> dict[str, Any]:
    return {"facts": user_facts.render_facts(state["facts"])} if state["facts"] else {}


def select_questions(
    offered: Iterable[str], documents: Sequence[Document], earlier_questions: Iterable[str], limit: int
) -> list[str]:
    """Choose the suggested follow-up questions that are new and that a passage helps to answer, judged by words."""
    passages = passage_texts(documents)
    earlier_terms = [set(terms(text)) for text in earlier_questions]
    questions: list[str] = []
    for text in (" ".join(question.split()) for question in offered):
        if len(questions) == limit:
            break
        words = set(terms(text))
        is_repeat = any(len(words & other) >= _REPEAT_SHARE * len(words | other) for other in earlier_terms)
        if not words or is_repeat or len(text) > _MAX_QUESTION_CHARS:
            continue
        if any(grade.value >= _MIN_USEFULNESS for grade in usefulness(text, passages)):
            questions.append(text)
            earlier_terms.append(words)
    return questions


def build_conversational_rag(
    retriever: Runnable[str, list[Document]],
    llm: Runnable[Any, Any],
    *,
    remember: bool = False,
    max_facts: int = 50,
    **options: Unpack[GraphOptions],
) -> CompiledRag[ConversationalState]:
    """Build plain RAG for conversations: threads of any length, facts about a user, questions to ask next.

    As in `build_plain_rag`, and besides:

    - A thread that outgrows ``max_history_turns`` or ``max_history_chars`` is summarised: the older half joins what
      was summarised before (``summary``), the newer turns stay word for word.
    - With ``remember=True``, a store, and ``user_id`` in the run's context, lasting facts that the user states are
      kept across threads, and help to understand and to answer later questions. They are not a source.
    - With ``related_questions`` in the context, up to five questions are offered that the passages answer.

    Args:
        retriever: Any LangChain retriever, or another runnable from a string to documents.
        llm: Any LangChain chat model; the answer's tokens are streamed where it streams.
        remember: Whether facts about users may be kept at all.
        max_facts: How many are kept of one user, the newest.
        **options: Those of all graphs: prompts, guards, output, checkpointer and others; see `GraphOptions`.

    Returns:
        A compiled graph. Per-run settings are `ConversationalContext`.

    Raises:
        InvalidInputError: A part is of the wrong kind, ``max_facts`` below 1, or a prompt file wrong.

    Example:
        >>> from langgraph.checkpoint.memory import InMemorySaver
        >>> from rag_kit.models import chat_model
        >>> from rag_kit.retrieval import BM25Retriever
        >>> texts = BM25Retriever.from_texts(["Emma was written by Jane Austen.", "Jane Austen died in 1817."], k=1)
        >>> memory = InMemorySaver()
        >>> graph = build_conversational_rag(texts, chat_model("extractive"), output="full", checkpointer=memory)
        >>> thread = {"configurable": {"thread_id": "1"}}
        >>> _ = graph.invoke({"question": "Who wrote Emma?"}, thread)
        >>> result = graph.invoke({"question": "When did she die?"}, thread)
        >>> result["search_query"], result["answer"]
        ('When did she die? (Jane Austen)', 'Jane Austen died in 1817.[1]')
    """
    max_facts = check_count("max_facts", max_facts) if remember else 0
    nodes = ConversationalNodes(retriever, llm, options, max_facts=max_facts)
    graph = RagGraph(ConversationalState, ConversationalContext, "conversational_rag", options)
    ways = {"summarise": "over a cap", "condense": "history or facts", "retrieve": "first question"}
    graph.add_step("begin", nodes.begin, ways, first=True, refused_by="question")
    graph.add_step("summarise", nodes.summarise, "condense")
    graph.add_step("condense", nodes.condense, {"retrieve": READY}, route="retrieve", refused_by="question")
    graph.add_step("retrieve", nodes.retrieve, "answer", gives=["documents"], fetches=True)
    graph.add_step("answer", nodes.answer, "cite", gives=["answer"], streams=True)
    remembering = {"remember": "user_id"} if remember else {}
    ways = {**remembering, "suggest": "related_questions", END: "answered"}
    graph.add_step("cite", nodes.cite, ways, gives=["status"])
    if remember:
        graph.add_step("remember", nodes.remember, END, on_cap=partial(note_cap, "remember"))
    graph.add_step("suggest", nodes.suggest, END, on_cap=partial(note_cap, "related questions"))
    return graph.compile_with_options()
