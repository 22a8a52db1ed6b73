"""Documents found by their representations: originals come back, fused, with what found them."""

from __future__ import annotations

import asyncio

import pytest
from langchain_core.documents import Document
from support.embedding import WordEmbeddings
from support.representing import reply
from support.rewriters import Scripted

from rag_kit.documents import get_provenance
from rag_kit.errors import InvalidInputError, RagKitError
from rag_kit.indexing import DocumentIndex
from rag_kit.indexing.document_index.rows import Child, Family
from rag_kit.models import chat_model
from rag_kit.retrieval import EnsembleRetriever, MultiRepresentationRetriever, index_retriever

KINDS = ["summary", "questions", "keywords", "qa", "tags", "translation"]
DOCUMENTS = [
    Document("The old fan hums at night, says Mizar.", id="fan", metadata={"year": 2001}),
    Document("茶要趁热喝，配点心。", id="tea", metadata={"year": 2002}),
]


def ask(retriever, question, **call):
    """Both ways of calling, which agree."""
    found = retriever.invoke(question, **call)
    assert found == asyncio.run(retriever.ainvoke(question, **call))
    return found


def kinds_of(doc):
    """The representations that found a result."""
    stages = [stage["stage"].partition(":") for stage in get_provenance(doc)["stages"]]
    return {kind for stage, _, kind in stages if stage == "representation"}


@pytest.fixture
def made():
    """A retriever over all representations that a model makes."""
    with MultiRepresentationRetriever.from_documents(
        DOCUMENTS, embeddings=WordEmbeddings(), represent=KINDS, llm=Scripted(script=reply), pipeline="bm25"
    ) as retriever:
        yield retriever


@pytest.mark.parametrize(
    ("question", "found", "kinds"),
    [
        ("hums", "fan", {"text"}),
        (
            "synonym of Mizar",
            "fan",
            {"text", "keywords", "summary", "questions", "qa", "tags", "translation"},
        ),
        ("Who asks?", "fan", {"questions"}),
        ("译文", "tea", {"translation"}),
        ("趁热喝", "tea", {"text"}),
    ],
)
def test_the_document_comes_back_with_what_found_it(made, question, found, kinds):
    """A word that stands only in a question or a translation finds the document, whole and as it was given."""
    best = next(doc for doc in ask(made, question) if doc.id == found)
    original = next(doc for doc in DOCUMENTS if doc.id == found)
    assert best.page_content == original.page_content and best.metadata["year"] == original.metadata["year"]
    assert kinds <= kinds_of(best) and "representation" not in best.metadata


def test_arguments_of_the_call(made):
    """k and filter hold for a call, and a tag is a field to filter by."""
    assert len(ask(made, "who asks about")) == 2 and len(ask(made, "who asks about", k=1)) == 1
    assert [doc.id for doc in ask(made, "who asks about", filter={"year": 2002})] == ["tea"]
    assert [doc.id for doc in ask(made, "who asks about", filter={"tag_topic": "Mizar"})] == ["fan"]


def test_writing_reading_and_deleting_are_one_life(made):
    """A document changes and goes with all that was made of it; what did not change is not asked for again."""
    asked = len(made.llm.prompts)
    assert made.upsert([Document("The new fan is quiet, says Alcor.", id="fan")]).updated == ["fan"]
    assert len(made.llm.prompts) == asked + len(KINDS)
    assert ask(made, "Mizar") == [] and kinds_of(ask(made, "Alcor")[0]) > {"summary", "tags"}
    assert made.delete(["fan"]) == 1 and ask(made, "Alcor") == []
    assert {doc.metadata["parent_id"] for doc in made.index.get(made.index.ids())} == {"tea"}
    assert made.index.verify().ok


@pytest.mark.parametrize("pipeline", ["bm25", "dense", "hybrid"])
def test_an_index_with_representations_gives_originals_by_every_pipeline(tmp_path, pipeline):
    """Who opens it with index_retriever gets documents, beside those that have no representations."""
    words = WordEmbeddings()
    with DocumentIndex.create(tmp_path / "index", embeddings=words) as index:
        index.upsert([Document("A plain fan hums.", id="plain")])
        writer = MultiRepresentationRetriever(index=index, represent=KINDS, llm=Scripted(script=reply))
        writer.upsert(DOCUMENTS)
        retriever = index_retriever(index, pipeline, k=9, on_error="raise")
        assert isinstance(retriever, MultiRepresentationRetriever)
        assert sorted(doc.id for doc in ask(retriever, "the fan hums")) == (
            ["fan", "plain"] if pipeline == "bm25" else ["fan", "plain", "tea"]
        )
        assert ask(index_retriever(index, pipeline, filter={"year": 2002}), "趁热喝")[0].id == "tea"
        asked = []
        words.embed_query = lambda text: asked.append(text) or words.vector(text)
        retriever.invoke("one question, one vector")
        assert len(asked) == (0 if pipeline == "bm25" else 1)


def test_an_embedding_model_that_fails_is_skipped_or_raised(tmp_path):
    """By default keyword search answers, and a note says what is missing; ``on_error="raise"`` stops."""
    words = WordEmbeddings()
    with DocumentIndex.create(tmp_path / "index", embeddings=words) as index:
        MultiRepresentationRetriever(index=index, represent=["qa"], llm=Scripted(script=reply)).upsert(
            DOCUMENTS
        )
        words.embed_query = lambda text: 1 / 0
        [found] = ask(index_retriever(index), "hums")
        assert any("dense failed" in note for note in get_provenance(found)["notes"])
        with pytest.raises(RagKitError):
            index_retriever(index, on_error="raise").invoke("hums")


def test_groups_of_ones_own_are_searched_side_by_side(tmp_path):
    """Two chunkings and a text of one's own: one recall each, weighed; weight 0 leaves one out."""
    text = "The lake is deep and cold. Trout live in the lake. Goats do not swim."
    with DocumentIndex.create(tmp_path / "index") as index:
        writer = MultiRepresentationRetriever(
            index=index, represent=["children:20", "children:40"], llm=chat_model("extractive")
        )
        writer.upsert([Document(text, id="lake")])
        own = Child("A pond for anglers", metadata={"representation": "nickname"})
        index.upsert([Family(Document("Deep water.", id="pond"), [Child("Deep water.", 0, 11), own])])
        kinds = ("text", "children:20", "children:40", "nickname")
        retriever = MultiRepresentationRetriever(index=index, kinds=kinds)
        assert kinds_of(ask(retriever, "trout in the lake")[0]) == {"text", "children:20", "children:40"}
        assert [doc.id for doc in ask(retriever, "anglers")] == ["pond"]
        light = MultiRepresentationRetriever(
            index=index, kinds=kinds, weights={"nickname": 0, "children:20": 0}
        )
        assert ask(light, "anglers") == [] and kinds_of(ask(light, "trout")[0]) == {"text", "children:40"}
        # beside another retriever in an ensemble, the same document is one
        both = EnsembleRetriever(retrievers=[retriever, light])
        assert [doc.id for doc in ask(both, "trout")] == ["lake"]


def test_a_document_is_whole_beside_one_that_overlaps_it(tmp_path):
    """Chunks that repeat some of each other come back as they were written, whatever found them."""
    parts = [("The fan hums at night, ", 0), ("at night, says Mizar.", 13)]
    chunks = [
        Document(text, id=text[:3], metadata={"source": "s", "start": start, "end": start + len(text)})
        for text, start in parts
    ]
    with MultiRepresentationRetriever.from_documents(
        chunks, represent=["questions"], llm=Scripted(script=reply)
    ) as retriever:
        found = ask(retriever, "hums at night Mizar")
        assert sorted(doc.page_content for doc in found) == sorted(text for text, _ in parts)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"weights": {"sumary": 1}}, "weights names \\['sumary'\\]; the representations searched are text"),
        ({"kinds": 3}, "kinds"),
        ({"represent": ["poem"]}, "represent='poem' is unknown"),
        ({"fusion": "max"}, "fusion: Input should be 'rrf' or 'convex'"),
        ({"docstore": {}}, "docstore"),
    ],
)
def test_mistakes_are_named(tmp_path, wrong, words):
    """Each message says what was given and what is allowed."""
    with (
        DocumentIndex.create(tmp_path / "index") as index,
        pytest.raises(InvalidInputError, match=words),
    ):
        MultiRepresentationRetriever(index=index, **wrong)
