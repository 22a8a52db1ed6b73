"""Several retrievers side by side, their results fused."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

from langchain_core.documents import Document
from langchain_core.runnables import Runnable
from pydantic import Field, field_validator, model_validator

from rag_kit.concurrency import afan_out, fan_out
from rag_kit.concurrency.branches import FanOut, log_degraded
from rag_kit.documents import add_note, document_keys
from rag_kit.documents.provenance import peek_provenance, peek_score
from rag_kit.documents.spans import new_part, span_of
from rag_kit.errors import InvalidInputError
from rag_kit.retrieval.base import Request
from rag_kit.retrieval.compose import BranchingRetriever, acall_retriever, call_retriever, raise_all_failed
from rag_kit.retrieval.convex import Normalisation, RankedList, fuse
from rag_kit.retrieval.fusion import (
    FusedList,
    Merged,
    Search,
    check_fusion,
    check_weights,
    first_places,
    joined,
    reciprocal_rank_fusion,
)

_log = logging.getLogger(__name__)
_DEPTH = 100
Weights = Sequence[float] | Callable[[str], Sequence[float]]
Retriever = Runnable[str, list[Document]]


class EnsembleRetriever(BranchingRetriever):
    """Run retrievers side by side and fuse their rankings.

    The retrievers may be any LangChain runnables from a string to documents. A document that several of them
    find is recognised by ``id_key``, else ``Document.id``, else its text. Results are copies whose provenance
    holds each branch's rank, score and weight; a branch that failed is named in ``notes``.

    Two chunkings of one document give no text twice: of a chunk that overlaps a better one, which another
    retriever found, only the longest stretch that is new is returned, and nothing where none is (by metadata
    ``source``, ``start`` and ``end``, as `split` and `ingest` write them).

    Args:
        retrievers: The retrievers, at least one.
        weights: One number >= 0 a retriever, or a function from the query to such numbers; ``None`` for equal
            weights. A retriever of weight 0 is not run.
        fusion: ``"rrf"``: ``weight / (rrf_k + rank)``, ranks from 1, summed over the branches.
            ``"convex"``: the weighted mean of normalised scores.
            ``"auto"``: as ``"convex"`` over z-scores, with weights that follow each query's scores (see
            ``rag_kit.retrieval.convex.fuse``); for a keyword retriever and one or more others.
        rrf_k: See there; 60 as in the paper. ``c``, as in ``langchain_classic``, is taken too.
        normalisation: For ``"convex"``: ``"min-max"``, ``"z-score"`` or ``"maximum"``, the division by the
            highest score possible (see ``rag_kit.retrieval.convex.normalise``).
        k: Most documents to return; ``None`` for all that the retrievers find with their own ``k``.
        fetch_k: How many each retriever is asked for; ``None`` for ``k`` with ``"rrf"`` and for 100 with the
            others, which need to see how scores fall off. Never fewer than ``k``.
        filter: Metadata filter; reaches every retriever (results of those that take none are filtered).
        on_error: ``"skip"`` a branch that fails and report it, or ``"raise"``; if all fail, that raises always.
        timeout: Seconds a branch may take.
        max_concurrency: Most branches at a time; ``None`` for the config's ``max_concurrency``, else all.

    Raises:
        BranchError: On call, if a branch failed (``on_error="raise"``) or all did.

    Example:
        >>> from langchain_core.runnables import RunnableLambda
        >>> one = RunnableLambda(lambda q: [Document("a"), Document("b")])
        >>> two = RunnableLambda(lambda q: [Document("b"), Document("c")])
        >>> both = EnsembleRetriever(retrievers=[one, two], weights=[1, 2], k=2)
        >>> [doc.page_content for doc in both.invoke("q")]
        ['b', 'c']
    """

    other_names: ClassVar[Mapping[str, str]] = {"c": "rrf_k"}
    several_chunkings: ClassVar[bool] = True
    k_may_be_none: ClassVar[bool] = True

    k: int | None = 4  # type: ignore[assignment]
    retrievers: list[Retriever] = Field(min_length=1)
    weights: Weights | None = None
    fusion: str = "rrf"
    rrf_k: float = 60
    normalisation: Normalisation = "min-max"

    @field_validator("weights", mode="before")
    @classmethod
    def _weights_are_plain(cls, value: Any) -> Any:
        if value is None or callable(value):
            return value
        if isinstance(value, (str, bytes, Mapping)) or not hasattr(value, "__iter__"):
            raise InvalidInputError(
                f"weights={value!r} was given; it must be a list with one number >= 0 a retriever, a function from "
                "the query to such a list, or None for equal weights."
            )
        weights = [*value]
        return check_weights(weights, len(weights))

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        check_fusion(self.fusion, self.rrf_k)
        if not callable(self.weights):
            check_weights(self.weights, len(self.retrievers))
        return self

    def _retrieve(self, query: str, request: Request) -> list[Document]:
        branches = self._branches(query)
        calls = [partial(call_retriever, query=query, **self._arguments(b, request)) for b in branches]
        result = fan_out(calls, names=[b.name for b in branches], **self._policy(request))
        return self._fuse(query, request, branches, result)

    async def _aretrieve(self, query: str, request: Request) -> list[Document]:
        branches = self._branches(query)
        calls = [partial(acall_retriever, query=query, **self._arguments(b, request)) for b in branches]
        result = await afan_out(calls, names=[b.name for b in branches], **self._policy(request))
        return await self._afuse(query, request, branches, result)

    async def _afuse(self, *arguments: Any) -> list[Document]:
        return self._fuse(*arguments)

    def _branches(self, query: str) -> list[Search]:
        given = self.weights(query) if callable(self.weights) else self.weights
        weights = check_weights(given, len(self.retrievers))
        names = [retriever.get_name() for retriever in self.retrievers]
        repeated = {name for name, count in Counter(names).items() if count > 1}
        return [
            Search(
                query, None, retriever, weight, (), f"{name} #{number}" if name in repeated else name, number
            )
            for number, (name, retriever, weight) in enumerate(
                zip(names, self.retrievers, weights, strict=True), start=1
            )
            if weight > 0
        ]

    def _arguments(self, branch: Search, request: Request) -> dict[str, Any]:
        return {
            "retriever": branch.retriever,
            "config": request.child(f"retriever_{branch.branch}"),
            "k": self._depth(request),
            "filter": request.filter,
        }

    def _depth(self, request: Request) -> int | None:
        """How many documents each retriever is asked for; ``None`` leaves it to them."""
        return request.fetch(self.fetch_k or (0 if self.fusion == "rrf" else _DEPTH))

    def _policy(self, request: Request) -> dict[str, Any]:
        return {
            "max_concurrency": self.max_concurrency or request.config.get("max_concurrency"),
            "timeout": self.timeout,
            "on_error": self.on_error,
        }

    def _fuse(
        self, query: str, request: Request, branches: Sequence[Search], result: FanOut[list[Document]]
    ) -> list[Document]:
        """Fuse the rankings of the branches that answered; failed and empty ones are named in the notes."""
        notes = [f"degraded: {line}" for line in result.degradations]
        for note in notes:
            log_degraded(_log, self.get_name(), note)
        if not result.values:
            raise_all_failed(f"retrievers of {self.get_name()}", result)
        answered = [
            replace(branch, documents=outcome.value or [])
            for branch, outcome in zip(branches, result.outcomes, strict=True)
            if outcome.ok
        ]
        further, remarks = self._further(query, request, answered)
        answered += further
        notes += [f"{found.name} found nothing" for found in answered if not found.documents]
        keys, fused = self._ranking(answered, self._depth(request))
        parts = self._new_parts(answered, keys, fused, request.k)
        ranking = fused[: request.k] if parts is None else [pair for pair in fused if pair[0] in parts]
        found = joined(
            answered,
            [first_places(list_keys) for list_keys in keys],
            ranking,
            Merged(query, self.get_name(), [*notes, *remarks, *fused.notes], fused.extra),
            f"fusion:{self.fusion}",
            share=partial(_share, fused),
        )
        if parts is None:
            return found
        return [_shortened(doc, parts[key]) for doc, (key, _) in zip(found, ranking, strict=True)]

    def _new_parts(
        self,
        answered: Sequence[Search],
        keys: Sequence[Sequence[str]],
        fused: Sequence[tuple[str, float]],
        k: int | None,
    ) -> dict[str, Document] | None:
        """The k best documents by key, without what a better one of another retriever has; ``None``: cut nothing."""
        heads = [found.documents[0] for found in answered if found.documents]
        placed = sum("start" in head.metadata and span_of(head) is not None for head in heads)
        if not self.several_chunkings or placed < 2:
            return None
        documents: dict[str, Document] = {}
        lists: dict[str, set[int]] = {}
        for number, (found, of_one) in enumerate(zip(answered, keys, strict=True)):
            for key, document in zip(of_one, found.documents, strict=True):
                first = documents.setdefault(key, document)
                if first is document or span_of(first) == span_of(document):
                    lists.setdefault(key, set()).add(number)
        parts: dict[str, Document] = {}
        for key, _ in fused:
            if k is not None and len(parts) >= k:
                break
            # what one retriever gives side by side is one chunking, whose overlap is meant
            others = (part for other, part in parts.items() if lists[key].isdisjoint(lists[other]))
            part = new_part(documents[key], others)
            if part is not None:
                parts[key] = part
        return parts

    def _further(
        self, query: str, request: Request, answered: Sequence[Search]
    ) -> tuple[list[Search], list[str]]:
        """Further rankings that a subclass fuses with those of the retrievers, and notes on them."""
        return [], []

    def _ranking(self, answered: Sequence[Search], depth: int | None) -> tuple[list[list[str]], FusedList]:
        """The keys of each answer's documents, and the fused keys with their scores."""
        keys = document_keys([found.documents for found in answered], self.id_key, hashed=False)
        if self.fusion == "rrf":
            weights = [found.weight for found in answered]
            return keys, FusedList(reciprocal_rank_fusion(keys, weights=weights, k=self.rrf_k))
        ranked = []
        for found, list_keys in zip(answered, keys, strict=True):
            scores = [peek_score(doc) for doc in found.documents]
            maximum = _maximum(found.documents)
            # who states the highest score possible scores 0 what it does not find
            known = depth if maximum else None
            ranked.append(RankedList(list_keys, scores, found.weight, found.name, maximum, known))
        return keys, fuse(self.fusion, ranked, self.normalisation)


def _shortened(document: Document, part: Document) -> Document:
    """A document cut to the part that no better document repeats."""
    if len(part.page_content) == len(document.page_content):
        return document
    place = {name: part.metadata[name] for name in ("start", "end")}
    update = {"page_content": part.page_content, "metadata": {**document.metadata, **place}}
    return add_note(document.model_copy(update=update), "shortened: the rest stands in a passage above")


def _maximum(found: Sequence[Document]) -> float | None:
    """The highest score that the retriever says the query could have."""
    stages = peek_provenance(found[0]).get("stages", []) if found else []
    value = stages[-1].get("max_score") if stages else None
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _share(details: FusedList, number: int, key: str) -> dict[str, float]:
    """What one list's normalised score and weight were for a document."""
    share = {}
    if details.weights:
        share["weight"] = details.weights[number]
    if details.normalised:
        share["normalised"] = details.normalised[number][key]
    return share
