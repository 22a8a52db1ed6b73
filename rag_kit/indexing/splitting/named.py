"""The splitters that are chosen by name, each as a function from documents to chunks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from os import PathLike
from typing import TypeAlias

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

from rag_kit.errors import ConfigurationError, InvalidInputError
from rag_kit.indexing.splitting.packing import check_sizes, pack_sentences, split_spans
from rag_kit.text import sentences

#: A function from a text to its number of tokens, or the path of a ``tokenizer.json``.
Tokenizer: TypeAlias = "Callable[[str], int] | str | PathLike[str]"
#: Start and end of each stretch of a text.
Spans: TypeAlias = "Iterator[tuple[int, int]]"

#: Names for ``splitter=``.
SPLITTERS = ("structure", "tokens", "sentence", "paragraph", "semantic", "recursive")
_TOKEN = re.compile(  # a kana, Chinese or Korean character, another word, or a mark
    r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+|[^\w\s]"
)
# as langchain-text-splitters has them, with Chinese stops
_SEPARATORS = ["\n\n", "\n", "。", "！", "？", ". ", "；", "，", " ", ""]
_PARAGRAPH_BREAK = re.compile(r"\n[ \t\r]*\n\s*")
_BREAK_PERCENTILE = 90  # of the distances between neighbours; a text is cut by meaning where it is exceeded


def named_splitter(
    name: str,
    chunk_size: int = 1000,
    chunk_overlap: int | None = None,
    embeddings: Embeddings | None = None,
    tokenizer: Tokenizer | None = None,
) -> Callable[[Sequence[Document]], list[Document]]:
    """Make the splitter of a name in `SPLITTERS`: a function from documents to chunks.

    Sizes are in characters, for ``tokens`` in tokens: those of ``tokenizer``, or words, Chinese characters and marks.
    Chunks of ``paragraph`` and ``semantic`` never overlap.
    """
    check_name(name)
    chunk_overlap = check_sizes(chunk_size, chunk_overlap)
    if tokenizer is not None and name != "tokens":
        raise InvalidInputError(f"tokenizer= is for splitter='tokens', not for {name!r}.")
    if name in ("recursive", "tokens"):
        from langchain_text_splitters import RecursiveCharacterTextSplitter

        return RecursiveCharacterTextSplitter(
            separators=_SEPARATORS,
            keep_separator="end",
            chunk_size=chunk_size,
            chunk_overlap=chunk_overlap,
            length_function=_token_counter(tokenizer) if name == "tokens" else len,
        ).split_documents
    if name == "semantic" and embeddings is None:
        raise ConfigurationError(
            "splitter='semantic' cuts where the meaning changes and needs an embedding model: give embeddings=, "
            "or --embedding-model NAME."
        )
    by_structure = partial(split_spans, chunk_size=chunk_size, chunk_overlap=chunk_overlap)
    cutters: dict[str, Callable[[str], Spans]] = {  # each from a text to the spans of its chunks
        "structure": lambda text: (span[:2] for span in by_structure(text)),
        "sentence": lambda text: pack_sentences(text, (), chunk_size, chunk_overlap),
        "paragraph": lambda text: pack_sentences(
            text, map(re.Match.start, _PARAGRAPH_BREAK.finditer(text)), chunk_size
        ),
        "semantic": partial(_semantic_spans, size=chunk_size, embeddings=embeddings),
    }
    return partial(_slice_documents, cutters[name])


def check_name(name: str) -> None:
    """Raise InvalidInputError if no splitter has this name."""
    if name not in SPLITTERS:
        raise InvalidInputError(
            f"splitter={name!r} was given; allowed: {', '.join(map(repr, SPLITTERS))}, any LangChain text splitter, or "
            "a function from documents to documents."
        )


def _slice_documents(spans_of: Callable[[str], Spans], documents: Sequence[Document]) -> list[Document]:
    """Return a document for each span that ``spans_of`` finds in each document's text, with its offsets."""
    return [
        Document(doc.page_content[start:end], metadata={**doc.metadata, "start": start, "end": end})
        for doc in documents
        for start, end in spans_of(doc.page_content)
    ]


def _semantic_spans(text: str, *, size: int, embeddings: Embeddings | None) -> Spans:
    """Cut a text before sentences whose meaning differs most from the one before; each is embedded with neighbours."""
    import numpy as np

    from rag_kit.models.clients import embed_documents

    parts = sentences(text, max_chars=size)
    breaks: list[int] = []
    if len(parts) > 2 and embeddings is not None:
        befores, afters = [parts[0], *parts[:-1]], [*parts[1:], parts[-1]]
        windows = [text[before.start : after.end] for before, after in zip(befores, afters, strict=True)]
        vectors = np.asarray(embed_documents(embeddings, windows), np.float32)
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)  # to length 1, or 0
        distances = 1 - (vectors[1:] * vectors[:-1]).sum(axis=1)  # cosine distances of neighbours
        is_break = distances > np.percentile(distances, _BREAK_PERCENTILE)
        breaks = [part.start for part, cut in zip(parts[1:], is_break, strict=True) if cut]
    return pack_sentences(text, breaks, size)


def _token_counter(tokenizer: Tokenizer | None) -> Callable[[str], int]:
    """Make a function from a text to its number of tokens; raises InvalidInputError for a file that is no tokenizer."""
    if tokenizer is None:
        return lambda text: len(_TOKEN.findall(text))
    if callable(tokenizer):
        return tokenizer
    try:
        from tokenizers import Tokenizer as Loaded
    except ImportError as error:
        raise ConfigurationError("A tokenizer.json needs: pip install 'rag-kit[minilm]'.") from error
    try:
        loaded = Loaded.from_file(str(tokenizer))
    except Exception as error:  # the library raises Exception itself
        raise InvalidInputError(
            f"tokenizer={str(tokenizer)!r} cannot be read ({error}). Name a tokenizer.json, or give a function."
        ) from error
    loaded.no_truncation()
    loaded.no_padding()
    return lambda text: len(loaded.encode(text, add_special_tokens=False).ids)
