"""Which headings stand above a place in a document."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from rag_kit.indexing.splitting.structure import sections

if TYPE_CHECKING:
    from langchain_core.documents import Document

NOT_MARKDOWN = frozenset({"txt", "json", "jsonl"})


class Headings:
    """The headings of a document.

    Args:
        document: Its text is taken as markdown unless metadata ``format`` says otherwise.

    Attributes:
        markdown: Whether it is.

    Example:
        >>> from langchain_core.documents import Document
        >>> headings = Headings(Document("# Lake\\n\\nIt is deep.\\n\\n## Fish\\n\\nTrout."))
        >>> headings.at(10), headings.at(35)
        ('Lake', 'Lake > Fish')
    """

    def __init__(self, document: Document) -> None:
        given = document.metadata.get("heading")
        self.markdown = document.metadata.get("format") not in NOT_MARKDOWN
        title = given if isinstance(given, str) else ""
        found = list(sections(document.page_content, heading=title, markdown=self.markdown))
        self._starts = [section.start for section in found]
        self._headings = [section.heading for section in found]

    def at(self, place: int) -> str:
        """The headings above a place, ``""`` where there are none."""
        index = bisect_right(self._starts, place) - 1
        return self._headings[index] if index >= 0 else ""
