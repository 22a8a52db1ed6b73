"""The HTML report as a file: what is in it, what cannot be in it, and where it is written."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path

import pytest
from support.report_results import HOSTILE, METRICS, hostile_results, results_of_pipelines

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.outputs import Output, Passage
from rag_kit.evaluation.reporting import report_payload, write_report
from rag_kit.evaluation.reporting.page import assets, embedded_json, page
from rag_kit.evaluation.reporting.svg import safe_svg
from rag_kit.evaluation.runs import Results, Row


class Elements(HTMLParser):
    """What a browser would see: the elements with attributes, the texts of scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self._inside = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag == "script":
            self._inside = True
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = self._inside and tag != "script"

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.scripts[-1] += data


def written(path: Path, results: object, **settings: object) -> tuple[str, Elements]:
    text = write_report(results, path / "report.html", **settings).read_text(encoding="utf-8")  # type: ignore[arg-type]
    return text, Elements(text)


def test_a_report_is_one_file_that_names_no_address(tmp_path: Path) -> None:
    """No element loads anything: no src, no address, links only within the page."""
    _, page_ = written(tmp_path, results_of_pipelines(12))
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    for tag, attributes in page_.found:
        assert "src" not in attributes and "style" not in attributes, tag
        assert not [name for name in attributes if name.startswith("on")], tag
        assert (attributes.get("href") or "#").startswith(("#", "data:,")), attributes


def test_the_policy_allows_this_script_and_this_style_alone(tmp_path: Path) -> None:
    """The hashes of the policy are those of the elements in the file; nothing else is allowed."""
    text, page_ = written(tmp_path, results_of_pipelines(6))
    policy = next(a["content"] or "" for tag, a in page_.found if tag == "meta" and a.get("http-equiv"))
    style = text[text.index("<style>") + 7 : text.index("</style>")]
    assert policy.startswith("default-src 'none'; ") and "unsafe" not in policy and "http" not in policy
    for kind, content in (("script", page_.scripts[-1]), ("style", style)):
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    assert "require-trusted-types-for 'script'" in policy


def test_hostile_texts_stay_data(tmp_path: Path) -> None:
    """A result made of attacks adds no element, and reads back as what it was, its control characters escaped."""
    _, calm = written(tmp_path, results_of_pipelines(4)[0])
    text, hostile = written(tmp_path, hostile_results(), title=HOSTILE[0])
    drawn = {"svg", "g", "defs", "path", "text", "use", "clippath", "rect"}
    assert [tag for tag, _ in hostile.found if tag not in drawn] == [
        tag for tag, _ in calm.found if tag not in drawn
    ]
    data = json.loads(hostile.scripts[1])
    assert data["questions"][0]["question"] == HOSTILE[0]
    assert data["questions"][1]["question"] == "\\x1b[31mred\\x1b[0m \\u202eturned\\u202c \\u200bhidden\\x07"
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e]", text)


def test_embedded_json_cannot_end_its_element() -> None:
    """No sign that a parser of HTML could take for markup is left, and the JSON is the same."""
    value = {"<": ["</script>", "<!--", "]]>", "&lt;", "\u2028\u2029"]}
    text = embedded_json(value)
    assert not set("<>&\u2028\u2029") & set(text) and json.loads(text) == value


def test_values_are_not_read_as_places(tmp_path: Path) -> None:
    """A title that looks like a place of the template is a title."""
    text, _ = written(tmp_path, results_of_pipelines(3)[0], title="{{data}} {{script}}")
    assert "<title>{{data}} {{script}}</title>" in text


def test_no_key_gets_into_the_file(tmp_path: Path) -> None:
    """Errors, reasons and settings pass the masking; what was asked and found stays verbatim."""
    text, _ = written(tmp_path, results_of_pipelines(60))
    for secret in ("abcd1234", "abcdefgh12345678", "abcdef1234567890"):
        assert secret not in text
    assert "api_key=***" in text


def test_an_existing_file_that_is_no_report_is_kept(tmp_path: Path) -> None:
    """A report replaces a report; any other file only when that is asked for."""
    results = results_of_pipelines(3)[0]
    target = tmp_path / "notes.html"
    target.write_text("my notes", encoding="utf-8")
    with pytest.raises(InvalidInputError, match="overwrite=True"):
        write_report(results, target)
    assert target.read_text(encoding="utf-8") == "my notes"
    first = write_report(results, target, overwrite=True).read_bytes()
    assert write_report(results, str(target), title="Again").read_bytes() != first
    with pytest.raises(InvalidInputError, match="folder"):
        write_report(results, tmp_path)


def test_a_report_that_fails_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is replaced as a whole or not at all, and no draft stays."""
    target = write_report(results_of_pipelines(3)[0], tmp_path / "report.html")
    before = target.read_bytes()
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        write_report(results_of_pipelines(3)[0], target, title="New")
    assert target.read_bytes() == before and len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(
    ("results", "settings", "message"),
    [
        ([], {}, "at least one"),
        ("folder", {}, "give what evaluate returned"),
        (3, {}, "is a int"),
        (results_of_pipelines(2), {"language": "fr"}, "'en' and 'zh'"),
    ],
)
def test_what_cannot_be_reported_is_refused(
    tmp_path: Path, results: object, settings: dict[str, str], message: str
) -> None:
    """The message says what was given and what is allowed."""
    with pytest.raises(InvalidInputError, match=message):
        write_report(results, tmp_path / "r.html", **settings)  # type: ignore[arg-type]


def test_pipelines_are_set_side_by_side_by_question() -> None:
    """Questions are matched by id; a question that a pipeline was not asked has no run; equal names get numbers."""
    first, second = results_of_pipelines(4)[:2]
    second = Results(first.name, second.rows[2:], second.metrics)
    data = report_payload([first, second])
    assert [one["name"] for one in data["pipelines"]] == ["bm25", "bm25 (2)"]
    assert [[run is not None for run in q["runs"]] for q in data["questions"]] == [[True, False]] * 2 + [
        [True, True]
    ] * 2


def test_summaries_and_coverage_are_those_of_the_results() -> None:
    """Mean, interval and every count come from the results; a metric that one pipeline lacks is null there."""
    first, second = results_of_pipelines(40)[:2]
    second = Results("b", second.rows, METRICS[:2])
    data = report_payload([first, second])
    summary = first.summary()["faithfulness"]
    metric = next(one for one in data["metrics"] if one["name"] == "faithfulness")
    assert metric["summary"][0] == summary.to_json() and metric["summary"][1] is None
    assert (summary.n, summary.undefined, summary.errors) == (37, 2, 1)


def test_a_cell_without_a_value_keeps_its_status_and_reason() -> None:
    """Nothing turns into a number on the way."""
    cells = {
        "a": Cell.undefined("no statement"),
        "b": Cell.error("time-out"),
        "c": Cell.not_applicable("no reference"),
    }
    data = report_payload([Results("p", [Row(Example("q", "Why?"), Output("So."), cells)])])
    shown = data["questions"][0]["runs"][0]["cells"]
    assert {name: (cell["value"], cell["status"], cell["reason"]) for name, cell in shown.items()} == {
        "a": (None, "undefined", "no statement"),
        "b": (None, "error", "time-out"),
        "c": (None, "not_applicable", "no reference"),
    }


def test_each_text_is_kept_once_and_quotes_stay_verbatim() -> None:
    """Passages that several pipelines found share one text; a quote is found in it."""
    data = report_payload(results_of_pipelines(20))
    assert (
        len(set(data["texts"]))
        == len(data["texts"])
        < sum(len(run["passages"] or ()) for q in data["questions"] for run in q["runs"])
    )
    run = next(
        run
        for q in data["questions"]
        for run in q["runs"]
        if run["citations"][:1] and run["citations"][0]["quote"]
    )
    assert run["citations"][0]["quote"] in data["texts"][run["passages"][0]["text"]]


def test_relevance_comes_from_the_judgements_by_any_id() -> None:
    """A chunk of a judged document carries its grade; what nobody judged has none."""
    row = Row(
        Example("q", "Why?", relevant={"d1": 2, "d2": 0}),
        Output(passages=(Passage("c1", "x", {"parent_id": "d1"}), Passage("d2", "y"), Passage("d3", "z"))),
        {"m": Cell.ok(1.0)},
    )
    passages = report_payload([Results("p", [row])])["questions"][0]["runs"][0]["passages"]
    assert [one["grade"] for one in passages] == [2, 0, None]


def test_strange_values_become_plain_texts() -> None:
    """Numbers that are not finite, deep nesting and long texts cannot break the page."""
    deep: object = "end"
    for _ in range(40):
        deep = [deep]
    row = Row(
        Example("q", "Why?", metadata={}),
        Output(
            "x" * 50_000,
            passages=(
                Passage(
                    "p",
                    "t",
                    {},
                    {
                        "score": float("nan"),
                        "rank": 1,
                        "stages": ["no stage", {"score": float("inf")}],
                        "notes": None,
                    },
                ),
            ),
        ),
        {"m": Cell.ok(0.5, deep=deep, many=[float("inf")])},
    )
    data = report_payload([Results("p", [row])])
    run = data["questions"][0]["runs"][0]
    assert run["answer"].endswith("… (+30,000)") and run["passages"][0]["stages"][0]["score"] is None
    assert page(data)


def test_a_diagnosis_of_another_pipeline_is_refused(tmp_path: Path) -> None:
    """A finding must not stand beside answers that it is not about."""
    from rag_kit.evaluation.diagnosing import diagnose

    results = results_of_pipelines(12)
    with pytest.raises(InvalidInputError, match="no pipeline of the report"):
        write_report(results[:2], tmp_path / "r.html", diagnosis=diagnose(results[2]))


def test_comparison_and_diagnosis_are_made_where_they_can_be(tmp_path: Path) -> None:
    """Several pipelines over the same questions are compared; over others, the page says why not."""
    first, second, _ = results_of_pipelines(12)
    data = json.loads(written(tmp_path, [first, second])[1].scripts[1])
    assert data["comparison"]["pipelines"] == ["bm25", "hybrid"] and len(data["diagnosis"]) == 2
    assert set(data["cases"]) >= {
        row["diagnosis"]["cause"] for q in data["questions"] for row in q["runs"]
    } - {None}
    other = Results("other", [Row(Example("x", "Else?"), Output("No."), {"faithfulness": Cell.ok(1.0)})])
    data = json.loads(written(tmp_path, [first, other])[1].scripts[1])
    assert data["comparison"] is None and "no question in common" in data["notes"][0]
    data = json.loads(written(tmp_path, [first, second], comparison=False, diagnosis=False)[1].scripts[1])
    assert data["comparison"] is None and data["diagnosis"] is None


def test_what_speaks_of_the_whole_search_is_shown_once() -> None:
    """A note on every passage stands in the notes of the run; a stage repeats the question nowhere."""
    stage = {
        "stage": "bm25",
        "retriever": "B",
        "query": "Who?",
        "rank": 1,
        "score": 1.23456789,
        "weight": None,
    }
    passages = tuple(
        Passage(name, "Text.", provenance={"score": 1.23456789, "stages": [stage], "notes": ["slow", name]})
        for name in ("a", "b")
    )
    output = Output("It.", passages, notes=("slow", "late"))
    data = report_payload([Results("p", [Row(Example("q", "Who?"), output, {"m": Cell.ok(0.5)})])])
    run = data["questions"][0]["runs"][0]
    assert run["notes"] == ["slow", "late"] and [each["notes"] for each in run["passages"]] == [["a"], ["b"]]
    assert run["passages"][0]["stages"] == [{"rank": 1, "score": 1.23457, "stage": "bm25", "retriever": "B"}]


def test_a_metric_without_any_value_says_why_and_is_not_plotted(tmp_path: Path) -> None:
    """The most frequent reason stands in its cell; plots and diagnosis stand on metrics that have values."""
    none = Cell.not_applicable("the judge has no embedding model")
    rows = [
        Row(
            Example(f"q{n}", "Who?"),
            Output("It.", seconds=1.0),
            {"answer_correctness": none, "ours_answer_found": Cell.ok(n % 2), "recall@5": Cell.ok(1.0),
             "mrr": Cell.ok(0.5)},
        )
        for n in range(4)
    ]  # fmt: skip
    text, page_ = written(tmp_path, [Results("p", rows), Results("q", rows)])
    data = json.loads(page_.scripts[1])
    why = {metric["name"]: metric["why"] for metric in data["metrics"]}
    assert why["answer_correctness"] == ["the judge has no embedding model"] * 2 and why["mrr"] == [None] * 2
    assert "ours_answer_found: a question is got from" in text
    assert ">no pipeline has both a value and a time<" not in text
    assert list(data["diagnosis"][0]["thresholds"]) == ["ours_answer_found", "recall@5", "mrr"]
    assert [cause["count"] for cause in data["diagnosis"][0]["causes"]] == [2, 2]


def test_no_diagnosis_where_a_part_of_it_was_not_measured(tmp_path: Path) -> None:
    """Precision at k is no stand-in: with one relevant passage it cannot pass 1/k."""
    cells = {"ours_answer_found": Cell.ok(0.0), "recall@5": Cell.ok(1.0), "precision@5": Cell.ok(0.2)}
    results = Results("p", [Row(Example("q", "Who?"), Output("It."), cells)])
    assert json.loads(written(tmp_path, results)[1].scripts[1])["diagnosis"] is None


def test_both_languages_have_the_same_texts_with_the_same_places() -> None:
    """Every text of the interface is there in English and Chinese, and takes the same values."""
    tables = [
        json.loads((files("rag_kit.evaluation.reporting") / "assets" / f"texts.{x}.json").read_text("utf-8"))
        for x in ("en", "zh")
    ]
    assert list(tables[0]) == list(tables[1])
    for key, text in tables[0].items():
        places = set(re.findall(r"\{(\w+)\}", text))
        assert places == set(re.findall(r"\{(\w+)\}", tables[1][key])), key
    assert all(re.search("[\u4e00-\u9fff]", text) or key in ("n",) for key, text in tables[1].items())


def test_every_text_that_the_scripts_name_is_there() -> None:
    """No key of the interface shows as itself."""
    known = json.loads(
        (files("rag_kit.evaluation.reporting") / "assets" / "texts.en.json").read_text("utf-8")
    )
    script = assets("js")
    named = set(re.findall(r"""\bt\("(\w+)"[,)]""", script)) | set(
        re.findall(
            r'data-(?:text|label)="(\w+)"',
            (files("rag_kit.evaluation.reporting") / "assets" / "page.html").read_text("utf-8"),
        )
    )
    assert len(named) > 60 and named <= set(known)
    assert "innerHTML" not in script and "document.write" not in script and "eval(" not in script


def test_a_plot_loses_what_could_act() -> None:
    """Scripts, handlers, foreign elements, addresses and entities do not survive."""
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" onload="x()" '
        'viewBox="0 0 9 9">'
        "<script>x()</script><style>@import url(http://a)</style><foreignObject><b/></foreignObject>"
        '<a href="javascript:x()"><rect width="1"/></a><image href="http://a/b.png"/>'
        '<use xlink:href="#m" style="fill:url(http://a)"/>'
        '<path d="M0 0" style="fill: var(--ink); stroke:url(#m); font: bold 12px Arial"/>'
        '<text onclick="x()">&lt;b&gt;\u202e</text></svg>'
    )
    shown = safe_svg(svg, prefix="p-", label='A "plot"')
    assert shown == (
        '<svg viewBox="0 0 9 9" width="12" height="12" role="img" aria-label="A &quot;plot&quot;">'
        '<image /><use href="#p-m" />'
        '<path d="M0 0" fill="var(--ink)" stroke="url(#p-m)" font-size="12" font-weight="bold" />'
        "<text>&lt;b&gt;\\u202e</text></svg>"
    )
    for wrong in (
        "no svg",
        "<html/>",
        '<!DOCTYPE svg [<!ENTITY a "b">]><svg xmlns="http://www.w3.org/2000/svg"/>',
    ):
        with pytest.raises(InvalidInputError):
            safe_svg(wrong, prefix="p-")
