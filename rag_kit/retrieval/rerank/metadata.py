"""Reranking by what metadata says, beside the score."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from langchain_core.documents import Document

from rag_kit.documents.identity import document_key
from rag_kit.documents.provenance import peek_score
from rag_kit.errors import InvalidInputError
from rag_kit.retrieval.base import check_number
from rag_kit.retrieval.convex import check_normalisation, normalise
from rag_kit.retrieval.query_call import QueryCall
from rag_kit.retrieval.rerank.base import Ranking, Reranker, by_scores
from rag_kit.retrieval.rerank.signals import Signal


class MetadataReranker(Reranker):
    """Combine the score that passages come with and signals from their metadata; lower what was shown already.

    The new score is the weighted mean of the normalised score (weight ``score_weight``) and the signals (each from 0
    to 1, with its own weight), minus ``shown_penalty`` for a passage that was shown already. The parts stand
    in the provenance.

    Args:
        signals: ``Recency``, ``Authority`` or your own ``Signal``.
        score_weight: Weight of the normalised score, 0 or more.
        normalisation: How the scores are brought to one scale: ``"min-max"`` (0 to 1), ``"z-score"`` or ``"maximum"``
            (see ``rag_kit.retrieval.convex``). Passages without scores count by rank, and a note says so.
        shown: Ids of passages that were shown already, or a function without arguments that gives them. Those of the
            call, ``retriever.invoke(query, shown=[...])``, are added.
        shown_penalty: What is taken off the new score of these, 0 or more; the new score is at most 1 with min-max.
        depth: See ``Reranker``.

    Example:
        >>> from rag_kit.retrieval import BM25Retriever, RerankRetriever
        >>> words = BM25Retriever.from_texts(["old fan", "new fan"], [{"year": 1990}, {"year": 2025}])
        >>> from rag_kit.retrieval.rerank.signals import Recency
        >>> newest = MetadataReranker([Recency(field="year", half_life=3650, now=2026)])
        >>> ranked = RerankRetriever(retriever=words, reranker=newest)
        >>> [doc.page_content for doc in ranked.invoke("fan")]
        ['new fan', 'old fan']
    """

    name = "metadata"

    def __init__(
        self,
        signals: Sequence[Signal] = (),
        *,
        score_weight: float = 1.0,
        normalisation: str = "min-max",
        shown: Iterable[str] | Callable[[], Iterable[str]] = (),
        shown_penalty: float = 0.5,
        depth: int | None = None,
    ) -> None:
        super().__init__(depth=depth)
        self.signals = list(signals)
        for signal in self.signals:
            if not isinstance(signal, Signal):
                raise InvalidInputError(
                    f"signals holds {type(signal).__name__}; each must be a Signal, such as Recency(field='date')."
                )
        self.score_weight = check_number("score_weight", score_weight)
        if self.score_weight + sum(signal.weight for signal in self.signals) <= 0:
            raise InvalidInputError(
                "score_weight is 0 and there is no signal, so there is nothing to rank by."
            )
        self.normalisation = check_normalisation(normalisation)
        self.shown = shown if callable(shown) else _ids(shown)
        self.shown_penalty = check_number("shown_penalty", shown_penalty)

    async def rank(self, query: str, documents: Sequence[Document], call: QueryCall) -> Ranking:
        """Order the documents; see ``Reranker.rank``."""
        shown = _ids(self.shown() if callable(self.shown) else self.shown)
        shown |= _ids(call.request.extra.get("shown") or ())
        scaled = normalise([peek_score(doc) for doc in documents], self.normalisation)
        names = [f"{signal.name}:{signal.field}" for signal in self.signals]
        weights = [self.score_weight, *(signal.weight for signal in self.signals)]
        scores: list[float] = []
        details: list[dict[str, Any]] = []
        for doc, base in zip(documents, scaled.values, strict=True):
            values = [base, *(_value(signal, doc) for signal in self.signals)]
            mean = sum(weight * value for weight, value in zip(weights, values, strict=True)) / sum(weights)
            seen = document_key(doc, call.owner.id_key) in shown
            scores.append(mean - (self.shown_penalty if seen else 0.0))
            parts = dict(zip(["score", *names], values, strict=True))
            detail = {"parts": parts, "normalisation": self.normalisation}
            details.append({**detail, "shown": True} if seen else detail)
        notes = [f"rerank:{self.name}: {scaled.note}"] if scaled.note and self.score_weight else []
        return by_scores(scores, details=details, notes=notes)


def _value(signal: Signal, doc: Document) -> float:
    found = signal.value(doc)
    return signal.missing if found is None else check_number(f"the value of {signal.name}", found, most=1.0)


def _ids(value: Any) -> set[str]:
    """Ids of documents; one text alone is a likely slip."""
    if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
        raise InvalidInputError(f"shown={value!r} was given; it must be a list of document ids.")
    ids = set(value)
    if bad := next((item for item in ids if not isinstance(item, str)), None):
        raise InvalidInputError(f"shown holds {bad!r}; document ids are texts.")
    return ids
