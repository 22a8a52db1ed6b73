"""Compare evaluated pipelines on the same questions.

Of what `rag-kit evaluate --out` wrote: differences with intervals and tests corrected for their number, latency and
cost, which questions each one alone gets, and why answers are wrong. NAME=FOLDER gives results another name; --metric
and --slice may be given several times.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from rag_kit.cli.options import add_options, pick
from rag_kit.cli.output import say, say_json
from rag_kit.errors import InvalidInputError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``compare``."""
    add = parser.add_argument
    add("results", nargs="+", metavar="RESULTS", help="at least two folders of results")
    add("--report", type=Path, metavar="FILE", help="write a report as one HTML file")
    add("--baseline", metavar="NAME", help="test each pipeline against this one (default: every two)")
    text = "compare this metric (default: all)"
    add("--metric", action="append", metavar="NAME", dest="metrics", help=text)
    text = "print scores by type, language or any tag"
    add("--slice", action="append", metavar="TAG", dest="slices", help=text)
    text = "of what is printed and of the report (default: of the questions)"
    add("--language", choices=["en", "zh"], default="auto", help=text)
    add_options(parser, "--json")


def run(arguments: argparse.Namespace) -> None:
    """Load the results, compare and diagnose them, write a report if one is wanted, and print the tables."""
    from rag_kit.evaluation import Results, compare, write_report
    from rag_kit.evaluation._files import check_target
    from rag_kit.evaluation.diagnosis import diagnose_all
    from rag_kit.evaluation.wording import in_language

    check_target(arguments.report)
    results: dict[str, Results] = {}
    for name, folder in map(_split_name, arguments.results):
        loaded = Results.load(folder)
        name = name or loaded.name
        if name in results:
            raise InvalidInputError(f"two results have the name {name!r:.80}; give one another: NAME=FOLDER")
        results[name] = loaded
    language = arguments.language
    comparison = compare(results, **pick(arguments, "metrics", "baseline", "slices"))
    if language != "auto":
        comparison = comparison.in_language(language)
    diagnoses = diagnose_all(results, language)
    if (path := arguments.report) is not None:
        write_report(results, path, comparison=comparison, diagnosis=diagnoses or None, language=language)
    if arguments.json:
        records = {name: diagnosis.to_json() for name, diagnosis in diagnoses.items()}
        say_json({**comparison.to_json(), "diagnoses": records})
        return
    say(str(comparison))
    if arguments.slices is not None:  # longer than all other tables
        slices = comparison.slices_table()
        one_part = f"all questions are in one part by {', '.join(comparison.sliced_by)}"
        say("\n" + (slices.text().strip() if slices.rows else in_language(one_part, comparison.language)))
    for diagnosis in diagnoses.values():
        say(f"\n{diagnosis}")


def _split_name(text: str) -> tuple[str, Path]:
    """Split ``NAME=FOLDER`` or ``FOLDER`` (name ""); of several ``=``, before the first text that is a folder."""
    pieces = text.split("=")
    for count in range(len(pieces)):  # of the pieces that are the name
        name, folder = "=".join(pieces[:count]).strip(), "=".join(pieces[count:])
        if folder and Path(folder).is_dir():
            break
    if not folder:  # it would be the current one
        raise InvalidInputError(f"{text!r:.80} names no folder of results; give FOLDER or NAME=FOLDER")
    return name, Path(folder)
