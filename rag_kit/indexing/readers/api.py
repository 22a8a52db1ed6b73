"""`read`: one file to documents; `Reader`: many files with one reader process."""

from __future__ import annotations

import atexit
import json
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from langchain_core.documents import Document

from rag_kit.documents import clean_text
from rag_kit.errors import InvalidInputError, ReadError
from rag_kit.indexing.files import as_path, printable_path
from rag_kit.indexing.readers import formats
from rag_kit.indexing.readers.formats import UserReader
from rag_kit.indexing.readers.limits import ReadLimits
from rag_kit.indexing.readers.ocr import ocr_wanted
from rag_kit.indexing.readers.parts import Context, Part, Unreadable, open_regular
from rag_kit.indexing.readers.process import ReaderProcess

_OCR_SECONDS = 1800.0  # a page takes some
_FILES_PER_PROCESS = 200  # then a new one: what a library leaks stays bounded


class Reader(AbstractContextManager["Reader"]):
    """Reads files through one reader process, which is started when first needed and replaced when it dies.

    Safe to use from several threads; files are converted one at a time. Take several readers to read in parallel.

    Args:
        limits: Caps for each file.
        readers: Readers of this object by pattern, as for `register_reader`.
        ocr: Recognise text in pictures and on pages without text, as for `read`.
        keep: Takes the bytes of each picture in a document and gives the name that ``metadata["picture"]`` is to have;
            the documents then have a document for each. Needs the extra ``ocr``.

    Example:
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp(), "lake.md")
        >>> _ = path.write_text("# The lake\\n\\nIt is deep.")
        >>> with Reader() as reader:
        ...     [(document.metadata["title"], document.metadata["file"]) for document in reader.read(path)]
        [('The lake', 'lake.md')]
    """

    def __init__(
        self,
        *,
        limits: ReadLimits | None = None,
        readers: Mapping[str, UserReader] | None = None,
        ocr: bool | str | None = None,
        keep: Callable[[bytes], str] | None = None,
    ) -> None:
        self.limits = limits
        self.ocr = ocr_wanted(ocr)
        if keep is not None:
            ocr_wanted(True)  # raises where its extra is missing
        self.keep = keep
        given = (readers or {}).items()
        self.readers = {formats.check_pattern(pattern, reader): reader for pattern, reader in given}
        self._process: ReaderProcess | None = None
        self._lock = threading.Lock()
        self._closed = False

    def __exit__(self, *error: object) -> None:
        self.close()

    def __del__(self) -> None:
        if (process := getattr(self, "_process", None)) is not None:
            process.kill()

    def close(self) -> None:
        """End the reader process, also while another thread waits for it; the reader cannot be used afterwards."""
        self._closed = True
        if (process := self._process) is not None:
            process.stop()  # a thread that waits for it gets an error, and gives the lock back
        with self._lock:
            if self._process is not None:
                self._process.kill()

    def read(
        self,
        path: str | Path,
        *,
        limits: ReadLimits | None = None,
        root: str | Path | None = None,
        ocr: bool | str | None = None,
    ) -> list[Document]:
        """Read the documents of one file; arguments as in `read`, defaults from the constructor."""
        ocr = self.ocr if ocr is None else ocr_wanted(ocr)
        limits = limits or self.limits or self._default_limits(ocr)
        base = None if root is None else Path(root)
        path = as_path(path, "path")
        with _as_read_error(path):
            real = _resolved(path, base)
            user_reader, format_name = self._reader_of(path, real, limits.max_bytes, ocr)
            if user_reader:
                documents = formats.user_documents(user_reader, real)
            else:
                context = Context(limits, ocr, self.keep is not None, str(real.parent))
                parts = self._convert(real, format_name, context)
                documents = [Document(part.text, metadata=part.metadata) for part in parts]
        return _with_source(documents, path, real, base, format_name)

    def _default_limits(self, ocr: bool) -> ReadLimits:
        return ReadLimits(max_seconds=_OCR_SECONDS) if ocr or self.keep else ReadLimits()

    def check(self, path: Path, root: Path) -> None:
        """Raise ReadError for a file that `read` would refuse by its folder, suffix, kind or size; nothing is read."""
        with _as_read_error(path):
            self._reader_of(path, _resolved(path, root), (self.limits or ReadLimits()).max_bytes, self.ocr)

    def _reader_of(self, path: Path, real: Path, max_bytes: int, ocr: bool) -> tuple[UserReader | None, str]:
        """Return a user's reader for a file, or None, and its format; raises `Unreadable` if it cannot be read."""
        user_reader = formats.reader_for(path, self.readers)
        if user_reader is None:
            format_name = formats.format_of(path, ocr=ocr)
            open_regular(real, max_bytes).close()
            return None, format_name
        if real.exists():  # a user's reader may know names that are no files
            open_regular(real).close()
        return user_reader, path.suffix.lower().lstrip(".")

    def locate(self, quote: str, path: Path, page: int, *, ocr: bool, root: Path | None) -> Any:
        """Return the page and boxes of a quote in a PDF, None if it lacks it; ``page`` 0 searches all pages."""
        limits = self.limits or self._default_limits(ocr)
        with _as_read_error(path):
            real = _resolved(path, root)
            open_regular(real, limits.max_bytes).close()
            [answer] = self._convert(real, "pdf", Context(limits, ocr, quote=quote, page=page))
        return json.loads(answer.text)

    def _convert(self, path: Path, format_name: str, context: Context) -> list[Part]:
        """Convert a file in the reader process, or in a new one if that has ended, read enough, or has other limits."""
        with self._lock:
            if self._closed:
                raise InvalidInputError("This Reader is closed; make a new one.")
            process = self._process
            if process is not None:
                is_usable = process.alive and process.max_memory == context.limits.max_memory
                if not is_usable or process.files >= _FILES_PER_PROCESS:
                    process.kill()
                    process = None
            if process is None:
                process = self._process = ReaderProcess(context.limits)
            return process.convert(str(path), format_name, context, self.keep)


@contextmanager
def _as_read_error(path: Path) -> Iterator[None]:
    """Turn `Unreadable` in the block into the public ReadError, which says the path."""
    try:
        yield
    except Unreadable as error:
        raise ReadError(f"{clean_text(printable_path(str(path)))}: {error.message}") from error


@cache
def shared_reader() -> Reader:
    """Return the reader that all calls of `read` share; a forked process makes one of its own."""
    reader = Reader()
    atexit.register(reader.close)
    return reader


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=shared_reader.cache_clear)


def read(
    path: str | Path,
    *,
    limits: ReadLimits | None = None,
    root: str | Path | None = None,
    ocr: bool | str | None = None,
) -> list[Document]:
    """Read a local file into documents: one for each page, slide, table, chapter or record, else one in all.

    The conversion runs in a separate process without network, under the caps of ``limits``; that process is kept
    for the next call and ends with this one. To end it earlier, or to read with other settings, use `Reader`.

    Args:
        path: A file. Addresses (``https://...``) are not opened.
        limits: Caps; the defaults suit a laptop.
        root: Folder that the file may not lie outside of, links resolved; default: the file's own folder.
        ocr: Recognise text in pictures and on PDF pages without text (extra ``ocr``): ``True``, or the languages
            (``"eng+chi_sim"``), which are then checked to be among those that its one model reads. That takes some
            seconds a page, so ``max_seconds`` is then 1800 by default.

    Returns:
        Documents in markdown, their metadata plain: ``source`` (``path``; with ``root``, as ``file``), ``file``
        (relative to ``root``), ``format``, ``mime``, ``title``; if they apply ``page`` (or slide, from 1), ``pages``,
        ``sheet``, ``chapter``, ``record``, ``row_start``, ``row_end``, ``heading``, ``ocr`` (true for text by OCR).

    What was left out or guessed (a broken chart, an encoding) is written as notes: ``use_notes`` of
    ``rag_kit.concurrency.notes`` collects them, and the report of `ingest` has them.

    Raises:
        MissingExtraError: What ``ocr`` needs is not there.
        InvalidInputError: ``ocr`` names a language that is not read.
        ReadError: The file is missing, empty, broken, encrypted, mis-named, unknown, without text, or over a cap.

    Example:
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp(), "cities.csv")
        >>> _ = path.write_text("city,river\\nBern,Aare\\n")
        >>> print(read(path)[0].page_content)
        | city | river |
        | --- | --- |
        | Bern | Aare |
    """
    return shared_reader().read(path, limits=limits, root=root, ocr=ocr)


def _resolved(path: Path, root: Path | None) -> Path:
    """Return the real path of a file; raises `Unreadable` if it is no local one inside its folder."""
    shown = str(path)
    if "://" in shown or shown.startswith(("http:/", "https:/", "file:/", "data:")):
        raise Unreadable("it is an address, not a local file", "Download it first")
    try:
        real = path.resolve()
        inside = root is None or real.is_relative_to(root.resolve())
    except (OSError, RuntimeError, ValueError) as error:
        raise Unreadable(f"the path cannot be resolved ({error})", "Look for links in a circle") from error
    if not inside:
        raise Unreadable("it lies outside of its folder (a symbolic link?)", "Copy the file into the folder")
    if real.is_dir():
        advice = "ingest([folder], index_folder) reads all of a folder into an index; iter_files([folder]) lists it"
        raise Unreadable("it is a folder, and read() takes one file", advice)
    return real


def _with_source(
    documents: Iterable[Document], path: Path, real: Path, root: Path | None, format_name: str
) -> list[Document]:
    """Return copies of documents with their file's source, name and title in their metadata; fields of theirs win."""
    # people look for the name that they gave, not for the target of a link; but that alone may be inside the root
    absolute = Path(os.path.abspath(path))
    base = absolute.parent if root is None else Path(os.path.abspath(root))
    inside, folder = (absolute, base) if absolute.is_relative_to(base) else (real, base.resolve())
    file = inside.relative_to(folder).as_posix()
    known_format = formats.KINDS.get(format_name)
    common: dict[str, Any] = {
        "source": printable_path(path.as_posix() if root is None else file),
        "file": printable_path(file),
        "title": printable_path(absolute.stem),
        "format": format_name,
        "mime": known_format.mime if known_format else "application/octet-stream",
    }
    return [Document(doc.page_content, metadata=common | doc.metadata, id=doc.id) for doc in documents]
