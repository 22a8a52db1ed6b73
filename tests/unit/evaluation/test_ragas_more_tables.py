"""Tool calls and tables: Ragas's metrics with what they get wrong, and this kit's."""

from __future__ import annotations

import itertools
import random
import sys
from typing import Any

import pytest

from rag_kit.errors import InvalidInputError, MissingExtraError
from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.outputs import Output
from rag_kit.evaluation.scorers import get_metric
from rag_kit.evaluation.scorers.ours_text.tables import OursDataComparison
from rag_kit.evaluation.scorers.ours_text.tools import OursToolCallAccuracy, agreement, same
from rag_kit.evaluation.scorers.ragas_more.tables import DataComparison
from rag_kit.evaluation.scorers.tool_messages import ToolUse, read_calls, read_messages

Calls = list[dict[str, Any]]
TABLE = "id,name\n1,a\n2,b\n3,c\n4,d\n"
ONE_CELL = "id,name\n1,a\n2,b\n3,c\n4,X\n"
REVERSED = "id,name\n4,d\n3,c\n2,b\n1,a\n"


def call(tool: str, **args: Any) -> dict[str, Any]:
    """A tool call as LangChain writes it."""
    return {"name": tool, "args": args}


async def tools(metric: str, made: Calls, expected: Any) -> Cell:
    """The cell for the calls of one message."""
    messages = (
        {"type": "human", "content": "天气怎么样？"},
        {"type": "ai", "content": "", "tool_calls": made},
        {"type": "tool", "content": "晴"},
        {"type": "ai", "content": "今天晴。"},
    )
    example = Example("e", "天气怎么样？", metadata={"reference_tool_calls": expected})
    return await get_metric(metric).measure(example, Output(answer="今天晴。", messages=messages))


async def table(metric: Any, expected: str, answer: str, **metadata: Any) -> Cell:
    """The cell for one table."""
    example = Example("e", "Question?", reference=expected or None, metadata=metadata)
    found: Cell = await get_metric(metric).measure(example, Output(answer=answer))
    return found


WEATHER, UV = call("weather", city="巴黎"), call("uv", city="巴黎")


async def test_tool_call_accuracy_of_the_worked_examples() -> None:
    """Exact 1; one of two arguments 0.5; one of two calls 0 in strict order; swapped strict 0, flexible 1."""
    half = [call("weather", city="巴黎", day="周一")], [call("weather", city="巴黎", day="周二")]
    for made, expected, strict, flexible in (
        ([WEATHER], [WEATHER], 1.0, 1.0), (*half, 0.5, 0.5), ([WEATHER], [WEATHER, UV], 0.0, 0.0),
        ([UV, WEATHER], [WEATHER, UV], 0.0, 1.0), ([], [WEATHER], 0.0, 0.0), ([WEATHER], [], 0.0, 0.0),
        ([], [], 1.0, 1.0),
    ):  # fmt: skip
        assert (await tools("tool_call_accuracy", made, expected)).value == strict
        assert (await tools("tool_call_accuracy_flexible", made, expected)).value == flexible


async def test_tool_call_accuracy_of_ragas_says_less_than_its_name() -> None:
    """Further arguments are free, 1 is "1" but not 1.0, and calls of one tool are paired by their texts."""
    assert (
        await tools("tool_call_accuracy", [call("w", city="P", extra=1)], [call("w", city="P")])
    ).value == 1.0
    assert (await tools("tool_call_accuracy", [call("w", days="1")], [call("w", days=1)])).value == 1.0
    assert (await tools("tool_call_accuracy", [call("w", days=1.0)], [call("w", days=1)])).value == 0.0
    made = [call("w", a="2", b="x"), call("w", a="3", b="y")]
    expected = [call("w", a="1", b="y"), call("w", a="2", b="x")]
    assert (await tools("tool_call_accuracy_flexible", made, expected)).value == 0.0
    assert (await tools("ours_tool_call_f1", made, expected)).value == 0.5


async def test_tool_call_accuracy_of_ours_by_hand() -> None:
    """Exact 1; one of two arguments or calls 0.5; swapped 0.5 in order and 1 without; nothing has no value."""
    half = [call("weather", city="巴黎", day="周一")], [call("weather", city="巴黎", day="周二")]
    for made, expected, strict, flexible in (
        ([WEATHER], [WEATHER], 1.0, 1.0), (*half, 0.5, 0.5), ([WEATHER], [WEATHER, UV], 0.5, 0.5),
        ([UV, WEATHER], [WEATHER, UV], 0.5, 1.0), ([], [WEATHER], 0.0, 0.0), ([WEATHER], [], 0.0, 0.0),
        ([UV], [WEATHER], 0.0, 0.0), ([WEATHER, WEATHER], [WEATHER], 0.5, 0.5),
        ([call("now")], [call("now")], 1.0, 1.0),
        ([call("w", city="Oslo", extra=1)], [call("w", city="oslo")], 0.5, 0.5),
        ([call("w", days=1.0)], [call("w", days=1)], 1.0, 1.0), ([call("w", days="1")], [call("w", days=1)], 0.0, 0.0),
        ([WEATHER, UV, call("moon")], [WEATHER, call("moon")], 2 / 3, 2 / 3),
    ):  # fmt: skip
        assert (await tools("ours_tool_call_accuracy", made, expected)).value == pytest.approx(strict)
        assert (await tools("ours_tool_call_accuracy_flexible", made, expected)).value == pytest.approx(
            flexible
        )
    assert (await tools("ours_tool_call_accuracy", [], [])).status == "undefined"


async def test_tool_call_accuracy_of_ours_pairs_what_fits_best() -> None:
    """Where Ragas pairs calls of one tool by their texts and gives 0, the two that agree are found."""
    made = [call("w", a="2", b="x"), call("w", a="3", b="y")]
    expected = [call("w", a="1", b="y"), call("w", a="2", b="x")]
    assert (await tools("tool_call_accuracy_flexible", made, expected)).value == 0.0
    assert (await tools("ours_tool_call_accuracy_flexible", made, expected)).value == 0.75
    assert (await tools("ours_tool_call_accuracy", made, expected)).value == 0.5


@pytest.mark.parametrize("seed", range(25))
def test_the_best_pairs_are_the_best_of_all(seed: int) -> None:
    """Against every way to pair a few calls, in order and without."""
    draw = random.Random(seed)

    def some() -> list[ToolUse]:
        return [
            ToolUse(draw.choice("fg"), {name: draw.randint(0, 1) for name in draw.sample("abc", draw.randint(0, 3))})
            for _ in range(draw.randint(1, 4))
        ]  # fmt: skip

    made, expected = some(), some()
    short, long = sorted((made, expected), key=len)
    ways = [
        [(short[n], long[place]) for n, place in enumerate(places)]
        for places in itertools.permutations(range(len(long)), len(short))
    ]
    free = max(sum(agreement(*pair) for pair in way) for way in ways)
    ordered = max(
        sum(agreement(one, other) for one, other in zip(mine, theirs, strict=True))
        for size in range(len(short) + 1)
        for mine in itertools.combinations(made, size)
        for theirs in itertools.combinations(expected, size)
    )
    for strict, best in ((False, free), (True, ordered)):
        cell = OursToolCallAccuracy(strict_order=strict).compute(made, expected)
        assert cell.value == pytest.approx(best / len(long))


def test_without_scipy_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pairing without order needs it; in order nothing does."""
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    one = [ToolUse("f", {})]
    assert OursToolCallAccuracy().compute(one, one).value == 1.0
    with pytest.raises(MissingExtraError, match="eval"):
        OursToolCallAccuracy(strict_order=False).compute(one, one)


async def test_tool_call_f1_of_the_worked_example() -> None:
    """One right, one too many, one missing: 0.5, by both."""
    for metric in ("tool_call_f1", "ours_tool_call_f1"):
        cell = await tools(metric, [WEATHER, call("moon")], [WEATHER, UV])
        assert cell.value == 0.5 and "2 calls made" in cell.reason
        assert (await tools(metric, [], [])).status == "undefined"
        assert (await tools(metric, [WEATHER], [])).value == 0.0


async def test_a_call_made_three_times_is_three_calls() -> None:
    """Ragas compares sets; ours counts."""
    assert (await tools("tool_call_f1", [WEATHER] * 3, [WEATHER])).value == 1.0
    assert (await tools("ours_tool_call_f1", [WEATHER] * 3, [WEATHER])).value == 0.5


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("tool_call_accuracy", "ToolCallAccuracy"), ("tool_call_accuracy_flexible", "ToolCallAccuracy"),
        ("tool_call_f1", "ToolCallF1"), ("data_comparison", "DataCompyScore"),
        ("data_comparison_columns", "DataCompyScore"),
    ],
)  # fmt: skip
async def test_values_come_from_the_class_of_ragas(
    name: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What Ragas's class returns is the value."""
    import ragas.metrics.collections as ragas
    from ragas.metrics.result import MetricResult

    async def ascore(self: Any, **inputs: Any) -> Any:
        return MetricResult(value=0.321)

    monkeypatch.setattr(getattr(ragas, kind), "ascore", ascore)
    compared = table(name, TABLE, TABLE) if "data" in name else tools(name, [WEATHER], [WEATHER])
    assert (await compared).value == 0.321


def test_same_is_by_kind() -> None:
    """Numbers by value, texts folded, true is no 1, lists in order, objects in any; too deep is refused."""
    assert same({"a": [1, {"b": None}]}, {"a": [1.0, {"b": None}]}) and same("ＡＢ ", "ab")
    for one, two in (
        (1, True), (0, False), (1, "1"), ([1, 2], [2, 1]), ({"a": 1}, {"a": 1, "b": 1}), (None, 0), (None, ""),
        ([], {}), ("ab", ["a", "b"]), (float("nan"), float("nan")),
    ):  # fmt: skip
        assert not same(one, two) and not same(two, one)
    deep: Any = 0
    for _ in range(100):
        deep = [deep]
    with pytest.raises(InvalidInputError, match="deeper than 32"):
        same(deep, deep)


def test_messages_in_other_spellings() -> None:
    """LangChain's types, roles, OpenAI's calls with arguments as text, content in blocks."""
    turns = read_messages(
        [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": [{"type": "text", "text": "Hi"}, {"type": "image"}, "there"]},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"function": {"name": "f", "arguments": '{"a": 1}'}}],
            },
            {"type": "AIMessageChunk", "content": "x", "tool_calls": [{"name": "g", "args": None}]},
        ]
    )
    assert [turn.speaker for turn in turns] == ["system", "human", "ai", "ai"]
    assert (
        turns[1].text == "Hi\nthere" and turns[2].calls[0].args == {"a": 1} and turns[3].calls[0].args == {}
    )


@pytest.mark.parametrize(
    "calls", ["text", {"name": "x"}, [1], [{"args": {}}], [{"name": 1}], [{"name": "f", "args": "{"}],
              [{"name": "f", "args": [1]}], [{"name": "f", "arguments": "[" * 100_000}], [{"name": ""}]],
)  # fmt: skip
async def test_what_is_no_tool_call_is_an_error(calls: Any) -> None:
    """Broken calls are named, whoever wrote them; the reason stays short."""
    with pytest.raises(InvalidInputError, match="tool call"):
        read_calls(calls, "the reference")
    for metric in (
        "tool_call_accuracy", "tool_call_f1", "ours_tool_call_f1", "ours_tool_call_accuracy",
    ):  # fmt: skip
        cell = await tools(metric, [WEATHER], calls)
        assert cell.status == "error" and "the reference" in cell.reason and len(cell.reason) < 400


async def test_what_is_no_message_is_an_error() -> None:
    """An unknown type, too many messages; an output takes mappings only."""
    example = Example("e", "q", metadata={"reference_tool_calls": []})
    with pytest.raises(InvalidInputError, match="give a list of mappings"):
        Output(messages=("text",))  # type: ignore[arg-type]
    for messages in (({"type": "alien", "content": ""},), ({"type": "ai"},) * 10_001):
        cell = await get_metric("tool_call_f1").measure(example, Output(messages=messages))
        assert cell.status == "error" and "message" in cell.reason
    for metric in ("ours_tool_call_f1", "ours_tool_call_accuracy"):
        many = await tools(metric, [WEATHER] * 501, [])
        assert many.status == "error" and "at most 500" in many.reason


async def test_without_messages_or_expected_calls_it_is_not_applicable() -> None:
    """A pipeline that is no agent, an example without expected calls; an empty list of them is one."""
    metric = get_metric("tool_call_f1")
    messages = ({"type": "ai", "content": "Hi"},)
    none = await metric.measure(Example("e", "q"), Output(answer="Hi", messages=messages))
    assert none.status == "not_applicable" and "reference_tool_calls" in none.reason
    example = Example("e", "q", metadata={"reference_tool_calls": []})
    assert (await metric.measure(example, Output(answer="Hi"))).status == "not_applicable"
    assert (await metric.measure(example, Output(messages=messages))).status == "undefined"


async def test_tables_of_the_worked_example() -> None:
    """Four rows, two columns, one changed cell: rows 0.75, columns 0.5, by both."""
    for prefix in ("", "ours_"):
        assert (await table(f"{prefix}data_comparison", TABLE, ONE_CELL)).value == 0.75
        assert (await table(f"{prefix}data_comparison_columns", TABLE, ONE_CELL)).value == 0.5
        assert (await table(f"{prefix}data_comparison", TABLE, TABLE)).value == 1.0


async def test_ragas_compares_rows_by_position_and_ours_in_any_order() -> None:
    """The same rows in another order: 0 by Ragas, 1 by ours, whatever the order."""
    assert (await table("data_comparison", TABLE, REVERSED)).value == 0.0
    head, *rows = TABLE.splitlines()
    for order in itertools.permutations(rows):
        assert (await table("ours_data_comparison", TABLE, "\n".join([head, *order]))).value == 1.0
    assert (await table("ours_data_comparison_columns", TABLE, REVERSED)).value == 1.0


async def test_columns_that_one_table_lacks() -> None:
    """A further column is free in Ragas's rows and costs in ours; without a common column there is no value."""
    more = "id,name,age\n1,a,9\n2,b,9\n3,c,9\n4,d,9\n"
    assert (await table("data_comparison", TABLE, more)).value == 1.0
    assert (await table("ours_data_comparison", TABLE, more)).value == 0.0
    assert (await table("ours_data_comparison_columns", TABLE, more)).value == pytest.approx(0.8)
    other = await table("data_comparison", TABLE, "x,y\n1,a\n2,b\n3,c\n4,d\n")
    assert other.status == "undefined" and "no column in common" in other.reason
    assert (await table("ours_data_comparison", TABLE, "x,y\n1,a\n2,b\n3,c\n4,d\n")).value == 0.0


async def test_precision_and_recall_of_tables() -> None:
    """Half of the rows, all right: precision 1, recall 0.5; and three times the same row is three rows."""
    half = "id,name\n1,a\n2,b\n"
    for kind in (DataComparison, OursDataComparison):
        assert (await table(kind(metric="precision"), TABLE, half)).value == 1.0
        assert (await table(kind(metric="recall"), TABLE, half)).value == 0.5
    assert (await table("ours_data_comparison", "n\n1\n2\n", "n\n1\n1\n")).value == 0.5


async def test_values_of_tables_are_compared_by_kind() -> None:
    """Numbers by value, codes as written, texts folded; Chinese names of columns."""
    assert (
        await table("ours_data_comparison", "城市,人口\n北京,2189.0\n", "人口,城市\n２１８９, 北京\n")
    ).value == 1.0
    for one, two in (("007", "7"), ("1_0", "10"), ("nan", "inf"), ("1e400", "1e401"), ("-5", "5")):
        assert (await table("ours_data_comparison", f"n\n{one}\n", f"n\n{two}\n")).value == 0.0
        assert (await table("ours_data_comparison", f"n\n{one}\n", f"n\n{one}\n")).value == 1.0
    assert (await table("ours_data_comparison", "n\n-0\n", "n\n0.00\n")).value == 1.0


async def test_tables_from_metadata_and_from_fences() -> None:
    """Rows as dicts, CSV text, and an answer in a code fence."""
    rows = [{"id": 1, "name": "a"}, {"id": 2, "name": "b, c"}]
    for metric in ("data_comparison", "ours_data_comparison"):
        answer = '```csv\nid,name\n1,a\n2,"b, c"\n```'
        assert (await table(metric, "", answer, reference_table=rows)).value == 1.0
        assert (await table(metric, "", answer, reference_table='id,name\n1,a\n2,"b, c"\n')).value == 1.0
        assert (await table(metric, "", answer)).status == "not_applicable"
        assert (await table(metric, "", answer, other=1)).status == "not_applicable"
        for wrong in ([], 5, [1], [{}]):
            cell = await table(metric, "", answer, reference_table=wrong)
            assert cell.status == "error" and "reference_table" in cell.reason


@pytest.mark.parametrize("metric", ["data_comparison", "ours_data_comparison"])
async def test_an_answer_that_is_no_table_has_no_value(metric: str) -> None:
    """Prose, an unclosed quote, an empty fence: undefined or 0 with a reason, never a crash, never a match."""
    for answer in (
        'id,name\n"unclosed',
        "``` \n```",
        "\n\n",
        "a,b\n1,2,3\n1,2,3,4,5\n",
        "\x00",
        "I do not know.",
    ):
        cell = await table(metric, TABLE, answer)
        assert cell.status == "undefined" or cell.value == 0.0, (answer, cell)
        assert cell.reason
    assert (await table(metric, '"unclosed', TABLE)).status == "error"
    huge = await table(metric, TABLE, "n\n" + "1\n" * 1_000_001)
    assert huge.status == "error" and "2,000,000" in huge.reason


async def test_a_right_answer_without_rows() -> None:
    """A query that rightly finds nothing: the same names and no row are 1 by ours."""
    assert (await table("ours_data_comparison", "id,name\n", "name,id\n")).value == 1.0
    assert (await table("ours_data_comparison", "id,name\n", TABLE)).value == 0.0
