"""Judge answers yourself, for intervals that say how right a judge is.

Of a run that `rag-kit evaluate --out` wrote: passages, question, answer and its claims, one random answer after the
other; each verdict is kept at once in labels.jsonl beside the results. Ten are enough for an interval, 60 for a good
one. Stopped at any time, the same command goes on from there.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from rag_kit.cli.output import hint, problem, say
from rag_kit.errors import InvalidInputError

if TYPE_CHECKING:
    from rag_kit.evaluation.labelling import LabelCase


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``label``."""
    add = parser.add_argument
    add("run", type=Path, metavar="RUN", help="folder of results")
    add("--metric", metavar="NAME", help="label this metric (default: the first that asks a judge)")
    add("-n", type=int, default=60, metavar="N", help="verdicts wanted in all (default 60)")


def run(arguments: argparse.Namespace) -> None:
    """Ask for a verdict on one case after the other, until the input ends; then print the results with the labels."""
    from rag_kit.evaluation import Results, wording
    from rag_kit.evaluation.labelling import label, to_label

    results = Results.load(arguments.run)
    cases = to_label(results, arguments.metric, arguments.n)
    language = wording.main_language(row.example.question for row in results.rows)
    hint(wording.say("label_start" if cases else "label_done", language, n=arguments.n))
    for number, case in enumerate(cases, start=1):
        say(f"\n--- {number} / {len(cases)}\n{case}")
        if (verdict := _ask(case)) is None:
            break
        label(results, {case.id: verdict}, case.metric)
        results.labels.save(arguments.run, [results[case.id]])
    say(f"\n{results}")


def _ask(case: LabelCase) -> str | None:
    """Ask until a verdict can be read, and return it; ``None`` if the input ends or is ``q``."""
    while True:
        try:
            answer = input("> ").strip()
            if answer.lower() == "q":
                return None
            case.read(answer)  # refuses what is no verdict
            return answer
        except EOFError:
            return None
        except InvalidInputError as error:
            problem(str(error))
