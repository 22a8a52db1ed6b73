"""Pipelines of the benchmark: what they are made of; timing, identity of passages, silence that is no result."""

from __future__ import annotations

import time

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda

from rag_kit.documents import add_note, get_provenance, with_provenance
from rag_kit.errors import ConfigurationError, InvalidInputError, RagKitError
from rag_kit.evaluation.examples import Example, GoldSpan
from rag_kit.evaluation.ours.span_recall import SpanRecall
from rag_kit.evaluation.ranking.pipelines import RECIPES, Parts, Pipeline, run_pipeline
from rag_kit.evaluation.runs.evaluating import load_object
from rag_kit.retrieval.hybrid import HybridRetriever

DOCUMENTS = [
    Document(
        f"{animal} number {place} lives in the {place % 3} forest and eats {food}.", id=f"{animal}-{place}"
    )
    for place in range(4)
    for animal, food in (("badger", "roots"), ("heron", "fish"), ("vole", "grass"))
]


class Counting(DeterministicFakeEmbedding):
    """Keeps what it embedded."""

    embedded: list[str] = []

    def embed_documents(self, texts):
        self.embedded.extend(texts)
        return super().embed_documents(texts)


@pytest.fixture(scope="module")
def parts():
    return Parts(DOCUMENTS, depth=6, embeddings=Counting(size=16))


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_finds_documents_and_names_its_arms(parts, name):
    """A built-in pipeline finds what was asked for, by every arm it claims, and its settings are plain."""
    pipeline = parts.build(name)
    found = pipeline.retriever.invoke("what does the heron eat")
    assert found and "heron" in " ".join(doc.page_content for doc in found)
    assert len(found) <= 6
    stages = {stage["stage"] for doc in found for stage in get_provenance(doc)["stages"]}
    assert set(pipeline.arms) <= stages
    assert pipeline.name == name


def test_the_default_and_the_fusions(parts):
    """The pipeline called hybrid is the one that `ask` uses, and no two fusions are the same under two names."""
    assert isinstance(parts.build("hybrid").retriever, HybridRetriever)
    scores = {
        name: tuple(get_provenance(doc)["score"] for doc in parts.build(name).retriever.invoke("heron fish"))
        for name, recipe in RECIPES.items()
        if recipe.arms == ("bm25", "dense")
    }
    assert len(set(scores.values())) == len(scores)


CORPUS = {key: f"text of {key}" for key in ("a", "b", "c")}
EXAMPLES = [Example(f"q{n}", f"question {n}", relevant={"a": 1}) for n in range(5)]


def staged(key: str, *stages: str) -> Document:
    document = Document(id=key, page_content=CORPUS[key])
    for stage in stages:
        document = with_provenance(document, score=1.0, rank=1, stage=stage, retriever=stage, query="q")
    return document


def run(function, *, arms=(), depth=100, spans=None, examples=EXAMPLES):
    pipeline = Pipeline("mine", RunnableLambda(function), arms)
    return run_pipeline(pipeline, examples, CORPUS, depth=depth, spans=spans)


def test_chunks_rank_their_document_once():
    """Chunks are counted for the document named in their metadata, at the place of the best one."""
    chunks = [Document("x", metadata={"corpus_id": key}) for key in ("b", "a", "b", "a", "c")]
    result = run(lambda q: chunks)
    assert result.rankings["q0"] == ["b", "a", "c"] and result.returned["q0"] == 5


def test_only_depth_passages_count():
    """A retriever that returns more is cut, one that takes k is asked for the depth."""
    asked = []

    class TakesK(BaseRetriever):
        def _get_relevant_documents(self, query, *, run_manager, k=4):
            asked.append(k)
            return [staged(key) for key in "abc"][:k]

    assert run(lambda q: [staged(key) for key in "abc"], depth=2).rankings["q1"] == ["a", "b"]
    result = run_pipeline(Pipeline("k", TakesK()), EXAMPLES, CORPUS, depth=3)
    assert set(asked) == {3} and result.rankings["q1"] == ["a", "b", "c"]


def test_times_are_of_each_call_and_leave_out_warming_up():
    """Each query has a time of its own; slow first calls do not count."""
    calls = []

    def slow_at_first(query):
        calls.append(query)
        time.sleep(0.3 if len(calls) <= 3 else 0.002)
        return [staged("a")]

    result = run(slow_at_first)
    assert len(calls) == 3 + len(EXAMPLES) and list(result.seconds) == [each.id for each in EXAMPLES]
    assert all(0.002 <= seconds < 0.25 for seconds in result.seconds.values())


def test_shares_of_the_arms_are_counted():
    """For each arm the number of queries it answered is kept; fusion itself is no arm."""

    def sometimes(query):
        both = [staged("a", "bm25", "fusion:rrf"), staged("b", "dense", "fusion:rrf")]
        return both if query.endswith(("0", "1")) else both[1:]

    assert run(sometimes, arms=("bm25", "dense")).arms == {"bm25": 2, "dense": 5}


@pytest.mark.parametrize(
    ("pipeline", "arms", "message"),
    [
        (
            lambda q: [staged("a", "bm25", "fusion:rrf")],
            ("bm25", "dense"),
            "dense brought no document to any of 5",
        ),
        (lambda q: [], (), "'mine' returned nothing for any of 5 queries"),
        (lambda q: [Document("text", id="elsewhere")], (), r"none of the documents .* is of this data set"),
        (lambda q: {"answer": "a"}, (), "dict"),
    ],
)
def test_what_is_no_result_is_refused(pipeline, arms, message):
    """A silent arm of a fusion, nothing at all, documents of another set, no documents: no row of zeros."""
    with pytest.raises(InvalidInputError, match=message):
        run(pipeline, arms=arms)


def test_some_documents_of_another_corpus_are_counted():
    """They are left out of the ranking."""
    result = run(lambda q: [Document("text", id="elsewhere"), staged("a")])
    assert result.foreign == 5 and result.rankings["q2"] == ["a"]


def test_degraded_answers_are_counted():
    """Queries answered without a failed part are counted by their notes."""
    assert run(lambda q: [add_note(staged("a"), "degraded: dense timed out")]).degraded == 5


def test_a_failing_call_names_the_query():
    """A foreign exception becomes one of the kit's that names pipeline, query and cause; own ones pass."""

    def fail(query):
        raise (KeyError("gone") if query.endswith("0") else ConfigurationError("no key"))

    with pytest.raises(RagKitError, match="'mine' failed on query 'q0': KeyError"):
        run(fail)
    with pytest.raises(ConfigurationError):
        run_pipeline(Pipeline("mine", RunnableLambda(fail)), EXAMPLES[1:2], CORPUS, depth=3)


def test_span_hits_are_taken_for_queries_with_spans():
    """Gold spans are looked for only where a query has one."""
    examples = [Example("q0", "?", spans=[GoldSpan("a", "text of a", 0)]), *EXAMPLES[1:]]
    result = run(lambda q: [staged("a")], spans=SpanRecall(3000, documents=CORPUS), examples=examples)
    assert result.span_hits == {"q0": 1.0}


@pytest.mark.parametrize("name", ["dense", "hybrid"])
def test_dense_without_a_model_says_how_to_get_one(name, monkeypatch):
    """Without an embedding model the message names the command and the variable."""
    monkeypatch.setattr("rag_kit.evaluation.ranking.pipelines.embedding_model", lambda name=None: None)
    with pytest.raises(ConfigurationError, match="rag-kit models install e5") as caught:
        Parts([]).build(name)
    assert "RAG_KIT_EMBEDDING_MODEL" in str(caught.value)


def test_own_pipelines_are_objects_or_functions_of_documents(tmp_path, monkeypatch):
    """module:object takes a retriever or a function, dotted too, from the current folder."""
    (tmp_path / "own_pipelines_a.py").write_text(
        "from langchain_core.runnables import RunnableLambda\n"
        "ready = RunnableLambda(lambda q: [])\n"
        "class Box:\n"
        "    @staticmethod\n"
        "    def make(documents):\n"
        "        return RunnableLambda(lambda q: list(documents))\n"
        "wrong = 3\n",
        encoding="utf-8",
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", __import__("sys").path[:])
    documents = [staged(key) for key in CORPUS]
    assert Parts(documents).build("own_pipelines_a:ready").name == "own_pipelines_a:ready"
    made = Parts(documents).build("own_pipelines_a:Box.make").retriever
    assert made.invoke("q") == documents
    with pytest.raises(InvalidInputError, match="is the class Box; give an object"):
        Parts(documents).build("own_pipelines_a:Box")
    with pytest.raises(InvalidInputError, match="is a int"):
        Parts(documents).build("own_pipelines_a:wrong")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no_such_module_here:x", "cannot be imported"),
        ("math:nothing", "has no attribute 'nothing'"),
        ("math:", "not of the form module:object"),
        (":x", "not of the form module:object"),
    ],
)
def test_objects_that_are_not_there_are_named(name, message):
    """A missing module or attribute is refused by name."""
    with pytest.raises(InvalidInputError, match=message):
        load_object(name)
