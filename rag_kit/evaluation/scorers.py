"""The metrics by name. A row says which file makes it; ``get_metric("faithfulness")`` imports that file alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import Any

from rag_kit.documents.fields import did_you_mean
from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.judge.adapter import is_ragas_metric
from rag_kit.evaluation.judge.ragas_table import ROWS
from rag_kit.evaluation.metric import Metric
from rag_kit.evaluation.ragas_metric import RagasMetric

#: ``"module:factory"`` below this package -> names of its metrics. The factory is called with the name; where the
#: name ends in ``@k`` with the name as the user wrote it, such as ``ndcg@10``.
_FAMILIES: dict[str, Iterable[str]] = {
    "ragas_metric:RagasMetric": ROWS,
    "ranking.metrics:RankingMetric": (
        "hit_rate@k", "mrr", "mrr@k", "map", "map@k", "ndcg", "ndcg@k", "precision@k", "recall@k",
    ),
    "ours.answers:AnswerFound": ("ours_answer_found",),
    "ours.answers:Decline": ("ours_decline",),
    "ours.citations:Citations": (
        "ours_citations", "ours_citation_precision", "ours_citation_recall", "ours_citations_judged"),
    "ours.context_relevance:ContextRelevance": ("ours_context_relevance",),
    "ours.overlap:OursBleu": ("ours_bleu",),
    "ours.overlap:OursRouge": ("ours_rouge_1", "ours_rouge_2", "ours_rouge_l"),
    "ours.span_recall:span_recall": ("ours_span_recall", "ours_span_recall@k"),
}  # fmt: skip
METRICS = {name: factory for factory, names in _FAMILIES.items() for name in names}
#: What `evaluate` computes where no metrics are named: none of them needs a model.
WITHOUT_MODEL = (
    "ndcg@10", "recall@10", "mrr@10", "ours_span_recall", "ours_citations", "ours_answer_found", "ours_decline",
    "ours_rouge_l",
)  # fmt: skip

_CUTOFF = re.compile(r"@[1-9][0-9]{0,5}$")


def get_metric(metric: Any) -> Metric:
    """Return the metric of a name; a metric object is returned as it is, one of Ragas's is wrapped.

    Args:
        metric: A name; the name of a class of ``ragas.metrics.collections``; an object of a subclass of `Metric`; or
            an object, a class or a ``partial`` of Ragas's.

    Raises:
        InvalidInputError: If there is none of that name.
        MissingExtraError: If it needs an extra that is not installed.
    """
    if isinstance(metric, Metric):
        return metric
    if is_ragas_metric(metric):
        return RagasMetric(metric)
    name = metric if isinstance(metric, str) else ""
    row = METRICS.get(_CUTOFF.sub("@k", name)) or METRICS.get(name)  # "ndcg@10" is in the table as "ndcg@k"
    if row is None and name.isidentifier() and name[0].isupper():
        return RagasMetric(name)
    if row is None:
        raise InvalidInputError(
            f"unknown metric {metric!r:.80}{did_you_mean(name.lower(), METRICS)}; allowed are {', '.join(METRICS)}, a "
            "metric of ragas.metrics.collections, or an object of a class derived from rag_kit.evaluation.metric.Metric"
        )
    module, _, factory = row.partition(":")
    make: Callable[[str], Metric] = getattr(import_module(f"rag_kit.evaluation.{module}"), factory)
    return make(name)


def get_metrics(metrics: Any) -> tuple[Metric, ...]:
    """Return the metrics of one or several names or objects; refuse none, and one that comes twice."""
    if not isinstance(metrics, (list, tuple, set, frozenset)):
        metrics = [metrics]
    objects = tuple(map(get_metric, metrics))
    names = [metric.name for metric in objects]
    if not names or len(set(names)) != len(names):
        raise InvalidInputError(f"the metrics are {', '.join(names) or 'none'}; give at least one, each once")
    return objects


def default_metrics(examples: Sequence[Example]) -> tuple[Metric, ...]:
    """Return the metrics of `WITHOUT_MODEL` for which at least one example has what they need."""
    metrics = [get_metric(name) for name in WITHOUT_MODEL]
    return tuple(m for m in metrics if not all(example.missing(m.example_needs) for example in examples))
