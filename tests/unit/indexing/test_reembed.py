"""Another embedding model for an index: the old vectors serve until the new ones stand in their place."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from support.embedding import WordEmbeddings

from rag_kit.cli import exits
from rag_kit.cli.main import main
from rag_kit.errors import IndexMismatchError, ModelUnreachableError
from rag_kit.indexing import DocumentIndex
from rag_kit.indexing.document_index import embedding
from rag_kit.retrieval import index_retriever

pytestmark = pytest.mark.usefixtures("backend")

OLD, NEW = 401, 301  # long enough for few words to share a number


class ReversedWords(WordEmbeddings):
    """Another model with vectors of the same length."""

    def vector(self, text: str) -> list[float]:
        return super().vector(text)[::-1]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A closed index of 20 documents with vectors: two batches."""
    monkeypatch.setattr(embedding, "EMBED_BATCH", 16)
    with DocumentIndex.create(tmp_path / "index", embeddings=WordEmbeddings(OLD)) as index:
        index.upsert([Document(f"delta{i} common", id=f"d{i}") for i in range(20)])
    return tmp_path / "index"


@pytest.mark.parametrize("new", [WordEmbeddings(NEW), ReversedWords(OLD)])
async def test_a_hybrid_search_during_the_switch_gives_its_results(
    folder: Path, new: WordEmbeddings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search that has read the old vectors when they go gives what it found; its notes name no path."""
    vector_rows = DocumentIndex.vector_rows

    def switch(index: DocumentIndex, ids: Sequence[str]) -> dict[str, Any]:
        with DocumentIndex.open(folder, mode="w", check=False) as writer:
            writer.reembed(new)
        return vector_rows(index, ids)

    monkeypatch.setattr(DocumentIndex, "vector_rows", switch)
    with DocumentIndex.open(folder, embeddings=WordEmbeddings(OLD)) as reader:
        retriever = index_retriever(reader, "hybrid", k=3)
        assert retriever.invoke("delta7")[0].id == "d7"
        found = await retriever.ainvoke("delta7")
        assert found[0].id == "d7"
        assert "degraded: dense failed" in str(found) and str(folder) not in str(found)


@pytest.mark.parametrize("new", [WordEmbeddings(NEW), ReversedWords(OLD)])
async def test_readers_find_by_the_old_vectors_until_the_switch(folder: Path, new: WordEmbeddings) -> None:
    """A reader that is open finds by the old vectors until the switch, then an error names the new model."""
    old = WordEmbeddings(OLD)
    with DocumentIndex.open(folder, embeddings=old) as reader:
        with DocumentIndex.open(folder, mode="w", check=False) as index:
            seen = []
            assert index.reembed(new, lambda done, total: seen.append((done, total, found(reader)))) == 20
            assert seen == [(16, 20, "d7"), (20, 20, "d7")]
            assert found(index) == "d7"  # the writer itself goes on with the new model
            assert index.upsert([Document("epsilon new", id="e")]).embedded == 1
        for dense in (
            lambda: reader.search_dense("delta7", 1),
            lambda: reader.search_dense(old.vector("a"), 1),
        ):
            with pytest.raises(IndexMismatchError, match="Open it again"):
                dense()
        with pytest.raises(IndexMismatchError, match="Open it again"):
            await index_retriever(reader, "dense").ainvoke("delta7")
        with pytest.raises(IndexMismatchError, match="Open it again"):
            index_retriever(reader, "dense").invoke("delta7")
        assert reader.search_keyword("epsilon", 1)[0][0].id == "e"
    with pytest.raises(IndexMismatchError, match="was built with"):
        DocumentIndex.open(folder, embeddings=old)
    with DocumentIndex.open(folder, embeddings=new) as reader:
        assert found(reader) == "d7" and found(pickle.loads(pickle.dumps(reader))) == "d7"
        assert reader.verify().ok and reader.stats()["dimension"] == new.size
        assert reader.vectors(["d7"])["d7"] == pytest.approx(new.vector("delta7 common"))


def found(index: DocumentIndex) -> str | None:
    """The nearest document to a question."""
    return index.search_dense("delta7", 1)[0][0].id


def test_goes_on_where_it_stopped(folder: Path) -> None:
    """After a failure the old model serves and writes; the next call embeds only what is lacking or has changed."""
    with (
        DocumentIndex.open(folder, mode="w", check=False) as index,
        pytest.raises(ModelUnreachableError),
    ):
        index.reembed(WordEmbeddings(NEW, fail_after=1))
    with DocumentIndex.open(folder, mode="w", embeddings=WordEmbeddings(OLD)) as index:
        assert found(index) == "d7" and index.verify().ok
        index.delete(["d3", "d19"])
        index.upsert([Document("changed meanwhile", id="d7"), Document("added", id="last")])
    new = WordEmbeddings(NEW)
    with DocumentIndex.open(folder, mode="w", check=False) as index:
        assert index.reembed(new) == 20 - 16 - 1 + 2
        assert index.reembed(new) == 0
    with DocumentIndex.open(folder, embeddings=new) as index:
        assert index.verify().ok and len(index.vectors(index.ids())) == 19
        assert index.search_dense("changed meanwhile", 1)[0][0].id == "d7"
        assert index.vectors(["last"])["last"] == pytest.approx(new.vector("added"))


def test_vectors_of_a_third_model_are_not_mixed_in(folder: Path) -> None:
    """Vectors that an unfinished call left by one model are not used by another."""
    with (
        DocumentIndex.open(folder, mode="w", check=False) as index,
        pytest.raises(ModelUnreachableError),
    ):
        index.reembed(ReversedWords(OLD, fail_after=1))
    with DocumentIndex.open(folder, mode="w", check=False) as index:
        assert index.reembed(WordEmbeddings(NEW)) == 20
        assert index.verify().ok


def test_command(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """``rag-kit reembed`` tells both models; without a model it says what to give."""
    monkeypatch.setattr(
        "rag_kit.models.embedding_model", lambda name, **_: None if name == "none" else WordEmbeddings(NEW)
    )
    arguments = ["reembed", "--index", str(folder), "--embedding-model"]
    assert main([*arguments, "none"]) == exits.USAGE
    assert "needs an embedding model" in capsys.readouterr().err
    assert main([*arguments, "words"]) == exits.OK
    assert "20 texts embedded; vectors by " in capsys.readouterr().out
    assert main([*arguments, "words"]) == exits.OK
    assert capsys.readouterr().out.startswith("0 texts embedded; vectors by ")
    assert main(["verify", "--index", str(folder)]) == exits.OK
