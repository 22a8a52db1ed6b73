"""Plots: text stays text and harmless, what they show is in them, and what cannot be plotted is refused."""

from __future__ import annotations

import random
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation import Results, compare
from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.comparison import Comparison
from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.outputs import Output, Passage
from rag_kit.evaluation.plots import (
    latency_against_quality,
    scores_with_intervals,
)
from rag_kit.evaluation.runs.rows import Row

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = '</text><script>alert(1)</script>" onload="x" $\\frac{1}{$ \x1b[31m\u202eurl(#a) #1b1f23'
PLOTS = [scores_with_intervals, latency_against_quality]


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
def test_a_plot_is_an_image_in_jupyter_and_a_file(plot, tmp_path: Path) -> None:
    """Names can be read in it, in English and Chinese; nothing lies beyond its edge; it names no address."""
    drawn = plot(made(names=("bm25", "混合检索", "a rather long name of a pipeline")))
    svg = drawn._repr_svg_()
    joined = "\n".join(texts(svg))
    assert "bm25" in joined and "混合检索" in joined and "a rather long" in joined and "bm25" in drawn.title
    assert drawn.save(tmp_path / "plot.svg").read_text("utf-8") == svg
    root = ElementTree.fromstring(svg)
    height = float(str(root.get("viewBox")).split()[3])
    for element in root.iter():
        for axis, most in (("x", 360), ("y", height)):
            for name in (axis, f"{axis}1", f"{axis}2"):
                assert 0 <= float(element.get(name, 0)) <= most, element.attrib
    assert not re.search(r"<style|<script|href|http://(?!www\.w3\.org)", svg)
    assert plot(made()).svg == plot(made()).svg


@pytest.mark.parametrize("plot", PLOTS)
def test_hostile_names_are_inert(plot) -> None:
    """No element, attribute or control character comes out of a name."""
    svg = plot(made(names=(HOSTILE, f"b{HOSTILE}", "$x$"), metric=HOSTILE)).svg
    root = ElementTree.fromstring(svg)
    assert {each.tag.removeprefix(SVG) for each in root.iter()} <= {
        "svg",
        "title",
        "path",
        "text",
        "rect",
        "line",
    }
    assert not any(name.lower().startswith("on") for element in root.iter() for name in element.attrib)
    assert "\x1b" not in svg and "\u202e" not in svg and any("$x$" in text for text in texts(svg))


@pytest.mark.parametrize("plot", PLOTS)
def test_every_colour_can_be_set_by_a_page(plot) -> None:
    """Each element has its colour for a file, and a class by which a page that is dark gives it another one."""
    root = ElementTree.fromstring(plot(made()).svg)
    drawn = [each for each in root.iter() if each.tag.removeprefix(SVG) not in ("svg", "title")]
    assert all(each.get("class") and re.fullmatch("#[0-9a-f]{6}", each.get("color", "")) for each in drawn)
    assert {each.get(name) for each in drawn for name in ("fill", "stroke")} <= {None, "none", "currentColor"}


def test_a_plot_speaks_chinese_and_both_for_a_page_that_shows_one() -> None:
    """The words of the kit are in the language asked for; with both, each says which it is."""
    comparison = made()
    assert "每题秒数" not in latency_against_quality(comparison).svg
    assert "每题秒数" in latency_against_quality(comparison, language="zh").svg
    both = ElementTree.fromstring(latency_against_quality(comparison, language="both").svg)
    found = {str(each.text)[:4]: each.get("lang") for each in both.iter(f"{SVG}text")}
    assert found["每题秒数"] == "zh-Hans" and found["seco"] == "en"


def test_a_metric_without_a_value_is_drawn_as_such() -> None:
    """No value gives the words, no point at zero."""
    rows = [Row(Example("q", "Who?"), Output("It."), {"m": Cell.error("x"), "hit": Cell.ok(1.0)})]
    comparison = compare([Results(name, rows, ("m", "hit")) for name in ("a", "b")])
    drawn = texts(scores_with_intervals(comparison, metrics=["m"]).svg)
    assert drawn.count("no value") == 2 and drawn.count("0/1") == 2
    drawn = texts(latency_against_quality(comparison, metric="m").svg)
    assert "no pipeline has both a value and a time" in drawn and not [text for text in drawn if "e-" in text]


def test_twenty_pipelines_are_all_there() -> None:
    """Each has its line and its name; none is lost."""
    names = tuple(f"pipeline {chr(97 + n)}" for n in range(20))
    comparison = made(names=names, count=6)
    for plot in PLOTS:
        joined = "\n".join(texts(plot(comparison).svg))
        assert all(name in joined for name in names), plot


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda c: scores_with_intervals(c, metrics=["x"]), "not compared"),
        (lambda c: scores_with_intervals(c, metrics=[]), "not compared"),
        (lambda c: latency_against_quality(c, language="fr"), "'en', 'zh'"),
        (lambda c: scores_with_intervals(c).save("plot.png"), "does not end in .svg"),
    ],
)
def test_what_cannot_be_plotted(call, message: str) -> None:
    """Unknown metrics and wrong settings are refused with what is there."""
    with pytest.raises(InvalidInputError, match=message):
        call(made())
