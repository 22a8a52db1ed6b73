"""Base of retrievers over families: documents with their children are written, and the children searched."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, Unpack

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import Runnable
from pydantic import PrivateAttr

from rag_kit.concurrency.bridge import run_in_thread
from rag_kit.documents import combine_filters, compile_filter, get_provenance
from rag_kit.documents.identity import document_key
from rag_kit.documents.provenance import peek_score
from rag_kit.errors import IndexMissingError, InvalidInputError
from rag_kit.indexing.bm25.parameters import documents_of
from rag_kit.indexing.document_index.index import DocumentIndex
from rag_kit.indexing.document_index.rows import PARENT_KEY, ChildPlace, Family, FamilyView, offset_in_source
from rag_kit.indexing.document_index.store import RemoteLocation
from rag_kit.indexing.document_index.writing import Changes
from rag_kit.retrieval.base import RagKitRetriever, blocking_step
from rag_kit.retrieval.call import Call
from rag_kit.retrieval.fields import Count, OptionalCount
from rag_kit.retrieval.indexed import rows_retriever
from rag_kit.retrieval.inside import own_filter
from rag_kit.retrieval.settings import FamilySettings

_FETCH_GROWTH = 4  # times as many children in the next round
Passes = Callable[[dict[str, Any]], bool]  # tells whether metadata pass the filters of a call


@dataclass(frozen=True)
class Match:
    """A child that was found."""

    document: Document
    rank: int  # from 1
    score: float  # 1 / rank if the search gave none
    place: ChildPlace | None  # in its parent; None for a document that is no child

    def as_dict(self) -> dict[str, Any]:
        """Return the match as the provenance shows it."""
        start, end = (self.place.start, self.place.end) if self.place else (None, None)
        return {"id": self.document.id, "rank": self.rank, "score": self.score, "start": start, "end": end}


@dataclass
class Passage:
    """A passage to return, with its matches, best first; ``extra`` goes into its provenance."""

    matches: list[Match]
    score: float
    document: Document
    extra: dict[str, Any] = field(default_factory=dict)


def place_matches(view: FamilyView, documents: Sequence[Document]) -> list[Match]:
    """Make one match for each document; children that were removed from the index meanwhile are left out."""
    ids = list(dict.fromkeys(doc.id for doc in documents if doc.id))
    places = view.places(ids)
    without_place = [key for key in ids if key not in places]
    stored_ids = view.rows(without_place) if without_place else set()
    matches: dict[Any, Match] = {}  # by id; a document without an id is no repeat, and stands under its rank
    for rank, doc in enumerate(documents, start=1):
        place = places.get(doc.id) if doc.id else None
        is_child = PARENT_KEY in doc.metadata
        if place is None and is_child and doc.id not in stored_ids:  # it was removed
            continue
        score = peek_score(doc)
        match = Match(doc, rank, 1 / rank if score is None else float(score), place)
        matches.setdefault(doc.id or rank, match)
    return list(matches.values())


def span_of(parent: Document, start: int, end: int, heading: str | None = None) -> Document:
    """Make a document of a span of a parent, with the parent's metadata and the span's offsets in the source."""
    parent_start = offset_in_source(parent.metadata, len(parent.page_content))
    offsets = {"start": parent_start + start, "end": parent_start + end}
    metadata = {**parent.metadata, **offsets, PARENT_KEY: parent.id}
    if heading:
        metadata["heading"] = heading
    return Document(parent.page_content[start:end], id=f"{parent.id}#{start}-{end}", metadata=metadata)


class FamilyWriter(RagKitRetriever):
    """A retriever over one index that writes the documents which it searches by their children."""

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
    fetch_k: OptionalCount = None
    _row_retriever: Runnable[Any, Any] = PrivateAttr()  # searches documents and children alike
    _opened_here: bool = PrivateAttr(default=False)

    def model_post_init(self, context: Any, /) -> None:
        """Take the retriever over the index that was given, else make one for ``pipeline``."""
        super().model_post_init(context)
        self._row_retriever = self.retriever or rows_retriever(self.index, self.pipeline, k=self.k)

    def inner_retrievers(self) -> Sequence[Any]:
        """Return the retriever over the rows of the index."""
        return [self._row_retriever]

    @abstractmethod
    def _families(self, documents: Sequence[Document]) -> list[Family]:
        """Return the documents with their children."""

    @classmethod
    def from_documents(
        cls,
        documents: Sequence[Document],
        *,
        index: DocumentIndex | str | PathLike[str] | None = None,
        embeddings: Embeddings | None = None,
        ids: Sequence[str] | None = None,
        **fields: Unpack[FamilySettings],
    ) -> Self:
        """Write documents to an index and search it.

        Args:
            documents: The documents.
            index: An index open for writing, or its folder, made where there is none; ``None`` for one in a temporary
                folder that goes when nobody uses it any more. An index that is opened here is closed by ``close``.
            embeddings: The embedding model, for a folder; without one children are searched by keyword.
            ids: One id a document; else ``metadata[id_key]``, ``Document.id``, or made from source and text.
            **fields: Further fields: ``k``, ``pipeline``, ``filter``...

        Raises:
            InvalidInputError: An argument is not allowed, or ids clash.
            DocumentIndexError: The folder's index cannot be opened for writing.
        """
        opened_here = not isinstance(index, DocumentIndex)
        if isinstance(index, DocumentIndex):
            if embeddings is not None and index.embeddings is not embeddings:
                raise InvalidInputError("An open index has its own embedding model; leave embeddings out.")
            target = index
        else:
            target = _temporary(embeddings) if index is None else _open_or_create(index, embeddings)
        try:
            options: Any = fields  # Any, for not all keys are fields of each class
            retriever = cls(index=target, **options)
            retriever.upsert(documents, ids)
        except BaseException:
            if opened_here:
                target.close()
            raise
        retriever._opened_here = opened_here
        return retriever

    def upsert(self, documents: Sequence[Document], ids: Sequence[str] | None = None) -> Changes:
        """Add documents with their children, or replace those with the same ids, in one transaction.

        Returns:
            Ids of documents that were added, updated, unchanged. Children that a document no longer has are gone.

        Raises:
            InvalidInputError: Ids that clash, or text that cannot be stored; nothing was changed.
            ModelError: The embedding model failed; nothing was changed.
            DocumentIndexError: The index was opened for reading, or no room is left; nothing was changed.
        """
        documents = documents_of(documents)
        if ids is None and self.id_key is not None:
            ids = [document_key(document, self.id_key) for document in documents]
        return self.index.upsert(self._families(documents), ids).parents

    async def aupsert(self, documents: Sequence[Document], ids: Sequence[str] | None = None) -> Changes:
        """Write documents with their children on a thread; see ``upsert``."""
        return await run_in_thread(self.upsert, documents, ids)

    def delete(self, ids: Sequence[str]) -> int:
        """Remove documents with all their children, in one transaction; ids that are not there are passed over."""
        return self.index.delete(ids)

    async def adelete(self, ids: Sequence[str]) -> int:
        """Remove documents with their children on a thread; see ``delete``."""
        return await run_in_thread(self.delete, ids)

    def close(self) -> None:
        """Close the index if ``from_documents`` opened it."""
        if self._opened_here:
            self.index.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class FamilyRetriever(FamilyWriter):
    """A retriever that searches parts of documents and returns larger spans; see ``ParentDocumentRetriever``."""

    max_fetch_k: Count = 1000
    stage: str = "parent"

    @abstractmethod
    def _passages(
        self, view: FamilyView, matches: Sequence[Match], k: int, passes: Passes | None
    ) -> list[Passage]:
        """Return at most k passages, best first; passages that do not pass are left out."""

    async def _search(self, query: str, call: Call) -> list[Document]:
        """Search children, more in each round, until they give ``k`` passages or there are no more children."""
        max_fetch = max(call.k, self.max_fetch_k)
        fetch = max(call.k, self.fetch_k or max(20, 5 * call.k))
        while True:
            fetch = min(fetch, max_fetch)
            children = await call.search(self._row_retriever, query, fetch)
            may_be_more = len(children) >= fetch
            is_cut = may_be_more and fetch == max_fetch
            results = await blocking_step("parents", self._results, call, children, is_cut)
            if len(results) >= call.k or is_cut or not may_be_more:
                return results
            fetch *= _FETCH_GROWTH

    def _results(self, call: Call, children: list[Document], is_cut: bool) -> list[Document]:
        """Return the passages around the children; note if they are too few because ``max_fetch_k`` cut the search."""
        where = combine_filters(call.filter, own_filter(self._row_retriever, call.config))
        passes = compile_filter(where) if where else None
        with self.index.families() as view:
            passages = self._passages(view, place_matches(view, children), call.k, passes)
        if is_cut and len(passages) < call.k:
            call.note(
                f"degraded: {len(passages)} of {call.k} passages in the first {len(children)} children; raise "
                "max_fetch_k to look deeper"
            )
        return [self._result(passage, rank, call) for rank, passage in enumerate(passages, start=1)]

    def _result(self, passage: Passage, rank: int, call: Call) -> Document:
        """Return the document of a passage; its provenance has its best child's stages and all matched children."""
        inner_notes: list[str] = []
        for match in passage.matches:
            inner_notes += get_provenance(match.document).get("notes", [])
        return call.with_stage(
            passage.document,
            self.stage,
            rank,
            passage.score,
            sources=get_provenance(passage.matches[0].document).get("stages", []),
            notes=[*inner_notes, *call.notes],
            children=[match.as_dict() for match in passage.matches],
            **passage.extra,
        )


def parents_metadata(view: FamilyView, matches: Sequence[Match]) -> Mapping[str, dict[str, Any]]:
    """Read the metadata of the documents that matches belong to."""
    return view.metadata(list(dict.fromkeys(match.place.parent for match in matches if match.place)))


def _open_or_create(folder: Any, embeddings: Embeddings | None) -> DocumentIndex:
    """Open the index in a folder or database for writing; make it if there is none."""
    if not isinstance(folder, (str, PathLike, RemoteLocation)):
        raise InvalidInputError(f"index must be a DocumentIndex or a folder, not {type(folder).__name__}.")
    try:
        return DocumentIndex.open(folder, embeddings=embeddings, mode="w")
    except IndexMissingError:
        return DocumentIndex.create(folder, embeddings=embeddings)


def _temporary(embeddings: Embeddings | None) -> DocumentIndex:
    """Make an index in a temporary folder; the folder is deleted when nothing refers to the index any more."""
    folder = Path(tempfile.mkdtemp(prefix="rag-kit-"))
    index = DocumentIndex.create(folder / "index", embeddings=embeddings)
    weakref.finalize(index, _close_and_remove, index._store, folder)
    return index


def _close_and_remove(store: Any, folder: Path) -> None:
    store.close()
    shutil.rmtree(folder, ignore_errors=True)
