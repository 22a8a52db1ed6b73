"""Loading sets from files and tables: what is understood, and how every fault is named by its place."""

from __future__ import annotations

import csv
import gzip
import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from langchain_core.documents import Document
from openpyxl.cell.rich_text import CellRichText, TextBlock
from openpyxl.cell.text import InlineFont
from support.later import later

from rag_kit.cli.main import main
from rag_kit.errors import InvalidInputError
from rag_kit.evaluation import EvaluationSet, Example, Results, _files, evaluate
from rag_kit.evaluation.examples import GoldSpan

pd = later("pandas")


def lines(path: Path, *rows: Any) -> Path:
    path.write_text("".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows), encoding="utf-8")
    return path


def refusal(load: Any, *args: Any, **settings: Any) -> str:
    with pytest.raises(InvalidInputError) as caught:
        load(*args, **settings)
    return str(caught.value)


def test_usual_names_are_known(tmp_path):
    """Ragas's names, an answer as a text or a list, tags, and other fields as metadata."""
    path = lines(
        tmp_path / "set.jsonl",
        {"user_input": "a?", "reference": "b", "reference_contexts": ["c"], "type": "x", "n": 3, "gap": None},
        {"Question": "d?", "Answer": ["e", "f"], "doc_ids": ["d1", 2], "is_impossible": False},
        {"问题": "潮汐？", "标准答案": "月球", "可回答": "否", "类型": "事实", "难度": "高"},
    )
    one, two, three = EvaluationSet.load(path)
    assert (one.question, one.reference, one.reference_contexts) == ("a?", "b", ("c",))
    assert one.tags == {"type": "x"} and one.metadata == {"n": 3}
    assert (two.question, two.reference, two.answers) == ("d?", "e", ("e", "f"))
    assert two.relevant == {"d1": 1, "2": 1} and two.answerable is True
    assert (three.question, three.reference, three.answerable) == ("潮汐？", "月球", False)
    assert three.tags == {"类型": "事实", "难度": "高"} and not three.metadata


def test_a_chinese_table_needs_no_columns(tmp_path, caplog):
    """Usual Chinese headings and words are known; what is not known is named once, and so is gold of no answer."""
    path = tmp_path / "a.csv"
    path.write_text(
        "编号,问题,标准答案,文件,原文,是否可回答,对话历史,部门\n"
        '一,多少？,320,a.md,共320,是,"[{""question"": ""谁？"", ""answer"": ""我""}]",销售\n'
        "二,几天？,三天,a.md,,√,,销售\n三,谁？,无法回答,a.md,,不能,,销售\n四,谁？,N/A,-,nan,不可回答,,销售\n五,几时？,九点,,,大概,,\n",
        encoding="utf-8",
    )
    examples = EvaluationSet.load(path)
    assert [example.id for example in examples] == ["一", "二", "三", "四", "五"]
    assert [example.answerable for example in examples] == [True, True, False, False, None]
    assert not (examples[3].answers or examples[3].relevant or examples[3].spans)
    assert examples[0].answers == ("320",) and examples[0].history[0]["answer"] == "我"
    blank, first, partly, second = caplog.messages
    assert "cells read as blank: '标准答案 N/A (a.csv:5)', '文件 - (a.csv:5)', '原文 nan (a.csv:5)'" in blank
    assert "stay in the metadata: '部门'" in first and "是否可回答 (a.csv:6)" in partly
    assert "1 records without an answer (answerable is false) have gold" in second and "a.csv:4" in second


@pytest.mark.parametrize(
    ("cell", "answers"),
    [
        ("电机过热；皮带打滑", ("电机过热", "皮带打滑")),
        ("12 Main St; London", ("12 Main St; London",)),
        ("ls | grep x", ("ls | grep x",)),
        ("|x|", ("|x|",)),
        ("a|b\nc", ("a", "b", "c")),
        ("for(;;)", ("for(;;)",)),
        ('["a; b"]', ("a; b",)),
    ],
)
def test_several_answers_in_one_cell(cell, answers, tmp_path):
    """Accepted answers of a table's cell are cut by few signs, which no code or name has; in JSON Lines by none."""
    frame = pd.DataFrame({"question": ["Why?"], "answers": [cell]})
    assert EvaluationSet.from_pandas(frame)[0].answers == answers
    frame.to_csv(tmp_path / "a.csv", index=False)
    assert EvaluationSet.load(tmp_path / "a.csv")[0].answers == answers
    path = lines(tmp_path / "a.jsonl", {"question": "Why?", "answers": cell})
    assert cell[0] == "[" or EvaluationSet.load(path)[0].answers == (cell,)
    both = {"answers": "answers", "reference": "answers"}
    assert cell[0] == "[" or EvaluationSet.load(tmp_path / "a.csv", columns=both)[0].reference == cell


@pytest.mark.parametrize(
    ("column", "cell", "field"),
    [
        ("对话历史", "唐朝", "history"),
        ("历史对话", "用户：你好", "history"),
        ("来源文件", "制度.pdf 第3页", "relevant"),
        ("相关文档", "《员工手册》第三章", "relevant"),
        ("文档", "保修政策", "relevant"),
        ("原文", "3", "spans"),
    ],
)
def test_a_guessed_chinese_column_of_something_else_is_metadata(column, cell, field, tmp_path, caplog):
    """The set loads, and a warning names the column."""
    path = tmp_path / "a.csv"
    path.write_text(f"问题,答案,{column}\n谁？,甲,{cell}\n", encoding="utf-8")
    (example,) = EvaluationSet.load(path)
    assert example.missing({field}) and example.metadata == {column: cell}
    assert f"stay in the metadata: '{column}'" in caplog.text


@pytest.mark.parametrize(
    ("column", "cell", "field", "value"),
    [
        ("来源文件", "制度.pdf；附件 2.docx", "relevant", {"制度.pdf": 1, "附件 2.docx": 1}),
        ("相关文档", "kb-12", "relevant", {"kb-12": 1}),
        ("能否回答", "1", "answerable", True),
        ("出处", "制度.pdf", "relevant", {"制度.pdf": 1}),
        ("文档", "保修.docx和条款.pdf", "relevant", {"保修.docx": 1, "条款.pdf": 1}),
        ("原文", "“全长1230公里”", "spans", (GoldSpan("", "全长1230公里"),)),
    ],
)
def test_a_guessed_chinese_column_is_a_field(column, cell, field, value, tmp_path):
    """A column that may be a field is one if its cell looks so."""
    path = tmp_path / "a.csv"
    path.write_text(f"问题,答案,{column}\n谁？,甲,{cell}\n", encoding="utf-8")
    assert getattr(EvaluationSet.load(path)[0], field) == value


def test_the_first_of_two_answers_is_the_reference(tmp_path):
    """答案 comes before 正确答案; ids are made without a reference that is left out."""
    path = tmp_path / "a.csv"
    path.write_text("title,问题,答案,正确答案\n一,谁？,甲,乙\n", encoding="utf-8")
    assert EvaluationSet.load(path)[0].reference == "甲"
    without = EvaluationSet.load(path, columns={"reference": None})[0]
    assert without.id == EvaluationSet.load(lines(tmp_path / "a.jsonl", {"question": "谁？"}))[0].id


def test_automatic_ids_do_not_depend_on_named_columns():
    """The same table has the same ids, whichever column is named for the answers."""
    frame = pd.DataFrame({"问题": ["几天？", "谁？"], "标准答案": ["三天", "张伟"], "说法": ["3天", "张"]})
    ids = [[example.id for example in EvaluationSet.from_pandas(frame, columns=columns)]
           for columns in (None, {"answers": "标准答案"}, {"answers": "说法"})]  # fmt: skip
    assert ids[0] == ids[1] == ids[2]


def test_ids_are_made_of_the_content(tmp_path):
    """Without ids, the same question has the same id in every file; a second of the same gets a number."""
    first = EvaluationSet.load(lines(tmp_path / "a.jsonl", {"question": "a?"}, {"question": "b?"}))
    second = EvaluationSet.load(lines(tmp_path / "b.jsonl", {"question": "b?"}, {"question": "b?"}))
    assert second[0].id == first[1].id != first[0].id and second[1].id == f"{second[0].id}-2"


def test_columns_are_mapped(tmp_path):
    """A field may be read from any column, from none, and tags from several."""
    path = lines(
        tmp_path / "a.jsonl", {"Frage": "a?", "Antwort": "b", "answer": "no", "area": "x", "level": 1}
    )
    found = EvaluationSet.load(
        path, columns={"question": "Frage", "reference": "Antwort", "tags": ["area", "level"]}, name="mine"
    )
    assert found.name == "mine" and found[0].reference == "b"
    assert found[0].tags == {"area": "x", "level": "1"} and found[0].metadata == {"answer": "no"}
    none = EvaluationSet.load(path, columns={"question": "Frage", "reference": None})
    assert none[0].reference is None and none[0].metadata["answer"] == "no"


def test_one_column_of_tags_and_blanks_around_ids(tmp_path):
    """As ``--column tags=Department`` says it: the tag is called as the column."""
    path = lines(tmp_path / "a.jsonl", {"id": " 7 ", "question": "a?", "Department": "sales"})
    (found,) = EvaluationSet.load(path, columns={"tags": "Department"})
    assert found.id == "7" and found.tags == {"Department": "sales"} and found.metadata == {}


def test_lines_of_the_corpus_are_named(tmp_path):
    """A passage without a text, or with a field that none has, is refused with its line."""
    for wrong in ({"id": "d1"}, {"id": "d1", "text": "a", "more": 1}, {"id": 1, "text": "a"}):
        path = lines(tmp_path / "a.jsonl", {"id": "1", "question": "a?"}, {"passage": wrong})
        assert refusal(EvaluationSet.load, path).startswith("a.jsonl:2: no passage")


def test_wrong_columns_are_named(tmp_path):
    """An unknown field, a column that is nowhere, no question: each message says what there is."""
    path = lines(tmp_path / "a.jsonl", {"text": "a?", "gold": "b"})
    assert "allowed: id, question" in refusal(EvaluationSet.load, path, columns={"quest": "text"})
    message = refusal(EvaluationSet.load, path, columns={"question": "text", "reference": "golden"})
    assert "a.jsonl has no column 'golden' (for reference); its columns are 'text', 'gold'" in message
    message = refusal(EvaluationSet.load, path)
    assert message.startswith("a.jsonl:1: there is no question; the filled columns are 'text', 'gold'")
    assert message.endswith('columns={"question": "..."} (--column question=...)')
    assert "give the name of a column" in refusal(EvaluationSet.load, path, columns={"question": 3})


@pytest.mark.parametrize(
    ("row", "part"),
    [
        ({"question": ["a", "b"]}, "question is"),
        ({"question": {"x": 1}}, "question is"),
        ({"question": "  "}, "there is no question"),
        ({"question": "a", "answers": [{"x": 1}]}, "answers is"),
        ({"question": "a", "relevant": {"d": 0.5}}, "relevant.d is 0.5"),
        ({"question": "a", "relevant": [[1, 2]]}, "relevant is [1, 2]"),
        ({"question": "a", "spans": [3]}, "spans is [3]; give a text, or an object with document"),
        ({"question": "a", "spans": {"document": "d"}}, "spans is {'document': 'd'}; give a text"),
        ({"question": "a", "answerable": "perhaps"}, "answerable is 'perhaps'"),
        ({"question": "a", "history": "x"}, "a turn is"),
        ({"question": "a", "history": [{"x": 1}]}, "a turn is"),
        ({"question": "a", "id": {"x": 1}}, "id is"),
        ({"question": "a", "id": True}, "id is True"),
        ([1], "a JSON list"),
        ("x", "a JSON str"),
    ],
)
def test_wrong_values_are_named_by_line_and_field(tmp_path, row, part):
    """File, line and field stand in the message."""
    path = tmp_path / "a.jsonl"
    path.write_text(f'{{"question": "fine?"}}\n\n{json.dumps(row)}\n', encoding="utf-8")
    message = refusal(EvaluationSet.load, path)
    assert part in message and "a.jsonl:3" in message


@pytest.mark.parametrize("text", ["null", "N/A", "-", "/", "NaN"])
def test_in_json_a_text_is_a_text(tmp_path, text):
    """In a list as in lines, in every field; null itself is none, and so is a blank text."""
    row = {"question": "Which?", "reference": text, "answers": text, "team": text, "gap": None, "empty": ""}
    path = tmp_path / "a.json"
    for content in (json.dumps([row]), json.dumps(row)):
        path.write_text(content, encoding="utf-8")
        (example,) = EvaluationSet.load(path)
        assert (example.reference, example.answers) == (text, (text,)) and example.metadata == {"team": text}
    path.write_text(json.dumps({**row, "relevant": text, "history": text, "answerable": text}, indent=1))
    (example,) = EvaluationSet.load(path)
    assert example.missing({"relevant", "history", "answerable"}) == ["answerable", "history", "relevant"]
    assert example.reference == example.metadata["relevant"] == text
    path.write_text('[{"question": "Which?"}, 3]', encoding="utf-8")
    assert "a.json: a list of something else than objects" in refusal(EvaluationSet.load, path)
    path.write_text("[{", encoding="utf-8")
    assert "a.json: not valid JSON" in refusal(EvaluationSet.load, path)


def test_earlier_turns_are_read_from_messages(tmp_path):
    """Roles of other programs too, but no greeting; the role of nobody is refused, not left out."""
    texts = {"assistant": "Hello.", "HumanMessage": "Who?", "AIMessageChunk": "Ada.", "system": "Be kind."}
    messages = [{"role": role, "content": text} for role, text in {**texts, "bot": "Lovelace."}.items()]
    (example,) = EvaluationSet.load(lines(tmp_path / "a.jsonl", {"question": "a", "history": messages}))
    assert example.history == ({"question": "Who?", "answer": "Ada.\nLovelace."},)
    path = lines(tmp_path / "b.jsonl", {"question": "a", "history": [{"role": "x", "content": "y"}]})
    assert "give question and answer, or role (user or assistant)" in refusal(EvaluationSet.load, path)


def test_rows_with_one_question_and_reference_are_named(tmp_path, caplog):
    """Both count, and the warning says which they are."""
    path = tmp_path / "a.csv"
    path.write_text("Question,Answer\na?,b\nc?,d\na?,b\n", encoding="utf-8")
    assert len(EvaluationSet.load(path)) == 3
    assert "question and reference of another one count too: 'a.csv:4 as a.csv:2'" in caplog.text


def test_ids_that_come_twice_are_named_by_both_lines(tmp_path):
    """Also where one is a number and the other a text."""
    path = lines(tmp_path / "a.jsonl", {"id": 7, "question": "a"}, {"id": "7", "question": "b"})
    assert "a.jsonl:2: the id '7' is that of a.jsonl:1 too" in refusal(EvaluationSet.load, path)


@pytest.mark.parametrize("content", [b"", b"\n \n", b"{", b'{"question": "a"', b"[" * 100_000, b"\x00\x01"])
def test_broken_files_are_refused(tmp_path, content):
    """Empty, cut short, nested without end, binary."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(content)
    assert refusal(EvaluationSet.load, path).startswith("a.jsonl")


def test_encodings(tmp_path):
    """A mark is no part of the text; JSON Lines are UTF-8, and of a table UTF-8, UTF-16 or GB18030 is found."""
    row = json.dumps({"question": "什么引起潮汐？"}, ensure_ascii=False) + "\n"
    path, table = tmp_path / "a.jsonl", tmp_path / "a.csv"
    path.write_bytes(b"\xef\xbb\xbf" + row.encode())
    assert EvaluationSet.load(path)[0].question == "什么引起潮汐？"
    for encoding in ("gb18030", "utf-16", "utf-8-sig"):
        table.write_bytes("question,答案\n什么引起潮汐？,月球的引力\n".encode(encoding))
        assert EvaluationSet.load(table)[0].reference == "月球的引力"
    path.write_bytes(row.encode("gb18030"))
    assert "a.jsonl:1: not valid UTF-8" in refusal(EvaluationSet.load, path)


def test_lines_without_end_are_refused(tmp_path, monkeypatch):
    """A small file that unpacks to an endless line, and a quote that is never closed, end at a cap."""
    monkeypatch.setattr(_files, "MAX_LINE", 1000)
    with gzip.open(tmp_path / "a.jsonl.gz", "wb") as file:
        file.write(b'{"question": "fine?"}\n{"question": "' + b"a" * 10_000)
    message = refusal(EvaluationSet.load, tmp_path / "a.jsonl.gz")
    assert message.startswith("a.jsonl.gz:2: a line of more than 1,000")
    (tmp_path / "a.csv").write_text('question\nfine?\n"open\n' + "more\n" * 50_000, encoding="utf-8")
    assert "more than 1,000 bytes" in refusal(EvaluationSet.load, tmp_path / "a.csv")


def test_csv(tmp_path):
    """Quoted line ends and delimiters, lists as JSON and as Python prints them, a mark, tabs, semicolons."""
    path = tmp_path / "a.csv"
    path.write_bytes(
        "\ufeffquestion,answers,relevant,answerable,reference\r\n"
        '"a, or\r\nb?","[""x"", ""y""]","{""d1"": 2}",yes,[1] says so\r\n'
        "c?,\"['p', 'q, r']\",d7,否,\r\n".encode()
    )
    one, two = EvaluationSet.load(path)
    assert (one.question, one.answers, one.relevant) == ("a, or\nb?", ("x", "y"), {"d1": 2})
    assert one.answerable is True and one.reference == "[1] says so"
    assert (two.answers, two.relevant, two.answerable, two.reference) == (
        ("p", "q, r"),
        {"d7": 1},
        False,
        None,
    )
    for suffix, mark in ((".tsv", "\t"), (".TSV", "\t"), (".csv", ";"), (".csv", "|")):
        other, more = tmp_path / f"b{suffix}", ", and, so, on" if mark == "\t" else ""
        other.write_text(
            f"question{mark}reference{mark}more{more}\nWhy, then?{mark}So, x{mark}\n", encoding="utf-8"
        )
        assert EvaluationSet.load(other)[0].reference == "So, x"
    (tmp_path / "b.csv").write_text(
        '"question, or what, is asked";answer\nWhy, then?;So, x\n', encoding="utf-8"
    )
    columns = {"question": "question, or what, is asked"}
    assert EvaluationSet.load(tmp_path / "b.csv", columns=columns)[0].reference == "So, x"
    (tmp_path / "d.csv").write_text("\n \nquestion;reference\nWhy, then?;So, x\n", encoding="utf-8")
    assert EvaluationSet.load(tmp_path / "d.csv")[0].reference == "So, x"  # blank lines above the header
    with gzip.open(tmp_path / "c.csv.gz", "wt", encoding="utf-8") as file:
        file.write("question\nhi?\n")
    assert EvaluationSet.load(tmp_path / "c.csv.gz").name == "c"


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("question,reference\nfine?,x\na?\n", "a.csv:3: 1 cells, but the header has 2"),
        ('question,reference\n"two\nlines?",x\na,b,c\n', "a.csv:4: 3 cells"),
        ('question\n"open\nand on\n', "a.csv:2: not valid CSV"),
        ("question,question\na,b\n", "'question' twice"),
        ("question,answers\na,\"['x', y()]\"\n", "a.csv:2: answers is"),
        ("question,answers\na,\"['x' 'y' z]\"\n", "a.csv:2: answers is"),
        ("question\n", "holds no record"),
        ("", "holds no record"),
    ],
)
def test_wrong_csv_is_named_by_line(tmp_path, text, part):
    """The line where the row begins; code in a cell is never run."""
    path = tmp_path / "a.csv"
    path.write_text(text, encoding="utf-8", newline="")
    assert part in refusal(EvaluationSet.load, path)


def test_rows_of_nothing_in_csv(tmp_path):
    """Rows of delimiters alone, as spreadsheets leave them below a table, are none; a row with a gap is named."""
    path = tmp_path / "a.csv"
    path.write_bytes("\ufeff问题,答案\r\n甲？,乙\r\n,\r\n丙？,丁\r\n , \r\n".encode())
    assert [example.question for example in EvaluationSet.load(path)] == ["甲？", "丙？"]
    path.write_text("问题,答案\n甲？,乙\n,丁\n", encoding="utf-8")
    assert refusal(EvaluationSet.load, path).startswith("a.csv:3: there is no question")
    path.write_text("问题,答案,,\n甲？,乙,,\n丙？,丁,,x\n", encoding="utf-8")
    assert [example.metadata for example in EvaluationSet.load(path)] == [{}, {"column 4": "x"}]


def test_pandas():
    """Gaps are no values, whole numbers of a column with gaps are ids, the row is named in a fault."""
    frame = pd.DataFrame(
        {"id": [1, None, 3], "question": ["a?", "b?", "c?"], "answers": [["x"], None, float("nan")],
         "when": pd.to_datetime(["2024-01-02", None, None])}
    )  # fmt: skip
    one, two, three = EvaluationSet.from_pandas(frame, name="f")
    assert (one.id, three.id) == ("1", "3") and two.id.startswith("q-")
    assert one.answers == ("x",) and two.answers == three.answers == ()
    assert one.metadata == {"when": "2024-01-02T00:00:00"} and two.metadata == {}
    frame.loc[1, "question"] = None
    assert "row 1: there is no question" in refusal(EvaluationSet.from_pandas, frame)
    assert "give a pandas DataFrame" in refusal(EvaluationSet.from_pandas, [1])
    double = pd.DataFrame([["a", "b"]], columns=["question", "question"])
    assert "'question' twice" in refusal(EvaluationSet.from_pandas, double)


def test_a_frame_of_a_set_comes_back():
    """A set that pandas wrote is read as the same examples."""
    before = EvaluationSet(
        "a", list(EvaluationSet.from_pandas(pd.DataFrame({"question": ["a?"], "answers": [["x"]]})))
    )
    assert list(EvaluationSet.from_pandas(pd.DataFrame([e.to_json() for e in before]))) == list(before)


SQUAD = {
    "id": ["s1", "s2"],
    "title": ["Tides", "Tides"],
    "context": ["The moon pulls the sea.", "Nothing here."],
    "question": ["What pulls?", "Who?"],
    "answers": [{"text": ["The moon", "The moon"], "answer_start": [0, 0]}, {"text": [], "answer_start": []}],
}


def test_hugging_face_sets_from_disk_and_memory(tmp_path):
    """save_to_disk's folder, a Dataset and a DatasetDict with a split give the same."""
    import datasets

    data = datasets.Dataset.from_dict({**SQUAD, "level": ["hard", "easy"]})
    both = datasets.DatasetDict({"train": data, "test": data.select([0])})
    data.save_to_disk(tmp_path / "one")
    both.save_to_disk(tmp_path / "two")
    found = EvaluationSet.load(tmp_path / "one")
    assert found.name == "one" and found[0].answers == ("The moon",) and found[1].answers == ()
    assert found[0].tags == {"level": "hard"} and found[0].reference_contexts == ("The moon pulls the sea.",)
    assert list(EvaluationSet.load(data)) == list(found)
    assert len(EvaluationSet.load(tmp_path / "two", split="test")) == 1
    message = refusal(EvaluationSet.load, both)
    assert "split is None; the data set has 'train', 'test'" in message
    assert "split is 'dev'" in refusal(EvaluationSet.load, tmp_path / "two", split="dev")


def test_hugging_face_folders_as_downloaded(tmp_path):
    """Parquet in parts by split; hidden files are not read, a script is never run, a broken row is named."""
    rows = [{"question": f"{n}?", "answers": ["x"]} for n in range(4)]
    folder = tmp_path / "hub"
    (folder / "data").mkdir(parents=True)
    for part in (0, 1):
        frame = pd.DataFrame(rows[2 * part : 2 * part + 2])
        frame.to_parquet(folder / "data" / f"train-0000{part}-of-00002.parquet")
    pd.DataFrame([{"question": "t?"}]).to_parquet(folder / "data" / "test-00000-of-00001.parquet")
    (folder / ".cache").mkdir()
    lines(folder / ".cache" / "dev.jsonl", {"question": "hidden?"})
    assert [e.question for e in EvaluationSet.load(folder, split="train")] == ["0?", "1?", "2?", "3?"]
    assert [e.question for e in EvaluationSet.load(folder, split="test")] == ["t?"]
    assert "the data set has 'train', 'test'" in refusal(EvaluationSet.load, folder, split="dev")
    assert EvaluationSet.load(folder / "data" / "train-00000-of-00002.parquet")[1].answers == ("x",)
    (folder / "hub.py").write_text("raise SystemExit('run')")
    assert "hub.py" in refusal(EvaluationSet.load, folder)
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "train.jsonl").write_text('{"question": "a?"}\n{"question"\n')
    assert "rows cannot be read (JSON parse error" in refusal(EvaluationSet.load, tmp_path / "rows")


@pytest.mark.parametrize(
    ("cell", "ids"),
    [
        ("a.pdf;b.pdf", ["a.pdf", "b.pdf"]),
        ("报告.docx；附件 2.xlsx", ["报告.docx", "附件 2.xlsx"]),
        ("a.pdf\nb.pdf\r\n", ["a.pdf", "b.pdf"]),
        ("- a.pdf\n- b.pdf", ["a.pdf", "b.pdf"]),
        ("a.pdf, b.pdf and c d.md", ["a.pdf", "b.pdf", "c d.md"]),
        ("《甲.pdf》、《乙.pdf》以及丙.pdf", ["甲.pdf", "乙.pdf", "丙.pdf"]),
        ("2023.Q1 财报.pdf;2023.Q2 财报.pdf", ["2023.Q1 财报.pdf", "2023.Q2 财报.pdf"]),
        ("Node.js guide.pdf", ["Node.js guide.pdf"]),
        ("Vue.js 入门.pdf, GB.T 19001.pdf", ["Vue.js 入门.pdf", "GB.T 19001.pdf"]),
        ('"Node.js guide.pdf"', ["Node.js guide.pdf"]),
        ('- "a, b.pdf"\n- c.pdf', ["a, b.pdf", "c.pdf"]),
        ("《规范》和《规程》解读.pdf", ["《规范》和《规程》解读.pdf"]),
        ("a.foo b.foo", ["a.foo", "b.foo"]),
        ("d1, d2", ["d1", "d2"]),
        ("Research, final.pdf", ["Research, final.pdf"]),
        ("研究和开发，终稿.pdf", ["研究和开发，终稿.pdf"]),
        ("https://a.org/x;v=1", ["https://a.org/x;v=1"]),
        ('["a;1", "b"]', ["a;1", "b"]),
        ("a;a", ["a"]),
        ("子目录\\甲 2.pdf；b\\c", ["子目录/甲 2.pdf", "b\\c"]),
        ("12", ["12"]),
    ],
)
@pytest.mark.parametrize("ending", ["csv", "xlsx", "jsonl"])
def test_several_gold_files_in_one_cell(tmp_path, cell, ids, ending):
    """Cells are cut as people write them, in every kind of file; JSON lists and names with commas stay as they are."""
    path = tmp_path / f"a.{ending}"
    frame = pd.DataFrame({"问题": ["多少？"], "文件": [cell]})
    if ending == "csv":
        frame.to_csv(path, index=False)
    elif ending == "xlsx":
        frame.to_excel(path, index=False)
    else:
        lines(path, {"问题": "多少？", "文件": cell})
    assert list(EvaluationSet.load(path)[0].relevant) == ids


@pytest.mark.parametrize(
    "cell",
    [[[["Ada-1"]], [["no_evidence"]]], 3, 2.5, "3.2", True, {"page": 3}, [{"text": 5}], ["", "a"], "['a' b]"],
)
def test_a_guessed_column_without_spans_is_metadata(tmp_path, cell):
    """Evidence as StrategyQA has it, or a number, refuses no set; a column that is named is spans, or refused."""
    lines(
        tmp_path / "a.jsonl",
        {"question": "Who?", "evidence": cell},
        {"question": "When?", "evidence": "In 1843"},
    )
    first, second = EvaluationSet.load(tmp_path / "a.jsonl")
    assert first.spans == () and first.metadata == {"evidence": cell}
    assert [span.text for span in second.spans] == ["In 1843"] and not second.metadata
    if type(cell) in (int, float):
        named = EvaluationSet.load(tmp_path / "a.jsonl", columns={"spans": "evidence"})
        assert [span.text for span in named[0].spans] == [str(cell)]
    elif not isinstance(cell, str):
        refusal(EvaluationSet.load, tmp_path / "a.jsonl", columns={"spans": "evidence"})
        lines(tmp_path / "b.jsonl", {"question": "Who?", "spans": cell})
        refusal(EvaluationSet.load, tmp_path / "b.jsonl")


def test_spans_are_a_column_of_texts(tmp_path, caplog):
    """The words of the one gold file; of several files each its own; blank lines part several; else of any document."""
    frame = pd.DataFrame(
        {
            "问题": ["一？", "二？", "三？", "四？"],
            "文件": ["a.pdf", "a.pdf；b.pdf", "a.pdf", None],
            "原文": ["甲是一。\n续。", "甲。\n\n乙。", "甲。\n\n乙。", "丙。"],
        }
    )
    with pd.ExcelWriter(tmp_path / "a.xlsx") as book:
        for sheet in ("题集", "旧题"):
            frame.to_excel(book, sheet_name=sheet, index=False)
    found = [[(s.document, s.text) for s in e.spans] for e in EvaluationSet.load(tmp_path / "a.xlsx")]
    assert found == [
        [("a.pdf", "甲是一。\n续。")], [("a.pdf", "甲。"), ("b.pdf", "乙。")], [("a.pdf", "甲。"), ("a.pdf", "乙。")],
        [("", "丙。")],
    ]  # fmt: skip
    assert "a.xlsx: the first sheet is read, and not '旧题'" in caplog.text
    named = frame.rename(columns={"原文": "Stelle"})
    mapped = EvaluationSet.from_pandas(named, columns={"spans": "Stelle"})
    assert [[(s.document, s.text) for s in e.spans] for e in mapped] == found
    with pytest.raises(InvalidInputError, match="give a text, or an object with document"):
        Example("q", "Who?", spans=({"document": "d"},))


def test_excel_cells_are_what_excel_shows(tmp_path):
    """Decision 0040 for documents holds for sets: formats count, and NA is an answer."""
    sheet = (book := openpyxl.Workbook()).active
    sheet.append(["问题", "答案", "code", None])
    cells = [
        (0.25, "0%"),
        (123, "00000"),
        (datetime(2026, 3, 1), "dd.mm.yyyy"),
        (timedelta(hours=30), "[h]:mm"),
    ]
    for row, (value, code) in enumerate([*cells, ("NA", "General"), ("None", "General")], start=2):
        sheet.cell(row, 1, f"q{row}?")
        sheet.cell(row, 2, value).number_format = code
    sheet.cell(2, 4, "no header")
    book.save(tmp_path / "a.xlsx")
    examples = EvaluationSet.load(tmp_path / "a.xlsx")
    assert [e.reference for e in examples] == ["25%", "00123", "01.03.2026", "30:00", "NA", "None"]
    assert examples[0].metadata == {"column 4": "no header"}
    (tmp_path / "b.xlsx").write_bytes(b"PK no workbook")
    assert "b.xlsx: cannot be read as .xlsx" in refusal(EvaluationSet.load, tmp_path / "b.xlsx")
    sheet.cell(1, 3, "答案")
    book.save(tmp_path / "c.xlsx")
    assert "c.xlsx: row 1: the header has the column '答案' twice" in refusal(
        EvaluationSet.load, tmp_path / "c.xlsx"
    )


def test_struck_and_hidden_excel_cells_are_gold(tmp_path):
    """A set takes what a cell holds: no marks of what is struck, in names of columns too, and no format hides it."""
    struck = openpyxl.styles.Font(strike=True)
    pieces = CellRichText(TextBlock(InlineFont(strike=True), "two"), " years")
    sheet = (book := openpyxl.Workbook()).active
    for row in (["question", "answers"], ["q1?", "two years"], ["q2?", pieces], ["q3?", 7], ["q4?", 0]):
        sheet.append(row)
    sheet["B1"].font = sheet["B2"].font = struck
    sheet["B4"].number_format, sheet["B5"].number_format = ";;;", "0;-0;;@"
    book.save(tmp_path / "a.xlsx")
    examples = EvaluationSet.load(tmp_path / "a.xlsx")
    assert [e.answers for e in examples] == [("two years",), ("two years",), ("7",), ("0",)]


def test_a_set_that_was_cut_is_refused(tmp_path):
    """The first line says how many passages there are."""
    path = EvaluationSet("a", [Example("q", "Who?")], corpus=["one", "two"]).save(tmp_path / "a.jsonl")
    whole = path.read_text().splitlines(keepends=True)
    path.write_text("".join(whole[:-1]))
    assert "a.jsonl has 1 passages, but its first line says 2; the file was cut" in refusal(
        EvaluationSet.load, path
    )


def test_folders_and_files_that_are_no_sets(tmp_path):
    """Nothing in it, a broken save_to_disk, an unknown ending, nothing there."""
    (tmp_path / "empty").mkdir()
    assert "no data set that can be read; give a file" in refusal(EvaluationSet.load, tmp_path / "empty")
    lines(tmp_path / "empty" / "state.json", {"_data_files": "x"})
    assert "no data set that can be read" in refusal(EvaluationSet.load, tmp_path / "empty")
    (tmp_path / "a.txt").write_text("x")
    assert "allowed are .jsonl" in refusal(EvaluationSet.load, tmp_path / "a.txt")
    assert "is not there" in refusal(EvaluationSet.load, tmp_path / "no.jsonl")
    (tmp_path / "a.parquet").write_bytes(b"PAR1 no")
    assert "cannot be read as .parquet" in refusal(EvaluationSet.load, tmp_path / "a.parquet")


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "count", "unanswerable", "spans"),
    [("xquad_zh", 1190, 0, 1000), ("timeqa_slice", 282, 38, 200), ("covidqa", 1380, 0, 1300)],
)
def test_real_sets(data_sets, name, count, unanswerable, spans):
    """Real sets load whole; every span stands in its document where it says."""
    found = EvaluationSet.load(data_sets / name)
    assert len(found) == count and sum(e.answerable is False for e in found) == unanswerable
    texts = {p.id: p.text for p in found.corpus or ()}
    held = [e.spans[0] for e in found if e.spans]
    assert len(held) >= spans and all(texts[s.document].startswith(s.text, s.start) for s in held)


def table(path: Path) -> Path:
    """Questions as an office keeps them: its own headings, and the file where the answer stands."""
    with path.open("w", newline="", encoding="utf-8-sig") as file:
        writer = csv.writer(file)
        writer.writerow(["Question", "Solution", "File"])
        writer.writerow(["When does the pump start?", "40 degrees", "pump.md"])
        writer.writerow(["风扇什么时候启动？", "六十度", "风扇.md"])
    return path


def test_a_table_names_the_file_where_the_answer_stands(tmp_path: Path) -> None:
    """A column ``File`` is the gold document: passages of an index carry the name of their file."""
    assert EvaluationSet.load(table(tmp_path / "q.csv"))[0].relevant == {"pump.md": 1}


def test_columns_are_named_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """From a table with headings of its own, one of them with a sign in it, to scores, by ids and by answers."""
    monkeypatch.chdir(tmp_path)
    text = table(tmp_path / "q.csv").read_text(encoding="utf-8-sig").replace("Solution", "Solution=x", 1)
    (tmp_path / "q.csv").write_text(text, encoding="utf-8")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "pump.md").write_text("# Pump\n\nThe pump starts at 40 degrees.\n", encoding="utf-8")
    (tmp_path / "docs" / "风扇.md").write_text("# 风扇\n\n风扇在六十度时启动，噪音很大。\n", encoding="utf-8")
    assert main(["ingest", "docs", "--index", "index", "--embedding-model", "none", "--quiet"]) == 0
    command = ["evaluate", "q.csv", "--index", "index", "--graph", "plain", "--metric", "mrr"]
    found = [*command, "--metric", "ours_answer_found", "--column", "answers=Solution=x", "--out", "run"]
    assert main(found) == 0
    summary = Results.load("run").summary()
    assert summary["mrr"].mean == 1.0 and summary["ours_answer_found"].n == 2
    capsys.readouterr()
    assert main([*command, "--column", "answers"]) != 0 and "answers=Solution" in capsys.readouterr().err
    assert main([*command, "--column", "answers=Nowhere"]) != 0 and "'Nowhere'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("Question,Answer,File", "How long is the warranty?,two years,warranty.md"),
        ("QUESTION, Answer, file name", 'How long is the warranty?, "two years", warranty.md'),
        ("问题,答案,文件", "保修期多长？,two years,warranty.md"),
        ("用户问题,标准回答,文档名称", "保修期多长？,two years,warranty.md"),
    ],
)
def test_the_usual_table_needs_no_flags(tmp_path: Path, header: str, row: str) -> None:
    """The answer is the reference and the text to look for; the file is found by name in every folder."""
    (tmp_path / "q.csv").write_text(f"{header}\n{row}\n", encoding="utf-8")
    (example,) = questions = EvaluationSet.load(tmp_path / "q.csv")
    assert (example.reference, example.answers, example.relevant) == (
        "two years",
        ("two years",),
        {"warranty.md": 1},
    )
    page = Document("It lasts two years.", id="c1", metadata={"file": "sales/2024/warranty.md"})
    asked = {"answer": "two years", "documents": [page]}
    scores = evaluate(
        lambda question: asked, questions, ["mrr", "ours_answer_found"], progress=False
    ).summary()
    assert scores["mrr"].mean == scores["ours_answer_found"].mean == 1.0


def test_a_long_answer_is_no_text_to_look_for(tmp_path: Path) -> None:
    """A paragraph never occurs word for word in an answer; the score would be 0 whatever the pipeline says."""
    long = "The warranty lasts two years from the day of purchase, and three where it was registered."
    (tmp_path / "q.csv").write_text(f'Question,Answer\nHow long?,"{long}"\n', encoding="utf-8")
    (example,) = EvaluationSet.load(tmp_path / "q.csv")
    assert example.reference == long and example.answers == ()


def test_one_column_feeds_two_fields(tmp_path: Path) -> None:
    """Whoever names a column twice gets it twice, as field and as tag too."""
    columns = {"answers": "Solution", "reference": "Solution", "tags": ["File"]}
    found = EvaluationSet.load(table(tmp_path / "q.csv"), columns=columns)[0]
    assert (found.answers, found.reference) == (("40 degrees",), "40 degrees")
    assert found.relevant == {"pump.md": 1} and found.tags == {"File": "pump.md"}
