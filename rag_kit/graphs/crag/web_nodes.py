"""The nodes of the CRAG graph that look outside: rewrite, ask a person, search, select."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any

from langchain_core.language_models import BaseChatModel
from langgraph.types import Command, interrupt

from rag_kit.graphs.crag.context import CragContext
from rag_kit.graphs.crag.nodes import report_strips, strip_threshold
from rag_kit.graphs.crag.state import CragState
from rag_kit.graphs.crag.strips import DEFAULT_STRIPS, MAX_JUDGED, select_strips
from rag_kit.graphs.crag.web import WebSearch
from rag_kit.graphs.evaluators.base import Evaluator
from rag_kit.graphs.guards import Guards, Refusal
from rag_kit.graphs.prompting import GraphPrompts
from rag_kit.graphs.running import report
from rag_kit.graphs.state import Update
from rag_kit.graphs.steps import ask, can_wait

MAX_WEB_QUERY = 400
_YES = {"yes", "yes please", "y", "true", "ok", "okay", "sure", "approve", "approved"}
_YES |= {"是", "是的", "同意", "好", "好的", "可以", "批准"}
_NO = {
    "",
    "no",
    "no thanks",
    "no thank you",
    "nope",
    "n",
    "false",
    "never",
    "don't",
    "do not",
    "not",
}
_NO |= {"stop", "cancel", "abort", "deny", "denied", "decline", "declined", "refuse", "refused"}
_NO |= {"reject", "rejected", "ignore", "skip", "none", "null"}
_NO |= {"no way", "please no", "please don't", "do not search", "don't search", "no search"}
_NO |= {"否", "不", "不要", "不用", "不行", "不可以", "不同意", "别", "拒绝", "取消", "停止", "驳回", "算了"}
_NO |= {
    "不是",
    "不了",
    "不必",
    "不必了",
    "不用了",
    "不要了",
    "不需要",
    "不允许",
    "不批准",
    "不搜",
    "不要搜",
    "不要搜索",
    "别搜",
    "别搜了",
}
_ALLOWED = "allowed: True, False or another query"
_REASON = {
    "incorrect": "Nothing that was retrieved fits the question.",
    "ambiguous": "What was retrieved may not be enough to answer the question.",
}


class WebNodes:
    """The way outside. Nothing leaves unless the builder was given a web search."""

    def __init__(
        self,
        llm: BaseChatModel,
        evaluator: Evaluator,
        prompts: GraphPrompts,
        guards: Guards,
        web: WebSearch | None,
    ) -> None:
        self.llm = llm
        self.evaluator = evaluator
        self.prompts = prompts
        self.guards = guards
        self.web = web

    async def rewrite_query(self, state: CragState, context: CragContext) -> Command[Any]:
        """Turn the question into keywords; where there is no web search, say so and go on."""
        question = state["search_query"]
        if self.web is None:
            without = (
                "answered from what was retrieved" if state["action"] == "ambiguous" else "nothing to use"
            )
            note = f"web: could not look outside, no web search was given; {without}"
            report("no_web_search")
            return Command(update={"notes": [note]}, goto="generate")
        prompt = self.prompts.pick("web_query", state["language"], context.web_query_instructions)
        found = await ask(self.llm, prompt, {"question": question}, fallback=None)
        notes = []
        if found is None:
            query = _line(question)
            notes.append("web: the model gave no usable keywords; searched for the question itself")
        else:
            query = _line(" ".join(found.keywords))
        report("rewritten", web_query=query)
        update = {"web_query": query, "notes": notes}
        return Command(update=update, goto="approve" if context.approve_web else "web_search")

    async def approve(self, state: CragState, context: CragContext) -> Command[Any]:
        """Ask a person whether the query may leave; resume with True, False or another query."""
        query = state["web_query"]
        if not (await can_wait()):
            # a run that cannot wait would end here without an answer, and nobody could let it go on
            why = "a person's approval was asked for, and without a checkpointer nobody can be waited for"
            report("web_refused")
            return Command(update={"web_query": "", "notes": [f"web: not searched, {why}"]}, goto="generate")
        reply = interrupt({"query": query, "reason": _REASON[state["action"] or "ambiguous"]})
        edited, why = _decided(reply)
        if edited is None:
            report("web_refused")
            return Command(update={"web_query": "", "notes": [f"web: not searched, {why}"]}, goto="generate")
        if edited != "":
            verdict = await self.guards.check_question(edited)
            if isinstance(verdict, Refusal):
                note = f"web: not searched, a guard refused the query: {verdict.reason or 'no reason given'}"
                return Command(update={"web_query": "", "notes": [note]}, goto="generate")
            query = _line(verdict)
            if not query:
                note = "web: not searched, nothing is left of the query"
                return Command(update={"web_query": "", "notes": [note]}, goto="generate")
        report("web_approved", web_query=query)
        return Command(update={"web_query": query}, goto="web_search")

    async def web_search(self, state: CragState, context: CragContext) -> Update:
        """Search the web within bounds; a search that fails is noted."""
        assert self.web is not None, "rewrite_query leads here only with a web search"
        query = state["web_query"]
        found, why = await self.web.find(
            query,
            most=context.web_results,
            chars=context.web_result_chars,
            timeout=context.web_timeout,
        )
        allowed = await self.guards.allowed(found)
        report("searched_web", web_query=query, results=len(allowed), failed=why is not None)
        if why is not None:
            return {"notes": [f"web: {why}"]}
        return {
            "web_documents": allowed,
            "notes": [f"web: searched with {self.web.name} for {query!r}, {len(allowed)} results"],
        }

    async def select_external(self, state: CragState, context: CragContext) -> Update:
        """Keep the strips of the web's results that help; the same evaluator and thresholds as for passages."""
        results = state["web_documents"]
        chosen = await select_strips(
            self.evaluator,
            state["search_query"],
            results,
            state["language"],
            origin="web",
            size=context.strip_sentences,
            most=context.max_strips or DEFAULT_STRIPS,
            threshold=strip_threshold(self.evaluator, context),
            instructions=context.grade_instructions,
        )
        kept = report_strips("selected", chosen)
        notes = []
        if results:
            notes.append(f"select_external: {kept} of {len(chosen.strips)} strips of the web kept")
        if chosen.left_out:
            notes.append(f"select_external: {chosen.left_out} strips beyond {MAX_JUDGED} were not judged")
        return {"external": chosen.documents, "strips": chosen.strips, "notes": notes}


def _decided(reply: Any) -> tuple[str | None, str]:
    """A person's reply: another query, "" for the one that was shown, None for no search (and why)."""
    if isinstance(reply, Mapping):  # as some forms send it
        if "approve" in reply:
            edited, why = _decided(reply["approve"])
            if edited != "":  # no consent, whatever else the form says
                return None, why or f"approve was a text; {_ALLOWED}"
        elif "query" not in reply:
            return None, f"the reply holds neither approve nor query; {_ALLOWED}"
        reply = reply.get("query", True)
        if isinstance(reply, Mapping):
            return None, f"the query was a {type(reply).__name__}; {_ALLOWED}"
    if reply is True:
        return "", ""
    if reply is False or reply is None:
        return None, "a person refused"
    if isinstance(reply, str):
        # also as an input method writes them: ＮＯ, don’t
        word = unicodedata.normalize("NFKC", reply).replace("’", "'").strip().casefold().strip(" .,!?。")
        if word in _NO:
            return None, "a person refused"
        return ("", "") if word in _YES else (reply.strip(), "")
    return None, f"the reply was a {type(reply).__name__}; {_ALLOWED}"


def _line(text: str) -> str:
    """One line, short enough for a search engine."""
    return " ".join(text.split())[:MAX_WEB_QUERY].strip()
