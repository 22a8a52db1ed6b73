"""Ranking metrics by ir-measures (trec_eval): of a whole run, and of one question."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

from rag_kit.errors import InvalidInputError, MissingExtraError
from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.judge.judge import Judge
from rag_kit.evaluation.metric import Metric, Source, Stage
from rag_kit.evaluation.outputs import DOCUMENT_IDS, Output, Passage

#: What the benchmark measures.
DEFAULT_METRICS = ("ndcg@10", "recall@10", "recall@100", "mrr@10", "map", "hit_rate@1", "hit_rate@10")
_MEASURES = {
    "hit_rate": "Success", "map": "AP", "mrr": "RR", "ndcg": "nDCG", "precision": "P", "recall": "R"
}  # fmt: skip
_NEEDS_CUTOFF = ("hit_rate", "precision", "recall")
_NAME = re.compile(r"([a-z_]+)(?:@([1-9][0-9]{0,5}))?")  # "ndcg@10" -> "ndcg", "10"; "map" -> "map", None
_MAX_MISSED = 20  # ids in the details of a cell


def retrieval_metrics(
    run: Mapping[str, Sequence[str]],
    qrels: Mapping[str, Mapping[str, int]],
    metrics: Iterable[str] = DEFAULT_METRICS,
) -> dict[str, dict[str, float]]:
    """Score rankings against relevance judgements: query id -> metric -> value from 0 to 1, as the judgements go.

    A query that the run lacks scores 0; one without a relevant document cannot be scored and is left out. nDCG has
    linear gains (trec_eval; Järvelin and Kekäläinen, 2002). ``map`` looks at the whole ranking.

    Args:
        run: Query id -> document ids, best first. Of a document that comes twice the first rank counts.
        qrels: Query id -> document id -> grade; above 0 is relevant.
        metrics: Names such as ``"ndcg@10"``: ndcg, mrr and map, which may have a rank, recall, precision and hit_rate,
            which must.

    Raises:
        InvalidInputError: If a metric is unknown or no query can be scored.
        MissingExtraError: If ir-measures is not installed.

    Example:
        >>> retrieval_metrics({"q1": ["b", "a"]}, {"q1": {"a": 1}}, ["mrr@10", "hit_rate@1"])
        {'q1': {'mrr@10': 0.5, 'hit_rate@1': 0.0}}
    """
    require_ir_measures()
    import ir_measures

    names: dict[Any, str] = {}  # measure of ir-measures -> name of the metric: nDCG@10 -> "ndcg@10"
    for name in metrics:
        base, cutoff = _split_name(name)
        measure = getattr(ir_measures, _MEASURES[base])
        names[measure @ int(cutoff) if cutoff else measure] = name
    judged = {query: dict(grades) for query, grades in qrels.items() if max(grades.values(), default=0) > 0}
    if not judged:
        raise InvalidInputError("no query has a relevant document; give qrels with a grade above 0")
    # trec_eval sorts by score and breaks ties by id, so the rank itself, negated, is the score
    scored: dict[str, dict[str, float]] = {}
    for query in judged:
        distinct = dict.fromkeys(run.get(query, ()))
        scored[query] = {document: -float(rank) for rank, document in enumerate(distinct)}
    rows = {query: dict.fromkeys(names.values(), 0.0) for query in judged}
    for result in ir_measures.iter_calc(list(names), judged, scored) if names else ():
        rows[result.query_id][names[result.measure]] = float(result.value)
    return rows


def qrels(examples: Iterable[Example]) -> dict[str, dict[str, int]]:
    """Return id -> document id -> grade, for the examples with a relevant document: others cannot be scored."""
    judged = (example for example in examples if max(example.relevant.values(), default=0) > 0)
    return {example.id: dict(example.relevant) for example in judged}


def require_ir_measures() -> None:
    """Raise `MissingExtraError` where ir-measures is not installed, without the half second that importing it takes."""
    if find_spec("ir_measures") is None:
        raise MissingExtraError("eval", "Scoring a ranking (recall@10, ndcg@10, ...)")


def _split_name(name: Any) -> tuple[str, str | None]:
    """Split ``ndcg@10`` into name and rank (``None`` if there is no rank); refuse an unknown metric."""
    match = _NAME.fullmatch(name) if isinstance(name, str) else None
    base, rank = (match[1], match[2]) if match else ("", None)
    if base not in _MEASURES or (base in _NEEDS_CUTOFF and not rank):
        raise InvalidInputError(
            f"unknown ranking metric {name!r:.80}; allowed are ndcg, ndcg@K, recall@K, precision@K, mrr, mrr@K, map, "
            "map@K and hit_rate@K with a whole number K from 1"
        )
    return base, rank


class RankingMetric(Metric):
    """One ranking metric of one question; the mean over questions is what `retrieval_metrics` gives.

    The passages' ids are compared with ``example.relevant``. A passage counts when its own id or its document's id
    is judged relevant; `ranked_ids` says what several passages of one document are. ``precision@k`` divides by k also
    where fewer came back.
    """

    source: Source = "ir_measures"
    stage: Stage = "retrieval"
    example_needs = frozenset({"relevant"})
    output_needs = frozenset({"passages"})

    def __init__(self, name: str) -> None:
        _split_name(name)
        require_ir_measures()
        self.name = name

    async def score(self, example: Example, output: Output, judge: Judge | None) -> Cell:
        """Return the metric's value for one question; not applicable if no id is relevant."""
        relevant = [key for key, grade in example.relevant.items() if grade > 0]
        if not relevant:
            return Cell.not_applicable("the example has no relevant id with a grade above 0")
        ranking = ranked_ids(output.passages or (), example.relevant)
        scores = retrieval_metrics({example.id: ranking}, {example.id: example.relevant}, [self.name])
        ranks = {key: rank for rank, key in enumerate(ranking, start=1) if key in relevant}
        missed = [key for key in relevant if key not in ranks]
        positions = ", ".join(map(str, ranks.values()))
        reason = f"relevant at rank {positions}" if ranks else "nothing relevant found"
        return Cell.ok(
            scores[example.id][self.name], reason,
            relevant_at=ranks, missed=missed[:_MAX_MISSED], relevant=len(relevant), ranked=len(ranking),
        )  # fmt: skip

    def settings(self) -> dict[str, Any]:
        """The version of ir-measures that computes the score."""
        return {"ir_measures": version("ir-measures")}


def ranked_ids(passages: Sequence[Passage], judged: Collection[str]) -> list[str]:
    """Return the ids to score, best first, each once: one for each passage, a judged one if it has one.

    A passage is known by its own id where that is judged, else by the first id of its document that is judged and
    not yet taken; a document's id is what its metadata hold below ``corpus_id``, ``parent_id``, ``doc_id``,
    ``source_id`` or ``file``. So judgements may be about chunks, documents, or both. Where documents are judged,
    several passages of one document are one rank, that of the best, as published tables score it.

    Example:
        >>> found = [Passage("x#1", "", {"doc_id": "x"}), Passage("x#2", "", {"doc_id": "x"}),
        ...          Passage("a#7", "", {"doc_id": "a"})]
        >>> ranked_ids(found, {"a"}), ranked_ids(found, {"x#2"})
        (['x', 'a'], ['x#1', 'x#2', 'a#7'])
    """
    # the keys of metadata below which some passage has a judged document: they name documents without a judgement, too
    fields = []
    for field in DOCUMENT_IDS:
        values = {str(passage.metadata.get(field) or "") for passage in passages if passage.id not in judged}
        if not values.isdisjoint(judged):
            fields.append(field)
    ranking: dict[str, None] = {}  # an ordered set
    for passage in passages:
        candidates = [key for key in passage.ids if key in judged]
        if not candidates:
            document_ids = (str(passage.metadata[field]) for field in fields if passage.metadata.get(field))
            candidates = [next(document_ids, passage.id)]
        not_taken = [key for key in candidates if key not in ranking]
        if not_taken:
            ranking[not_taken[0]] = None
    return list(ranking)
