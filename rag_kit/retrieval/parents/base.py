"""What retrievers over families share: the search among children, and the one write path."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, ClassVar, Literal, Self

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import Runnable
from pydantic import PrivateAttr, field_validator

from rag_kit.concurrency import run_in_thread
from rag_kit.documents import combine_filters, compile_filter, document_key
from rag_kit.errors import InvalidInputError
from rag_kit.indexing.bm25.parameters import documents_of
from rag_kit.indexing.document_index import DocumentIndex, WriteReport
from rag_kit.indexing.document_index.families import Family, FamilyView
from rag_kit.indexing.document_index.writing import Changes
from rag_kit.retrieval.base import RagKitRetriever, Request, check_count
from rag_kit.retrieval.compose import acall_retriever, call_retriever
from rag_kit.retrieval.indexed import index_retriever
from rag_kit.retrieval.own_filter import own_filter
from rag_kit.retrieval.parents.folders import open_or_create, temporary
from rag_kit.retrieval.parents.matches import Match, Passage, Passes, place_matches, told

_GROWTH = 4


@dataclass
class FamilyReport(Changes):
    """What a write changed, in ids of documents.

    Attributes:
        children: The same in ids of children.
        embedded: How many texts went through the embedding model.
    """

    children: Changes = field(default_factory=Changes)
    embedded: int = 0


class FamilyRetriever(RagKitRetriever):
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

    other_names: ClassVar[Mapping[str, str]] = {
        "vectorstore": "index=, a DocumentIndex or its folder; or from_documents(documents)",
        "docstore": "nothing: the index holds documents and children",
        "byte_store": "nothing: the index holds documents and children",
        "search_kwargs": "fetch_k= for how many children are searched, and filter=",
        "search_type": "pipeline=",
        "child_metadata_fields": "nothing: children have the metadata of their document",
    }

    index: DocumentIndex
    pipeline: Literal["hybrid", "bm25", "dense"] = "hybrid"
    retriever: Runnable[Any, Any] | None = None
    fetch_k: int | None = None
    max_fetch_k: int = 1000
    stage: str = "parent"
    _children: Runnable[Any, Any] = PrivateAttr()
    _opened: bool = PrivateAttr(default=False)

    @field_validator("fetch_k", "max_fetch_k", mode="before")
    @classmethod
    def _count_is_allowed(cls, value: Any, info: Any) -> Any:
        return None if value is None and info.field_name == "fetch_k" else check_count(info.field_name, value)

    def model_post_init(self, context: Any, /) -> None:
        """Make the search among children."""
        super().model_post_init(context)
        self._children = self.retriever or index_retriever(self.index, self.pipeline, k=self.k)

    @abstractmethod
    def _family(self, document: Document) -> Family:
        """Cut a document."""

    @abstractmethod
    def _passages(
        self, view: FamilyView, matches: Sequence[Match], k: int, passes: Passes | None
    ) -> list[Passage]:
        """At most k passages, best first; what does not pass is left out."""

    # Searching

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
        return told(passages, stage=self.stage, name=self.get_name(), query=query, notes=notes)

    # Writing

    @classmethod
    def from_documents(
        cls,
        documents: Sequence[Document],
        *,
        index: DocumentIndex | str | PathLike[str] | None = None,
        embeddings: Embeddings | None = None,
        ids: Sequence[str] | None = None,
        **fields: Any,
    ) -> Self:
        """Write documents to an index and search it.

        Args:
            documents: The documents.
            index: An index open for writing, or its folder, made where there is none; ``None`` for one in a
                temporary folder that goes when nobody uses it any more. An index that is opened here is
                closed by ``close``.
            embeddings: The embedding model, for a folder; without one children are searched by keyword.
            ids: One id a document; else ``metadata[id_key]`` where an ``id_key`` is given, else
                ``Document.id``, else made from source and text.
            **fields: Further fields: ``k``, ``pipeline``, ``filter``...

        Raises:
            InvalidInputError: An argument is not allowed, or ids clash.
            IndexError_: The folder's index cannot be opened for writing.
        """
        opened = not isinstance(index, DocumentIndex)
        if isinstance(index, DocumentIndex):
            if embeddings is not None and index.embeddings is not embeddings:
                raise InvalidInputError("An open index has its own embedding model; leave embeddings out.")
            target = index
        else:
            target = temporary(embeddings) if index is None else open_or_create(index, embeddings)
        try:
            made = cls(index=target, **fields)
            made.upsert(documents, ids)
        except BaseException:
            if opened:
                target.close()
            raise
        made._opened = opened
        return made

    def upsert(self, documents: Sequence[Document], ids: Sequence[str] | None = None) -> FamilyReport:
        """Add documents with their children, or replace those with the same ids, in one transaction.

        Args:
            documents: The documents; they are not changed.
            ids: As for ``from_documents``.

        Returns:
            Which documents were added, updated, unchanged. Children that a document no longer has are gone.

        Raises:
            InvalidInputError: Ids that clash, or text that cannot be stored; nothing was changed.
            ModelError: The embedding model failed; nothing was changed.
            IndexError_: The index was opened for reading, or no room is left; nothing was changed.
        """
        documents = documents_of(documents)
        families = [self._family(document) for document in documents]
        return _report(self.index.upsert_families(families, self._ids(documents, ids)))

    async def aupsert(self, documents: Sequence[Document], ids: Sequence[str] | None = None) -> FamilyReport:
        """As ``upsert``, on a thread."""
        return await run_in_thread(self.upsert, documents, ids)

    def sync(
        self,
        documents: Sequence[Document],
        *,
        ids: Sequence[str] | None = None,
        scope: str | Sequence[str] | None = None,
        prune: bool = False,
    ) -> FamilyReport:
        """Make the index hold exactly these documents of their sources (``metadata["source"]``).

        Args:
            documents: All documents of each of their sources.
            ids: As for ``from_documents``.
            scope: Sources, or folders of sources, that the documents must lie in; ``None`` for anything.
            prune: Also remove the sources in the scope of which no document is given.

        Raises:
            InvalidInputError: A document has no source, or one outside the scope.
        """
        documents = documents_of(documents)
        families = [self._family(document) for document in documents]
        given = self._ids(documents, ids)
        return _report(self.index.sync_families(families, ids=given, scope=scope, prune=prune))

    def delete(self, ids: Sequence[str]) -> int:
        """Remove documents with all their children, in one transaction.

        Args:
            ids: Ids of documents; those that are not there are passed over.

        Returns:
            How many documents were removed.

        Raises:
            InvalidInputError: An id is that of a child, which cannot go alone.
        """
        return self.index.delete(ids)

    async def adelete(self, ids: Sequence[str]) -> int:
        """As ``delete``, on a thread."""
        return await run_in_thread(self.delete, ids)

    def get(self, ids: Sequence[str]) -> list[Document]:
        """Whole documents by id, in the order of the ids; those that are not there are left out."""
        return self.index.get(ids)

    def close(self) -> None:
        """Close the index if ``from_documents`` opened it."""
        if self._opened:
            self.index.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ids(self, documents: Sequence[Document], ids: Sequence[str] | None) -> Sequence[str] | None:
        if ids is not None or self.id_key is None:
            return ids
        return [document_key(document, self.id_key) for document in documents]


def _report(report: WriteReport) -> FamilyReport:
    parents = report.parents
    children = Changes(report.added, report.updated, report.unchanged, report.removed)
    return FamilyReport(
        parents.added, parents.updated, parents.unchanged, parents.removed, children, report.embedded
    )


def parents_metadata(view: FamilyView, matches: Sequence[Match]) -> Mapping[str, dict[str, Any]]:
    """Metadata of the documents that matches belong to."""
    return view.metadata(list(dict.fromkeys(match.place.parent for match in matches if match.place)))
