"""The embedded model as a LangChain ``Embeddings``."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray

from rag_kit.concurrency.budget import check_count
from rag_kit.errors import ConfigurationError, InvalidInputError
from rag_kit.models.minilm import files

from .graph import HIDDEN, ensure_graph

MAX_TOKENS = 256
#: Texts tokenised and sorted at a time: bounds the memory for token lists.
WINDOW = 4096
#: Most tokens of a forward pass, padding included. Short texts share a pass, long ones run alone: what a pass computes
#: then stays in the processor's cache.
BATCH_TOKENS = 512


class MiniLMEmbeddings(Embeddings):
    """all-MiniLM-L6-v2: English sentence vectors of 384 dimensions and length 1, on the CPU.

    Texts are cut to 256 tokens and pooled by the mean over tokens, as the published model does (Reimers and Gurevych,
    2019; Wang et al., 2020). The same list of texts always gives the same vectors; the batch a text falls into may
    move its values in the seventh digit. Thread-safe: one session serves all threads; ``threads`` are those that it may
    use, 0 leaves that to onnxruntime. The weights must have been fetched (``rag-kit models install minilm``).
    """

    name = "minilm"
    dimensions = HIDDEN
    english_only = True

    def __init__(self, *, threads: int = 0, cache: Path | None = None) -> None:
        check_count("threads", threads)
        self.threads = threads
        self._cache = cache
        self._folder = files.require(cache)
        self._lock = threading.Lock()
        self._engine: tuple[Any, Any] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy elsewhere loads the weights that are there."""
        return partial(MiniLMEmbeddings, threads=self.threads, cache=self._cache), ()

    def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector of 384 floats and length 1 for each text, in order."""
        vectors: list[list[float]] = self.embed_array(texts).tolist()
        return vectors

    def embed_query(self, text: str) -> list[float]:
        """Embed one text; the model makes no difference between questions and documents."""
        return self.embed_documents([text])[0]

    def embed_array(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """``embed_documents`` without the conversion to lists: float32, shape (texts, 384)."""
        if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
            raise InvalidInputError("embed_documents takes a list of str; for one text use embed_query")
        result = np.empty((len(texts), HIDDEN), np.float32)
        for start in range(0, len(texts), WINDOW):
            for rows, vectors in self._embed_batches(texts[start : start + WINDOW]):
                result[np.asarray(rows) + start] = vectors
        return result

    def _embed_batches(self, texts: Sequence[str]) -> Iterator[tuple[list[int], NDArray[np.float32]]]:
        """The rows of each batch and their vectors."""
        tokenizer, session = self._load()
        # A lone surrogate (broken input) cannot reach the Rust tokenizer; it becomes "?".
        clean = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
        tokens = [encoding.ids for encoding in tokenizer.encode_batch_fast(clean)]
        order = sorted(range(len(tokens)), key=lambda i: -len(tokens[i]))
        for rows in batches(order, [len(ids) for ids in tokens]):
            width = max(len(tokens[row]) for row in rows)
            ids = np.zeros((len(rows), width), np.int64)
            mask = np.zeros((len(rows), width), np.int64)
            for line, row in enumerate(rows):
                ids[line, : len(tokens[row])] = tokens[row]
                mask[line, : len(tokens[row])] = 1
            yield rows, session.run(["embedding"], {"input_ids": ids, "attention_mask": mask})[0]

    def _load(self) -> tuple[Any, Any]:
        """Tokenizer and session, loaded once."""
        with self._lock:
            if self._engine is None:
                try:
                    self._engine = load_tokenizer(self._folder), load_session(self._folder, self.threads)
                except Exception as error:  # neither library has a base class for what damaged files raise
                    raise ConfigurationError(
                        f"{self._folder} cannot be used ({type(error).__name__}: {error}). "
                        f"Run: {files.INSTALL_COMMAND} --force"
                    ) from error
            return self._engine


def batches(order: Sequence[int], lengths: Sequence[int]) -> Iterator[list[int]]:
    """Rows in this order, the longest first, cut where a batch, padded, would hold too many tokens."""
    rows: list[int] = []
    for row in order:
        if rows and lengths[rows[0]] * (len(rows) + 1) > BATCH_TOKENS:
            yield rows
            rows = []
        rows.append(row)
    if rows:
        yield rows


def load_tokenizer(folder: Path) -> Any:
    """The published tokenizer, cut at 256 tokens and without its own padding."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / files.TOKENIZER))
    tokenizer.enable_truncation(MAX_TOKENS)
    tokenizer.no_padding()
    return tokenizer


def load_session(folder: Path, threads: int = 0) -> Any:
    """An onnxruntime session over the cached graph."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    # Threads that spin while they wait would take the processor from the caller's own work.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    graph = ensure_graph(folder / files.WEIGHTS, folder / files.GRAPH)
    return onnxruntime.InferenceSession(str(graph), options, providers=["CPUExecutionProvider"])
