"""An embedding model that embeds no document twice, in memory and, where a folder is given, between runs."""

from __future__ import annotations

import hashlib
import logging
import os
import secrets
import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from langchain_core.embeddings import Embeddings

from rag_kit.errors import InvalidInputError
from rag_kit.models.clients import aembed_query, embed_documents, embed_query
from rag_kit.models.embedding import embedding_name

if TYPE_CHECKING:
    import numpy as np

_SLICE = 1024
"""Texts embedded between two progress reports."""
_log = logging.getLogger(__name__)


class CachedEmbeddings(Embeddings):
    """Keeps the vectors of documents in memory, and in ``.npz`` files without pickle, one for each list of texts.

    A file's name is a hash of the model's stable name and every text, so another model or a changed corpus never gets
    old vectors. A damaged file counts as missing. When the folder outgrows ``max_bytes``, the files that were not
    used for the longest time go.

    Args:
        model: The embedding model.
        folder: Where the files are, made when the first one is written; ``None``: in memory only.
        max_bytes: Limit of the files together, in bytes.
        progress: Called with ``("embedding", done, total)``.

    Raises:
        InvalidInputError: If the folder is a file, or no path.

    Example:
        >>> from langchain_core.embeddings import DeterministicFakeEmbedding
        >>> cached = CachedEmbeddings(DeterministicFakeEmbedding(size=4))
        >>> cached.vectors(["a", "b"]).shape, len(cached.embed_documents(["a"])[0])
        ((2, 4), 4)
    """

    def __init__(
        self,
        model: Embeddings,
        folder: Path | str | None = None,
        *,
        max_bytes: int = 2 * 1024**3,
        progress: Callable[[str, int, int], None] | None = None,
    ) -> None:
        self.folder = None if folder is None else Path(folder)
        self.max_bytes = max_bytes
        self._model = model
        self._name = embedding_name(model)
        self._progress = progress or (lambda what, done, total: None)
        self._known: dict[str, np.ndarray] = {}
        if self.folder is not None and self.folder.exists() and not self.folder.is_dir():
            raise InvalidInputError(f"{str(folder)!r} is a file; give a folder for the cache")

    def vectors(self, texts: Sequence[str]) -> np.ndarray:
        """The vectors of a list of texts, read from the folder or made and kept there.

        Returns:
            ``float32``, shape ``(len(texts), dimensions)``.
        """
        if self.folder is None:
            found = self._embedded(texts)
        else:
            path = self.folder / f"{_key(self._name, texts)}.npz"
            read = _read(path, len(texts))
            found = self._embedded(texts) if read is None else read
            if read is None:
                _write(path, found)
                self._shrink(keep=path)
        self._known.update(zip(texts, found, strict=True))
        return found

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """One vector a text; the model is asked for those that are not known."""
        unknown = [text for text in dict.fromkeys(texts) if text not in self._known]
        fresh = dict(zip(unknown, embed_documents(self._model, unknown), strict=True)) if unknown else {}
        return [fresh[text] if text in fresh else self._known[text].tolist() for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """The model's own."""
        return embed_query(self._model, text)

    async def aembed_query(self, text: str) -> list[float]:
        """The model's own."""
        return await aembed_query(self._model, text)

    def _embedded(self, texts: Sequence[str]) -> np.ndarray:
        import numpy as np

        rows: list[list[float]] = []
        for start in range(0, len(texts), _SLICE):
            rows.extend(embed_documents(self._model, list(texts[start : start + _SLICE])))
            self._progress("embedding", len(rows), len(texts))
        return np.asarray(rows, dtype=np.float32)

    def _shrink(self, keep: Path) -> None:
        files = sorted((p.stat().st_mtime, p.stat().st_size, p) for p in keep.parent.glob("*.npz"))
        total = sum(size for _, size, _ in files)
        for _, size, path in files:
            if total > self.max_bytes and path != keep:
                path.unlink(missing_ok=True)
                total -= size


def _key(model: str, texts: Sequence[str]) -> str:
    digest = hashlib.sha256(f"1\n{model}\n{len(texts)}\n".encode())
    for text in texts:
        digest.update(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest())
    return digest.hexdigest()


def _read(path: Path, count: int) -> np.ndarray | None:
    import numpy as np

    if not path.is_file():
        return None
    try:
        with np.load(path, allow_pickle=False) as archive:
            vectors: np.ndarray = archive["vectors"]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        _log.warning("the cached vectors %s cannot be read (%s); they are made anew", path.name, error)
        return None
    os.utime(path)
    good = vectors.ndim == 2 and len(vectors) == count and bool(np.isfinite(vectors).all())
    return vectors.astype(np.float32, copy=False) if good else None


def _write(path: Path, vectors: np.ndarray) -> None:
    """Write the file as a whole: a reader sees all of it or none."""
    import numpy as np

    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(f".{secrets.token_hex(6)}.tmp")
    try:
        with draft.open("xb") as file:
            np.savez(file, vectors=vectors)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
