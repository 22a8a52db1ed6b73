"""Gold is looked up in what is searched, before anything is asked."""

from __future__ import annotations

import json
import logging
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore

from rag_kit.cli.main import main
from rag_kit.errors import InvalidInputError
from rag_kit.evaluation import EvaluationSet, Example, aevaluate, benchmark, evaluate, tune
from rag_kit.evaluation.runs.gold import check_gold, searched_documents
from rag_kit.evaluation.runs.results import Results
from rag_kit.graphs import build_plain_rag
from rag_kit.indexing import DocumentIndex, ingest
from rag_kit.models import chat_model
from rag_kit.retrieval import BM25Retriever, EnsembleRetriever, VectorRetriever, index_retriever

LAKE = Document("The lake is 40 m deep. It is cold in winter.", id="c1", metadata={"file": "notes/lake.md"})
MILL = Document("磨坊建于1873年，由艾达设计。至今仍在使用。", id="c2", metadata={"file": "notes/磨坊.md"})


def example(number: int, *gold: str, **fields: object) -> Example:
    """A question with gold ids."""
    return Example(f"q{number}", f"How deep is lake {number}?", relevant=dict.fromkeys(gold, 1), **fields)


def good(count: int) -> list[Example]:
    """Questions whose gold is there."""
    return [example(100 + n, "lake.md" if n % 2 else "c2") for n in range(count)]


def test_a_name_of_several_files_is_named(caplog) -> None:
    """A gold name without its folder that two files have is named before the run and in its notes."""
    documents = [
        Document(text, id=file, metadata={"file": file})
        for file, text in (
            ("docs/合同/说明.md", "保密五年。"),
            ("docs/手册/说明.md", "保修三年。"),
            ("docs/a.md", "年假"),
        )
    ]
    retriever = BM25Retriever.from_documents(documents)
    bare = [Example("q0", "保密几年？", relevant={"说明.md": 1, "a.md": 1})]
    (note,) = evaluate(retriever, bare, ["mrr"], progress=False).notes
    assert (
        "several files have: 说明.md (docs/合同/说明.md, docs/手册/说明.md);" in note
        and note in caplog.messages
    )
    whole = [Example("q0", "保密几年？", relevant={"docs/合同/说明.md": 1})]
    assert not evaluate(retriever, whole, ["mrr"], progress=False).notes
    # one file, whose path two indexes write differently
    other = BM25Retriever.from_documents([Document("年假", id="a.md", metadata={"file": "a.md"})])
    both = EnsembleRetriever(retrievers=[retriever, other])
    leave = [Example("q0", "年假几天？", relevant={"a.md": 1})]
    assert not evaluate(both, leave, ["mrr"], progress=False).notes


def test_files_folders_and_chunks_are_found_and_others_named() -> None:
    """By chunk id, file with and without folder; a span by its first and last words, wherever chunks were cut."""
    halves = [Document("第一句话说的是水泵的历史", id="h1", metadata={"file": "水泵.md"}),
              Document("以及它至今仍在运行的原因。", id="h2", metadata={"file": "水泵.md"})]  # fmt: skip
    examples = [
        example(1, "c1", "notes/磨坊.md", "lake.md"), example(2, "lake.pdf"), example(3, "lake.pdf", "d9"),
        example(4, spans=[{"document": "水泵.md", "text": "水泵的历史以及它至今仍在运行"}]),
        example(5, spans=[{"document": "lake.md", "text": "水泵的历史"}, "ＩＴ is  cold"]),
        example(6, spans=[{"text": "磨坊建于1874年"}]),
    ]  # fmt: skip
    assert check_gold(examples, [[LAKE, MILL, *halves]], 1) == {
        "lake.pdf": ["q2", "q3"], "d9": ["q3"], '"水泵的历史"': ["q5"], '"磨坊建于1874年"': ["q6"],
    }  # fmt: skip


def test_what_a_pipeline_searches_is_known_where_the_kit_searches() -> None:
    """In graphs, functions, ensembles and chains; of a foreign store, and beside one, nothing is claimed."""
    bm25 = BM25Retriever.from_documents([LAKE, MILL])
    foreign = InMemoryVectorStore(DeterministicFakeEmbedding(size=4))
    store = VectorRetriever(vectorstore=foreign)

    def ask_both(question: str) -> object:
        return bm25.invoke(question) + foreign.similarity_search(question)

    def ask(question: str) -> object:
        return bm25.invoke(question)

    graph = build_plain_rag(bm25, chat_model("extractive"))
    for pipeline in (bm25, graph, ask, bm25 | (lambda documents: documents), bm25.with_retry()):
        assert searched_documents(pipeline) == [bm25.index], pipeline
    for pipeline in (EnsembleRetriever(retrievers=[bm25, store]), ask_both, foreign.as_retriever()):
        assert searched_documents(pipeline) is None, pipeline
    assert searched_documents(lambda question: "x") is None


def test_a_tenth_may_be_missing_and_is_named_first(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    """The warning comes before the first question, and stays in results, also when they are loaded."""
    retriever = BM25Retriever.from_documents([LAKE, MILL])
    examples = [*(example(n, f"c{1 + n % 2}") for n in range(18)), example(50, "gone.md")]
    with pytest.raises(InvalidInputError, match=r"1 of 3 gold ids and spans .*gone.md \(q50\)"):
        evaluate(retriever, examples, ["recall@5"], progress=False)
    with caplog.at_level(logging.WARNING):
        results = evaluate(
            retriever, examples, ["recall@5"], progress=False, max_missing_gold=0.5, out=tmp_path / "r"
        )
    assert "gone.md (q50)" in caplog.text
    assert results.manifest["missing_gold"] == {"gone.md": ["q50"]}
    assert "gone.md (q50)" in str(results) and "gone.md (q50)" in str(Results.load(tmp_path / "r"))


def test_spans_that_begin_alike_are_counted_each() -> None:
    """Twenty spans with one beginning, in one document or several, are twenty of twenty-one, and one entry."""
    start = "The same long words begin each and every one of these spans of gold, "
    examples = [example(n, spans=[{"document": f"d{n % 2}", "text": f"{start}{n}"}]) for n in range(20)]
    (names,) = check_gold(examples, [[LAKE]], 1).values()
    assert names == [f"q{n}" for n in range(20)]
    with pytest.raises(InvalidInputError, match=r"^20 of 21 gold ids and spans"):
        evaluate(BM25Retriever.from_documents([LAKE]), [*examples, *good(2)[1:]], ["mrr"], progress=False)


async def test_too_much_is_refused_before_anything_is_asked() -> None:
    """Nobody is asked, sync and async; it can be asked for, and left out."""
    asked: list[str] = []
    bm25 = BM25Retriever.from_documents([LAKE, MILL])

    def make_input(question: Example) -> str:
        asked.append(question.id)
        return question.question

    pipeline: Any = partial(aevaluate, bm25, metrics=["recall@5"], progress=False, make_input=make_input)
    with pytest.raises(InvalidInputError, match=r"gone.*max_missing_gold=1"):
        await pipeline([example(1, "gone")])
    assert asked == []
    for share in (1, None):
        results = await pipeline([example(1, "gone")], max_missing_gold=share)
        assert bool(results.manifest["missing_gold"]) == (share == 1)
    for wrong in (1.5, -1, "x", True):
        with pytest.raises(InvalidInputError, match="max_missing_gold is"):
            await pipeline(good(1), max_missing_gold=wrong)


def test_functions_may_search_elsewhere_too(caplog: pytest.LogCaptureFixture) -> None:
    """A function beside the kit's retriever, alone, in a chain or in a graph: what is missing is only named."""
    bm25, wiki = BM25Retriever.from_documents([LAKE]), {"wiki": MILL}

    def ask(question: str) -> list[Document]:
        return [*bm25.invoke(question), wiki["wiki"]]

    examples = [example(1, "lake.md"), example(2, "磨坊.md")]
    graph = build_plain_rag(RunnableLambda(ask), chat_model("extractive"))
    for pipeline in (ask, bm25 | (lambda found: [*found, MILL]), graph):
        caplog.clear()
        results = evaluate(pipeline, examples, ["recall@5"], progress=False)
        assert results.manifest["missing_gold"] == {"磨坊.md": ["q2"]} and "磨坊.md (q2)" in caplog.text
    for pipeline in (bm25, bm25.with_retry(), build_plain_rag(bm25, chat_model("extractive"))):
        with pytest.raises(InvalidInputError, match=r"磨坊.md"):
            evaluate(pipeline, examples, ["recall@5"], progress=False)


def test_the_corpus_of_the_set_is_looked_through_where_the_pipeline_is_foreign() -> None:
    """A set that brings its documents is checked against them; without any, nothing is claimed."""
    gone = [example(1, "gone")]
    with pytest.raises(InvalidInputError, match="gone"):
        evaluate(lambda q: [LAKE], EvaluationSet("s", gone, corpus=[LAKE]), "mrr", progress=False)
    for without in (gone, EvaluationSet("s", gone, corpus=[])):
        assert evaluate(lambda q: [LAKE], without, "mrr", progress=False).manifest["missing_gold"] == {}


@pytest.fixture
def index(tmp_path: Path) -> Path:
    """An index over two files in a folder."""
    folder = tmp_path / "files"
    (folder / "财务").mkdir(parents=True)
    (folder / "财务" / "年报.md").write_text(
        "公司全年营业收入为８７８，４５６万元。利润明显提高。", encoding="utf-8"
    )
    (folder / "lake.md").write_text("The lake is 40 m deep. It is cold in winter.", encoding="utf-8")
    ingest([folder], tmp_path / "index", embeddings=None)
    return tmp_path / "index"


def test_an_index_knows_its_files(index: Path) -> None:
    """Gold by file name, with and without folder, in an index on the disk; a span in other figures is found."""
    with DocumentIndex.open(index) as opened:
        retriever = index_retriever(opened, "bm25")
        examples = [
            example(1, "年报.md", "财务/年报.md", "lake.md", spans=[{"text": "营业收入为878,456万元"}]),
            example(2, "年报.pdf"),
        ]
        assert check_gold(examples, searched_documents(retriever) or [], 1) == {"年报.pdf": ["q2"]}


def test_the_command_refuses_names_and_takes_a_share(
    index: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``evaluate --index`` of a Chinese table: what is missing is named, and exit code 2, unless asked for."""
    table = tmp_path / "题.csv"
    table.write_text("问题,答案,文件\nHow deep is the lake?,40 m,lake.md；年报.pdf\n", encoding="utf-8")
    command = ["evaluate", str(table), "--index", str(index), "--pipeline", "bm25", "--metric", "recall@5"]
    assert main(command) != 0
    assert "年报.pdf" in capsys.readouterr().err
    assert main([*command, "--max-missing-gold", "1", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert "年报.pdf" in shown["notes"][0] and shown["metrics"]["recall@5"]["mean"] == 0.5


def test_the_benchmark_looks_too() -> None:
    """Gold that the corpus lacks is refused, or noted beside each pipeline."""
    questions = EvaluationSet("s", [*good(1), example(1, "gone")], corpus=[LAKE, MILL])
    with pytest.raises(InvalidInputError, match="gone"):
        benchmark(questions, ["bm25"])
    (entry,) = benchmark(questions, ["bm25"], max_missing_gold=1)["pipelines"]
    assert "gone (q1)" in entry["notes"][0]
    (entry,) = benchmark(questions, ["bm25"], max_missing_gold=None)["pipelines"]
    assert not any("gone" in note for note in entry["notes"])
    for wrong in ("x", float("nan"), -1, True):
        with pytest.raises(InvalidInputError, match="max_missing_gold is"):
            benchmark(questions, ["bm25"], max_missing_gold=wrong)  # type: ignore[arg-type]


def test_the_search_takes_a_share_too(tmp_path: Path) -> None:
    """``tune`` is refused as ``evaluate`` is, and can be told to go on."""
    pytest.importorskip("optuna")
    bm25 = BM25Retriever.from_documents([LAKE, MILL])
    search: Any = partial(
        tune, lambda setting: bm25, [*good(8), example(1, "gone"), example(2, "gone")], "recall@5",
        space={"k": [1, 2]}, n_trials=1, progress=False,
    )  # fmt: skip
    with pytest.raises(InvalidInputError, match=r"gone \(q1, q2\).*max_missing_gold=1"):
        search(out=tmp_path / "a")
    with pytest.raises(InvalidInputError, match="max_missing_gold is 'x'"):
        search(out=tmp_path / "a", max_missing_gold="x")
    for share in (1, None):
        assert search(out=tmp_path / f"b{share}", max_missing_gold=share).trials
