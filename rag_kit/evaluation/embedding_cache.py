"""Vectors of documents, kept on disk between benchmark runs."""

from __future__ import annotations

import hashlib
import logging
import os
import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation._files import as_path, write_file

if TYPE_CHECKING:
    import numpy as np

_log = logging.getLogger(__name__)


class EmbeddingCache:
    """A folder of ``.npz`` files, one for each (model, list of texts); no pickle.

    The key holds the model's stable name and every text, so another model or a changed corpus never gets old
    vectors. A damaged file counts as missing. When the folder outgrows ``max_bytes``, the files that were
    not used for the longest time go.

    Args:
        folder: Where the files are; made when the first one is written.
        max_bytes: Limit of the files together, in bytes.

    Example:
        >>> import tempfile
        >>> calls = []
        >>> def embed(texts):
        ...     calls.append(list(texts))
        ...     return [[1.0, 0.0]] * len(texts)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     cache = EmbeddingCache(folder)
        ...     first = cache.vectors("model", ["a", "b"], embed)
        ...     again = cache.vectors("model", ["a", "b"], embed)
        >>> again.shape, calls
        ((2, 2), [['a', 'b']])
    """

    def __init__(self, folder: Path | str, *, max_bytes: int = 2 * 1024**3) -> None:
        self.folder = as_path(folder, "cache")
        self.max_bytes = max_bytes
        if self.folder.exists() and not self.folder.is_dir():
            raise InvalidInputError(f"{str(folder)!r} is a file; give a folder for the cache")

    def vectors(
        self,
        model: str,
        texts: Sequence[str],
        embed: Callable[[Sequence[str]], np.ndarray | list[list[float]]],
    ) -> np.ndarray:
        """Read the vectors of ``texts``, or make and keep them.

        Args:
            model: Stable name of the embedding model.
            texts: What is embedded.
            embed: Makes the vectors when they are not there.

        Returns:
            ``float32``, shape ``(len(texts), dimensions)``.
        """
        import numpy as np

        path = self.folder / f"{_key(model, texts)}.npz"
        found = _read(path, len(texts))
        if found is not None:
            os.utime(path)
            return found
        made = np.asarray(embed(texts), dtype=np.float32)
        write_file(path, lambda file: np.savez(file, vectors=made))
        self._shrink(keep=path)
        return made

    def _shrink(self, keep: Path) -> None:
        files = sorted((p.stat().st_mtime, p.stat().st_size, p) for p in self.folder.glob("*.npz"))
        total = sum(size for _, size, _ in files)
        for _, size, path in files:
            if total <= self.max_bytes:
                break
            if path != keep:
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
    good = vectors.ndim == 2 and len(vectors) == count and bool(np.isfinite(vectors).all())
    return vectors.astype(np.float32, copy=False) if good else None
