"""`locate`: the page of a quote in a PDF, and the rectangles to mark there."""

from __future__ import annotations

from os import PathLike
from typing import NamedTuple

from langchain_core.documents import Document

from rag_kit.errors import InvalidInputError
from rag_kit.indexing.files import as_path
from rag_kit.indexing.readers.api import shared_reader
from rag_kit.indexing.readers.ocr import ocr_wanted


class Location(NamedTuple):
    """A place in a PDF.

    Attributes:
        page: The page, from 1.
        rectangles: One or more for each line: left, bottom, right and top in points (1/72 inch), from the origin of the
            PDF's own coordinates, usually the bottom left corner of the page before any rotation of the page.
    """

    page: int
    rectangles: list[tuple[float, float, float, float]]


def locate(
    quote: str, document: Document | str | PathLike[str], *, root: str | PathLike[str] | None = None
) -> Location | None:
    """Find a quote in the PDF that a passage was read from.

    Only letters and digits are compared, so that blanks, line ends, hyphens and the signs of markdown do not count.
    Scanned pages are recognised again, which takes seconds and needs the extra ``ocr``, where the metadata of the
    passage say that it was read so. The file is opened in a reader process, as by `read`.

    Args:
        quote: Words of one page, as in a citation.
        document: A passage, with its ``source`` and ``page`` in the metadata; or a PDF, to search all its pages.
        root: The folder that was ingested, since ``source`` of a passage out of an index is a path below it.

    Returns:
        Page and rectangles of the first place, ``None`` where the page (or the file) does not have the quote.

    Raises:
        InvalidInputError: There is nothing to look for, or the document does not name a PDF.
        ReadError: The file is missing, broken or over a cap.
        MissingExtraError: The passage was read by OCR, and the extra ``ocr`` is not installed.

    Example:
        >>> locate("the fee is 210.50 EUR", Document("...", metadata={"source": "rules.md"}))
        Traceback (most recent call last):
        rag_kit.errors.InvalidInputError: 'rules.md' is no PDF; locate takes passages of a PDF, or its path.
    """
    if not isinstance(quote, str) or not any(character.isalnum() for character in quote):
        raise InvalidInputError(f"quote is {quote!r:.80}; give words that are in the document.")
    metadata = document.metadata if isinstance(document, Document) else {"source": document}
    argument = "metadata['source']" if isinstance(document, Document) else "document"
    path = as_path(metadata.get("source"), argument)
    if path.suffix.lower() != ".pdf":
        raise InvalidInputError(f"{str(path)!r} is no PDF; locate takes passages of a PDF, or its path.")
    page = metadata.get("page", 0)  # 0: search all pages
    if type(page) is not int or page < 0:
        raise InvalidInputError(f"metadata['page'] is {page!r}; the first page of a PDF is 1.")
    ocr = ocr_wanted(metadata.get("ocr") is True)  # raises if OCR is needed and not installed
    folder = None if root is None else as_path(root, "root")
    file = path if folder is None else folder / path
    place = shared_reader().locate(quote, file, page, ocr=ocr, root=folder)
    return Location(place["page"], [tuple(box) for box in place["boxes"]]) if place else None
