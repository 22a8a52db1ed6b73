"""The nodes of the adaptive graph that begin it, choose the way, answer without looking up, and end it."""

from __future__ import annotations

from typing import Any

from langgraph.types import Command

from rag_kit.graphs.adaptive.classifier import Classifier, called, route_of
from rag_kit.graphs.adaptive.context import AdaptiveContext
from rag_kit.graphs.adaptive.state import AdaptiveState, Route
from rag_kit.graphs.answering import Answering, refused
from rag_kit.graphs.guards import Refusal
from rag_kit.graphs.opening import Opening, rendered
from rag_kit.graphs.running import report
from rag_kit.graphs.state import Turn, Update
from rag_kit.graphs.steps import ask, write
from rag_kit.models.chat import is_extractive
from rag_kit.prompts.rendering import render_history
from rag_kit.prompts.tags import Markup
from rag_kit.text.citations.decline import is_declined
from rag_kit.text.citations.statements import renumbered

MAX_HISTORY = 8_000
_NODES: dict[Route, str] = {
    "direct": "direct",
    "single": "single",
    "multi": "next_hop",
    "clarify": "ask_back",
}


class AdaptiveNodes:
    """Bodies of ``begin``, ``classify``, ``direct`` and ``finish``.

    Args:
        classifier: In place of the model's judgement; None: the model.
        answering: Model, prompts, guards, and the common last steps.
    """

    def __init__(self, classifier: Classifier | None, answering: Answering) -> None:
        self.classifier, self.answering = classifier, answering
        self.llm, self.prompts, self.guards = answering.llm, answering.prompts, answering.guards
        self.opening = Opening(self.llm, self.prompts, self.guards)

    async def begin(self, state: AdaptiveState, context: AdaptiveContext) -> Command[Any]:
        """Check the question, and make a follow-up stand alone; no model call at the first turn of a thread."""
        return await self.opening.begin(state, context, forgotten(), goto="classify", max_history=MAX_HISTORY)

    async def classify(self, state: AdaptiveState, context: AdaptiveContext) -> Command[Any]:
        """Choose the way by the words of the user alone: no passage and no answer is shown to the classifier."""
        if context.route != "auto":
            return self._go_to(context.route, {"reason": "set by the context"}, [])
        question = state["search_query"]
        earlier = [turn["question"] for turn in state.get("history") or []]
        earlier += [item["reply"] for item in state["clarifications"]]
        if self.classifier is not None:
            found = await called(self.classifier, question, earlier)
        else:
            instructions = context.classify_question_instructions
            prompt = self.prompts.pick("classify_question", state["language"], instructions)
            history = (
                render_history([("user", text) for text in earlier], max_chars=MAX_HISTORY)
                if earlier
                else Markup("")
            )
            values = {"question": question, "history": history}
            found = await ask(self.llm, prompt, values, fallback=None)
        if found is None:
            return self._go_to(
                "single", {}, ["classify: the model gave nothing usable; looked up in one step"]
            )
        classified = {"intent": found.intent, "complexity": found.complexity, "reason": found.reason}
        route = route_of(found)
        if route is None:
            note = f"classify: {found.intent!r} / {found.complexity!r} is no known way; looked up in one step"
            return self._go_to("single", classified, [note])
        if route == "clarify" and len(state["clarifications"]) >= context.max_clarifications:
            note = (
                "classify: the question is unclear, but the user was asked often enough; looked up as it is"
            )
            return self._go_to("single", classified, [note])
        if route == "direct" and not context.direct:
            return self._go_to(
                "single", classified, ["classify: nothing is answered without looking it up in this run"]
            )
        return self._go_to(route, classified, [])

    def _go_to(self, route: Route, classified: Update, notes: list[str]) -> Command[Any]:
        """Send the event with the route, and go to its first node."""
        report("classified", route=route, reason=classified.get("reason", ""))
        return Command(update={**classified, "route": route, "notes": notes}, goto=_NODES[route])

    async def direct(self, state: AdaptiveState, context: AdaptiveContext) -> Command[Any]:
        """Answer without looking anything up; a model that cannot hands over to the search."""
        note = "direct: the model cannot answer without passages; looked up in one step"
        handed_over: Command[Any] = Command(update={"route": "single", "notes": [note]}, goto="single")
        if is_extractive(self.llm):
            return handed_over
        prompt = self.prompts.pick("direct_answer", state["language"], context.direct_answer_instructions)
        history = rendered(state.get("history"), MAX_HISTORY)
        values = {"question": state["search_query"], "history": history}
        text = await write(self.llm, prompt, values, stream=not self.guards.answer)
        if is_declined(text):
            return handed_over
        # a number in brackets would read as a citation, and nothing stands behind it
        return Command(update={"answer": renumbered(text, {}).strip()}, goto="finish")

    async def finish(self, state: AdaptiveState, context: AdaptiveContext) -> Update:
        """Check what leaves: citations where something was looked up, guards wherever they have not seen it yet."""
        asked, answer, route = state["asked"], state["answer"], state["route"]
        if route == "multi":
            update = await self.answering.cite(state, context)
            return {**update, **(forgotten() if update["status"] == "refused" else {})}
        if route == "direct":
            verdict = await self.guards.check_answer(answer)
            if isinstance(verdict, Refusal):
                return {**refused(asked, verdict), **forgotten()}
            notes = ["direct: nothing was looked up"]
            notes += ["answer: changed by a guard"] if verdict != answer else []
            report("cited", status="unsourced")
            return {
                "answer": verdict,
                "status": "unsourced",
                "notes": notes,
                "history": [Turn(question=asked, answer=verdict)],
            }
        # the answer of the single step, and a question back, were checked where they were made
        if state["status"] == "refused":
            return {**forgotten(), "search_query": "", "history": [Turn(question=asked, answer=answer)]}
        report("cited", status=state["status"])
        return {"history": [Turn(question=asked, answer=answer)]}


def forgotten() -> Update:
    """This graph's own keys as a run begins, and as a refused one ends."""
    return {
        "asked": "",
        "route": "single",
        "intent": "",
        "complexity": "",
        "reason": "",
        "question_back": "",
        "clarifications": [],
        "hops": [],
        "sub_question": "",
        "hop_documents": [],
    }
