"""How sure was the pipeline where it was right, and where it was wrong?"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.plots.drawing import WIDTH, Drawing, Plot, Scale, fit, nice_ticks, width_of

if TYPE_CHECKING:
    from rag_kit.evaluation.comparing.comparison import Comparison
    from rag_kit.evaluation.runs.results import Results
    from rag_kit.evaluation.runs.rows import Row

Confidence = Callable[["Row"], float | None]

_HEIGHT = 132.0
_FIRST = "score"


def confidence_histogram(
    results: Results | Comparison | Iterable[Results],
    *,
    metric: str | None = None,
    confidence: str | Confidence = "auto",
    threshold: float = 0.5,
    bins: int = 10,
    language: str = "en",
) -> Plot:
    """Questions by confidence, those that were got and those that were not stacked; one panel for each pipeline.

    Where both kinds stand side by side at the right, a threshold on the confidence cannot tell them apart.

    Args:
        results: Of one or several runs, or what `compare` gave.
        metric: Says whether a question was got; default: the first one.
        confidence: Where the confidence comes from: ``score`` (the first passage's score), ``extra:NAME`` (a number
            that the pipeline gave under that name), the name of a metric, or a function of a row; ``auto``:
            ``extra:confidence`` where there is one, else ``score``, else the metric itself.
        threshold: A question was got from this value of the metric on.
        bins: Bars of a panel, 2 to 100.
        language: ``en``, ``zh`` or ``both``.

    Raises:
        InvalidInputError: If the metric is not there, or a setting is out of range.
    """
    named = _runs(results)
    present = list(dict.fromkeys(name for _, run in named for name in run.metrics))
    chosen = metric if metric is not None or not present else present[0]
    if chosen not in present:
        raise InvalidInputError(
            f"the results have no metric {metric!r:.80}; there are {', '.join(present) or 'none'}"
        )
    if isinstance(bins, bool) or not isinstance(bins, int) or not 2 <= bins <= 100:
        raise InvalidInputError(f"bins is {bins!r:.80}; give a whole number from 2 to 100")
    if isinstance(threshold, bool) or not isinstance(threshold, (int, float)) or not abs(threshold) < 1e300:
        raise InvalidInputError(f"threshold is {threshold!r:.80}; give a number")
    what, read = _source([run for _, run in named], chosen, confidence)
    panels = [(name, [(read(row), row.cells.get(chosen)) for row in run.rows]) for name, run in named]
    known = [[value for value, _ in pairs if value is not None] for _, pairs in panels]
    drawing = Drawing(38 + _HEIGHT * len(panels), language)
    key = "svg_across_first" if what == _FIRST else "svg_across"
    drawing.say(4, 12, key, {"name": fit(what, 200)})
    x = 4.0
    for colour, kind in (("s1", "svg_from"), ("s2", "svg_below"), ("muted", "svg_none")):
        drawing.rect(x, 20, 9, 9, colour, opacity=0.5 if colour == "muted" else 1)
        values = {"metric": fit(chosen, 130), "bound": f"{threshold:g}"}
        drawing.say(x + 14, 28, kind, values)
        x += 14 + (width_of(f"{values['metric']} from {threshold:g}") if colour == "s1" else 70)
    for number, ((name, pairs), ticks) in enumerate(
        zip(panels, _scales(known, ranked=what == _FIRST), strict=True)
    ):
        _panel(drawing, 38 + _HEIGHT * number, name, pairs, ticks, bins, threshold)
    return drawing.plot(f"{chosen}: {', '.join(name for name, _ in panels)}")


def _runs(results: Any) -> list[tuple[str, Results]]:
    from rag_kit.evaluation.comparing.comparison import Comparison
    from rag_kit.evaluation.runs.results import Results

    if isinstance(results, Comparison):
        return list(zip(results.pipelines, results.results, strict=True))
    runs = (
        [results] if isinstance(results, Results) else list(results) if isinstance(results, Iterable) else []
    )
    if not runs or not all(isinstance(run, Results) for run in runs):
        raise InvalidInputError(
            f"results is a {type(results).__name__}; give Results, several, or a Comparison"
        )
    return [(run.name, run) for run in runs]


def _source(runs: Sequence[Results], metric: str, confidence: str | Confidence) -> tuple[str, Confidence]:
    if callable(confidence):
        function = confidence
        return "confidence", lambda row: _number(function(row))
    present = {name for run in runs for name in run.metrics}
    if confidence == "auto":
        for name in ("extra:confidence", _FIRST):
            what, read = _source(runs, metric, name)
            if any(read(row) is not None for run in runs for row in run.rows):
                return what, read
        confidence = metric
    if not isinstance(confidence, str):
        raise InvalidInputError(f"confidence is {confidence!r:.80}; give a name, or a function of a row")
    if confidence == _FIRST:
        return _FIRST, _first_score
    if confidence.startswith("extra:"):
        key = confidence.removeprefix("extra:")
        return key, lambda row: _number(row.output.extra.get(key))
    if confidence not in present:
        raise InvalidInputError(
            f"confidence is {confidence!r:.80}; give 'auto', 'score', 'extra:NAME', a function of a row, or one of "
            f"the metrics {', '.join(sorted(present))}"
        )
    name = confidence
    return name, lambda row: _number(getattr(row.cells.get(name), "value", None))


def _first_score(row: Row) -> float | None:
    first = (row.output.passages or (None,))[0]
    return None if first is None else _number(first.provenance.get("score"))


def _number(value: Any) -> float | None:
    right = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if right else None


def _scales(panels: Sequence[Sequence[float]], *, ranked: bool) -> list[list[float]]:
    """Ticks of each panel: one scale for all, but where scores of rankings differ more than tenfold.

    BM25 gives 30 where reciprocal rank fusion gives 0.03. What else lies within 0 to 1 is shown there.
    """
    together = [value for values in panels for value in values]
    if not ranked and all(0 <= value <= 1 for value in together):
        return [nice_ticks(0.0, 1.0, 5)] * len(panels)
    largest = [max(map(abs, values)) for values in panels if values]
    one_scale = not ranked or not largest or min(largest) > 0.1 * max(largest)
    return [
        nice_ticks(min([0.0, *shown]), max([0.0, *shown]) or 1.0, 5)
        for shown in ([together] * len(panels) if one_scale else panels)
    ]


def _panel(
    drawing: Drawing, top: float, name: str, pairs: Sequence[tuple[float | None, Any]], ticks: list[float],
    bins: int, threshold: float,
) -> None:  # fmt: skip
    counts = [[0, 0, 0] for _ in range(bins)]
    low, high = ticks[0], ticks[-1]
    for value, cell in pairs:
        if value is None:
            continue
        place = min(bins - 1, max(0, int((value - low) / (high - low) * bins)))
        known = cell is not None and cell.value is not None
        counts[place][2 if not known else 0 if cell.value >= threshold else 1] += 1
    without = sum(value is None for value, _ in pairs)
    values = {"name": fit(name, 200), "n": len(pairs) - without, "without": without}
    drawing.say(4, top + 16, "svg_panel" if without else "svg_panel_all", values, "ink", font_weight="bold")
    most = max(1, *(sum(each) for each in counts))
    whole = [tick for tick in nice_ticks(0, most, 4) if tick == int(tick)]
    upright = Scale(whole if whole[-1] >= most else [0.0, float(most)], top + _HEIGHT - 20, top + 24)
    across = Scale(ticks, 30, WIDTH - 10)
    upright.draw_upright(drawing, 30, WIDTH - 10)
    across.draw_across(drawing, top + 24, top + _HEIGHT - 20, grid=False)
    wide = (WIDTH - 40) / bins
    for place, each in enumerate(counts):
        below = 0
        for count, colour in zip(each, ("s1", "s2", "muted"), strict=True):
            if count:
                y = upright(below + count)
                opacity = 0.5 if colour == "muted" else 1
                drawing.rect(30 + wide * place + 1, y, wide - 2, upright(below) - y, colour, opacity=opacity)
                below += count
