"""``write_report``: results, comparison and diagnosis as one HTML file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from rag_kit.errors import InvalidInputError, RagKitError
from rag_kit.evaluation import plots
from rag_kit.evaluation._files import check_target, write_file
from rag_kit.evaluation.comparison import Comparison, compare
from rag_kit.evaluation.comparison_scores import name_runs
from rag_kit.evaluation.diagnosis import Diagnosis, diagnose_all
from rag_kit.evaluation.reporting.page import page
from rag_kit.evaluation.reporting.payload import report_payload
from rag_kit.evaluation.reporting.questions import cleaned
from rag_kit.evaluation.runs.results import Results
from rag_kit.evaluation.wording import check_language, main_language
from rag_kit.indexing.files import as_path

_MARK = b'<meta name="generator" content="rag_kit.report">'  # by which a report is known


def write_report(
    results: Results | Iterable[Results | Path | str] | Mapping[str, Results | Path | str] | Comparison,
    path: Path | str,
    *,
    comparison: Comparison | bool | None = None,
    diagnosis: Diagnosis | Mapping[str, Diagnosis] | bool | None = None,
    title: str | None = None,
    language: Literal["auto", "en", "zh"] = "auto",
    overwrite: bool = False,
) -> Path:
    """Write results as one HTML file: no network, no other file, opens by a double click.

    Args:
        results: One pipeline, or as for ``compare`` several, name -> results, folders; or what ``compare`` gave.
        path: The file. One that is a report already is replaced.
        comparison: What ``compare`` gave; ``None``: made where several pipelines can be compared; ``False``: none.
        diagnosis: What ``diagnose`` gave, or name -> diagnosis; ``None``: made where there are its three scores, of
            answer, recall and precision; ``False``: none.
        title: Title of the page.
        language: ``"en"`` or ``"zh"``: the language the page starts in, ``"auto"`` that of the comparison, or else of
            most questions; the reader can switch.
        overwrite: Replace the file even if it is not a report.

    Raises:
        InvalidInputError: If there are no results, two have one name, an argument is of another kind, or nothing can be
            written there.

    Example:
        >>> import tempfile
        >>> from rag_kit.evaluation import Example
        >>> from rag_kit.evaluation.cells import Cell
        >>> from rag_kit.evaluation.outputs import Output
        >>> from rag_kit.evaluation.runs.rows import Row
        >>> row = Row(Example("q1", "Who wrote it?"), Output("Ada."), {"exact_match": Cell.ok(1.0)})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_report(Results("mine", [row]), f"{folder}/report.html").name
        'report.html'
    """
    target = as_path(path, "path")
    check_target(target)
    if title is not None and not isinstance(title, str):
        raise InvalidInputError(f"title is {title!r:.80}; give a text, or None")
    start = None if language == "auto" else check_language(language)
    if target.exists() and not overwrite and not _is_report(target):
        raise InvalidInputError(f"{str(target)!r} is a file and no report; name another one, or move it away")
    if isinstance(results, Comparison):
        comparison = results if comparison is None else comparison
        results = dict(zip(results.pipelines, results.results, strict=True))
    named_results = name_runs([results] if isinstance(results, Results) else results, least=1)
    notes: list[str] = []
    shown_comparison = _get_comparison(named_results, comparison, notes)
    data = report_payload(named_results, shown_comparison, _get_diagnoses(named_results, diagnosis), notes)
    asked = (row.example.question for run in named_results.values() for row in run.rows)
    start = start or (shown_comparison.language if shown_comparison else main_language(asked))
    data |= {"title": None if title is None else cleaned(title), "language": start}
    text = page(data, _draw_plots(shown_comparison, data))
    write_file(target, lambda file: file.write(text.encode("utf-8")))
    return target


def _is_report(path: Path) -> bool:
    """Tell whether a file was written by :func:`write_report`."""
    with path.open("rb") as file:
        return _MARK in file.read(4096)


def _get_comparison(results: Mapping[str, Results], comparison: Any, notes: list[str]) -> Comparison | None:
    """Return the given comparison, or make one; if that fails, add the reason to ``notes``."""
    if isinstance(comparison, Comparison):
        return comparison
    if comparison is not None and comparison is not False:
        raise InvalidInputError(f"comparison is {comparison!r:.80}; give what compare gave, None or False")
    if comparison is False or len(results) < 2:
        return None
    try:
        return compare(results)
    except RagKitError as error:  # other questions, nothing in common, no SciPy: the scores still stand
        notes.append(f"Not compared: {error}")
        return None


def _get_diagnoses(results: Mapping[str, Results], value: Any) -> dict[str, Diagnosis]:
    """Map pipelines to the given diagnoses, or to new ones (``None``), or to nothing (``False``)."""
    if value is None or value is False:
        return diagnose_all(results) if value is None else {}
    diagnoses = dict(value) if isinstance(value, Mapping) else {getattr(value, "name", ""): value}
    for name, item in diagnoses.items():
        if not isinstance(item, Diagnosis) or name not in results:
            raise InvalidInputError(
                f"diagnosis holds {item!r:.80} of {name!r:.80}, which is no pipeline of the report; give name -> what "
                f"diagnose gave, for {', '.join(results)}"
            )
    return diagnoses


def _draw_plots(comparison: Comparison | None, data: Mapping[str, Any]) -> dict[str, str]:
    """Draw the plots as SVG in both languages, by kind; none without a comparison or a main metric."""
    number = data["answer"]["metric"]
    if comparison is None or number is None:
        return {}
    name = data["metrics"][number]["name"]
    metric = name if name in comparison.metrics else None
    return {
        "scores": plots.scores_with_intervals(comparison, language="both").svg,
        "latency": plots.latency_against_quality(comparison, metric=metric, language="both").svg,
    }
