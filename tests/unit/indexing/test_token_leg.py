"""The tokens leg of an index: what is stored, how it follows the store, and reranking by it."""

from __future__ import annotations

import asyncio
import multiprocessing
import random
import time
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document

from rag_kit.cli.options import RERANKERS as NAMED
from rag_kit.documents import get_provenance
from rag_kit.errors import (
    ConfigurationError,
    IndexMismatchError,
    InvalidInputError,
    MissingExtraError,
    ModelOutputError,
)
from rag_kit.indexing import DocumentIndex, IngestOptions, ingest
from rag_kit.indexing.document_index import token_leg
from rag_kit.models.late_interaction import LateInteraction, TokenVectors, max_sim
from rag_kit.models.wheels.files import RERANKERS
from rag_kit.retrieval import EnsembleRetriever, RerankRetriever, index_retriever

SIZE = 48
QUESTION = "when does the pump start"


class Words(LateInteraction):
    """A model that gives each word a direction of its own; it counts the texts that it is given."""

    def __init__(self, name: str = "words", fails_after: int = 10**9) -> None:
        self.name, self.fails_after = name, fails_after
        self.asked: list[str] = []

    def passage_tokens(self, texts: Sequence[str]) -> list[TokenVectors]:
        self.asked += texts
        if len(self.asked) > self.fails_after:
            raise ConfigurationError("the model is gone")
        return [np.stack([self._vector(word) for word in text.split() or [""]]) for text in texts]

    @staticmethod
    def _vector(word: str) -> TokenVectors:
        vector = np.random.default_rng(zlib.crc32(word.encode())).normal(size=SIZE).astype(np.float32)
        unit: TokenVectors = vector / np.linalg.norm(vector)
        return unit


def documents(numbers: range, version: str = "first") -> list[Document]:
    return [
        Document(
            f"the pump {n} of version {version} does start at {n % 7} degrees", id=str(n), metadata={"n": n}
        )
        for n in numbers
    ]


def made(place: Any, count: int = 30, **options: Any) -> DocumentIndex:
    index = DocumentIndex.create(place, **{"legs": ["tokens"], "token_model": Words(), **options})
    index.upsert(documents(range(count)))
    return index


def stored(index: DocumentIndex) -> set[str | None]:
    """Ids of the documents whose vectors are stored."""
    found = index.get(index.ids())
    vectors = index.token_vectors([document.page_content for document in found], "words") or {}
    return {document.id for document in found if document.page_content in vectors}


def notes(found: list[Document]) -> str:
    return " ".join(get_provenance(found[0])["notes"])


def test_reranking_runs_the_model_for_the_question_alone(tmp_path: Path) -> None:
    """Stored vectors give the scores of computed ones, sync and async, with a filter, below other retrievers."""
    made(tmp_path / "i").close()
    with DocumentIndex.open(tmp_path / "i") as index, DocumentIndex.create(tmp_path / "plain") as plain:
        plain.upsert(documents(range(30)))
        for where in (None, {"n": {"$lt": 9}}):
            model = Words()
            retriever = index_retriever(index, "bm25", k=4, filter=where, reranker=model)
            found = retriever.invoke(QUESTION)
            assert model.asked == [QUESTION] and "stored" not in notes(found)
            assert asyncio.run(retriever.ainvoke(QUESTION)) == found
            both = EnsembleRetriever(retrievers=[index_retriever(index, "bm25").with_config(tags=["x"])])
            RerankRetriever(retriever=both, reranker=model, filter=where).invoke(QUESTION)
            assert model.asked == [QUESTION] * 3
            computed = index_retriever(plain, "bm25", k=4, filter=where, reranker=model).invoke(QUESTION)
            assert [document.id for document in found] == [document.id for document in computed]
            scores = [
                [get_provenance(document)["stages"][-1]["reranker_score"] for document in documents]
                for documents in (found, computed)
            ]
            assert scores[0] == pytest.approx(scores[1], abs=5e-3)
            assert where is None or all(document.metadata["n"] < 9 for document in found)


def test_what_is_stored_is_rounded(tmp_path: Path) -> None:
    """Vectors come back with length 1 and nearly where they were; a row of zeros stays one."""
    with made(tmp_path / "i", 3) as index:
        index.flush()
        [document] = index.get(["1"])
        text = document.page_content
        found = (index.token_vectors([text, "another text", "half \ud800"], "words") or {})[text]
        [expected] = Words().passage_tokens([text])
        assert found.shape == expected.shape and (found * expected).sum(axis=1).min() > 0.9999
        assert np.allclose(np.linalg.norm(found, axis=1), 1)
        assert index.token_vectors([text], "another model") == {}
    assert not token_leg._rounded(np.zeros((2, SIZE), np.float32)).any()
    assert max_sim(expected, np.empty((0, SIZE), np.float32)) == -1


def test_it_follows_the_store(tmp_path: Path) -> None:
    """A text written since is computed, with a note, until it is saved; what was removed is not in the file."""
    model = Words()
    with made(tmp_path / "i", token_model=model) as index:
        retriever = index_retriever(index, "bm25", k=30, reranker=Words())
        assert "20 passages have no stored vectors by words" in notes(retriever.invoke(QUESTION))
        index.flush()
        assert stored(index) == {*index.ids()} and "stored" not in notes(retriever.invoke(QUESTION))
        index.upsert([*documents(range(3), "second"), Document("a fan is loud", id="fan")])
        index.delete(["7", "8"])
        assert stored(index) == {*index.ids()} - {"0", "1", "2", "fan"}
        asked = len(model.asked)
        index.flush()
        assert sorted(model.asked[asked:])[0] == "a fan is loud" and len(model.asked) - asked == 4
        assert stored(index) == {*index.ids()} and index.verify().checked["token rows"] == 29
        assert len(list((tmp_path / "i").glob("tokens-*"))) == 1
        assert index.verify().ok and not index.verify().notes


def test_a_writer_adds_and_removes_the_leg(tmp_path: Path) -> None:
    """An open reader takes the vectors as soon as they are there; texts made of others get none."""
    with DocumentIndex.create(tmp_path / "i") as index:
        index.upsert([*documents(range(5)), Document("summary", id="s", metadata={"representation": "x"})])
    with DocumentIndex.open(tmp_path / "i") as reader:
        assert reader.token_vectors(["x"], "words") is None
        with DocumentIndex.open(tmp_path / "i", mode="w", legs=["tokens"], token_model=Words()) as index:
            assert stored(reader) == set()
            assert index.verify().ok and index.verify().notes
        assert stored(reader) == set(map(str, range(5)))
        DocumentIndex.open(tmp_path / "i", mode="w", legs=[]).close()
        assert reader.token_vectors(["x"], "words") is None and reader.verify().ok
    assert not list((tmp_path / "i").glob("tokens-*"))


def test_a_run_that_is_cut_off_is_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file grows on the way; a reader uses a part of it, and the next writer asks for the rest alone."""
    monkeypatch.setattr(token_leg, "_GROUP", 4)
    monkeypatch.setattr(token_leg, "_MIN_STEP", 8)
    index = made(tmp_path / "i", 40, token_model=Words(fails_after=30))
    with pytest.raises(ConfigurationError):
        index.flush()
    index.discard()
    with DocumentIndex.open(tmp_path / "i") as reader:
        assert len(stored(reader)) == 24 and reader.verify().ok and reader.verify().notes
        model = Words()
        DocumentIndex.open(tmp_path / "i", mode="w", token_model=model).close()
        assert len(model.asked) == 16
        assert len(stored(reader)) == 40 and reader.verify().ok and not reader.verify().notes


def test_a_writer_without_the_model_leaves_texts_to_wait(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Stored vectors stay right meanwhile, and the next writer with the model takes over."""
    made(tmp_path / "i").close()
    with DocumentIndex.open(tmp_path / "i", mode="w") as index:
        index.upsert(documents(range(25, 35), "second"))
        index.delete(["1"])
        assert index.repair().ok
    assert "waits for a writer with the model 'words'" in caplog.text
    with DocumentIndex.open(tmp_path / "i") as index:
        assert stored(index) == {*index.ids()} - set(map(str, range(25, 35)))
        assert any("waits" in note for note in index.verify().notes)
    DocumentIndex.open(tmp_path / "i", mode="w", token_model=Words()).close()
    with DocumentIndex.open(tmp_path / "i") as index:
        assert stored(index) == {*index.ids()} and not index.verify().notes


@pytest.mark.parametrize("damage", ["flip", "cut", "lose"])
def test_a_damaged_file_is_named_and_mended(
    tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    """`verify` finds it; a search computes what cannot be read; `repair` builds it anew, and leaves a sound one."""
    made(tmp_path / "i").close()
    [file] = (tmp_path / "i").glob("tokens-*.index")
    data = bytearray(file.read_bytes())
    data[len(data) // 4] ^= 1
    file.write_bytes(bytes(data if damage == "flip" else data[:-9]))
    if damage == "lose":
        file.unlink()
    model = Words()
    with DocumentIndex.open(tmp_path / "i", mode="w", token_model=model) as index:
        assert any(problem.startswith("tokens:") for problem in index.verify().problems)
        found = index_retriever(index, "bm25", reranker=Words()).invoke(QUESTION)
        assert ("stored" in notes(found)) == (damage != "flip")
        assert ("computed instead" in caplog.text) == (damage == "cut")
        assert index.repair().ok and len(model.asked) == 30
        for keyword_file in (tmp_path / "i").glob("bm25-*.index"):
            keyword_file.unlink()
        assert index.repair().ok and len(model.asked) == 30
        assert stored(index) == {*index.ids()}


def test_what_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No model, one of another kind, one of no use, another one: an error that says so, and nothing is made."""
    monkeypatch.setenv("RAG_KIT_CACHE", str(tmp_path / "nothing"))
    lacking = "models install colbert-small|Install the extra 'minilm'"
    with pytest.raises((ConfigurationError, MissingExtraError), match=lacking):
        DocumentIndex.create(tmp_path / "i", legs=["tokens"])
    wrong: Any = "colbert-small"
    for options in ({"legs": ["tokens"], "token_model": wrong}, {"legs": [], "token_model": Words()}):
        with pytest.raises(InvalidInputError, match="token_model="):
            DocumentIndex.create(tmp_path / "i", **options)
    assert not (tmp_path / "i").exists()
    (tmp_path / "a.md").write_text("The pump starts at 40 degrees.")
    ingest(tmp_path / "a.md", tmp_path / "i", options=IngestOptions(legs=["tokens"], token_model=Words()))
    with pytest.raises(IndexMismatchError, match="'words', but 'other' was given"):
        DocumentIndex.open(tmp_path / "i", mode="w", token_model=Words("other"))
    with DocumentIndex.open(tmp_path / "i") as index, pytest.raises(InvalidInputError, match="reranker="):
        index.leg_view("tokens")  # type: ignore[arg-type]
    DocumentIndex.create(tmp_path / "plain").close()
    with pytest.raises(InvalidInputError, match="no tokens leg"):
        DocumentIndex.open(tmp_path / "plain", mode="w", token_model=Words())
    assert NAMED == RERANKERS


def test_postgres_refuses_the_leg(postgres_url: str) -> None:
    with pytest.raises(InvalidInputError, match=r"'tokens'.*is for a folder"):
        DocumentIndex.create(f"{postgres_url}&index=tokens", legs=["tokens"], token_model=Words())


def write_on(folder: Path) -> None:
    """Write one document after another until killed."""
    with DocumentIndex.open(folder, mode="w", token_model=Words()) as index:
        for number in range(10_000):
            index.upsert([Document(f"pump item {number} does start", id=str(number % 50))])
            index.flush()


def read_on(folder: Path, errors: Any) -> None:
    """Compare stored vectors with those of the model until killed."""
    with DocumentIndex.open(folder) as index:
        while True:
            texts = [document.page_content for document in index.get(index.ids())]
            for text, vectors in (index.token_vectors(texts, "words") or {}).items():
                [expected] = Words().passage_tokens([text])
                if vectors.shape != expected.shape or (vectors * expected).sum(axis=1).min() < 0.99:
                    errors.put(text)


@pytest.mark.parametrize("kills", [1, pytest.param(5, marks=pytest.mark.slow)])
def test_kills_and_readers_beside_a_writer(kills: int, tmp_path: Path) -> None:
    """After kill -9 at any moment the leg is whole; another process reads right vectors all the time."""
    if "fork" not in multiprocessing.get_all_start_methods():
        pytest.skip("this system cannot fork")
    folder, chance, fork = tmp_path / "i", random.Random(20261130), multiprocessing.get_context("fork")
    made(folder).close()
    errors = fork.Queue()
    reader = fork.Process(target=read_on, args=(folder, errors))
    reader.start()
    try:
        for _ in range(kills):
            writer = fork.Process(target=write_on, args=(folder,))
            writer.start()
            time.sleep(0.2 + chance.random() / 4)
            writer.kill()
            writer.join()
            with DocumentIndex.open(folder) as index:
                assert index.verify().problems == []
        assert reader.is_alive() and errors.empty()
    finally:
        reader.kill()
        reader.join()
    with DocumentIndex.open(folder, mode="w", token_model=Words()) as index:
        index.flush()
        assert index.verify().ok and len(stored(index)) >= 0.99 * len(index.ids())


@pytest.mark.parametrize("wrong", [[], [np.full((2, SIZE), np.nan)], [np.ones(SIZE)], [None]])
def test_wrong_vectors_of_a_model_are_refused(wrong: list[Any], tmp_path: Path) -> None:
    """Too few, numbers that are none, another shape: nothing of it is stored or compared."""
    model = Words()
    model.passage_tokens = lambda texts: wrong  # type: ignore[method-assign]
    with pytest.raises(ModelOutputError, match=r"words gave something else than an array of shape"):
        model.score([("when", "the pump starts")])
    with made(tmp_path / "index", count=1, token_model=model) as index:
        with pytest.raises(ModelOutputError, match=r"for each of 1 texts"):
            index.flush()
        model.passage_tokens = Words().passage_tokens  # type: ignore[method-assign]
