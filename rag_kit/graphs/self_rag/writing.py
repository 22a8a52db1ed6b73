"""The segments of Self-RAG as in the paper: continuations, one from each passage, and their critique."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

from rag_kit.concurrency.steps import Logic
from rag_kit.errors import BudgetExceededError
from rag_kit.graphs.running import ask, branch, report, run_side_by_side, write
from rag_kit.graphs.self_rag import beams, logprobs
from rag_kit.graphs.self_rag.shared import (
    Beam,
    Continuation,
    PaperState,
    SelfRagContext,
    SelfRagNodes,
    cap_of,
    has_answer,
    none_if_unreadable,
    source_of,
)
from rag_kit.graphs.state import Update, question_of
from rag_kit.graphs.streaming import MessageCatcher
from rag_kit.prompts import render_passages
from rag_kit.text import sentences

_JUDGED_AT_ONCE = 10  # continuations in one call for their critiques
_WORST_LABELS = {"relevance": "irrelevant", "support": "none", "usefulness": "1"}

#: Continuations of one beam that are judged together.
Group = list[Continuation]


class Reply(NamedTuple):
    """The value of a model call, and its tokens; no tokens if there are no log-probabilities."""

    value: Any
    tokens: Sequence[logprobs.AnswerToken]


class SegmentWriter(SelfRagNodes):
    """Base with the node that writes the candidates of a segment and has a model judge them."""

    async def _ask_scored(
        self, name: str, state: PaperState, context: SelfRagContext, values: Any, **fallback: Any
    ) -> Reply:
        """Ask the model by a prompt, with log-probabilities if the run has them.

        With ``fallback=``, that of `ask`, it is asked for an object; without, for text.
        """
        llm, prompt = self.model(context), self.prompt(name, state, context)
        catcher = MessageCatcher()
        if state["scoring"] == "logprobs":
            llm = logprobs.with_logprobs(llm, catcher)
        step = ask(llm, prompt, values, **fallback) if fallback else write(llm, prompt, values)
        return Reply(await step, logprobs.read_tokens(catcher.message))

    async def generate_segments(self, state: PaperState, context: SelfRagContext) -> Update:
        """Write a continuation of each beam for each of its passages, or one without, and have them judged."""
        groups, notes = self._affordable_groups(state, context)
        candidates, is_cut = list(chain(*groups)), bool(notes)
        write, judge = partial(self._write, state, context), partial(self._judge, state, context)
        errors = await _for_each_group(write, [[candidate] for candidate in candidates])
        written = [[candidate for candidate in group if candidate["parts"]] for group in groups]
        errors += await _for_each_group(judge, list(filter(None, written)))
        cap_errors = [error for error in errors if isinstance(error, BudgetExceededError)]
        # a candidate that failed has no parts
        has_text = has_answer(state) or any(candidate["parts"] for candidate in candidates)
        if not has_text and (cap_errors or (errors and len(errors) == len(candidates))):
            raise (cap_errors or errors)[0]
        if cap_errors:
            cap = cap_of(cap_errors[0], context)
            notes.append(f"segment {state['segment']}: {cap} was reached; the answer is the best so far")
        if failed_count := len(errors) - len(cap_errors):
            notes.append(f"segment {state['segment']}: {failed_count} candidates failed")
        if unusable := sum("critique" in candidate["labels"] for candidate in candidates):
            notes.append(f"critique: {unusable} unusable verdicts counted as the lowest")
        report("generated", segment=state["segment"], candidates=len(candidates))
        return {"candidates": candidates, "notes": notes, "capped": is_cut or bool(cap_errors)}

    generate_direct = generate_segments  # the node's name where no beam needs passages

    def _affordable_groups(self, state: PaperState, context: SelfRagContext) -> tuple[list[Group], list[str]]:
        """Make the candidates that ``max_calls`` leaves room for, in groups; a note says if these are not all."""
        groups = self._groups(state)
        if context.max_calls is None:
            return groups, []
        # cut here and not where the calls happen to run out, so that a run can be repeated
        affordable = _groups_within(groups, context.max_calls - state["usage"]["calls"])
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
            group, room = Group(), 0  # room: characters of passages that still fit into the prompt
            for passage in _passages_for(beam, state):
                length = len(state["documents"][passage].page_content)
                if not group or length > room or len(group) == _JUDGED_AT_ONCE:
                    group, room = [], self.max_passage_chars
                    groups.append(group)
                group.append(_new_candidate(state, beam, passage))
                room -= length
        return groups

    async def _write(self, state: PaperState, context: SelfRagContext, group: Group) -> None:
        """Write the one candidate of a group, with its probability; one that repeats the answer gets a ``reason``."""
        [candidate] = group
        beam = state["beams"][candidate["beam"] - 1]  # numbers of beams count from 1
        answer, passage, count = beams.answer_so_far(beam), candidate["passage"], context.segment_sentences
        documents = [] if passage is None else [state["documents"][passage]]
        values = {"question": question_of(state), "answer": answer, "count": str(count)}
        if documents:
            candidate["source"] = source_of(documents[0])
            values["passages"] = render_passages(documents, max_chars=self.max_passage_chars)
        prompt = "continue_answer" if documents else "continue_unaided"
        reply = await self._ask_scored(prompt, state, context, values)
        written = reply.value
        text = candidate["text"] = beams.clean_continuation(written.text, count, documents)
        # cut off only if its last sentence is kept: all sentences (len(text) is more) would be the same text
        if written.cut_off and text == beams.clean_continuation(written.text, len(text), documents):
            candidate["cut_off"] = written.cut_off
        earlier = [part.text for part in sentences(answer)] + [part["text"] for part in beam["segments"]]
        if text and beams.without_punctuation(text) in map(beams.without_punctuation, earlier):
            candidate["reason"] = "repeats the answer so far"
        elif text:
            candidate["parts"]["p"] = beams.sequence_probability([token.logprob for token in reply.tokens])

    async def _judge(self, state: PaperState, context: SelfRagContext, candidates: Group) -> None:
        """Have the model critique continuations of one beam, and put the labels into these."""
        beam = state["beams"][candidates[0]["beam"] - 1]  # numbers of beams count from 1
        values: dict[str, Any] = {"question": question_of(state), "answer": beams.answer_so_far(beam)}
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
            _put_labels(candidate, verdicts.get(number), tokens, asked=beams.CRITIQUES)


async def _for_each_group(
    work: Callable[[Group], Logic[None]], groups: Sequence[Group]
) -> list[BaseException]:
    """Do the work for all groups side by side; return an error for each candidate of the groups that failed."""
    steps = [branch(f"candidates of beam {group[0]['beam']}", partial(work, group)) for group in groups]
    fan = await run_side_by_side(steps)
    errors: list[BaseException] = []
    for group, outcome in zip(groups, fan.outcomes, strict=True):
        if outcome.error is not None:
            errors += [outcome.error] * len(group)
            for candidate in group:
                candidate.update({"parts": {}, "reason": f"{beams.FAILED}: {type(outcome.error).__name__}"})
    return errors


def _groups_within(groups: Sequence[Group], calls: int) -> list[Group]:
    """Return as many groups as ``calls`` suffice for, the last one shortened.

    A group takes a call for each continuation, and one for their critiques.
    """
    affordable: list[Group] = []
    for group in groups:
        affordable.append(group[: max(0, calls - 1)])
        calls -= len(affordable[-1]) + 1
    return list(filter(None, affordable))


def _passages_for(beam: Beam, state: PaperState) -> list[int]:
    """Return the indices of the passages for a beam: those that its search found, or that were put in since."""
    count = len(state["documents"])
    known_count = state.get("known", count)  # after the search; a thread of an earlier version has none
    found = [index for index in beam["found"] if index < count]
    if known_count > count:  # an editor took some away
        return found or list(range(count))
    return [*found, *range(known_count, count)]


def _new_candidate(state: PaperState, beam: Beam, passage: int | None) -> Continuation:
    """Make a candidate before anything is written."""
    return Continuation(
        segment=state["segment"], beam=beam["number"], passage=passage, source=None, text="", cut_off="", labels={},
        probabilities={}, parts={}, f=None, score=None, kept=False, won=False, reason="",
    )  # fmt: skip


def _put_labels(
    candidate: Continuation, verdict: Any, tokens: Sequence[logprobs.AnswerToken], *, asked: Sequence[str]
) -> None:
    """Put a verdict's labels for the critiques ``asked`` for (None: the lowest) and all scores into a candidate."""
    for name in asked:
        label = _WORST_LABELS[name] if verdict is None else str(getattr(verdict, name))
        candidate["labels"][name] = label
        candidate["probabilities"][name] = probabilities_of([] if verdict is None else tokens, name, label)
    if verdict is None:
        candidate["labels"]["critique"] = "unusable"
    for name in beams.CRITIQUES:
        candidate["parts"][name] = beams.critique_score(name, candidate["probabilities"].get(name, {}))


def probabilities_of(tokens: Sequence[logprobs.AnswerToken], name: str, label: str) -> dict[str, float]:
    """Return the probabilities of a field's labels: the model's own if its tokens show them, else 1."""
    by_label = logprobs.label_probabilities(tokens, name, label, beams.WORTH[name])
    return by_label or {option: float(option == label) for option in beams.WORTH[name]}
