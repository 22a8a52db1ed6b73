"""Replies that repeat themselves: where a loop is seen, and what is read of one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rag_kit.models.loops import ends_in_loop, values_before_loop


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
    ],
)
def test_what_came_before_a_loop_is_read(text: str, value: Any) -> None:
    """A string ends after its first round, an entry that breaks off is left out, each entry is kept once."""
    assert next(values_before_loop(text)) == value


def test_entries_that_count_up_are_all_kept() -> None:
    """Grades of many passages look alike; the one that breaks off is left out."""
    read = next(values_before_loop(_rows(30) + ', {"id": 31, "support": "no'))
    assert [row["id"] for row in read["labels"]] == list(range(1, 31))


@pytest.mark.parametrize("text", ['{"queries": ["a", "b"', "", "no JSON " * 40])
def test_nothing_is_read_without_a_loop_or_json(text: str) -> None:
    """JSON that breaks off for another reason is closed by nobody."""
    assert list(values_before_loop(text)) == []
