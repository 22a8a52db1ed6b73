"""Documents with their children, written to the index of a retriever."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import Runnable
from pydantic import PrivateAttr

from rag_kit.concurrency.bridge import run_in_thread
from rag_kit.documents.identity import document_key
from rag_kit.errors import IndexMissingError, InvalidInputError
from rag_kit.indexing.bm25.parameters import documents_of
from rag_kit.indexing.document_index.index import DocumentIndex
from rag_kit.indexing.document_index.rows import Family
from rag_kit.indexing.document_index.store import RemoteLocation
from rag_kit.indexing.document_index.writing import Changes
from rag_kit.retrieval.base import RagKitRetriever
from rag_kit.retrieval.fields import OptionalCount
from rag_kit.retrieval.indexed import rows_retriever


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
    _rows: Runnable[Any, Any] = PrivateAttr()
    _opened: bool = PrivateAttr(default=False)

    def model_post_init(self, context: Any, /) -> None:
        """Make the search among the rows of the index."""
        super().model_post_init(context)
        self._rows = self.retriever or rows_retriever(self.index, self.pipeline, k=self.k)

    def inner_retrievers(self) -> Sequence[Any]:
        """The one that searches the rows."""
        return [self._rows]

    @abstractmethod
    def _families(self, documents: Sequence[Document]) -> list[Family]:
        """Documents with their children."""

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
            index: An index open for writing, or its folder, made where there is none; ``None`` for one in a temporary
                folder that goes when nobody uses it any more. An index that is opened here is closed by ``close``.
            embeddings: The embedding model, for a folder; without one children are searched by keyword.
            ids: One id a document; else ``metadata[id_key]``, ``Document.id``, or made from source and text.
            **fields: Further fields: ``k``, ``pipeline``, ``filter``...

        Raises:
            InvalidInputError: An argument is not allowed, or ids clash.
            DocumentIndexError: The folder's index cannot be opened for writing.
        """
        opened = not isinstance(index, DocumentIndex)
        if isinstance(index, DocumentIndex):
            if embeddings is not None and index.embeddings is not embeddings:
                raise InvalidInputError("An open index has its own embedding model; leave embeddings out.")
            target = index
        else:
            target = _temporary(embeddings) if index is None else _open_or_create(index, embeddings)
        try:
            retriever = cls(index=target, **fields)
            retriever.upsert(documents, ids)
        except BaseException:
            if opened:
                target.close()
            raise
        retriever._opened = opened
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
        """As ``upsert``, on a thread."""
        return await run_in_thread(self.upsert, documents, ids)

    def delete(self, ids: Sequence[str]) -> int:
        """Remove documents with all their children, in one transaction; ids that are not there are passed over."""
        return self.index.delete(ids)

    async def adelete(self, ids: Sequence[str]) -> int:
        """As ``delete``, on a thread."""
        return await run_in_thread(self.delete, ids)

    def close(self) -> None:
        """Close the index if ``from_documents`` opened it."""
        if self._opened:
            self.index.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _open_or_create(folder: Any, embeddings: Embeddings | None) -> DocumentIndex:
    """The index in a folder or database, open for writing; made where there is none."""
    if not isinstance(folder, (str, PathLike, RemoteLocation)):
        raise InvalidInputError(f"index must be a DocumentIndex or a folder, not {type(folder).__name__}.")
    try:
        return DocumentIndex.open(folder, embeddings=embeddings, mode="w")
    except IndexMissingError:
        return DocumentIndex.create(folder, embeddings=embeddings)


def _temporary(embeddings: Embeddings | None) -> DocumentIndex:
    """An index in a temporary folder, which is removed with the last reference to it."""
    folder = Path(tempfile.mkdtemp(prefix="rag-kit-"))
    index = DocumentIndex.create(folder / "index", embeddings=embeddings)
    weakref.finalize(index, _remove, index._store, folder)
    return index


def _remove(store: Any, folder: Path) -> None:
    store.close()
    shutil.rmtree(folder, ignore_errors=True)
