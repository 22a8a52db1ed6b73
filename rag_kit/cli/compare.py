"""``rag-kit compare``: several results of the same questions against each other."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_kit.cli.options import add_options, given
from rag_kit.cli.output import hint, say, say_json
from rag_kit.errors import InvalidInputError

if TYPE_CHECKING:
    from rag_kit.evaluation import Results

DESCRIPTION = """Compare what `rag-kit evaluate --out` wrote for several pipelines on the same questions: differences
with intervals and tests corrected for their number, latency and cost, which questions each one alone gets, and why
answers are wrong. NAME=FOLDER gives results another name; --metric and --slice may be given several times."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``compare``."""
    add = parser.add_argument
    add("results", nargs="+", metavar="RESULTS", help="at least two folders of results")
    add("--report", type=Path, metavar="FILE", help="write a report as one HTML file")
    add("--baseline", metavar="NAME", help="test each pipeline against this one (default: every two)")
    add("--metric", action="append", metavar="NAME", help="compare this metric (default: all that two have)")
    what = "print scores by type, language or any tag"
    add("--slice", action="append", metavar="TAG", dest="slices", help=what)
    what = "of the diagnosis and the report (default: of the questions)"
    add("--language", choices=["en", "zh"], help=what)
    add_options(parser, "--json")


def run(arguments: argparse.Namespace) -> None:
    """Compare and print.

    Raises:
        InvalidInputError: If the results are of different questions, have one name, or a setting is wrong.
    """
    from rag_kit.evaluation import compare, write_report
    from rag_kit.evaluation._files import check_target
    from rag_kit.evaluation.diagnosis import diagnose_all

    check_target(arguments.report)
    results, language = _load(arguments.results), arguments.language
    comparison = compare(
        results, metrics=arguments.metric, baseline=arguments.baseline, **given(arguments, "slices")
    )
    found = diagnose_all(results, language or "auto")
    if arguments.report is not None:
        parts: dict[str, Any] = {"comparison": comparison, "diagnosis": found or None}
        write_report(results, arguments.report, language=language or "en", **parts)
        hint(f"report written to {arguments.report}")
    if arguments.json:
        say_json({**comparison.to_json(), "diagnoses": {name: one.to_json() for name, one in found.items()}})
        return
    say(str(comparison))
    if arguments.slices is not None:  # longer than all other tables
        slices = comparison.slices_table()
        one_part = f"all questions are in one part by {', '.join(comparison.sliced_by)}"
        say("\n" + (slices.text().strip() if slices.rows else one_part))
    for diagnosis in found.values():
        say(f"\n{diagnosis}")


def _load(texts: list[str]) -> dict[str, Results]:
    """Name -> results; a folder that is there is meant as it stands, even with a ``=`` in its name."""
    from rag_kit.evaluation import Results

    loaded: dict[str, Results] = {}
    for text in texts:
        name, _, folder = ("", "", text) if Path(text).exists() else text.rpartition("=")
        results = Results.load(Path(folder))
        key = name.strip() or results.name
        if key in loaded:
            raise InvalidInputError(f"two results have the name {key!r:.80}; give one another: NAME=FOLDER")
        loaded[key] = results
    return loaded
