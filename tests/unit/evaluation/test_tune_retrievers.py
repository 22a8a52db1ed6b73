"""The ready space: real retrievers over one's documents."""

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation import Example, Passage, RetrieverSpace, tune
from rag_kit.evaluation.tuning.retrievers import build_retriever
from rag_kit.models import chat_model
from rag_kit.retrieval.hybrid import HybridRetriever

FOODS = ["roots", "fish", "grass", "bread", "leaves", "insects"]
DOCUMENTS = [
    Document(f"The animal number {n} lives in forest {n % 5}. It eats {food} {n} times a day.", id=f"d{n}")
    for n, food in enumerate(FOODS * 4)
]


class Counted(DeterministicFakeEmbedding):
    """Counts the texts that are embedded."""

    size: int = 8
    texts: list = []

    def embed_documents(self, texts):
        self.texts.append(len(texts))
        return super().embed_documents(texts)


@pytest.fixture(scope="module")
def space():
    return RetrieverSpace(
        DOCUMENTS, embeddings=DeterministicFakeEmbedding(size=8), llm=chat_model("extractive"), k=4,
        chunk_sizes=(400, 40, None),
    )  # fmt: skip


def test_the_default_setting_is_the_kits_own_hybrid(space):
    """It finds what the default hybrid over the same chunks finds."""
    made = space.make(space.default)
    assert isinstance(made, HybridRetriever)
    assert {
        "search": "hybrid",
        "fusion": "feedback",
        "rewrite": "none",
    }.items() <= space.default.items()


@pytest.mark.parametrize(
    "changed",
    [
        {"search": "bm25"},
        {"search": "bm25", "feedback": True},
        {"search": "dense"},
        {"search": "dense", "diversity": True, "relevance": 0.5},
        {"chunk_size": None},
        {"chunk_size": 40},
        {"fusion": "rrf", "rrf_k": 3, "bm25_weight": 0.2},
        {"fusion": "convex"},
        {"fusion": "convex-maximum", "feedback": True},
        {"fusion": "auto"},
        {"rewrite": "multi_query"},
        {"rewrite": "step_back"},
        {"rewrite": "hyde"},
        {"rewrite": "query2doc"},
        {"rewrite": "decomposition"},
    ],
)
def test_every_technique_makes_a_retriever_that_finds(space, changed):
    """Each choice works, gives at most k, and its passages lead back to the document."""
    found = space.make(changed).invoke("What does number 7 eat: fish?")
    assert 0 < len(found) <= 4
    keys = {f"d{n}" for n in range(24)}
    for document in found:
        assert keys & set(Passage.of(document).ids), document
    assert "fish" in " ".join(document.page_content for document in found) or changed.get("search") == "dense"


def test_indexes_are_made_once_for_a_chunk_size():
    """Settings that differ in the fusion share their vectors."""
    embeddings = Counted(texts=[])
    space = RetrieverSpace(DOCUMENTS, embeddings=embeddings, k=4, chunk_sizes=(400, None))
    for fusion in ("rrf", "convex", "auto"):
        space.make({"fusion": fusion})
    space.make({"search": "dense"})
    assert embeddings.texts == [24]
    assert space.make({"fusion": "rrf"}).retrievers[0].index is space.make({}).retrievers[0].index


def test_vectors_are_kept_between_runs(tmp_path):
    """A second run with the same cache embeds nothing."""
    for expected in ([24], [24]):
        embeddings = Counted(texts=[] if not tmp_path.joinpath("v").exists() else [24])
        RetrieverSpace(DOCUMENTS, embeddings=embeddings, cache=tmp_path / "v").make({"search": "dense"})
        assert embeddings.texts == expected


def test_without_an_embedding_model_only_keywords_are_searched():
    """What needs vectors is no choice then, and asking for it alone is refused."""
    space = RetrieverSpace(DOCUMENTS, embeddings="none", k=(2, 5))
    assert list(space.parameters) == ["search", "chunk_size", "feedback", "k"]
    assert space.default["search"] == "bm25" and space.default["k"] == 5
    with pytest.raises(InvalidInputError, match="there is no embedding model"):
        RetrieverSpace(DOCUMENTS, embeddings="none", searches=("hybrid", "dense"))
    with pytest.raises(InvalidInputError, match="needs an embedding model"):
        build_retriever(DOCUMENTS, {"search": "dense", "chunk_size": 400, "k": 4}, embeddings="none")


def test_without_a_chat_model_questions_are_not_rewritten():
    """A written setting that rewrites needs one."""
    with pytest.raises(InvalidInputError, match="needs a chat model"):
        build_retriever(DOCUMENTS, {"search": "bm25", "rewrite": "hyde"}, embeddings="none")
    assert "rewrite" not in RetrieverSpace(DOCUMENTS, embeddings="none").parameters


def test_other_documents_are_another_search(space):
    """The identity tells documents and models apart, and holds no text of them."""
    same = RetrieverSpace(
        DOCUMENTS, embeddings=DeterministicFakeEmbedding(size=8), llm=chat_model("extractive")
    )
    assert same.identity() == space.identity()
    assert (
        RetrieverSpace(DOCUMENTS[1:], embeddings="none").identity()["documents"]
        != space.identity()["documents"]
    )
    assert RetrieverSpace(DOCUMENTS, embeddings="none").identity() != space.identity()


def test_documents_without_ids_and_passages_of_a_set_are_taken():
    """Passages have ids of their own; documents with the same text stay apart."""
    space = RetrieverSpace(
        [Passage("p1", "湖水很深。湖水很冷。"), Passage("p2", "山很高。")],
        embeddings="none",
        chunk_sizes=(20,),
    )
    found = space.make({}).invoke("湖水")
    assert found and "p1" in Passage.of(found[0]).ids
    twice = RetrieverSpace([Document("a lake"), Document("a lake")], embeddings="none", chunk_sizes=(None,))
    assert len(twice.make({}).invoke("lake")) == 2


def test_judgements_by_another_key_still_hold():
    """A document that carries the id by which it is judged keeps it, and its chunks do."""
    document = Document("The lake is deep.", id="x", metadata={"corpus_id": "gold", "parent_id": "book"})
    (found,) = RetrieverSpace([document], embeddings="none").make({}).invoke("lake")
    assert {"gold", "book", "x"} <= set(Passage.of(found).ids)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"documents": []}, "list of LangChain documents"),
        ({"documents": "folder"}, "list of LangChain documents"),
        ({"documents": ["text"]}, r"documents\[0\] is a str"),
        ({"k": 0}, "k is 0"),
        ({"k": (5, 2)}, "the smaller first"),
        ({"chunk_sizes": (5,)}, "20 or more"),
        ({"searches": ("sparse",)}, "hybrid, bm25, dense"),
        ({"rewrites": ("magic",), "llm": chat_model("extractive")}, "multi_query"),
    ],
)
def test_wrong_arguments_are_refused(given, said):
    """The message names what is allowed."""
    arguments = {"documents": DOCUMENTS, "embeddings": "none", **given}
    with pytest.raises(InvalidInputError, match=said):
        RetrieverSpace(arguments.pop("documents"), **arguments)


def test_a_search_over_real_retrievers_finds_what_helps(tmp_path):
    """Vectors without meaning hurt: keyword search wins over dense search, and is better beyond noise."""
    questions = [
        Example(f"q{n}", f"What does the animal number {n} eat, {FOODS[n % 6]}?", relevant={f"d{n}": 1})
        for n in range(24)
    ]
    space = RetrieverSpace(
        DOCUMENTS,
        embeddings=DeterministicFakeEmbedding(size=8),
        k=10,
        chunk_sizes=(None,),
        searches=("dense", "bm25"),
    )
    result = tune(space, questions, "mrr@10", out=tmp_path, n_trials=12, held_aside=0.4, progress=False)
    assert result.best["search"] == "bm25"
    assert result.held_aside.better
