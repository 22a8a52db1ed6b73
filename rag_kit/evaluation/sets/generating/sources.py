"""The corpus that questions are written from, and the pieces of it that a model is shown."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation._files import as_path
from rag_kit.evaluation.outputs import Passage
from rag_kit.evaluation.sets.parting import rank
from rag_kit.text import content_words, detect_language

if TYPE_CHECKING:
    from langchain_core.documents import Document

PIECE = 1500
_LEAST = {"en": 120, "zh": 40}
_MAX_FILES = 20_000
_KEYS = 24


@dataclass(frozen=True)
class Piece:
    """A stretch of a document.

    Args:
        document: The document's id: what a question's gold names.
        text: The stretch.
        start: Where it begins in the document's text.
        language: ``"en"`` or ``"zh"``.
        metadata: What the prompt may show: title, file, heading.
    """

    document: str
    text: str
    start: int
    language: str
    metadata: dict[str, Any]

    def shown(self) -> Document:
        """The stretch as a prompt shows it."""
        from langchain_core.documents import Document

        return Document(page_content=self.text, metadata=self.metadata)


def corpus_of(source: Any) -> list[Passage]:
    """The documents of a source: Documents, texts, an index, or a folder; files count as one document each.

    Raises:
        InvalidInputError: If it is none of these, or holds nothing.
    """
    from rag_kit.indexing import DocumentIndex

    if isinstance(source, (str, Path)):
        found = _folder(as_path(source, "documents"))
    elif isinstance(source, DocumentIndex):
        found = [Passage.of(document) for document in source.get(source.passage_ids())]
    elif isinstance(source, Iterable):
        found = _documents(source)
    else:
        raise InvalidInputError(
            f"documents is a {type(source).__name__}; give Documents, texts, a DocumentIndex, or a folder"
        )
    by_id: dict[str, Passage] = {}
    for passage in found:
        if by_id.setdefault(passage.id, passage).text != passage.text:
            raise InvalidInputError(f"two documents have the id {passage.id!r:.80}; ids must be unique")
    if not by_id:
        raise InvalidInputError("there is no document to write questions from")
    return list(by_id.values())


def pieces_of(corpus: Sequence[Passage], language: str) -> list[Piece]:
    """What is long enough to ask about, in pieces; ``language`` other than ``"auto"`` leaves out the other one."""
    from langchain_core.documents import Document

    from rag_kit.indexing import split

    found: list[Piece] = []
    for passage in corpus:
        shown = {
            key: passage.metadata[key] for key in ("title", "file", "heading") if key in passage.metadata
        }
        parts: list[tuple[str, int, dict[str, Any]]] = [(passage.text, 0, shown)]
        if len(passage.text) > 2 * PIECE:
            chunks = split([Document(passage.text)], chunk_size=PIECE, chunk_overlap=0)
            parts = []
            for chunk in chunks:
                inner = {**shown, "heading": chunk.metadata.get("heading", "")}
                parts.append((chunk.page_content, int(chunk.metadata["start"]), inner))
        for text, start, metadata in parts:
            own = detect_language(text)
            wanted = language in ("auto", own)
            if (
                wanted
                and len(text.strip()) >= _LEAST[own]
                and passage.text[start : start + len(text)] == text
            ):
                found.append(Piece(passage.id, text, start, own, {k: v for k, v in metadata.items() if v}))
    return found


def single_hop(pieces: Sequence[Piece], seed: int) -> list[tuple[Piece, ...]]:
    """The order in which pieces are asked about: drawn, and documents take turns."""
    turns: dict[str, int] = {}
    placed: list[tuple[int, int, Piece]] = []
    for piece in sorted(pieces, key=lambda piece: rank(f"{piece.document}:{piece.start}", seed)):
        turn = turns[piece.document] = turns.get(piece.document, -1) + 1
        placed.append((turn, len(placed), piece))
    return [(piece,) for _, _, piece in sorted(placed, key=lambda each: each[:2])]


def multi_hop(pieces: Sequence[Piece], seed: int) -> list[tuple[Piece, ...]]:
    """Pairs of pieces that speak of the same things, from different documents where there are any."""
    from langchain_core.documents import Document

    from rag_kit.indexing import BM25Index

    if len(pieces) < 2:
        return []
    index = BM25Index.from_documents([Document(id=str(n), page_content=p.text) for n, p in enumerate(pieces)])
    many = len({piece.document for piece in pieces}) > 1
    places = {(piece.document, piece.start): n for n, piece in enumerate(pieces)}
    seen: set[tuple[int, int]] = set()
    pairs: list[tuple[Piece, ...]] = []
    for (piece,) in single_hop(pieces, seed):
        own = places[piece.document, piece.start]
        query = " ".join(list(dict.fromkeys(content_words(piece.text)))[:_KEYS])
        for found, _ in index.search(query, k=6):
            other = int(str(found.id))
            fits = pieces[other].language == piece.language and not (
                many and pieces[other].document == piece.document
            )
            pair = (min(own, other), max(own, other))
            if other != own and fits and pair not in seen:
                seen.add(pair)
                pairs.append((pieces[pair[0]], pieces[pair[1]]))
                break
    return pairs


def key_of(kind: str, pieces: Sequence[Piece], count: int) -> str:
    """Names an attempt: the same pieces and settings have the same key in every run."""
    content = json.dumps([kind, count, [[piece.document, piece.start, piece.text] for piece in pieces]])
    return hashlib.sha256(content.encode()).hexdigest()[:24]


def _documents(source: Iterable[Any]) -> list[Passage]:
    from langchain_core.documents import Document

    found = []
    for place, item in enumerate(source):
        if isinstance(item, Passage):
            found.append(item)
            continue
        document = Document(page_content=item) if isinstance(item, str) else item
        if not isinstance(document, Document):
            raise InvalidInputError(f"documents[{place}] is a {type(item).__name__}; give Documents or texts")
        found.append(Passage.of(document))
    return found


def _folder(folder: Path) -> list[Passage]:
    from rag_kit.errors import ReadError
    from rag_kit.indexing import iter_files, read

    if not folder.exists():
        raise InvalidInputError(f"{str(folder)!r} is not there; give a folder with documents, or a file")
    if (folder / "manifest.json").is_file() and (folder / "store.sqlite3").is_file():
        raise InvalidInputError(
            f"{folder.name!r} is the folder of an index; open it: generate(DocumentIndex.open({folder.name!r}), ...)"
        )
    found, failed = [], []
    for file in iter_files([folder], max_files=_MAX_FILES).files:
        try:
            parts = read(file.path, root=file.root)
        except ReadError as error:
            failed.append(str(error))
            continue
        text = "\n\n".join(part.page_content for part in parts)
        if text.strip():
            metadata = {"file": parts[0].metadata.get("file", file.path.name)}
            if title := parts[0].metadata.get("title"):
                metadata["title"] = title
            found.append(Passage(str(metadata["file"]), text, metadata))
    if not found:
        reason = f"; the first that failed: {failed[0]}" if failed else ""
        raise InvalidInputError(f"{folder.name!r} holds no document that can be read{reason}")
    return found
