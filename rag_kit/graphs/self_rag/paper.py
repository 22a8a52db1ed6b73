"""Self-RAG as in the paper: segments, on-demand retrieval, one continuation per passage, critique, a beam."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Literal

from langchain_core.retrievers import BaseRetriever
from langgraph.types import Command, Overwrite

from rag_kit.concurrency.steps import Step
from rag_kit.documents.identity import document_key
from rag_kit.errors import (
    BudgetExceededError,
    ModelError,
    ModelOutputError,
    ModelRateLimitedError,
    ModelUnauthorizedError,
    ModelUnreachableError,
)
from rag_kit.graphs.answering import Answering
from rag_kit.graphs.running import report
from rag_kit.graphs.self_rag.beams import (
    cited_pieces,
    first_beam,
    rank,
    shared_segments,
    undecided,
    used_passages,
)
from rag_kit.graphs.self_rag.candidates import Writer, probabilities
from rag_kit.graphs.self_rag.context import SelfRagContext
from rag_kit.graphs.self_rag.logprobs import Reply, may_have_logprobs
from rag_kit.graphs.self_rag.opening import cap_of
from rag_kit.graphs.self_rag.records import changed, failed_candidate, has_answer, search_query, with_chosen
from rag_kit.graphs.self_rag.scores import RETRIEVE, critique_score
from rag_kit.graphs.self_rag.state import Beam, Candidate, SelfRagState
from rag_kit.graphs.state import Update
from rag_kit.graphs.steps import beside, fetch, inner
from rag_kit.text.citations.decline import DECLINED

logger = logging.getLogger(__name__)

ScoringChoice = Literal["auto", "logprobs", "labels"]
_CALLS_EACH = 2  # a continuation and its critique
_OUT_OF_REACH = (ModelUnreachableError, ModelUnauthorizedError, ModelRateLimitedError)


class Paper:
    """The nodes of mode ``paper``; `Ends` has the first and the last one.

    Args:
        retriever: Where passages come from.
        answering: Model, prompts and guards.
        writer: Asks the model.
        scoring: ``"auto"`` tries log-probabilities where the model's class knows them.
    """

    def __init__(
        self, retriever: BaseRetriever, answering: Answering, writer: Writer, scoring: ScoringChoice
    ) -> None:
        self.retriever = retriever
        self.guards = answering.guards
        self.writer = writer
        self.tries_logprobs = scoring == "logprobs" or (scoring == "auto" and may_have_logprobs(writer.llm))

    async def decide_retrieval(self, state: SelfRagState, context: SelfRagContext) -> Command[Any]:
        """Decide for each way to go on whether documents are looked up for the next segment."""
        beams = state["beams"] or [first_beam()]
        open_ones = [beam for beam in beams if not beam["ended"]]
        scoring, notes = state["scoring"], []
        asked, language = state["asked"], state["language"]
        answers: list[Reply] = []
        if state["segment"] == 0 and self.tries_logprobs:
            scoring = "logprobs"
            answer = await self.writer.decision(asked, beams[0], language, context, scoring, _refused)
            if not answer.tokens:
                scoring = "labels"
                notes.append("scoring: the model gave no log-probabilities; its labels count as certain")
            if answer.value is not None:
                answers = [answer]
        if not answers:
            asks = [self.writer.decision(asked, beam, language, context, scoring) for beam in open_ones]
            answers = await _all(asks)
        decided: dict[int, Beam] = {}
        for beam, answer in zip(open_ones, answers, strict=True):
            if answer.value is None:
                notes.append("retrieve_needed: the model gave no usable verdict; documents were looked up")
            label = "yes" if answer.value is None else answer.value.retrieve
            wanted = critique_score(probabilities(answer, "retrieve", label), RETRIEVE)
            decided[beam["number"]] = changed(beam, retrieve=wanted > context.delta, wanted=wanted)
        segment = state["segment"] + 1
        retrieve = [beam["retrieve"] for beam in decided.values()]
        report("decided", segment=segment, retrieve=retrieve)
        update = {
            "beams": [decided.get(beam["number"], beam) for beam in beams],
            "segment": segment,
            "candidates": [],
            "scoring": scoring,
            "notes": notes,
        }
        return Command(update=update, goto="retrieve" if any(retrieve) else "generate_direct")

    async def retrieve(self, state: SelfRagState, context: SelfRagContext) -> Command[Any]:
        """Look up passages for each way to go on: the question, and what was said last."""
        passages = list(state["passages"])
        place = {document_key(document): index for index, document in enumerate(passages)}
        beams = []
        wanting = [beam for beam in state["beams"] if beam["retrieve"] and not beam["ended"]]
        queries = {beam["number"]: search_query(state["asked"], beam) for beam in wanting}
        distinct = list(dict.fromkeys(queries.values()))
        lists = await _all(
            [fetch(self.retriever, query, k=context.k, filter=context.filter) for query in distinct]
        )
        found = {}
        for query, documents in zip(distinct, lists, strict=True):
            found[query] = await self.guards.allowed(documents)
        for beam in state["beams"]:
            if beam["number"] in queries:
                mine = []
                for document in found[queries[beam["number"]]]:
                    key = document_key(document)
                    if key not in place:
                        place[key] = len(passages)
                        passages.append(document)
                    mine.append(place[key])
                beam = changed(beam, query=queries[beam["number"]], found=list(dict.fromkeys(mine)))
            beams.append(beam)
        report("retrieved", segment=state["segment"], passages=sum(map(len, found.values())))
        update = {"beams": beams, "passages": passages, "documents": passages, "search_query": distinct[-1]}
        return Command(update=update, goto="generate_segments")

    async def generate_segments(self, state: SelfRagState, context: SelfRagContext) -> Command[Any]:
        """Write and judge a continuation for each passage of each way to go on, all side by side."""
        jobs: list[tuple[Beam, int | None]] = []
        for beam in state["beams"]:
            if not beam["ended"]:
                jobs += [(beam, index) for index in (beam["found"] if beam["retrieve"] else [None])]
        return await self._generate(state, context, jobs)

    async def generate_direct(self, state: SelfRagState, context: SelfRagContext) -> Command[Any]:
        """Write and judge a continuation of each way to go on, from no passage."""
        jobs = [(beam, None) for beam in state["beams"] if not beam["ended"]]
        return await self._generate(state, context, jobs)

    async def _generate(
        self, state: SelfRagState, context: SelfRagContext, jobs: Sequence[tuple[Beam, int | None]]
    ) -> Command[Any]:
        notes: list[str] = []
        capped = False
        if context.max_calls is not None:
            left = max(0, context.max_calls - state["usage"]["calls"])
            if left // _CALLS_EACH < len(jobs):
                # cut here and not where the calls happen to run out, so that a run can be repeated
                capped = True
                notes.append(
                    f"segment {state['segment']}: max_calls={context.max_calls} leaves room for "
                    f"{left // _CALLS_EACH} of {len(jobs)} candidates"
                )
                jobs = jobs[: left // _CALLS_EACH]
                if not jobs and not has_answer(state["beams"]):
                    raise BudgetExceededError("calls", context.max_calls)
        branches = [
            inner(
                f"beam {beam['number']}, passage {passage}",
                lambda beam=beam, passage=passage: self.writer.candidate(  # type: ignore[misc]
                    state["asked"], state["segment"], beam, passage, state["passages"],
                    state["language"], context, state["scoring"],
                ),
            )
            for beam, passage in jobs
        ]  # fmt: skip
        made = (await beside(branches, on_error="skip")) if branches else None
        candidates: list[Candidate] = []
        errors: list[BaseException] = []
        for (beam, passage), outcome in zip(jobs, made.outcomes if made else [], strict=True):
            if outcome.ok:
                candidates.append(outcome.value)
                continue
            errors.append(outcome.error)
            candidates.append(failed_candidate(state["segment"], beam, passage, outcome.error))
        notes += self._judge_errors(state, context, candidates, errors)
        if any(isinstance(error, BudgetExceededError) for error in errors):
            capped = True
        unusable = sum(one["labels"].get("critique") == "unusable" for one in candidates)
        if unusable:
            notes.append(f"critique: {unusable} unusable verdicts counted as the lowest")
        report("generated", segment=state["segment"], candidates=len(candidates))
        update = {"candidates": candidates, "notes": notes, "capped": capped}
        return Command(update=update, goto="rank_segments")

    def _judge_errors(
        self,
        state: SelfRagState,
        context: SelfRagContext,
        candidates: Sequence[Candidate],
        errors: Sequence[BaseException],
    ) -> list[str]:
        """Notes on what failed; raised where nothing else is there to answer with."""
        if not errors:
            return []
        notes = []
        capped = [error for error in errors if isinstance(error, BudgetExceededError)]
        caps = [cap_of(error, context) for error in capped]
        nothing = not has_answer(state["beams"]) and not any(one["parts"] for one in candidates)
        if nothing and (capped or len(errors) == len(candidates)):
            raise (capped or errors)[0]
        if caps:
            notes.append(f"segment {state['segment']}: {caps[0]} was reached; the answer is the best so far")
        if len(errors) > len(caps):
            notes.append(f"segment {state['segment']}: {len(errors) - len(caps)} candidates failed")
        return notes

    async def rank_segments(self, state: SelfRagState, context: SelfRagContext) -> Command[Any]:
        """Score the candidates, keep the best beams, tell what is decided, go on or finish."""
        beams, judged = rank(
            state["beams"],
            state["candidates"],
            width=context.beam_width,
            weights=context.weights,
            hard=context.constraint == "hard",
        )
        streamed = self._tell(beams, state["streamed"], shared_segments(beams))
        update: Update = {"beams": beams, "candidates": [], "trace": judged, "streamed": streamed}
        report("ranked", segment=state["segment"], scores=[round(beam["score"], 4) for beam in beams])
        open_ones = [beam for beam in beams if not beam["ended"]]
        if open_ones and state["capped"]:
            update["notes"] = ["finished early: a cap of the run was reached; the answer is the best so far"]
        elif undecided(beams, context.max_segments - state["segment"], context.weights):
            return Command(update=update, goto="decide_retrieval")
        return Command(update=update, goto="finish")

    async def finish(self, state: SelfRagState, context: SelfRagContext) -> Update:
        """Join the best beam's segments, number the passages that they rest on."""
        best = max(state["beams"], key=lambda beam: (beam["score"], -beam["number"]), default=None)
        if best is None or not best["segments"]:
            return {
                "answer": DECLINED[state["language"]],
                "documents": state["passages"],
                "notes": ["finish: no passage gave a part of an answer"],
            }
        self._tell([best], state["streamed"], len(best["segments"]))
        passages = state["passages"]
        return {
            "answer": "".join(cited_pieces(best["segments"])),
            "documents": [passages[index] for index in used_passages(best["segments"])],
            "trace": Overwrite(with_chosen(state["trace"], best)),
        }

    def at_cap(
        self, state: SelfRagState, context: SelfRagContext, error: BudgetExceededError
    ) -> Command[Any] | None:
        """Finish with the best so far, where there is something."""
        if not has_answer(state.get("beams") or []):
            return None
        note = f"finished early: {cap_of(error, context)} was reached; the answer is the best so far"
        return Command(update={"notes": [note]}, goto="finish")

    def _tell(self, beams: Sequence[Beam], streamed: int, decided: int) -> int:
        """Send the text that is decided; with an answer guard nothing is sent, for it is not yet allowed."""
        if decided > streamed and not self.guards.answer:
            for piece in cited_pieces(beams[0]["segments"])[streamed:decided]:
                report("segment", text=piece)
        return max(streamed, decided)


async def _all(steps: Sequence[Step[Any]]) -> list[Any]:
    """Do steps side by side; the first that failed raises its own error."""
    if len(steps) == 1:
        return [(await steps[0])]
    made = await beside(steps, on_error="skip")
    for outcome in made.outcomes:
        if outcome.error is not None:
            raise outcome.error
    return list(made.values)


def _refused(error: Exception) -> None:
    """Whether the endpoint took the request at all: one that refuses log-probabilities is asked without them."""
    if not isinstance(error, ModelError) or isinstance(error, _OUT_OF_REACH):
        raise error
    if not isinstance(error, ModelOutputError):
        logger.info("log-probabilities were refused: %s", error)
