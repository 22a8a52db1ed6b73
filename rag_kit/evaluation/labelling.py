"""Verdicts by people: which cells of a run to judge next, each as a text to judge by, and keeping what was said."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag_kit.documents import clean_text
from rag_kit.errors import InvalidInputError
from rag_kit.evaluation._files import first_few
from rag_kit.evaluation.runs.labels import draw_order
from rag_kit.evaluation.runs.results import Results
from rag_kit.evaluation.wording import say, texts

MAX_TEXT = 6_000  # characters of one passage


@dataclass(frozen=True)
class Case:
    """One answer for a person to judge; ``print`` it, or leave it as the last expression of a Jupyter cell.

    Attributes:
        id: Id of the example.
        metric: Whose value the verdict is.
        text: Passages, question, answer and the claims in it; not what the judge said of them.
        low: The verdict "no", the least value.
        high: The verdict "yes", the greatest value.
        language: Of the words around the texts.
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
        """The value of a verdict: a number on the scale, true or ``y``, false or ``n``, ``3/4``; ``None`` or ``s``.

        Example:
            >>> case = Case("q1", "faithfulness", "...", 0.0, 1.0)
            >>> case.read("y"), case.read("1/4"), case.read(0.5), case.read("s")
            (1.0, 0.25, 0.5, None)
        """
        word = verdict.strip().lower() if isinstance(verdict, str) else verdict
        if word is None or word == "s":
            return None
        if isinstance(word, bool) or word in ("y", "n"):
            return self.high if word in (True, "y") else self.low
        try:
            count, _, total = str(word).partition("/")
            share = float(count) / float(total) if total else None
            value = float(count) if share is None else self.low + (self.high - self.low) * share
        except (ValueError, ZeroDivisionError):
            value = float("nan")
        if not self.low <= value <= self.high:
            raise InvalidInputError(
                f"the verdict on {self.id!r:.80} is {verdict!r:.40}; give a number from {self.low:g} to {self.high:g}, "
                "a share such as 3/4, y or true for the greatest, n or false for the least, s or None: cannot tell"
            )
        return value


def to_label(
    run: Results | Path | str, metric: str | None = None, n: int = 60, *, language: str | None = None
) -> list[Case]:
    """The next answers that a person should judge, until ``n`` are judged.

    They are drawn at random from those that have a value, by a hash of their ids: whoever stops after any number has a
    random sample, without which no interval holds, and two runs over one set are labelled on the same questions.

    Args:
        run: Results, or the folder of a run.
        metric: Which; default: the first that asks a judge, else the first.
        n: How many verdicts are wanted in all.
        language: ``en`` or ``zh``, of the words around the texts; default: that of each question.

    Raises:
        InvalidInputError: If there is no such metric, it has no value, or an argument is not allowed.

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
    results = run if isinstance(run, Results) else Results.load(run)
    if type(n) is not int or n < 1 or language not in (None, *texts()):
        raise InvalidInputError(
            f"n is {n!r:.40}, language {language!r:.40}; give a number from 1, and en or zh"
        )
    name = _choose_metric(results, metric)
    verdicts, values = results.labels.verdicts.get(name, {}), results.values(name)
    if not values:
        raise InvalidInputError(f"{name} has no value for any question, so there is nothing to label")
    drawn = draw_order(values)[: max(n, 0)]
    return [_make_case(results, name, key, language) for key in drawn if key not in verdicts]


def label(run: Results | Path | str, verdicts: Mapping[str, Any], metric: str | None = None) -> Results:
    """Keep verdicts of people, and give the results with them: their means are then corrected by the labels.

    Args:
        run: The folder of a run, which then keeps the verdicts in ``labels.jsonl``; or results, which keep them until
            they are saved.
        verdicts: Id of an example -> what ``Case.read`` takes: a number, true, false, ``None`` for "cannot tell".
        metric: As for `to_label`.

    Raises:
        InvalidInputError: If an id or a verdict is not allowed; then none is kept.
        LockedError: If somebody else is labelling this run.
    """
    results = run if isinstance(run, Results) else Results.load(run)
    name = _choose_metric(results, metric)
    values = results.values(name)
    if not isinstance(verdicts, Mapping) or (unknown := [key for key in verdicts if key not in values]):
        given = first_few(unknown) if isinstance(verdicts, Mapping) else type(verdicts).__name__
        raise InvalidInputError(
            f"verdicts has {given}; give id of an example -> verdict, for examples with a value of {name}, such as "
            f"{first_few(values, 2)}"
        )
    low, high = _ends(results, name)
    read = {key: Case(key, name, "", low, high).read(verdict) for key, verdict in verdicts.items()}
    results.labels.verdicts.setdefault(name, {}).update(read)
    if not isinstance(run, Results):
        results.labels.save(Path(run), results.rows)
    return results


def _choose_metric(results: Results, metric: str | None) -> str:
    """The metric to label; one that is not there is refused."""
    if metric is None:
        entries = results.manifest.get("metrics") or ()
        judged = [entry["name"] for entry in entries if entry.get("asks_judge")]
        metric = next(iter([*judged, *results.metrics]), None)
    results.cells(str(metric))
    return str(metric)


def _ends(results: Results, metric: str) -> tuple[float, float]:
    """Ends of the scale; where it has none, any finite number is a verdict."""
    low, high = results.scale(metric)
    return (-1e300 if low is None else low), (1e300 if high is None else high)


def _make_case(results: Results, metric: str, key: str, language: str | None) -> Case:
    """What a person needs to judge one cell: passages first, what is asked last."""
    from rag_kit.text import detect_language

    row, (low, high) = results[key], _ends(results, metric)
    example, output = row.example, row.output
    words = language or detect_language(example.question)
    entries = results.manifest.get("metrics") or ()
    stage = (
        next((entry.get("stage") for entry in entries if entry.get("name") == metric), None) or "generation"
    )
    ask = next(
        key for key in (f"label_ask_{metric}", f"label_ask_{stage}", "label_ask") if key in texts()[words]
    )
    parts = [(f"[{number}]", _cut(text)) for number, text in enumerate(output.contexts, start=1)]
    claims = "\n".join(f"{n}. {text}" for n, text in enumerate(_claims(row.cells[metric].details), start=1))
    for name, text in (
        ("question", example.question),
        ("reference", example.reference),
        ("answer", output.answer or "–"),
        ("claims", claims),
    ):
        parts += [(say(f"label_{name}", words), text)] if text else []
    parts.append((metric, say(ask, words)))
    lines = (f"{head}:{chr(10) if chr(10) in text else ' '}{text}" for head, text in parts)
    return Case(key, metric, clean_text("\n\n".join(lines)), low, high, words)


def _cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]} … (+{len(text) - MAX_TEXT:,})"


def _claims(details: Mapping[str, Any]) -> list[str]:
    """The statements of an answer, as the judge or the kit cut them."""
    for record in (*(details.get("replies") or ()), details):
        for name in ("statements", "claims"):
            items = record.get(name) if isinstance(record, Mapping) else None
            if isinstance(items, list) and items:
                texts = [
                    item.get("statement") or item.get("text") if isinstance(item, Mapping) else item
                    for item in items
                ]
                return [text for text in texts if isinstance(text, str)]
    return []
