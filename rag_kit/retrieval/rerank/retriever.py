"""Reorder what another retriever found, and keep as much of it as the question needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar, Unpack

from langchain_core.documents import Document
from langchain_core.runnables import Runnable
from pydantic import BeforeValidator, Field, field_validator, model_validator

from rag_kit.documents.provenance import peek_score
from rag_kit.errors import InvalidInputError, ModelOutputError
from rag_kit.models.replies import estimate_tokens
from rag_kit.retrieval.base import RefiningRetriever
from rag_kit.retrieval.call import Call
from rag_kit.retrieval.convex import standardise
from rag_kit.retrieval.fields import OptionalCount, check_count
from rag_kit.retrieval.rerank.base import DocumentCompressor, Ranking, Reranker, by_scores
from rag_kit.retrieval.rerank.model import ListwiseReranker, PointwiseReranker
from rag_kit.retrieval.rerank.scorers import as_rerankers
from rag_kit.retrieval.settings import RerankSettings
from rag_kit.text.language import detect_language

T = TypeVar("T")
_FETCH_FACTOR, _MIN_FETCH, _MAX_FETCH = 5, 20, 100  # candidates: times k, and at least, at most
_BLEND_DEPTH = 20  # passages whose scores are blended
_DROP_DIGITS = 9  # after the point, of a drop of the score


@dataclass(frozen=True)
class ScoreGap:
    """Cuts where the scores drop most: few passages for a narrow question, many for a broad one.

    The cut is after ``min_k`` to ``max_k`` passages, where the drop to the next score is largest; of equal drops, at
    the later one. Where no score drops, ``max_k`` passages stay.

    Args:
        min_k: Fewest passages, at least 1.
        max_k: Most passages; ``None`` for the retriever's ``k``, which is never exceeded.

    Example:
        >>> ScoreGap().cut([0.93, 0.90, 0.41, 0.40, 0.38], 4)
        2
    """

    min_k: int = 1
    max_k: int | None = None

    def __post_init__(self) -> None:
        check_count("min_k", self.min_k)
        if self.max_k is not None and check_count("max_k", self.max_k) < self.min_k:
            raise InvalidInputError(
                f"min_k={self.min_k} and max_k={self.max_k} were given; max_k must be at least min_k."
            )

    def cut(self, scores: Sequence[float], k: int) -> int:
        """Return how many passages to keep, at most ``k``, by their scores, best first."""
        max_count = min(k, len(scores), self.max_k or k)
        best_count, largest_drop = max_count, 0.0
        for count in range(min(self.min_k, max_count), min(max_count, len(scores) - 1) + 1):
            # from the last passage kept to the first one cut; rounded, so that equal drops stay equal
            drop = round(scores[count - 1] - scores[count], _DROP_DIGITS)
            if drop > 0 and drop >= largest_drop:
                best_count, largest_drop = count, drop
        return best_count


class RerankRetriever(RefiningRetriever):
    """Ask a retriever for more than is needed, put the best first with one or more rerankers, and cut.

    What happens, in this order: the rerankers, one after the other; ``score_threshold``; ``score_gap``;
    ``token_budget`` and ``k``; ``lost_in_the_middle``. Each reranker leaves a stage ``rerank:<name>`` in the
    provenance, with the rank and the score before. If one fails, the order stays as it was, threshold and gap
    (which would be applied to other scores) are not applied, and the notes say so ("degraded: ...").

    Args:
        retriever: Any LangChain retriever, or another runnable from a string to documents.
        reranker: A reranker of ``rag_kit.retrieval.rerank``, a LangChain cross-encoder or document compressor
            (Cohere's, Jina's...), an embedding model, a function of query and documents that gives scores, or a list
            of these, applied in turn. A document compressor may drop documents (``top_n``); the notes say so.
            ``"cross-encoder"`` and ``"colbert-small"`` name models that ``rag-kit models install`` fetches; they read
            English, and leave the order of a question in another language as it is, with a note.
        k: Most documents to return.
        fetch_k: How many candidates the inner retriever is asked for; ``None`` for five times ``k`` (20 to 100).
        blend: Above 0, to 1: the share of the reranker's score, the score before has the rest, both as z-scores over
            the first 20 passages (or the reranker's ``depth``), which alone are reordered. None: the reranker decides.
        max_query_tokens: A longer question (by the kit's estimate) is not reranked, and a note says so; rerankers read
            a few hundred tokens, and long questions are found well by their many words.
        score_threshold: Passages whose last score is lower are left out; one that could not be judged stays.
        score_gap: ``True``, or ``ScoreGap(...)``: keep the passages before the largest drop of the scores.
        token_budget: Most tokens of all texts together; passages that do not fit are left out, later ones may fit.
        count_tokens: Counts the tokens of a text; ``None`` for the kit's estimate.
        lost_in_the_middle: Put the best at both ends of the list, the weakest in the middle; the ranks stay.
        **more: ``filter``, ``on_error``, ``timeout``, ``deadline``, ``max_calls``...: see ``RefiningRetriever``.

    A call takes ``k``, ``filter`` and ``shown``, ids that a ``MetadataReranker`` is to lower.

    Raises:
        InvalidInputError: On construction, for arguments that are unknown or not allowed.
        BranchError: On call, if the inner retriever fails, or (``on_error="raise"``) a reranker.

    Example:
        >>> from rag_kit.retrieval import BM25Retriever
        >>> words = BM25Retriever.from_texts(["fan fan fan", "a loud fan"])
        >>> def loud(query, documents):
        ...     return [float("loud" in doc.page_content) for doc in documents]
        >>> ranked = RerankRetriever(retriever=words, reranker=loud, score_threshold=0.5)
        >>> [doc.page_content for doc in ranked.invoke("fan")]
        ['a loud fan']
    """

    call_arguments: ClassVar[frozenset[str]] = frozenset({"shown"})
    other_names: ClassVar[Mapping[str, str]] = {"base_compressor": "reranker"}

    reranker: Annotated[Any, BeforeValidator(as_rerankers)]
    blend: float | None = Field(default=None, gt=0.0, le=1.0)
    max_query_tokens: OptionalCount = None
    score_threshold: float | None = Field(default=None, allow_inf_nan=False)
    score_gap: ScoreGap | bool | None = None
    token_budget: OptionalCount = None
    count_tokens: Callable[[str], int] | None = None
    lost_in_the_middle: bool = False

    @classmethod
    def from_llm(
        cls,
        llm: Runnable[Any, Any],
        retriever: Any,
        *,
        mode: Literal["pointwise", "listwise"] = "listwise",
        prompt: Any = None,
        **settings: Unpack[RerankSettings],
    ) -> Self:
        """Make the retriever with a model that orders 20 passages in one call or, ``"pointwise"``, scores each."""
        if mode not in ("pointwise", "listwise"):
            raise InvalidInputError(f"mode={mode!r} was given; allowed: 'pointwise', 'listwise'.")
        reranker_class = PointwiseReranker if mode == "pointwise" else ListwiseReranker
        return cls(retriever=retriever, reranker=reranker_class(llm, prompt=prompt), **settings)

    @field_validator("score_gap")
    @classmethod
    def _make_gap(cls, value: ScoreGap | bool | None) -> ScoreGap | None:
        return ScoreGap() if value is True else value or None

    @model_validator(mode="after")
    def _check_scored(self) -> Self:
        for reranker in self.reranker:
            gives_scores = isinstance(reranker, Reranker) and reranker.scored
            if self.blend is not None and not gives_scores:
                raise InvalidInputError(
                    f"blend={self.blend:g} was given, but {reranker.name} gives no scores that could be blended; "
                    "allowed are a cross-encoder, an embedding model, a function, PointwiseReranker. Leave blend out."
                )
        last = self.reranker[-1]
        for name in ("score_threshold", "score_gap"):
            if getattr(self, name) is not None and not last.scored:
                raise InvalidInputError(
                    f"{name} was given, but the last reranker ({last.name}) gives an order without scores. Leave it "
                    "out, or put a reranker with scores last."
                )
        return self

    def _fetch_size(self, k: int) -> int:
        return min(max(_MIN_FETCH, _FETCH_FACTOR * k), _MAX_FETCH)

    async def _refine(self, documents: list[Document], call: Call) -> list[Document]:
        """Rerank by each reranker in turn, cut by score, fit the budget, and order for the model."""
        unjudged: set[int] | None = None  # positions of passages without a verdict; None: reranking failed
        for reranker in self.reranker:
            documents, unjudged = await self._rerank(reranker, documents, call)
            if not documents:
                return []
        if unjudged is not None:
            documents = self._cut_by_threshold(documents, unjudged, call)
            documents = self._cut_at_gap(documents, call)
        elif self.score_threshold is not None or self.score_gap is not None:
            call.note("score_threshold and score_gap were not applied: the reranking failed")
        documents = self._first_within_budget(documents, call)
        if self.lost_in_the_middle and len(documents) > 2:
            call.note("order: the best passages first and last, the weakest in the middle")
            documents = lost_in_the_middle(documents)
        return documents

    async def _rerank(
        self, reranker: Reranker | DocumentCompressor, documents: list[Document], call: Call
    ) -> tuple[list[Document], set[int] | None]:
        """Return the documents in the order of one reranker, and the positions in it that were not judged.

        If the reranker fails or does not suit the question, the documents come back as they were, with ``None``.
        """
        stage, instead = f"rerank:{reranker.name}", "the order stays as it was"
        if isinstance(reranker, DocumentCompressor):
            work = reranker.compressed(documents, call, stage="rerank")
            compressed = await call.attempt(stage, work, instead)
            if compressed is None:
                return documents, None
            return compressed, {n for n, doc in enumerate(compressed) if peek_score(doc) is None}
        if (reason := self._why_unsuitable(reranker, call.query)) is not None:
            call.note(f"{stage} left out: {reason}")
            return documents, None
        head = documents[: reranker.depth or (_BLEND_DEPTH if self.blend is not None else None)]
        ranking = await call.attempt(stage, self._rank_head(reranker, head, call), instead)
        if ranking is None:
            return documents, None
        for note in ranking.notes:
            call.note(note)
        ranked = []
        unjudged = set()
        new_order = [*ranking.order, *range(len(head), len(documents))]  # documents behind the head stay
        for new_position, position in enumerate(new_order):
            doc = documents[position]
            if position >= len(head):
                score, details = None, {"judged": False}
            else:
                score = ranking.scores[position]
                details = ranking.details[position] if ranking.details else {}
            before = {"score_before": peek_score(doc), "rank_before": position + 1}
            ranked.append(call.with_stage(doc, stage, new_position + 1, score, **before, **details))
            if position in ranking.failed:
                unjudged.add(new_position)
        return ranked, unjudged

    async def _rank_head(self, reranker: Reranker, head: Sequence[Document], call: Call) -> Ranking:
        """Rank the first documents, and blend in their scores so far if ``blend`` is set; refuse a faulty ranking."""
        ranking = await reranker.rank(call.query, head, call)
        if sorted(ranking.order) != list(range(len(head))) or len(ranking.scores) != len(head):
            raise ModelOutputError(
                f"The ranking of {len(head)} documents holds {len(ranking.order)} positions and {len(ranking.scores)} "
                "scores; it must hold each document exactly once."
            )
        return ranking if self.blend is None else blended(head, ranking, self.blend)

    def _why_unsuitable(self, reranker: Reranker, query: str) -> str | None:
        """Return why a reranker cannot judge this question; ``None`` if it can."""
        limit, size = self.max_query_tokens, estimate_tokens(query)
        if limit is not None and size > limit:
            return f"the question has about {size} tokens, more than max_query_tokens={limit}"
        english_only = getattr(getattr(reranker, "model", None), "english_only", False)
        return "it reads English only" if english_only and detect_language(query) != "en" else None

    def _cut_by_threshold(self, documents: list[Document], unjudged: set[int], call: Call) -> list[Document]:
        """Leave out passages that score below the threshold; those at ``unjudged`` positions stay."""
        threshold = self.score_threshold
        if threshold is None:
            return documents
        kept = []
        for position, doc in enumerate(documents):
            score = peek_score(doc)
            if position in unjudged or (score is not None and score >= threshold):
                kept.append(doc)
        if dropped := len(documents) - len(kept):
            call.note(f"{dropped} of {len(documents)} passages below score_threshold={threshold:g} left out")
        return kept

    def _cut_at_gap(self, documents: list[Document], call: Call) -> list[Document]:
        """Leave out the passages behind the largest drop from one score to the next, with a note."""
        if not isinstance(self.score_gap, ScoreGap):
            return documents
        scored = [(n, score) for n, doc in enumerate(documents) if (score := peek_score(doc)) is not None]
        count = self.score_gap.cut([score for _, score in scored], call.k)
        if not 0 < count < len(scored):  # nothing is cut
            return documents
        last_position, last_score = scored[count - 1]
        next_score = scored[count][1]
        kept = documents[: last_position + 1]
        if last_score > next_score:
            drop = f"a drop of the score from {last_score:.3g} to {next_score:.3g}"
            call.note(f"{len(documents) - len(kept)} passages after {drop} left out")
        return kept

    def _first_within_budget(self, documents: list[Document], call: Call) -> list[Document]:
        """Return the first k passages that fit into the token budget."""
        if self.token_budget is None:
            return documents[: call.k]
        room = self.token_budget
        count_tokens = self.count_tokens or estimate_tokens
        chosen: list[Document] = []
        dropped_count = 0
        for doc in documents:
            if len(chosen) == call.k:
                break
            size = count_tokens(doc.page_content)
            if size <= room:
                room -= size
                chosen.append(doc)
            else:
                dropped_count += 1
        if dropped_count:
            limit = f"token_budget={self.token_budget}"
            call.note(f"{dropped_count} passages left out that did not fit into {limit}")
        return chosen


def blended(documents: Sequence[Document], ranking: Ranking, share: float) -> Ranking:
    """Rank by the mean of two z-scores: of the reranker's score, with weight ``share``, and of the score before."""
    before = standardise([peek_score(document) for document in documents])
    judged = [position for position, score in enumerate(ranking.scores) if score is not None]
    reranked = standardise([ranking.scores[position] for position in judged])
    scores: list[float | None] = [None] * len(documents)
    for position, z_score in zip(judged, reranked.values, strict=True):
        scores[position] = (1 - share) * before.values[position] + share * z_score
    details = []
    for position, score in enumerate(ranking.scores):
        detail = ranking.details[position] if ranking.details else {}
        details.append({**detail, "reranker_score": score})
    notes = list(ranking.notes)
    if before.note:
        notes.append(f"blend: {before.note}")
    return by_scores(scores, details=details, notes=notes)


def lost_in_the_middle(items: Sequence[T]) -> list[T]:
    """Put the best at both ends and the weakest in the middle, where models read least.

    Paper: Liu et al., Lost in the Middle, arXiv 2307.03172.

    Example:
        >>> lost_in_the_middle([1, 2, 3, 4, 5])
        [1, 3, 5, 4, 2]
    """
    return [*items[::2], *reversed(items[1::2])]  # every second item, then the others backwards
