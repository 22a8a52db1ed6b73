"""The first and the last node of both modes."""

from __future__ import annotations

from typing import Any

from langgraph.graph import END
from langgraph.types import Command, Overwrite

from rag_kit.errors import BudgetExceededError
from rag_kit.graphs.answering import Answering, refused
from rag_kit.graphs.guards import Refusal
from rag_kit.graphs.running import report
from rag_kit.graphs.self_rag.candidates import unreadable
from rag_kit.graphs.self_rag.context import SelfRagContext
from rag_kit.graphs.self_rag.state import SelfRagState, emptied, fresh
from rag_kit.graphs.state import Update
from rag_kit.graphs.steps import Steps, ask
from rag_kit.prompts import render_history
from rag_kit.text import check_question, detect_language


class Ends:
    """What both modes begin and end with.

    Args:
        answering: The shared last steps, with model, prompts and guards.
        mode: ``"paper"`` or ``"reflect"``.
        after_begin: The node after the first one.
    """

    def __init__(self, answering: Answering, mode: str, after_begin: str) -> None:
        self.answering = answering
        self.mode = mode
        self.after_begin = after_begin

    def begin(self, state: SelfRagState, context: SelfRagContext) -> Steps[Command[Any]]:
        """Ask the guards, forget the last turn, make a follow-up question stand alone."""
        question = check_question(state.get("question"), example="{'question': 'How ...?'}")
        language = detect_language(question) if context.language == "auto" else context.language
        update = fresh(question, language, self.mode)
        verdict = yield from self.answering.guards.check_question(question)
        if isinstance(verdict, Refusal):
            return Command(
                update={**update, **refused(question, verdict), **emptied(), "history": []}, goto=END
            )
        update["asked"] = update["search_query"] = verdict
        if history := state.get("history"):
            turns = [
                message
                for turn in history
                for message in (("user", turn["question"]), ("assistant", turn["answer"]))
            ]
            prompt = self.answering.prompts.pick("condense", language, context.condense_instructions)
            values = {"question": verdict, "history": render_history(turns)}
            query = yield ask(self.answering.llm, prompt, values, fallback=unreadable)
            if query is None:
                update["notes"] = Overwrite(
                    ["condense: the model gave no usable rewriting; took the question as asked"]
                )
            else:
                whole = yield from self.answering.guards.check_completed(query.query, verdict)
                if isinstance(whole, Refusal):
                    return Command(
                        update={**update, **refused(question, whole), **emptied(), "history": []}, goto=END
                    )
                update["asked"] = update["search_query"] = whole
                report("condensed", search_query=whole)
        return Command(update=update, goto=self.after_begin)

    def cite(self, state: SelfRagState, context: SelfRagContext) -> Steps[Update]:
        """Check every citation against its passage, let the guards see the answer."""
        update = yield from self.answering.cite(
            state["asked"], state["answer"], state["documents"], state["language"]
        )
        if update["status"] == "refused":
            return {**update, **emptied()}
        if update["status"] == "uncited" and not state["documents"]:
            update["status"] = "unsourced"
        elif state.get("unsupported") and update["status"] in ("grounded", "uncited"):
            update["status"] = "flagged"
        return update


def cap_of(error: BudgetExceededError, context: SelfRagContext) -> str:
    """Which cap was reached, as the caller gave it."""
    if error.what == "calls":
        return f"max_calls={context.max_calls}"
    if error.what == "tokens":
        return f"max_tokens={context.max_tokens}"
    return f"deadline={context.deadline:g} s" if context.deadline is not None else str(error)
