"""What retrievers over families share: the search among children."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.documents import Document

from rag_kit.documents import combine_filters, compile_filter, get_provenance, with_provenance
from rag_kit.documents.provenance import peek_score
from rag_kit.indexing.document_index.rows import PARENT_KEY, Family, FamilyView, Place, offset_in_source
from rag_kit.retrieval.base import blocking_step
from rag_kit.retrieval.call import Call
from rag_kit.retrieval.fields import Count
from rag_kit.retrieval.inside import own_filter
from rag_kit.retrieval.parents.writing import FamilyWriter

_GROWTH = 4  # times as many children in the next round
Passes = Callable[[dict[str, Any]], bool]


@dataclass(frozen=True)
class Match:
    """A child that was found: its rank, from 1, its score (1 / rank where there is none), and where it belongs."""

    document: Document
    rank: int
    score: float
    place: Place | None

    def as_dict(self) -> dict[str, Any]:
        """What provenance says of it."""
        start, end = (self.place.start, self.place.end) if self.place else (None, None)
        return {"id": self.document.id, "rank": self.rank, "score": self.score, "start": start, "end": end}


@dataclass
class Passage:
    """What is returned for some matches, best first, with the score that they make together."""

    matches: list[Match]
    score: float
    document: Document
    extra: dict[str, Any] = field(default_factory=dict)


def place_matches(view: FamilyView, documents: Sequence[Document]) -> list[Match]:
    """The places of found documents; a child removed meanwhile is left out, what is not a child stands for itself."""
    ids = [doc.id for doc in documents if doc.id]
    places = view.places(ids)
    alone = [key for key in ids if key not in places]
    stored_ids = view.rows(alone) if alone else set()
    matches = []
    seen_ids: set[str] = set()
    for rank, doc in enumerate(documents, start=1):
        place = places.get(doc.id) if doc.id else None
        if place is None and PARENT_KEY in doc.metadata and doc.id not in stored_ids:
            continue
        if doc.id:
            if doc.id in seen_ids:
                continue
            seen_ids.add(doc.id)
        own_score = peek_score(doc)
        score = 1 / rank if own_score is None else own_score
        matches.append(Match(doc, rank, float(score), place))
    return matches


def span_of(parent: Document, start: int, end: int, heading: str | None = None) -> Document:
    """A verbatim span of a document, with the document's metadata and its offsets."""
    shift = offset_in_source(parent.metadata, len(parent.page_content))
    metadata = {**parent.metadata, "start": start + shift, "end": end + shift, PARENT_KEY: parent.id}
    if heading:
        metadata["heading"] = heading
    return Document(
        id=f"{parent.id}#{start}-{end}", page_content=parent.page_content[start:end], metadata=metadata
    )


class FamilyRetriever(FamilyWriter):
    """Search the parts of documents, return what stands around them; arguments as of ``ParentDocumentRetriever``."""

    max_fetch_k: Count = 1000
    stage: str = "parent"

    def _families(self, documents: Sequence[Document]) -> list[Family]:
        return [self._family(document) for document in documents]

    @abstractmethod
    def _family(self, document: Document) -> Family:
        """Cut a document."""

    @abstractmethod
    def _passages(
        self, view: FamilyView, matches: Sequence[Match], k: int, passes: Passes | None
    ) -> list[Passage]:
        """At most k passages, best first; what does not pass is left out."""

    async def _search(self, query: str, call: Call) -> list[Document]:
        """Search children, ever deeper, until they give enough passages or there are no more."""
        max_fetch = max(call.k, self.max_fetch_k)
        fetch = max(call.k, self.fetch_k or max(20, 5 * call.k))
        while True:
            fetch = min(fetch, max_fetch)
            children = await call.search(self._rows, query, fetch)
            more = len(children) >= fetch
            cut = more and fetch == max_fetch
            results: list[Document] = await blocking_step(
                "parents", self._results, query, call, children, cut
            )
            if len(results) >= call.k or cut or not more:
                return results
            fetch *= _GROWTH

    def _results(self, query: str, call: Call, children: list[Document], cut: bool) -> list[Document]:
        """The passages around the children that were found; ``cut``: there may be more children."""
        where = combine_filters(call.filter, own_filter(self._rows, call.config))
        passes = compile_filter(where) if where else None
        with self.index.families() as view:
            passages = self._passages(view, place_matches(view, children), call.k, passes)
        if cut and len(passages) < call.k:
            call.note(
                f"degraded: {len(passages)} of {call.k} passages in the first {len(children)} children; raise "
                "max_fetch_k to look deeper"
            )
        return [
            self._result(passage, rank, query, call.notes) for rank, passage in enumerate(passages, start=1)
        ]

    def _result(self, passage: Passage, rank: int, query: str, notes: Sequence[str]) -> Document:
        """A copy with every matched child in the provenance."""
        inner = [n for match in passage.matches for n in get_provenance(match.document).get("notes", [])]
        return with_provenance(
            passage.document,
            score=passage.score,
            rank=rank,
            stage=self.stage,
            retriever=self.get_name(),
            query=query,
            sources=get_provenance(passage.matches[0].document).get("stages", []),
            notes=[*inner, *notes],
            children=[match.as_dict() for match in passage.matches],
            **passage.extra,
        )


def parents_metadata(view: FamilyView, matches: Sequence[Match]) -> Mapping[str, dict[str, Any]]:
    """Metadata of the documents that matches belong to."""
    return view.metadata(list(dict.fromkeys(match.place.parent for match in matches if match.place)))
