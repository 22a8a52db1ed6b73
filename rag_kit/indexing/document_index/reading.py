"""The half of an index that reads: documents by id, search by keyword and by vector, numbers, checks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, cast

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

from rag_kit.documents import Filter
from rag_kit.errors import IndexMismatchError, InvalidInputError
from rag_kit.indexing.bm25.parameters import check_ids
from rag_kit.indexing.bm25.view import Hits, check_k
from rag_kit.indexing.document_index import verifying
from rag_kit.indexing.document_index.embedding import name_of, query_vector
from rag_kit.indexing.document_index.rows import FamilyView, read_documents
from rag_kit.indexing.document_index.state import Connection, IndexReport, IndexState, select_in
from rag_kit.indexing.document_index.store import Store
from rag_kit.indexing.document_index.token_leg import TokenLeg
from rag_kit.indexing.document_index.vectors import RankedIds, Vectors, decode_vectors
from rag_kit.indexing.document_index.views import KeywordView, PostingsView
from rag_kit.indexing.searched import REPRESENTATION, passage_filter
from rag_kit.models.clients import embed_query
from rag_kit.models.late_interaction import TokenVectors


class ReadableIndex:
    """Index opened for reading: search, get, count and verify."""

    def __init__(self, store: Store, embeddings: Embeddings | None) -> None:
        self.folder = store.location
        self.embeddings = embeddings
        self._embedding_name = name_of(embeddings) if embeddings is not None else None
        self._store = store

    def get(self, ids: Sequence[str]) -> list[Document]:
        """Return documents in the order of their ids, without those that the index lacks.

        An id may also be that of a document with children, although the method `ids` does not list these.
        """
        ids = check_ids(ids)
        distinct = list(dict.fromkeys(ids))
        with self._store.reading() as connection:
            documents = read_documents(connection, distinct)
            lacking = [key for key in distinct if key not in documents]
            documents |= read_documents(connection, lacking, "parents")
        return [documents[key] for key in ids if key in documents]

    def ids(self, source: str | None = None) -> list[str]:
        """Return the ids of all documents, or of those of one source, ordered by source and position in it."""
        with self._store.reading() as connection:
            where, values = ("", ()) if source is None else ("WHERE source = ?", (source,))
            query = f"SELECT id FROM chunks {where} ORDER BY source, ordinal, id"
            return [key for (key,) in connection.execute(query, values)]

    def passage_ids(self) -> list[str]:
        """Return the ids of the passages that retrievers return, without texts made of others, such as summaries."""
        query = "SELECT id, source, ordinal FROM chunks"  # the last two are needed to order a union
        if "represent" in self.settings:  # then searches return the documents of children
            query += " WHERE parent = '' UNION ALL SELECT id, source, ordinal FROM parents"
        # finds the name of the field that marks texts made of others, but maybe as a value: their JSON is parsed below
        marked = f"SELECT id, metadata FROM chunks WHERE instr(metadata, '\"{REPRESENTATION}\"')"
        with self._store.reading() as connection:
            candidates = connection.execute(marked)
            made_ids = {key for key, data in candidates if json.loads(data).get(REPRESENTATION) is not None}
            rows = connection.execute(f"{query} ORDER BY source, ordinal, id").fetchall()
        return [key for key, *_ in rows if key not in made_ids]

    def metadata_rows(self) -> Iterator[dict[str, Any]]:
        """Yield the metadata of all documents, read in pages."""
        query = "SELECT n, metadata FROM chunks WHERE n > ? ORDER BY n LIMIT 1000"
        last = -1  # the last row number, below all at first
        while True:
            with self._store.reading() as connection:
                page = connection.execute(query, (last,)).fetchall()
            yield from (json.loads(metadata) for _, metadata in page)
            if not page:
                return
            last = page[-1][0]

    @contextmanager
    def families(self) -> Iterator[FamilyView]:
        """Open one consistent view of documents and their children; other threads wait."""
        with self._store.reading() as connection:
            yield FamilyView(connection)

    @contextmanager
    def view(
        self, filter: Filter | None = None
    ) -> Iterator[tuple[Connection, IndexState, Callable[[int], bool] | None]]:
        """Open one committed state; yield connection, state, and a test of row numbers by the filter, if given."""
        with self._store.reading() as connection:
            state = self._store.state(connection)
            yield connection, state, self._store.passes(connection, state, filter) if filter else None

    def vectors(self, ids: Sequence[str]) -> dict[str, list[float]]:
        """Return stored vectors by id, as the model gave them (float32); damaged ones are left out."""
        return {key: row.tolist() for key, row in self.vector_rows(ids).items()}

    def vector_rows(self, ids: Sequence[str]) -> dict[str, Vectors]:
        """Return what `vectors` does as arrays."""
        ids = check_ids(ids)
        query = "SELECT c.id, v.vector FROM chunks c JOIN vectors v USING (n) WHERE c.id IN ({})"
        with self._store.reading() as connection:
            dimension = self._store.state(connection).dimension or 0
            keys, rows = decode_vectors(select_in(connection, query, ids), dimension)
        row_of = dict(zip(keys, rows, strict=True))
        return {key: row_of[key] for key in ids if key in row_of}

    def sources(self) -> list[str]:
        """Return all sources: of the documents in the index, and of files that were read and gave no document."""
        query = "SELECT source FROM chunks WHERE source != '' UNION SELECT source FROM sources ORDER BY 1"
        with self._store.reading() as connection:
            return [source for (source,) in connection.execute(query)]

    @property
    def embedding(self) -> str | None:
        """Name of the embedding model, ``None`` where there is keyword search only."""
        return self._store.state().embedding

    @property
    def replies(self) -> Path:
        """The file that keeps the replies of a chat model, for `Representer` and `build_raptor`."""
        return self._store.replies

    @property
    def settings(self) -> dict[str, Any]:
        """How files are read and split, as recorded."""
        return self._store.state().settings

    def search_keyword(self, query: str, k: int = 4, filter: Filter | None = None) -> Hits:
        """Return the k best documents by BM25.

        Args:
            query: A question or words.
            k: How many.
            filter: Only documents whose metadata pass (``rag_kit.documents``). What was made of passages, such as
                summaries (metadata ``representation``), passes only a filter that names this field.

        Returns:
            Copies and their scores, above zero, best first, ties by id; the list's attribute ``maximum`` is what no
            score for the query can exceed.

        Raises:
            FilterError: The filter is malformed.
            InvalidInputError: k is not a whole number above 0.
        """
        return self.keyword_view().search(query, k, filter)

    def keyword_view(self) -> KeywordView:
        """Return the keyword leg to read from: its terms, search with a weight for each, documents that share them."""
        return cast("KeywordView", self._store.leg_view("keyword"))

    @property
    def legs(self) -> list[str]:
        """Names of the legs beside keyword and vectors: ``"trigram"``, ``"sparse"``, ``"tokens"``."""
        return list(self._store.state().legs)

    def leg_view(self, name: Literal["trigram", "sparse"]) -> PostingsView:
        """Return the view of another leg; its ``search(query, k, filter)`` means what `search_keyword` does.

        Raises:
            InvalidInputError: The index has no such leg.
        """
        return self._store.leg_view(name)

    def token_vectors(self, texts: Sequence[str], model: str) -> dict[str, TokenVectors] | None:
        """Return the stored vectors of passages' tokens by a model: unit rows, by text.

        What is not stored is left out; ``None`` is returned by an index without the leg ``"tokens"``.
        """
        with self._store.reading() as connection:
            state = self._store.state(connection)
            legs = [leg for leg in self._store.legs(state) if isinstance(leg, TokenLeg)]
            return legs[0].tokens_of(connection, state, texts, model) if legs else None

    def search_dense(
        self, query: str | Sequence[float], k: int = 4, filter: Filter | None = None
    ) -> list[tuple[Document, float]]:
        """Return the k nearest documents by cosine similarity of their vectors.

        Args:
            query: A text, or its vector.
            k: How many.
            filter: Only documents whose metadata pass; the same meaning as for `search_keyword`.

        Returns:
            Copies and their cosines (-1 to 1), best first, ties by id.

        Raises:
            InvalidInputError: The index has no vectors, or was opened without its embedding model.
            IndexMismatchError: Its vectors have been made by another model since it was opened (`reembed`).
        """
        vector = self._vector_of(query, k)
        with self._store.reading() as connection:
            hits = self._nearest(connection, vector, k, filter)
            documents = read_documents(connection, [key for key, _ in hits])
        return [(documents[key], score) for key, score in hits if key in documents]

    def search_dense_ids(
        self, query: str | Sequence[float], k: int = 4, filter: Filter | None = None
    ) -> RankedIds:
        """Return ids and cosines of what `search_dense` finds; no text is read."""
        vector = self._vector_of(query, k)
        with self._store.reading() as connection:
            return self._nearest(connection, vector, k, filter)

    def _nearest(self, connection: Any, vector: Sequence[float], k: int, filter: Filter | None) -> RankedIds:
        """Return ids and cosines of the passages nearest to a vector in the state that a connection sees."""
        state = self._store.state(connection)
        where = passage_filter(filter, state.derived)
        unit_query = query_vector(vector, state.dimension)
        return self._store.vectors.search(connection, state, unit_query, k, where)

    def _vector_of(self, query: str | Sequence[float], k: int) -> Sequence[float]:
        """Return the vector of a query; raise an error unless the index has vectors by the model it was opened with."""
        check_k(k)
        state = self._store.state()
        if state.embedding is None:
            raise InvalidInputError(
                f"The index in {self.folder} has no vectors. Search it by keyword, or add them: "
                f"rag-kit ingest PATH --index {self.folder} --embedding-model NAME"
            )
        if isinstance(query, str) and self.embeddings is None:
            raise InvalidInputError(
                f"Dense search for a text needs the embedding model {state.embedding!r}: "
                "DocumentIndex.open(folder, embeddings=embedding_model(...))."
            )
        if self._embedding_name not in (None, state.embedding):
            raise IndexMismatchError(
                # the name alone: a hybrid retriever notes this in the documents, which leave with answers
                f"The index {self.folder.name!r} has vectors by {state.embedding!r} now; it was opened with "
                f"{self._embedding_name!r}. Open it again with {state.embedding!r}."
            )
        if not isinstance(query, str):
            return query
        assert self.embeddings is not None  # checked above
        return embed_query(self.embeddings, query)

    def verify(self) -> IndexReport:
        """Check the whole index: each row still has the content that was written.

        Reads all of it. What is not in the keyword and vector files yet (see ``flush``) is a note: searches find it.
        """
        return verifying.verify(self._store)

    def stats(self) -> dict[str, Any]:
        """Return numbers for people: sources, chunks, vectors, parents, dimension and embedding model."""
        queries = {"sources": "SELECT count(DISTINCT source) FROM chunks WHERE source != ''"}
        queries |= {table: f"SELECT count(*) FROM {table}" for table in ("chunks", "vectors", "parents")}
        with self._store.reading() as connection:
            state = self._store.state(connection)
            counts = {name: connection.execute(query).fetchone()[0] for name, query in queries.items()}
        return {**counts, "dimension": state.dimension or 0, "embedding": state.embedding or "none"}
