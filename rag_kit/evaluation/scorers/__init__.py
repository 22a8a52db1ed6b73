"""The metrics by name. A row says which file makes it; ``get_metric("faithfulness")`` imports that file alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.metric import Metric

if TYPE_CHECKING:
    from collections.abc import Callable

#: Name -> ``"module:factory"`` below this package. The factory is called with the name; where the name ends in
#: ``@k`` it is called with the name as the user wrote it, such as ``ndcg@10``.
METRICS: dict[str, str] = {
    "faithfulness": "ragas_judged.metrics:judged",
    "answer_relevancy": "ragas_judged.metrics:judged",
    "context_precision": "ragas_judged.metrics:judged",
    "context_precision_without_reference": "ragas_judged.metrics:judged",
    "context_recall": "ragas_judged.metrics:judged",
    "answer_correctness": "ragas_judged.metrics:judged",
    "factual_correctness": "ragas_judged.metrics:judged",
    "semantic_similarity": "ragas_judged.metrics:judged",
    "hit_rate@k": "ranking.metric:ranking",
    "mrr": "ranking.metric:ranking",
    "mrr@k": "ranking.metric:ranking",
    "map": "ranking.metric:ranking",
    "map@k": "ranking.metric:ranking",
    "ndcg": "ranking.metric:ranking",
    "ndcg@k": "ranking.metric:ranking",
    "ndcg_exp": "ranking.metric:ranking",
    "ndcg_exp@k": "ranking.metric:ranking",
    "precision@k": "ranking.metric:ranking",
    "recall@k": "ranking.metric:ranking",
    "ours_answer_found": "ours.answer_found:answer_found",
    "ours_citations": "ours.citations:citations",
    "ours_citation_precision": "ours.citations:citations",
    "ours_citation_recall": "ours.citations:citations",
    "ours_citations_judged": "ours.judged_citations:judged_citations",
    "ours_citation_precision_judged": "ours.judged_citations:judged_citations",
    "ours_citation_recall_judged": "ours.judged_citations:judged_citations",
    "ours_context_entity_recall": "ours.entities:entity_recall",
    "ours_context_relevance": "ours.context_relevance:context_relevance",
    "ours_context_relevance_lexical": "ours.context_relevance:context_relevance",
    "ours_decline": "ours.decline:decline",
    "ours_nugget_recall": "ours.nuggets:nugget_recall",
    "ours_nugget_recall_all": "ours.nuggets:nugget_recall",
    "ours_nugget_recall_weighted": "ours.nuggets:nugget_recall",
    "ours_nugget_recall_partial": "ours.nuggets:nugget_recall",
    "ours_span_recall": "ours.span_recall:span_recall",
    "ours_span_recall@k": "ours.span_recall:span_recall",
    "ours_umbrela": "ours.umbrela:umbrela",
    "ours_umbrela@k": "ours.umbrela:umbrela",
    "ours_umbrela_ndcg": "ours.umbrela:umbrela",
    "ours_umbrela_ndcg@k": "ours.umbrela:umbrela",
    "bleu": "ragas_more.texts:bleu",
    "rouge_1": "ragas_more.texts:rouge",
    "rouge_2": "ragas_more.texts:rouge",
    "rouge_l": "ragas_more.texts:rouge",
    "chrf": "ragas_more.texts:chrf",
    "exact_match": "ragas_more.texts:exact_match",
    "string_presence": "ragas_more.texts:string_presence",
    "string_similarity": "ragas_more.texts:string_similarity",
    "tool_call_accuracy": "ragas_more.tools:tool_call_accuracy",
    "tool_call_accuracy_flexible": "ragas_more.tools:tool_call_accuracy",
    "tool_call_f1": "ragas_more.tools:tool_call_f1",
    "data_comparison": "ragas_more.tables:data_comparison",
    "data_comparison_columns": "ragas_more.tables:data_comparison",
    "context_entity_recall": "ragas_more.entities:ContextEntityRecall",
    "noise_sensitivity": "ragas_more.noise:noise_sensitivity",
    "noise_sensitivity_irrelevant": "ragas_more.noise:noise_sensitivity",
    "response_groundedness": "ragas_more.groundedness:ResponseGroundedness",
    "agent_goal_accuracy": "ragas_more.agents:agent_goal_accuracy",
    "agent_goal_accuracy_without_reference": "ragas_more.agents:agent_goal_accuracy",
    "topic_adherence": "ragas_more.agents:TopicAdherence",
    "sql_equivalence": "ragas_more.sql:SqlEquivalence",
    "rubrics": "ragas_more.rubrics:rubrics",
    "rubrics_with_reference": "ragas_more.rubrics:rubrics",
    "instance_rubrics": "ragas_more.rubrics:InstanceRubrics",
    "ours_bleu": "ours_text.texts:ours_bleu",
    "ours_rouge_1": "ours_text.texts:ours_rouge",
    "ours_rouge_2": "ours_text.texts:ours_rouge",
    "ours_rouge_l": "ours_text.texts:ours_rouge",
    "ours_exact_match": "ours_text.texts:ours_exact_match",
    "ours_string_presence": "ours_text.texts:ours_string_presence",
    "ours_tool_call_accuracy": "ours_text.tools:ours_tool_call_accuracy",
    "ours_tool_call_accuracy_flexible": "ours_text.tools:ours_tool_call_accuracy",
    "ours_tool_call_f1": "ours_text.tools:ours_tool_call_f1",
    "ours_data_comparison": "ours_text.tables:ours_data_comparison",
    "ours_data_comparison_columns": "ours_text.tables:ours_data_comparison",
}

_CUTOFF = re.compile(r"@[1-9][0-9]{0,5}$")


def get_metric(metric: str | Metric) -> Metric:
    """The metric of a name; a metric object is given back as it is.

    Raises:
        InvalidInputError: If there is none of that name.
        MissingExtraError: If it needs an extra that is not installed.
    """
    if isinstance(metric, Metric):
        return metric
    name = metric if isinstance(metric, str) else ""
    row = METRICS.get(_CUTOFF.sub("@k", name)) or METRICS.get(name)
    if row is None:
        raise InvalidInputError(
            f"unknown metric {metric!r:.80}{_meant(name)}; allowed are {', '.join(METRICS)}, or an object of a class "
            "derived from rag_kit.evaluation.Metric"
        )
    module, _, factory = row.partition(":")
    make: Callable[[str], Metric] = getattr(import_module(f"{__name__}.{module}"), factory)
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


def get_metrics(metrics: str | Metric | Iterable[str | Metric]) -> tuple[Metric, ...]:
    """Several at once.

    Raises:
        InvalidInputError: If one is unknown, one comes twice, or there is none.
    """
    if not isinstance(metrics, (Metric, Iterable)):
        raise InvalidInputError(
            f"metrics is {metrics!r:.80}; give names of metrics, or objects of the class Metric"
        )
    wanted: Sequence[str | Metric] = [metrics] if isinstance(metrics, (str, Metric)) else list(metrics)
    found = tuple(get_metric(each) for each in wanted)
    names = [metric.name for metric in found]
    if not names or len(set(names)) != len(names):
        raise InvalidInputError(f"the metrics are {', '.join(names) or 'none'}; give at least one, each once")
    return found
