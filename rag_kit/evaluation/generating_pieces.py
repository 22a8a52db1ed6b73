"""The documents that questions are written from, and the pieces of them that a model is shown."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_core.documents import Document

from rag_kit.errors import InvalidInputError, ReadError
from rag_kit.evaluation._files import as_path
from rag_kit.evaluation.outputs import Passage
from rag_kit.evaluation.runs.rows import digest
from rag_kit.indexing import BM25Index, DocumentIndex, read, split
from rag_kit.indexing.files import iter_files
from rag_kit.text import content_words, detect_language

_log = logging.getLogger(__name__)
_PIECE = 1500
_LEAST = {"en": 120, "zh": 40}


@dataclass(frozen=True)
class Piece:
    """A stretch of a document, where it begins there, and the metadata that the prompt shows."""

    document: str
    text: str
    start: int
    language: str
    metadata: dict[str, Any]


def documents_of(source: Any) -> list[Document]:
    """The documents of a source: Documents, texts, an index, or a folder."""
    found = source
    if isinstance(source, (str, Path)):
        found = list(_files(as_path(source, "documents")))
    elif isinstance(source, DocumentIndex):
        found = source.get(source.passage_ids())
    elif isinstance(source, Iterable):
        found = [Document(page_content=each) if isinstance(each, str) else each for each in source]
    if not isinstance(found, list) or not found or not all(isinstance(each, Document) for each in found):
        raise InvalidInputError(
            f"documents is {str(source)!r:.120}, which holds nothing readable; give Documents, texts, an index, or "
            "a readable folder"
        )
    return found


def _files(folder: Path) -> Iterator[Document]:
    """Each file as one document; those that cannot be read are left out, and named in a warning."""
    if (folder / "store.sqlite3").is_file():
        raise InvalidInputError(f"{str(folder)!r} is an index; give DocumentIndex.open({str(folder)!r})")
    for file in iter_files([folder]).files if folder.exists() else ():
        try:
            parts = read(file.path, root=file.root)
        except ReadError as error:
            _log.warning("left out: %s", error)
            continue
        kept = {key: parts[0].metadata.get(key, "") for key in ("file", "title")}
        text = "\n\n".join(part.page_content for part in parts)
        yield Document(text, id=kept["file"], metadata=kept)


def pieces_of(corpus: Iterable[Passage], language: str) -> list[Piece]:
    """What is long enough to ask about, in pieces; ``language`` other than ``"auto"`` leaves out the other one."""
    found = []
    for passage in corpus:
        chunks = [Document(passage.text, metadata={"start": 0})]
        if len(passage.text) > 2 * _PIECE:
            chunks = split([Document(passage.text)], chunk_size=_PIECE, chunk_overlap=0)
        for chunk in chunks:
            text, start = chunk.page_content, chunk.metadata["start"]
            own = detect_language(text)
            names = {**passage.metadata, **chunk.metadata}
            metadata = {key: names[key] for key in ("title", "file", "heading") if names.get(key)}
            long = len(text.strip()) >= _LEAST[own] and passage.text.startswith(text, start)
            if long and language in ("auto", own):
                found.append(Piece(passage.id, text, start, own, metadata))
    if not found:
        chosen = "" if language == "auto" else f" in the language {language!r}"
        raise InvalidInputError(f"no document{chosen} has 120 characters (Chinese: 40); give longer passages")
    return found


def single_hop(pieces: Sequence[Piece], seed: int) -> list[tuple[Piece, ...]]:
    """The pieces, each alone, in the order in which they are asked about."""
    return [(pieces[place],) for place in _drawn(pieces, seed)]


def multi_hop(pieces: Sequence[Piece], seed: int) -> list[tuple[Piece, ...]]:
    """Pairs of pieces that speak of the same things, from different documents where there are any."""
    index = BM25Index.from_documents([Document(id=str(n), page_content=p.text) for n, p in enumerate(pieces)])
    several = len({piece.document for piece in pieces}) > 1
    pairs: dict[tuple[int, int], tuple[Piece, ...]] = {}
    for place in _drawn(pieces, seed):
        piece, words = pieces[place], dict.fromkeys(content_words(pieces[place].text))
        for near in (int(str(found.id)) for found, _ in index.search(" ".join(list(words)[:24]), k=6)):
            pair, other = (min(place, near), max(place, near)), pieces[near]
            apart = other.document != piece.document if several else near != place
            if apart and other.language == piece.language and pair not in pairs:
                pairs[pair] = (pieces[pair[0]], pieces[pair[1]])
                break
    return list(pairs.values())


def _drawn(pieces: Sequence[Piece], seed: int) -> list[int]:
    """A draw by a hash of each piece, in which documents take turns, so that a long one is not asked about most."""
    drawn = sorted(range(len(pieces)), key=lambda n: digest([seed, pieces[n].document, pieces[n].start]))
    turns, seen = dict[int, int](), Counter[str]()
    for place in drawn:
        turns[place] = seen[pieces[place].document]
        seen[pieces[place].document] += 1
    return sorted(drawn, key=turns.__getitem__)
