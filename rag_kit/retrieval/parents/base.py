"""What retrievers over families share: the search among children."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from langchain_core.documents import Document
from langchain_core.runnables import Runnable
from pydantic import PrivateAttr, field_validator

from rag_kit.concurrency.bridge import run_in_thread
from rag_kit.documents import combine_filters, compile_filter
from rag_kit.indexing.document_index.families.model import Family
from rag_kit.indexing.document_index.families.reading import FamilyView
from rag_kit.retrieval.base import Request, check_count
from rag_kit.retrieval.compose import acall_retriever, call_retriever
from rag_kit.retrieval.indexed import rows_retriever
from rag_kit.retrieval.own_filter import own_filter
from rag_kit.retrieval.parents.matches import Match, Passage, Passes, documents_of, place_matches
from rag_kit.retrieval.parents.writing import FamilyWriter

_GROWTH = 4


class FamilyRetriever(FamilyWriter):
    """Search the parts of documents, return what stands around them.

    Args:
        index: The index that holds the documents.
        pipeline: How children are searched: ``"hybrid"``, ``"bm25"`` or ``"dense"``.
        retriever: Searches children instead: any LangChain retriever over the same index. A filter of its own
            holds for what is returned too.
        k: Most passages to return; children are fetched deeper until there are so many, or no more.
        filter: Metadata filter for every call. A child must pass it, and so must what is returned for it.
        fetch_k: How many children to fetch first; default: five times ``k``, at least 20.
        max_fetch_k: How many children to fetch at most; where that cuts the result short, a note says so.
        id_key: Metadata key that holds a document's id, for writing.
    """

    pipeline: Literal["hybrid", "bm25", "dense"] = "hybrid"
    retriever: Runnable[Any, Any] | None = None
    fetch_k: int | None = None
    max_fetch_k: int = 1000
    stage: str = "parent"
    _children: Runnable[Any, Any] = PrivateAttr()

    @field_validator("fetch_k", "max_fetch_k", mode="before")
    @classmethod
    def _count_is_allowed(cls, value: Any, info: Any) -> Any:
        return None if value is None and info.field_name == "fetch_k" else check_count(info.field_name, value)

    def model_post_init(self, context: Any, /) -> None:
        """Make the search among children."""
        super().model_post_init(context)
        self._children = self.retriever or rows_retriever(self.index, self.pipeline, k=self.k)

    def _families(self, documents: Sequence[Document]) -> list[Family]:
        return [self._family(document) for document in documents]

    @abstractmethod
    def _family(self, document: Document) -> Family:
        """Cut a document."""

    @abstractmethod
    def _passages(
        self, view: FamilyView, matches: Sequence[Match], k: int, passes: Passes | None
    ) -> list[Passage]:
        """At most k passages, best first; what does not pass is left out."""

    def _retrieve(self, query: str, request: Request) -> list[Document]:
        results: list[Document] = []
        for fetch, last in self._depths(request.k):
            found = call_retriever(
                self._children, query, config=request.child("children"), k=fetch, filter=request.filter
            )
            results = self._results(query, request, found, last and len(found) >= fetch)
            if len(results) >= request.k or len(found) < fetch:
                break
        return results

    async def _aretrieve(self, query: str, request: Request) -> list[Document]:
        results: list[Document] = []
        for fetch, last in self._depths(request.k):
            found = await acall_retriever(
                self._children, query, config=request.child("children"), k=fetch, filter=request.filter
            )
            cut = last and len(found) >= fetch
            results = await run_in_thread(self._results, query, request, found, cut)
            if len(results) >= request.k or len(found) < fetch:
                break
        return results

    def _depths(self, k: int) -> Iterator[tuple[int, bool]]:
        """How many children to fetch in each round, and whether it is the last."""
        most = max(k, self.max_fetch_k)
        fetch = min(most, max(k, self.fetch_k or max(20, 5 * k)))
        while fetch < most:
            yield fetch, False
            fetch = min(most, fetch * _GROWTH)
        yield most, True

    def _results(self, query: str, request: Request, found: Sequence[Document], cut: bool) -> list[Document]:
        where = combine_filters(request.filter, own_filter(self._children, request.config))
        passes = compile_filter(where) if where else None
        with self.index.families.view() as view:
            passages = self._passages(view, place_matches(view, found), request.k, passes)
        notes = []
        if cut and len(passages) < request.k:
            notes.append(
                f"degraded: {len(passages)} of {request.k} passages in the first {len(found)} children; raise "
                "max_fetch_k to look deeper"
            )
        return documents_of(passages, stage=self.stage, name=self.get_name(), query=query, notes=notes)


def parents_metadata(view: FamilyView, matches: Sequence[Match]) -> Mapping[str, dict[str, Any]]:
    """Metadata of the documents that matches belong to."""
    return view.metadata(list(dict.fromkeys(match.place.parent for match in matches if match.place)))
