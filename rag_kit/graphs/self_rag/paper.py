"""Self-RAG as in the paper: retrieval on demand, segments that are written and judged, a beam of the best."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain
from operator import itemgetter
from typing import Any, Literal, NamedTuple

from langchain_core.documents import Document
from langgraph.types import Overwrite

from rag_kit import errors
from rag_kit.concurrency.branches import describe_failure
from rag_kit.concurrency.notes import write_note
from rag_kit.concurrency.steps import Logic
from rag_kit.errors import BudgetExceededError, ModelError, ModelOutputError
from rag_kit.graphs.nodes import note_disagreements
from rag_kit.graphs.running import ask, branch, report, run_side_by_side, values_side_by_side, write
from rag_kit.graphs.self_rag import logprobs, ranking
from rag_kit.graphs.self_rag.shared import (
    AnswerSegment,
    Beam,
    Continuation,
    PaperState,
    SelfRagContext,
    SelfRagNodes,
    cap_of,
    has_answer,
    none_if_unreadable,
)
from rag_kit.graphs.state import Update, question_of, source_of
from rag_kit.graphs.streaming import MessageCatcher
from rag_kit.prompts import render_passages
from rag_kit.prompts.rendering import prompt_batches
from rag_kit.retrieval.fusion import Search, identify
from rag_kit.text import sentences
from rag_kit.text.citations.decline import DECLINED

logger = logging.getLogger(__name__)

ScoringChoice = Literal["auto", "logprobs", "labels"]
_OUT_OF_REACH_ERRORS = (errors.ModelUnreachableError, errors.ModelUnauthorizedError)
_JUDGED_AT_ONCE = 10  # continuations in one call for their critiques
_WORST_LABELS = {"relevance": "irrelevant", "support": "none", "usefulness": "1"}

#: Continuations of one beam that are judged together.
Group = list[Continuation]


class Reply(NamedTuple):
    """The value of a model call, and its tokens; no tokens if there are no log-probabilities."""

    value: Any
    tokens: Sequence[logprobs.AnswerToken]


class Paper(SelfRagNodes):
    """Nodes of mode ``paper``; each reads the state and returns an update of it."""

    files = (
        "condense", "retrieve_needed", "continue_answer", "continue_unaided", "critique", "critique_usefulness",
    )  # fmt: skip
    mode = "paper"
    state = PaperState

    def __init__(self, retriever: Any, llm: Any, options: Any, *, scoring: ScoringChoice) -> None:
        super().__init__(retriever, llm, options)
        self.scoring = scoring

    def fitting_passages(self, documents: Sequence[Document]) -> list[Document]:
        """Return all passages that the answer rests on: they are few, and each was shown."""
        return list(documents)

    async def _ask_scored(
        self, name: str, state: PaperState, context: SelfRagContext, values: Any, **fallback: Any
    ) -> Reply:
        """Ask the model, with log-probabilities if the run has them; for an object (with ``fallback=``) or for text."""
        llm, prompt = self.model(context), self.prompt(name, state, context)
        catcher = MessageCatcher()
        if state["scoring"] == "logprobs":
            llm = logprobs.with_logprobs(llm, catcher)
        step = ask(llm, prompt, values, **fallback) if fallback else write(llm, prompt, values)
        return Reply(await step, logprobs.read_tokens(catcher.message))

    async def _ask_to_retrieve(
        self, state: PaperState, context: SelfRagContext, beam: Beam, fallback: Any = none_if_unreadable
    ) -> Reply:
        """Ask whether documents are to be searched for the next segment."""
        values = {"question": question_of(state), "answer": ranking.answer_so_far(beam)}
        return await self._ask_scored("retrieve_needed", state, context, values, fallback=fallback)

    async def decide_retrieval(self, state: PaperState, context: SelfRagContext) -> Update:
        """Decide for each beam whether documents are searched for its next segment."""
        beams: list[Beam] = [{**beam} for beam in state["beams"]] or [ranking.first_beam()]
        running = [beam for beam in beams if not beam["ended"]]
        notes: list[str] = []
        replies: list[Reply] = []
        if state["segment"] == 0:
            replies = await self._choose_scoring(state, context, beams[0], notes)
        if not replies:
            calls = [partial(self._ask_to_retrieve, state, context, beam) for beam in running]
            replies = await values_side_by_side([branch("retrieve_needed", call) for call in calls])
        for beam, reply in zip(running, replies, strict=True):
            if reply.value is None:
                notes.append("retrieve_needed: the model gave no usable verdict; documents were looked up")
                probabilities = _probabilities_of([], "retrieve", "yes")
            else:
                probabilities = _probabilities_of(reply.tokens, "retrieve", reply.value.retrieve)
            beam["wanted"] = ranking.critique_score("retrieve", probabilities)
            beam["retrieve"] = beam["wanted"] > context.delta
        segment = state["segment"] + 1
        report("decided", segment=segment, retrieve=[beam["retrieve"] for beam in running])
        return {"beams": beams, "segment": segment, "scoring": state["scoring"], "notes": notes}

    async def _choose_scoring(
        self, state: PaperState, context: SelfRagContext, beam: Beam, notes: list[str]
    ) -> list[Reply]:
        """Put into the state whether the run has log-probabilities, and add a note if the model gives none.

        Return the reply of the call that was made to find out; an empty list without a call, or without a verdict.
        """
        fields_of_model = getattr(type(self.model(context)), "model_fields", {}).keys()
        may_have_them = self.scoring == "auto" and {"logprobs", "top_logprobs"} <= fields_of_model
        if self.scoring != "logprobs" and not may_have_them:
            state["scoring"] = "labels"
            return []
        state["scoring"] = "logprobs"
        reply = await self._ask_to_retrieve(state, context, beam, _none_if_refused)
        if not reply.tokens:
            state["scoring"] = "labels"
            notes.append("scoring: the model gave no log-probabilities; its labels count as certain")
        return [] if reply.value is None else [reply]

    async def retrieve(self, state: PaperState, context: SelfRagContext) -> Update:
        """Search passages for each beam that asked for some, by the query and its last segment."""
        beams: list[Beam] = [{**beam} for beam in state["beams"]]
        to_search = [beam for beam in beams if beam["retrieve"] and not beam["ended"]]
        for beam in to_search:
            last_segments = beam["segments"][-1:]
            beam["query"] = " ".join([state["search_query"], *(segment["text"] for segment in last_segments)])
        queries = list(dict.fromkeys(beam["query"] for beam in to_search))
        results = await values_side_by_side([self.retriever_step(query, context) for query in queries])
        # one list of passages for each query, after the list of those that were known before
        lists = [state["documents"], *[await self.visible_passages(documents) for documents in results]]
        # a passage has the same key in each list
        keys, _ = identify([Search("", None, documents=documents) for documents in lists], None)
        passages: dict[str, Document] = {}
        for key, document in zip(chain(*keys), chain(*lists), strict=True):
            passages.setdefault(key, document)
        index_of = {key: index for index, key in enumerate(passages)}
        # the keys of each query's passages, without repeats
        keys_by_query = {query: dict.fromkeys(found) for query, found in zip(queries, keys[1:], strict=True)}
        for beam in to_search:
            beam["found"] = [index_of[key] for key in keys_by_query[beam["query"]]]
        report("retrieved", segment=state["segment"], passages=sum(map(len, keys_by_query.values())))
        documents = list(passages.values())
        return {"beams": beams, "documents": documents, "known": len(documents)}

    async def generate_segments(self, state: PaperState, context: SelfRagContext) -> Update:
        """Write a continuation of each beam for each of its passages, or one without, and have them judged."""
        groups, notes = self._affordable_groups(state, context)
        candidates, are_fewer = list(chain(*groups)), bool(notes)
        write, judge = partial(self._write, state, context), partial(self._judge, state, context)
        failures = await _for_groups(write, [[candidate] for candidate in candidates])
        # a candidate that failed, or added nothing, has no parts
        written = [[candidate for candidate in group if candidate["parts"]] for group in groups]
        failures += await _for_groups(judge, list(filter(None, written)))
        cap_errors = [error for error in failures if isinstance(error, BudgetExceededError)]
        has_text = has_answer(state) or any(candidate["parts"] for candidate in candidates)
        if not has_text and (cap_errors or (failures and len(failures) == len(candidates))):
            raise (cap_errors or failures)[0]
        if cap_errors:
            cap = cap_of(cap_errors[0], context)
            notes.append(f"segment {state['segment']}: {cap} was reached; the answer is the best so far")
        if other_errors := [error for error in failures if error not in cap_errors]:
            name = f"segment {state['segment']}: {len(other_errors)} candidates"
            write_note(describe_failure(name, other_errors[0]), unsearched=True)
        if unusable := sum("critique" in candidate["labels"] for candidate in candidates):
            notes.append(f"critique: {unusable} unusable verdicts counted as the lowest")
        report("generated", segment=state["segment"], candidates=len(candidates))
        return {"candidates": candidates, "notes": notes, "capped": are_fewer or bool(cap_errors)}

    generate_direct = generate_segments  # the node's name where no beam needs passages

    def _affordable_groups(self, state: PaperState, context: SelfRagContext) -> tuple[list[Group], list[str]]:
        """Make the candidates that ``max_calls`` leaves room for, in groups; a note says if these are not all."""
        groups = self._groups(state)
        if context.max_calls is None:
            return groups, []
        # cut here and not where the calls happen to run out, so that a run can be repeated
        affordable, calls_left = list[Group](), context.max_calls - state["usage"]["calls"]
        for group in groups:
            part = group[
                : max(0, calls_left - 1)
            ]  # a call for each continuation, and one for their critiques
            calls_left -= len(part) + 1
            if part:
                affordable.append(part)
        count, full_count = sum(map(len, affordable)), sum(map(len, groups))
        if count == full_count:
            return groups, []
        if not count and not has_answer(state):
            raise BudgetExceededError("calls", context.max_calls)
        room = f"max_calls={context.max_calls} leaves room for {count} of {full_count} candidates"
        return affordable, [f"segment {state['segment']}: {room}"]

    def _groups(self, state: PaperState) -> list[Group]:
        """Make the candidates of each beam, in groups that one call can judge."""
        groups: list[Group] = []
        for beam in state["beams"]:
            if beam["ended"]:
                continue
            if not beam["retrieve"]:
                groups.append([_new_candidate(state, beam, None)])
                continue
            passages = _passages_for(beam, state)
            lengths = [len(state["documents"][passage].page_content) for passage in passages]
            limits = {"max_count": _JUDGED_AT_ONCE, "max_size": self.max_passage_chars}
            for batch in prompt_batches(passages, lengths, **limits):
                groups.append([_new_candidate(state, beam, passage) for passage in batch])
        return groups

    async def _write(self, state: PaperState, context: SelfRagContext, group: Group) -> None:
        """Write the one candidate of a group, with its probability; one that repeats the answer gets a ``reason``."""
        [candidate] = group
        beam = state["beams"][candidate["beam"] - 1]  # numbers of beams count from 1
        answer, passage, count = ranking.answer_so_far(beam), candidate["passage"], context.segment_sentences
        documents = [] if passage is None else [state["documents"][passage]]
        values = {"question": question_of(state), "answer": answer, "count": str(count)}
        if documents:
            candidate["source"] = source_of(documents[0])
            values["passages"] = render_passages(documents, max_chars=self.max_passage_chars)
        prompt = "continue_answer" if documents else "continue_unaided"
        reply = await self._ask_scored(prompt, state, context, values)
        written = reply.value
        text = candidate["text"] = ranking.clean_continuation(written.text, count, documents)
        if written.cut_off:  # in its last sentence, which may be beyond the first `count`
            whole_text = ranking.clean_continuation(written.text, len(written.text), documents)
            if text == whole_text:
                candidate["cut_off"] = written.cut_off
        earlier = [part.text for part in sentences(answer)] + [part["text"] for part in beam["segments"]]
        if text and ranking.without_punctuation(text) in map(ranking.without_punctuation, earlier):
            candidate["reason"] = "repeats the answer so far"
        elif text:
            candidate["parts"]["p"] = ranking.sequence_probability([token.logprob for token in reply.tokens])

    async def _judge(self, state: PaperState, context: SelfRagContext, candidates: Group) -> None:
        """Have the model critique continuations of one beam, and put the labels into these."""
        beam = state["beams"][candidates[0]["beam"] - 1]  # numbers of beams count from 1
        values: dict[str, Any] = {"question": question_of(state), "answer": ranking.answer_so_far(beam)}
        ask_model = partial(self._ask_scored, fallback=none_if_unreadable)
        passages = [candidate["passage"] for candidate in candidates if candidate["passage"] is not None]
        if not passages:  # the continuation is alone, and was written without one
            values["statement"] = candidates[0]["text"]
            reply = await ask_model("critique_usefulness", state, context, values)
            _put_labels(candidates[0], reply.value, reply.tokens, asked=["usefulness"])
            return
        documents = [state["documents"][passage] for passage in passages]
        limit = self.max_passage_chars if len(documents) == 1 else None  # several fit: `_groups` saw to it
        values["passages"] = render_passages(documents, max_chars=limit)
        values["statements"] = render_passages([candidate["text"] for candidate in candidates])
        values["count"] = len(candidates)
        reply = await ask_model("critique", state, context, values)
        verdicts = {verdict.id: verdict for verdict in reply.value.labels} if reply.value else {}
        for number, candidate in enumerate(candidates, start=1):
            tokens = logprobs.tokens_of_entry(reply.tokens, number)
            _put_labels(candidate, verdicts.get(number), tokens, asked=ranking.CRITIQUES)

    async def rank_segments(self, state: PaperState, context: SelfRagContext) -> Update:
        """Score the candidates, keep the best beams, send what is decided, go on or finish."""
        options: Any = {"width": context.beam_width, "hard": context.constraint == "hard"}
        weights = context.relevance_weight, context.support_weight, context.usefulness_weight
        beams, judged = ranking.rank(state["beams"], state["candidates"], weights=weights, **options)
        streamed = self._send_decided(beams, state["streamed"], ranking.count_shared_segments(beams))
        update: Update = {"beams": beams, "candidates": [], "trace": judged, "streamed": streamed}
        report("ranked", segment=state["segment"], scores=[round(beam["score"], 4) for beam in beams])
        follows = "finish"  # the next node
        if state["capped"] and not all(beam["ended"] for beam in beams):
            update["notes"] = ["finished early: a cap of the run was reached; the answer is the best so far"]
        elif beams and not beams[0]["ended"] and state["segment"] < context.max_segments:
            follows = "decide_retrieval"
        return {**update, "choices": {"rank_segments": follows}}

    async def finish(self, state: PaperState, context: SelfRagContext) -> Update:
        """Join the best beam's segments, number their passages, note what the critique found."""
        beams = state["beams"] or [ranking.first_beam()]
        best = max(beams, key=lambda beam: (beam["score"], -beam["number"]))
        segments, documents = best["segments"], state["documents"]
        if not segments:
            if state["trace"] and all(entry["passage"] is None for entry in state["trace"]):
                write_note("finish: no passage was wanted, so nothing was searched", unsearched=True)
            note = "finish: no passage gave a part of an answer"
            return {"answer": DECLINED[state["language"]], "notes": [note]}
        self._send_decided([best], state["streamed"], len(segments))
        trace = _mark_winners(state["trace"], segments)
        winners = [entry for entry in trace if entry["won"]]
        # labels of the parts of the answer; without a usable verdict they have the key "critique", see `_put_labels`
        labels = [entry["labels"] for entry in winners if "critique" not in entry["labels"]]
        bad_labels = {("support", "none"), ("relevance", "irrelevant")}
        is_unsupported = any(bad_labels & each.items() for each in labels)
        cut_off = next((entry["cut_off"] for entry in winners if entry.get("cut_off")), "")
        used = [index for index in ranking.used_passages(segments) if index < len(documents)]
        # those that the answer rests on come first, so that the numbers are its own
        ranked = [documents[index] for index in dict.fromkeys([*used, *range(len(documents))])]
        disagreements = await note_disagreements(question_of(state), ranked, len(used))
        return {
            "answer": "".join(ranking.cite_segments(segments)),
            "cut_off": cut_off,
            "documents": [documents[index] for index in used],
            "trace": Overwrite(trace),
            "unsupported": is_unsupported,
            "notes": [*_note_critique(labels, len(winners)), *disagreements],
        }

    def _send_decided(self, beams: Sequence[Beam], sent_count: int, decided_count: int) -> int:
        """Send the decided segments that were not sent yet, unless guards check answers; return the new count."""
        if decided_count > sent_count and not self.guards.answer:
            for text in ranking.cite_segments(beams[0]["segments"])[sent_count:decided_count]:
                report("segment", text=text)
        return max(sent_count, decided_count)


def wants_passages(state: Mapping[str, Any]) -> str:
    """Choose the next node: the search, if any beam needs passages for its next segment."""
    running = [beam for beam in state.get("beams") or [] if not beam["ended"]]
    return "retrieve" if any(beam["retrieve"] for beam in running) else "generate_direct"


def _mark_winners(trace: Sequence[Any], segments: Sequence[AnswerSegment]) -> list[dict[str, Any]]:
    """Copy the trace; ``won`` tells of each candidate whether it is a segment of the answer."""
    identity = itemgetter("segment", "beam", "text", "passage")
    winners = [identity({"segment": number, **part}) for number, part in enumerate(segments, start=1)]
    return [{**entry, "won": entry["kept"] and identity(entry) in winners} for entry in trace]


def _note_critique(labels: Sequence[Mapping[str, str]], count: int) -> list[str]:
    """Note how many of the answer's ``count`` parts have a bad label, by the labels of those that were judged."""
    notes = []
    for name, bad_labels, problem in (
        ("relevance", ("irrelevant",), "rest on a passage that is irrelevant"),
        ("support", ("none",), "are not supported by their passage"),
        ("support", ("partial",), "are supported in part"),
        ("usefulness", ("1", "2"), "may not answer the question"),
    ):
        if bad_count := sum(each.get(name) in bad_labels for each in labels):
            notes.append(f"critique: {bad_count} of {count} parts of the answer {problem}")
    return notes


def _none_if_refused(error: Exception) -> None:
    """Return None if the endpoint refuses log-probabilities, or its answer cannot be read; raise other failures."""
    if not isinstance(error, ModelError) or isinstance(error, _OUT_OF_REACH_ERRORS):
        raise error
    if not isinstance(error, ModelOutputError):
        logger.info("log-probabilities were refused: %s", error)


async def _for_groups(work: Callable[[Group], Logic[None]], groups: Sequence[Group]) -> list[BaseException]:
    """Do the work for all groups side by side; return an error for each candidate of the groups that failed."""
    steps = [branch(f"candidates of beam {group[0]['beam']}", partial(work, group)) for group in groups]
    fan = await run_side_by_side(steps)
    failures: list[BaseException] = []
    for group, outcome in zip(groups, fan.outcomes, strict=True):
        if outcome.error is not None:
            failures += [outcome.error] * len(group)
            for candidate in group:
                candidate.update({"parts": {}, "reason": f"{ranking.FAILED}: {type(outcome.error).__name__}"})
    return failures


def _passages_for(beam: Beam, state: PaperState) -> list[int]:
    """Return the indices of a beam's passages: those that its search found, and those that an editor added since."""
    count = len(state["documents"])
    count_after_search = state.get("known", count)  # a thread of an earlier version has none
    found = [index for index in beam["found"] if index < count]
    if count_after_search > count:  # an editor took some away
        return found or list(range(count))
    return [*found, *range(count_after_search, count)]


def _new_candidate(state: PaperState, beam: Beam, passage: int | None) -> Continuation:
    return Continuation(
        segment=state["segment"], beam=beam["number"], passage=passage, source=None, text="", cut_off="", labels={},
        probabilities={}, parts={}, f=None, score=None, kept=False, won=False, reason="",
    )  # fmt: skip


def _put_labels(
    candidate: Continuation, verdict: Any, tokens: Sequence[logprobs.AnswerToken], *, asked: Sequence[str]
) -> None:
    """Put a verdict's labels for the critiques ``asked`` for (of None: the worst) and all scores into a candidate."""
    for name in asked:
        label = _WORST_LABELS[name] if verdict is None else str(getattr(verdict, name))
        candidate["labels"][name] = label
        candidate["probabilities"][name] = _probabilities_of([] if verdict is None else tokens, name, label)
    if verdict is None:
        candidate["labels"]["critique"] = "unusable"
    for name in ranking.CRITIQUES:
        candidate["parts"][name] = ranking.critique_score(name, candidate["probabilities"].get(name, {}))


def _probabilities_of(tokens: Sequence[logprobs.AnswerToken], name: str, label: str) -> dict[str, float]:
    """Return the probabilities of a field's labels: the model's own if its tokens show them, else 1."""
    by_label = logprobs.label_probabilities(tokens, name, label, ranking.WORTH[name])
    return by_label or {option: float(option == label) for option in ranking.WORTH[name]}
