"""The HTML report as a file: what is in it, what cannot be in it, where it is written, its Chinese."""

from __future__ import annotations

import ast
import base64
import gzip
import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import fields
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from support.report_results import HOSTILE, METRICS, hostile_results, results_of_pipelines

import rag_kit.evaluation
from rag_kit.errors import InvalidInputError
from rag_kit.evaluation import compare, write_report
from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.ours.answers import _REASONS as DECLINE_KINDS
from rag_kit.evaluation.outputs import Output, Passage
from rag_kit.evaluation.reporting.writing import assets
from rag_kit.evaluation.runs.results import Results
from rag_kit.evaluation.runs.rows import Row
from rag_kit.evaluation.wording import in_chinese, texts
from rag_kit.graphs import build_crag
from rag_kit.graphs.crag.build import _REASONS as REASONS
from rag_kit.graphs.evaluators.base import LexicalEvaluator
from rag_kit.models import chat_model
from rag_kit.retrieval import BM25Retriever


class Elements(HTMLParser):
    """Parse a page as a browser would: elements with attributes, texts of scripts."""

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


def data_of(path: Path, results: object, **settings: object) -> dict[str, Any]:
    """Return the data that the scripts of the page read."""
    _, page = written(path, results, **settings)
    found: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(page.scripts[1])))
    return found


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


def test_a_judged_metric_says_which_prompts_ran(tmp_path: Path) -> None:
    """Ragas's own or adapted by the judge, or the kit's; nothing where no judge was asked; in both languages."""
    sent = ({"prompt": "english"}, {"a": "english", "b": "chinese"}, {"prompt": "english"}, "<script>")
    rows = [
        Row(Example(f"q{n}", "潮汐？"), Output(answer="a"), {
            "faithfulness": Cell.ok(1.0, prompts=each), "ours_citations_judged": Cell.ok(1.0), "bleu": Cell.ok(1.0)})
        for n, each in enumerate(sent)
    ]  # fmt: skip
    manifest = {"metrics": [{"name": "ours_citations_judged", "settings": {"prompts": ["judge_citation"]}}]}
    results = Results("p", rows, ["faithfulness", "ours_citations_judged", "bleu"], manifest)
    found = {each["name"]: each["prompts"] for each in data_of(tmp_path, results)["metrics"]}
    assert found == {
        "faithfulness": {"english": 2, "adapted": 1},
        "ours_citations_judged": {"kit": 4},
        "bleu": {},
    }
    for language in ("en", "zh"):
        assert all("{n}" in texts()[language][f"prompts_{kind}"] for kind in ("english", "adapted", "kit"))


def test_values_are_not_read_as_places(tmp_path: Path) -> None:
    """A title that looks like a place of the template is a title."""
    text, _ = written(tmp_path, results_of_pipelines(3)[0], title="{{data}} {{script}}")
    assert "<title>{{data}} {{script}}</title>" in text


def test_an_existing_file_that_is_no_report_is_kept(tmp_path: Path) -> None:
    """A report, also of a folder, replaces a report; any other file only when that is asked for."""
    results = results_of_pipelines(3)[0]
    target = tmp_path / "notes.html"
    target.write_text("my notes", encoding="utf-8")
    with pytest.raises(InvalidInputError, match="move it away"):
        write_report(results, target)
    assert target.read_text(encoding="utf-8") == "my notes"
    first = write_report(results, target, overwrite=True).read_bytes()
    assert write_report(results, str(target), title="Again").read_bytes() != first
    assert write_report(results.save(tmp_path / "run"), target) == target
    with pytest.raises(InvalidInputError, match="folder"):
        write_report(results, tmp_path)


def test_a_report_that_fails_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is replaced as a whole or not at all, and no draft stays."""
    target = write_report(results_of_pipelines(3)[0], tmp_path / "report.html")
    before = target.read_bytes()
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError(28, "disk full")))
    with pytest.raises(InvalidInputError, match="disk full"):
        write_report(results_of_pipelines(3)[0], target, title="New")
    assert target.read_bytes() == before and len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(
    ("results", "settings", "message"),
    [
        ([], {}, "at least one"),
        (results_of_pipelines(2)[:1] * 2, {}, "has the name 'bm25'; give each one of its own"),
        (results_of_pipelines(2), {"language": "fr"}, "allowed are auto, en, zh"),
    ],
)
def test_what_cannot_be_reported_is_refused(
    tmp_path: Path, results: object, settings: dict[str, str], message: str
) -> None:
    """The message says what was given and what is allowed."""
    with pytest.raises(InvalidInputError, match=message):
        write_report(results, tmp_path / "r.html", **settings)  # type: ignore[arg-type]


def test_a_diagnosis_of_another_pipeline_is_refused(tmp_path: Path) -> None:
    """A finding must not stand beside answers that it is not about."""
    from rag_kit.evaluation import diagnose

    results = results_of_pipelines(12)
    with pytest.raises(InvalidInputError, match="no pipeline of the report"):
        write_report(results[:2], tmp_path / "r.html", diagnosis=diagnose(results[2]))


def test_hostile_texts_stay_data(tmp_path: Path) -> None:
    """A result made of attacks adds no element, and reads back as what it was, its control characters escaped."""
    _, calm = written(tmp_path, results_of_pipelines(4)[0], diagnosis=False)  # the attacks have none
    text, hostile = written(tmp_path, hostile_results(), title=HOSTILE[0])
    drawn = {"svg", "path", "text", "rect", "line"}
    assert [tag for tag, _ in hostile.found if tag not in drawn] == [
        tag for tag, _ in calm.found if tag not in drawn
    ]
    found = data_of(tmp_path, hostile_results(), title=HOSTILE[0])
    assert found["questions"][0]["question"] == HOSTILE[0]
    assert found["questions"][1]["question"] == "\\x1b[31mred\\x1b[0m \\u202eturned\\u202c \\u200bhidden\\x07"
    for each in (text, json.dumps(found, ensure_ascii=False)):
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e]", each)


def test_no_key_gets_into_the_file(tmp_path: Path) -> None:
    """Errors, reasons and settings pass the masking; what was asked and found stays verbatim."""
    text = json.dumps(data_of(tmp_path, results_of_pipelines(60)))
    for secret in ("abcd1234", "abcdefgh12345678", "abcdef1234567890"):
        assert secret not in text
    assert "api_key=***" in text


def test_the_answer_comes_first(tmp_path: Path) -> None:
    """The best by the metric that says most, the corrected tests against the others, why its answers are wrong."""
    runs = results_of_pipelines(60)
    found = data_of(tmp_path, runs)
    answer = found["answer"]
    assert found["metrics"][answer["metric"]]["name"] == "answer_correctness"
    assert found["pipelines"][answer["best"]]["name"] == "hybrid + multi-query"
    pair = compare(runs).pair("bm25", "hybrid + multi-query", "answer_correctness")
    first, second = answer["tests"]
    assert [first["pipeline"], second["pipeline"]] == [1, 0]  # the next one by its mean first
    assert second["test"]["difference"] == -pair.difference and second["test"]["p"] == pair.p_adjusted
    assert (second["test"]["low"], second["test"]["high"]) == (-pair.high, -pair.low)
    assert second["test"]["better"] == "hybrid + multi-query" and first["test"]["better"] is None
    assert answer["diagnosed"] == found["diagnosis"][2]
    named = {HOSTILE[1]: runs[0], "b": runs[2]}
    assert data_of(tmp_path, named)["answer"]["tests"][0]["test"]["better"] == "b"
    alone = data_of(tmp_path, runs[0])["answer"]
    assert alone["best"] == 0 and alone["tests"] == []
    nothing = Results("p", [Row(Example("q", "Why?"), Output("So."), {"m": Cell.error("time-out")})])
    assert data_of(tmp_path, nothing)["answer"]["best"] is None


def test_intervals_are_those_of_the_comparison(tmp_path: Path) -> None:
    """The page and the comparison it is made of say the same of a pipeline, to the last digit."""
    comparison = compare(results_of_pipelines(40))
    for metric in data_of(tmp_path, list(comparison.results), comparison=comparison)["metrics"]:
        scores = [comparison.score(name, metric["name"]) for name in comparison.pipelines]
        assert [(one["mean"], one["low"], one["high"]) for one in metric["summary"]] == [
            (score.mean, score.low, score.high) for score in scores
        ]


@pytest.mark.parametrize(
    ("first", "second", "shown"), [(None, None, None), ("a", "a", "a"), ("a", "b", None), ("a", None, None)]
)
def test_the_set_is_named_where_all_runs_are_over_one(
    tmp_path: Path, first: str | None, second: str | None, shown: str | None
) -> None:
    """A set without a name, or of several names, is not named; nor is a judge where none was."""
    runs = results_of_pipelines(4)[:2]
    for run, name in zip(runs, (first, second), strict=True):
        run.manifest |= {"dataset": {"name": name, "fingerprint": "f"}, "judge": None}
    data = data_of(tmp_path, runs)
    assert data["dataset"] == shown and data["judge"] is None


def test_less_may_be_better(tmp_path: Path) -> None:
    """The lowest mean leads for a metric of which less is better, by a positive difference."""

    def run(name: str, value: float) -> Results:
        rows = [
            Row(Example(f"q{n}", "Why?"), Output("So."), {"noise_sensitivity": Cell.ok(value)})
            for n in range(9)
        ]
        manifest = {"metrics": [{"name": "noise_sensitivity", "higher_is_better": False}]}
        return Results(name, rows, manifest=manifest)

    found = data_of(tmp_path, [run("noisy", 0.8), run("calm", 0.1)])
    assert found["answer"]["best"] == 1 and found["answer"]["tests"][0]["test"]["better"] == "calm"
    assert found["answer"]["tests"][0]["test"]["difference"] == pytest.approx(0.7)


def numbered(name: str, values: dict[int, float | None], **manifest: object) -> Results:
    """Make results of the questions of these numbers; one without a value failed."""
    rows = [
        Row(
            Example(f"q{n}", "Why?"),
            Output("So.") if value is not None else Output(error="down"),
            {"mrr": Cell.error("down") if value is None else Cell.ok(value)},
        )
        for n, value in values.items()
    ]
    return Results(name, rows, manifest=dict(manifest))


@pytest.mark.parametrize(
    "fewer", [{0: 1.0, 1: 1.0}, {n: 1.0 if n < 8 else None for n in range(20)}], ids=["not asked", "failed"]
)
def test_a_partial_run_is_not_ranked(tmp_path: Path, fewer: dict[int, float | None]) -> None:
    """A run of a few questions, or one that mostly failed, neither leads nor is level, and its total is that of all."""
    whole = numbered("whole", {n: float(n < 14) for n in range(20)})
    for runs in ([whole, numbered("part", fewer)], [numbered("part", fewer), whole]):
        found = data_of(tmp_path, runs)
        best = runs.index(whole)
        assert found["answer"]["best"] == best
        assert found["answer"]["tests"] == [{"pipeline": 1 - best, "test": None}]
        (metric,) = found["metrics"]
        assert metric["partial"][1 - best] and not metric["partial"][best]
        assert metric["summary"][1 - best]["total"] == 20
        assert metric["summary"][1 - best]["missing"] == 20 - len(fewer)


def test_wrong_gold_is_named_on_the_page(tmp_path: Path) -> None:
    """Missing gold of a run is named above the scores, once, also where runs are compared."""
    first = numbered("a", {0: 1.0}, missing_gold={"x.md": ["q0"]})
    for runs in (first, [first, numbered("b", {0: 0.0})]):
        found = data_of(tmp_path, runs)
        assert [note for note in found["notes"] if "x.md (q0)" in note]
        assert found["comparison"] is None or found["comparison"]["notes"] == []
    assert any("x.md (q0)" in note for note in compare(runs).notes)


def test_pipelines_are_set_side_by_side_by_question(tmp_path: Path) -> None:
    """Questions are matched by id; a question that a pipeline was not asked has no run; folders are loaded."""
    first, second = results_of_pipelines(4)[:2]
    folder = Results("later", second.rows[2:], second.metrics).save(tmp_path / "later")
    data = data_of(tmp_path, [first, folder])
    assert [one["name"] for one in data["pipelines"]] == ["bm25", "later"]
    assert [[run is not None for run in q["runs"]] for q in data["questions"]] == [[True, False]] * 2 + [
        [True, True]
    ] * 2


def test_summaries_and_cells_are_those_of_the_results(tmp_path: Path) -> None:
    """Mean, interval and every count come from the results; a cell without a value keeps its status and reason."""
    first, second = results_of_pipelines(40)[:2]
    second = Results("b", second.rows, METRICS[:2])
    data = data_of(tmp_path, [first, second])
    summary = vars(first.summary()["faithfulness"])
    number = next(n for n, one in enumerate(data["metrics"]) if one["name"] == "faithfulness")
    shown = data["metrics"][number]["summary"]
    assert shown[0] == summary and shown[1] is None
    assert [shown[0][key] for key in ("n", "undefined", "errors")] == [37, 2, 1]
    for row, question in zip(first.rows, data["questions"], strict=True):
        cell, found = row.cells["faithfulness"], question["runs"][0]["cells"][number]
        assert (found["value"], found["status"]) == (cell.value, cell.status)
    undefined = next(q["runs"][0]["cells"][number] for q in data["questions"] if q["id"] == "q0005")
    assert undefined["reason"] == "the answer holds no statement"


def test_passages_are_kept_once_with_their_grades_and_steps(tmp_path: Path) -> None:
    """Id, text and place are there once; quotes are verbatim; a note on every passage is one of the run."""
    data = data_of(tmp_path, results_of_pipelines(20))
    runs = [run for question in data["questions"] for run in question["runs"]]
    heads = [tuple(map(str, head)) for head in data["passages"]]
    assert len(set(heads)) == len(heads) < sum(len(run["passages"] or ()) for run in runs)
    run = next(run for run in runs if run["citations"][:1] and run["citations"][0]["quote"])
    assert run["citations"][0]["quote"] in data["passages"][run["passages"][0]["head"]][1]
    stage = {"stage": "bm25", "retriever": "B", "query": "Who?", "rank": 1, "score": float("nan"), "other": 1}
    provenance = {"score": 1.5, "stages": ["no stage", stage], "notes": ["slow"]}
    passages = (
        Passage("c1", "x", {"parent_id": "d1"}, provenance),
        Passage("d2", "y", {}, provenance),
    )
    row = Row(Example("q", "Why?", relevant={"d1": 2, "d2": 0}), Output("It.", passages), {"m": Cell.ok(1.0)})
    run = data_of(tmp_path, Results("p", [row]))["questions"][0]["runs"][0]
    assert [one["grade"] for one in run["passages"]] == [2, 0] and run["notes"] == ["slow"]
    assert run["passages"][0]["stages"] == [
        {"stage": "bm25", "retriever": "B", "rank": 1, "score": None, "weight": None, "query": "Who?"}
    ]


def test_strange_values_become_plain_texts(tmp_path: Path) -> None:
    """Numbers that are not finite, deep nesting and long texts cannot break the page."""
    deep: object = "end"
    for _ in range(40):
        deep = [deep]
    cell = Cell.ok(0.5, deep=deep, many=[float("inf")])
    row = Row(Example("q", "Why?"), Output("x" * 50_000), {"m": cell})
    scale = {"metrics": [{"name": "m", "low": float("-inf"), "high": 5}]}
    data = data_of(tmp_path, Results("p", [row], ("m",), scale))
    assert (data["metrics"][0]["low"], data["metrics"][0]["high"]) == (0.0, 5)
    run = data["questions"][0]["runs"][0]
    assert run["answer"].endswith("… (+30,000)")
    assert run["cells"][0]["details"]["many"] == [None]


def test_comparison_and_diagnosis_are_made_where_they_can_be(tmp_path: Path) -> None:
    """Several pipelines over the same questions are compared; over others, the page says why not."""
    first, second, _ = results_of_pipelines(12)
    data = data_of(tmp_path, [first, second])
    assert data["comparison"]["pipelines"] == ["bm25", "hybrid"] and len(data["diagnosis"]) == 2
    assert set(data["cases"]) >= {
        row["diagnosis"]["cause"] for q in data["questions"] for row in q["runs"]
    } - {None}
    other = Results("other", [Row(Example("x", "Else?"), Output("No."), {"faithfulness": Cell.ok(1.0)})])
    data = data_of(tmp_path, [first, other])
    assert data["comparison"] is None and "no question in common" in data["notes"][0]
    assert [each["test"] for each in data["answer"]["tests"]] == [None]
    data = data_of(tmp_path, [first, second], comparison=False, diagnosis=False)
    assert data["comparison"] is None and data["diagnosis"] is None


def test_a_metric_without_any_value_says_why_and_is_not_plotted(tmp_path: Path) -> None:
    """The most frequent reason stands in its cell; answer, plots and diagnosis stand on metrics that have values."""
    none = Cell.not_applicable("the judge has no embedding model")
    cells = {"answer_correctness": none, "recall@5": Cell.ok(1.0), "mrr": Cell.ok(0.5)}
    rows = [
        Row(
            Example(f"q{n}", "Who?"),
            Output("It.", seconds=1.0),
            {**cells, "ours_answer_found": Cell.ok(n % 2)},
        )
        for n in range(4)
    ]
    runs = [Results("p", rows), Results("q", rows)]
    data = data_of(tmp_path, runs)
    why = {metric["name"]: metric["why"] for metric in data["metrics"]}
    assert why["answer_correctness"] == ["the judge has no embedding model"] * 2 and why["mrr"] == [None] * 2
    assert data["metrics"][data["answer"]["metric"]]["name"] == "ours_answer_found"
    text, _ = written(tmp_path, runs)
    assert "<title>ours_answer_found: p, q</title>" in text
    assert ">no pipeline has both a value and a time<" not in text
    assert list(data["diagnosis"][0]["thresholds"]) == ["ours_answer_found", "recall@5", "mrr"]
    assert [cause["count"] for cause in data["diagnosis"][0]["causes"]] == [2, 2]


def test_no_diagnosis_where_a_part_of_it_was_not_measured(tmp_path: Path) -> None:
    """Precision at k is no stand-in: with one relevant passage it cannot pass 1/k."""
    cells = {"ours_answer_found": Cell.ok(0.0), "recall@5": Cell.ok(1.0), "precision@5": Cell.ok(0.2)}
    results = Results("p", [Row(Example("q", "Who?"), Output("It."), cells)])
    assert data_of(tmp_path, results)["diagnosis"] is None


def test_both_languages_have_the_same_texts_with_the_same_places() -> None:
    """Every text of the interface is there in English and Chinese, and takes the same values."""
    english, chinese = texts()["en"], texts()["zh"]
    for key, text in english.items():
        assert set(re.findall(r"\{(\w+)\}", text)) == set(re.findall(r"\{(\w+)\}", chinese[key])), key
        assert re.search("[\u4e00-\u9fff]", chinese[key]) or key == "n" or not re.search("[a-z]{2}", text), (
            key
        )


def test_every_text_that_the_scripts_name_is_there(tmp_path: Path) -> None:
    """No key of the interface shows as itself."""
    script = assets("js")
    page, _ = written(tmp_path, results_of_pipelines(3))
    named = set(re.findall(r"""\bt\("(\w+)"[,)]""", script)) | set(
        re.findall(r'data-(?:text|label)="(\w+)"', page)
    )
    assert len(named) > 60 and named <= set(texts()["en"])
    assert "innerHTML" not in script and "document.write" not in script and "eval(" not in script


FOLDER = Path(rag_kit.evaluation.__file__).parent


# Calls whose argument is a reason or a note, and names of tables that hold reasons.
CALLS = {"undefined", "not_applicable", "append", "note", "_note", "write_note"}


LISTS = {"missing", "notes"}


TABLES = {"_NEITHER", "_REASONS"}


def spoken(node: ast.AST | None) -> str | None:
    """A text in the source, with something at the place of each value; ``None`` for what is none."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else "X7" for part in node.values)  # type: ignore[misc]
    return None


def told_by(path: Path) -> Iterator[str]:
    """Reasons and notes in a file: arguments of the calls, entries of the lists and tables."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Call) and node.args:
            *owners, name = ast.unparse(node.func).split(".")
            if name in CALLS - {"append"} or (name == "append" and owners and owners[-1] in LISTS):
                ways = node.args[0].values if isinstance(node.args[0], ast.BoolOp) else [node.args[0]]
                yield from filter(None, map(spoken, ways))
            if name == "ok" and len(node.args) > 1:
                yield from filter(None, [spoken(node.args[1])])
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            if node.targets[0].id in TABLES and isinstance(node.value, ast.Dict):
                yield from filter(None, map(spoken, node.value.values))
            elif node.targets[0].id == "reason":
                yield from filter(None, [spoken(node.value)])
        elif isinstance(node, ast.FunctionDef) and node.name == "reason":
            for each in ast.walk(node):
                if isinstance(each, ast.Return):
                    yield from filter(None, [spoken(each.value)])


FOUND = sorted(
    {
        (path.relative_to(FOLDER).as_posix(), text)
        for part in ("ours/*", "ranking/metrics", "judge/*", "comparison*", "reporting/*", "metric")
        for path in sorted(FOLDER.glob(f"{part}.py"))
        for text in told_by(path)
        if re.search("[a-z]{2}", text.replace("X7", ""))
    }
)


def test_the_sources_are_read() -> None:
    """The walk finds what the metrics say."""
    assert len(FOUND) > 25
    assert ("judge/ragas_table.py", "the tables have no column in common") in FOUND


def test_what_graphs_and_retrievers_note_has_chinese_words() -> None:
    """All but reasons, and texts that the code puts together of more than values."""
    pieces = ("ambiguous: ", "by its citations", "correct: ", "critique: X7 of", "incorrect: ")
    pieces += (
        "X7 above",
        "X7 below",
        "X7 of the question",
        "X7 of the inner",
        "X7 passages after X7",
        "X7 without text",
    )
    folders = [FOLDER.parent / name for name in ("graphs", "retrieval", "query_construction")]
    notes = {text for folder in folders for path in folder.rglob("*.py") for text in told_by(path)}
    notes = {note for note in notes if len(re.findall("[a-z]{2,}", note)) > 3 and not note.startswith(pieces)}
    assert len(notes) > 40
    for note in notes:
        ways = [note.replace("X7", way) for way in ("X7", "7")]
        assert any(in_chinese(way) != way for way in ways), f"{note!r} is not in sentences.json"


def test_what_the_kit_says_of_a_value_has_chinese_words() -> None:
    """Each reason and note is one of the page's sentences."""
    for where, text in FOUND:
        ways = [text.replace("X7", word) for word in ("X7", "7", "answer", "reference")]
        assert any(in_chinese(way) != way for way in ways), f"{where}: {text!r} is not in sentences.json"


def test_each_field_and_kind_that_a_metric_names_has_chinese_words() -> None:
    """A field of gold beside its Chinese name, a kind of `ours_decline` in the page's texts."""
    for name in {field.name for field in fields(Example)} - {"id", "question", "history", "tags", "metadata"}:
        assert re.search(f"[\u4e00-\u9fff]（{name}）$", in_chinese(f"the example has no {name}")), name
    for kind in DECLINE_KINDS:
        assert f"key_{kind}" in texts()["zh"]


def test_what_is_filled_into_a_sentence_is_said_in_chinese_too() -> None:
    """Two fields of which one must be there, and the warning below a metric of Ragas's for other letters."""
    assert (
        in_chinese("the example has neither answers nor reference")
        == "这个问题既没有简短答案（answers），也没有参考答案（reference）"
    )
    assert in_chinese("the example has no answers; the pipeline gave no passages") == (
        "这个问题没有简短答案（answers）；流程没有给出段落"
    )
    assert "words" not in in_chinese("Ragas's words are those between blanks; see ours_rouge_l")
    assert in_chinese("relevant at rank 1, 3") == "相关段落排在第 1, 3 名"
    assert in_chinese("He is neither here nor there") == "He is neither here nor there"


def test_notes_of_retrievers_and_graphs_have_them_too() -> None:
    """A run whose notes are English is read on a Chinese page."""
    notes = [
        "degraded: multi_query failed: ConnectionError: refused",
        "degraded: keyword search only, for the index has no vectors",
        "degraded: hyde: the model gave no usable passage",
        "degraded: MultiQuery did not answer in time: 3 s",
        "dropped 3 that the model wrote: 2 empty, 1 another script",
    ]
    notes += [f"grade: {said.format(lower=-0.5, upper=0.7)}" for said in REASONS.values()] + [
        *(f"grade: {action}: the evaluator calls for it, whatever the confidences" for action in REASONS),
        "grade: incorrect: the retriever found nothing",
        "refine: 5 of 21 strips kept",
        "web: could not look outside, no web search was given; nothing to use",
        "web: could not look outside, no web search was given; answered from what was retrieved",
        "select_external: 2 of 5 strips of the web kept",
        "finish: no passage gave a part of an answer",
    ]
    for note in notes:
        assert in_chinese(note) != note, note


@pytest.mark.parametrize("period", ["1990 to 1994", "1970 to 1975"])
def test_what_a_run_of_crag_notes_has_them(period: str) -> None:
    """The notes of a real run are among those that the report knows."""
    graph = build_crag(
        BM25Retriever.from_texts(["Ann Lee was the coach of Hull from 1990 to 1994."]),
        chat_model("extractive"),
        evaluator=LexicalEvaluator(),
    )
    notes = graph.invoke({"question": f"Who was the coach of Hull from {period}?"})["notes"]
    assert notes
    for note in notes:
        assert in_chinese(note) != note, note
