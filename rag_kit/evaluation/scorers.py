"""The metrics by name. A row says which file makes it; ``get_metric("faithfulness")`` imports that file alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.judge.ragas_metric import RagasMetric, is_ragas_metric
from rag_kit.evaluation.judge.ragas_table import ROWS
from rag_kit.evaluation.metric import Metric

if TYPE_CHECKING:
    from rag_kit.evaluation.examples import Example

#: Name -> ``"module:factory"`` below this package. The factory is called with the name; where the name ends in
#: ``@k`` it is called with the name as the user wrote it, such as ``ndcg@10``.
METRICS: dict[str, str] = {
    **dict.fromkeys(ROWS, "judge.ragas_metric:RagasMetric"),
    "hit_rate@k": "ranking.metrics:RankingMetric",
    "mrr": "ranking.metrics:RankingMetric",
    "mrr@k": "ranking.metrics:RankingMetric",
    "map": "ranking.metrics:RankingMetric",
    "map@k": "ranking.metrics:RankingMetric",
    "ndcg": "ranking.metrics:RankingMetric",
    "ndcg@k": "ranking.metrics:RankingMetric",
    "ndcg_exp": "ranking.metrics:RankingMetric",
    "ndcg_exp@k": "ranking.metrics:RankingMetric",
    "precision@k": "ranking.metrics:RankingMetric",
    "recall@k": "ranking.metrics:RankingMetric",
    "ours_answer_found": "ours.answers:AnswerFound",
    "ours_bleu": "ours.overlap:OursBleu",
    "ours_citations": "ours.citations:Citations",
    "ours_citation_precision": "ours.citations:Citations",
    "ours_citation_recall": "ours.citations:Citations",
    "ours_citations_judged": "ours.citations:Citations",
    "ours_citation_precision_judged": "ours.citations:Citations",
    "ours_citation_recall_judged": "ours.citations:Citations",
    "ours_context_relevance": "ours.relevance:ContextRelevance",
    "ours_decline": "ours.answers:Decline",
    "ours_nugget_recall": "ours.nuggets:NuggetRecall",
    "ours_nugget_recall_all": "ours.nuggets:NuggetRecall",
    "ours_nugget_recall_weighted": "ours.nuggets:NuggetRecall",
    "ours_nugget_recall_partial": "ours.nuggets:NuggetRecall",
    "ours_rouge_1": "ours.overlap:OursRouge",
    "ours_rouge_2": "ours.overlap:OursRouge",
    "ours_rouge_l": "ours.overlap:OursRouge",
    "ours_span_recall": "ours.span_recall:span_recall",
    "ours_span_recall@k": "ours.span_recall:span_recall",
    "ours_umbrela": "ours.relevance:Umbrela",
    "ours_umbrela@k": "ours.relevance:Umbrela",
    "ours_umbrela_ndcg": "ours.relevance:Umbrela",
    "ours_umbrela_ndcg@k": "ours.relevance:Umbrela",
}
#: Metrics that went, and what says the same now.
REPLACED = {
    "ours_exact_match": "exact_match, or ours_answer_found for other spellings",
    "ours_string_presence": "ours_answer_found",
    "ours_context_entity_recall": "context_entity_recall",
    "ours_context_relevance_lexical": "ours_context_relevance, which asks a judge",
    "ours_tool_call_accuracy": "tool_call_accuracy",
    "ours_tool_call_accuracy_flexible": "tool_call_accuracy_flexible",
    "ours_tool_call_f1": "tool_call_f1",
    "ours_data_comparison": "data_comparison",
    "ours_data_comparison_columns": "data_comparison_columns",
}
#: What `evaluate` computes where no metrics are named: none of them needs a model.
WITHOUT_MODEL = (
    "ndcg@10", "recall@10", "mrr@10", "ours_span_recall", "ours_citations", "ours_answer_found", "ours_decline",
    "ours_rouge_l",
)  # fmt: skip

_CUTOFF = re.compile(r"@[1-9][0-9]{0,5}$")


def get_metric(metric: Any) -> Metric:
    """The metric of a name; a metric object is given back as it is, one of Ragas's is wrapped.

    Args:
        metric: A name; the name of a class of ``ragas.metrics.collections``; an object of a class derived from
            `Metric`; or an object, a class or a ``partial`` of Ragas's.

    Raises:
        InvalidInputError: If there is none of that name.
        MissingExtraError: If it needs an extra that is not installed.
    """
    if isinstance(metric, Metric):
        return metric
    if is_ragas_metric(metric):
        return RagasMetric(metric)
    name = metric if isinstance(metric, str) else ""
    row = METRICS.get(_CUTOFF.sub("@k", name)) or METRICS.get(name)
    if row is None and name.isidentifier() and name[0].isupper():
        return RagasMetric(name)
    if row is None:
        if name in REPLACED:
            raise InvalidInputError(f"there is no metric {name!r} any more; take {REPLACED[name]}")
        raise InvalidInputError(
            f"unknown metric {metric!r:.80}{_meant(name)}; allowed are {', '.join(METRICS)}, a metric of "
            "ragas.metrics.collections, or an object of a class derived from rag_kit.evaluation.Metric"
        )
    module, _, factory = row.partition(":")
    make: Callable[[str], Metric] = getattr(import_module(f"rag_kit.evaluation.{module}"), factory)
    return make(name)


def _meant(name: str) -> str:
    """``; did you mean ...?`` where a name of the table is near."""
    import difflib

    bare, cutoff, k = name.lower().replace("-", "_").replace(" ", "_").partition("@")
    spelled = f"{bare}@k" if cutoff else bare
    near = difflib.get_close_matches(spelled, [*METRICS], n=1, cutoff=0.7)
    if not near:
        return ""
    meant = near[0].replace("@k", f"@{k or 10}")
    if meant == name:  # a known metric at a cutoff that is none
        return f": {k!r} is no cutoff, give a whole number from 1"
    return f"; did you mean {meant!r}?"


def get_metrics(metrics: Any) -> tuple[Metric, ...]:
    """Several at once.

    Raises:
        InvalidInputError: If one is unknown, one comes twice, or there is none.
    """
    single = isinstance(metrics, (str, Metric)) or is_ragas_metric(metrics)
    if not single and not isinstance(metrics, Iterable):
        raise InvalidInputError(
            f"metrics is {metrics!r:.80}; give names of metrics, or objects of the class Metric"
        )
    found = tuple(get_metric(each) for each in ([metrics] if single else metrics))
    names = [metric.name for metric in found]
    if not names or len(set(names)) != len(names):
        raise InvalidInputError(f"the metrics are {', '.join(names) or 'none'}; give at least one, each once")
    return found


def default_metrics(examples: Sequence[Example]) -> tuple[Metric, ...]:
    """The metrics of `WITHOUT_MODEL` that some of the examples can be scored with."""
    found = map(get_metric, WITHOUT_MODEL)
    return tuple(each for each in found if any(one.needs_met(each.example_needs) for one in examples))
