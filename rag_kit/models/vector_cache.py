"""An embedding model that embeds no document twice, in memory and, where a folder is given, between runs."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path

import numpy as np
from langchain_core.embeddings import Embeddings

from rag_kit.models.clients import embed_documents, embed_query
from rag_kit.models.embedding import embedding_name
from rag_kit.models.json_cache import JsonCache

_MAX_ENTRIES = 500_000  # of the file; the newest are kept
_SLICE = 1024  # texts embedded between two progress reports


class CachedEmbeddings(Embeddings):
    """Keeps the vectors of documents in memory, and in a `JsonCache` named ``vectors.sqlite`` in a folder.

    A vector's key is a hash of the model's stable name and the text, so another model never gets old vectors, and of
    a corpus that changed only the new texts are embedded. ``progress`` is called with ``("embedding", done, total)``.
    """

    def __init__(
        self,
        model: Embeddings,
        folder: Path | str | None = None,
        *,
        progress: Callable[[str, int, int], None] = lambda what, done, total: None,
    ) -> None:
        self._model = model
        self._name = embedding_name(model)
        path = None if folder is None else Path(folder) / "vectors.sqlite"
        self._file = None if path is None else JsonCache(path, max_entries=_MAX_ENTRIES)
        self._progress = progress
        self._known: dict[str, np.ndarray] = {}

    def vectors(self, texts: Sequence[str]) -> np.ndarray:
        """Return the vectors of texts: ``float32``, shape ``(len(texts), dimensions)``."""
        for start in range(0, len(texts), _SLICE):
            part = texts[start : start + _SLICE]
            self._embed_missing(part)
            self._progress("embedding", start + len(part), len(texts))
        return np.asarray([self._known[text] for text in texts], dtype=np.float32)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed texts; the model is asked for those that are not known."""
        self._embed_missing(texts)
        return [self._known[text].tolist() for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """Embed a question by the model; it is not kept."""
        return embed_query(self._model, text)

    def _embed_missing(self, texts: Iterable[str]) -> None:
        """Add missing vectors to those in memory: from the file, else made by the model and stored."""
        keys = {text: self._key(text) for text in texts if text not in self._known}
        encoded = self._file.get(list(keys.values())) if self._file is not None and keys else {}
        stored: dict[str, np.ndarray] = {}
        for text, key in keys.items():
            with suppress(KeyError, ValueError, TypeError):  # not stored, or damaged
                stored[text] = np.frombuffer(base64.b64decode(encoded[key]), "<f4")
        made = self._embed_and_store([text for text in keys if text not in stored], keys)
        vectors = (*stored.values(), *made.values(), *islice(self._known.values(), 1))
        if len(set(map(len, vectors))) > 1:  # a stored one is damaged, or of another model
            made |= self._embed_and_store([*stored], keys)
        self._known |= stored | made

    def _embed_and_store(self, texts: list[str], keys: Mapping[str, str]) -> dict[str, np.ndarray]:
        """Embed texts by the model, store the vectors in the file under their keys, and return them by text."""
        if not texts:
            return {}
        made = dict(zip(texts, np.asarray(embed_documents(self._model, texts), dtype="<f4"), strict=True))
        if self._file is not None:
            encoded = {text: base64.b64encode(vector.tobytes()).decode() for text, vector in made.items()}
            self._file.put({keys[text]: value for text, value in encoded.items()})
        return made

    def _key(self, text: str) -> str:
        return hashlib.sha256(f"vector\n{self._name}\n{text}".encode("utf-8", "surrogatepass")).hexdigest()
