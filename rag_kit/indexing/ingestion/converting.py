"""One file to chunks, as of one moment."""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_core.documents import Document

from rag_kit.concurrency.notes import use_notes
from rag_kit.errors import InvalidInputError, ReadError
from rag_kit.indexing.document_index.writing import SourceRecord
from rag_kit.indexing.files import SourceFile
from rag_kit.indexing.ingestion.settings import SplitSettings
from rag_kit.indexing.readers.api import Reader
from rag_kit.indexing.readers.formats import UserReader, reader_for
from rag_kit.indexing.readers.limits import ReadLimits
from rag_kit.indexing.readers.parts import Unreadable, open_regular
from rag_kit.indexing.splitting.api import iter_chunks

if TYPE_CHECKING:
    from rag_kit.indexing.ingestion.pictures import Pictures

_MAX_READS = 3  # of a file that is written to while it is read
_BLANK_IN_CHINESE = re.compile(r"(?<=[\u3000-\u9fff\uff00-\uffef]) | (?=[\u3000-\u9fff\uff00-\uffef])")


def file_state(path: Path) -> tuple[int, int, int]:
    """Return size, time and inode of a file as it is now; equal if nothing was written in between."""
    stat = os.stat(path)
    return stat.st_size, stat.st_mtime_ns, stat.st_ino


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a regular file's bytes; raises `Unreadable` for anything else."""
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def as_read_errors() -> Iterator[None]:
    """Turn errors of the block into ReadError that says why; whoever reports it names the file."""
    try:
        yield
    except Unreadable as error:
        raise ReadError(error.message) from error
    except ReadError as error:  # a reader's own, which names the path
        cause = error.__cause__
        raise ReadError(cause.message if isinstance(cause, Unreadable) else str(error)) from error
    except OSError as error:
        raise ReadError(f"it cannot be read ({error.strerror or error}).") from error


class Converter:
    """Reads and splits files through one reader process, which runs while this is open."""

    def __init__(
        self,
        settings: SplitSettings,
        limits: ReadLimits | None,
        readers: Mapping[str, UserReader] | None = None,
        pictures: Pictures | None = None,
    ) -> None:
        self._settings = settings
        self._limits = limits or ReadLimits()
        self._pictures = pictures
        keep = None if pictures is None else pictures.keep
        self._reader = Reader(limits=limits, readers=readers, ocr=settings.ocr, keep=keep)

    def close(self) -> None:
        """End the reader process."""
        self._reader.close()

    def expect(self, files: Sequence[SourceFile]) -> None:
        """Do nothing: `ClusterConverter`, which has the same methods, needs to know the files ahead."""

    def convert(self, file: SourceFile) -> tuple[list[Document], SourceRecord, list[str]]:
        """Return a file's chunks, a record of it (without its ``source``), and the notes that readers wrote.

        Raises ReadError, without the file's name, for one that cannot be read, has no text or too many chunks, or
        keeps changing.
        """
        with use_notes() as notes:
            documents, record = self._read(file)
            if self._pictures is not None and not self._pictures.describe(documents):
                # a picture lacks its description; no ingest has settings "", so the next one reads the file again
                record = replace(record, settings="")
        for document in documents:
            # a user's reader may put absolute paths into metadata, as many of LangChain do
            fields = document.metadata.items()
            document.metadata = {key: _relative_to_root(value, file.root) for key, value in fields}
            document.metadata["source"] = file.file
        max_chunks = self._limits.max_chunks
        try:
            chunks = list(islice(iter_chunks(documents, self._settings.cut), max_chunks + 1))
        except InvalidInputError as error:
            raise ReadError(str(error)) from error
        if len(chunks) > max_chunks:
            raise ReadError(
                f"it is cut into over {max_chunks} chunks, the limit (max_chunks). Take a larger chunk_size, cut the "
                "file up, or raise the limit."
            )
        if not any(chunk.page_content.strip() for chunk in chunks):
            raise ReadError("no text found in it.")
        return chunks, replace(record, fingerprint=self._duplicate_key(file, documents)), notes.texts

    def _read(self, file: SourceFile) -> tuple[list[Document], SourceRecord]:
        """Read the documents of a file, again if it changes meanwhile, and make a record of it."""
        for _ in range(_MAX_READS):
            with as_read_errors():
                seen_ns, state = time.time_ns(), file_state(file.path)
                self._reader.check(file.path, file.root)  # before a file that is too large is hashed
                digest = file_hash(file.path)
                documents = self._reader.read(file.path, root=file.root)
                if file_state(file.path) == state:
                    size, mtime_ns, _ = state
                    return documents, SourceRecord("", size, mtime_ns, seen_ns, digest, self._settings.key)
        raise ReadError(f"it is being written to (it changed {_MAX_READS} times meanwhile). Ingest it later.")

    def _duplicate_key(self, file: SourceFile, documents: Sequence[Document]) -> bytes:
        """Return a hash of a file's words (and folder, if copies in others are kept); ``b""`` if it is never a copy."""
        keep = self._settings.keep_duplicates  # True: all copies, None: those in other folders, False: none
        # a user's reader may give equal files different metadata, such as a tenant by the file's name
        if keep or reader_for(Path(file.path), self._reader.readers) is not None:
            return b""
        folder = "" if keep is False else file.file.rpartition("/")[0]
        words = " ".join(document.page_content for document in documents).split()
        text = _BLANK_IN_CHINESE.sub("", " ".join(words))  # a line of Chinese may end inside a word
        return hashlib.sha256(f"{folder}\0{text}".encode("utf-8", "surrogatepass")).digest()[:16]


def _relative_to_root(value: Any, root: Path) -> Any:
    """Make a metadata value that is a path in the ingested folder relative to it.

    Example:
        >>> [_relative_to_root(value, Path("/docs")) for value in ("/docs/a/b.md", "/docs", "/docsx/a", "text", 3)]
        ['a/b.md', '.', '/docsx/a', 'text', 3]
    """
    if not isinstance(value, str | Path) or not str(value).startswith(str(root)):
        return value
    path = Path(value)
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else value
