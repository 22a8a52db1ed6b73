"""Self-RAG as in the paper: retrieval on demand, segments that are written and judged, a beam of the best."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain
from operator import itemgetter
from typing import Any, Literal

from langchain_core.documents import Document
from langgraph.types import Overwrite

from rag_kit.concurrency.notes import write_note
from rag_kit.errors import ModelError, ModelOutputError, ModelUnauthorizedError, ModelUnreachableError
from rag_kit.graphs.nodes import note_disagreements
from rag_kit.graphs.running import branch, report, values_side_by_side
from rag_kit.graphs.self_rag.beams import (
    answer_so_far,
    cite_segments,
    count_shared_segments,
    critique_score,
    first_beam,
    rank,
    used_passages,
)
from rag_kit.graphs.self_rag.shared import AnswerSegment, Beam, PaperState, SelfRagContext, none_if_unreadable
from rag_kit.graphs.self_rag.writing import Reply, SegmentWriter, probabilities_of
from rag_kit.graphs.state import Update, question_of
from rag_kit.retrieval.fusion import Search, identify
from rag_kit.text.citations.decline import DECLINED

logger = logging.getLogger(__name__)

ScoringChoice = Literal["auto", "logprobs", "labels"]
_OUT_OF_REACH_ERRORS = (ModelUnreachableError, ModelUnauthorizedError)


class Paper(SegmentWriter):
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

    async def _ask_to_retrieve(
        self, state: PaperState, context: SelfRagContext, beam: Beam, fallback: Any = none_if_unreadable
    ) -> Reply:
        """Ask whether documents are to be searched for the next segment."""
        values = {"question": question_of(state), "answer": answer_so_far(beam)}
        return await self._ask_scored("retrieve_needed", state, context, values, fallback=fallback)

    async def decide_retrieval(self, state: PaperState, context: SelfRagContext) -> Update:
        """Decide for each beam whether documents are searched for its next segment."""
        beams: list[Beam] = [{**beam} for beam in state["beams"]] or [first_beam()]
        running = [beam for beam in beams if not beam["ended"]]
        notes: list[str] = []
        replies: list[Reply] = []
        if state["segment"] == 0:
            replies = await self._choose_scoring(state, context, beams[0], notes)
        if not replies:
            calls = [partial(self._ask_to_retrieve, state, context, beam) for beam in running]
            replies = await values_side_by_side([branch("retrieve_needed", call) for call in calls])
        for beam, reply in zip(running, replies, strict=True):
            label, tokens = ("yes", []) if reply.value is None else (reply.value.retrieve, reply.tokens)
            if reply.value is None:
                notes.append("retrieve_needed: the model gave no usable verdict; documents were looked up")
            beam["wanted"] = critique_score("retrieve", probabilities_of(tokens, "retrieve", label))
            beam["retrieve"] = beam["wanted"] > context.delta
        segment = state["segment"] + 1
        report("decided", segment=segment, retrieve=[beam["retrieve"] for beam in running])
        return {"beams": beams, "segment": segment, "scoring": state["scoring"], "notes": notes}

    async def _choose_scoring(
        self, state: PaperState, context: SelfRagContext, beam: Beam, notes: list[str]
    ) -> list[Reply]:
        """Put into the state whether the run has log-probabilities, and note if the model gives none.

        Return the reply of the call that showed it; none if no call was needed, or it gave no verdict.
        """
        settings = getattr(type(self.model(context)), "model_fields", {}).keys()
        has_setting = self.scoring == "auto" and {"logprobs", "top_logprobs"} <= settings
        if self.scoring != "logprobs" and not has_setting:
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
        fetched = await values_side_by_side([self.fetch(query, context) for query in queries])
        lists = [state["documents"], *[await self.visible_passages(documents) for documents in fetched]]
        # a passage has the same key in each list; the first list holds those known before
        keys, _ = identify([Search("", None, documents=documents) for documents in lists], None)
        passages: dict[str, Document] = {}
        for key, document in zip(chain(*keys), chain(*lists), strict=True):
            passages.setdefault(key, document)
        indices = {key: index for index, key in enumerate(passages)}
        keys_by_query = {query: dict.fromkeys(found) for query, found in zip(queries, keys[1:], strict=True)}
        for beam in to_search:
            beam["found"] = [indices[key] for key in keys_by_query[beam["query"]]]
        report("retrieved", segment=state["segment"], passages=sum(map(len, keys_by_query.values())))
        documents = list(passages.values())
        return {"beams": beams, "documents": documents, "known": len(documents)}

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
        """Join the best beam's segments, number their passages, note what the critique found."""
        best = max(state["beams"], key=lambda beam: (beam["score"], -beam["number"]), default=first_beam())
        segments, documents = best["segments"], state["documents"]
        if not segments:
            if state["trace"] and all(entry["passage"] is None for entry in state["trace"]):
                write_note("finish: no passage was wanted, so nothing was searched", unsearched=True)
            note = "finish: no passage gave a part of an answer"
            return {"answer": DECLINED[state["language"]], "notes": [note]}
        self._send_decided([best], state["streamed"], len(segments))
        trace = _mark_winners(state["trace"], segments)
        winners = [entry for entry in trace if entry["won"]]
        cut_off = next((entry["cut_off"] for entry in winners if entry.get("cut_off")), "")
        used = [index for index in used_passages(segments) if index < len(documents)]
        # those that the answer rests on come first, so that the numbers are its own
        ranked = [documents[index] for index in dict.fromkeys([*used, *range(len(documents))])]
        disagreements = await note_disagreements(question_of(state), ranked, len(used))
        return {
            "answer": "".join(cite_segments(segments)),
            "cut_off": cut_off,
            "documents": [documents[index] for index in used],
            "trace": Overwrite(trace),
            "unsupported": any(
                "critique" not in labels  # which a candidate without a verdict has
                and (labels.get("support") == "none" or labels.get("relevance") == "irrelevant")
                for labels in (entry["labels"] for entry in winners)
            ),
            "notes": [*_note_critique(winners), *disagreements],
        }

    def _send_decided(self, beams: Sequence[Beam], sent_count: int, decided_count: int) -> int:
        """Send the decided segments not sent yet, unless a guard must see the answer; return how many are done with."""
        if decided_count > sent_count and not self.guards.answer:
            for text in cite_segments(beams[0]["segments"])[sent_count:decided_count]:
                report("segment", text=text)
        return max(sent_count, decided_count)


def wants_passages(state: Mapping[str, Any]) -> str:
    """Choose the next node: the search, if any beam needs passages for its next segment."""
    running = [beam for beam in state.get("beams") or [] if not beam["ended"]]
    return "retrieve" if any(beam["retrieve"] for beam in running) else "generate_direct"


def _mark_winners(trace: Sequence[Any], segments: Sequence[AnswerSegment]) -> list[dict[str, Any]]:
    """Copy the trace; ``won`` tells of each candidate whether it is a segment of the answer."""
    identity = itemgetter("segment", "beam", "text", "passage")
    of_answer = [identity({"segment": number, **part}) for number, part in enumerate(segments, start=1)]
    return [{**entry, "won": entry["kept"] and identity(entry) in of_answer} for entry in trace]


def _note_critique(winners: Sequence[Mapping[str, Any]]) -> list[str]:
    """Note what the critique has against the parts of the answer."""
    count, notes = len(winners), []
    # a candidate without a usable verdict has the key "critique", see `_put_labels`
    judged = [entry["labels"] for entry in winners if "critique" not in entry["labels"]]
    for name, labels, problem in (
        ("relevance", ("irrelevant",), "rest on a passage that is irrelevant"),
        ("support", ("none",), "are not supported by their passage"),
        ("support", ("partial",), "are supported in part"),
        ("usefulness", ("1", "2"), "may not answer the question"),
    ):
        if found := sum(entry.get(name) in labels for entry in judged):
            notes.append(f"critique: {found} of {count} parts of the answer {problem}")
    return notes


def _none_if_refused(error: Exception) -> None:
    """Return None if the endpoint refuses log-probabilities, or its answer cannot be read; raise other failures."""
    if not isinstance(error, ModelError) or isinstance(error, _OUT_OF_REACH_ERRORS):
        raise error
    if not isinstance(error, ModelOutputError):
        logger.info("log-probabilities were refused: %s", error)
