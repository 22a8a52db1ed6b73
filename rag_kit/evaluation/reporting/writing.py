"""``write_report``: results, comparison and diagnosis as one HTML file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import chain, count
from pathlib import Path
from typing import Any

from rag_kit.errors import InvalidInputError, RagKitError
from rag_kit.evaluation._files import as_path, check_target, write_file
from rag_kit.evaluation.comparison import Comparison, compare
from rag_kit.evaluation.diagnosis import Diagnosis, diagnose_all
from rag_kit.evaluation.runs.results import Results

_GIVE = "give what evaluate returned, a list of it, or Results.load(folder)"
_MARK = b'<meta name="generator" content="rag_kit.report">'


def write_report(
    results: Results | Iterable[Results] | Mapping[str, Results] | Comparison,
    path: Path | str,
    *,
    comparison: Comparison | bool | None = None,
    diagnosis: Diagnosis | Mapping[str, Diagnosis] | bool | None = None,
    title: str | None = None,
    language: str = "en",
    overwrite: bool = False,
) -> Path:
    """Write results as one HTML file: no network, no other file, opens by a double click.

    Args:
        results: One pipeline, several, name -> results, or what ``compare`` gave.
        path: The file. One that is a report already is replaced.
        comparison: What ``compare`` gave; ``None``: made where several pipelines can be compared; ``False``: none.
        diagnosis: What ``diagnose`` gave, or name -> diagnosis; ``None``: made where there is a score of the answer,
            one of recall and one of precision; ``False``: none.
        title: Title of the page.
        language: ``"en"`` or ``"zh"``: the language the page starts in; the reader can switch.
        overwrite: Replace the file even if it is no report.

    Raises:
        InvalidInputError: If there are no results, an argument is of another kind, or nothing can be written there.

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
    data = report_payload(found, compared, _diagnosed(found, diagnosis)) | {
        "title": None if title is None else cleaned(title),
        "language": language,
        "notes": [masked(note) for note in notes],
    }
    text = page(data, _plots(compared, data))
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
        raise InvalidInputError(f"results is a {type(results).__name__}; {_GIVE}")
    pairs = given.items() if isinstance(given, Mapping) else [(None, one) for one in given]
    found: dict[str, Results] = {}
    for name, one in pairs:
        if not isinstance(one, Results):
            raise InvalidInputError(f"results holds a {type(one).__name__}; {_GIVE}")
        plain = str(one.name if name is None else name)
        labels = chain([plain], (f"{plain} ({number})" for number in count(2)))
        label = next(each for each in labels if each not in found)
        found[label] = replace(one, name=label)
    if not found:
        raise InvalidInputError("there are no results to report; give at least one")
    return found


def _compared(results: Mapping[str, Results], given: Any, notes: list[str]) -> Comparison | None:
    if isinstance(given, Comparison):
        return given
    if given is not None and given is not False:
        raise InvalidInputError(f"comparison is {given!r:.80}; give what compare gave, None or False")
    if given is False or len(results) < 2:
        return None
    try:
        return compare(results)
    except RagKitError as error:  # other questions, nothing in common, no SciPy: the scores still stand
        notes.append(f"Not compared: {error}")
        return None


def _diagnosed(results: Mapping[str, Results], given: Any) -> dict[str, Diagnosis]:
    """Name of a pipeline -> its diagnosis."""
    if given is None or given is False:
        return diagnose_all(results) if given is None else {}
    found = dict(given) if isinstance(given, Mapping) else {getattr(given, "name", ""): given}
    for name, one in found.items():
        if not isinstance(one, Diagnosis) or name not in results:
            raise InvalidInputError(
                f"diagnosis holds {one!r:.80} of {name!r:.80}, which is no pipeline of the report; give name -> what "
                f"diagnose gave, for {', '.join(results)}"
            )
    return found


def _plots(comparison: Comparison | None, data: Mapping[str, Any]) -> dict[str, str]:
    """Kind -> SVG in both languages."""
    from rag_kit.evaluation import plots

    number = data["answer"]["metric"]
    if comparison is None or number is None:
        return {}
    name = data["metrics"][number]["name"]
    metric = name if name in comparison.metrics else comparison.metrics[0]
    return {
        "scores": plots.scores_with_intervals(comparison, language="both").svg,
        "latency": plots.latency_against_quality(comparison, metric=metric, language="both").svg,
    }
