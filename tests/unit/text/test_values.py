"""Values are read in normal form, and compared across forms and units."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_kit.text.citations.placing import supports
from rag_kit.text.values.layout import as_markdown
from rag_kit.text.values.reading import find_values
from rag_kit.text.values.tables import table_rows
from rag_kit.text.values.value import same_value


def normal(text: str) -> list[str]:
    return [value.normal for value in find_values(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2.5 kW, 2500 W, 1.5千瓦", ["2500 power", "2500 power", "1500 power"]),
        ("24 months, two years, 一年半, 18个月", ["24 months", "24 months", "18 months", "18 months"]),
        ("half a year, 半年, a year and a half", ["6 months", "6 months", "18 months"]),
        ("9.87亿元, 98,700万元, ￥５０", ["987000000 CNY", "987000000 CNY", "50 yen or yuan"]),
        ("1,500 EUR, EUR 1500, €1.5k", ["1500 EUR"] * 3),
        ("$1.2 million, £250k, 1.250,50 Euro", ["1200000 USD", "250000 GBP", "1250.5 EUR"]),
        ("百分之八十, 80%, 80 percent, 八成", ["0.8 ratio"] * 4),
        ("千分之五, 5‰, 0.5%", ["0.005 ratio"] * 3),
        ("三分之二 two thirds 2/3", ["0.666666667 ratio"] * 3),
        ("2025年2月26日, 2025-02-26, ２０２５年２月２６日", ["date 2025-02-26"] * 3),
        ("3 March 2025, March 3rd, 2025, 3. März 2025", ["date 2025-03-03"] * 3),
        ("二〇二四年十一月五日 FY2022 May 2020", ["date 2024-11-05", "date 2022", "date 2020-05"]),
        ("14时30分, 14:30, 下午2点半, 2:30 pm", ["870 clock"] * 4),
        ("one in five, 9 out of 10, 1 in 3 weeks", ["0.2 ratio", "0.9 ratio", "1", "1814400 time"]),
        ("25 basis points, 0.5个百分点", ["0.0025 basis points", "0.005 points"]),
        ("1998.5万元, 2012.6吨, 2023.5", ["19985000 CNY", "2012600 mass", "date 2023-05"]),
        ("€61m, $5M, 5 m", ["61000000 EUR", "5000000 USD", "5 length"]),
        ("直径12、15、18毫米", ["0.012 length", "0.015 length", "0.018 length"]),
        ("2.1, 3.4 and 5.0 g", ["0.0021 mass", "0.0034 mass", "0.005 mass"]),
        ("1、5天内 6 or 8 weeks", ["1", "432000 time", "3628800 time", "4838400 time"]),
        ("4% p.a. 4% per year", ["0.00333333333 ratio/months per year"] * 2),
        ("XR-20, GB/T 7714, XR20", ["id XR20", "id GBT7714", "id XR20"]),
        ("按GB/T 7714执行", ["id GBT7714"]),
        ("第三季度, Q3, third quarter", ["3 quarter"] * 3),
        ("1980s, 20世纪80年代, 17世纪20年代", ["1980 decade", "1980 decade", "1620 decade"]),
        ("at most five, 不超过5, no more than 5, 至少5", ["max 5", "max 5", "max 5", "min 5"]),
        ("5 to 10 kg, 5-10天", ["5 mass", "10 mass", "432000 time", "864000 time"]),
        ("1小时30分钟, 90 minutes, 2 years and 6 months", ["5400 time", "5400 time", "30 months"]),
        ("35 EUR a month, 每月35元", ["35 EUR/months per month", "35 CNY/months per month"]),
        ("一百五十八天 叁佰万元 两千人", ["13651200 time", "3000000 CNY", "2000"]),
        ("between -20 and 40 °C", ["-20 celsius", "40 celsius"]),
        ("温度从-20至40℃, 电机-20", ["-20 celsius", "40 celsius", "20"]),
        ("温度-20～40℃, 上海-5至7天", ["-20 celsius", "40 celsius", "432000 time", "604800 time"]),
        ("第3.2.1条, 第3.2条, 第32条", ["id 3.2.1", "3.2", "32 ordinal"]),
        ("10.000.000 €, 1.234.567. 1.1.1k", ["10000000 EUR", "1234567", "id 1.1.1K"]),
        ("192.168.1.10, v3.21.0, 1.234.567,50 Euro", ["id 192.168.1.10", "id 3.21.0", "1234567.5 EUR"]),
        ("ninety (90) days, 一个半小时", ["7776000 time", "5400 time"]),
        (
            "每日万分之五, 0.05% per day",
            ["5.78703704e-09 ratio/time per d", "5.78703704e-09 ratio/time per d"],
        ),
        ("no later than 3 May 2024; by 3 May 2024 at the latest", ["max date 2024-05-03"] * 2),
        ("eleven one-litre bottles, a hundred and five", ["11", "1 volume", "105"]),
        ("a third of it, a third reminder, 九成恢复供电", ["0.333333333 ratio", "3 ordinal", "0.9 ratio"]),
        ("2026年元旦, New Year's Day, Apr–Jun", ["date 2026-01-01", "date -01-01", "date -04", "date -06"]),
        ("水18元一桶，至少提前4小时", ["18 CNY", "1 barrels", "min 14400 time"]),
        ("每半年检查一次, 每月一次性支付", ["6 months"]),
        ("每周三次, 每周三上午", ["4.96031746e-06 /time per week", "3 weekday"]),
        ("每逾期一日, 每逾期1日", []),
        ("每年招生计划公布后3天内", ["259200 time"]),
        ("一成年男子, 三成年轻人", ["0.3 ratio"]),
        ("从七月一日起按每月360元", ["date -07-01", "360 CNY/months per month"]),
        ("一直 万一 三明治 一些 十分 单位：万元", []),
        ("May I ask? Then march on, a man.", []),
    ],
)
def test_values_have_one_normal_form(text: str, expected: list[str]) -> None:
    """Units, money, shares, dates, times, identifiers, bounds and ranges, in English, Chinese and German."""
    assert normal(text) == expected


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2.5 kW", "2500 W", True),
        ("36 months", "36 years", False),
        ("40 EUR", "40 USD", False),
        ("120 m", "120 cm", False),
        ("25 ℃", "25 ℉", False),
        ("300 litres", "300 ml", False),
        ("8:15 am", "8:15 pm", False),
        ("8:15", "8:15 pm", True),
        ("March 2025", "3 March 2025", True),
        ("3 March 2025", "March 2025", False),
        ("at least 5 kg", "at most 5 kg", False),
        ("25度", "25℃", True),
        ("250,000 pounds", "£250k", True),
        ("XR-20", "XR-02", False),
        ("90 km/h", "25 m/s", True),
        ("每日万分之五", "0.05% per day", True),
        ("no later than 3 May 2024", "no earlier than 3 May 2024", False),
    ],
)
def test_equal_across_units_of_a_dimension(one: str, other: str, same: bool) -> None:
    """Equal amounts of a dimension are one value; other dimensions, currencies and halves of the day are not."""
    (stated,), (said,) = find_values(one), find_values(other)
    assert same_value(stated, said) is same


@pytest.mark.parametrize(
    ("table", "cell", "expected"),
    [
        ("| 型号 | 价格（元） |\n| --- | --- |\n| 水泵 | 900 |", 1, "900 CNY"),
        ("| Plan | Fee (k$) |\n|---|---|\n| A | 1.5 |", 1, "1500 USD"),
        ("| Item | Weight | Unit |\n|---|---|---|\n| A | 350 | g |", 1, "0.35 mass"),
        ("| Role | Vacation days |\n|---|---|\n| Staff | 30 |", 1, "2592000 time"),
        ("|  | 2023 |\n|---|---|\n| Sales (m EUR) | 4 |", 1, "4000000 EUR"),
        ("表 单位：万元\n| 项目 | 2023年 |\n| --- | --- |\n| 净利润 | 4,056 |", 1, "40560000 CNY"),
        (
            "|  | 2022 | 2022 |\n|  | Sales (m EUR) | Orders |\n|---|---|---|\n| Lyon | 4 | 12 |",
            1,
            "4000000 EUR",
        ),
    ],
)
def test_cells_take_the_unit_of_their_column(table: str, cell: int, expected: str) -> None:
    """The unit is in the header, in the name of the row, in a column of its own, or above the table."""
    (row,) = table_rows(table)
    assert [value.normal for value in row.cells[cell].values] == [expected]


def test_headers_of_two_rows_are_one() -> None:
    """A header cell is that of all header rows, and an empty one is that of the cell before it."""
    (row,) = table_rows("| City | 2022 |  |\n|  | Sales | Orders |\n|---|---|---|\n| Lyon | 4 | 12 |")
    assert [cell.header for cell in row.cells] == ["City", "2022 Sales", "2022 Orders"]


@given(
    st.text(alphabet=st.sampled_from("19,.-/:% 年月日万元半第分之一十百点时kgmEUR$€ aMay|\n"), max_size=80)
)
def test_any_text_can_be_read(text: str) -> None:
    """Values are spans of the text, in order, and do not overlap."""
    end = 0
    for value in find_values(text):
        assert end <= value.start < value.end <= len(text)
        assert value.begin <= value.start
        end = value.end
    assert all(0 <= row.start < row.end <= len(text) for row in table_rows(text))


@pytest.mark.parametrize(
    "part", ["1", "一", "1,", "1.", "a ", "9月", "第", "$", "1 and a half ", "|1|\n", "十分之"]
)
def test_long_texts_are_read_in_bounded_time(part: str) -> None:
    """A text of one repeated part neither raises nor runs away."""
    start = time.perf_counter()
    find_values(part * 8_000)
    assert time.perf_counter() - start < 8


@pytest.mark.parametrize(
    "table",
    [
        "<" + "a" * 200_000 + "<b>",
        "<tr>" + "<td rowspan=99 colspan=99>" * 2_000 + "<tr><td>" * 500,
        "<table><tr><td>" * 5_000, "<table>\n" + "a\t1\n" * 20_000 + "<" * 50_000,
    ],
)  # fmt: skip
def test_long_tables_are_written_anew_in_no_time(table: str) -> None:
    """However they are broken, and however far their cells reach, they come to a few times their length."""
    text = f"<table>{table}</table>"
    written, offsets = as_markdown(text)
    assert len(written) + 1 == len(offsets) < 20 * len(text)


def test_a_unit_of_two_words_can_be_taken_away() -> None:
    """A price per nautical mile supports the bare price, as one per kilometre does."""
    counted, bare = find_values("It costs 30 EUR per nautical mile, so 30 EUR.")
    assert counted.per == "nautical mile"
    assert supports(counted, bare)
