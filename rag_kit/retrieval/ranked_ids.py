"""The ids that a search found, in place of its documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

from rag_kit.documents.provenance import PROVENANCE_KEY, first_record

if TYPE_CHECKING:
    from langchain_core.documents import Document


class RankedIds(Sequence["Document"]):
    """Ids and scores that one search found, best first, read as the documents with these ids.

    A fusion looks at hundreds of ids and scores and returns few documents. So a document is made where it is asked for,
    each time anew: with its provenance, without text and other metadata.

    Args:
        hits: Ids and scores, best first; each id once.
        stage: What the first stage of the documents' provenance holds beside rank and score.

    Example:
        >>> found = RankedIds([("a", 2.0), ("b", 1.0)], {"stage": "bm25"})
        >>> found.ids, found[1].id, len(found[:1])
        (['a', 'b'], 'b', 1)
    """

    def __init__(self, hits: Iterable[tuple[str, float]], stage: Mapping[str, Any]) -> None:
        self._hits, self._stage = list(hits), stage

    @property
    def ids(self) -> list[str]:
        """The ids, best first."""
        return [key for key, _ in self._hits]

    @property
    def scores(self) -> list[float]:
        """The scores of the ids."""
        return [score for _, score in self._hits]

    def __len__(self) -> int:
        return len(self._hits)

    @overload
    def __getitem__(self, index: int) -> Document: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Document]: ...
    def __getitem__(self, index: int | slice) -> Document | Sequence[Document]:
        from langchain_core.documents import Document

        if isinstance(index, slice):
            return [self[position] for position in range(len(self))[index]]
        key, score = self._hits[index]
        record = first_record(self._stage, 1 + index % len(self), score)
        return Document(id=key, page_content="", metadata={PROVENANCE_KEY: record})
