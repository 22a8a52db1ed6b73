"""How often the rules read a question's filter exactly right, over fields that they were not built on.

``python quality_self_query_fields.py [QUESTIONS.yaml] [--show]``. Products (brand, price, rating, a flag,
a date) asked for in English, office documents (部门, 年份, 作者, 状态...) in Chinese; the rows are drawn at random
with a fixed seed and the schema is discovered from them. A filter is right if it says exactly the same as the
expected one, order and ways of writing aside.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Mapping
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import yaml
from langchain_core.documents import Document
from quality_self_query import TODAY, canonical

from rag_kit.documents import compile_filter
from rag_kit.query_construction.discovery import discover_schema
from rag_kit.query_construction.rules.constructor import RuleConstructor

QUESTIONS = Path(__file__).resolve().parent / "self_query_fields.yaml"
ROWS = 400


def draw(fields: Mapping[str, Mapping[str, Any]], seed: int = 5) -> list[Document]:
    """Rows whose metadata are drawn evenly from what each field may hold."""
    rng = random.Random(seed)

    def value(spec: Mapping[str, Any]) -> Any:
        if "values" in spec:
            return rng.choice(spec["values"])
        if "date" in spec:
            low, high = spec["date"]
            return (low + timedelta(days=rng.randint(0, (high - low).days))).isoformat()
        low, high = spec["number"]
        return rng.randint(low, high) if not spec["digits"] else round(rng.uniform(low, high), spec["digits"])

    return [
        Document(
            f"row {number}",
            metadata={
                name: value(spec) for name, spec in fields.items() if rng.random() >= spec.get("missing", 0)
            },
        )
        for number in range(ROWS)
    ]


def _plain(where: Any) -> Any:
    """Dates beyond or before a day as from the next or until the last, so that equal ranges are equal."""
    if isinstance(where, list):
        return [_plain(item) for item in where]
    if not isinstance(where, Mapping):
        return where
    made = {}
    for key, operand in where.items():
        if key in ("$gt", "$lt") and isinstance(operand, str):
            day = date.fromisoformat(operand[:10]) + timedelta(days=1 if key == "$gt" else -1)
            key, operand = ("$gte" if key == "$gt" else "$lte"), day.isoformat()
        made[key] = _plain(operand)
    return made


def measure(file: Path = QUESTIONS, show: bool = False) -> dict[str, Any]:
    """Counts of questions whose filter is exactly right, by collection."""
    rules = RuleConstructor(today=TODAY)
    result: dict[str, Any] = {}
    for name, part in yaml.safe_load(file.read_text(encoding="utf-8")).items():
        rows = draw(part["fields"])
        schema = discover_schema(rows)
        counts = result[name] = {"questions": 0, "right": 0, "same_rows": 0}
        for question, where in part["questions"]:
            expected = None if where == "-" else where
            made = rules.construct(question, schema).filter
            right = canonical(_plain(made)) == canonical(_plain(expected))
            same, wanted = compile_filter(made), compile_filter(expected)
            counts["questions"] += 1
            counts["right"] += right
            counts["same_rows"] += all(same(row.metadata) == wanted(row.metadata) for row in rows)
            if show and not right:
                print(question)
                for label, said in (("expected", expected), ("made", made)):
                    print(f"  {label:<8} {json.dumps(said, ensure_ascii=False, default=str)}")
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", nargs="?", type=Path, default=QUESTIONS)
    parser.add_argument("--show", action="store_true", help="print what is wrong")
    arguments = parser.parse_args()
    print(json.dumps(measure(arguments.file, arguments.show), indent=1))


if __name__ == "__main__":
    main()
