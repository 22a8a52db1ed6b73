"""Verdicts by people: which cells of a run to judge next, each as a text to judge by, and keeping what was said."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rag_kit.documents import clean_text
from rag_kit.errors import InvalidInputError
from rag_kit.evaluation._files import first_few
from rag_kit.evaluation.runs.labels import draw_order
from rag_kit.evaluation.runs.results import Results
from rag_kit.evaluation.wording import say, texts
from rag_kit.text import detect_language, fold

MAX_TEXT = 6_000  # characters of one passage
#: Words -> their share of the way from the low to the high end of a scale.
_SHARES = {**dict.fromkeys(("true", "y", "是"), "1/1"), **dict.fromkeys(("false", "n", "否"), "0/1")}


@dataclass(frozen=True)
class LabelCase:
    """One answer for a person to judge; ``print`` it, or leave it as the last expression of a Jupyter cell.

    ``text`` has the passages, the question, the answer and its claims, and not what the judge said of them; the verdict
    on the value of ``metric`` is from ``low`` to ``high``. Its words are in ``language``, that of the question.
    """

    id: str
    metric: str
    text: str
    low: float
    high: float
    language: str = "en"

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return f'<pre class="mathjax_ignore" style="white-space: pre-wrap">{html.escape(self.text)}</pre>'

    def read(self, verdict: Any) -> float | None:
        """Read a verdict: a number on the scale, ``3/4``, true or ``y``, false or ``n``; ``None`` or ``s`` to skip.

        Where the scale lacks an end, only a number, ``None`` or ``s`` is one.

        Example:
            >>> case = LabelCase("q1", "faithfulness", "...", 0.0, 1.0)
            >>> case.read("y"), case.read("1/4"), case.read(0.5), case.read("s")
            (1.0, 0.25, 0.5, None)
        """
        word = fold(str(verdict)).strip()
        if verdict is None or word == "s":
            return None
        part, _, whole = _SHARES.get(word, word).partition("/")  # "y" is "1/1"
        try:
            value = float(part)
            if whole:
                value = self.low + (self.high - self.low) * value / float(whole)
        except (ValueError, ZeroDivisionError):
            value = math.nan  # is on no scale
        if math.isfinite(value) and self.low <= value <= self.high:
            return value
        refused = {"id": f"{self.id!r:.80}", "verdict": f"{verdict!r:.40}", "scale": self.scale()}
        raise InvalidInputError(say("label_refused", self.language, **refused))

    def scale(self) -> str:
        """Describe the verdicts that can be read."""
        if math.inf in (-self.low, self.high):
            return say("label_number", self.language)
        return say("label_scale", self.language, low=f"{self.low:g}", high=f"{self.high:g}")


def to_label(run: Results | Path | str, metric: str | None = None, n: int = 60) -> list[LabelCase]:
    """List the next answers that a person should judge, until ``n`` are judged.

    They are drawn at random from those that have a value, by a hash of their ids: whoever stops after any number has a
    random sample, without which no interval holds, and two runs over one set are labelled on the same questions.

    Args:
        run: Results, or the folder of a run.
        metric: Which; default: the first that asks a judge.
        n: How many verdicts are wanted in all.

    Raises:
        InvalidInputError: If there is no such metric, none asks a judge and none is named, it has no value, or ``n``
            is no number from 1.

    Example:
        >>> from rag_kit.evaluation import Example
        >>> from rag_kit.evaluation.cells import Cell
        >>> from rag_kit.evaluation.outputs import Output
        >>> from rag_kit.evaluation.runs.rows import Row
        >>> rows = [Row(Example(f"q{i}", "Who?"), Output("Ada."), {"faithfulness": Cell.ok(1.0)}) for i in range(30)]
        >>> results = Results("mine", rows)
        >>> cases = to_label(results, n=12)
        >>> len(cases), len(to_label(label(results, {case.id: True for case in cases}), n=20))
        (12, 8)
    """
    results, name = _run_and_metric(run, metric)
    values, verdicts = results.values(name), results.labels.verdicts.get(name, {})
    if type(n) is not int or n < 1 or not values:
        raise InvalidInputError(
            f"n is {n!r:.40}, and {len(values)} answers have a value of {name}; give a number from 1, and a metric "
            "that has values"
        )
    return [_make_case(results, name, key) for key in draw_order(values)[:n] if key not in verdicts]


def label(run: Results | Path | str, verdicts: Mapping[str, Any], metric: str | None = None) -> Results:
    """Keep people's verdicts, and return the results with means corrected by them.

    Args:
        run: The folder of a run, which then keeps the verdicts in ``labels.jsonl``; or results, which keep them until
            they are saved.
        verdicts: Id of an example -> what ``LabelCase.read`` takes: a number, true, false, ``None`` for "cannot tell".
        metric: As for `to_label`.

    Raises:
        InvalidInputError: If an id or a verdict is not allowed; then none is kept.
        LockedError: If somebody else is writing labels of this run for more than some seconds.
    """
    results, name = _run_and_metric(run, metric)
    values = results.values(name)
    unknown = [key for key in verdicts if key not in values] if isinstance(verdicts, Mapping) else [verdicts]
    if unknown:
        raise InvalidInputError(
            f"verdicts has {first_few(unknown)}; give id of an example -> verdict, for examples with a value of "
            f"{name}, such as {first_few(values, 2)}"
        )
    read = {key: _make_case(results, name, key).read(verdict) for key, verdict in verdicts.items()}
    results.labels.verdicts.setdefault(name, {}).update(read)
    if not isinstance(run, Results):
        results.labels.save(Path(run), results.rows)
    return results


def _run_and_metric(run: Results | Path | str, metric: str | None) -> tuple[Results, str]:
    """Return the results, loaded from a folder, and the name of the metric to label; refuse an unknown one."""
    results = run if isinstance(run, Results) else Results.load(run)
    judged = [name for name in results.metrics if results.source(name) == "judge"]
    if metric is None and not judged:
        raise InvalidInputError(
            f"no metric of {results.name!r:.80} asks a judge; name the one to label: {', '.join(results.metrics)}"
        )
    name = str(judged[0] if metric is None else metric)
    results.cells(name)  # raises if there is no such metric
    return results, name


def _make_case(results: Results, metric: str, example_id: str) -> LabelCase:
    """Write out one answer for a person: passages, question, answer, its claims, and at the end the task."""
    row = results[example_id]
    example, output = row.example, row.output
    language = detect_language(example.question)
    low, high = results.scale(metric)
    ends = (-math.inf if low is None else low, math.inf if high is None else high)
    stage = results.describe(metric).get("stage") or "generation"
    keys = (f"label_ask_{metric}", f"label_ask_{stage}", "label_ask")  # the closest first; the last is there
    task = say(next(key for key in keys if key in texts()[language]), language)
    sections = []
    for number, text in enumerate(output.contexts, start=1):
        shown = text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]} …"
        sections.append(f"[{number}]: {shown}")
    sections.append(say("label_question", language, text=example.question))
    if example.reference:
        sections.append(say("label_reference", language, text=example.reference))
    sections.append(say("label_answer", language, text=output.answer or "–"))
    claims = enumerate(_claims(row.cells[metric].details), start=1)
    if numbered := "\n".join(f"{number}. {text}" for number, text in claims):
        sections.append(say("label_claims", language, text=numbered))
    case = LabelCase(example_id, metric, "\n\n".join([*sections, f"{metric}: {task}"]), *ends, language)
    return replace(case, text=clean_text(f"{case.text} {case.scale()}"))


def _claims(details: Mapping[str, Any]) -> list[str]:
    """Return the statements of an answer that the details of a cell hold, in a reply of its judge or themselves."""
    for record in (*(details.get("replies") or ()), details):
        if items := record.get("statements") or record.get("claims"):
            claims = [
                item if isinstance(item, str) else item.get("statement") or item.get("text") for item in items
            ]
            return [claim for claim in claims if claim]
    return []
