"""How often the rules read a question's filter exactly right, and what their filters do to search.

    python benchmarks/quality/quality_self_query.py [terms] [fields] [sets] [--sets SET ...] [--show N]

terms: questions over year and MeSH terms of pubmedqa_l. fields: questions over made-up collections that the rules were
not built on (products, office documents, tickets...); rows are drawn at random with a fixed seed, and the schema is
discovered from them. A filter is right if it lets exactly the same rows pass as the expected one. sets: nDCG@10 beside
plain BM25 over whole sets, with all their metadata and with each field alone. Without useful fields the rules must do
no harm; with useful ones (`self_query_filings.py`) they must help.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from langchain_core.documents import Document
from self_query_filings import filings
from shared import DATA, arguments, ndcg

from rag_kit.documents import compile_filter
from rag_kit.evaluation import load_dataset
from rag_kit.query_construction import SelfQueryRetriever
from rag_kit.query_construction.discovery import discover_schema
from rag_kit.query_construction.fields import Schema
from rag_kit.query_construction.rules.constructor import RuleConstructor
from rag_kit.retrieval import BM25Retriever

HERE = Path(__file__).resolve().parent
TODAY = date(2026, 1, 1)
DRAWS = 4
FEWEST = 5  # templates take MeSH terms that at least so many documents have
ROWS = 400  # of a made-up collection
K = 10
OWN = {"filings_en": "en", "filings_zh": "zh"}
SETS = (
    "scifact", "limit_small", "timeqa_slice", "covidqa", "pubmedqa_l", "xquad_en", "cmrc2018_dev", "xquad_zh",
)  # fmt: skip
Asked = Iterable[tuple[str, str, Any]]
"""Group, question and expected filter."""


def passing(where: Mapping[str, Any] | None, rows: Sequence[Document]) -> list[bool] | None:
    """Tell which rows pass a filter; ``None`` without one."""
    if not where:
        return None
    passes = compile_filter(where)
    return [passes(row.metadata) for row in rows]


def count_right(rows: Sequence[Document], asked: Asked, show: int = 0) -> dict[str, Counter[str]]:
    """Count questions, and those whose filter is exactly right, by group; print so many that are wrong."""
    schema, rules = discover_schema(rows), RuleConstructor(today=TODAY)
    found: dict[str, Counter[str]] = {}
    for group, question, expected in asked:
        wanted = None if expected == "-" else expected
        made = rules.construct(question, schema).filter
        right = passing(made, rows) == passing(wanted, rows)
        found.setdefault(group, Counter()).update(questions=1, right=right)
        if not right and show > 0:
            show -= 1
            print(question)
            for name, where in (("expected", wanted), ("made", made)):
                print(f"  {name:<8} {json.dumps(where, ensure_ascii=False, default=str)}")
    return found


def terms(data: Path, show: int = 0) -> dict[str, Counter[str]]:
    """Count over pubmedqa_l; a year that is not known is left out."""
    rows = [
        Document(
            row.page_content,
            id=row.id,
            metadata={k: row.metadata[k] for k in ("year", "mesh") if row.metadata.get(k)},
        )
        for row in load_dataset(data / "pubmedqa_l").documents()
    ]
    return count_right(rows, term_questions(rows), show)


def term_questions(rows: Sequence[Document], seed: int = 7) -> Iterator[tuple[str, str, Any]]:
    """The questions over MeSH terms; templates are filled at random, with a fixed seed."""
    spec = yaml.safe_load((HERE / "self_query_questions.yaml").read_text(encoding="utf-8"))
    templates = spec.pop("templates")
    for group, entries in spec.items():
        for question, where in entries:
            yield group, question, where
    rng = random.Random(seed)
    counts = Counter(term for row in rows for term in row.metadata.get("mesh", []))
    known = sorted(term for term, count in counts.items() if count >= FEWEST)
    for question, where in templates:
        for _ in range(DRAWS):
            m, n = rng.sample(known, 2)
            y = rng.randint(1995, 2012)
            values = {"m": m, "n": n, "y": y, "z": y + rng.randint(1, 5)}
            yield "templates", question.format(**values), filled(where, values)


def filled(where: Any, values: Mapping[str, Any]) -> Any:
    """A template's filter with its values in place of ``{m}``, ``{n}``, ``{y}`` and ``{z}``."""
    if isinstance(where, dict):
        return {key: filled(value, values) for key, value in where.items()}
    if isinstance(where, list):
        return [filled(value, values) for value in where]
    return values[where.strip("{}")]


def fields(show: int = 0) -> dict[str, Counter[str]]:
    """Count over the made-up collections."""
    found: dict[str, Counter[str]] = {}
    spec = yaml.safe_load((HERE / "self_query_fields.yaml").read_text(encoding="utf-8"))
    for name, part in spec.items():
        asked = ((name, question, where) for question, where in part["questions"])
        found |= count_right(draw(part["fields"]), asked, show)
    return found


def draw(specs: Mapping[str, Mapping[str, Any]], seed: int = 5) -> list[Document]:
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
                name: value(spec) for name, spec in specs.items() if rng.random() >= spec.get("missing", 0)
            },
        )
        for number in range(ROWS)
    ]


class DataSet(NamedTuple):
    """Documents with all their metadata, questions, and grades of documents by question."""

    documents: list[Document]
    queries: Mapping[str, str]
    grades: Mapping[str, Mapping[str, int]]


def load(name: str, data: Path) -> DataSet:
    """A set of the shared folder, or one of our own."""
    if name in OWN:
        return DataSet(*filings(OWN[name]))
    found = load_dataset(data / name)
    documents = found.documents()
    for document in documents:
        document.metadata = {
            key: value
            for key, value in document.metadata.items()
            if key != "corpus_id" and value not in ("", None)
        }
    judged = [example for example in found if example.relevant]
    return DataSet(
        documents, {one.id: one.question for one in judged}, {one.id: one.relevant for one in judged}
    )


def score(name: str, data: Path, show: int = 0) -> dict[str, Any]:
    """Scores of plain search, and by fields used: score, change, share of questions with a filter, share of those
    whose relevant documents all pass it."""
    made = load(name, data)
    search = BM25Retriever.from_documents(made.documents, k=K)

    def ranked(retriever: Any, key: str) -> float:
        return ndcg([document.id for document in retriever.invoke(made.queries[key])], made.grades[key])

    plain = {key: ranked(search, key) for key in made.queries}
    schema = discover_schema(made.documents)
    alone = [(field.name, Schema((field,))) for field in schema]
    count, before = len(plain), sum(plain.values())
    result: dict[str, Any] = {"questions": count, "plain": round(before / count, 4)}
    for label, used in [("all", schema), *(alone if len(alone) > 1 else ())]:
        retriever = SelfQueryRetriever.from_rules(search, schema=used, k=K, today=TODAY)
        scores, filtered, kept = filtered_scores(made, retriever, plain, ranked)
        result[label] = {
            "ndcg@10": round(sum(scores.values()) / count, 4),
            "change": round((sum(scores.values()) - before) / count, 4),
            "filtered": round(filtered / count, 4),
            "kept": round(kept / filtered, 4) if filtered else None,
        }
        lost = [key for key in scores if scores[key] < plain[key]]
        for key in lost[:show]:
            print(f"{label}: {plain[key]:.2f} > {scores[key]:.2f}: {made.queries[key]}")
            print(
                f"    {json.dumps(retriever.construct_query(made.queries[key]).as_dict(), ensure_ascii=False)}"
            )
    return result


def filtered_scores(
    made: DataSet,
    retriever: SelfQueryRetriever,
    plain: Mapping[str, float],
    ranked: Callable[[Any, str], float],
) -> tuple[dict[str, float], int, int]:
    """Score of each question, number of those with a filter, and of those whose relevant documents all pass it."""
    by_id = {document.id: document for document in made.documents}
    scores, filtered, kept = dict(plain), 0, 0
    for key, text in made.queries.items():
        construct = retriever.construct_query(text)
        if construct.filter is None and construct.sort is None and construct.query == text:
            continue
        scores[key] = ranked(retriever, key)
        if construct.filter is not None:
            filtered += 1
            passes = compile_filter(construct.filter)
            kept += all(passes(by_id[of].metadata) for of, grade in made.grades[key].items() if grade)
    return scores, filtered, kept


def main() -> None:
    """Measure the chosen parts, and print."""
    parser = arguments(__doc__)
    parser.add_argument("parts", nargs="*", help="any of terms, fields and sets; default: all")
    parser.add_argument("--sets", nargs="*", default=[*SETS, *OWN])
    parser.add_argument(
        "--show", type=int, default=0, help="print so many questions of each row that are wrong or lose"
    )
    options = parser.parse_args()
    parts = options.parts or ["terms", "fields", "sets"]
    if "terms" in parts:
        print("terms", json.dumps(terms(DATA, options.show), indent=1))
    if "fields" in parts:
        print("fields", json.dumps(fields(options.show), indent=1, ensure_ascii=False))
    for name in options.sets if "sets" in parts else ():
        print(name, json.dumps(score(name, DATA, options.show), indent=1, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main()
