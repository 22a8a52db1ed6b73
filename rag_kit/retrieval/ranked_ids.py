"""The ids that a search found, in place of its documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rag_kit.documents.provenance import PROVENANCE_KEY, first_record

if TYPE_CHECKING:
    from langchain_core.documents import Document


class RankedIds(Sequence["Document"]):
    """Ids and scores that one search found, best first, read as the documents with these ids.

    A fusion looks at hundreds of ids and scores and returns few documents. So a document is made where it is asked for,
    each time anew: with its provenance, without text and other metadata; ``ids`` and ``scores`` are there as lists.

    Args:
        hits: Ids and scores, best first; each id once.
        stage: What the first stage of the documents' provenance holds beside rank and score.

    Example:
        >>> found = RankedIds([("a", 2.0), ("b", 1.0)], {"stage": "bm25"})
        >>> found.ids, found[1].id, len(found[:1])
        (['a', 'b'], 'b', 1)
    """

    def __init__(self, hits: Iterable[tuple[str, float]], stage: Mapping[str, Any]) -> None:
        hits, self._stage = list(hits), stage
        self.ids, self.scores = [key for key, _ in hits], [score for _, score in hits]

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, index: Any) -> Any:
        from langchain_core.documents import Document

        if isinstance(index, slice):
            return [self[position] for position in range(len(self))[index]]
        record = first_record(self._stage, 1 + index % len(self), self.scores[index])
        return Document(id=self.ids[index], page_content="", metadata={PROVENANCE_KEY: record})
