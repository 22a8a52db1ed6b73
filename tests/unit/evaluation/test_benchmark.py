"""The benchmark as a whole: the shape of its result, its files, its refusals."""

from __future__ import annotations

import json
import time

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import RunnableLambda

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation import benchmark, load_dataset

ANIMALS = ["otter", "heron", "newt", "beaver", "toad", "swan", "pike", "eel"]


class Letters(Embeddings):
    """Counts of letters: equal words have equal vectors."""

    def __init__(self) -> None:
        self.embedded: list[str] = []

    def embed_query(self, text):
        return [float(text.lower().count(chr(97 + i))) for i in range(26)]

    def embed_documents(self, texts):
        self.embedded += texts
        return [self.embed_query(text) for text in texts]


@pytest.fixture
def folder(tmp_path):
    """Eight documents, nine queries; the last query has no answer."""
    folder = tmp_path / "pond"
    folder.mkdir()
    texts = {a: f"The {a} lives in the pond. " + "Reeds grow here. " * 20 + f"It is a {a}." for a in ANIMALS}
    corpus = [{"_id": a, "title": a.title(), "text": text} for a, text in texts.items()]
    queries = [{"_id": f"q-{a}", "text": f"Where does the {a} live?"} for a in ANIMALS]
    queries.append({"_id": "q-none", "text": "Where does the whale live?"})
    qa = [{"id": f"q-{a}", "answers": ["in the pond"], "doc_ids": [a]} for a in ANIMALS]
    for name, rows in {"corpus": corpus, "queries": queries, "qa": qa}.items():
        (folder / f"{name}.jsonl").write_text(
            "".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8"
        )
    qrels = "".join(f"q-{a}\t{a}\t1\n" for a in ANIMALS)
    (folder / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n" + qrels, encoding="utf-8")
    return folder


def half_right(documents):
    """Right for the first four animals, wrong for the others."""

    def find(query):
        named = [d for d in documents if str(d.metadata["corpus_id"]) in query]
        others = [d for d in documents if d not in named]
        return named + others if any(a in query for a in ANIMALS[:4]) else others[:3]

    return RunnableLambda(find)


def test_result_has_the_agreed_shape(folder, tmp_path):
    """Every metric is value, low, high; speed is numbers; the file holds what is returned."""
    out = tmp_path / "deep" / "result.json"
    result = benchmark(folder, {"mine": half_right}, out=out)
    assert json.loads(out.read_text(encoding="utf-8")) == result
    assert [path.name for path in out.parent.iterdir()] == ["result.json"]
    assert result["dataset"] == "pond"
    (entry,) = result["pipelines"]
    assert entry["pipeline"] == "mine"
    for metric in (
        "ndcg@10",
        "recall@10",
        "recall@100",
        "mrr@10",
        "map",
        "hit_rate@10",
        "gold_span_recall@3000",
    ):
        assert list(entry[metric]) == ["value", "low", "high"]
    assert entry["ndcg@10"]["value"] == 0.5 and entry["map"]["value"] == 0.5
    assert 0 <= entry["ndcg@10"]["low"] < 0.5 < entry["ndcg@10"]["high"] <= 1
    assert all(entry[name] >= 0 for name in ("p50_ms", "p95_ms", "queries_per_second"))


def test_queries_without_an_answer_are_left_out_and_counted(folder):
    """The unanswerable query is not asked, and the result says so."""
    asked = []

    def spy(documents):
        find = half_right(documents)
        return RunnableLambda(lambda q: asked.append(q) or find.invoke(q))

    result = benchmark(folder, {"mine": spy})
    assert not any("whale" in query for query in asked)
    counts = result["counts"]
    assert (counts["queries"], counts["queries_without_relevant_documents"], counts["queries_scored"]) == (
        9,
        1,
        8,
    )


def test_limit_asks_the_first_scorable_queries(folder):
    """limit takes the first queries in the order of the file, and is stated."""
    result = benchmark(folder, {"mine": half_right}, limit=4)
    assert result["pipelines"][0]["hit_rate@1"] == {"value": 1.0, "low": 1.0, "high": 1.0}
    assert (result["counts"]["queries_scored"], result["settings"]["limit"]) == (4, 4)


def test_rows_hold_each_query_first(folder, tmp_path):
    """The rows give every pipeline's score of every query, and their mean is the reported value."""
    rows_file = tmp_path / "rows.jsonl"
    result = benchmark(folder, {"mine": half_right}, rows_out=rows_file)
    rows = [json.loads(line) for line in rows_file.read_text(encoding="utf-8").splitlines()]
    assert [row["query"] for row in rows] == [f"q-{a}" for a in ANIMALS]
    mean = sum(row["mrr@10"] for row in rows) / len(rows)
    assert mean == pytest.approx(result["pipelines"][0]["mrr@10"]["value"], abs=1e-6)
    assert rows[0]["ranking"][0] == "otter" and rows[0]["ms"] >= 0


def test_built_in_pipelines_share_one_embedding_of_the_corpus(folder):
    """bm25, dense and hybrid find the animals; documents are embedded once; both arms answered."""
    model = Letters()
    result = benchmark(folder, ["bm25", "dense", "hybrid"], embeddings=model)
    assert sorted(model.embedded) == sorted(d.page_content for d in load_dataset(folder).documents())
    by_name = {entry["pipeline"]: entry for entry in result["pipelines"]}
    assert by_name["bm25"]["hit_rate@1"]["value"] == 1.0
    assert by_name["hybrid"]["arms"] == {"bm25": 1.0, "dense": 1.0}
    assert by_name["hybrid"]["settings"]["feedback"] == 0.45 and by_name["bm25"]["settings"]["bm25"]


def test_cached_vectors_are_not_made_again(folder, tmp_path):
    """With a cache folder the second run embeds no document, and scores the same."""
    model = Letters()
    first = benchmark(folder, ["dense"], embeddings=model, cache=tmp_path / "cache")
    done = len(model.embedded)
    second = benchmark(folder, ["dense"], embeddings=model, cache=tmp_path / "cache")
    assert len(model.embedded) == done
    assert first["pipelines"][0]["map"] == second["pipelines"][0]["map"]


def test_chunks_are_ranked_as_their_documents(folder):
    """With a chunk size passages outnumber documents, and the right documents are still found."""
    result = benchmark(folder, ["bm25"], chunk_size=120)
    assert result["counts"]["passages"] > result["counts"]["documents"] == 8
    assert result["pipelines"][0]["hit_rate@1"]["value"] == 1.0
    assert result["pipelines"][0]["gold_span_recall@3000"]["value"] == 1.0


@pytest.mark.parametrize(
    ("pipelines", "settings", "message"),
    [
        ([], {}, "with at least one of"),
        (["bm25", "bm25"], {}, "name each once"),
        ("bm25", {}, "give a list"),
        (["bm52"], {}, "allowed are bm25, dense, hybrid"),
        (["bm25"], {"limit": 0}, "limit=0"),
        (["bm25"], {"depth": -1}, "depth=-1"),
        (["bm25"], {"chunk_size": 0}, "chunk_size=0"),
    ],
)
def test_bad_settings_are_refused(folder, pipelines, settings, message):
    """Wrong names and numbers are refused before any work."""
    with pytest.raises(InvalidInputError, match=message):
        benchmark(folder, pipelines, **settings)


def test_few_passages_are_noted(folder):
    """A retriever that never returns ten passages is said to."""
    result = benchmark(folder, {"mine": lambda documents: RunnableLambda(lambda q: documents[:2])})
    assert "returned at most 2 passages" in result["pipelines"][0]["notes"][0]


def test_documents_may_come_back_without_metadata_of_the_set(folder):
    """Document.id is enough to know a passage."""

    def bare(documents):
        return RunnableLambda(lambda q: [Document(id=d.id, page_content="") for d in documents])

    assert benchmark(folder, {"mine": bare})["pipelines"][0]["recall@10"]["value"] == 1.0


class Slow(Letters):
    """Takes its time for a query, and keeps which it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.queries: list[str] = []

    def embed_query(self, text):
        if text.endswith("?"):
            self.queries.append(text)
            time.sleep(0.02)
        return super().embed_query(text)


def test_each_query_is_embedded_once_for_all_pipelines_and_each_is_charged(folder):
    """Four pipelines, one embedding a query; the time of each says what it takes alone."""
    model = Slow()
    result = benchmark(folder, ["dense", "hybrid", "convex", "mmr"], embeddings=model)
    assert sorted(model.queries) == sorted(set(model.queries)) and len(model.queries) == len(ANIMALS)
    assert all(entry["p50_ms"] >= 20 for entry in result["pipelines"])
    again = benchmark(folder, ["dense"], embeddings=model)
    assert len(model.queries) == 2 * len(ANIMALS)  # another run embeds anew
    assert again["pipelines"][0]["ndcg@10"] == result["pipelines"][0]["ndcg@10"]
