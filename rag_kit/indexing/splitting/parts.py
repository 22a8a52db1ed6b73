"""Run any splitter, and find the offsets of its chunks in the document."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from langchain_core.documents import Document

from rag_kit.errors import InvalidInputError

if TYPE_CHECKING:
    from langchain_text_splitters import TextSplitter

#: A LangChain text splitter, or a function from documents to documents.
Splitter: TypeAlias = "TextSplitter | Callable[[Sequence[Document]], Sequence[Document]]"


class Part(NamedTuple):
    """A part of a document.

    Attributes:
        text: Its text.
        start: Offset in the document, ``None`` where the text does not stand there verbatim.
        end: Offset, excluded.
        metadata: What the splitter added to the document's metadata.
    """

    text: str
    start: int | None
    end: int | None
    metadata: Mapping[str, Any]


def spans_of(document: Document, splitter: Any, start: int = 0, end: int | None = None) -> list[Part]:
    """Cut a span of a document with any splitter.

    Args:
        document: The document; the splitter gets a copy.
        splitter: A LangChain text splitter, or a function from documents to documents.
        start: Where the span begins.
        end: Where it ends; default: with the document.

    Raises:
        InvalidInputError: The splitter is none, or gives no documents.

    Example:
        >>> def lines(documents):
        ...     return [Document(line) for doc in documents for line in doc.page_content.splitlines()]
        >>> [(part.text, part.start) for part in spans_of(Document("one\\ntwo"), lines)]
        [('one', 0), ('two', 4)]
    """
    text = document.page_content[start:end]
    made: Any = check_splitter(splitter)([Document(text, metadata=dict(document.metadata))])
    given = list(made) if isinstance(made, Iterable) and not isinstance(made, Document) else [made]
    for piece in given:
        if not isinstance(piece, Document):
            raise InvalidInputError(
                f"A splitter gave {type(piece).__name__}; it gets a list of documents and must give documents, such "
                "as [Document(text), ...]."
            )
    parts: list[Part] = []
    last, done = -1, 0
    for piece in given:
        metadata = {
            key: value
            for key, value in piece.metadata.items()
            if key not in ("start", "end", "start_index") and document.metadata.get(key, _ABSENT) != value
        }
        place = _place(text, piece, last, done)
        if place is None:
            parts.append(Part(piece.page_content, None, None, metadata))
            continue
        last, done = place, max(done, place + len(piece.page_content))
        parts.append(
            Part(piece.page_content, start + place, start + place + len(piece.page_content), metadata)
        )
    return parts


_ABSENT = object()


def check_splitter(splitter: Any) -> Callable[[Sequence[Document]], Sequence[Document]]:
    """The function of a splitter, from documents to documents.

    Raises:
        InvalidInputError: It is neither a text splitter nor a function.
    """
    cut: Any = getattr(splitter, "split_documents", splitter)
    if not callable(cut):
        raise InvalidInputError(
            f"A splitter must be a LangChain text splitter or a function from documents to documents, not "
            f"{type(splitter).__name__}."
        )
    made: Callable[[Sequence[Document]], Sequence[Document]] = cut
    return made


def _place(text: str, piece: Document, last: int, done: int) -> int | None:
    """Where a piece stands: where it says, else the last place that leaves nothing visible out, else anywhere.

    Args:
        text: The document.
        piece: The piece.
        last: Where the piece before begins, -1 for the first one.
        done: Where the pieces before end.
    """
    content = piece.page_content
    for key in ("start_index", "start"):
        stated = piece.metadata.get(key)
        if type(stated) is int and stated >= 0 and text.startswith(content, stated):
            return stated
    new = done + len(text[done:]) - len(text[done:].lstrip())
    places = (
        text.rfind(content, last + 1, new + len(content)),
        text.find(content, max(last, 0)),
        text.find(content),
    )
    return next((place for place in places if place >= 0), None)
