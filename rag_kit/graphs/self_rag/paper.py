"""Self-RAG as in the paper: segments, on-demand retrieval, one continuation per passage, critique, a beam."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, Literal, NamedTuple

from langchain_core.documents import Document
from langgraph.types import Overwrite

from rag_kit.documents.identity import document_key
from rag_kit.errors import (
    BudgetExceededError,
    ModelError,
    ModelOutputError,
    ModelUnauthorizedError,
    ModelUnreachableError,
)
from rag_kit.graphs.citing import note_disagreements
from rag_kit.graphs.nodes import note_cut_off
from rag_kit.graphs.running import ask, branch, report, run_side_by_side, values_side_by_side, write
from rag_kit.graphs.self_rag import logprobs
from rag_kit.graphs.self_rag.beams import (
    CRITIQUES,
    FAILED,
    WORTH,
    answer_so_far,
    cite_segments,
    clean_continuation,
    count_shared_segments,
    critique_score,
    first_beam,
    rank,
    sequence_probability,
    used_passages,
    without_punctuation,
)
from rag_kit.graphs.self_rag.shared import (
    Beam,
    Candidate,
    PaperState,
    SelfRagContext,
    SelfRagNodes,
    cap_of,
    has_answer,
    none_if_unreadable,
    source_of,
)
from rag_kit.graphs.state import Update
from rag_kit.prompts import render_passages
from rag_kit.text import sentences
from rag_kit.text.citations.decline import DECLINED

logger = logging.getLogger(__name__)

ScoringChoice = Literal["auto", "logprobs", "labels"]
_CALLS_EACH = 2  # a continuation and its critique
_OUT_OF_REACH = (ModelUnreachableError, ModelUnauthorizedError)
_WORST = {"relevance": "irrelevant", "support": "none", "usefulness": "1"}


class Reply(NamedTuple):
    """The value of a model call, and the tokens of its last answer; no tokens without log-probabilities."""

    value: Any
    tokens: list[logprobs.Token]


class Paper(SelfRagNodes):
    """The nodes of mode ``paper``."""

    files = (
        "condense", "retrieve_needed", "continue_answer", "continue_unaided", "critique", "critique_usefulness",
    )  # fmt: skip
    mode = "paper"
    state = PaperState

    def __init__(self, retriever: Any, llm: Any, options: Any, *, scoring: ScoringChoice) -> None:
        super().__init__(retriever, llm, options)
        self.scoring = scoring

    def empty_update(self) -> Update:
        """The graph's keys as a run begins, and as a refused one ends."""
        return {**super().empty_update(), "scoring": "labels"}

    def fitting_passages(self, documents: Sequence[Document]) -> list[Document]:
        """All that the answer rests on: they are few, and each was shown."""
        return list(documents)

    async def _ask_scored(
        self, name: str, state: PaperState, context: SelfRagContext, values: Any, **asking: Any
    ) -> Reply:
        """Ask by a prompt, for an object where there is a fallback; with log-probabilities if the run has them."""
        catcher, prompt = logprobs.TokenCatcher(), self.prompt(name, state, context)
        llm = self.model(context)
        llm = logprobs.with_logprobs(llm, catcher) if state["scoring"] == "logprobs" else llm
        step = ask(llm, prompt, values, **asking) if asking else write(llm, prompt, values)
        return Reply(await step, catcher.tokens)

    async def _ask_to_retrieve(
        self, state: PaperState, context: SelfRagContext, beam: Beam, fallback: Any = none_if_unreadable
    ) -> Reply:
        """Ask whether documents are to be looked up for the next segment."""
        values = {"question": state["asked"], "answer": answer_so_far(beam)}
        return await self._ask_scored("retrieve_needed", state, context, values, fallback=fallback)

    async def decide_retrieval(self, state: PaperState, context: SelfRagContext) -> Update:
        """Decide for each way to go on whether documents are looked up for the next segment."""
        beams: list[Beam] = [{**beam} for beam in state["beams"]] or [first_beam()]
        going = [beam for beam in beams if not beam["ended"]]
        notes: list[str] = []
        replies: list[Reply] = []
        if state["segment"] == 0:
            has_them = self.scoring == "auto" and logprobs.may_have_logprobs(self.model(context))
            state["scoring"] = "logprobs" if self.scoring == "logprobs" or has_them else "labels"
        if state["scoring"] == "logprobs" and state["segment"] == 0:
            reply = await self._ask_to_retrieve(state, context, beams[0], _none_if_refused)
            if not reply.tokens:
                state["scoring"] = "labels"
                notes.append("scoring: the model gave no log-probabilities; its labels count as certain")
            replies = [reply] if reply.value is not None else []
        if not replies:
            calls = [partial(self._ask_to_retrieve, state, context, beam) for beam in going]
            replies = await values_side_by_side([branch("retrieve_needed", call) for call in calls])
        for beam, reply in zip(going, replies, strict=True):
            if reply.value is None:
                notes.append("retrieve_needed: the model gave no usable verdict; documents were looked up")
            label = "yes" if reply.value is None else reply.value.retrieve
            beam["wanted"] = critique_score("retrieve", _probabilities(reply, "retrieve", label))
            beam["retrieve"] = beam["wanted"] > context.delta
        segment, retrieves = state["segment"] + 1, [beam["retrieve"] for beam in going]
        report("decided", segment=segment, retrieve=retrieves)
        return {"beams": beams, "segment": segment, "scoring": state["scoring"], "notes": notes}

    async def retrieve(self, state: PaperState, context: SelfRagContext) -> Update:
        """Look up passages for each beam that asked for some, as in the paper by the question and its last segment."""
        passages = {document_key(document): document for document in state["documents"]}
        beams: list[Beam] = [{**beam} for beam in state["beams"]]
        to_search = [beam for beam in beams if beam["retrieve"] and not beam["ended"]]
        for beam in to_search:
            beam["query"] = " ".join([state["asked"], *(part["text"] for part in beam["segments"][-1:])])
        queries = list(dict.fromkeys(beam["query"] for beam in to_search))
        lists = await values_side_by_side([self.fetch(query, context) for query in queries])
        by_query: dict[str, dict[str, Document]] = {}
        for query, documents in zip(queries, lists, strict=True):
            visible = await self.visible_passages(documents)
            by_query[query] = {document_key(document): document for document in visible}
            passages |= {key: document for key, document in by_query[query].items() if key not in passages}
        place = {key: index for index, key in enumerate(passages)}
        for beam in to_search:
            beam["found"] = [place[key] for key in by_query[beam["query"]]]
        report("retrieved", segment=state["segment"], passages=sum(map(len, by_query.values())))
        documents = list(passages.values())
        return {"beams": beams, "documents": documents, "known": len(documents), "search_query": queries[-1]}

    async def generate_segments(self, state: PaperState, context: SelfRagContext) -> Update:
        """Write and judge a continuation for each passage of each way to go on, or one from none, all side by side."""
        jobs: list[tuple[Beam, int | None]] = [
            (beam, passage)
            for beam in state["beams"]
            if not beam["ended"]
            for passage in (_passages_for(beam, state) if beam["retrieve"] else [None])
        ]
        notes: list[str] = []
        label, room = f"segment {state['segment']}:", len(jobs)
        if context.max_calls is not None:
            # cut here and not where the calls happen to run out, so that a run can be repeated
            room = max(0, context.max_calls - state["usage"]["calls"]) // _CALLS_EACH
        if is_cut := len(jobs) > room:
            cap = f"max_calls={context.max_calls}"
            notes.append(f"{label} {cap} leaves room for {room} of {len(jobs)} candidates")
            if not room and not has_answer(state):
                raise BudgetExceededError("calls", context.max_calls or 0)
            jobs = jobs[:room]
        write_candidate = partial(self._write_candidate, state, context)
        branches = [
            branch(f"beam {beam['number']}, passage {passage}", partial(write_candidate, beam, passage))
            for beam, passage in jobs
        ]
        outcomes = (await run_side_by_side(branches)).outcomes if branches else []
        candidates: list[Candidate] = [
            outcome.value or _new_candidate(state, beam, passage, f"{FAILED}: {type(outcome.error).__name__}")
            for (beam, passage), outcome in zip(jobs, outcomes, strict=True)
        ]
        errors = [outcome.error for outcome in outcomes if outcome.error is not None]
        caps = [error for error in errors if isinstance(error, BudgetExceededError)]
        nothing = not has_answer(state) and not any(candidate["parts"] for candidate in candidates)
        if errors and nothing and (caps or len(errors) == len(candidates)):
            raise (caps or errors)[0]
        if caps:
            notes.append(f"{label} {cap_of(caps[0], context)} was reached; the answer is the best so far")
        if failed := len(errors) - len(caps):
            notes.append(f"{label} {failed} candidates failed")
        if unusable := sum("critique" in candidate["labels"] for candidate in candidates):
            notes.append(f"critique: {unusable} unusable verdicts counted as the lowest")
        report("generated", segment=state["segment"], candidates=len(candidates))
        return {"candidates": candidates, "notes": notes, "capped": bool(caps) or is_cut}

    generate_direct = generate_segments  # the node's name where no way to go on needs passages

    async def _write_candidate(
        self, state: PaperState, context: SelfRagContext, beam: Beam, passage: int | None
    ) -> Candidate:
        """Write one continuation and judge it; a text that ends or repeats the answer is not judged."""
        answer, candidate = answer_so_far(beam), _new_candidate(state, beam, passage)
        documents = [] if passage is None else [state["documents"][passage]]
        values = {"question": state["asked"], "answer": answer}
        critiques: Sequence[str] = CRITIQUES[2:]
        prompt, critique = "continue_unaided", "critique_usefulness"
        if documents:
            candidate["source"] = source_of(documents[0])
            values["passages"] = render_passages(documents, max_chars=self.max_passage_chars)
            prompt, critique, critiques = "continue_answer", "critique", CRITIQUES
        count = context.segment_sentences
        written = await self._ask_scored(prompt, state, context, {**values, "count": str(count)})
        candidate["text"] = text = clean_continuation(written.value.text, count, documents)
        if written.value.cut_off and text == clean_continuation(written.value.text, len(text), documents):
            candidate["cut_off"] = written.value.cut_off  # what was cut is a part of it
        earlier = [part.text for part in sentences(answer)] + [part["text"] for part in beam["segments"]]
        if text and without_punctuation(text) in map(without_punctuation, earlier):
            candidate["reason"] = "repeats the answer so far"
        elif text:
            values["statement"] = text
            verdict = await self._ask_scored(critique, state, context, values, fallback=none_if_unreadable)
            candidate["parts"]["p"] = sequence_probability([token.logprob for token in written.tokens])
            _put_verdict(candidate, verdict, critiques)
        return candidate

    async def rank_segments(self, state: PaperState, context: SelfRagContext) -> Update:
        """Score the candidates, keep the best beams, send what is decided, go on or finish."""
        options: Any = {"width": context.beam_width, "hard": context.constraint == "hard"}
        beams, judged = rank(state["beams"], state["candidates"], weights=context.weights, **options)
        streamed = self._send_decided(beams, state["streamed"], count_shared_segments(beams))
        update: Update = {"beams": beams, "candidates": [], "trace": judged, "streamed": streamed}
        report("ranked", segment=state["segment"], scores=[round(beam["score"], 4) for beam in beams])
        follows = "finish"
        if state["capped"] and not all(beam["ended"] for beam in beams):
            update["notes"] = ["finished early: a cap of the run was reached; the answer is the best so far"]
        elif beams and not beams[0]["ended"] and state["segment"] < context.max_segments:
            follows = "decide_retrieval"
        return {**update, "choices": {"rank_segments": follows}}

    async def finish(self, state: PaperState, context: SelfRagContext) -> Update:
        """Join the best beam's segments, number the passages that they rest on, say what the critique found."""
        best = max(state["beams"], key=lambda beam: (beam["score"], -beam["number"]), default=first_beam())
        segments, documents = best["segments"], state["documents"]
        if not segments:
            note = "finish: no passage gave a part of an answer"
            return {"answer": DECLINED[state["language"]], "notes": [note]}
        self._send_decided([best], state["streamed"], len(segments))
        place = itemgetter("segment", "beam", "text", "passage")
        won = [place({"segment": at, **part}) for at, part in enumerate(segments, start=1)]
        trace = [{**entry, "won": entry["kept"] and place(entry) in won} for entry in state["trace"]]
        used = [index for index in used_passages(segments) if index < len(documents)]
        winners = [entry for entry in trace if entry["won"]]
        # those that the answer rests on come first, so that the numbers are its own
        ranked = [documents[index] for index in dict.fromkeys([*used, *range(len(documents))])]
        disagreements = await note_disagreements(state["asked"], ranked, len(used))
        cut_off = next((entry["cut_off"] for entry in winners if entry.get("cut_off")), "")
        return {
            "answer": "".join(cite_segments(segments)),
            "cut_off": cut_off,
            "documents": [documents[index] for index in used],
            "trace": Overwrite(trace),
            "unsupported": any(map(_lacks_support, winners)),
            "notes": [*_note_critique(winners), *note_cut_off(cut_off), *disagreements],
        }

    def _send_decided(self, beams: Sequence[Beam], streamed: int, decided: int) -> int:
        """Send the text that is decided; with an answer guard nothing is sent, for it is not yet allowed."""
        if decided > streamed and not self.guards.answer:
            for piece in cite_segments(beams[0]["segments"])[streamed:decided]:
                report("segment", text=piece)
        return max(streamed, decided)


def wants_passages(state: Mapping[str, Any]) -> str:
    """To the search, where the model wants passages for the next segment."""
    going = [beam for beam in state.get("beams") or [] if not beam["ended"]]
    return "retrieve" if any(beam["retrieve"] for beam in going) else "generate_direct"


def _passages_for(beam: Beam, state: PaperState) -> list[int]:
    """The passages that a beam may go on from: what its search found, and what was put into the state since."""
    count = len(state["documents"])
    known = state.get("known", count)  # a thread of an earlier version has none
    found = [index for index in beam["found"] if index < count]
    if known > count:  # an editor took some away
        return found or list(range(count))
    return [*found, *range(known, count)]


def _lacks_support(candidate: Mapping[str, Any]) -> bool:
    """Whether the critique says that a part of the answer has no support; one that gave no verdict says nothing."""
    labels = candidate["labels"]
    unsupported = labels.get("support") == "none" or labels.get("relevance") == "irrelevant"
    return unsupported and "critique" not in labels


def _note_critique(winners: Sequence[Mapping[str, Any]]) -> list[str]:
    """Say what the critique has against the parts of the answer."""
    count, notes = len(winners), []
    judged = [entry["labels"] for entry in winners if "critique" not in entry["labels"]]
    for name, labels, what in (
        ("relevance", ("irrelevant",), "rest on a passage that is irrelevant"),
        ("support", ("none",), "are not supported by their passage"),
        ("support", ("partial",), "are supported in part"),
        ("usefulness", ("1", "2"), "may not answer the question"),
    ):
        if found := sum(entry.get(name) in labels for entry in judged):
            notes.append(f"critique: {found} of {count} parts of the answer {what}")
    return notes


def _new_candidate(state: PaperState, beam: Beam, passage: int | None, reason: str = "") -> Candidate:
    """A candidate before anything is written."""
    return Candidate(
        segment=state["segment"], beam=beam["number"], passage=passage, source=None, text="", cut_off="", labels={},
        probabilities={}, parts={}, f=None, score=None, kept=False, won=False, reason=reason,
    )  # fmt: skip


def _put_verdict(candidate: Candidate, verdict: Reply, critiques: Sequence[str]) -> None:
    """Put the labels of a verdict into a candidate, their probabilities and scores; the lowest without a verdict."""
    for name in critiques:
        label = _WORST[name] if verdict.value is None else str(getattr(verdict.value, name))
        candidate["labels"][name] = label
        candidate["probabilities"][name] = _probabilities(verdict, name, label)
    if verdict.value is None:
        candidate["labels"]["critique"] = "unusable"
    for name in CRITIQUES:
        candidate["parts"][name] = critique_score(name, candidate["probabilities"].get(name, {}))


def _probabilities(verdict: Reply, name: str, label: str) -> dict[str, float]:
    """The probabilities of a field's labels: the model's own where its tokens show them, else 1 on the label."""
    labels, tokens = WORTH[name], [] if verdict.value is None else verdict.tokens
    by_label = logprobs.label_probabilities(tokens, name, label, labels)
    return by_label or {option: float(option == label) for option in labels}


def _none_if_refused(error: Exception) -> None:
    """None where the endpoint refuses log-probabilities: it is then asked without them; other failures are raised."""
    if not isinstance(error, ModelError) or isinstance(error, _OUT_OF_REACH):
        raise error
    if not isinstance(error, ModelOutputError):
        logger.info("log-probabilities were refused: %s", error)
