"""Results for people: one HTML file that needs no network, a table for the terminal, a table for Jupyter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_kit._lazy import lazy_attributes

if TYPE_CHECKING:
    from rag_kit.evaluation.reporting.payload import report_payload
    from rag_kit.evaluation.reporting.tables import html_table, results_html, results_text, text_table
    from rag_kit.evaluation.reporting.writing import write_report

__all__ = ["html_table", "report_payload", "results_html", "results_text", "text_table", "write_report"]

__getattr__, __dir__ = lazy_attributes(
    __name__,
    {
        "html_table": ".tables",
        "report_payload": ".payload",
        "results_html": ".tables",
        "results_text": ".tables",
        "text_table": ".tables",
        "write_report": ".writing",
    },
)
