"""GraphRetriever beside keyword, dense and hybrid search; where an answer is spread over passages, and where not.

python benchmarks/quality_graph_retriever.py ../shared/data --cache DIR

strategyqa: the facts of all questions are the passages, those of a question the ones to find; "decomposition" fuses
hybrid lists of the question and of the set's own parts, as a perfect model would write them. two hops: made here, a
question names the first of two passages, and only a name joins the second to it. All other sets: as they are, to see
that nothing is lost where one passage is enough. 95% intervals of the paired difference to hybrid by bootstrap.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from langchain_core.documents import Document
from quality_parents import Known

from rag_kit.evaluation import load_dataset
from rag_kit.evaluation.ranking.metrics import qrels, retrieval_metrics
from rag_kit.evaluation.sets.beir import CORPUS_ID
from rag_kit.evaluation.statistics import bootstrap_interval
from rag_kit.indexing import DocumentIndex
from rag_kit.retrieval import GraphRetriever, index_retriever, reciprocal_rank_fusion

RESULT = Path(__file__).resolve().parent / "results" / "graph_retriever.json"
SETS = (
    "scifact",
    "timeqa_slice",
    "covidqa",
    "pubmedqa_l",
    "limit_small",
    "xquad_en",
    "xquad_zh",
    "cmrc2018_dev",
)
K = 10


@dataclass
class Case:
    """Passages, questions and which passages are to be found; ``parts`` of a question where the set has them."""

    name: str
    documents: list[Document]
    questions: dict[str, set[str]]
    parts: dict[str, list[str]] = field(default_factory=dict)


class EnglishOnly(Known):
    """Chinese questions are searched by keyword, as with MiniLM itself."""

    english_only = True


def strategyqa(folder: Path) -> Case:
    ids: dict[str, str] = {}
    questions, parts = {}, {}
    for line in (folder / "strategyqa" / "train.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        facts = [fact.strip() for fact in row["facts"]]
        questions[row["question"]] = {ids.setdefault(fact, f"f{len(ids)}") for fact in facts}
        parts[row["question"]] = row["decomposition"]
    return Case("strategyqa facts", [Document(fact, id=key) for fact, key in ids.items()], questions, parts)


FORMS = {
    "en": (
        (
            "The {a} was designed by {b}.",
            "{b} studied in {c} and worked there as a teacher.",
            "Where did the designer of the {a} study?",
        ),
        (
            "{b} founded the company {a} in a garage.",
            "{b} was born in {c} as the third child.",
            "In which town was the founder of {a} born?",
        ),
        (
            "The novel {a} is by {b}.",
            "{b} was married to {c} for ten years.",
            "Who was married to the author of {a}?",
        ),
    ),
    "zh": (
        ("{a}的设计者是{b}。", "{b}曾在{c}求学，后来在那里任教。", "{a}的设计者在哪里求学？"),
        ("{b}创办了{a}公司。", "{b}出生在{c}，是家中第三个孩子。", "{a}公司的创始人出生在哪里？"),
        ("小说《{a}》的作者是{b}。", "{b}的伴侣是{c}，两人相识十年。", "《{a}》的作者的伴侣是谁？"),
    ),
}
SYLLABLES = {
    "en": ["ba", "ke", "li", "mo", "nu", "ra", "se", "ti", "vo", "za", "pre", "dor", "gan", "hil"],
    "zh": list("安博辰德恩方光浩嘉凯兰明宁鹏"),
}


def two_hops(language: str, chains: int = 300) -> Case:
    """Pairs of passages joined by a name; the names are made up, so that no model knows them."""
    draw = random.Random(language)

    def name() -> str:
        made = "".join(draw.choice(SYLLABLES[language]) for _ in range(3))
        return made.capitalize() if language == "en" else made

    documents, questions = [], {}
    for number in range(chains):
        first, second, question = FORMS[language][number % 3]
        names = {"a": name(), "b": name() + (" " if language == "en" else "") + name(), "c": name()}
        documents += [
            Document(first.format(**names), id=f"{number}a"),
            Document(second.format(**names), id=f"{number}b"),
        ]
        questions[question.format(**names)] = {f"{number}a", f"{number}b"}
    return Case(f"two hops, {language}", documents, questions)


def shared(folder: Path, name: str) -> Case:
    data = load_dataset(folder / name)
    documents = [Document(doc.page_content, id=str(doc.metadata[CORPUS_ID])) for doc in data.documents()]
    return Case(name, documents, {data[q].question: set(grades) for q, grades in qrels(data).items()})


def measure(case: Case, embeddings: EnglishOnly, limit: int) -> list[dict[str, Any]]:
    questions = list(case.questions)
    if len(questions) > limit:
        questions = random.Random(0).sample(questions, limit)
    embeddings.learn([doc.page_content for doc in case.documents])
    embeddings.learn(questions + [part for question in questions for part in case.parts.get(question, ())])
    scores: dict[str, dict[str, list[float]]] = {}
    times: dict[str, list[float]] = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        DocumentIndex.create(folder, embeddings=embeddings) as index,
    ):
        index.upsert(case.documents)
        hybrid = index_retriever(index, k=K)
        pipelines: dict[str, Any] = {
            "bm25": index_retriever(index, "bm25", k=K).invoke,
            "dense": index_retriever(index, "dense", k=K).invoke,
            "hybrid": hybrid.invoke,
            "graph over bm25": GraphRetriever(
                index=index, retriever=index_retriever(index, "bm25"), k=K
            ).invoke,
            "graph over hybrid": GraphRetriever(index=index, k=K).invoke,
        }
        if case.parts:
            pipelines["decomposition"] = lambda question: reciprocal_rank_fusion(
                [[doc.id for doc in hybrid.invoke(text)] for text in (question, *case.parts[question])]
            )
        for name, ask in pipelines.items():
            for question in questions:
                started = time.perf_counter()
                found = [one.id if isinstance(one, Document) else one[0] for one in ask(question)][:K]
                times.setdefault(name, []).append(time.perf_counter() - started)
                gold = case.questions[question]
                one = scores.setdefault(name, {"ndcg": [], "recall": [], "all": []})
                one["ndcg"].append(_ndcg(found, gold))
                one["recall"].append(len(gold & set(found)) / len(gold))
                one["all"].append(float(gold <= set(found)))
    return [
        {
            "set": case.name,
            "pipeline": name,
            "passages": len(case.documents),
            "questions": len(questions),
            **{metric: round(float(np.mean(values)), 4) for metric, values in one.items()},
            "beside_hybrid": _difference(one["recall"], scores["hybrid"]["recall"]),
            "ndcg_beside_hybrid": _difference(one["ndcg"], scores["hybrid"]["ndcg"]),
            "median_ms": round(float(np.median(times[name])) * 1000, 1),
        }
        for name, one in scores.items()
    ]


def _ndcg(found: Sequence[str], gold: set[str]) -> float:
    return retrieval_metrics({"q": found}, {"q": dict.fromkeys(gold, 1)}, [f"ndcg@{K}"]).means()[f"ndcg@{K}"]


def _difference(ours: Sequence[float], theirs: Sequence[float]) -> Mapping[str, float]:
    values = [a - b for a, b in zip(ours, theirs, strict=True)]
    low, high = bootstrap_interval(values)
    return {"value": round(float(np.mean(values)), 4), "low": round(low, 4), "high": round(high, 4)}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument(
        "--limit", type=int, default=500, help="most questions of a set, drawn with a fixed seed"
    )
    parser.add_argument("--sets", nargs="*", help="only these")
    parser.add_argument("--update", action="store_true", help="write the result file")
    arguments = parser.parse_args()
    embeddings = EnglishOnly(arguments.cache)
    cases = [strategyqa(arguments.data), two_hops("en"), two_hops("zh")]
    cases += [shared(arguments.data, name) for name in SETS]
    rows = []
    for case in cases:
        if arguments.sets and case.name not in arguments.sets:
            continue
        for row in measure(case, embeddings, arguments.limit):
            rows.append(row)
            print(json.dumps(row), flush=True)
    if arguments.update:
        RESULT.write_text(
            json.dumps({"k": K, "limit": arguments.limit, "rows": rows}, indent=1) + "\n", encoding="utf-8"
        )


if __name__ == "__main__":
    main()
