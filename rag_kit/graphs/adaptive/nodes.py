"""The nodes of the adaptive graph but for the single step: classify, talk, ask back, search hop by hop, end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from itertools import chain, zip_longest
from typing import Any, get_args

from langchain_core.documents import Document
from langgraph.types import interrupt

from rag_kit.concurrency.notes import write_note
from rag_kit.errors import InvalidInputError
from rag_kit.graphs.adaptive.state import AdaptiveContext, AdaptiveState, Clarification, Hop, Route
from rag_kit.graphs.guards import Refusal
from rag_kit.graphs.nodes import RagNodes, new_turn, render_turns
from rag_kit.graphs.running import call_user_function, can_wait, note_no_reply, report
from rag_kit.graphs.state import AnswerStatus, Turn, Update, digest_of, question_of
from rag_kit.models.model_call import is_extractive
from rag_kit.prompts.rendering import Markup, render_history
from rag_kit.prompts.schemas import Classification
from rag_kit.text.citations.check import renumber
from rag_kit.text.citations.decline import DECLINED, is_declined
from rag_kit.text.complexity import question_kind
from rag_kit.text.language import MAX_QUESTION_CHARS, fold

#: Of a question and the earlier questions of the thread: a `Classification`, or the name of a route.
Classifier = Callable[[str, Sequence[str]], "Classification | str | Awaitable[Classification | str]"]

MAX_HISTORY = 8_000  # characters of earlier turns in a prompt
MAX_NOTED = 500  # characters of the answer to a sub-question
MAX_REPLY = 2_000  # characters of the user's reply to a question back
#: Calls that one more hop needs: to ask for it, to answer it, and for the last answer.
_CALLS_OF_HOP = 3
#: The first node of each route.
FIRST_NODE = {"direct": "direct", "single": "single", "multi": "next_hop", "clarify": "ask_back"}
#: The route of a question, by what it needs, and of anything else.
_BY_COMPLEXITY = {"none": "direct", "single": "single", "multi": "multi"}
_BY_INTENT = {"unclear": "clarify", "chat": "direct"}
_GENERAL_QUESTION = {
    "en": "What exactly do you mean? Please name what your question is about.",
    "zh": "请问你具体指的是什么？请写出名称。",
}


class AdaptiveNodes(RagNodes):
    """Nodes of the adaptive graph; each reads the state and returns an update of it."""

    files = (
        "condense", "classify_question", "clarify_question", "direct_answer", "next_hop", "answer",
        "answer_from_hops",
    )  # fmt: skip
    state = AdaptiveState
    max_history = MAX_HISTORY

    def __init__(self, retriever: Any, llm: Any, options: Any, *, classifier: Classifier | None) -> None:
        super().__init__(retriever, llm, options)
        self.classifier = classifier

    async def classify(self, state: AdaptiveState, context: AdaptiveContext) -> Update:
        """Choose the route by the user's words alone, without passages or answers."""
        if context.route != "auto":
            return _go_to(context.route, {"reason": "set by the context"})
        question = question_of(state)
        earlier = [turn["question"] for turn in state.get("history") or []]
        earlier += [item["reply"] for item in state["clarifications"]]
        if self.classifier is not None:
            verdict: Any = await call_classifier(self.classifier, question, earlier)
        else:
            history = render_history([("user", text) for text in earlier], max_chars=MAX_HISTORY)
            values = {"question": question, "history": history}
            verdict = await self.ask("classify_question", state, context, values)
        if isinstance(verdict, Exception):  # unsearched: several steps might have found it
            write_note(note_no_reply("classify", verdict, "looked up in one step"), unsearched=True)
            return _go_to("single", {})
        classified = {"intent": verdict.intent, "complexity": verdict.complexity, "reason": verdict.reason}
        is_question = verdict.intent == "question"
        route: Any = _BY_COMPLEXITY.get(verdict.complexity) if is_question else _BY_INTENT.get(verdict.intent)
        if route is None:
            problem = f"{verdict.intent!r} / {verdict.complexity!r} is no known way; looked up in one step"
        elif route == "clarify" and len(state["clarifications"]) >= context.max_clarifications:
            problem = "the question is unclear, but the user was asked often enough; looked up as it is"
        elif route == "direct" and not context.direct:
            problem = "nothing is answered without looking it up in this run"
        else:
            return _go_to(route, classified)
        return _go_to("single", classified, problem)

    async def direct(self, state: AdaptiveState, context: AdaptiveContext) -> Update:
        """Answer without a search; if the model cannot, or declines, choose the single step instead."""
        text, cut_off = "", ""
        if not is_extractive(self.model(context)):
            history = render_turns(state.get("history"), MAX_HISTORY)
            values = {"question": question_of(state), "history": history}
            text, cut_off = await self.write("direct_answer", state, context, values)
        if not text or is_declined(text):
            note = "direct: the model cannot answer without passages; looked up in one step"
            return {"route": "single", "notes": [note]}
        # a number in brackets would read as a citation, and nothing stands behind it
        answer = renumber(text, {}).strip()
        return {"answer": answer, "cut_off": cut_off}

    async def ask_back(self, state: AdaptiveState, context: AdaptiveContext) -> Update:
        """Ask the user a question back; if nobody can reply within this run, it is the answer.

        LangGraph runs the node that waits, `clarify`, anew once the reply is there; so the question is written here.
        """
        values = {"question": question_of(state), "reason": state["reason"]}
        reply = await self.ask("clarify_question", state, context, values)
        if isinstance(reply, Exception):
            question = _GENERAL_QUESTION[state["language"]]
            notes = [note_no_reply("clarify", reply, "a general question was asked")]
        else:
            question, notes = reply.query, list[str]()
        verdict = await self.guards.check_answer(question)
        if isinstance(verdict, Refusal):
            return self.refusal_update(verdict, state)
        if can_wait() and context.clarify:
            return {"question_back": verdict, "notes": notes}
        notes.append("clarify: the answer is a question back; ask again with what is missing")
        update: Update = dict.fromkeys(("question_back", "answer", "checked"), verdict)
        return {**update, "status": "clarify", "notes": notes}

    async def clarify(self, state: AdaptiveState, context: AdaptiveContext) -> Update:
        """Wait for the user's reply, and judge the question anew together with it."""
        resume_value = interrupt({"question": state["question_back"], "asked": state["asked"]})
        reply = " ".join(resume_value.split())[:MAX_REPLY] if isinstance(resume_value, str) else ""
        if not reply:
            note = "clarify: the reply holds no text; looked up as it is"
            return {"route": "single", "notes": [note]}
        verdict = await self.guards.check_question(reply)
        if isinstance(verdict, Refusal):
            return self.refusal_update(verdict, state)
        reply = verdict
        # question and reply verbatim, so that no model can lose either
        in_brackets = f"（{reply}）" if state["language"] == "zh" else f" ({reply})"
        whole = (question_of(state) + in_brackets)[:MAX_QUESTION_CHARS]
        verdict = await self.guards.check_question(whole)  # each alone may be harmless
        if isinstance(verdict, Refusal):
            return self.refusal_update(verdict, state)
        report("clarified", reply=reply)
        clarification = Clarification(question=state["question_back"], reply=reply)
        clarifications = [*state["clarifications"], clarification]
        asked = dict.fromkeys(("asked", "standalone", "search_query"), verdict)
        return {**asked, "clarifications": clarifications}

    async def next_hop(self, state: AdaptiveState, context: AdaptiveContext) -> Update:
        """Ask the model for the next sub-question, given the answers so far; without one, go on to the answer."""
        hops, max_calls, question = state["hops"], context.max_calls, question_of(state)
        hops_left = context.max_hops - len(hops)
        if hops_left <= 0:
            return _conclude(state, f"hops: stopped at max_hops={context.max_hops}")
        if hops and max_calls is not None and max_calls - state["usage"]["calls"] < _CALLS_OF_HOP:
            return _conclude(state, f"hops: stopped, so that max_calls={max_calls} leaves one for the answer")
        values = {"question": question, "history": _render_hops(state), "count": hops_left}
        reply = await self.ask("next_hop", state, context, values)
        sub_question = ""
        if isinstance(reply, Exception):
            write_note(note_no_reply("hops", reply, "no further sub-question"), unsearched=True)
        elif not reply.done:
            sub_question = reply.query
        if sub_question and fold(sub_question) in {fold(hop["question"]) for hop in hops}:
            return _conclude(state, "hops: the model repeated a sub-question")
        if not sub_question and hops:
            return _conclude(state)
        sub_question = sub_question or state["search_query"]  # at least one search, whatever the model says
        report("hop", number=len(hops) + 1, question=sub_question)
        return {"sub_question": sub_question}

    async def search_hop(self, state: AdaptiveState, context: AdaptiveContext) -> Update:
        """Search for the sub-question; passages that this user may not see are left out."""
        passages = await self.search(state["sub_question"], context)
        found = {digest_of(passage): passage for passage in passages}
        earlier = {digest_of(passage): passage for passage in state["documents"]}
        hop = Hop(question=state["sub_question"], answer="", found=list(found))
        return {"documents": list((earlier | found).values()), "hops": [*state["hops"], hop]}

    async def answer_hop(self, state: AdaptiveState, context: AdaptiveContext) -> Update:
        """Answer the sub-question from its passages, for the prompts of the next steps; the user does not see it."""
        *earlier, hop = state["hops"]
        documents = _documents_of_last_hop(state)
        written = await self.answer_from(hop["question"], documents, state, context)
        # without citations, whose numbers are those of this step alone
        answer = renumber(written["answer"], {}, [document.page_content for document in documents])
        verdict = "" if is_declined(answer) else await self.guards.check_answer(answer)
        text = "" if isinstance(verdict, Refusal) else " ".join(verdict.split())[:MAX_NOTED]
        return {"hops": [*earlier, Hop({**hop, "answer": text})]}

    async def conclude(self, state: AdaptiveState, context: AdaptiveContext) -> Update:
        """Answer from the passages of all steps; the answers to sub-questions help the model, but cannot be cited."""
        if not state["hops"]:  # whoever edited the state wanted none
            write_note("hops: there was no sub-question, so nothing was searched", unsearched=True)
        options = {"name": "answer_from_hops", "history": _render_hops(state)}
        return await self.answer_from(question_of(state), state["documents"], state, context, **options)

    async def finish(self, state: AdaptiveState, context: AdaptiveContext) -> Update:
        """Check citations, and let the guards see the answer, where that was not done yet, or an editor changed it."""
        answer = state["answer"]
        was_edited = state["checked"] not in ("", answer)
        if state["route"] in ("multi", "direct") or was_edited:
            update: Update = await self.cite(state, context)
            if update["status"] == "unsourced":
                update |= {"uncited": [], "notes": ["direct: nothing was looked up", *update["notes"]]}
            return update
        # the answer of the single step, and a question back, were checked where they were made
        status = state["status"]
        if status == "declined":  # something may have failed before the single step
            status, answer = self.judge_decline(state, answer)
        history = new_turn(state, answer)
        if status == "refused":
            return {"asked": "", "standalone": "", "search_query": "", "history": history}
        report("cited", status=status)
        return {"status": status, "answer": answer, "history": history}

    def final_status(self, state: AdaptiveState, status: AnswerStatus) -> AnswerStatus:
        """Return ``unsourced`` if nothing was searched nor, by an editor, cited; else the status of the citations."""
        return "unsourced" if state["route"] == "direct" and status != "flagged" else status


def classify_by_rule(question: str, earlier: Sequence[str] = ()) -> Classification:
    """Classify by wording: greetings and talk, comparisons, bridging relations, empty references.

    It errs to one side: what does not show in the words (a yes/no question with hidden steps) counts as one search.

    Example:
        >>> [classify_by_rule(text).complexity for text in ("Thanks!", "Who wrote Emma?", "Compare A and B in size.")]
        ['none', 'single', 'multi']
    """
    return Classification(**question_kind(question, has_history=bool(earlier))._asdict())


async def call_classifier(classifier: Classifier, question: str, earlier: Sequence[str]) -> Classification:
    """Call a user's classifier; return its Classification, or one made of the name of a route that it gave."""
    verdict: Any = await call_user_function("classify", classifier, question, earlier)
    if isinstance(verdict, Classification):
        return verdict
    if isinstance(verdict, str):
        intent = "unclear" if verdict == "clarify" else "question"
        return Classification(intent=intent, complexity="none" if verdict == "direct" else verdict, reason="")
    raise InvalidInputError(
        f"the classifier gave {type(verdict).__name__}; it must give a Classification, or one of "
        f"{', '.join(get_args(Route))}."
    )


def _go_to(route: Route, classified: Update, problem: str = "") -> Update:
    """Make the update that chooses a route, and send its event; ``problem`` says why it is not another one."""
    report("classified", route=route, reason=classified.get("reason", ""))
    return {**classified, "route": route, "notes": [f"classify: {problem}"] if problem else []}


def _conclude(state: AdaptiveState, *notes: str) -> Update:
    """Make the update that ends the search: the best passages of all steps first, those that an editor added last."""
    by_digest = {digest_of(document): document for document in state["documents"]}
    best_first = chain.from_iterable(zip_longest(*(hop["found"] for hop in state["hops"])))
    # digests without repeats; None where a step has no more
    digests = dict.fromkeys([*best_first, *by_digest])
    documents = [by_digest[digest] for digest in digests if digest in by_digest]
    return {"sub_question": "", "documents": documents, "notes": list(notes)}


def _documents_of_last_hop(state: AdaptiveState) -> list[Document]:
    """Return the passages of the last step, best first, then those that no step found, but an editor added."""
    *earlier_hops, last_hop = state["hops"]
    found_earlier = {digest for hop in earlier_hops for digest in hop["found"]}
    by_digest = {digest_of(document): document for document in state["documents"]}
    others = [digest for digest in by_digest if digest not in found_earlier]
    digests = dict.fromkeys([*last_hop["found"], *others])
    return [by_digest[digest] for digest in digests if digest in by_digest]


def _render_hops(state: AdaptiveState) -> Markup:
    none = DECLINED[state["language"]]
    turns = [Turn(question=hop["question"], answer=hop["answer"] or none) for hop in state["hops"]]
    return render_turns(turns, MAX_HISTORY)
