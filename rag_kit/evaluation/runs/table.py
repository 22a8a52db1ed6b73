"""Results as a table, and below it what the reader must know of the run."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from rag_kit.documents import clean_text
from rag_kit.evaluation.reporting.tables import results_html, results_text

if TYPE_CHECKING:
    from rag_kit.evaluation.runs.results import Results


def notes(results: Results) -> list[str]:
    """What is missing, what failed, and which cap ended the run."""
    found = []
    if results.examples > len(results):
        found.append(f"{results.examples - len(results)} of {results.examples} questions were not asked yet.")
    failed = sum(1 for row in results.rows if row.output.error is not None)
    if failed:
        found.append(f"The pipeline failed on {failed} questions.")
    if stopped := results.manifest.get("stopped_by"):
        found.append(f"The run was stopped: {stopped}")
    return [clean_text(note).replace("\n", " ") for note in found]


def text_table(results: Results) -> str:
    """For the terminal."""
    return "\n".join([results_text(results), *notes(results)])


def html_table(results: Results) -> str:
    """For Jupyter; texts are escaped."""
    return results_html(results) + "".join(f"<p>{html.escape(note)}</p>" for note in notes(results))
