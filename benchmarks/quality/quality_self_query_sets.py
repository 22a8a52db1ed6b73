"""nDCG@10 of self-query by rules beside plain BM25 over whole data sets, with all their metadata and with each field.

``python quality_self_query_sets.py [SET ...] [--show N]``. Without useful fields the rules must do no harm;
with useful ones (the questions of ``self_query_filings.py``) they must help.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import os
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from langchain_core.documents import Document
from quality_self_query import TODAY
from self_query_filings import filings

from rag_kit.documents import compile_filter
from rag_kit.query_construction import SelfQueryRetriever
from rag_kit.query_construction.discovery import discover_schema
from rag_kit.query_construction.fields import Schema
from rag_kit.retrieval import BM25Retriever

HERE = Path(__file__).resolve().parent
OWN = {"filings_en": "en", "filings_zh": "zh"}
K = 10
SETS = (
    "scifact",
    "limit_small",
    "timeqa_slice",
    "covidqa",
    "pubmedqa_l",
    "xquad_en",
    "cmrc2018_dev",
    "xquad_zh",
)


def lines(path: Path) -> list[Any]:
    """Read a file of JSON lines, packed or not."""
    packed = path.with_name(path.name + ".gz")
    data = path.read_bytes() if path.exists() else gzip.decompress(packed.read_bytes())
    return [json.loads(line) for line in data.decode("utf-8").split("\n") if line]


class DataSet(NamedTuple):
    """Documents with all their metadata, questions, and grades of documents by question."""

    documents: list[Document]
    queries: dict[str, str]
    grades: Mapping[str, Mapping[str, int]]


def load(name: str, data: Path) -> DataSet:
    """A set of the shared folder, or one of our own."""
    if name in OWN:
        return DataSet(*filings(OWN[name]))
    documents = []
    for row in lines(data / name / "corpus.jsonl"):
        text = f"{row.get('title') or ''}\n{row['text']}".strip()
        metadata = {
            key: value for key, value in row.items() if key not in ("_id", "text") and value not in ("", None)
        }
        documents.append(Document(text, id=row["_id"], metadata=metadata))
    grades: dict[str, dict[str, int]] = defaultdict(dict)
    for line in (data / name / "qrels.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        query, document, grade = line.split("\t")
        grades[query][document] = int(grade)
    queries = {
        row["_id"]: row["text"] for row in lines(data / name / "queries.jsonl") if row["_id"] in grades
    }
    return DataSet(documents, queries, grades)


def ndcg(found: list[Document], grades: Mapping[str, int]) -> float:
    """nDCG@10 of one question."""
    gained = sum(grades.get(doc.id or "", 0) / math.log2(rank + 2) for rank, doc in enumerate(found))
    best = sorted(grades.values(), reverse=True)[:K]
    return gained / sum(grade / math.log2(rank + 2) for rank, grade in enumerate(best))


def measure(name: str, data: Path, show: int = 0) -> dict[str, Any]:
    """Scores of plain search, and by fields used: score, change, share of questions with a filter, share of those
    whose relevant documents all pass it."""
    made = load(name, data)
    search = BM25Retriever.from_documents(made.documents, k=K)
    plain = {key: ndcg(search.invoke(text), made.grades[key]) for key, text in made.queries.items()}
    schema = discover_schema(made.documents)
    by_id = {doc.id: doc for doc in made.documents}
    count = len(plain)
    result: dict[str, Any] = {"questions": count, "plain": round(sum(plain.values()) / count, 4)}
    alone = [(field.name, Schema((field,))) for field in schema] if len(schema) > 1 else []
    for fields, used in [("all", schema), *alone]:
        retriever = SelfQueryRetriever.from_rules(search, schema=used, k=K, today=TODAY)
        scores, filtered, kept, shown = dict(plain), 0, 0, 0
        for key, text in made.queries.items():
            construct = retriever.construct_query(text)
            if construct.filter is None and construct.sort is None and construct.query == text:
                continue
            scores[key] = ndcg(retriever.invoke(text), made.grades[key])
            if construct.filter is not None:
                filtered += 1
                passes = compile_filter(construct.filter)
                kept += all(passes(by_id[of].metadata) for of in made.grades[key] if made.grades[key][of])
            if scores[key] < plain[key] and shown < show:
                shown += 1
                print(f"{fields}: {plain[key]:.2f} > {scores[key]:.2f}: {text}")
                print(f"    {json.dumps(construct.as_dict(), ensure_ascii=False)}")
        score = sum(scores.values()) / count
        result[fields] = {
            "ndcg@10": round(score, 4),
            "change": round(score - sum(plain.values()) / count, 4),
            "filtered": round(filtered / count, 4),
            "kept": round(kept / filtered, 4) if filtered else None,
        }
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="*", default=[*SETS, *OWN])
    parser.add_argument("--show", type=int, default=0, help="print so many questions that lose, of each row")
    arguments = parser.parse_args()
    data = Path(os.environ.get("RAG_KIT_DATA", HERE.parents[2] / "shared" / "data"))
    for name in arguments.sets:
        print(name, json.dumps(measure(name, data, arguments.show), indent=1, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main()
