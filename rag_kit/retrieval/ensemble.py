"""Several retrievers side by side, their results fused."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

from langchain_core.documents import Document
from langchain_core.runnables import Runnable
from pydantic import Field, model_validator

from rag_kit.concurrency import afan_out, fan_out
from rag_kit.concurrency.branches import FanOut, log_degraded
from rag_kit.documents import document_keys
from rag_kit.documents.provenance import peek_provenance, peek_score
from rag_kit.retrieval.base import Request
from rag_kit.retrieval.compose import (
    BranchingRetriever,
    Weights,
    acall_retriever,
    call_retriever,
    raise_all_failed,
)
from rag_kit.retrieval.convex import Normalisation, RankedList, fuse
from rag_kit.retrieval.fusion import (
    FusedList,
    Merged,
    Search,
    check_fusion,
    check_weights,
    first_places,
    join_documents,
    reciprocal_rank_fusion,
)

_log = logging.getLogger(__name__)
_DEPTH = 100  # results of each retriever; fusions of scores need to see how these fall off
Retriever = Runnable[str, list[Document]]


class EnsembleRetriever(BranchingRetriever):
    """Run retrievers side by side and fuse their rankings.

    The retrievers may be any LangChain runnables from a string to documents. A document that several of them
    find is recognised by ``id_key``, else ``Document.id``, else its text. Results are copies whose provenance
    holds each branch's rank, score and weight; a branch that failed is named in ``notes``.

    Args:
        retrievers: The retrievers, at least one.
        weights: One number >= 0 a retriever; ``None`` for equal weights. A retriever of weight 0 is not run.
        fusion: ``"rrf"``: ``weight / (rrf_k + rank)``, ranks from 1, summed over the branches.
            ``"convex"``: the weighted mean of normalised scores.
            ``"auto"``: as ``"convex"`` over z-scores, with weights that follow each query's scores (see
            ``rag_kit.retrieval.convex.fuse``); for a keyword retriever and one or more others.
        rrf_k: See there; 60 as in the paper. ``c``, as in ``langchain_classic``, is taken too.
        normalisation: For ``"convex"``: ``"min-max"``, ``"z-score"`` or ``"maximum"`` (``rag_kit.retrieval.convex``).
        k: Most documents to return; ``None`` for all that the retrievers find with their own ``k``.
        fetch_k: How many each retriever is asked for, at least ``k``; ``None``: ``k`` with ``"rrf"``, 100 with others.
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
    k_may_be_none: ClassVar[bool] = True

    k: int | None = 4  # type: ignore[assignment]
    retrievers: list[Retriever] = Field(min_length=1)
    weights: Weights = None
    fusion: str = "rrf"
    rrf_k: float = 60
    normalisation: Normalisation = "min-max"

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        check_fusion(self.fusion, self.rrf_k)
        check_weights(self.weights, len(self.retrievers))
        return self

    def _retrieve(self, query: str, request: Request) -> list[Document]:
        branches = self._branches(query)
        result = fan_out(**self._fan_out_arguments(call_retriever, branches, request))
        return self._fuse(query, request, branches, result)

    async def _aretrieve(self, query: str, request: Request) -> list[Document]:
        branches = self._branches(query)
        result = await afan_out(**self._fan_out_arguments(acall_retriever, branches, request))
        return await self._afuse(query, request, branches, result)

    async def _afuse(self, *arguments: Any) -> list[Document]:
        return self._fuse(*arguments)

    def _branches(self, query: str) -> list[Search]:
        """A search for each retriever whose weight is above 0, with a name that no other has."""
        weights = self.weights or [1.0] * len(self.retrievers)
        names = [retriever.get_name() for retriever in self.retrievers]
        numbered = enumerate(names, start=1)
        unique = [f"{name} #{number}" if names.count(name) > 1 else name for number, name in numbered]
        rows = zip(unique, self.retrievers, weights, strict=True)
        return [
            Search(query, None, retriever, weight, name=name, branch=number)
            for number, (name, retriever, weight) in enumerate(rows, start=1)
            if weight > 0
        ]

    def _depth(self, request: Request) -> int | None:
        """How many documents each retriever is asked for; ``None`` leaves it to them."""
        return request.fetch(self.fetch_k or (0 if self.fusion == "rrf" else _DEPTH))

    def _fan_out_arguments(
        self, call: Callable[..., Any], branches: Sequence[Search], request: Request
    ) -> dict[str, Any]:
        """The branches as tasks that ``call`` each retriever, and how they are run."""
        settings: dict[str, Any] = {"k": self._depth(request), "filter": request.filter}
        return {
            "tasks": [
                partial(call, b.retriever, b.query, config=request.child(f"retriever_{b.branch}"), **settings)
                for b in branches
            ],
            "names": [b.name for b in branches],
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
        further, remarks = self._extra_rankings(query, request, answered)
        answered += further
        notes += [f"{search.name} found nothing" for search in answered if not search.documents]
        keys, fused = self._fused_keys(answered, self._depth(request))
        return join_documents(
            answered,
            [first_places(list_keys) for list_keys in keys],
            fused[: request.k],
            Merged(query, self.get_name(), [*notes, *remarks, *fused.notes], fused.extra or {}),
            f"fusion:{self.fusion}",
            more=partial(_details_of, fused),
        )

    def _extra_rankings(
        self, query: str, request: Request, answered: Sequence[Search]
    ) -> tuple[list[Search], list[str]]:
        """Further rankings that a subclass fuses with those of the retrievers, and notes on them."""
        return [], []

    def _fused_keys(self, searches: Sequence[Search], depth: int | None) -> tuple[list[list[str]], FusedList]:
        """The keys of each search's documents, and the fused keys with their scores."""
        keys = document_keys([search.documents for search in searches], self.id_key)
        if self.fusion == "rrf":
            weights = [search.weight for search in searches]
            return keys, FusedList(reciprocal_rank_fusion(keys, weights=weights, k=self.rrf_k))
        ranked = []
        for search, list_keys in zip(searches, keys, strict=True):
            scores = [peek_score(doc) for doc in search.documents]
            maximum = _max_score(search.documents)
            # a retriever that states the highest score possible gives 0 to what it does not find
            searched_depth = depth if maximum else None
            ranked.append(RankedList(list_keys, scores, search.weight, search.name, maximum, searched_depth))
        return keys, fuse(self.fusion, ranked, self.normalisation)


def _max_score(documents: Sequence[Document]) -> float | None:
    """The highest score that the retriever says the query could have."""
    stages = peek_provenance(documents[0]).get("stages", []) if documents else []
    value = stages[-1].get("max_score") if stages else None
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _details_of(details: FusedList, number: int, key: str) -> dict[str, float]:
    """What one list's normalised score and weight were for a document."""
    fields = {}
    if details.weights:
        fields["weight"] = details.weights[number]
    if details.normalised:
        fields["normalised"] = details.normalised[number][key]
    return fields
