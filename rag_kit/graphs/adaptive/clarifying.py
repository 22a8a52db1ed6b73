"""The nodes that ask the user back: one writes the question, the other waits for the reply."""

from __future__ import annotations

from typing import Any

from langchain_core.language_models import BaseChatModel
from langgraph.graph import END
from langgraph.types import Command, interrupt

from rag_kit.graphs.adaptive.context import AdaptiveContext
from rag_kit.graphs.adaptive.nodes import forgotten
from rag_kit.graphs.adaptive.state import AdaptiveState, Clarification
from rag_kit.graphs.answering import refused
from rag_kit.graphs.guards import Guards, Refusal
from rag_kit.graphs.prompting import GraphPrompts
from rag_kit.graphs.running import report
from rag_kit.graphs.steps import ask, can_wait
from rag_kit.text.question import MAX_QUESTION_CHARS

MAX_REPLY = 2_000
_USUAL = {
    "en": "What exactly do you mean? Please name what your question is about.",
    "zh": "请问您具体指的是什么？请写出名称。",
}


class ClarifyingNodes:
    """Bodies of ``ask_back`` and ``clarify``.

    Two nodes, since a node that waits runs anew from its start when it goes on: the question that was shown must
    not be written twice.
    """

    def __init__(self, llm: BaseChatModel, prompts: GraphPrompts, guards: Guards) -> None:
        self.llm = llm
        self.prompts = prompts
        self.guards = guards

    async def ask_back(self, state: AdaptiveState, context: AdaptiveContext) -> Command[Any]:
        """Write the question back; where nobody can reply within this run, it is the answer."""
        language = state["language"]
        prompt = self.prompts.pick("clarify_question", language, context.clarify_question_instructions)
        values = {"question": state["search_query"], "reason": state["reason"]}
        written = await ask(self.llm, prompt, values, fallback=None)
        notes = [] if written else ["clarify: the model gave nothing usable; a general question was asked"]
        back = written.query if written else _USUAL[language]
        verdict = await self.guards.check_answer(back)
        if isinstance(verdict, Refusal):
            return Command(update={**forgotten(), **refused(state["asked"], verdict)}, goto=END)
        waits = await can_wait()
        if context.clarify and waits:
            return Command(update={"question_back": verdict, "notes": notes}, goto="clarify")
        notes.append("clarify: the answer is a question back; ask again with what is missing")
        update = {"question_back": verdict, "answer": verdict, "status": "clarify", "notes": notes}
        return Command(update=update, goto="finish")

    async def clarify(self, state: AdaptiveState, context: AdaptiveContext) -> Command[Any]:
        """Wait for the user's reply; it joins the question, which is then judged anew."""
        reply = _text(interrupt({"question": state["question_back"], "asked": state["asked"]}))
        if not reply:
            note = "clarify: the reply holds no text; looked up as it is"
            return Command(update={"route": "single", "notes": [note]}, goto="single")
        verdict = await self.guards.check_question(reply)
        if isinstance(verdict, Refusal):
            return Command(update={**forgotten(), **refused(state["asked"], verdict)}, goto=END)
        # the reply alone may be harmless, and so may the question alone
        asked, query = (_joined(state[key], verdict, state["language"]) for key in ("asked", "search_query"))
        whole = await self.guards.check_question(asked)
        search = whole if query == asked else (await self.guards.check_question(query))
        for one in (whole, search):
            if isinstance(one, Refusal):
                return Command(update={**forgotten(), **refused(state["asked"], one)}, goto=END)
        report("clarified", reply=verdict)
        answered = Clarification(question=state["question_back"], reply=verdict)
        return Command(
            update={
                "asked": whole,
                "search_query": search,
                "clarifications": [*state["clarifications"], answered],
            },
            goto="classify",
        )


def _text(reply: Any) -> str:
    """What the user wrote: a text, or the one text in an object, as forms send it."""
    if isinstance(reply, dict):
        texts = [value for value in reply.values() if isinstance(value, str)]
        reply = texts[0] if len(texts) == 1 else ""
    return " ".join(reply.split())[:MAX_REPLY] if isinstance(reply, str) else ""


def _joined(question: str, reply: str, language: str) -> str:
    """The question with the reply in brackets, both verbatim: no model can lose either."""
    whole = f"{question}（{reply}）" if language == "zh" else f"{question} ({reply})"
    return whole[:MAX_QUESTION_CHARS]
