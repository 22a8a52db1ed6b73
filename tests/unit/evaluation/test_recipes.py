"""The pipelines that the benchmark knows by name."""

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding

from rag_kit.documents import get_provenance
from rag_kit.evaluation.ranking.pipelines import RECIPES, Parts
from rag_kit.retrieval.hybrid import HybridRetriever

DOCUMENTS = [
    Document(
        f"{animal} number {place} lives in the {place % 3} forest and eats {food}.", id=f"{animal}-{place}"
    )
    for place in range(4)
    for animal, food in (("badger", "roots"), ("heron", "fish"), ("vole", "grass"))
]


@pytest.fixture(scope="module")
def parts():
    return Parts(DOCUMENTS, depth=6, embeddings=DeterministicFakeEmbedding(size=16))


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


def test_hybrid_is_the_default_of_the_command_line(parts):
    """What the benchmark calls hybrid is what `ask` and `retrieve` use."""
    assert isinstance(parts.build("hybrid").retriever, HybridRetriever)


def test_the_fusions_differ(parts):
    """No two fusions are the same recipe under two names."""
    settings = [str(sorted(recipe.settings.items())) for recipe in RECIPES.values() if recipe.settings]
    assert len(settings) == len(set(settings))
    scores = {
        name: tuple(get_provenance(doc)["score"] for doc in parts.build(name).retriever.invoke("heron fish"))
        for name, recipe in RECIPES.items()
        if recipe.arms == ("bm25", "dense")
    }
    assert len(set(scores.values())) == len(scores)


def test_known_texts_are_not_embedded_again():
    """Re-ranking by vectors takes those of the corpus, and asks the model for the question alone."""

    embedded = []

    class Once(DeterministicFakeEmbedding):
        def embed_documents(self, texts):
            embedded.extend(texts)
            return super().embed_documents(texts)

    built = Parts(DOCUMENTS, depth=6, embeddings=Once(size=16)).build("mmr")
    assert len(embedded) == len(DOCUMENTS)
    assert len(built.retriever.invoke("what does the heron eat")) == 6
    assert len(embedded) == len(DOCUMENTS)
