"""``rag-kit compare``: several results of the same questions against each other."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_kit.cli import exits
from rag_kit.cli.options import add_options
from rag_kit.cli.output import hint, say, say_json
from rag_kit.errors import InvalidInputError

if TYPE_CHECKING:
    from rag_kit.evaluation import Results

_DESCRIPTION = """Compare what `rag-kit evaluate --out` wrote for several pipelines on the same questions: differences
with intervals and tests corrected for their number, latency and cost, which questions each one alone gets, and why
answers are wrong. NAME=FOLDER gives results another name; --metric and --slice may be given several times."""


def add_parser(commands: Any) -> None:
    """Add ``compare``."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "compare", help="compare evaluated pipelines on the same questions", description=_DESCRIPTION
    )
    add = parser.add_argument
    add("results", nargs="+", metavar="RESULTS", help="at least two folders of results")
    add("--report", type=Path, metavar="FILE", help="write a report as one HTML file")
    add("--baseline", metavar="NAME", help="test each pipeline against this one (default: every two)")
    add("--metric", action="append", metavar="NAME", help="compare this metric (default: all that two have)")
    add(
        "--slice",
        action="append",
        metavar="TAG",
        dest="slices",
        help="print scores by type, language or any tag",
    )
    add(
        "--language", choices=["en", "zh"], help="of the diagnosis and the report (default: of the questions)"
    )
    add_options(parser, "--json")


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
    results, language = _load(arguments.results), arguments.language
    options = {} if arguments.slices is None else {"slices": arguments.slices}
    comparison = compare(results, metrics=arguments.metric, baseline=arguments.baseline, **options)
    found = diagnose_all(results, language or "auto")
    if arguments.report is not None:
        settings: dict[str, Any] = {
            "comparison": comparison,
            "diagnosis": found or None,
            "language": language or "en",
        }
        hint(f"report written to {write_report(results, arguments.report, **settings)}")
    if arguments.json:
        say_json({**comparison.to_json(), "diagnoses": {name: one.to_json() for name, one in found.items()}})
        return exits.OK
    parts = [str(comparison)]
    if arguments.slices is not None:  # longer than all other tables
        slices = comparison.slices_table()
        one_part = f"all questions are in one part by {', '.join(comparison.sliced_by)}"
        parts += [slices.text().strip() if slices.rows else one_part]
    say("\n\n".join([*parts, *map(str, found.values())]))
    return exits.OK


def _load(given: list[str]) -> dict[str, Results]:
    """Name -> results; a folder that is there is meant as it stands, even with a ``=`` in its name."""
    from rag_kit.evaluation import Results

    loaded: dict[str, Results] = {}
    for text in given:
        name, _, folder = ("", "", text) if Path(text).exists() else text.rpartition("=")
        results = Results.load(Path(folder))
        key = name.strip() or results.name
        if key in loaded:
            raise InvalidInputError(f"two results have the name {key!r:.80}; give one another: NAME=FOLDER")
        loaded[key] = results
    return loaded
