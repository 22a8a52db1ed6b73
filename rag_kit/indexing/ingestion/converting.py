"""One file to chunks, as of one moment."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from rag_kit.documents.identity import to_plain
from rag_kit.errors import InvalidInputError, ReadError
from rag_kit.indexing.ingestion.listing import Sight, file_hash, look
from rag_kit.indexing.ingestion.settings import SplitSettings
from rag_kit.indexing.readers.api import Reader
from rag_kit.indexing.readers.limits import ReadLimits
from rag_kit.indexing.splitting.api import iter_chunks

if TYPE_CHECKING:
    from langchain_core.documents import Document

    from rag_kit.indexing.files import SourceFile
    from rag_kit.indexing.readers.formats import UserReader

_TRIES = 3
_FILE_FIELDS = frozenset(
    "source file file_path filename file_name file_directory created created_at creationdate creation_date modified "  # noqa: SIM905
    "modified_at last_modified moddate mtime ctime atime".split()
)


class Converter:
    """Reads and splits files through one reader process.

    Args:
        settings: How to split.
        limits: Caps for reading one file.
        readers: Readers of the caller, by pattern.
    """

    def __init__(
        self,
        settings: SplitSettings,
        limits: ReadLimits | None,
        readers: Mapping[str, UserReader] | None = None,
    ) -> None:
        self._settings = settings
        self._limits = limits or ReadLimits()
        self._reader = Reader(limits=limits, readers=readers, ocr=settings.ocr)

    def close(self) -> None:
        """End the reader process."""
        self._reader.close()

    def expect(self, files: Sequence[SourceFile]) -> None:
        """Take note of the files that will be asked for; the cluster's converter begins with them."""

    def convert(self, file: SourceFile) -> tuple[list[Document], Sight, str, bytes]:
        """The chunks of a file, and what the file was then.

        Returns:
            Chunks; sight, SHA-256 and fingerprint (empty where copies are kept) of the file that they were made from.

        Raises:
            ReadError: It cannot be read, holds no text, gives more chunks than the limit, or keeps changing.
        """
        path = Path(file.path)
        for _ in range(_TRIES):
            try:
                before = look(path)
                digest = file_hash(path)
                documents = self._reader.read(path, root=file.root)
                if look(path).same_as(before):
                    break
            except OSError as error:
                raise ReadError(f"{file.file}: it cannot be read ({error.strerror or error}).") from error
        else:
            raise ReadError(
                f"{file.file}: it is being written to (it changed {_TRIES} times while it was read). "
                "Ingest it again later."
            )
        for document in documents:
            # also where a user's reader gives paths of this machine, as many of LangChain do
            document.metadata = {key: _below(value, file.root) for key, value in document.metadata.items()}
            document.metadata["source"] = file.file
        most = self._limits.max_chunks
        settings = self._settings
        keep = settings.keep_duplicates
        mark = b"" if keep else _fingerprint(documents, file.file, anywhere=keep is False)
        cut = iter_chunks(documents, settings.chunk_size, settings.chunk_overlap, settings.splitter)
        try:
            chunks = list(islice(cut, most + 1))
        except InvalidInputError as error:
            raise ReadError(f"{file.file}: {error}") from error
        if len(chunks) > most:
            raise ReadError(
                f"{file.file}: it is cut into over {most} chunks, the limit (max_chunks). "
                "Take a larger chunk_size, cut the file up, or raise the limit."
            )
        if not any(chunk.page_content.strip() for chunk in chunks):
            raise ReadError(f"{file.file}: no text found in it.")
        return chunks, before, digest, mark


def _below(value: Any, root: Path) -> Any:
    """A metadata value; of a path in the ingested folder what is below that folder.

    Example:
        >>> [_below(value, Path("/docs")) for value in ("/docs/a/b.md", "/docs", "/docsx/a", "text", 3)]
        ['a/b.md', '.', '/docsx/a', 'text', 3]
    """
    if not isinstance(value, str | Path) or not str(value).startswith(str(root)):
        return value
    path = Path(value)
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else value


def _fingerprint(documents: Sequence[Document], file: str, *, anywhere: bool) -> bytes:
    """A hash of a file's text and metadata, apart from white space and the fields of the file itself.

    Args:
        documents: The file as it was read.
        file: Its path below the folder that is ingested.
        anywhere: Whether files of different folders are copies.
    """
    # a search may be limited to a folder, in which a copy of another folder's file would be missed
    folder = "" if anywhere else file.rpartition("/")[0]
    fields = json.dumps([folder, *(_fields(document, file) for document in documents)], sort_keys=True)
    words = (word for document in documents for word in document.page_content.split())
    text = f"{fields}\0{''.join(words)}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:16]


def _fields(document: Document, file: str) -> dict[str, Any]:
    """The metadata that copies share: without the file's own fields, its path, and a title that is its name."""
    return {
        key: value
        for key, value in to_plain(document.metadata).items()
        if key not in _FILE_FIELDS
        and value != file
        and not (key == "title" and value == PurePosixPath(file).stem)
    }
