"""``rag-kit compare``: several results of the same questions against each other."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_kit.cli import exits
from rag_kit.cli.options import add_options, numbers
from rag_kit.cli.output import hint, say, say_json
from rag_kit.errors import InvalidInputError

if TYPE_CHECKING:
    from rag_kit.evaluation import Results
    from rag_kit.evaluation.comparison import Comparison

_DESCRIPTION = """Compare what `rag-kit evaluate --out` wrote for several pipelines on the same questions: differences
with intervals and tests corrected for their number, latency and cost, which questions each one alone gets, and why
answers are wrong."""


def add_parser(commands: Any) -> None:
    """Add ``compare``."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "compare", help="compare evaluated pipelines on the same questions", description=_DESCRIPTION
    )
    parser.add_argument(
        "results", nargs="+", metavar="RESULTS",
        help="at least two folders of results; NAME=FOLDER gives one another name",
    )  # fmt: skip
    parser.add_argument("--report", type=Path, metavar="FILE", help="write a report as one HTML file")
    add_options(parser, "--json")
    parser.add_argument(
        "--baseline", metavar="NAME",
        help="test each pipeline against this one (default: every two against each other)",
    )  # fmt: skip
    parser.add_argument(
        "--metric", action="append", metavar="NAME",
        help="compare this metric; may be given several times (default: all that two results have)",
    )  # fmt: skip
    parser.add_argument(
        "--slice", action="append", metavar="TAG", dest="slices",
        help="show scores by type, language or any tag too; may be given several times (default: those two, in JSON "
        "and the report only)",
    )  # fmt: skip
    parser.add_argument(
        "--threshold", action="append", default=[], metavar="METRIC=VALUE", dest="thresholds",
        help="a question counts as got from this value on (default 0.5); adds McNemar's test for the metric",
    )  # fmt: skip
    parser.add_argument(
        "--level", type=float, default=0.95, metavar="SHARE", help="share of the intervals (default 0.95)"
    )
    parser.add_argument(
        "--language", choices=["en", "zh"], help="of the diagnosis and the report (default: of the questions)"
    )
    parser.add_argument("--title", metavar="TEXT", help="title of the report")


def run(arguments: argparse.Namespace) -> int:
    """Compare and print.

    Raises:
        InvalidInputError: If the results are of different questions, have one name, or a setting is wrong.
    """
    from rag_kit.evaluation import compare
    from rag_kit.evaluation._files import check_target
    from rag_kit.evaluation.diagnosis import diagnose_all
    from rag_kit.evaluation.reporting.writing import write_report

    check_target(arguments.report)
    results = _load(arguments.results)
    options = {} if arguments.slices is None else {"slices": arguments.slices}
    thresholds = numbers(arguments.thresholds, "--threshold")
    comparison = compare(
        results, metrics=arguments.metric, baseline=arguments.baseline, level=arguments.level,
        thresholds=thresholds or None, **options,
    )  # fmt: skip
    found = diagnose_all(results, arguments.language or "auto")
    if arguments.report is not None:
        written = write_report(
            results, arguments.report, comparison=comparison, diagnosis=found or None, title=arguments.title,
            language=arguments.language or "en",
        )  # fmt: skip
        hint(f"report written to {written}")
    if arguments.json:
        say_json({**comparison.to_json(), "diagnoses": {name: one.to_json() for name, one in found.items()}})
    else:
        say("\n\n".join([str(comparison), *_slices(comparison, arguments.slices), *map(str, found.values())]))
    return exits.OK


def _slices(comparison: Comparison, asked: list[str] | None) -> list[str]:
    """The table of the parts, only where it was asked for: it is longer than all others."""
    if asked is None:
        return []
    table = comparison.slices_table()
    if not table.rows:
        hint(f"all questions are in one part by {', '.join(comparison.sliced_by)}")
    return [table.text().strip()] if table.rows else []


def _load(given: list[str]) -> dict[str, Results]:
    """Name -> results; a folder that is there is meant as it stands, even with a ``=`` in its name."""
    from rag_kit.evaluation import Results

    loaded: dict[str, Results] = {}
    for text in given:
        name, equals, folder = text.partition("=")
        named = bool(equals) and not Path(text).exists()
        if named and (not name.strip() or not folder):
            raise InvalidInputError(f"{text!r:.80} is no folder of results; give FOLDER or NAME=FOLDER")
        results = Results.load(Path(folder if named else text))
        key = name.strip() if named else results.name
        if key in loaded:
            raise InvalidInputError(
                f"two results have the name {key!r:.80}; give one another name: NAME=FOLDER"
            )
        loaded[key] = results
    return loaded
