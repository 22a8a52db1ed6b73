"""The index of a retriever over families: in a folder, or in a temporary one."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from pathlib import Path
from typing import Any

from langchain_core.embeddings import Embeddings

from rag_kit.errors import IndexMissingError, InvalidInputError
from rag_kit.indexing.document_index.index import DocumentIndex


def open_or_create(folder: Any, embeddings: Embeddings | None) -> DocumentIndex:
    """The index in a folder or database, open for writing; made where there is none.

    Raises:
        InvalidInputError: It is no folder.
    """
    try:
        return DocumentIndex.open(folder, embeddings=embeddings, mode="w")
    except IndexMissingError:
        return DocumentIndex.create(folder, embeddings=embeddings)
    except TypeError:
        raise InvalidInputError(
            f"index must be a DocumentIndex or a folder, not {type(folder).__name__}."
        ) from None


def temporary(embeddings: Embeddings | None) -> DocumentIndex:
    """An index in a temporary folder, which is removed with the last reference to it."""
    folder = Path(tempfile.mkdtemp(prefix="rag-kit-"))
    index = DocumentIndex.create(folder / "index", embeddings=embeddings)
    weakref.finalize(index, _remove, index._backend, folder)
    return index


def _remove(backend: Any, folder: Path) -> None:
    backend.close()
    shutil.rmtree(folder, ignore_errors=True)
