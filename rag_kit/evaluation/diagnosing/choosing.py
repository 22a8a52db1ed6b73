"""Which metrics a diagnosis can stand on, where nobody said."""

from __future__ import annotations

from typing import Any

from rag_kit.evaluation.diagnosing.finding import Role

#: Role -> metrics that can play it, best first; ``name@`` stands for any cut-off. Precision at k is not among them:
#: with one relevant passage it cannot pass 1/k, and every question would look noisy.
STAND_INS: dict[Role, tuple[str, ...]] = {
    "answer": ("answer_correctness", "factual_correctness", "ours_answer_found", "ours_nugget_recall"),
    "recall": ("context_recall", "ours_span_recall", "ours_span_recall@", "recall@", "hit_rate@"),
    "precision": (
        "context_precision", "context_precision_without_reference", "map", "map@", "mrr", "mrr@",
    ),
}  # fmt: skip


def stand_in(results: Any, role: Role) -> str | None:
    """The first metric of a role that has a value.

    Args:
        results: Of one run.
        role: ``answer``, ``recall`` or ``precision``.
    """
    known = [name for name in results.metrics if results.values(name)]
    return next(
        (each for name in STAND_INS[role] for each in known
         if each == name or (name.endswith("@") and each.startswith(name))),
        None,
    )  # fmt: skip


def choose_metrics(results: Any) -> dict[Role, str] | None:
    """Metric of each role; ``None`` where one has none: nothing should be said on two scores of three.

    Args:
        results: Of one run.

    Example:
        >>> from rag_kit.evaluation import Cell, Example, Output
        >>> from rag_kit.evaluation.runs.results import Results
        >>> from rag_kit.evaluation.runs.rows import Row
        >>> cells = {name: Cell.ok(1.0) for name in ("mrr", "recall@5", "ours_answer_found")}
        >>> choose_metrics(Results("mine", [Row(Example("q1", "Who?"), Output("Bob."), cells)]))
        {'answer': 'ours_answer_found', 'recall': 'recall@5', 'precision': 'mrr'}
    """
    found = {role: stand_in(results, role) for role in STAND_INS}
    chosen = {role: name for role, name in found.items() if name is not None}
    return chosen if len(chosen) == len(found) else None
