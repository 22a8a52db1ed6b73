"""The segments of Self-RAG as in the paper: continuations, one from each passage, and their critique."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from rag_kit.errors import BudgetExceededError
from rag_kit.graphs.running import ask, attempt, branch, report, run_side_by_side, write
from rag_kit.graphs.self_rag import logprobs
from rag_kit.graphs.self_rag.beams import (
    CRITIQUES,
    FAILED,
    WORTH,
    answer_so_far,
    clean_continuation,
    critique_score,
    sequence_probability,
    without_punctuation,
)
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
from rag_kit.graphs.state import Update
from rag_kit.prompts import render_passages
from rag_kit.text import sentences

_JUDGED_AT_ONCE = 10  # continuations in one call for their critiques
_WORST = {"relevance": "irrelevant", "support": "none", "usefulness": "1"}

#: A way to go on, and the passages (None: without one) whose continuations are judged together.
Group = tuple[Beam, list[int | None]]


class Reply(NamedTuple):
    """The value of a model call, and its tokens; none without log-probabilities."""

    value: Any
    tokens: Sequence[logprobs.AnswerToken]


class SegmentWriter(SelfRagNodes):
    """The node that writes the candidates of a segment, and has them judged."""

    async def _ask_scored(
        self, name: str, state: PaperState, context: SelfRagContext, values: Any, **asking: Any
    ) -> Reply:
        """Ask by a prompt, for an object if there is a fallback; with log-probabilities if the run has them."""
        catcher, prompt = logprobs.TokenCatcher(), self.prompt(name, state, context)
        llm = self.model(context)
        llm = logprobs.with_logprobs(llm, catcher) if state["scoring"] == "logprobs" else llm
        step = ask(llm, prompt, values, **asking) if asking else write(llm, prompt, values)
        return Reply(await step, catcher.tokens)

    async def generate_segments(self, state: PaperState, context: SelfRagContext) -> Update:
        """Write and judge a continuation of each beam for each of its passages, or one without, side by side."""
        wanted, label, notes = self._groups(state), f"segment {state['segment']}:", list[str]()
        groups = wanted
        if context.max_calls is not None:
            # cut here and not where the calls happen to run out, so that a run can be repeated
            groups = _groups_within(wanted, context.max_calls - state["usage"]["calls"])
        count, most = (sum(len(passages) for _, passages in each) for each in (groups, wanted))
        if is_cut := count < most:
            notes.append(
                f"{label} max_calls={context.max_calls} leaves room for {count} of {most} candidates"
            )
            if not count and not has_answer(state):
                raise BudgetExceededError("calls", context.max_calls or 0)
        write_group = partial(self._write_group, state, context)
        branches = [
            branch(f"beam {beam['number']}, passages {passages}", partial(write_group, beam, passages))
            for beam, passages in groups
        ]
        outcomes = (await run_side_by_side(branches)).outcomes if branches else []
        candidates, errors = list[Continuation](), list[BaseException]()
        for (beam, passages), outcome in zip(groups, outcomes, strict=True):
            failed = [(_new_candidate(state, beam, passage), outcome.error) for passage in passages]
            for candidate, error in outcome.value or failed:
                candidates.append(candidate)
                if error is not None:
                    errors.append(error)
                    candidate["reason"] = f"{FAILED}: {type(error).__name__}"
        caps = [error for error in errors if isinstance(error, BudgetExceededError)]
        nothing = not has_answer(state) and not any(candidate["parts"] for candidate in candidates)
        if errors and nothing and (caps or len(errors) == len(candidates)):
            raise (caps or errors)[0]
        if caps:
            notes.append(f"{label} {cap_of(caps[0], context)} was reached; the answer is the best so far")
        if other := len(errors) - len(caps):
            notes.append(f"{label} {other} candidates failed")
        if unusable := sum("critique" in candidate["labels"] for candidate in candidates):
            notes.append(f"critique: {unusable} unusable verdicts counted as the lowest")
        report("generated", segment=state["segment"], candidates=len(candidates))
        return {"candidates": candidates, "notes": notes, "capped": bool(caps) or is_cut}

    generate_direct = generate_segments  # the node's name where no way to go on needs passages

    def _groups(self, state: PaperState) -> list[Group]:
        """Group beams with the passages whose continuations one call judges; or with none."""
        groups: list[Group] = []
        for beam in (beam for beam in state["beams"] if not beam["ended"]):
            if not beam["retrieve"]:
                groups.append((beam, [None]))
                continue
            group, room = list[int | None](), 0
            for passage in _passages_for(beam, state):
                length = len(state["documents"][passage].page_content)
                if not group or length > room or len(group) == _JUDGED_AT_ONCE:
                    group, room = [], self.max_passage_chars
                    groups.append((beam, group))
                group.append(passage)
                room -= length
        return groups

    async def _write_group(
        self, state: PaperState, context: SelfRagContext, beam: Beam, passages: Sequence[int | None]
    ) -> list[tuple[Continuation, BaseException | None]]:
        """Write a continuation from each passage, and judge all in one call; failed ones have their error."""
        write = partial(self._write_candidate, state, context, beam)
        steps = [branch(f"passage {passage}", partial(write, passage)) for passage in passages]
        outcomes: Any = (await run_side_by_side(steps)).outcomes
        candidates: list[Continuation] = []
        for outcome, passage in zip(outcomes, passages, strict=True):
            candidates.append(outcome.value[0] if outcome.ok else _new_candidate(state, beam, passage))
        errors = [outcome.error for outcome in outcomes]
        judged = [
            n for n, candidate in enumerate(candidates) if candidate["text"] and not candidate["reason"]
        ]
        if judged:
            judge = self._judge(state, context, beam, [candidates[number] for number in judged])
            error = await attempt(judge, Exception)
            for number in judged:
                errors[number] = error
                if error is None:
                    candidates[number]["parts"]["p"] = outcomes[number].value[1]
        return list(zip(candidates, errors, strict=True))

    async def _write_candidate(
        self, state: PaperState, context: SelfRagContext, beam: Beam, passage: int | None
    ) -> tuple[Continuation, float]:
        """Write one continuation, with its probability; one that ends or repeats the answer is not judged."""
        answer, candidate = answer_so_far(beam), _new_candidate(state, beam, passage)
        documents = [] if passage is None else [state["documents"][passage]]
        count, prompt = context.segment_sentences, "continue_answer" if documents else "continue_unaided"
        values = {"question": state["asked"], "answer": answer, "count": str(count)}
        if documents:
            candidate["source"] = source_of(documents[0])
            values["passages"] = render_passages(documents, max_chars=self.max_passage_chars)
        written = await self._ask_scored(prompt, state, context, values)
        candidate["text"] = text = clean_continuation(written.value.text, count, documents)
        if written.value.cut_off and text == clean_continuation(written.value.text, len(text), documents):
            candidate["cut_off"] = written.value.cut_off  # what was cut is a part of it
        earlier = [part.text for part in sentences(answer)] + [part["text"] for part in beam["segments"]]
        if text and without_punctuation(text) in map(without_punctuation, earlier):
            candidate["reason"] = "repeats the answer so far"
        return candidate, sequence_probability([token.logprob for token in written.tokens])

    async def _judge(
        self, state: PaperState, context: SelfRagContext, beam: Beam, candidates: Sequence[Continuation]
    ) -> None:
        """Ask for the labels of continuations of one beam, and put them into these."""
        values: dict[str, Any] = {"question": state["asked"], "answer": answer_so_far(beam)}
        if candidates[0]["passage"] is None:
            values["statement"] = candidates[0]["text"]
            verdict = await self._ask_scored(
                "critique_usefulness", state, context, values, fallback=none_if_unreadable
            )
            _put_labels(candidates[0], verdict.value, verdict.tokens, CRITIQUES[2:])
            return
        documents = [state["documents"][candidate["passage"] or 0] for candidate in candidates]
        limit = self.max_passage_chars if len(documents) == 1 else None  # several fit, or they were no group
        values["passages"] = render_passages(documents, max_chars=limit)
        values["statements"] = render_passages([candidate["text"] for candidate in candidates])
        values["count"] = len(candidates)
        verdict = await self._ask_scored("critique", state, context, values, fallback=none_if_unreadable)
        by_number = {label.id: label for label in verdict.value.labels} if verdict.value else {}
        for number, candidate in enumerate(candidates, start=1):
            tokens = logprobs.tokens_of_entry(verdict.tokens, number)
            _put_labels(candidate, by_number.get(number), tokens, CRITIQUES)


def _groups_within(groups: Sequence[Group], calls: int) -> list[Group]:
    """Return the groups that the remaining calls suffice for: one a continuation, one for critiques."""
    kept: list[Group] = []
    for beam, passages in groups:
        if first := passages[: max(0, calls - 1)]:
            kept.append((beam, first))
        calls -= len(first) + 1
    return kept


def _passages_for(beam: Beam, state: PaperState) -> list[int]:
    """Return the passages that a beam may go on from: found by its search, or put into the state since."""
    count = len(state["documents"])
    known = state.get("known", count)  # a thread of an earlier version has none
    found = [index for index in beam["found"] if index < count]
    if known > count:  # an editor took some away
        return found or list(range(count))
    return [*found, *range(known, count)]


def _new_candidate(state: PaperState, beam: Beam, passage: int | None) -> Continuation:
    """Make a candidate before anything is written."""
    return Continuation(
        segment=state["segment"], beam=beam["number"], passage=passage, source=None, text="", cut_off="", labels={},
        probabilities={}, parts={}, f=None, score=None, kept=False, won=False, reason="",
    )  # fmt: skip


def _put_labels(
    candidate: Continuation, verdict: Any, tokens: Sequence[logprobs.AnswerToken], critiques: Sequence[str]
) -> None:
    """Put a verdict's labels into a candidate, with probabilities and scores; the lowest without a verdict."""
    for name in critiques:
        label = _WORST[name] if verdict is None else str(getattr(verdict, name))
        candidate["labels"][name] = label
        candidate["probabilities"][name] = probabilities_of([] if verdict is None else tokens, name, label)
    if verdict is None:
        candidate["labels"]["critique"] = "unusable"
    for name in CRITIQUES:
        candidate["parts"][name] = critique_score(name, candidate["probabilities"].get(name, {}))


def probabilities_of(tokens: Sequence[logprobs.AnswerToken], name: str, label: str) -> dict[str, float]:
    """Return the probabilities of a field's labels: the model's own if its tokens show them, else 1."""
    by_label = logprobs.label_probabilities(tokens, name, label, WORTH[name])
    return by_label or {option: float(option == label) for option in WORTH[name]}
