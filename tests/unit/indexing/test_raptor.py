"""Trees of summaries over the passages of an index: built, searched, kept up to date, kept apart."""

from __future__ import annotations

import asyncio
import sys
import time

import pytest
from langchain_core.documents import Document
from langchain_openai import ChatOpenAI
from support.embedding import WordEmbeddings
from support.openai_server import OpenAIServer, error
from support.raptor import cluster_of, documents, reply
from support.representing import killed_after
from support.rewriters import Scripted

from rag_kit.documents import get_provenance, matches
from rag_kit.errors import DocumentIndexError, InvalidInputError, MissingExtraError, ModelUnauthorizedError
from rag_kit.indexing import DocumentIndex, ingest
from rag_kit.indexing.raptor.build import build_raptor
from rag_kit.indexing.raptor.tree import RaptorTree
from rag_kit.models import chat_model
from rag_kit.retrieval import RaptorRetriever, index_retriever

pytestmark = pytest.mark.usefixtures("backend")

SMALL = {"max_tokens": 150}


def made(path, docs=None, **settings):
    """An index with a tree by a scripted model, and the model."""
    index, model = DocumentIndex.create(path, embeddings=WordEmbeddings()), Scripted(script=reply)
    index.upsert(documents() if docs is None else docs)
    build_raptor(index, model, **{**SMALL, **settings})
    return index, model


def above(tree: RaptorTree, key: str) -> set[str]:
    """The summaries on the ways up from a passage or summary."""
    direct = {parent for parent, member in tree.edges if member == key}
    return direct.union(*(above(tree, parent) for parent in direct))


def leaves(tree: RaptorTree, key: str) -> set[str]:
    """Ids of all passages below a summary."""
    node = tree.nodes.get(key)
    return {key} if node is None else set().union(*(leaves(tree, each) for each in node.metadata["members"]))


def found(retriever, query, **call):
    """Ids and levels of what is found, the same by both ways of calling."""
    documents = retriever.invoke(query, **call)
    assert documents == asyncio.run(retriever.ainvoke(query, **call))
    return [(doc.id, doc.metadata.get("level", 0)) for doc in documents]


def test_what_only_a_summary_answers_is_found_both_ways(tmp_path):
    """Real requests on loopback: planned, made, and found in English and Chinese; only summaries are embedded."""
    index = DocumentIndex.create(tmp_path / "index", embeddings=WordEmbeddings())
    index.upsert(documents())
    index.embeddings.texts.clear()
    with OpenAIServer([lambda request: reply(request.prompt)]) as server:
        model = ChatOpenAI(model="test", base_url=server.url, api_key="sk-test")
        plan = build_raptor(index, model, dry_run=True, **SMALL)
        assert (
            not server.chats and not RaptorTree.read(index).nodes and plan.calls >= 4 and plan.tokens > 1000
        )
        report = build_raptor(index, model, **SMALL)
        tree = RaptorTree.read(index)
        assert (report.calls, report.reused) == (len(server.chats), 0)
        assert sum(report.summaries) == len(tree.nodes) and report.summaries[-1] == 1
        assert report.embedded == len(index.embeddings.texts) <= len(tree.nodes)
        assert leaves(tree, tree.roots[0]) == tree.leaves.keys() == {doc.id for doc in documents()}
        again = build_raptor(index, model, **SMALL)
        assert (again.calls, again.changed, again.embedded, len(server.chats)) == (0, 0, 0, report.calls)
    retriever = RaptorRetriever(index=index, k=3)
    for query, topic in (("overview moon", "moon"), ("概览 月球", "月球")):
        (key, level), *_ = found(retriever, query)
        assert level and {tree.nodes[key].metadata["topic"]} == {topic}
        assert len(found(retriever, query, k=1)) == 1
    assert (found(retriever, "pump valve note valve1")[0])[1] == 0, "a passage is found by its own words"
    [best] = retriever.invoke("overview moon", k=1)
    assert get_provenance(best)["stages"][0]["stage"] == "raptor" and "raptor" not in best.metadata
    assert index.verify().ok


def test_plain_searches_and_files_leave_the_tree_alone(tmp_path):
    """Other retrievers give passages; ingest with prune, reembed and a sync of everything keep the summaries."""
    (tmp_path / "docs").mkdir()
    for doc in documents():
        (tmp_path / "docs" / f"{doc.id}.txt").write_text(doc.page_content, encoding="utf-8")
    ingest(tmp_path / "docs", tmp_path / "index", embeddings=WordEmbeddings())
    with DocumentIndex.open(tmp_path / "index", mode="w", embeddings=WordEmbeddings()) as index:
        report = build_raptor(index, chat_model("extractive"), **SMALL)  # selects sentences
        assert (report.calls, report.tokens, report.failed) == (0, 0, 0) and report.summaries
        size = len(RaptorTree.read(index).nodes)
        index.upsert([Document("the moon", id="raptor:1:mine", metadata={"representation": "raptor"})])
        assert size
        for pipeline in ("bm25", "dense", "hybrid"):
            hits = index_retriever(index, pipeline, k=90).invoke("moon orbit 月球")
            assert hits and all("representation" not in doc.metadata for doc in hits)
    report = ingest(tmp_path / "docs", tmp_path / "index", embeddings=WordEmbeddings(), prune=True)
    assert (report.unchanged, report.removed, report.updated, report.chunks) == (32, 0, 0, 32)
    with DocumentIndex.open(tmp_path / "index", mode="w", embeddings=WordEmbeddings()) as index:
        index.reembed(WordEmbeddings(size=32))
        assert len(RaptorTree.read(index).nodes) == size and index.verify().ok
        assert found(RaptorRetriever(index=index), "orbit of the moon")
        docs = index.get(index.passage_ids())
        index.delete_sources([docs[0].metadata["source"]])
        assert len(RaptorTree.read(index).nodes) == size


def test_a_change_costs_a_call_for_each_cluster_on_its_ways_up(tmp_path):
    """A changed, a new and a removed passage: no more calls than clusters above it, before or after."""
    index, model = made(tmp_path / "index")
    for change in ("changed", "new", "removed"):
        before, calls = RaptorTree.read(index), len(model.prompts)
        key = "extra" if change == "new" else "pump-pipe-0"
        text = "pump pipe pressure, of another kind"
        if change == "removed":
            index.delete([key])
        else:
            index.upsert([Document(text, id=key, metadata={"topic": "pump", "tenant": "a", "year": 1})])
        plan = build_raptor(index, model, dry_run=True)
        report = build_raptor(index, model)
        after = RaptorTree.read(index)
        ways = above(before, key) | above(after, key)
        assert report.calls == len(model.prompts) - calls <= plan.calls
        assert 0 < report.calls + report.reused <= len(ways) < len(after.nodes)
        assert (key in after.leaves) == (change != "removed") and report.rebuilt == 0
        assert all(leaf.current for leaf in after.leaves.values())
    assert build_raptor(index, model).calls == 0


def test_clusters_are_made_anew_when_many_passages_changed(tmp_path):
    """Up to 30% of the passages nothing is clustered anew; above it, a dry run says the cost."""
    index, model = made(tmp_path / "index")
    changed = [Document(f"{doc.page_content} anew", id=doc.id, metadata=doc.metadata) for doc in documents()]
    index.upsert(changed[:9])
    assert build_raptor(index, model).rebuilt == 0
    index.upsert(changed[9:11])  # with those before, 11 of 32
    plan = build_raptor(index, model, dry_run=True, **SMALL)
    assert plan.changed == 11
    report = build_raptor(index, model, **SMALL)
    assert report.rebuilt == 1 and report.calls > 0 and plan.calls > 0
    assert build_raptor(index, model).changed == 0


def test_the_same_seed_gives_the_same_tree(tmp_path):
    """Same passages, model and seed: the same tree, as printed; and rebuild makes the same again without a call."""
    one, model = made(tmp_path / "one", seed=7)
    two, _ = made(tmp_path / "two", seed=7)
    tree = RaptorTree.read(one)
    assert str(tree) == str(RaptorTree.read(two))
    again = build_raptor(one, model, seed=7, rebuild=True, **SMALL)
    assert (again.calls, again.reused) == (0, len(tree.nodes)) and str(RaptorTree.read(one)) == str(tree)
    lines = str(tree).splitlines()
    assert lines[0].endswith(f"32 passages, {len(tree.nodes)} summaries") and max(map(len, lines)) <= 100
    assert any("- 月球 轨道" in line for line in lines) and len(tree.show(1).splitlines()) == 2
    assert len(tree.edges) == sum(len(node.metadata["members"]) for node in tree.nodes.values())


@pytest.mark.slow
@pytest.mark.folder
def test_a_killed_build_goes_on_where_it_stopped(tmp_path):
    """After kill -9 no half of a tree is there, and no reply that had come is asked for again."""
    with DocumentIndex.create(tmp_path / "index", embeddings=WordEmbeddings()) as index:
        index.upsert(documents())
        total = made(tmp_path / "whole")[1].prompts

    def slowly(request):
        time.sleep(0.05)
        return reply(request.prompt)

    with OpenAIServer([slowly]) as server:
        again = killed_after(3, server, "support.raptor", tmp_path / "index")
        with DocumentIndex.open(tmp_path / "index", embeddings=WordEmbeddings()) as index:
            assert not RaptorTree.read(index).nodes
            [hit] = RaptorRetriever(index=index, k=1).invoke("overview moon")
            assert "passages alone" in get_provenance(hit)["notes"][0]
        again()
        assert len(server.chats) in (len(total), len(total) + 1)  # the one that was under way, again
    with DocumentIndex.open(tmp_path / "index", embeddings=WordEmbeddings()) as index:
        assert str(RaptorTree.read(index)) and index.verify().ok and RaptorTree.read(index).nodes


FILTERS = (
    {"tenant": "a"},
    {"tenant": {"$ne": "b"}},
    {"tenant": {"$nin": ["b", "c"]}},
    {"topic": {"$in": ["moon", "月球"]}},
    {"secret": {"$exists": False}},
    {"secret": {"$exists": True}},
    {"$not": {"topic": "pump"}},
    {"$or": [{"topic": "moon"}, {"$and": [{"topic": "pump"}, {"year": {"$lt": 2001}}]}]},
)


def test_a_summary_is_found_only_if_all_its_passages_pass(tmp_path):
    """Whatever the operator, in the filter of the call or of the retriever: passages and summaries alike."""
    docs = documents()
    docs[0].metadata["secret"] = True
    del docs[1].metadata["tenant"]
    index, _ = made(tmp_path / "index", docs)
    tree, own = RaptorTree.read(index), {doc.id: doc.metadata for doc in docs}
    for where in FILTERS:
        allowed = {key for key in tree.nodes if all(matches(where, own[leaf]) for leaf in leaves(tree, key))}
        allowed |= {key for key, metadata in own.items() if matches(where, metadata)}
        for retriever, call in (
            (RaptorRetriever(index=index, k=99), {"filter": where}),
            (RaptorRetriever(index=index, k=99, filter=where), {}),
        ):
            keys = {key for key, _ in found(retriever, "overview moon 月球 pump", **call)}
            assert keys == allowed
    narrow = RaptorRetriever(index=index, k=99, filter={"tenant": "a"})
    assert found(narrow, "overview moon", filter={"tenant": "b"}) == []


def test_no_filter_reaches_a_summary_through_other_retrievers(tmp_path):
    """A summary of two tenants lacks the field in which they differ; "$ne" and "$exists" would let it pass."""
    index, _ = made(tmp_path / "index")
    assert len(RaptorTree.read(index).nodes) > 1
    for tenant in ({"$ne": "b"}, {"$nin": ["b"]}, {"$exists": False}):
        for kind in ({"representation": "raptor"}, {"$not": {"representation": {"$exists": False}}}):
            for where in ({"$and": [{"tenant": tenant}, kind]}, {"$or": [{"tenant": "x"}, kind]}):
                for pipeline in ("bm25", "dense", "hybrid"):
                    found = index_retriever(index, pipeline, k=90, filter=where).invoke("overview moon 概览")
                    assert not found, (where, pipeline)


def test_a_deleted_or_moved_passage_takes_its_summaries_along_at_once(tmp_path):
    """Before any update: no summary is found of what was deleted, changed, or given to another tenant."""
    index, model = made(tmp_path / "index", partition=["tenant"])
    tree = RaptorTree.read(index)
    retriever = RaptorRetriever(index=index, k=99)
    index.delete(["moon-dust-0"])
    index.upsert([Document("pump, of another kind", id="pump-pipe-0", metadata={"tenant": "a"})])
    gone = above(tree, "moon-dust-0") | above(tree, "pump-pipe-0")
    keys = {key for key, _ in found(retriever, "overview moon pump")}
    assert not keys & gone and keys & tree.nodes.keys()
    note = "degraded: some summaries are out of date and left out; build_raptor renews them"
    assert get_provenance(retriever.invoke("moon")[0])["notes"] == [note]
    doc = next(doc for doc in documents() if doc.id == "bread-oven-0")
    index.upsert([Document(doc.page_content, id=doc.id, metadata={**doc.metadata, "tenant": "b"})])
    keys = {key for key, _ in found(retriever, "overview bread", filter={"tenant": "a"})}
    assert not keys & above(tree, doc.id)
    report = build_raptor(index, model)
    tree = RaptorTree.read(index)
    assert report.rebuilt == 0
    assert {tree.nodes[key].metadata["tenant"] for key in above(tree, doc.id)} == {"b"}


def test_with_a_partition_nothing_is_mixed(tmp_path):
    """No call sees two tenants, each has a tree of its own, later calls keep to it, and a tenant comes and goes."""
    index, model = made(tmp_path / "index", partition=["tenant"])
    tree = RaptorTree.read(index)
    assert sorted(tree.nodes[root].metadata["tenant"] for root in tree.roots) == ["a", "b"]
    assert all(node.metadata["tenant"] in "ab" for node in tree.nodes.values())
    calls = len(model.prompts)
    index.upsert([Document(f"ship sail {n}", id=f"c{n}", metadata={"tenant": "c"}) for n in range(3)])
    assert (build_raptor(index, model).rebuilt, len(model.prompts)) == (1, calls + 1)
    for prompt in model.prompts:
        assert not (("0: " in cluster_of(prompt)) and ("1: " in cluster_of(prompt)))
    index.delete([f"c{n}" for n in range(3)])
    assert build_raptor(index, model).calls == 0
    assert RaptorTree.read(index).nodes.keys() == tree.nodes.keys()


def test_a_model_that_fails_loses_nothing(tmp_path):
    """A bad reply costs one summary until the next run; a refused key leaves the old tree and the replies that came."""
    bad = True

    def answer(prompt):
        cluster = cluster_of(prompt)
        return "no" if bad and ("yeast0" in cluster or not cluster) else reply(prompt)

    index = DocumentIndex.create(tmp_path / "index", embeddings=WordEmbeddings())
    index.upsert(documents())
    model = Scripted(script=answer)
    report = build_raptor(index, model, **SMALL)
    assert 0 < report.failed < sum(report.summaries)
    assert all(node.page_content for node in RaptorTree.read(index).nodes.values())
    bad = False
    again = build_raptor(index, model, **SMALL)
    assert (again.failed, again.calls >= report.failed, again.rebuilt) == (0, True, 0)
    before = str(RaptorTree.read(index))
    index.upsert([Document(f"pump {n} changed", id=f"pump-{n}-0") for n in ("water", "valve", "pipe")])
    with OpenAIServer([lambda request: reply(request.prompt), error(401)]) as server:
        other = ChatOpenAI(model="test", base_url=server.url, api_key="sk-test", max_retries=0)
        with pytest.raises(ModelUnauthorizedError):
            build_raptor(index, other, rebuild=True, max_concurrency=1, **SMALL)
    tree = RaptorTree.read(index)
    assert str(tree).splitlines()[1] == before.splitlines()[1]
    assert build_raptor(index, model).failed == 0


def test_small_and_even_indexes(tmp_path):
    """No passage, one, two, and many with the same vector."""
    model = Scripted(script=reply)
    index = DocumentIndex.create(tmp_path / "index", embeddings=WordEmbeddings())
    assert build_raptor(index, model).summaries == []
    for number, expected in ((1, []), (2, [1])):
        index.upsert([Document("the same words", id=str(number))])
        assert build_raptor(index, model).summaries == expected
        assert found(RaptorRetriever(index=index), "the same words")
    index.upsert([Document("the same words", id=str(number)) for number in range(40)])
    report = build_raptor(index, model, max_tokens=100)
    assert report.summaries[0] > 1 and report.summaries[-1] == 1
    assert RaptorTree.read(index).leaves.keys() == set(map(str, range(40)))


def test_bad_input_says_what_to_do(tmp_path, monkeypatch):
    """Arguments, an index without vectors, without its model or for reading, and scikit-learn that is missing."""
    model = Scripted(script=reply)
    with DocumentIndex.create(tmp_path / "words") as words:
        words.upsert(documents())
        for use in (lambda: build_raptor(words, model), lambda: RaptorRetriever(index=words)):
            with pytest.raises(InvalidInputError, match="vectors"):
                use()
    index = DocumentIndex.create(tmp_path / "index", embeddings=WordEmbeddings())
    index.upsert(documents())
    with pytest.raises(InvalidInputError, match="partition"):
        build_raptor(index, model, partition=["tenent"])
    for settings in ({"k": 0}, {"mode": "other"}):
        with pytest.raises(InvalidInputError):
            RaptorRetriever(index=index, **settings)
    assert RaptorRetriever(index=index).invoke(" ") == []
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "sklearn.mixture", None)
        with pytest.raises(MissingExtraError, match=r"rag-kit\[raptor\]"):
            build_raptor(index, model)
    index.close()
    with DocumentIndex.open(tmp_path / "index", embeddings=WordEmbeddings()) as reader:
        assert build_raptor(reader, model, dry_run=True).calls
        with pytest.raises(DocumentIndexError, match="for reading"):
            build_raptor(reader, model)
    with DocumentIndex.open(tmp_path / "index") as reader, pytest.raises(InvalidInputError, match="model"):
        RaptorRetriever(index=reader)
    assert not model.prompts
