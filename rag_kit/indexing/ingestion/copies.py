"""Copies of a file among others: files with the same text."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from rag_kit.documents.identity import to_plain

if TYPE_CHECKING:
    from langchain_core.documents import Document

_FILE_FIELDS = frozenset(
    "source file file_path filename file_name file_directory created created_at creationdate creation_date modified "  # noqa: SIM905
    "modified_at last_modified moddate mtime ctime atime".split()
)


def fingerprint(documents: Sequence[Document], file: str, *, anywhere: bool) -> bytes:
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
