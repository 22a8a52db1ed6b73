"""The ready space: real retrievers over one's documents."""

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation import Example, SearchSpace, tune
from rag_kit.evaluation.outputs import Passage
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
    return SearchSpace.of_retrievers(
        DOCUMENTS, embeddings=DeterministicFakeEmbedding(size=8), llm=chat_model("extractive"), k=4,
        chunk_sizes=(400, 40, None),
    )  # fmt: skip


def test_the_default_setting_is_the_kits_own_hybrid(space):
    """Nothing is rewritten, and the arms are fused as the kit does by default."""
    assert isinstance(space.make({}), HybridRetriever)
    assert {"pipeline": "hybrid", "rewrite": "none", "k": 4}.items() <= space.default.items()


@pytest.mark.parametrize(
    "changed",
    [
        {"pipeline": "bm25"},
        {"pipeline": "rm3"},
        {"pipeline": "dense"},
        {"pipeline": "mmr"},
        {"chunk_size": None},
        {"chunk_size": 40},
        {"pipeline": "rrf", "bm25_weight": 0.2},
        {"pipeline": "convex-maximum"},
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
    keys = {document.id for document in DOCUMENTS}
    for document in found:
        assert keys & set(Passage.of(document).ids), document
    vectors_alone = changed.get("pipeline") in ("dense", "mmr")
    assert vectors_alone or "fish" in " ".join(document.page_content for document in found)


def test_the_weight_of_a_fusion_is_the_settings(space):
    """Keyword search and vectors get their shares."""
    assert space.make({"pipeline": "convex", "bm25_weight": 0.2}).weights == [0.2, 0.8]


def test_indexes_are_made_once_for_a_chunk_size_and_vectors_are_kept_between_runs(tmp_path):
    """Settings that differ in the fusion share their vectors; the next run with the same cache embeds nothing."""
    for expected in ([24], []):
        embeddings = Counted(texts=[])
        space = SearchSpace.of_retrievers(
            DOCUMENTS, embeddings=embeddings, chunk_sizes=(400, None), cache=tmp_path
        )
        for pipeline in ("rrf", "convex", "dense"):
            space.make({"pipeline": pipeline})
        assert embeddings.texts == expected
    assert space.make({"pipeline": "rrf"}).retrievers[0].index is space.make({}).retrievers[0].index


def test_without_models_only_keywords_are_searched_and_nothing_is_rewritten():
    """What needs a model is no choice then, and asking for it alone is refused."""
    space = SearchSpace.of_retrievers(DOCUMENTS, embeddings="none", k=(2, 5))
    assert list(space.parameters) == ["pipeline", "chunk_size", "k"]
    assert space.default["pipeline"] == "bm25" and space.default["k"] == 5
    with pytest.raises(InvalidInputError, match="there is no embedding model"):
        SearchSpace.of_retrievers(DOCUMENTS, embeddings="none", pipelines=("hybrid", "dense"))


def test_other_documents_are_another_search(space):
    """The identity tells documents and models apart."""
    same = SearchSpace.of_retrievers(
        DOCUMENTS, embeddings=DeterministicFakeEmbedding(size=8), llm=chat_model("extractive")
    )
    assert same.identity == space.identity
    assert SearchSpace.of_retrievers(DOCUMENTS[1:], embeddings="none").identity != (
        SearchSpace.of_retrievers(DOCUMENTS, embeddings="none").identity
    )


def test_judgements_by_another_key_still_hold():
    """A chunk has the keys of its document, and the document's id; Chinese too."""
    document = Document("湖水很深。湖水很冷。", id="x", metadata={"corpus_id": "gold", "parent_id": "book"})
    (found,) = SearchSpace.of_retrievers([document], embeddings="none").make({}).invoke("湖水")
    assert {"gold", "book", "x"} <= set(Passage.of(found).ids)
    twice = SearchSpace.of_retrievers(
        [Document("a lake"), Document("a lake")], embeddings="none", chunk_sizes=(None,)
    )
    assert len(twice.make({}).invoke("lake")) == 2


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"documents": []}, "list of LangChain documents"),
        ({"documents": ["text"]}, "list of LangChain documents"),
        ({"pipelines": ("sparse",)}, "hybrid"),
        ({"rewrites": ("magic",)}, "multi_query"),
        ({"k": (5, 2)}, "the smaller first"),
    ],
)
def test_wrong_arguments_are_refused(given, message):
    """The message names what is allowed."""
    arguments = {"documents": DOCUMENTS, "embeddings": "none", **given}
    with pytest.raises(InvalidInputError, match=message):
        SearchSpace.of_retrievers(arguments.pop("documents"), **arguments)


def test_a_search_over_real_retrievers_finds_what_helps(tmp_path):
    """Vectors without meaning hurt: keyword search wins over dense search, and is better beyond noise."""
    questions = [
        Example(f"q{n}", f"What does the animal number {n} eat, {FOODS[n % 6]}?", relevant={f"d{n}": 1})
        for n in range(24)
    ]
    space = SearchSpace.of_retrievers(
        DOCUMENTS,
        embeddings=DeterministicFakeEmbedding(size=8),
        chunk_sizes=(None,),
        pipelines=("dense", "bm25"),
    )
    result = tune(space, questions, "mrr@10", out=tmp_path, n_trials=12, set_aside=0.4, progress=False)
    assert result.best["pipeline"] == "bm25"
    assert result.verdict.startswith("The best setting is better: +")
