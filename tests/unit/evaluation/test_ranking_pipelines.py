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
