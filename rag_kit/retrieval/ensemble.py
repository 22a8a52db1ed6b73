"""Several retrievers side by side, their results fused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

from langchain_core.documents import Document
from langchain_core.runnables import Runnable
from pydantic import Field, model_validator

from rag_kit.retrieval.base import AskingRetriever
from rag_kit.retrieval.call import Call
from rag_kit.retrieval.fields import Fusion, RrfK, Weights
from rag_kit.retrieval.fusion import Search, check_weights, merge

_SCORE_FUSION_DEPTH = 100  # results of each retriever; fusions of scores need to see how these fall off
Retriever = Runnable[str, list[Document]]


class EnsembleRetriever(AskingRetriever):
    """Run retrievers side by side and fuse their rankings.

    The retrievers may be any LangChain runnables from a string to documents. A document that several of them
    find is recognised by ``id_key``, else ``Document.id``, else its text. Results are copies whose provenance
    holds each branch's rank, score and weight; a branch that failed is named in ``notes``.

    Args:
        retrievers: The retrievers, at least one.
        weights: One number >= 0 a retriever; ``None`` for equal weights. A retriever of weight 0 is not run.
        fusion: ``"rrf"``: ``weight / (rrf_k + rank)``, ranks from 1, summed over the branches.
            ``"convex"``: the weighted mean of z-scores (``rag_kit.retrieval.convex``).
        rrf_k: See there; 60 as in the paper. ``c``, as in ``langchain_classic``, is taken too.
        k: Most documents to return; ``None`` for all that the retrievers find with their own ``k``.
        fetch_k: How many each retriever is asked for, at least ``k``; ``None``: ``k`` with ``"rrf"``, 100 with others.
        filter: Metadata filter; reaches every retriever (results of those that take none are filtered).
        **more: ``on_error``, ``timeout`` of a branch, ``deadline``...: see ``AskingRetriever``.

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
    asks_models: ClassVar[bool] = False
    searches_together: ClassVar[bool] = True
    k_may_be_none: ClassVar[bool] = True

    k: int | None = 4  # type: ignore[assignment]
    retrievers: list[Retriever] = Field(min_length=1)
    weights: Weights = None
    fusion: Fusion = "rrf"
    rrf_k: RrfK = 60
    if TYPE_CHECKING:
        c: float = 60  # another name of rrf_k, see ``other_names``

    @model_validator(mode="after")
    def _check_weights(self) -> Self:
        check_weights(self.weights, len(self.retrievers))
        return self

    def inner_retrievers(self) -> Sequence[Any]:
        """The retrievers that run side by side."""
        return self.retrievers

    def _branches(self, query: str) -> list[Search]:
        """Make a search for each retriever whose weight is above 0; equal names get a number ("bm25 #2")."""
        weights = self.weights or [1.0] * len(self.retrievers)
        names = [retriever.get_name() for retriever in self.retrievers]
        searches = []
        branches = zip(self.retrievers, weights, names, strict=True)
        for number, (retriever, weight, name) in enumerate(branches, start=1):
            unique_name = f"{name} #{number}" if names.count(name) > 1 else name
            if weight > 0:
                searches.append(Search(query, None, retriever, weight, name=unique_name, branch=number))
        return searches

    def _depth(self, call: Call) -> int | None:
        """Return how many documents each retriever is asked for; ``None`` leaves it to them."""
        return call.fetch(self.fetch_k or (0 if self.fusion == "rrf" else _SCORE_FUSION_DEPTH))

    async def prepare(self, queries: Sequence[str]) -> None:
        """Prepare the retrievers whose weight is above 0."""
        await self._prepare_inner([branch.retriever for branch in self._branches("")], queries)

    async def _search(self, query: str, call: Call) -> list[Document]:
        return merge(await self._search_branches(query, call), call, depth=self._depth(call))

    async def _search_branches(self, query: str, call: Call, **arguments: Any) -> list[Search]:
        """Ask all retrievers side by side; ``arguments`` reach those that are the kit's own."""
        branches, depth = self._branches(query), self._depth(call)
        return await call.search_all(
            branches, depth, tag="retriever", tasks="retrievers", arguments=arguments
        )
