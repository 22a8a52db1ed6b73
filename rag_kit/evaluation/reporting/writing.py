"""``write_report``: results, comparison and diagnosis as one HTML file, which asks the network for nothing."""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from rag_kit.errors import InvalidInputError, RagKitError
from rag_kit.evaluation import plots
from rag_kit.evaluation._files import check_target, write_file
from rag_kit.evaluation.comparison import Comparison, compare
from rag_kit.evaluation.comparison_scores import name_runs
from rag_kit.evaluation.diagnosis import Diagnosis, diagnose_all
from rag_kit.evaluation.reporting.payload import report_payload
from rag_kit.evaluation.reporting.questions import cleaned
from rag_kit.evaluation.runs.results import Results
from rag_kit.evaluation.wording import check_language, main_language, say, texts
from rag_kit.indexing.files import as_path

Run = Results | Path | str  # or its folder
_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")
_ESCAPES = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}  # of JSON in a script element
#: Parts of the page in their order, and whether a sentence stands below the heading.
_SECTIONS = {
    "answer": False, "scores": True, "plots": True, "comparison": True, "diagnosis": True, "questions": True,
    "about": False,
}  # fmt: skip
_MARK = b'<meta name="generator" content="rag_kit.report">'  # by which a report is known


def write_report(
    results: Run | Iterable[Run] | Mapping[str, Run],
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
        results: One pipeline, or as for ``compare`` several, name -> results, a folder.
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
    start_language = None if language == "auto" else check_language(language)
    if target.exists() and not overwrite and not _is_report(target):
        raise InvalidInputError(f"{str(target)!r} is a file and no report; name another one, or move it away")
    named_results = name_runs(results, least=1)
    notes: list[str] = []
    shown_comparison = _get_comparison(named_results, comparison, notes)
    data = report_payload(named_results, shown_comparison, _get_diagnoses(named_results, diagnosis), notes)
    if start_language is None:
        asked = (row.example.question for run in named_results.values() for row in run.rows)
        start_language = shown_comparison.language if shown_comparison else main_language(asked)
    data |= {"title": None if title is None else cleaned(title), "language": start_language}
    text = page(data, _draw_plots(shown_comparison, data))
    write_file(target, lambda file: file.write(text.encode("utf-8")))
    return target


def _is_report(path: Path) -> bool:
    with path.open("rb") as file:
        return _MARK in file.read(4096)


def _get_comparison(results: Mapping[str, Results], comparison: Any, notes: list[str]) -> Comparison | None:
    """Return the given comparison, or make one; if that fails, add the reason to ``notes``."""
    if isinstance(comparison, Comparison):
        return comparison
    if comparison is False or len(results) < 2:
        return None
    try:
        return compare(results)
    except RagKitError as error:  # other questions, nothing in common, no SciPy: the scores still stand
        notes.append(f"Not compared: {error}")
        return None


def _get_diagnoses(results: Mapping[str, Results], given: Any) -> dict[str, Diagnosis]:
    """Return pipeline -> diagnosis: the given ones, new ones for ``None``, none for ``False``."""
    if given is None:
        return diagnose_all(results)
    if given is False:
        return {}
    diagnoses = dict(given) if isinstance(given, Mapping) else {getattr(given, "name", ""): given}
    for name, item in diagnoses.items():
        if not isinstance(item, Diagnosis) or name not in results:
            raise InvalidInputError(
                f"diagnosis holds {item!r:.80} of {name!r:.80}, which is no pipeline of the report; give name -> what "
                f"diagnose gave, for {', '.join(results)}"
            )
    return diagnoses


def _draw_plots(comparison: Comparison | None, data: Mapping[str, Any]) -> dict[str, str]:
    """Draw the plots as SVG in both languages, by kind; none without a comparison or a main metric."""
    main = data["answer"]["metric"]  # a position
    if comparison is None or main is None:
        return {}
    name = data["metrics"][main]["name"]
    metric = name if name in comparison.metrics else None
    return {
        "scores": plots.scores_with_intervals(comparison, language="both").svg,
        "latency": plots.latency_against_quality(comparison, metric=metric, language="both").svg,
    }


def page(data: Mapping[str, Any], plots: Mapping[str, str]) -> str:
    """Make the HTML file of a report from its payload and its plots (kind -> SVG)."""
    language = data["language"]
    style, script = assets("css"), assets("js")
    optional = {"plots": plots, "comparison": data["comparison"], "diagnosis": data["diagnosis"]}
    sections = [name for name in _SECTIONS if optional.get(name, True)]
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    values = {
        "lang": "zh-Hans" if language == "zh" else "en",
        "policy": html.escape(policy(style, script)),
        "title": html.escape(data["title"] or say("title", language)),
        "style": style,
        "script": script,
        "noscript": say("noscript", language),
        "contents": "\n".join(
            f'<li><a href="#{name}" data-text="{name}">{say(name, language)}</a></li>' for name in sections
        ),
        "sections": "\n".join(_section_html(name, plots, language) for name in sections),
        "texts": json.dumps(texts(), ensure_ascii=False).translate(_ESCAPES),
        # a tenth of the size of the JSON, and without characters of markup
        "data": base64.b64encode(gzip.compress(text.encode("utf-8"), mtime=0)).decode(),
    }
    # One pass: a value that looks like a placeholder is not filled in again.
    return _PLACEHOLDER.sub(lambda match: values[match[1]], _read_asset("page.html"))


def policy(style: str, script: str) -> str:
    """Return a Content-Security-Policy that allows only this style sheet and this script, and no network."""
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (script, style)]
    return (
        f"default-src 'none'; script-src 'sha256-{hashes[0]}'; style-src 'sha256-{hashes[1]}'; img-src data:; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )


@cache
def assets(kind: str) -> str:
    """Join all files of a kind (``"css"`` or ``"js"``) in the order of their names; scripts share one scope."""
    folder = files(__package__) / "assets"
    names = sorted(item.name for item in folder.iterdir() if item.name.endswith(f".{kind}"))
    text = "\n".join(map(_read_asset, names))
    return f'\n"use strict";\n(async () => {{\n{text}\n}})();\n' if kind == "js" else f"\n{text}"


def _read_asset(name: str) -> str:
    return (files(__package__) / "assets" / name).read_text(encoding="utf-8").replace("\r\n", "\n")


def _section_html(name: str, plots: Mapping[str, str], language: str) -> str:
    """Make a section of the page; the page's script fills it, but for the plots."""
    lead = f'<p class="lead" data-text="{name}_lead"></p>' if _SECTIONS[name] else ""
    figures = [_figure_html(kind, svg, language) for kind, svg in plots.items() if name == "plots"]
    return (
        f'<section id="{name}" aria-labelledby="{name}-title" tabindex="-1"><h2 id="{name}-title" '
        f'data-text="{name}"></h2>{lead}<div id="{name}-body">{"".join(figures)}</div></section>'
    )


def _figure_html(kind: str, svg: str, language: str) -> str:
    name = f"plot-{kind}"
    drawing = svg.replace("<svg ", f'<svg aria-labelledby="{name}" ', 1)
    caption = f'<figcaption id="{name}" data-text="plot_{kind}">{say(f"plot_{kind}", language)}</figcaption>'
    return f'<figure class="figure">{caption}{drawing}</figure>'
