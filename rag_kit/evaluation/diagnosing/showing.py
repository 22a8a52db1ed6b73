"""A diagnosis as text and for Jupyter. Whatever a question or a reason holds stays text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rag_kit.documents.tables import Table, tables_html, tables_text
from rag_kit.evaluation.diagnosing.cases import TEXTS

if TYPE_CHECKING:
    from rag_kit.evaluation.diagnosing.cases import CaseName
    from rag_kit.evaluation.diagnosing.diagnosis import Diagnosis
    from rag_kit.evaluation.diagnosing.finding import Finding, Reading

_MANY = 40
"""Questions shown; the rest is in `Diagnosis.to_pandas`."""


def diagnosis_text(diagnosis: Diagnosis) -> str:
    """Causes, remedies and questions, one below the other."""
    return tables_text(_head(diagnosis), _tables(diagnosis), ["", _limits(diagnosis)])


def diagnosis_html(diagnosis: Diagnosis) -> str:
    """The same for Jupyter."""
    return tables_html(_head(diagnosis), _tables(diagnosis), [_limits(diagnosis)])


def _words(diagnosis: Diagnosis) -> dict[str, str]:
    place = 1 if diagnosis.language == "zh" else 0
    return {key: pair[place] for key, pair in TEXTS["words"].items()}


def _head(diagnosis: Diagnosis) -> str:
    words = _words(diagnosis)
    name = " ".join(diagnosis.name.split())
    title = words["title"].format(name=name, diagnosed=diagnosis.diagnosed, total=len(diagnosis.rows))
    if diagnosis.overall is None:
        return f"{title}\n{words['nothing']}"
    case = diagnosis.case(diagnosis.overall)
    language = diagnosis.language
    overall = words["overall"].format(title=case.title.of(language), cause=case.cause.of(language))
    return f"{title}\n{overall}"


def _tables(diagnosis: Diagnosis) -> list[Table]:
    words, language = _words(diagnosis), diagnosis.language
    causes: list[list[Any]] = [
        [diagnosis.case(name).title.of(language), count, diagnosis.case(name).cause.of(language)]
        for name, count in diagnosis.counts.items()
    ]
    if diagnosis.unknown:
        causes.append([words["unknown"], diagnosis.unknown, ""])
    tables = [Table([words["cause"], words["questions"], ""], causes, words["causes"], [1], 240)]
    for name in _worst_first(diagnosis):
        case = diagnosis.case(name)
        rows = [[remedy.name, remedy.text.of(language)] for remedy in case.remedies]
        heading = f"{words['remedies']}: {case.title.of(language)}"
        tables.append(Table([words["part"], words["what"]], rows, heading, width=240))
    header = [words[key] for key in ("id", "question", "cause", "answer", "recall", "precision", "hints")]
    each = [_row(finding, diagnosis) for finding in _shown(diagnosis)]
    return [*tables, Table(header, each, words["each"], width=48, most=_MANY, more=words["more"])]


def _worst_first(diagnosis: Diagnosis) -> list[CaseName]:
    return sorted(diagnosis.counts, key=lambda name: (name.startswith("right"), -diagnosis.counts[name]))


def _shown(diagnosis: Diagnosis) -> list[Finding]:
    """Questions with something to do, the most frequent cause first; then those without a cause."""
    order: dict[str | None, int] = {name: place for place, name in enumerate(_worst_first(diagnosis))}
    rows = [row for row in diagnosis.rows if row.case != "right"]
    return sorted(rows, key=lambda row: order.get(row.case, len(order)))


def _row(finding: Finding, diagnosis: Diagnosis) -> list[Any]:
    words = _words(diagnosis)
    cause = (
        words["unknown"]
        if finding.case is None
        else diagnosis.case(finding.case).title.of(diagnosis.language)
    )
    also = [*([finding.unknown] if finding.unknown else []), *finding.hints]
    readings = [_reading(reading, words) for reading in (finding.answer, finding.recall, finding.precision)]
    return [finding.id, finding.question, cause, *readings, "; ".join(also)]


def _reading(reading: Reading, words: dict[str, str]) -> str:
    return (
        "-"
        if reading.value is None or reading.level is None
        else f"{reading.value:.2f} {words[reading.level]}"
    )


def _limits(diagnosis: Diagnosis) -> str:
    limits = ", ".join(
        f"{metric} {diagnosis.thresholds[role]:g}" for role, metric in diagnosis.metrics.items()
    )
    return _words(diagnosis)["limits"].format(limits)
