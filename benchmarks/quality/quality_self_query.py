"""How often the rules read a question's filter exactly right, over year and MeSH terms of pubmedqa_l.

``python quality_self_query.py [QUESTIONS.yaml] [--show]``. A filter is right if it says exactly the same
as the expected one (order and ways of writing aside: ``> 2010`` is ``>= 2011``).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import yaml
from langchain_core.documents import Document

from rag_kit.documents import compile_filter
from rag_kit.query_construction.discovery import discover_schema
from rag_kit.query_construction.fields import Schema
from rag_kit.query_construction.rules.constructor import RuleConstructor

HERE = Path(__file__).resolve().parent
QUESTIONS = HERE / "self_query_questions.yaml"
TODAY = date(2026, 1, 1)
DRAWS = 4
FEWEST = 5  # templates take MeSH terms that at least so many documents have
_TOKEN = re.compile(r'\s*(?:([&|!()])|M"((?:[^"\\]|\\.)*)"|Y(x)|Y(!~|~|>=|<=|>|<|=|!)([\d,]+))')


def load_rows(data: Path) -> list[Document]:
    """The documents with year and mesh alone; a year that is not known is left out."""
    rows = []
    with (data / "pubmedqa_l" / "corpus.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            known = {"year": record.get("year"), "mesh": record.get("mesh")}
            metadata = {key: value for key, value in known.items() if value}
            rows.append(Document(record["text"], id=record["_id"], metadata=metadata))
    return rows


def parse(text: str) -> dict[str, Any] | None:
    """A filter from its short form.

    Raises:
        ValueError: It is malformed.
    """
    if text.strip() == "-":
        return None
    tokens: list[Any] = []
    position = 0
    while position < len(text.rstrip()):
        match = _TOKEN.match(text, position)
        if match is None:
            raise ValueError(f"{text!r} at {position}")
        sign, mesh, missing, operator, years = match.groups()
        if sign:
            tokens.append(sign)
        elif mesh is not None:
            tokens.append({"mesh": {"$contains": mesh}})
        elif missing:
            tokens.append({"year": {"$exists": False}})
        else:
            tokens.append(_year(operator, [int(year) for year in years.split(",")]))
        position = match.end()
    found = _either(tokens)
    if tokens:
        raise ValueError(f"{text!r} has more than one filter")
    return found


def _year(operator: str, years: list[int]) -> dict[str, Any]:
    words = {">": "$gt", ">=": "$gte", "<": "$lt", "<=": "$lte", "=": "$eq", "!": "$ne"}
    if operator in words:
        return {"year": {words[operator]: years[0]}}
    return {"year": {"$in" if operator == "~" else "$nin": years}}


def _either(tokens: list[Any]) -> dict[str, Any]:
    parts = [_every(tokens)]
    while tokens and tokens[0] == "|":
        tokens.pop(0)
        parts.append(_every(tokens))
    return parts[0] if len(parts) == 1 else {"$or": parts}


def _every(tokens: list[Any]) -> dict[str, Any]:
    parts = [_one(tokens)]
    while tokens and tokens[0] == "&":
        tokens.pop(0)
        parts.append(_one(tokens))
    return parts[0] if len(parts) == 1 else {"$and": parts}


def _one(tokens: list[Any]) -> dict[str, Any]:
    token = tokens.pop(0)
    if token == "!":
        return {"$not": _one(tokens)}
    if token == "(":
        inner = _either(tokens)
        tokens.pop(0)
        return inner
    return dict(token)


def canonical(where: dict[str, Any] | None) -> Any:
    """A form in which filters over year and mesh that say the same are equal."""
    return None if not where else _canonical(where, False)


def _canonical(where: dict[str, Any], negate: bool) -> Any:
    parts = []
    for key, value in where.items():
        if key == "$not":
            parts.append(_canonical(value, not negate))
        elif key in ("$and", "$or"):
            parts.append(
                _joined("and" if (key == "$and") != negate else "or", [_canonical(v, negate) for v in value])
            )
        else:
            conditions = value if isinstance(value, dict) else {"$eq": value}
            parts.extend(_leaf(key, word, operand, negate) for word, operand in conditions.items())
    return _joined("or" if negate else "and", parts)


def _leaf(key: str, word: str, operand: Any, negate: bool) -> Any:
    if word in ("$ne", "$nin"):
        word, negate = ("$eq" if word == "$ne" else "$in"), not negate
    if word == "$in":
        return _joined("and" if negate else "or", [_leaf(key, "$eq", item, negate) for item in operand])
    if word in ("$gt", "$lt") and isinstance(operand, int):
        word, operand = ("$gte", operand + 1) if word == "$gt" else ("$lte", operand - 1)
    return ("not" if negate else "is", key, word, operand)


def _joined(word: str, parts: list[Any]) -> Any:
    flat: set[Any] = set()
    for part in parts:
        flat |= part[1] if part[0] == word else {part}
    return next(iter(flat)) if len(flat) == 1 else (word, frozenset(flat))


def questions(
    file: Path, rows: list[Document], seed: int = 7
) -> Iterator[tuple[str, str, dict[str, Any] | None]]:
    """Group, question and expected filter; templates are filled at random, with a fixed seed."""
    spec = yaml.safe_load(file.read_text(encoding="utf-8"))
    for group, entries in spec.items():
        if group != "templates":
            for question, where in entries:
                yield group, question, parse(where)
    rng = random.Random(seed)
    counts: dict[str, int] = {}
    for doc in rows:
        for term in doc.metadata.get("mesh", []):
            counts[term] = counts.get(term, 0) + 1
    terms = sorted(term for term, count in counts.items() if count >= FEWEST)
    for question, where in spec.get("templates", []):
        for _ in range(DRAWS):
            m, n = rng.sample(terms, 2)
            y = rng.randint(1995, 2012)
            fill = {"y": y, "z": y + rng.randint(1, 5)}
            asked = question.format(m=m, n=n, **fill)
            quoted = {"m": json.dumps(m), "n": json.dumps(n)}
            yield "templates", asked, parse(where.format(**quoted, **fill))


def measure(file: Path, data: Path, show: bool = False) -> dict[str, Any]:
    """Counts and shares of questions whose filter is exactly right, by group."""
    rows = load_rows(data)
    schema: Schema = discover_schema(rows)
    rules = RuleConstructor(today=TODAY)
    result: dict[str, Any] = {}
    seconds = 0.0
    for group, question, expected in questions(file, rows):
        begun = time.perf_counter()
        made = rules.construct(question, schema).filter
        seconds += time.perf_counter() - begun
        right = canonical(made) == canonical(expected)
        same, wanted = compile_filter(made), compile_filter(expected)
        same_rows = all(same(doc.metadata) == wanted(doc.metadata) for doc in rows)
        counts = result.setdefault(group, {"questions": 0, "right": 0, "same_rows": 0})
        counts["questions"] += 1
        counts["right"] += right
        counts["same_rows"] += same_rows
        if show and not right:
            print(question)
            for name, where in (("expected", expected), ("made", made)):
                print(f"  {name:<8} {json.dumps(where, ensure_ascii=False)}")
    total = {
        key: sum(counts[key] for counts in result.values()) for key in ("questions", "right", "same_rows")
    }
    result["all"] = total
    for counts in result.values():
        counts["share"] = round(counts["right"] / counts["questions"], 4)
    result["ms_per_question"] = round(1000 * seconds / total["questions"], 2)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", nargs="?", type=Path, default=QUESTIONS)
    parser.add_argument("--show", action="store_true", help="print what is wrong")
    arguments = parser.parse_args()
    data = Path(os.environ.get("RAG_KIT_DATA", HERE.parents[2] / "shared" / "data"))
    print(json.dumps(measure(arguments.file, data, arguments.show), indent=1))


if __name__ == "__main__":
    main()
