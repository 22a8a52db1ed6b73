"""Plots: text stays text and harmless, colours become variables, nothing global is touched."""

from __future__ import annotations

import random
import re
import subprocess
import sys
import threading
import warnings
from xml.etree import ElementTree

import matplotlib as mpl
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation import Cell, Comparison, Example, Output, Passage, Results, Row, compare
from rag_kit.evaluation.plots import (
    VARIABLES,
    complementarity_heatmap,
    confidence_histogram,
    latency_against_quality,
    scores_with_intervals,
    to_svg,
)
from rag_kit.evaluation.plots.style import font_families, nice_ticks, safe

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = '</text><script>alert(1)</script>" onload="x" $\\frac{1}{$ \x1b[31m\u202eurl(#a) #1b1f23'
PLOTS = [scores_with_intervals, latency_against_quality, complementarity_heatmap, confidence_histogram]


def made(
    names: tuple[str, ...] = ("bm25", "混合检索"), metric: str = "correctness", count: int = 24
) -> Comparison:
    """A comparison with values, failures, latencies and first scores."""
    chance = random.Random(3)
    runs = []
    for number, name in enumerate(names):
        rows = []
        for i in range(count):
            value = Cell.error("time-out") if chance.random() < 0.1 else Cell.ok(round(chance.random(), 2))
            passage = Passage("d", "Text.", provenance={"score": chance.random() * 3})
            output = Output("It.", (passage,), seconds=0.2 + number + chance.random())
            rows.append(
                Row(Example(f"q{i}", f"What is {i}?"), output, {metric: value, "hit": Cell.ok(float(i % 2))})
            )
        runs.append(Results(name, rows, (metric, "hit")))
    return compare(runs)


def texts(svg: str) -> list[str]:
    """All texts of an SVG."""
    return ["".join(element.itertext()) for element in ElementTree.fromstring(svg).iter(f"{SVG}text")]


@pytest.mark.parametrize("plot", PLOTS)
def test_names_are_in_the_drawing_as_text(plot) -> None:
    """English and Chinese names can be read and searched for in the SVG, and drawn as pixels."""
    figure = plot(made())
    assert isinstance(figure, Figure)
    svg = to_svg(figure)
    joined = "\n".join(texts(svg))
    assert "bm25" in joined and "混合检索" in joined
    figure.canvas.draw()


@pytest.mark.parametrize("plot", PLOTS)
def test_hostile_names_are_inert(plot) -> None:
    """No element, attribute, formula, control character or colour comes out of a name."""
    comparison = made(names=(HOSTILE, f"b{HOSTILE}", "$x$"), metric=HOSTILE)
    figure = plot(comparison)
    svg = to_svg(figure)
    root = ElementTree.fromstring(svg)
    tags = {element.tag.removeprefix(SVG) for element in root.iter()}
    assert tags <= {"svg", "title", "defs", "g", "path", "use", "text", "tspan", "clipPath", "rect"}
    assert not any(name.lower().startswith("on") for element in root.iter() for name in element.attrib)
    assert "\x1b" not in svg and "\u202e" not in svg
    assert any("</text><script>" in text for text in texts(svg))
    assert any("$x$" in text for text in texts(svg))
    figure.canvas.draw()


@pytest.mark.parametrize("plot", PLOTS)
def test_colours_are_variables(plot) -> None:
    """Every colour of the drawing is a variable with the light colour as fallback."""
    svg = to_svg(plot(made()))
    styles = " ".join(element.get("style", "") for element in ElementTree.fromstring(svg).iter())
    assert "var(--ink, #1b1f23)" in styles or "var(--muted, #57606b)" in styles
    assert "var(--series-1, #1f6fb2)" in styles
    assert set(re.findall(r"#[0-9a-f]{6}", re.sub(r"var\(--[\w-]+, #[0-9a-f]{6}\)", "", styles))) == set()


@pytest.mark.parametrize("plot", PLOTS)
def test_a_drawing_brings_nothing_along(plot) -> None:
    """No declaration, style sheet, metadata, font or link; a title for those who do not see it."""
    svg = to_svg(plot(made()), prefix="p7")
    assert svg.startswith("<svg")
    assert not re.search(r"<style|<metadata|<!DOCTYPE|<\?xml|<image|<a |DejaVu|http://(?!www\.w3\.org)", svg)
    root = ElementTree.fromstring(svg)
    assert root.get("role") == "img"
    assert root[0].tag == f"{SVG}title" and "bm25" in str(root[0].text)
    assert "var(--font" in svg


def test_two_drawings_share_no_id() -> None:
    """With prefixes of their own all ids of a page differ, and every reference has its target."""
    comparison = made()
    roots = [ElementTree.fromstring(to_svg(plot(comparison), prefix=f"p{n}")) for n, plot in enumerate(PLOTS)]
    ids = [element.get("id") for root in roots for element in root.iter() if element.get("id")]
    assert len(ids) == len(set(ids))
    for root in roots:
        own = {element.get("id") for element in root.iter()}
        for element in root.iter():
            for name, value in element.attrib.items():
                target = value[1:] if name.endswith("href") else None
                clipped = re.search(r"url\(#([^)]+)\)", value)
                assert target is None or target in own
                assert clipped is None or clipped.group(1) in own


def test_the_same_comparison_gives_the_same_drawing() -> None:
    """A report that is made twice is the same file."""
    assert to_svg(scores_with_intervals(made())) == to_svg(scores_with_intervals(made()))


def test_nothing_global_is_touched() -> None:
    """The settings of matplotlib stay, pyplot is not imported, no backend is chosen."""
    program = (
        "import sys, matplotlib\n"
        "before = matplotlib.rcParams.copy()\n"
        "import rag_kit.evaluation.plots as plots\n"
        "from rag_kit.evaluation.plots.style import new_figure\n"
        "figure, axes = new_figure(3, 2, 'x')\n"
        "plots.to_svg(figure)\n"
        "assert dict.__eq__(matplotlib.rcParams, before)\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-W", "ignore::DeprecationWarning", "-c", program],
        check=True,
        timeout=240,
    )


def test_importing_the_plots_imports_no_matplotlib() -> None:
    """Only drawing needs it."""
    program = (
        "import sys, rag_kit.evaluation.plots.style, rag_kit.evaluation.plots.scores\n"
        "assert 'matplotlib' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=240)


def test_settings_of_the_user_do_not_reach_in() -> None:
    """With TeX, a dark style and paths for fonts set globally the drawing is the same."""
    expected = to_svg(latency_against_quality(made()))
    with mpl.rc_context(
        {"text.color": "#ff0000", "axes.facecolor": "#000000", "svg.fonttype": "path", "text.usetex": True}
    ):
        assert to_svg(latency_against_quality(made())) == expected


def test_several_threads_may_draw() -> None:
    """The SVG of a thread is that of one alone, and the settings are back afterwards."""
    expected = to_svg(scores_with_intervals(made()))
    found: list[str] = []
    threads = [
        threading.Thread(target=lambda: found.append(to_svg(scores_with_intervals(made())))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert found == [expected] * 4
    assert mpl.rcParams["svg.fonttype"] == "path"


def test_no_text_is_read_as_a_formula() -> None:
    """Every text of every plot is set so that dollar signs are dollar signs."""
    for plot in PLOTS:
        for text in plot(made(names=("$a$", "$b^$"))).findobj(Text):
            assert not text.get_text() or not text.get_parse_math(), text


def test_chinese_is_drawn_without_a_warning() -> None:
    """Where a Chinese font is installed it is found; no glyph is missing."""
    if len(font_families()) == 1:
        pytest.skip("no Chinese font is installed")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scores_with_intervals(made(names=("混合检索", "关键词"))).canvas.draw()


def test_a_metric_without_a_value_is_drawn_as_such() -> None:
    """No value gives the words, no point at zero."""
    rows = [Row(Example("q", "Who?"), Output("It."), {"m": Cell.error("x"), "hit": Cell.ok(1.0)})]
    comparison = compare([Results(name, rows, ("m", "hit")) for name in ("a", "b")])
    for plot in PLOTS[:3]:
        to_svg(plot(comparison, **({"metrics": ["m"]} if plot is scores_with_intervals else {"metric": "m"})))
    assert texts(to_svg(scores_with_intervals(comparison, metrics=["m"]))).count("no value") == 2


def test_twenty_pipelines_are_numbered() -> None:
    """Many names stand beside the plot with their number, none is lost."""
    names = tuple(f"pipeline {chr(97 + n)}" for n in range(20))
    comparison = made(names=names, count=6)
    for plot in (latency_against_quality, complementarity_heatmap):
        joined = "\n".join(texts(to_svg(plot(comparison))))
        assert all(name in joined for name in names)


def test_the_line_joins_what_none_beats() -> None:
    """Quicker and better ones are joined, beaten ones are not; less may be better."""

    def run(name: str, value: float, seconds: float) -> Results:
        return Results(
            name, [Row(Example("q", "Who?"), Output("It.", seconds=seconds), {"m": Cell.ok(value)})]
        )

    comparison = compare([run("quick", 0.5, 1.0), run("beaten", 0.4, 2.0), run("good", 0.9, 3.0)])
    dashed = [
        line for line in latency_against_quality(comparison).axes[0].lines if line.get_linestyle() == "--"
    ]
    assert [list(line.get_xdata()) for line in dashed] == [[1.0, 3.0]]


def test_scores_of_unlike_rankings_get_a_scale_each() -> None:
    """BM25 and reciprocal rank fusion differ by a factor of a thousand: on one scale one of them is a single bar."""

    def run(name: str, scale: float) -> Results:
        rows = []
        for n in range(10):
            passage = Passage("d", "Text.", provenance={"score": scale * (n + 1)})
            rows.append(Row(Example(f"q{n}", "Who?"), Output("It.", (passage,)), {"m": Cell.ok(n % 2)}))
        return Results(name, rows)

    def limits(*runs: Results) -> list[float]:
        return [float(axes.get_xlim()[1]) for axes in confidence_histogram(runs).axes]

    unlike = limits(run("bm25", 3.0), run("fusion", 0.003))
    assert unlike[0] >= 30 and unlike[1] < 0.1
    like = limits(run("bm25", 3.0), run("other", 2.0))
    assert like[0] == like[1] >= 30
    assert limits(run("fusion", 0.003))[0] < 0.1


def test_confidence_comes_from_where_it_is_said() -> None:
    """The first passage's score by itself; a metric, a field of the output or a function when named."""
    comparison = made()
    assert "score of the first passage" in to_svg(confidence_histogram(comparison))
    assert "across: hit" in to_svg(confidence_histogram(comparison, confidence="hit"))
    rows = [Row(Example("q", "Who?"), Output("It.", extra={"sure": 0.7}), {"m": Cell.ok(1.0)})]
    results = Results("r", rows)
    assert "across: sure" in to_svg(confidence_histogram(results, confidence="extra:sure"))
    assert "across: m" in to_svg(confidence_histogram(results))
    assert "r (1)" in to_svg(confidence_histogram([results], confidence=lambda row: 0.3))
    assert "r (0, 1 without)" in to_svg(confidence_histogram(results, confidence="score"))
    assert "r (0, 1 without)" in to_svg(confidence_histogram(results, confidence=lambda row: float("nan")))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda c: scores_with_intervals(c, metrics=["x"]), "not compared"),
        (lambda c: scores_with_intervals(c, metrics=[]), "at least one"),
        (lambda c: latency_against_quality(c, metric="x"), "not compared"),
        (lambda c: complementarity_heatmap(c, metric="x"), "not compared"),
        (lambda c: confidence_histogram(c, metric="x"), "no metric"),
        (lambda c: confidence_histogram(c, confidence="x"), "extra:NAME"),
        (lambda c: confidence_histogram(c, bins=1), "2 to 100"),
        (lambda c: confidence_histogram([]), "give Results"),
        (lambda c: confidence_histogram(3), "give Results"),
        (lambda c: to_svg(Figure(), prefix='a"b'), "prefix"),
    ],
)
def test_what_cannot_be_plotted(call, message: str) -> None:
    """Unknown metrics and wrong settings are refused with what is there."""
    with pytest.raises(InvalidInputError, match=message):
        call(made())


def test_ticks_are_round_numbers() -> None:
    """Ticks span the values; a range without width gets some."""
    assert nice_ticks(0, 1) == [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    assert nice_ticks(-0.2, 0.9)[0] <= -0.2 and nice_ticks(-0.2, 0.9)[-1] >= 0.9
    assert len(nice_ticks(3, 3)) > 1
    assert len(nice_ticks(0, 123456)) < 12


def test_names_are_cut_by_their_width() -> None:
    """Chinese characters count two columns; what is cut ends in an ellipsis."""
    assert safe("检索" * 20, 10) == "检索检索…"
    assert safe("a\nb\x00") == "a b\\x00"


def test_each_colour_stands_for_one_variable() -> None:
    """Colours and variables are as many, so that a drawing can be recoloured."""
    assert len(set(VARIABLES.values())) == len(VARIABLES)


def test_very_long_names_are_cut_at_once() -> None:
    """A name is not measured again for each of its characters."""
    assert safe("名" * 200_000, 9) == "名名名名…"
    assert safe("x" * 2_000_000) == "x" * 31 + "…"
