"""`DocumentIndex`: documents in a folder or in PostgreSQL, found by keyword and by vector."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from langchain_core.embeddings import Embeddings

from rag_kit.errors import InvalidInputError
from rag_kit.indexing.document_index.embedding import VectorFiller, name_of
from rag_kit.indexing.document_index.folder_store import FolderStore
from rag_kit.indexing.document_index.state import IndexReport
from rag_kit.indexing.document_index.store import Access, RemoteLocation, Store
from rag_kit.indexing.document_index.vector_store_leg import ConnectedVectorStore, MakeStore
from rag_kit.indexing.document_index.verifying import rebuild
from rag_kit.indexing.document_index.writable import WritableIndex
from rag_kit.indexing.files import as_path
from rag_kit.indexing.sparse.index import SparseEncoder
from rag_kit.models.late_interaction import LateInteraction

Leg = Literal["trigram", "sparse", "tokens"]
Place: TypeAlias = str | PathLike[str] | RemoteLocation
logger = logging.getLogger(__name__)

# Found anywhere, as in quotes: taken for a folder, it would be made under a name that shows its password.
_SETTING = r"\b(host|user|dbname)\s*=.*\s\w+\s*="  # libpq's other form: "host=db user=ann"
_LIKE_URL = re.compile(rf"\w://|(?<![a-z])postgres(ql)?:|:\S+@[\w.-]+:\d|password\s*=|{_SETTING}", re.I)
_POSTGRES = "rag_kit.indexing.postgres"  # imported when a URL is given


class DocumentIndex(WritableIndex, AbstractContextManager["DocumentIndex"]):
    """Documents in a folder or in PostgreSQL, with a keyword index and, given an embedding model, vectors.

    One SQLite file holds the truth: text, metadata, vectors. Every write is one transaction in it; the files of the
    keyword index and of the vectors are derived from it and catch up, whatever was killed when. So a crash leaves the
    old or the new state, and no search shows half of a write. Any number of processes may search while one writes; a
    second writer is refused. Pickled or copied, an index is opened again where that is done, for reading.

    In place of the folder, ``postgresql://USER@HOST/DATABASE?index=NAME&tenant=NAME`` names a schema (default
    ``rag_kit``) of a database, and whose rows in it (extra ``postgres``). There any number of processes may write, too:
    each write waits ``wait`` seconds for its turn, by default 300. A password belongs into ``PGPASSWORD`` or
    ``~/.pgpass``; one in the URL is not pickled.

    Metadata come back as JSON can say it: dates as ISO strings, tuples and sets as lists, not-a-number as ``None``. A
    document without an id gets one from ``metadata["source"]`` and its text: writing it again changes nothing.

    Make one with `create` or `open`; use it as a context manager, or call `close`.

    Example:
        >>> import tempfile
        >>> from langchain_core.documents import Document
        >>> folder = tempfile.mkdtemp()
        >>> with DocumentIndex.create(folder) as index:
        ...     report = index.upsert([Document("The pump starts at 40 degrees.", id="pump")])
        >>> report.added
        ['pump']
        >>> with DocumentIndex.open(folder) as index:
        ...     [(document.id, score > 0) for document, score in index.search_keyword("when does it start?")]
        [('pump', True)]
    """

    def __init__(self, store: Store, embeddings: Embeddings | None, access: Access) -> None:
        """Not for callers: use `create` or `open`."""
        super().__init__(store, embeddings)
        self._access, self._check, self._closed = access, access.check, False

    @classmethod
    def create(
        cls,
        folder: Place,
        *,
        embeddings: Embeddings | None = None,
        settings: Mapping[str, Any] | None = None,
        wait: float = 0.0,
        vector_store: MakeStore | None = None,
        legs: Sequence[Leg] = (),
        sparse_encoder: SparseEncoder | None = None,
        token_model: LateInteraction | None = None,
    ) -> DocumentIndex:
        """Make an index and open it for writing.

        Args:
            folder: A new or empty folder, made with access for its owner only; or a URL.
            embeddings: Embedding model; without one there is keyword search only, until `add_vectors`.
            settings: How files are read and split, as plain JSON; recorded for `ingest`.
            wait: Seconds to wait for another writer.
            vector_store: Makes a LangChain vector store that can delete by id, given an embedding model; the vectors
                are then searched there: ``lambda embeddings: Chroma("manual", embeddings, host="db")``. Pass it
                again to `open`. If the index must be pickled, define it by ``def`` in a module, not as a lambda.
            legs: What is searched beside words and vectors: ``"trigram"`` (`TrigramRetriever`), and in a folder
                ``"sparse"`` (`SparseRetriever`). ``index_retriever(index, "trigram")`` searches it. In a folder also
                ``"tokens"``: the vectors of tokens that ``index_retriever(index, reranker="colbert-small")`` compares.
            sparse_encoder: Makes the sparse vectors, for ``"sparse"``; pass it again to `open`.
            token_model: Makes the vectors of tokens, in the place of ``"colbert-small"``; pass it again to write.

        Raises:
            InvalidInputError: There is an index already, the folder holds other files, or a leg is not allowed.
            LockedError: Another writer holds the folder.
            DocumentIndexError: The vector store cannot be reached.
        """
        store_class, location = _store_of(folder)
        access = _access(embeddings, vector_store, legs or (), sparse_encoder, token_model, wait=wait)
        return cls(store_class.create(location, access, settings or {}), embeddings, access)

    @classmethod
    def open(
        cls,
        folder: Place,
        *,
        embeddings: Embeddings | None = None,
        mode: Literal["r", "w"] = "r",
        wait: float = 0.0,
        check: bool = True,
        vector_store: MakeStore | None = None,
        legs: Sequence[Leg] | None = None,
        sparse_encoder: SparseEncoder | None = None,
        token_model: LateInteraction | None = None,
    ) -> DocumentIndex:
        """Open an index.

        Args:
            folder: Its folder or URL.
            embeddings: The model it was built with, to search by a text's vector, and to write if it has vectors.
            mode: ``"r"`` to search, ``"w"`` to write as well (one at a time).
            wait: Seconds to wait for another writer.
            check: Refuse a damaged keyword file; ``False`` opens it, for writing without a model too, to `repair`.
            vector_store: As for `create`. Without it an index that has one is searched by keyword alone, and what is
                written waits for the next writer that has it. A writer may give one to an index that has none.
            legs: For a writer, the legs that the index is to have from now on, as for `create`; ``None`` for those
                that it has.
            sparse_encoder: As for `create`. Without it the leg is not searched, and waits as a vector store does.
            token_model: As for `create`, for a writer. Without it, what is written waits as for a vector store.

        Raises:
            IndexMissingError: There is no index.
            IndexFormatError: It is damaged, or of a newer format.
            IndexMismatchError: It was built with another embedding model.
            LockedError: Another writer holds it.
        """
        if mode not in ("r", "w"):
            raise InvalidInputError(f"mode must be 'r' or 'w', not {mode!r}.")
        if legs is not None and mode == "r":
            raise InvalidInputError(
                "legs are set by a writer: DocumentIndex.open(folder, mode='w', legs=...)."
            )
        store_class, location = _store_of(folder)
        options: Any = {"wait": wait, "writable": mode == "w", "check": check}
        access = _access(embeddings, vector_store, legs, sparse_encoder, token_model, **options)
        return cls(store_class.open(location, access), embeddings, access)

    @staticmethod
    def recorded_embedding(folder: Place) -> str | None:
        """Return the name of the embedding model that an index was built with, ``None`` for keyword search only."""
        with DocumentIndex.open(folder, check=False) as index:
            return index.embedding

    def repair(self) -> IndexReport:
        """Rebuild what is derived from the store if `verify` finds a problem, and fill in missing vectors.

        Vectors are taken from the store; only those that are damaged are embedded again, for which the index must have
        been opened with its model. Files of which a stored chunk is damaged are read again by the next `ingest`.

        Returns:
            What was done, and what is still wrong.
        """
        report = self.verify()
        if report.ok:
            report.notes.append("nothing needed repair")
        else:
            repaired = rebuild(self._store, self.embeddings)
            report = self.verify()
            report.repaired = repaired
        self._check = True  # also after ``check=False``, `close` saves the search indexes now
        return report

    def reembed(
        self,
        embeddings: Embeddings,
        progress: Callable[[int, int], None] | None = None,
        *,
        max_concurrency: int | None = None,
    ) -> int:
        """Give all documents vectors by another model.

        The old vectors serve every search until one transaction puts the new ones in their place; what was done
        before a kill or an error, the next call uses. An index opened with ``check=False`` needs no old model.

        Args:
            embeddings: The new model, which the index is then open with. Other processes open it again with it.
            progress: Called with how many of how many documents are done.
            max_concurrency: Most requests to an endpoint at a time; default 4.

        Returns:
            How many texts were embedded; 0 where all vectors are by this model already.

        Raises:
            ModelError: The model failed; the old vectors stay.
            DocumentIndexError: Opened for reading, or no room is left; the old vectors stay.

        Example:
            >>> import tempfile
            >>> from langchain_core.documents import Document
            >>> from langchain_core.embeddings import DeterministicFakeEmbedding
            >>> folder, old, new = tempfile.mkdtemp(), *(DeterministicFakeEmbedding(size=n) for n in (8, 16))
            >>> with DocumentIndex.create(folder, embeddings=old) as index:
            ...     _ = index.upsert([Document("The pump starts at 40 degrees.", id="pump")])
            ...     index.reembed(new), index.stats()["dimension"]
            (1, 16)
        """
        name = name_of(embeddings)
        embedded = VectorFiller(self._store, embeddings, name, max_concurrency).run(progress)
        self.embeddings, self._embedding_name = embeddings, name
        self._check = True  # also after ``check=False``, `close` saves the search indexes now
        self.flush()
        return embedded

    def close(self) -> None:
        """Save the search indexes, fold the log into the store, and close it; then the folder can be copied."""
        self._close(flush=True)

    def discard(self) -> None:
        """Close without saving the search indexes; the next writer saves them."""
        self._close(flush=False)

    def _close(self, *, flush: bool) -> None:
        """Close the store, once; with ``flush``, save the search indexes before, unless ``check=False`` was given."""
        if self._closed:
            return
        self._closed = True
        try:
            if flush and self._store.writable and self._check:
                self.flush()
        finally:
            self._store.close()

    def __exit__(self, error_class: type[BaseException] | None, *_: object) -> None:
        # on Ctrl-C (no Exception) close at once, without saving: the next writer does that
        flush = error_class is None or issubclass(error_class, Exception)
        try:
            self._close(flush=flush)
        except Exception as closing_error:
            if error_class is None:
                raise  # else the block's own error goes on
            logger.warning("After an error, the index could not be brought up to date: %s", closing_error)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what pickle stores: how the index is opened again, for reading."""
        folder = self.folder.resolve() if isinstance(self.folder, Path) else self.folder
        connected = self._access.connected
        make = None if connected is None else connected.make
        options: Any = {"vector_store": make, "sparse_encoder": self._access.encoder}
        return partial(DocumentIndex.open, embeddings=self.embeddings, **options), (str(folder),)

    def __repr__(self) -> str:
        mode = "w" if self._store.writable else "r"
        return f"DocumentIndex({str(self.folder)!r}, {'closed' if self._closed else mode})"


def location_of(place: Place) -> Path | RemoteLocation:
    """Return the path of a folder, or the location that a URL names; raise InvalidInputError for anything else."""
    if isinstance(place, RemoteLocation):
        return place
    if _LIKE_URL.search(str(place)):
        location: RemoteLocation = import_module(f"{_POSTGRES}.location").location_of(str(place))
        return location
    return as_path(place, "folder")


def _store_of(place: Place) -> tuple[type[Store], Path | RemoteLocation]:
    """Return the class of the store at a place, and its location."""
    location = location_of(place)
    if isinstance(location, Path):
        return FolderStore, location
    return import_module(f"{_POSTGRES}.store").PostgresStore, location


def _check_legs(legs: Any, encoder: Any, model: Any) -> list[str] | None:
    """Return the legs, each once; raise InvalidInputError for unknown ones, a missing encoder or a model of no use."""
    names = get_args(Leg)
    if legs is not None and not (isinstance(legs, list | tuple | set) and all(leg in names for leg in legs)):
        raise InvalidInputError(f"legs={legs!r} is not allowed; give a list of {str(names)[1:-1]}, or [].")
    if model is not None and not (isinstance(model, LateInteraction) and (legs is None or "tokens" in legs)):
        raise InvalidInputError(f"token_model={model!r:.60} is no LateInteraction, or legs lack 'tokens'.")
    if legs is None:
        return None
    has_encoder = encoder is not None
    if (has_encoder and not callable(encoder)) or ("sparse" in legs) != has_encoder:
        raise InvalidInputError(
            "The sparse leg and its encoder go together: legs=['sparse'], sparse_encoder=a function from a list of "
            "texts to one dict of term -> weight for each."
        )
    return list(dict.fromkeys(legs))


def _access(
    embeddings: Embeddings | None, make: MakeStore | None, legs: Any, encoder: Any, model: Any, **options: Any
) -> Access:
    name = None if embeddings is None else name_of(embeddings)
    connected = None if make is None else ConnectedVectorStore(make, embeddings)
    checked = _check_legs(legs, encoder, model)
    return Access(name, connected, legs=checked, encoder=encoder, token_model=model, **options)
