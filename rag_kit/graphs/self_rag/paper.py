"""Self-RAG as in the paper: segments, on-demand retrieval, one continuation per passage, critique, a beam."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Literal

from langchain_core.documents import Document
from langgraph.types import Command, Overwrite

from rag_kit.documents.identity import document_key
from rag_kit.errors import (
    BudgetExceededError,
    ModelError,
    ModelOutputError,
    ModelUnauthorizedError,
    ModelUnreachableError,
)
from rag_kit.graphs.running import branch, report, run_side_by_side, values_side_by_side
from rag_kit.graphs.self_rag.beams import (
    FAILED,
    cite_segments,
    count_shared_segments,
    critique_score,
    first_beam,
    rank,
    used_passages,
)
from rag_kit.graphs.self_rag.candidates import (
    CandidateWriter,
    Reply,
    may_have_logprobs,
    new_candidate,
    probabilities,
)
from rag_kit.graphs.self_rag.nodes import cap_of, has_answer
from rag_kit.graphs.self_rag.state import Beam, Candidate, SelfRagContext, SelfRagState
from rag_kit.graphs.state import Update
from rag_kit.text.citations.decline import DECLINED

logger = logging.getLogger(__name__)

ScoringChoice = Literal["auto", "logprobs", "labels"]
_CALLS_EACH = 2  # a continuation and its critique
_OUT_OF_REACH = (ModelUnreachableError, ModelUnauthorizedError)


class Paper(CandidateWriter):
    """The nodes of mode ``paper``."""

    mode = "paper"
    after_begin = "decide_retrieval"

    def __init__(self, retriever: Any, llm: Any, options: Any, *, scoring: ScoringChoice) -> None:
        super().__init__(retriever, llm, options)
        self.tries_logprobs = scoring == "logprobs" or (scoring == "auto" and may_have_logprobs(llm))

    def fitting_passages(self, documents: Sequence[Document]) -> list[Document]:
        """All that the answer rests on: they are few, and each was shown."""
        return list(documents)

    async def decide_retrieval(self, state: SelfRagState, context: SelfRagContext) -> Command[Any]:
        """Decide for each way to go on whether documents are looked up for the next segment."""
        beams: list[Beam] = [{**beam} for beam in state["beams"]] or [first_beam()]
        going = [beam for beam in beams if not beam["ended"]]
        notes: list[str] = []
        answers: list[Reply] = []
        if state["segment"] == 0 and self.tries_logprobs:
            state["scoring"] = "logprobs"
            answer = await self.decision(state, context, beams[0], _refused)
            if not answer.tokens:
                state["scoring"] = "labels"
                notes.append("scoring: the model gave no log-probabilities; its labels count as certain")
            answers = [answer] if answer.value is not None else []
        if not answers:
            answers = await values_side_by_side([self.decision(state, context, beam) for beam in going])
        for beam, answer in zip(going, answers, strict=True):
            if answer.value is None:
                notes.append("retrieve_needed: the model gave no usable verdict; documents were looked up")
            label = "yes" if answer.value is None else answer.value.retrieve
            beam["wanted"] = critique_score("retrieve", probabilities(answer, "retrieve", label))
            beam["retrieve"] = beam["wanted"] > context.delta
        segment, wanted = state["segment"] + 1, [beam["retrieve"] for beam in going]
        report("decided", segment=segment, retrieve=wanted)
        update = {"beams": beams, "segment": segment, "scoring": state["scoring"], "notes": notes}
        return Command(update=update, goto="retrieve" if any(wanted) else "generate_direct")

    async def retrieve(self, state: SelfRagState, context: SelfRagContext) -> Command[Any]:
        """Look up passages for each way to go on: the question, and what was said last."""
        passages = {document_key(document): document for document in state["passages"]}
        beams: list[Beam] = [{**beam} for beam in state["beams"]]
        wanting = [beam for beam in beams if beam["retrieve"] and not beam["ended"]]
        for beam in wanting:
            # as in the paper: the question and the segment before
            beam["query"] = " ".join([state["asked"], *(part["text"] for part in beam["segments"][-1:])])
        queries = list(dict.fromkeys(beam["query"] for beam in wanting))
        lists = await values_side_by_side([self.fetch(query, context) for query in queries])
        by_query: dict[str, dict[str, Document]] = {}
        for query, documents in zip(queries, lists, strict=True):
            by_query[query] = {
                document_key(document): document for document in await self.visible_passages(documents)
            }
            passages |= {key: document for key, document in by_query[query].items() if key not in passages}
        place = {key: index for index, key in enumerate(passages)}
        for beam in wanting:
            beam["found"] = [place[key] for key in by_query[beam["query"]]]
        report("retrieved", segment=state["segment"], passages=sum(map(len, by_query.values())))
        known = list(passages.values())
        update = {"beams": beams, "passages": known, "documents": known, "search_query": queries[-1]}
        return Command(update=update, goto="generate_segments")

    async def generate_segments(self, state: SelfRagState, context: SelfRagContext) -> Command[Any]:
        """Write and judge a continuation for each passage of each way to go on, or one from none, all side by side."""
        jobs: list[tuple[Beam, int | None]] = []
        for beam in state["beams"]:
            if not beam["ended"]:
                jobs += [(beam, index) for index in (beam["found"] if beam["retrieve"] else [None])]
        notes: list[str] = []
        wanted, here = len(jobs), f"segment {state['segment']}:"
        if context.max_calls is not None:
            # cut here and not where the calls happen to run out, so that a run can be repeated
            room = max(0, context.max_calls - state["usage"]["calls"]) // _CALLS_EACH
            jobs = jobs[:room]
            if len(jobs) < wanted:
                notes.append(
                    f"{here} max_calls={context.max_calls} leaves room for {room} of {wanted} candidates"
                )
                if not jobs and not has_answer(state):
                    raise BudgetExceededError("calls", context.max_calls)
        branches = [
            branch(
                f"beam {beam['number']}, passage {passage}",
                lambda beam=beam, passage=passage: self.candidate(state, context, beam, passage),  # type: ignore[misc]
            )
            for beam, passage in jobs
        ]
        outcomes = (await run_side_by_side(branches)).outcomes if branches else []
        candidates: list[Candidate] = [
            outcome.value or new_candidate(state, beam, passage, f"{FAILED}: {type(outcome.error).__name__}")
            for (beam, passage), outcome in zip(jobs, outcomes, strict=True)
        ]
        errors = [outcome.error for outcome in outcomes if outcome.error is not None]
        caps = [error for error in errors if isinstance(error, BudgetExceededError)]
        nothing = not has_answer(state) and not any(candidate["parts"] for candidate in candidates)
        if errors and nothing and (caps or len(errors) == len(candidates)):
            raise (caps or errors)[0]
        if caps:
            notes.append(f"{here} {cap_of(caps[0], context)} was reached; the answer is the best so far")
        if failed := len(errors) - len(caps):
            notes.append(f"{here} {failed} candidates failed")
        if unusable := sum("critique" in candidate["labels"] for candidate in candidates):
            notes.append(f"critique: {unusable} unusable verdicts counted as the lowest")
        report("generated", segment=state["segment"], candidates=len(candidates))
        capped = bool(caps) or len(jobs) < wanted
        update = {"candidates": candidates, "notes": notes, "capped": capped}
        return Command(update=update, goto="rank_segments")

    generate_direct = generate_segments  # the node's name where no way to go on needs passages

    async def rank_segments(self, state: SelfRagState, context: SelfRagContext) -> Command[Any]:
        """Score the candidates, keep the best beams, send what is decided, go on or finish."""
        options: Any = {"width": context.beam_width, "hard": context.constraint == "hard"}
        beams, judged = rank(state["beams"], state["candidates"], weights=context.weights, **options)
        streamed = self._send(beams, state["streamed"], count_shared_segments(beams))
        update: Update = {"beams": beams, "candidates": [], "trace": judged, "streamed": streamed}
        report("ranked", segment=state["segment"], scores=[round(beam["score"], 4) for beam in beams])
        if state["capped"] and not all(beam["ended"] for beam in beams):
            update["notes"] = ["finished early: a cap of the run was reached; the answer is the best so far"]
        elif beams and not beams[0]["ended"] and state["segment"] < context.max_segments:
            return Command(update=update, goto="decide_retrieval")
        return Command(update=update, goto="finish")

    async def finish(self, state: SelfRagState, context: SelfRagContext) -> Update:
        """Join the best beam's segments, number the passages that they rest on."""
        best = max(state["beams"], key=lambda beam: (beam["score"], -beam["number"]), default=first_beam())
        segments, passages = best["segments"], state["passages"]
        if not segments:
            note = "finish: no passage gave a part of an answer"
            return {"answer": DECLINED[state["language"]], "documents": passages, "notes": [note]}
        self._send([best], state["streamed"], len(segments))
        chosen = [
            (at, entry["beam"], entry["text"], entry["passage"]) for at, entry in enumerate(segments, start=1)
        ]
        for entry in (trace := [{**entry} for entry in state["trace"]]):
            place = (entry["segment"], entry["beam"], entry["text"], entry["passage"])
            entry["won"] = entry["kept"] and place in chosen
        return {
            "answer": "".join(cite_segments(segments)),
            "documents": [passages[index] for index in used_passages(segments)],
            "trace": Overwrite(trace),
        }

    def _send(self, beams: Sequence[Beam], streamed: int, decided: int) -> int:
        """Send the text that is decided; with an answer guard nothing is sent, for it is not yet allowed."""
        if decided > streamed and not self.guards.answer:
            for piece in cite_segments(beams[0]["segments"])[streamed:decided]:
                report("segment", text=piece)
        return max(streamed, decided)


def _refused(error: Exception) -> None:
    """Whether the endpoint took the request at all: one that refuses log-probabilities is asked without them."""
    if not isinstance(error, ModelError) or isinstance(error, _OUT_OF_REACH):
        raise error
    if not isinstance(error, ModelOutputError):
        logger.info("log-probabilities were refused: %s", error)
