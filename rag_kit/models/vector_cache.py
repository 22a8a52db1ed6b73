"""An embedding model that embeds no document twice, in memory and, where a folder is given, between runs."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_core.embeddings import Embeddings

from rag_kit.models.clients import aembed_query, embed_documents, embed_query
from rag_kit.models.embedding import embedding_name
from rag_kit.models.json_cache import JsonCache

if TYPE_CHECKING:
    import numpy as np

_SLICE = 1024
"""Texts embedded between two progress reports."""


class CachedEmbeddings(Embeddings):
    """Keeps the vectors of documents in memory, and in a `JsonCache` named ``vectors.sqlite`` in a folder.

    A vector's key is a hash of the model's stable name and the text, so another model never gets old vectors, and of
    a corpus that changed only the new texts are embedded. What cannot be read counts as missing.

    Args:
        model: The embedding model.
        folder: Where the file is; ``None``: in memory only.
        max_entries: Most vectors in the file; beyond that the least recently used go.
        progress: Called with ``("embedding", done, total)``.

    Raises:
        InvalidInputError: If the folder cannot be written to.

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
        max_entries: int = 500_000,
        progress: Callable[[str, int, int], None] | None = None,
    ) -> None:
        self._model = model
        self._name = embedding_name(model)
        self._file = (
            None if folder is None else JsonCache(Path(folder) / "vectors.sqlite", max_entries=max_entries)
        )
        self._progress = progress or (lambda what, done, total: None)
        self._known: dict[str, np.ndarray] = {}

    def vectors(self, texts: Sequence[str]) -> np.ndarray:
        """The vectors of a list of texts, which are kept.

        Returns:
            ``float32``, shape ``(len(texts), dimensions)``.
        """
        import numpy as np

        for start in range(0, len(texts), _SLICE):
            part = texts[start : start + _SLICE]
            self._known.update(self._found(part))
            self._progress("embedding", start + len(part), len(texts))
        return np.asarray([self._known[text] for text in texts], dtype=np.float32)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """One vector a text; the model is asked for those that are not known."""
        found = self._found(texts)
        return [found[text].tolist() for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """The model's own."""
        return embed_query(self._model, text)

    async def aembed_query(self, text: str) -> list[float]:
        """The model's own."""
        return await aembed_query(self._model, text)

    def _found(self, texts: Iterable[str]) -> dict[str, np.ndarray]:
        """Vectors by text: those in memory, those in the file, and those that the model makes now."""
        import numpy as np

        found = {text: self._known.get(text) for text in texts}
        keys = {text: self._key(text) for text, vector in found.items() if vector is None}
        if self._file is not None and keys:
            kept = self._file.get(list(keys.values()))
            found.update({text: _vector(kept.get(key)) for text, key in keys.items()})
        unknown = [text for text, vector in found.items() if vector is None]
        if unknown:
            made = np.asarray(embed_documents(self._model, unknown), dtype="<f4")
            found.update(zip(unknown, made, strict=True))
            if self._file is not None:
                self._file.put(
                    {
                        keys[text]: base64.b64encode(vector.tobytes()).decode()
                        for text, vector in zip(unknown, made, strict=True)
                    }
                )
        return {text: vector for text, vector in found.items() if vector is not None}

    def _key(self, text: str) -> str:
        return hashlib.sha256(f"vector\n{self._name}\n{text}".encode("utf-8", "surrogatepass")).hexdigest()


def _vector(value: Any) -> np.ndarray | None:
    """A vector as it is kept: the base64 of its little-endian float32 numbers."""
    import numpy as np

    try:
        vector = np.frombuffer(base64.b64decode(value, validate=True), "<f4")
    except (ValueError, TypeError):
        return None
    return vector if len(vector) and np.isfinite(vector).all() else None
