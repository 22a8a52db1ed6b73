"""The half of an index that writes: one transaction, then whatever is derived catches up."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from operator import attrgetter
from typing import Any, cast

from langchain_core.documents import Document

from rag_kit.errors import InvalidInputError
from rag_kit.indexing.bm25.parameters import check_ids
from rag_kit.indexing.document_index.embedding import VectorFiller, check_length, check_model, embed_ahead
from rag_kit.indexing.document_index.reading import ReadableIndex
from rag_kit.indexing.document_index.rows import Family, StoredRow, family_rows, make_rows, text_hash
from rag_kit.indexing.document_index.state import IndexState, select_in
from rag_kit.indexing.document_index.writing import (
    Batch,
    Correction,
    SourceRecord,
    WriteReport,
    apply_batch,
    vectors_by_hash,
)
from rag_kit.indexing.searched import REPRESENTATION, embedded_row

logger = logging.getLogger(__name__)


class WritableIndex(ReadableIndex):
    """Index opened for writing: add, update, delete, rebuild and compact.

    Each write is one transaction, and raises `InvalidInputError` for what cannot be stored, `ModelError` where the
    model failed, `DocumentIndexError` for an index opened for reading or a full disk; nothing is changed then.
    """

    def upsert(
        self, documents: Sequence[Document] | Sequence[Family], ids: Sequence[str] | None = None
    ) -> WriteReport:
        """Add documents, or replace those with the same ids.

        Texts that the index holds already are not embedded again. A document with the metadata field ``representation``
        counts as made of others: only a filter that names the field finds it, and the log says so.

        Args:
            documents: The documents, without provenance; or families, of which former children are removed.
            ids: One id a document; else ``Document.id``, else made from source and text: without ids, documents of two
                tenants need sources of their own, or one takes the place of the other. The log says where it did.

        Returns:
            Which ids were added, updated, unchanged; of families those of the children, the documents' in ``parents``.
        """
        report = self.write(_batch(documents, ids))
        if fields := report.replaced_fields | report.parents.replaced_fields:
            text = "documents without an id replaced those of the same source and text, whose %s differed; give ids="
            logger.warning(
                f"{text}, or sources of their own, where both are meant", ", ".join(sorted(fields))
            )
        return report

    def sync(self, documents: Sequence[Document] | Sequence[Family]) -> WriteReport:
        """Make the index hold exactly these documents of their sources.

        For every source that occurs in them (``metadata["source"]``), all its chunks are replaced by those given.

        Args:
            documents: The complete documents, or families, of each source.
        """
        batch = _batch(documents, None)
        batch.whole = {row.source for row in [*batch.rows, *batch.parents]}
        if "" in batch.whole:
            raise InvalidInputError("sync needs metadata['source'] in every document; one has none.")
        return self.write(batch)

    def delete(self, ids: Sequence[str]) -> int:
        """Remove documents by id, with their children, and return how many there were; a child's id is refused."""
        ids = check_ids(ids)
        report = self.write(Batch(removed_ids=ids))
        return len({*ids} & {*report.removed, *report.parents.removed})

    def delete_sources(self, sources: Sequence[str]) -> int:
        """Remove all documents of some sources; returns how many were removed."""
        return len(self.write(Batch(removed_sources=sources)).removed)

    def write(self, batch: Batch) -> WriteReport:
        """Embed what is new, then do a batch of changes in one transaction."""
        with closing(self.write_all([batch])) as written:
            return next(written)[1]

    def write_all(
        self, batches: Iterable[Batch], *, max_concurrency: int | None = None
    ) -> Generator[tuple[Batch, WriteReport]]:
        """Write batches in order, each in one transaction, and embed the next ones meanwhile.

        Batches are drawn when needed, on the caller's thread. Each is yielded with its report, once it is committed. An
        error does not undo the batches before it.
        """
        drawn: deque[tuple[Batch, Mapping[bytes, str]]] = deque()  # not written yet, with the texts to embed

        def draw_texts() -> Iterator[Mapping[bytes, str]]:
            """Draw batches; yield the texts of each that lack vectors, without those of earlier unwritten batches."""
            for batch in batches:
                texts = self._texts_to_embed(batch.rows)
                for _, earlier in drawn:
                    texts = {key: text for key, text in texts.items() if key not in earlier}
                drawn.append((batch, texts))
                yield texts

        embedded: Generator[Mapping[bytes, bytes]]
        if self.embeddings is None:
            embedded = ({} for _ in draw_texts())  # no vectors, but the batches are drawn
        else:
            embedded = embed_ahead(self.embeddings, draw_texts(), self._state().dimension, max_concurrency)
        with closing(embedded):
            for vectors in embedded:
                batch, _ = drawn.popleft()
                yield batch, self._write_batch(batch, vectors)

    def _texts_to_embed(self, rows: Sequence[StoredRow]) -> dict[bytes, str]:
        """Return the embedded texts of rows that have no vector in the store yet, by their hash."""
        if self.embeddings is None or not rows:
            return {}
        self.add_vectors()  # if this is the first model of the index, its chunks need vectors, too
        with self._store.reading_uncommitted() as connection:
            known = vectors_by_hash(connection, {row.hash for row in rows})
        return _texts_without_vector(rows, known)

    def _write_batch(self, batch: Batch, made: Mapping[bytes, bytes]) -> WriteReport:
        """Write a batch in one transaction; ``made`` are the vectors made for it, the store has the others."""
        with self._store.writing() as connection:
            state = self._store.state(connection)
            batch.check(batch)  # takes out what others have overtaken
            if batch.rows:  # another process may have made vectors by another model
                check_model(self.folder, state.embedding, self._embedding_name, writing=True)
            embedded, vectors = len(made), dict[bytes, bytes]()
            if batch.rows and self.embeddings is not None:
                vectors = {**vectors_by_hash(connection, {row.hash for row in batch.rows}), **made}
                if lost := _texts_without_vector(batch.rows, vectors):  # others have just removed these
                    vectors |= next(embed_ahead(self.embeddings, [lost], state.dimension))
                    embedded += len(lost)
            report = apply_batch(self._store, connection, state, batch, vectors)
            report.embedded = embedded
            if made:
                length = len(next(iter(made.values()))) // 4  # float32 has 4 bytes
                self._store.set_meta(dimension=check_length(length, state.dimension))
        return report

    def transaction(self) -> AbstractContextManager[Any]:
        """Join the writes of a ``with`` block in one transaction; an error in it undoes them all."""
        return self._store.writing()

    def add_vectors(self) -> int:
        """Give an index that was built without an embedding model its vectors; return how many texts were embedded."""
        if self.embeddings is None or self._embedding_name is None:
            raise InvalidInputError(
                "Vectors need an embedding model: DocumentIndex.open(folder, mode='w', embeddings=...)."
            )
        if self._state().embedding is not None:
            return 0
        return VectorFiller(self._store, self.embeddings, self._embedding_name).run()

    @property
    def max_source(self) -> int | None:
        """Most bytes of a source that the store takes, where there is a limit; then no text may hold NUL either."""
        return self._store.max_source

    def record_settings(self, settings: Mapping[str, Any]) -> None:
        """Record how files are read and split, as plain JSON."""
        self._store.set_meta(settings=dict(settings))

    def source_records(self, sources: Iterable[str] | None = None) -> dict[str, SourceRecord]:
        """Return the records of files, or of some of them, by source."""
        rows = self._rows_of("sources", SourceRecord.__dataclass_fields__, sources)
        return {row[0]: SourceRecord(*row) for row in rows}

    def corrections(self, sources: Iterable[str] | None = None) -> list[Correction]:
        """Return the chunks that were corrected by hand, or those of some sources."""
        rows = self._rows_of("corrections", Correction._fields, sources)
        return sorted(map(Correction._make, rows), key=attrgetter("source", "ordinal", "id"))

    def _rows_of(self, table: str, columns: Iterable[str], sources: Iterable[str] | None) -> list[Any]:
        """Return some columns of a table's rows: of all of them, or of those of some sources."""
        with self._store.reading_uncommitted() as connection:
            query = f"SELECT {', '.join(columns)} FROM {table}"
            if sources is None:
                return list(connection.execute(f"{query} ORDER BY source"))
            return list(select_in(connection, f"{query} WHERE source IN ({{}})", sources))

    def present_chunks(self, ids: Iterable[str]) -> dict[str, tuple[Correction, bool]]:
        """Return (content, has_children) by id, of chunks that are no children and of documents with children."""
        ids, chunks = list(ids), {}
        with self._store.reading() as connection:
            for table in ("chunks", "parents"):
                columns = "id, source, ordinal, text, metadata, text"  # the last as the corrected text
                query = f"SELECT {columns} FROM {table} WHERE parent = '' AND id IN ({{}})"
                for row in select_in(connection, query, ids):
                    chunks[row[0]] = (Correction(*row), table == "parents")
        return chunks

    def _state(self) -> IndexState:
        with self._store.reading_uncommitted() as connection:
            return self._store.state(connection)

    def flush(self) -> None:
        """Save what the legs have not saved yet; `close` does so.

        Raises:
            DocumentIndexError: It cannot be written; the store holds it all the same, and the next writer saves it.
        """
        self._store.flush()


def _batch(documents: Sequence[Document] | Sequence[Family], ids: Sequence[str] | None) -> Batch:
    """Make the batch that adds documents or families; warn of documents that only a filter on a field finds."""
    if isinstance(documents, Sequence) and documents and isinstance(documents[0], Family):
        parents, children = family_rows(cast("Sequence[Family]", documents), ids)
        return Batch(children, parents)
    rows = make_rows(cast("Sequence[Document]", documents), ids)
    if count := sum(f'"{REPRESENTATION}"' in row.metadata for row in rows):
        text = "%d documents have the metadata field %r: only a filter that names it finds them"
        logger.warning(text, count, REPRESENTATION)
    return Batch(rows=rows)


def _texts_without_vector(rows: Sequence[StoredRow], known: Mapping[bytes, bytes]) -> dict[bytes, str]:
    """Return the embedded texts of rows by their hash, without those whose vectors are known."""
    texts = (embedded_row(row.text, row.metadata) for row in rows)
    return {key: text for text in texts if (key := text_hash(text)) not in known}
