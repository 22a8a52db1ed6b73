"""Write the report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_kit.errors import InvalidInputError, RagKitError
from rag_kit.evaluation._files import as_path, check_target, write_file
from rag_kit.evaluation.comparing.comparison import Comparison, compare
from rag_kit.evaluation.diagnosing.choosing import choose_metrics
from rag_kit.evaluation.diagnosing.diagnosis import Diagnosis, diagnose
from rag_kit.evaluation.runs.results import Results

if TYPE_CHECKING:
    from rag_kit.evaluation.plots import Plot

_MARK = b'<meta name="generator" content="rag_kit.report">'


def write_report(
    results: Results | Iterable[Results] | Mapping[str, Results] | Comparison,
    path: Path | str,
    *,
    comparison: Any = None,
    diagnosis: Any = None,
    title: str | None = None,
    language: str = "en",
    overwrite: bool = False,
) -> Path:
    """Write results as one HTML file: no network, no other file, opens by a double click.

    Args:
        results: One pipeline, several, name -> results, or what ``compare`` gave.
        path: The file. One that is a report already is replaced.
        comparison: What ``compare`` gave; ``None``: made where several pipelines can be compared; ``False``: none.
        diagnosis: What ``diagnose`` gave: one, one for each pipeline, or name -> diagnosis; ``None``: made where
            there is a score of the answer, one of recall and one of precision (where ``answer_correctness`` has no
            value, ``ours_answer_found``, and so on; the page says which); ``False``: none.
        title: Title of the page.
        language: ``"en"`` or ``"zh"``: the language the page starts in; the reader can switch.
        overwrite: Replace the file even if it is no report.

    Returns:
        The path.

    Raises:
        InvalidInputError: If there are no results, an argument is of another kind, the path is a folder or cannot be
            written, or it is a file that is no report.
    """
    from rag_kit.evaluation.reporting.page import page
    from rag_kit.evaluation.reporting.payload import report_payload
    from rag_kit.evaluation.reporting.questions import cleaned, masked

    target = as_path(path, "path")
    check_target(target)
    if title is not None and not isinstance(title, str):
        raise InvalidInputError(f"title is {title!r:.80}; give a text, or None")
    if language not in ("en", "zh"):
        raise InvalidInputError(f"language is {language!r:.80}; allowed are 'en' and 'zh'")
    if target.exists() and not overwrite and not is_report(target):
        raise InvalidInputError(
            f"{str(target)!r} is a file and no report; name another one, or give overwrite=True"
        )
    if isinstance(results, Comparison):
        comparison = results if comparison is None else comparison
        results = dict(zip(results.pipelines, results.results, strict=True))
    found = _named(results)
    notes: list[str] = []
    compared = _compared(found, comparison, notes)
    diagnosed = _diagnosed(found, diagnosis)
    data = report_payload(found, compared, diagnosed) | {
        "title": None if title is None else cleaned(title),
        "language": language,
        "notes": [masked(note) for note in notes],
    }
    text = page(data, _plots(found, compared, data))
    write_file(target, lambda file: file.write(text.encode("utf-8")))
    return target


def is_report(path: Path) -> bool:
    """Whether a file was written by :func:`write_report`."""
    with path.open("rb") as file:
        return _MARK in file.read(4096)


def _named(results: Any) -> dict[str, Results]:
    """Name -> results; names that come again get a number behind them."""
    given = [results] if isinstance(results, Results) else results
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise InvalidInputError(
            f"results is a {type(results).__name__}; give what evaluate returned, a list of it, or Results.load(folder)"
        )
    found: dict[str, Results] = {}
    for each in given.items() if isinstance(given, Mapping) else ((None, one) for one in given):
        name, one = each
        if not isinstance(one, Results):
            raise InvalidInputError(
                f"results holds a {type(one).__name__}; give what evaluate returned, or Results.load(folder)"
            )
        label = plain_name = str(one.name if name is None else name)
        number = 1
        while label in found:
            number += 1
            label = f"{plain_name} ({number})"
        found[label] = replace(one, name=label)
    if not found:
        raise InvalidInputError("there are no results to report; give at least one")
    return found


def _compared(results: Mapping[str, Results], comparison: Any, notes: list[str]) -> Comparison | None:
    if isinstance(comparison, Comparison):
        return comparison
    if comparison is not None and comparison is not False:
        raise InvalidInputError(
            f"comparison is a {type(comparison).__name__}; give what compare gave, None or False"
        )
    if comparison is False or len(results) < 2:
        return None
    try:
        return compare(results)
    except RagKitError as error:  # other questions, nothing in common, no SciPy: the scores still stand
        notes.append(f"Not compared: {error}")
        return None


def _diagnosed(results: Mapping[str, Results], given: Any) -> dict[str, Diagnosis]:
    """Name of a pipeline -> its diagnosis."""
    if given is False:
        return {}
    if given is None:
        chosen = {name: choose_metrics(one) for name, one in results.items()}
        return {
            name: diagnose(
                results[name], answer=one["answer"], recall=one["recall"], precision=one["precision"]
            )
            for name, one in chosen.items()
            if one is not None
        }
    several: list[Any] = [given]
    if isinstance(given, Iterable) and not isinstance(given, (str, bytes, Diagnosis)):
        several = list(given.values() if isinstance(given, Mapping) else given)
    if wrong := [one for one in several if not isinstance(one, Diagnosis)]:
        raise InvalidInputError(
            f"diagnosis holds a {type(wrong[0]).__name__}; give what diagnose gave, one for each pipeline, None or "
            "False"
        )
    names = list(results) if len(several) == len(results) else [one.name for one in several]
    if isinstance(given, Mapping):
        names = list(given)
    for name in names:
        if name not in results:
            raise InvalidInputError(
                f"the diagnosis is of {name!r:.80}, which is no pipeline of the report; there are {', '.join(results)}"
            )
    return dict(zip(names, several, strict=True))


def _plots(
    results: Mapping[str, Results], comparison: Comparison | None, data: Mapping[str, Any]
) -> Sequence[tuple[str, int | None, Plot]]:
    """Kind, number of the metric where the plot is one of a metric, and the plot in both languages."""
    from rag_kit.evaluation import plots

    number = data["answer"]["metric"]
    if number is None:
        return []
    name = list(dict.fromkeys(name for one in results.values() for name in one.metrics))[number]
    sure = ("confidence", None, plots.confidence_histogram(results.values(), metric=name, language="both"))
    if comparison is None:
        return [sure]
    metric = name if name in comparison.metrics else comparison.metrics[0]
    gets = {
        place: each for place, each in enumerate(comparison.metrics) if comparison.complementarity[each].n
    }
    return [
        ("scores", None, plots.scores_with_intervals(comparison, language="both")),
        ("latency", None, plots.latency_against_quality(comparison, metric=metric, language="both")),
        sure,
        *(
            ("complementarity", n, plots.complementarity_heatmap(comparison, metric=each, language="both"))
            for n, each in gets.items()
        ),
    ]
