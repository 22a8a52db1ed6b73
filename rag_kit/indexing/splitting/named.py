"""The splitters that are chosen by name, each as a function from documents to chunks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from os import PathLike
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from langchain_core.documents import Document

from rag_kit.errors import ConfigurationError, InvalidInputError
from rag_kit.indexing.splitting.packing import check_sizes, iter_spans, whole_character
from rag_kit.text import sentences

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

#: A function from a text to its number of tokens, or the path of a ``tokenizer.json``.
Tokenizer: TypeAlias = "Callable[[str], int] | str | PathLike[str]"
Places: TypeAlias = "Iterator[tuple[int, int]]"

_LANGUAGES = {"markdown": "markdown", "html": "html", "latex": "latex"}
_WORD = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+|[^\w\s]"
)
_BLANK = re.compile(r"\n[ \t\r]*\n\s*")
_BREAKS = 90  # percentile of the distances between neighbours at which a text is cut by meaning
_SUFFIXES = {
    "py": "python", "js": "js", "jsx": "js", "ts": "ts", "tsx": "ts", "java": "java", "kt": "kotlin", "go": "go",
    "rs": "rust", "c": "c", "h": "c", "cpp": "cpp", "cc": "cpp", "hpp": "cpp", "cs": "csharp", "rb": "ruby",
    "php": "php", "swift": "swift", "scala": "scala", "lua": "lua", "pl": "perl", "hs": "haskell", "ex": "elixir",
    "exs": "elixir", "ps1": "powershell", "proto": "proto", "sol": "sol", "r": "r", "rst": "rst", "tex": "latex",
    "md": "markdown", "html": "html",
}  # fmt: skip


class _Settings(NamedTuple):
    """What a splitter may go by."""

    size: int
    overlap: int
    embeddings: Embeddings | None
    tokenizer: Tokenizer | None


class Unit(NamedTuple):
    """A stretch of text that is not cut: a sentence or a token."""

    start: int
    end: int


def named_splitter(
    name: str,
    *,
    chunk_size: int = 1000,
    chunk_overlap: int = 100,
    embeddings: Embeddings | None = None,
    tokenizer: Tokenizer | None = None,
) -> Callable[[Sequence[Document]], list[Document]]:
    """A splitter by its name, as a function from documents to documents; `split` and `ingest` take the name itself.

    Args:
        name: One of ``SPLITTERS``.
        chunk_size: Most characters of a chunk; most tokens for ``"tokens"``, and wherever a ``tokenizer`` is given
            to it.
        chunk_overlap: Most of them that are repeated from the chunk before; ``paragraph``, ``semantic`` and ``json``
            repeat nothing.
        embeddings: For ``"semantic"``.
        tokenizer: For ``"tokens"``; without one a word, a Chinese character or a mark is a token.

    Raises:
        InvalidInputError: An unknown name, a size that is not allowed, a tokenizer that cannot be read.
        ConfigurationError: What the splitter needs is not there.

    Example:
        >>> cut = named_splitter("sentence", chunk_size=30, chunk_overlap=0)
        >>> [chunk.page_content for chunk in cut([Document("It is deep. It is cold. It is 湖。")])]
        ['It is deep. It is cold.', 'It is 湖。']
    """
    check_name(name)
    check_sizes(chunk_size, chunk_overlap)
    if tokenizer is not None and name != "tokens":
        raise InvalidInputError(f"tokenizer= is for splitter='tokens', not for {name!r}.")
    if name not in _PLACES:
        return partial(_by_langchain, name, chunk_size, chunk_overlap)
    return partial(_slices, _PLACES[name](_Settings(chunk_size, chunk_overlap, embeddings, tokenizer)))


def check_name(name: str) -> None:
    """Check the name of a splitter.

    Raises:
        InvalidInputError: No splitter has this name.
    """
    if name not in SPLITTERS:
        raise InvalidInputError(
            f"splitter={name!r} was given; allowed: {', '.join(map(repr, SPLITTERS))}, any LangChain text splitter, or "
            "a function from documents to documents."
        )


def _slices(places: Callable[[str], Places], documents: Sequence[Document]) -> list[Document]:
    return [
        Document(doc.page_content[start:end], metadata={**doc.metadata, "start": start, "end": end})
        for doc in documents
        for start, end in places(doc.page_content)
    ]


def _structure_places(text: str, *, size: int, overlap: int) -> Places:
    for span in iter_spans(text, size, overlap):
        yield span.start, span.end


def _sentence_places(text: str, *, size: int, overlap: int) -> Places:
    units = [Unit(s.start, s.end) for s in sentences(text, max_chars=size)]
    return _packed(units, size, overlap, lambda start, end: end - start)


def _paragraph_places(text: str, *, size: int) -> Places:
    start = 0
    for end in [*(match.start() for match in _BLANK.finditer(text)), len(text)]:
        for low, high in _sentence_places(text[start:end], size=size, overlap=0):
            yield start + low, start + high
        start = end


def _semantic(settings: _Settings) -> Callable[[str], Places]:
    if settings.embeddings is None:
        raise ConfigurationError(
            "splitter='semantic' cuts where the meaning changes and needs an embedding model: give embeddings=, "
            "or --embedding-model NAME."
        )
    return partial(_semantic_places, size=settings.size, embeddings=settings.embeddings)


def _semantic_places(text: str, *, size: int, embeddings: Embeddings) -> Places:
    """Cut where the vectors of neighbouring sentences differ most; each is embedded with its neighbours."""
    import numpy as np

    from rag_kit.models.clients import embed_documents

    units = [Unit(s.start, s.end) for s in sentences(text, max_chars=size)]
    breaks: set[int] = set()
    if len(units) > 2:
        last = len(units) - 1
        around = [text[units[max(0, i - 1)].start : units[min(last, i + 1)].end] for i in range(len(units))]
        vectors = np.asarray(embed_documents(embeddings, around), np.float32)
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        distances = 1 - (vectors[1:] * vectors[:-1]).sum(axis=1)
        breaks = set((np.flatnonzero(distances > np.percentile(distances, _BREAKS)) + 1).tolist())
    group: list[Unit] = []
    for number, unit in enumerate(units):
        if number in breaks:
            yield from _packed(group, size, 0, lambda start, end: end - start)
            group = []
        group.append(unit)
    yield from _packed(group, size, 0, lambda start, end: end - start)


class _Tokens(NamedTuple):
    """How tokens are found and counted."""

    units: Callable[[str], list[Unit]]
    count: Callable[[str], int]


def _tokens(tokenizer: Tokenizer | None) -> _Tokens:
    if tokenizer is None:
        return _Tokens(_words, lambda text: len(_WORD.findall(text)))
    if callable(tokenizer):
        return _Tokens(_words, tokenizer)
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

    def encode(text: str) -> Any:
        return loaded.encode(text, add_special_tokens=False)

    def units(text: str) -> list[Unit]:
        found: list[Unit] = []
        for start, end in encode(text).offsets:
            low = max(start, found[-1].end if found else 0)  # several tokens may make up one character
            if low < end:
                found.append(Unit(low, end))
        return found

    return _Tokens(units, lambda text: len(encode(text).ids))


def _words(text: str) -> list[Unit]:
    return [Unit(*match.span()) for match in _WORD.finditer(text)]


def _token_places(text: str, *, size: int, overlap: int, tokenizer: _Tokens) -> Places:
    units = tokenizer.units(text)
    if units:  # what the tokenizer passes over stays with its neighbour
        units = [
            Unit(unit.start if i else 0, units[i + 1].start if i + 1 < len(units) else len(text))
            for i, unit in enumerate(units)
        ]
        units = [piece for unit in units for piece in _halved(text, unit, size, tokenizer.count)]
    return _packed(units, size, overlap, lambda start, end: tokenizer.count(text[start:end].strip()), text)


def _halved(text: str, unit: Unit, size: int, count: Callable[[str], int]) -> Iterator[Unit]:
    """Halve a unit until each piece fits."""
    middle = whole_character(text, (unit.start + unit.end) // 2, unit.start + 1)
    if count(text[unit.start : unit.end]) <= size or not unit.start < middle < unit.end:
        yield unit
        return
    yield from _halved(text, Unit(unit.start, middle), size, count)
    yield from _halved(text, Unit(middle, unit.end), size, count)


def _packed(
    units: Sequence[Unit], size: int, overlap: int, measure: Callable[[int, int], int], text: str = ""
) -> Places:
    """Join units into chunks of at most `size`; a chunk begins with the last units of the one before, the overlap.

    Args:
        units: In order, each within the size.
        size: The most that a chunk may measure.
        overlap: The most that it may repeat.
        measure: Start and end -> size.
        text: If given, white space is stripped from the ends of each chunk.
    """
    first, done = 0, 0
    while done < len(units):
        start = units[first].start
        low, high = done, len(units) - 1  # the last unit, found by bisection
        step = 1
        while low + step < high and measure(start, units[low + step].end) <= size:
            low, step = low + step, step * 2
        high = min(high, low + step)
        while low < high:
            middle = (low + high + 1) // 2
            if measure(start, units[middle].end) <= size:
                low = middle
            else:
                high = middle - 1
        if first < done and measure(start, units[low].end) > size:
            first = done  # nothing new fits behind what is repeated
            continue
        end = units[low].end
        stretch = text[start:end]
        if not text:
            yield start, end
        elif stretch.strip():
            yield start + len(stretch) - len(stretch.lstrip()), start + len(stretch.rstrip())
        first = done = low + 1
        while first > 0 and overlap and done < len(units) and measure(units[first - 1].start, end) <= overlap:
            first -= 1


def _by_langchain(name: str, size: int, overlap: int, documents: Sequence[Document]) -> list[Document]:
    """Split by langchain-text-splitters: ``recursive``, ``json``, or by the syntax of a language."""
    import langchain_text_splitters as theirs

    if name == "json":
        return [chunk for document in documents for chunk in _json(document, size)]
    chunks: list[Document] = []
    for document in documents:
        settings: dict[str, Any] = {"chunk_size": size, "chunk_overlap": overlap}
        if name == "recursive":
            cutter = theirs.RecursiveCharacterTextSplitter(
                separators=["\n\n", "\n", "。", "！", "？", ". ", "；", "，", " ", ""],
                keep_separator="end",
                **settings,
            )
        else:
            language = _LANGUAGES.get(name) or _language(document)
            cutter = theirs.RecursiveCharacterTextSplitter.from_language(
                theirs.Language(language), **settings
            )
        chunks += cutter.split_documents([document])
    return chunks


def _language(document: Document) -> str:
    file = str(document.metadata.get("file") or document.metadata.get("source") or "")
    suffix = PurePath(file).suffix.lower().lstrip(".")
    if suffix not in _SUFFIXES:
        raise InvalidInputError(
            f"splitter='code' knows the language of a file by its suffix, not that of {file!r}; suffixes: "
            f"{', '.join(sorted(_SUFFIXES))}."
        )
    return _SUFFIXES[suffix]


def _json(document: Document, size: int) -> list[Document]:
    import json

    from langchain_text_splitters import RecursiveJsonSplitter

    try:
        value = json.loads(document.page_content)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"splitter='json' was given a text that is no JSON ({error}).") from None
    cutter = RecursiveJsonSplitter(max_chunk_size=size)
    made = cutter.split_text(
        value if isinstance(value, dict) else {"": value}, convert_lists=True, ensure_ascii=False
    )
    return [Document(text, metadata=dict(document.metadata)) for text in made]


#: Name -> the function that finds the places of chunks in a text, by the settings.
_PLACES: dict[str, Callable[[_Settings], Callable[[str], Places]]] = {
    "structure": lambda s: partial(_structure_places, size=s.size, overlap=s.overlap),
    "tokens": lambda s: partial(
        _token_places, size=s.size, overlap=s.overlap, tokenizer=_tokens(s.tokenizer)
    ),
    "sentence": lambda s: partial(_sentence_places, size=s.size, overlap=s.overlap),
    "paragraph": lambda s: partial(_paragraph_places, size=s.size),
    "semantic": _semantic,
}
#: Names for ``splitter=``.
SPLITTERS = (*_PLACES, "recursive", *_LANGUAGES, "code", "json")
