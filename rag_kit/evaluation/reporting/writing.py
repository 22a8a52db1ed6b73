"""Write the report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_kit.errors import InvalidInputError, RagKitError
from rag_kit.evaluation._files import as_path, check_target, write_file
from rag_kit.evaluation.reporting.figures import figures
from rag_kit.evaluation.reporting.page import page
from rag_kit.evaluation.reporting.payload import different, report_payload

if TYPE_CHECKING:
    from rag_kit.evaluation.comparing.comparison import Comparison
    from rag_kit.evaluation.reporting.shapes import ResultsLike

_MARK = b'<meta name="generator" content="rag_kit.report">'


def write_report(
    results: ResultsLike | Iterable[ResultsLike] | Mapping[str, ResultsLike] | Comparison,
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
            Its plots are drawn where Matplotlib is installed.
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
    target = as_path(path, "path")
    check_target(target)
    _check_parts(comparison, diagnosis, title)
    if target.exists() and not overwrite and not is_report(target):
        raise InvalidInputError(
            f"{str(target)!r} is a file and no report; name another one, or give overwrite=True"
        )
    if hasattr(results, "pipelines") and hasattr(results, "results"):  # what compare gave
        comparison = results if comparison is None else comparison
        results = dict(zip(results.pipelines, results.results, strict=True))
    names, found = _gather(results)
    notes: list[str] = []
    if comparison is None and len(found) > 1:
        comparison = _compare(names, found, notes)
    if diagnosis is None:
        diagnosis = _diagnose(names, found)
    plots = figures(found, comparison, notes)
    data = report_payload(
        found,
        names=names,
        comparison=comparison,
        diagnosis=diagnosis,
        title=title,
        language=language,
        notes=notes,
    )
    text = page(data, plots)
    write_file(target, lambda file: file.write(text.encode("utf-8")))
    return target


def is_report(path: Path) -> bool:
    """Whether a file was written by :func:`write_report`."""
    with path.open("rb") as file:
        return _MARK in file.read(4096)


def _check_parts(comparison: Any, diagnosis: Any, title: Any) -> None:
    if title is not None and not isinstance(title, str):
        raise InvalidInputError(f"title is {title!r:.80}; give a text, or None")
    known = isinstance(comparison, Mapping) and "pipelines" in comparison
    if (
        comparison is not None
        and comparison is not False
        and not known
        and not hasattr(comparison, "pipelines")
    ):
        raise InvalidInputError(
            f"comparison is a {type(comparison).__name__}; give what compare gave, None or False"
        )
    if diagnosis is None or diagnosis is False:
        return
    several: Any = diagnosis.values() if isinstance(diagnosis, Mapping) else diagnosis
    if hasattr(diagnosis, "rows"):
        several = [diagnosis]
    if not isinstance(several, Iterable) or isinstance(several, (str, bytes)):
        several = [diagnosis]
    several = list(several)
    if wrong := [one for one in several if not hasattr(one, "rows") or not hasattr(one, "name")]:
        raise InvalidInputError(
            f"diagnosis holds a {type(wrong[0]).__name__}; give what diagnose gave, one for each pipeline, None or "
            "False"
        )


def _gather(results: Any) -> tuple[list[str], list[ResultsLike]]:
    """Check the argument ``results``; returns a name for each, and the results."""
    names, found = _names_and_results(results)
    for one in found:
        if not all(hasattr(one, part) for part in ("name", "rows", "summary")):
            raise InvalidInputError(
                f"results holds a {type(one).__name__}; give what evaluate returned, or Results.load(folder)"
            )
    return (names or different([str(one.name) for one in found])), found


def _names_and_results(results: Any) -> tuple[list[str], list[ResultsLike]]:
    """Split the argument ``results`` into names, none where it is no mapping, and a list of results."""
    if isinstance(results, Mapping):
        return [str(name) for name in results], list(results.values())
    if hasattr(results, "rows"):
        return [], [results]
    if isinstance(results, (str, bytes, Path)) or not isinstance(results, Iterable):
        raise InvalidInputError(
            f"results is a {type(results).__name__}; give what evaluate returned, a list of it, or Results.load(folder)"
        )
    return [], list(results)


def _compare(names: list[str], results: list[ResultsLike], notes: list[str]) -> Any:
    from rag_kit.evaluation.comparing.comparison import compare

    named: Any = dict(zip(names, results, strict=True))
    try:
        return compare(named)
    except RagKitError as error:  # other questions, nothing in common, no SciPy: the scores still stand
        notes.append(f"Not compared: {error}")
        return None


def _diagnose(names: list[str], results: list[ResultsLike]) -> dict[str, Any]:
    from rag_kit.evaluation.diagnosing import diagnose
    from rag_kit.evaluation.diagnosing.choosing import choose_metrics

    found = {}
    one: Any
    for name, one in zip(names, results, strict=True):
        metrics = choose_metrics(one)
        if metrics is None:  # nothing was asked for, or nothing computed, that it could stand on
            continue
        try:
            found[name] = diagnose(
                one, answer=metrics["answer"], recall=metrics["recall"], precision=metrics["precision"]
            )
        except RagKitError:  # results of another kind
            continue
    return found
