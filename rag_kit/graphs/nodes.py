"""Base of the nodes of every graph: its parts, how a run begins, how it answers from passages and checks the answer."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, ClassVar, Literal

from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable
from langgraph.types import Overwrite

from rag_kit.concurrency.notes import write_note
from rag_kit.concurrency.steps import Step
from rag_kit.documents.provenance import passage_notes
from rag_kit.errors import InvalidInputError
from rag_kit.graphs.context import RagContext
from rag_kit.graphs.evaluators.base import Evaluator, Grading, judge_passages
from rag_kit.graphs.evaluators.function import as_evaluator
from rag_kit.graphs.guards import Guards, Refusal
from rag_kit.graphs.running import ask, call_within_deadline, compute, note_no_reply, report, write
from rag_kit.graphs.state import (
    AnswerStatus,
    RagState,
    Turn,
    Update,
    as_storable,
    check_answer,
    empty_state,
    is_refused,
    question_of,
)
from rag_kit.graphs.streaming import limit_decline
from rag_kit.graphs.wiring import GraphOptions
from rag_kit.indexing.document_index.folder import is_picture
from rag_kit.models.chat import chat_model
from rag_kit.models.model_call import is_extractive
from rag_kit.models.replies import TextReply
from rag_kit.prompts import PromptTemplate, load_prompt, render_passages
from rag_kit.prompts.rendering import Markup, render_history
from rag_kit.prompts.template import PicturePrompt
from rag_kit.retrieval.fields import check_count
from rag_kit.retrieval.inner import acall_retriever, call_retriever
from rag_kit.text import check_question, detect_language
from rag_kit.text.analysis import warm_up
from rag_kit.text.citations.decline import DECLINED
from rag_kit.text.evidence.sentences import passage_texts
from rag_kit.text.versions import VersionStatement, find_disagreements

_MAX_NAMED_MODELS = 16  # that contexts of runs named, kept for later runs
_named_model: Any = lru_cache(maxsize=_MAX_NAMED_MODELS)(chat_model)

_MAX_PICTURES = 8  # in a prompt
_MAX_STATEMENTS = 100  # that a language model is asked about; those beyond are checked by words

_NOT_ALL_READ = {"en": "Not all that was found could be read.", "zh": "找到的内容未能全部读完。"}

#: A state, or what is put into a prompt.
Values = Mapping[str, Any]


class RagNodes:
    """Base of the nodes of a graph. Prompt files and dictionaries are read here, so that no node blocks on a file."""

    # the prompt files; a run's context may have ``NAME_instructions`` for each
    files: ClassVar[tuple[str, ...]] = ("condense", "answer")
    state: ClassVar[type[Any]] = RagState
    grades: ClassVar[bool] = False  # whether an evaluator judges passages
    # characters of the history in the prompt that completes a follow-up; None: the prompt's own limit
    max_history: ClassVar[int | None] = None

    def __init__(self, retriever: Any, llm: Any, options: GraphOptions, *, evaluator: Any = None) -> None:
        self.retriever, self.llm = retriever, llm
        self._indexes, self._folder = options.get("indexes"), options.get("prompts")
        self._pictures = check_folder(options.get("pictures"))
        self.guards = options.get("guards") or Guards()
        self.max_passage_chars = check_count("max_passage_chars", options.get("max_passage_chars", 12_000))
        _check_retriever_and_model(retriever, llm)
        self._has_evaluator = evaluator is not None
        self._prompts = {
            (name, language): load_prompt(name, language=language, folder=self._folder)
            for name in (*self.files, "check_citations")
            for language in ("en", "zh")
        }
        # all that decides the answers beside retriever and model: evaluation's fingerprint of a graph holds it
        hashes = [(prompt.metadata or {}).get("hash") for prompt in self._prompts.values()]
        self.options: tuple[Any, ...] = (self.max_passage_chars, self.guards, *hashes)
        if self.grades:
            self._grader = as_evaluator(evaluator, llm, self._folder)
            limits = self._grader.thresholds
            self.options += (self._grader, limits.lower, limits.upper)
        warm_up()

    def model(self, context: RagContext) -> Any:
        """Return the model of the run: the graph's own, or the one that the context names."""
        return self.llm if context.model is None else _named_model(context.model)

    def retriever_of(self, context: RagContext) -> Any:
        """Return the retriever of the run: the graph's own, or that of the index named in the context."""
        if context.index is None:
            return self.retriever
        if self._indexes is None:
            raise InvalidInputError(
                f"context names the index {context.index!r:.80}, and this graph has one alone; leave it out, or build "
                "the graph with indexes=, a function that gives the retriever of an index by its name."
            )
        return self._indexes(context.index)

    def evaluator(self, context: RagContext) -> Evaluator:
        """Return the evaluator of the run: the one that the graph was given, else one of the run's model."""
        if context.model is not None and not self._has_evaluator:
            return _named_grader(context.model, self._folder)
        return self._grader

    async def judge(self, passages: Sequence[Document], state: Values, context: Any) -> list[Grading]:
        """Let the evaluator of the run grade passages by the question that is answered."""
        evaluator, instructions = self.evaluator(context), context.grade_instructions
        question, language = question_of(state), state["language"]
        return await judge_passages(evaluator, question, passages, language, instructions=instructions)

    def prompt(self, name: str, state: Values, context: RagContext) -> PromptTemplate:
        """Return a prompt in the run's language, with the run's own instructions if it has any."""
        language = "zh" if state["language"] == "zh" else "en"
        instructions: str = getattr(context, f"{name}_instructions", None) or ""
        prompt = self._prompts[name, language]
        return prompt.with_instructions(instructions) if instructions.strip() else prompt

    def ask(
        self, name: str, state: Values, context: RagContext, values: Values, fallback: Any = None
    ) -> Step[Any]:
        """Make the step that asks the model for an object; a failed call gives its error, or ``fallback(error)``."""
        prompt = self.prompt(name, state, context)
        return ask(self.model(context), prompt, values, fallback=fallback or (lambda error: error))

    def write(self, name: str, state: Values, context: RagContext, values: Values) -> Step[TextReply]:
        """Make the step that asks the model for text by the prompt ``name``."""
        return write(self.model(context), self.prompt(name, state, context), values)

    async def first_update(self, state: Values, context: RagContext) -> Update:
        """Check the question, choose the language, ask the guards; a question that they refuse ends the run."""
        question = check_question(state.get("question"), example="{'question': 'How ...?'}")
        if context.model or context.index:
            # what the run names is loaded here, on a thread, and kept; loaded later, it would block the event loop
            await compute(lambda: (self.model(context), self.retriever_of(context)))
        language = detect_language(question) if context.language == "auto" else context.language
        verdict = await self.guards.check_question(question)
        if isinstance(verdict, Refusal):
            return self.refusal_update(verdict, language=language)
        # a query that is given: by whoever edited the state, or by a graph that this one is a node of
        query = state.get("search_query") or verdict
        return {"language": language, "asked": verdict, "standalone": verdict, "search_query": query}

    async def begin(self, state: Any, context: Any) -> Update:
        """Begin a run by `first_update`, and complete a follow-up; the first turn of a thread needs no model call."""
        update = await self.first_update(state, context)
        history = state.get("history")
        if not history or is_refused(update):
            return update
        return update | await self.complete_question(update, context, render_turns(history, self.max_history))

    async def complete_question(
        self, state: Values, context: RagContext, history: Markup, name: str = "condense", **more_values: Any
    ) -> Update:
        """Ask the model, by the prompt ``name``, for the question in a form without history; guards may refuse it."""
        values = {"question": state["asked"], "history": history, **more_values}
        reply = await self.ask(name, state, context, values)
        if isinstance(reply, Exception):
            note = note_no_reply("condense", reply, "searched for the question as asked")
            write_note(note, unsearched=True)
            return {}
        question = reply.query
        if question != state["asked"]:  # it and the words of the conversation may be harmful together
            verdict = await self.guards.check_question(question)
            if isinstance(verdict, Refusal):
                return self.refusal_update(verdict, language=state["language"])
            question = verdict
        report("condensed", search_query=question)
        update = {"standalone": question}
        if state["search_query"] == state["asked"]:  # else somebody edited the query
            update["search_query"] = question
        return update

    def retriever_step(self, query: str, context: RagContext) -> Step[Any]:
        """Make the step that calls the retriever; a call that hangs is abandoned at the run's deadline."""
        options: Any = {"k": context.k, "filter": context.filter}
        if not isinstance(
            query, str | None
        ):  # somebody edited the state; `Node` makes an error that names the key
            raise TypeError(query)
        if not query:
            write_note("retrieve: the query is empty, so nothing was searched", unsearched=True)
            return compute(list)
        retriever = self.retriever_of(context)
        sync = partial(call_retriever, retriever, query, **options)
        native = partial(acall_retriever, retriever, query, **options)
        return call_within_deadline("retrieve", sync, native)

    async def search(self, query: str, context: RagContext, **details: Any) -> list[Document]:
        """Search for the passages that this user may see."""
        allowed = await self.visible_passages(await self.retriever_step(query, context))
        report("retrieved", **details, passages=len(allowed))
        return allowed

    async def visible_passages(self, documents: Sequence[Document]) -> list[Document]:
        """Return the passages that the guards let through, with metadata that a checkpointer can store."""
        allowed = await self.guards.check_passages(documents)
        for note in passage_notes(allowed):
            write_note(note)
        return [as_storable(document) for document in allowed]

    async def retrieve(self, state: Any, context: Any) -> Any:
        """Retrieve the passages that this user may see."""
        return {"documents": await self.search(state["search_query"], context)}

    async def answer(self, state: Any, context: Any) -> Update:
        """Answer from the passages alone."""
        # a thread's follow-up is answered in its stand-alone form, or its pronouns would refer to nothing
        return await self.answer_from(question_of(state), state["documents"], state, context)

    async def answer_from(
        self,
        question: str,
        documents: Sequence[Document],
        state: Values,
        context: RagContext,
        *,
        name: str = "answer",
        **more_values: Any,
    ) -> Update:
        """Answer from the passages, and their pictures, by the prompt ``name``; decline without passages."""
        if not documents:
            return {"answer": DECLINED[state["language"]]}
        model, fitting = self.model(context), self.fitting_passages(documents)
        passages = render_passages(fitting, max_chars=self.max_passage_chars)
        prompt: Any = self.prompt(name, state, context)
        if self._pictures and not is_extractive(model):
            pictures = await compute(partial(pictures_of, self._pictures, fitting))
            prompt = PicturePrompt(prompt, pictures) if pictures else prompt
        written = await write(model, prompt, {"question": question, "passages": passages, **more_values})
        notes = self._note_unread(documents, fitting) + await note_disagreements(question, fitting)
        return {"answer": written.text.strip(), "cut_off": written.cut_off, "notes": notes}

    def _note_unread(self, documents: Sequence[Document], fitting: Sequence[Document]) -> list[str]:
        """Note the passages that did not fit into the prompt, and a first one that was cut."""
        notes, limit = [], f"max_passage_chars={self.max_passage_chars}"
        if left_out := len(documents) - len(fitting):
            notes.append(f"answer: {left_out} passages did not fit into {limit}")
        if len(fitting[0].page_content) > self.max_passage_chars:  # only the first can be too long
            notes.append(f"answer: the first passage was read as far as {limit} allows")
        return notes

    def fitting_passages(self, documents: Sequence[Document]) -> list[Document]:
        """Return the first passages, as many as fit into a prompt, at least one."""
        room = self.max_passage_chars
        for count, document in enumerate(documents):
            room -= len(document.page_content)
            if room < 0:
                return list(documents[: max(1, count)])
        return list(documents)

    def render_fitting_passages(self, documents: Sequence[Document]) -> str:
        """Render as many passages as fit into a prompt."""
        return render_passages(self.fitting_passages(documents), max_chars=self.max_passage_chars)

    async def cite(self, state: Any, context: Any) -> Any:
        """Let the guards see the answer, check every citation against its passage, remember the turn."""
        answer = await self.guards.check_answer(state["answer"])
        if isinstance(answer, Refusal):
            return self.refusal_update(answer, state)
        notes = [f"answer: cut off, {state['cut_off']}"] if state.get("cut_off") else []
        if answer != state["answer"]:
            notes.append("answer: changed by a guard")
        checked = await self._check_citations(answer, state, context)
        status = self.final_status(state, checked["status"])
        if is_extractive(self.model(context)) and status != "declined":
            note = "answer: extracts, chosen by the words they share with the question; no language model"
            notes.append(note)
        if status == "declined":
            status, answer = self.judge_decline(state, answer)
        elif state.get("cut_off"):
            status = "incomplete"
        report("cited", status=status)
        notes += checked.pop("notes", [])
        history = new_turn(state, answer)
        return {**checked, "status": status, "answer": answer, "notes": notes, "history": history}

    async def _check_citations(self, answer: str, state: Any, context: Any) -> Update:
        """Check an answer's citations by the words, or by the model if the run's settings say so.

        A statement that its passage supports in part counts as not supported. One without a verdict of the model keeps
        the status that comparing words gave it, and ``notes`` say so.
        """
        documents, language = self.fitting_passages(state["documents"]), state["language"]
        by_words = check_answer(answer, documents, language=language)
        cited: dict[str, list[int]] = {}  # statement -> numbers of the passages that it cites
        for citation in by_words["citations"]:
            if citation["status"] != "missing_passage":
                cited.setdefault(citation["statement"], []).append(citation["number"])
        statements = list(cited)[:_MAX_STATEMENTS]
        if context.citation_check == "words" or is_extractive(self.model(context)) or not statements:
            return by_words
        numbered = [f"{statement} [{', '.join(map(str, cited[statement]))}]" for statement in statements]
        values = {"question": question_of(state), "count": len(numbered)}
        values |= {"passages": render_passages(documents), "statements": render_passages(numbered)}
        reply = await self.ask("check_citations", state, context, values)
        if isinstance(reply, Exception):
            return {**by_words, "notes": [note_no_reply("cite", reply, "the words decided")]}
        verdicts: dict[str, Literal["supported", "unsupported"]] = {}
        for label in reply.labels:
            if 1 <= label.id <= len(statements):
                verdicts[statements[label.id - 1]] = "supported" if label.support == "full" else "unsupported"
        missing = len(cited) - len(verdicts)
        notes = (
            [f"cite: no verdict of the model on {missing} statements; the words decided"] if missing else []
        )
        return {**check_answer(answer, documents, language=language, judged=verdicts), "notes": notes}

    def judge_decline(self, state: Any, answer: str) -> tuple[AnswerStatus, str]:
        """Return status and text of an answer that declines; ``incomplete`` if not all was searched or read."""
        language = state["language"]
        if state.get("unsearched"):
            return "incomplete", limit_decline(answer, language)
        documents = state["documents"]
        too_long = any(len(document.page_content) > self.max_passage_chars for document in documents)
        if too_long or len(self.fitting_passages(documents)) < len(documents):
            return "incomplete", f"{answer}\n\n{_NOT_ALL_READ[language]}"
        return "incomplete" if state.get("cut_off") else "declined", answer

    def final_status(self, state: Any, status: AnswerStatus) -> AnswerStatus:
        """Return the status of the run, by that of its citations."""
        return status

    def refusal_update(self, refusal: Refusal, state: Any = None, **more: Any) -> Update:
        """Make the update that ends a refused run: the guard's message is the answer, what was found is removed.

        Without ``state``, after a refused question, the turn is not kept: the next turn would show it to the model.
        """
        report("refused", reason=refusal.reason)
        return {
            **empty_state(self.state),
            "answer": refusal.message,
            "status": "refused",
            "notes": Overwrite([f"refused by a guard: {refusal.reason or 'no reason given'}"]),
            **({"history": new_turn(state, refusal.message)} if state else {}),
            **more,
        }


@lru_cache(maxsize=_MAX_NAMED_MODELS)
def _named_grader(name: str, prompts: Path | None) -> Evaluator:
    return as_evaluator(None, _named_model(name), prompts)


def new_turn(state: Any, answer: str) -> list[Turn] | Overwrite:
    """Return the turn, to be appended to the history; or the history with its last turn replaced, if that was edited.

    An editor can change an answer after the turn's end, when it has a status. In the adaptive graph the answer of the
    single step has one earlier; that answer is also kept as ``checked``.
    """
    turns, turn = list(state.get("history") or []), Turn(question=state["asked"], answer=answer)
    was_edited = state.get("status") and state.get("checked") != state["answer"]
    is_in_history = bool(turns) and turns[-1]["question"] == turn["question"]
    return Overwrite([*turns[:-1], turn]) if was_edited and is_in_history else [turn]


def render_turns(history: Sequence[Turn] | None, max_chars: int | None = None) -> Markup:
    """Render a thread's turns for a prompt; "" if there are none."""
    turns = []
    for turn in history or []:
        turns += [("user", turn["question"]), ("assistant", turn["answer"])]
    return render_history(turns, max_chars=max_chars)


def _check_retriever_and_model(retriever: Any, llm: Any) -> None:
    """Refuse a model as retriever or a retriever as model when a graph is built, not when it first runs."""
    for name, part, wrong_class, allowed in (
        ("retriever", retriever, BaseChatModel, "retriever, e.g. BM25Retriever.from_texts(...)"),
        ("llm", llm, BaseRetriever, "chat model, e.g. chat_model('extractive')"),
    ):
        if not isinstance(part, Runnable) or isinstance(part, wrong_class):
            raise InvalidInputError(f"{name} is a {type(part).__name__}; give a LangChain {allowed}.")


def check_folder(pictures: object) -> Path | None:
    """Return the folder of an index as a path, or None; InvalidInputError for anything else."""
    if pictures is None:
        return None
    if not isinstance(pictures, (str, os.PathLike)) or not Path(pictures).is_dir():
        raise InvalidInputError(
            f"pictures is {pictures!r:.80}; give the folder of the index whose passages name pictures, which "
            "`rag-kit ingest --pictures` kept."
        )
    return Path(pictures)


def pictures_of(folder: Path, documents: Sequence[Document]) -> list[tuple[str, Path]]:
    """Return the picture files that passages name, each with a tag that holds the number of its passage.

    Notes name the pictures that are left out: those that are not in the folder, and those beyond `_MAX_PICTURES`.
    """
    pictures: list[tuple[str, Path]] = []
    missing: set[str] = set()
    for number, document in enumerate(documents, 1):
        name = document.metadata.get("picture")
        if not is_picture(name):
            continue
        path = folder / str(name)
        if path.is_file() and not path.is_symlink() and not path.parent.is_symlink():  # links may lead out
            pictures.append((f'<picture passage="{number}"/>', path))
        else:
            missing.add(str(name))
    if missing:
        names = ", ".join(sorted(missing))
        write_note(f"answer: without the pictures {names}, which are not in {folder.name}")
    if (left_out := len(pictures) - _MAX_PICTURES) > 0:
        write_note(f"answer: {left_out} of {len(pictures)} pictures were left out of the prompt")
    return pictures[:_MAX_PICTURES]


async def note_disagreements(
    question: str, documents: Sequence[Document], cited_count: int | None = None
) -> list[str]:
    """Note passages that state different values of the same thing: ``"[1] 60 (2021), [2] 70 (2024); the newest ..."``.

    Passages beyond the first `cited_count` have no number in the answer; they are called by their title.
    """

    def name(statement: VersionStatement) -> str:
        if cited_count is None or statement.number <= cited_count:
            return f"[{statement.number}]"
        return statement.title or "another passage"

    notes = []
    for disagreement in await compute(partial(find_disagreements, question, passage_texts(documents))):
        parts = []
        for statement in disagreement.statements:
            version = f" ({statement.version.label})" if statement.version.label else ""
            parts.append(f"{name(statement)} {statement.shown}{version}")
        newest = "nothing says which is the newest"
        if disagreement.newest:
            newest = f"the newest is {name(disagreement.newest)}"
        notes.append(f"answer: passages disagree: {', '.join(parts)}; {newest}")
    return notes
