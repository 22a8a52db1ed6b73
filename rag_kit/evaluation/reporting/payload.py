"""Data of the report page as plain JSON: all pipelines side by side, every passage once, nothing that could act."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from rag_kit.evaluation.comparison import Comparison
from rag_kit.evaluation.comparison_scores import costs
from rag_kit.evaluation.diagnosis import Diagnosis, case_of
from rag_kit.evaluation.outcomes import LIMIT, count_outcomes, first_metric
from rag_kit.evaluation.reporting.questions import Heads, cleaned, masked, plain, questions
from rag_kit.evaluation.runs.results import Results, higher_is_better, why_empty
from rag_kit.evaluation.wording import in_chinese

#: What is compared where only one metric can be: the first of these that has values.
PREFERRED = (
    "answer_correctness", "factual_correctness", "ours_answer_found", "faithfulness", "context_recall", "ndcg@10"
)  # fmt: skip
_WIDE = 0.9  # share of the questions of the widest run that a run needs to be ranked
_SPOKEN = ("reason", "notes", "error", "why")  # keys of the page's data that hold sentences of the kit
Json = dict[str, Any]


def report_payload(
    results: Mapping[str, Results],
    comparison: Comparison | None,
    diagnosis: Mapping[str, Diagnosis],
    notes: Sequence[str] = (),
) -> Json:
    """Gather results of one or several pipelines as plain JSON; questions are matched by their id.

    Every text has passed ``clean_text``: control and bidirectional characters are visible escapes. Errors, reasons,
    notes and settings have passed the masking of keys, too. Numbers that are not finite become ``None``.
    """
    runs = list(results.values())
    metric_names = list(dict.fromkeys(name for run in runs for name in run.metrics))
    heads: Heads = {}  # filled in with the passages of the questions
    pipelines, outcomes, diagnosed = [], [], []
    causes: list[dict[str, Any]] = []  # for each pipeline: id of a question -> its cause and notes
    for number, (name, run) in enumerate(results.items()):
        failed = sum(row.output.error is not None for row in run.rows)
        about = {"name": cleaned(name), "failed": failed, **costs(run), "manifest": plain(run.manifest)}
        pipelines.append(about)
        metric = first_metric(run)  # by which an answer is right or wrong
        outcomes.append({"metric": metric and cleaned(metric), "limit": LIMIT, **count_outcomes(run, metric)})
        findings = diagnosis[name].rows if name in diagnosis else []
        causes.append({row.id: {"cause": row.case, "notes": [*row.unknown, *row.hints]} for row in findings})
        if name in diagnosis:
            diagnosed.append(_describe_diagnosis(number, diagnosis[name]))
    metrics = _describe_metrics(runs, metric_names)
    gold_notes = [f"{name}: {note}" for name, run in results.items() for note in run.notes]
    data = {
        "created": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "dataset": _shared_name(runs, "dataset"),
        "judge": _shared_name(runs, "judge"),
        "pipelines": pipelines,
        "metrics": metrics,
        "outcomes": outcomes,
        "answer": plain(_short_answer(pipelines, metrics, comparison, diagnosed)),
        "questions": questions(runs, metric_names, causes, heads),
        "passages": list(heads),
        "comparison": plain(_describe_comparison(comparison, gold_notes)) if comparison else None,
        "diagnosis": plain(diagnosed) or None,
        "cases": {name: case_of(name).to_json() for each in diagnosis.values() for name in each.causes},
        "notes": [masked(note) for note in [*notes, *gold_notes]],
    }
    of_cases = dict(_find_sentences(data["cases"], is_spoken=True))  # whose texts are all the kit's
    return data | {"chinese": {**of_cases, **dict(_find_sentences(data))}}


def _find_sentences(value: Any, *, is_spoken: bool = False) -> Iterator[tuple[str, str]]:
    """Yield (English, Chinese) of each sentence of the kit, found below the keys `_SPOKEN` (then ``is_spoken``)."""
    if isinstance(value, str):
        if is_spoken and (chinese := in_chinese(value)) != value:
            yield value, chinese
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _find_sentences(item, is_spoken=is_spoken or key in _SPOKEN)
    elif isinstance(value, list):
        for item in value:
            yield from _find_sentences(item, is_spoken=is_spoken)


def _describe_metrics(runs: Sequence[Results], names: Sequence[str]) -> list[Json]:
    """Return the page's data of each metric: scale, a summary for each run, prompts, why it is empty."""
    summaries = [{name: asdict(summary) for name, summary in run.summary().items()} for run in runs]
    asked = {row.example.id for run in runs for row in run.rows}
    total = max(len(asked), *(run.examples for run in runs))
    for run, by_name in zip(runs, summaries, strict=True):
        for summary in by_name.values():  # the questions that only other runs have are missing, too
            summary |= {"total": total, "missing": summary["missing"] + total - run.examples}
    records = []
    for name in names:
        scored_runs = [run for run in runs if name in run.metrics]
        entry = scored_runs[0].describe(name)
        low, high = plain(scored_runs[0].scale(name))  # None: no end
        values = [value for run in scored_runs for value in run.values(name).values()]
        reasons = [why_empty(run, name) for run in runs]
        by_run = [by_name.get(name) for by_name in summaries]
        counts = [item["total"] - item["errors"] - item["missing"] if item else 0 for item in by_run]
        records.append({
            "name": cleaned(name),
            "stage": str(entry.get("stage") or ""),
            "higher": higher_is_better(scored_runs[0], name),
            "low": min([0.0 if low is None else low, *values]),
            "high": max([1.0 if high is None else high, *values]),
            "summary": by_run,
            "partial": [count < _WIDE * max(counts) for count in counts],  # far fewer scored than of the widest run
            "prompts": _count_prompts(scored_runs, name, entry),
            "why": [None if reason is None else masked(reason) for reason in reasons],
        })  # fmt: skip
    return records


def _count_prompts(runs: Sequence[Results], name: str, entry: Mapping[str, Any]) -> dict[str, int]:
    """Count answers by the prompts that judged them: Ragas's ``english`` or ``adapted`` ones, or the ``kit``'s."""
    settings = entry.get("settings")
    cells = [row.cells[name] for run in runs for row in run.rows if name in row.cells]
    counts = Counter[str]()
    if isinstance(settings, Mapping) and settings.get("prompts"):
        counts["kit"] = sum(cell.status == "ok" for cell in cells)
    for cell in cells:
        languages = cell.details.get("prompts")  # prompt of Ragas's -> the language in which it was sent
        if isinstance(languages, Mapping) and languages:
            counts["english" if set(languages.values()) == {"english"} else "adapted"] += 1
    return {kind: count for kind, count in counts.items() if count}


def _shared_name(runs: Sequence[Results], key: str) -> str | None:
    """Return the name of the data set or the judge, if it is the same in the manifests of all runs."""
    entries = [run.manifest.get(key) for run in runs]
    names = {item.get("name") or item.get("model") if isinstance(item, Mapping) else item for item in entries}
    name = names.pop() if len(names) == 1 else None
    return masked(str(name)) if name else None


def _describe_comparison(comparison: Comparison, gold_notes: Sequence[str]) -> Json:
    """Make the page's data of a comparison; notes on gold stand above the scores."""
    record = comparison.to_json()
    record["notes"] = [note for note in record["notes"] if note not in gold_notes]
    keys = ("pipelines", "metrics", "level", "tests", "notes", "pairs", "slices")
    complementarity_keys = ("n", "threshold", "only", "nobody", "union", "best_single", "greedy")
    by_metric = record["complementarity"].items()
    complementarity = {metric: {key: item[key] for key in complementarity_keys} for metric, item in by_metric}
    return {**{key: record[key] for key in keys}, "complementarity": complementarity}


def _describe_diagnosis(pipeline: int, diagnosis: Diagnosis) -> Json:
    return {
        "pipeline": pipeline, "unknown": diagnosis.unknown, "questions": len(diagnosis.rows),
        "thresholds": {diagnosis.metrics[role]: limit for role, limit in diagnosis.thresholds.items()},
        "causes": [{"cause": name, "count": diagnosis.counts[name]} for name in diagnosis.causes],
    }  # fmt: skip


def _choose_metric(metrics: Sequence[Json]) -> int | None:
    """Return the position of the first of the `PREFERRED` metrics among those of which most pipelines have a mean."""
    counts = [len(_means_of(metric)) for metric in metrics]
    usable = [position for position, count in enumerate(counts) if count and count == max(counts)]
    by_preference = [*PREFERRED, *(metric["name"] for metric in metrics)]
    return min(usable, key=lambda position: by_preference.index(metrics[position]["name"]), default=None)


def _means_of(metric: Json) -> dict[int, float]:
    """Map the positions of pipelines to their means of a metric; those without a mean are left out."""
    summaries = [(number, summary) for number, summary in enumerate(metric["summary"]) if summary]
    return {number: summary["mean"] for number, summary in summaries if summary["mean"] is not None}


def _short_answer(
    pipelines: Sequence[Json],
    metrics: Sequence[Json],
    comparison: Comparison | None,
    diagnosed: Sequence[Json],
) -> Json:
    """Summarize the page: the best pipeline by the main metric, its tests, its causes of wrong answers.

    ``metric`` and ``best`` are positions in the two lists, ``None`` if no metric has a value; ``tests`` has a test of
    the best against each other pipeline, in the order of their means. Those with too few questions come last, untested.
    """
    if (main := _choose_metric(metrics)) is None:
        return {"metric": None, "best": None, "tests": [], "diagnosed": None}
    metric, names = metrics[main], [pipeline["name"] for pipeline in pipelines]
    means, is_partial = _means_of(metric), metric["partial"]
    sign = -1 if metric["higher"] else 1
    # positions of pipelines, the best mean first
    order = sorted(means, key=lambda n: (is_partial[n], sign * means[n]))

    def tests_against(best: int) -> dict[int, Json | None]:
        found = {n: _find_test(names[best], names[n], metric, comparison) for n in order if n != best}
        return {n: None if is_partial[n] else test for n, test in found.items()}

    best = order[0]
    for other, test in tests_against(best).items():
        if test and test["better"] == names[other]:  # by the questions for which both have a value
            best = other
            break
    tests = [{"pipeline": n, "test": test} for n, test in tests_against(best).items()]
    of_best = next((pipeline for pipeline in diagnosed if pipeline["pipeline"] == best), None)
    return {"metric": main, "best": best, "tests": tests, "diagnosed": of_best}


def _find_test(best: str, other: str, metric: Json, comparison: Comparison | None) -> Json | None:
    """Return the test of ``best`` against ``other``; a positive difference means that ``best`` is better."""
    for pair in comparison.pairs if comparison else ():
        first, second = cleaned(pair.pipeline), cleaned(pair.other)
        is_wanted = cleaned(pair.metric) == metric["name"] and {first, second} == {best, other}
        if is_wanted and pair.difference is not None:  # first minus second
            is_gain_of_best = (first == best) == metric["higher"]
            sign = 1 if is_gain_of_best else -1
            ends = [sign * end for end in (pair.low, pair.high) if end is not None]
            better = None if pair.better is None else cleaned(pair.better)
            effect = {"difference": sign * pair.difference, "low": min(ends, default=None)}
            return {"better": better, "p": pair.p_adjusted, **effect, "high": max(ends, default=None)}
    return None
