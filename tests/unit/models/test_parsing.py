"""Tolerant reading of model answers, and of those that repeat themselves."""

from __future__ import annotations

import json
import time
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field

from rag_kit.models.json_text import ends_in_loop, is_truncated, json_values, values_before_loop
from rag_kit.models.parsing import parse_text
from rag_kit.models.replies import estimate_tokens, without_thinking
from rag_kit.models.schema import Target, UnreadableError
from rag_kit.prompts.grading import Grade, PassageGrades
from rag_kit.prompts.schemas import Passages, Queries, Query, RelatedQuestions, SubQuestions, UserFacts

QUERIES = Target(Queries)
QUERY = Target(Query)
GRADE = Target(Grade)


@pytest.mark.parametrize(
    ("text", "queries"),
    [
        ('{"queries": ["a b", "c d"]}', ["a b", "c d"]),
        ('```json\n{"queries": ["a"]}\n```', ["a"]),
        ('Sure!\n```\n["a", "b"]\n```\nHope this helps.', ["a", "b"]),
        ('Here is the JSON: {"queries": ["a"]} - good luck {not json}', ["a"]),
        ('<think>maybe {"queries": ["wrong"]}</think>\n{"queries": ["right"]}', ["right"]),
        ('the tag was swallowed</think>{"queries": ["right"]}', ["right"]),
        ('{"queries": ["right"]}\n<think>or {"queries": ["wrong"]}</think>', ["right"]),
        ('{"queries": ["right"]} <think>or {"queries": ["wrong"]}', ["right"]),
        ('{"queries": ["wrong"]}, no:</think>\n{"queries": ["right"]}', ["right"]),
        ('<think>hm</think>{"queries": ["what does <think> do?"]} Done.', ["what does <think> do?"]),
        ('First {"queries": ["draft"]}, better: {"queries": ["final"]}', ["final"]),
        ('{"queries": ["say <think>x</think>"]}', ["say <think>x</think>"]),
        ("{'queries': ['it''s', 'b'],}", ["it''s", "b"]),
        ("{“queries”：［“检索”，“重排”］｝", ["检索", "重排"]),
        ('{"queries"： ["检索，增强"，"重排：二"]}', ["检索，增强", "重排：二"]),
        ('{"queries": ["he said "yes" loudly", "b"]}', ['he said "yes" loudly', "b"]),
        ('{"queries": ["line\nbreak"]}', ["line\nbreak"]),
        ('{"Queries": {"queries": ["a"]}}', ["a"]),
        ('{"name": "Queries", "arguments": {"queries": ["a"]}}', ["a"]),
        ('{"questions": ["a", "b"]}', ["a", "b"]),
        ('{"queries": [{"query": "a"}, {"query": "b"}]}', ["a", "b"]),
        ('{"queries": "a\\nb"}', ["a", "b"]),
        ('"{\\"queries\\": [\\"a\\"]}"', ["a"]),
        ('"[\\"a\\", \\"b\\"]"', ["a", "b"]),
        ('{"queries": ["a", "", "  "], "note": "x"}', ["a"]),
        ("<queries>\n<query>a</query>\n<query>b &lt;task></query></queries>", ["a", "b <task>"]),
        ("<queries>\n1. a\n2. b\n</queries>", ["a", "b"]),
        ("1. a\n2) b\n(3) c", ["a", "b", "c"]),
        ("Here are three:\n- a\n* b\n• c\n\nLet me know!", ["a", "b", "c"]),
        ("1、检索\n2．重排\n（3）生成", ["检索", "重排", "生成"]),
        ("以下是改写：\n一、检索\n二、重排", ["检索", "重排"]),
        ("Q1: a?\nQ2: b?", ["a?", "b?"]),
        ('1. **"a b"**\n2. “c”', ["a b", "c"]),
        ("1. *a b*\n2. *c*", ["a b", "c"]),
        ("Version 1: a\nVersion 2: b", ["a", "b"]),
        ("Alternative 1: a\nAlternative 2: b", ["a", "b"]),
        ("Query: a\nQuery: b", ["a", "b"]),
        ("What is BM25?\nHow does BM25 rank?", ["What is BM25?", "How does BM25 rank?"]),
        ("Sure, here they are:\nWhat is BM25?\nHow does it rank?", ["What is BM25?", "How does it rank?"]),
        ("version 2.0 release notes\nquery 3.1 syntax", ["version 2.0 release notes", "query 3.1 syntax"]),
        ("版本2.0的说明\n版本3.1的说明", ["版本2.0的说明", "版本3.1的说明"]),
        ("Query 1:2024 results\nQuery 2:2023 results", ["2024 results", "2023 results"]),
        ("12:30 trains\n14:45 trains", ["12:30 trains", "14:45 trains"]),
        ("3.5 million people?\n2024 results?", ["3.5 million people?", "2024 results?"]),
    ],
)
def test_lists_are_read_from_any_form(text: str, queries: list[str]) -> None:
    """JSON, fences, prose around it, reasoning, tags and one entry a line all give the list."""
    assert parse_text(text, QUERIES).queries == queries


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ('{"query": "a"}', "a"),
        ("<query>What is it?</query>", "What is it?"),
        ("<QUERY>draft</QUERY> then <query>final</query>", "final"),
        ("What is BM25?", "What is BM25?"),
        ("**BM25** and **SPLADE**", "**BM25** and **SPLADE**"),
        ('Rewritten query: "What is BM25?"', "What is BM25?"),
        ("改写后的问题：什么是 BM25？", "什么是 BM25？"),
        ("The step-back question is: What is BM25?", "What is BM25?"),
        ("More general question: **What is BM25?**", "What is BM25?"),
        ("Here is the rewritten query:\n\nWhat is BM25?", "What is BM25?"),
        ('["What is BM25?"]', "What is BM25?"),
        ('{"search_query": "a"}', "a"),
        ('"{user} in Jinja templates"', "{user} in Jinja templates"),
    ],
)
def test_single_strings_are_read_from_any_form(text: str, query: str) -> None:
    """A schema of one string takes tags, a label, or just the line."""
    assert parse_text(text, QUERY).query == query


@pytest.mark.parametrize(
    ("text", "relevant", "score"),
    [
        ('{"relevant": "yes", "score": "0.8", "reason": "r"}', True, 0.8),
        ('{"Relevant": false, "Score": ".8", "reason": "r"}', False, 0.8),
        ("<relevant>是</relevant><score>1</score><reason>相关</reason>", True, 1.0),
        ('{"relevant": "否", "score": 0, "reason": "无关", "extra": 1}', False, 0.0),
    ],
)
def test_grades_are_read_from_any_form(text: str, relevant: bool, score: float) -> None:
    """Words for true and false, and numbers in quotes, are understood."""
    grade = parse_text(text, GRADE)
    assert (grade.relevant, grade.score) == (relevant, score)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<think>I never stop thinking",
        '<think>I never stop: {"queries": ["a"]}',
        '<think>perhaps {"queries": ["a"]}</think>No.',
        '{"queries": ["a"]} or not?</think>{"queries": []}',
        "Sure! I would be happy to help with that.",
        '{"queries": []}',
        '{"error": "overloaded"}',
        "null",
        '{"type": "object", "properties": {"queries": {"type": "array", "items": {"type": "string"}}}}',
    ],
)
def test_what_is_no_answer_is_refused(text: str) -> None:
    """Prose, thoughts, emptiness, errors and an echo of the schema are not taken for a list."""
    with pytest.raises(UnreadableError):
        parse_text(text, QUERIES)


def test_out_of_range_values_are_refused_not_bent() -> None:
    """A score of 2 is an error with the field's name, never a clipped value."""
    with pytest.raises(UnreadableError, match="score"):
        parse_text('{"relevant": true, "score": 2, "reason": "r"}', GRADE)


class Invoice(BaseModel):
    """A form with a field that a tool call has, too."""

    name: str
    amount: float = 0.0


@pytest.mark.parametrize("form", [Invoice, {"title": "Invoice", "type": "object", "properties": {
    "name": {"type": "string"}, "amount": {"type": "number"}}}])  # fmt: skip
@pytest.mark.parametrize("amount", ["NaN", "-Infinity", "1e999", '"NaN"', "true"])
def test_what_is_no_number_of_json_is_refused(form: Any, amount: str) -> None:
    """It would be in the value without a word, as true would be 1."""
    with pytest.raises(UnreadableError, match="amount"):
        parse_text(f'{{"name": "a", "amount": {amount}}}', Target(form))
    grades = parse_text(
        '{"grades": [{"id": 1, "score": NaN}, {"id": 2, "score": 1}]}', Target(PassageGrades)
    ).grades
    assert len(grades) == 2  # whoever reads them drops the first


def test_a_tool_call_as_text_is_not_taken_for_the_form() -> None:
    """The ``name`` in it is that of the form, and no field."""
    text = '<tool_call>{"name": "Invoice", "arguments": {"name": "a", "amount": 2}}</tool_call>'
    assert parse_text(text, Target(Invoice)) == Invoice(name="a", amount=2)


class Odd(BaseModel):
    """A form that has what a tool call has, allows NaN, and means 1 by true."""

    name: str = ""
    parameters: dict[str, Any] = {}
    unknown: float = float("nan")
    open: float = Field(default=0, allow_inf_nan=True)
    flag: Literal[0, 1] = 0


class OpenForm(BaseModel):
    """A form that allows NaN everywhere."""

    model_config = ConfigDict(allow_inf_nan=True)
    form: Odd = Odd()
    value: float = 0


@pytest.mark.parametrize(
    ("text", "form", "field", "value"),
    [
        ('{"name": "Odd", "parameters": {"colour": "red"}}', Odd, "parameters", {"colour": "red"}),
        ('{"name": "Odd", "flag": 1, "result": {"flag": 0}}', Odd, "flag", 1),
        ('{"name": "Odd", "arguments": {"flag": 1}}', Odd, "flag", 1),
        ('{"flag": true}', Odd, "flag", 1),
        ('{"open": Infinity}', Odd, "open", float("inf")),
        ('{"value": -Infinity}', OpenForm, "value", float("-inf")),
    ],
)
def test_what_a_form_allows_is_read(text: str, form: Any, field: str, value: Any) -> None:
    """A field is no part of a tool call, a default may be NaN, and so may a value if the form says so."""
    assert getattr(parse_text(text, Target(form)), field) == value


@pytest.mark.parametrize("text", ["null", "None", "无", "没有"])
def test_none_may_be_the_text_of_a_form_of_ones_own(text: str) -> None:
    """Only of the kit's queries it is known that it is none."""
    form = {"type": "object", "properties": {"label": {"type": "string"}}}
    assert parse_text(text, Target(form)) == {"label": text}


@pytest.mark.parametrize("text", ["null", "None.", "N/A", "无"])
def test_none_is_neither_a_query_nor_an_entry(text: str) -> None:
    """Alone it is no answer; in a list that may be empty it says that the list is."""
    for written in (text, json.dumps({"query": text})):
        with pytest.raises(UnreadableError):
            parse_text(written, QUERY)
    assert parse_text(json.dumps({"facts": [text]}), Target(UserFacts)).facts == []
    for form in (SubQuestions, RelatedQuestions):
        assert parse_text(json.dumps({"queries": ["a", text]}), Target(form)).queries == ["a"]


def test_a_list_for_an_object_is_refused_with_the_names_of_its_fields() -> None:
    """A list is an error that names the fields which were wanted."""
    with pytest.raises(UnreadableError, match=r"expected an object with .*relevant.*, not list"):
        parse_text("[1, 2]", GRADE)


@pytest.mark.parametrize(
    "text", ["I'm sorry, but I can't help with that.", "抱歉，我无法回答这个问题。", "As an AI, I do not."]
)
def test_a_refusal_is_told_from_a_bad_form(text: str) -> None:
    """A refusal in words is marked as such, so that it is not sent to repair."""
    with pytest.raises(UnreadableError) as caught:
        parse_text(text, QUERY)
    assert caught.value.kind == "refused"


def test_a_passage_may_come_as_it_is() -> None:
    """Asked for a passage, a model may just write it: one paragraph is one passage, chatter is none."""
    passage = "BM25 ranks documents by term frequency. It was published in 1994."
    for before in ("", "Passage: ", "Here is a passage that answers the question:\n\n", "以下是段落：\n"):
        assert parse_text(before + passage, Target(Passages)).passages == [passage]
    topic = "To reset the pump:\n\nHold the button for five seconds."
    assert parse_text(topic, Target(Passages)).passages == [topic]
    for unclear in ("Sure, I can do that!", "Here are the steps to reset it. First hold it.\nThen wait."):
        with pytest.raises(UnreadableError):
            parse_text(unclear, Target(Passages))


def test_prose_is_no_answer_where_json_was_bound() -> None:
    """With lines=False an unmarked line is not taken as the value."""
    with pytest.raises(UnreadableError):
        parse_text("cats and dogs", QUERY, lines=False)


@pytest.mark.parametrize("text", ['{"queries": ["a", "b', '```json\n{"queries": ["a"', 'Sure: {"queries": ['])
def test_truncated_json_is_seen(text: str) -> None:
    """JSON that breaks off is marked as truncated and never read as lines."""
    assert is_truncated(text)
    with pytest.raises(UnreadableError) as caught:
        parse_text(text, QUERIES)
    assert caught.value.kind == "truncated"


def test_inline_json_schema_gives_a_dict() -> None:
    """A JSON schema is validated and its plain values are converted."""
    fields = {"title": {"type": "string"}, "year": {"type": "integer"}, "tags": {"$ref": "#/$defs/tags"}}
    tags = {"type": "array", "items": {"enum": ["a", "b"]}}
    required = ["title", "year"]
    target = Target({"type": "object", "properties": fields, "required": required, "$defs": {"tags": tags}})
    read = parse_text('{"title": "T", "year": "1999", "tags": ["a"]}', target)
    assert read == {"title": "T", "year": 1999, "tags": ["a"]}
    with pytest.raises(UnreadableError, match="tags"):
        parse_text('{"title": "T", "year": 1, "tags": ["c"]}', target)
    with pytest.raises(UnreadableError, match="year"):
        parse_text('{"title": "T"}', target)


def test_nested_classes_and_optional_fields() -> None:
    """Nested models and defaults work like in Pydantic itself."""

    class Step(BaseModel):
        text: str
        number: int = 0

    class Plan(BaseModel):
        steps: list[Step]
        note: str | None = None

    plan = parse_text('{"steps": [{"text": "a"}, {"text": "b", "number": 2}]}', Target(Plan))
    assert [step.number for step in plan.steps] == [0, 2]
    assert plan.note is None


@given(st.lists(st.text(min_size=1).filter(lambda s: s.strip()), min_size=1, max_size=5), st.booleans())
def test_valid_json_always_comes_back_as_it_is(passages: list[str], fenced: bool) -> None:
    """Whatever the strings hold (braces, tags, quotes, fences), strict JSON is not changed."""
    text = json.dumps({"passages": passages}, ensure_ascii=not fenced)
    assert parse_text(text, Target(Passages)).passages == [passage.strip() for passage in passages]


@given(st.text(max_size=300))
def test_any_text_is_read_or_refused(text: str) -> None:
    """No text makes the reader fail in another way."""
    for target in (QUERIES, QUERY, GRADE):
        try:
            parse_text(text, target)
        except UnreadableError:
            continue


def test_hostile_sizes_are_bounded() -> None:
    """Many open brackets and deep nesting are read in bounded time."""
    start = time.monotonic()
    for text in (
        "[" * 100_000,
        '{"a":' * 20_000,
        "{" * 5_000 + "}" * 5_000,
        '"' * 100_000,
        "<think>" * 20_000,
    ):
        list(json_values(text))
        without_thinking(text)
        with pytest.raises(UnreadableError):
            parse_text(text, GRADE)
    assert time.monotonic() - start < 20


@pytest.mark.parametrize("word", ["enum", "const"])
def test_true_is_not_one(word: str) -> None:
    """In JSON they differ, though Python takes them for equal; 1 and 1.0 are the same number."""

    def read(text: str, allowed: Any) -> Any:
        field = {word: [allowed] if word == "enum" else allowed}
        return parse_text(text, Target({"type": "object", "properties": {"a": field}, "required": ["a"]}))

    assert read('{"a": true}', True) == {"a": True}
    assert read('{"a": 1.0}', 1) == {"a": 1}
    for text, allowed in (('{"a": true}', 1), ('{"a": 1}', True), ('{"a": false}', 0), ('{"a": 0.0}', False)):
        with pytest.raises(UnreadableError):
            read(text, allowed)


def test_tokens_are_estimated_by_script() -> None:
    """A token per Chinese character, else one per four characters."""
    assert (estimate_tokens("retrieval-augmented"), estimate_tokens("检索增强")) == (5, 4)


def _rows(count: int) -> str:
    """The beginning of a list of labels that differ in their number alone."""
    rows = [json.dumps({"id": number, "support": "none"}) for number in range(1, count + 1)]
    return '{"labels": [' + ", ".join(rows)


@pytest.mark.parametrize(
    ("text", "exact", "counting"),
    [
        ("The pump starts. " * 20, True, True),
        ('{"queries": ["how", ' + '"how", ' * 30, True, True),
        ('{"queries": ["a"]' + " " * 200, True, True),
        ('{"reason": "也许' + "有可能" * 60, True, True),
        (_rows(20), False, True),
        ("The pump in hall 3 starts at 40 degrees. The fan starts at 20 ppm of gas.", False, False),
        ("no no no", False, False),
        ("", False, False),
    ],
)  # fmt: skip
def test_a_loop_is_seen(text: str, exact: bool, counting: bool) -> None:
    """Four rounds and 80 characters at the end; with numbers counted up only where that is asked for."""
    assert (ends_in_loop(text), ends_in_loop(text, counting=True)) == (exact, counting)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"queries": ["when", ' + '"how", ' * 40 + '"ho', {"queries": ["when", "how"]}),
        ('{"queries": ["1.1' + ".2.3" * 60, {"queries": ["1.1.2.3"]}),
        ('{"intent": "chat", "reason": "也许' + "有可能" * 60, {"intent": "chat", "reason": "也许有可能"}),
        ('{"queries": ["a", "b"]' + "\n" * 300, {"queries": ["a", "b"]}),
        ('{"queries": ["a\\n' + "b\\n" * 90, {"queries": ["a\nb"]}),
        ('```json\n{"queries": ["a, b", ' + '"c", ' * 60, {"queries": ["a, b", "c"]}),
        ("[7, 3, " + "1, " * 60, [7, 3, 1]),
        (
            '{"passages": [' + ", ".join(f'"{number}. A pump."' for number in range(1, 50)) + ', "50. A',
            {"passages": ["1. A pump."]},
        ),
        ('{"checked": [{"id": 1}], "wrong": [{"why": "it' + " is late" * 60, {"checked": [{"id": 1}]}),
        ('{"facts": [{"id": 1, "passages": [' + "1, " * 60, {"facts": [{"id": 1, "passages": [1, 1]}]}),
    ],
)
def test_what_came_before_a_loop_is_read(text: str, value: Any) -> None:
    """A string ends after its first round, an entry that breaks off is left out, each entry is kept once."""
    assert next(values_before_loop(text)) == value


def test_entries_that_count_up_are_all_kept() -> None:
    """Grades of many passages look alike; the one that breaks off is left out."""
    read = next(values_before_loop(_rows(30) + ', {"id": 31, "support": "no'))
    assert [row["id"] for row in read["labels"]] == list(range(1, 31))


@pytest.mark.parametrize(
    "text",
    [
        '{"queries": ["a", "b"',
        "",
        "no JSON " * 40,
        '{"facts": [{"text": "it' + " is late" * 60,
        '{"result": {"facts": [{"id": 1, "text": "it' + " is late" * 60,
    ],
)
def test_nothing_is_read_without_a_loop_or_json_or_a_whole_entry(text: str) -> None:
    """JSON that breaks off for another reason is closed by nobody, and an entry that lacks fields is none."""
    assert list(values_before_loop(text)) == []
