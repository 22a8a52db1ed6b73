from __future__ import annotations

import datetime
import json
import uuid
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_chroma import Chroma
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import FakeListChatModel
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

import rag_kit.retrieval as kit
from rag_kit.documents import PROVENANCE_KEY, add_note, explain, get_provenance, with_provenance
from rag_kit.documents.identity import to_plain
from rag_kit.documents.provenance import peek_provenance, peek_score, strip_provenance


def stage(doc: Document, **kwargs: object) -> Document:
    values = {"score": 1.0, "rank": 1, "stage": "bm25", "retriever": "r", "query": "q", **kwargs}
    return with_provenance(doc, **values)  # type: ignore[arg-type]


def test_stages_are_appended_to_a_copy() -> None:
    """Each stage is appended; the last one's score and rank are the document's; the original stays as it was."""
    original = Document("t", metadata={"page": 3})
    doc = stage(stage(original, score=2.0), score=0.5, rank=4, stage="rerank")
    record = get_provenance(doc)
    assert (record["score"], record["rank"]) == (0.5, 4)
    assert [entry["stage"] for entry in record["stages"]] == ["bm25", "rerank"]
    assert original.metadata == {"page": 3}


def test_numpy_and_other_values_become_json() -> None:
    """numpy scalars, arrays, dates, sets, bytes and unknown objects all survive json.dumps."""
    doc = stage(
        Document("t"),
        score=np.float32(0.5),
        rank=np.int64(2),
        vector=np.arange(2),
        when=datetime.date(2026, 1, 1),
        tags={"b", "a"},
        raw=b"\xff",
        nan=float("nan"),
        thing=object(),
    )
    record = get_provenance(doc)
    text = json.dumps(record, allow_nan=False)
    assert json.loads(text) == record
    assert type(record["score"]) is float and type(record["rank"]) is int
    assert record["stages"][0]["vector"] == [0, 1]


def test_sources_replace_the_earlier_stages() -> None:
    """Merging copies records the stages of all of them."""
    merged = stage(stage(Document("t")), stage="fusion:rrf", sources=[{"stage": "a"}, {"stage": "b"}])
    assert [entry["stage"] for entry in get_provenance(merged)["stages"]] == ["a", "b", "fusion:rrf"]


def test_notes_and_stripping() -> None:
    """Notes are kept once each and survive further stages; stripping leaves only the user's metadata."""
    doc = add_note(add_note(add_note(Document("t", metadata={"p": 1}), "n1"), "n2"), "n1")
    assert get_provenance(stage(doc))["notes"] == ["n1", "n2"]
    assert strip_provenance(doc).metadata == {"p": 1}
    assert PROVENANCE_KEY in doc.metadata


@pytest.mark.parametrize(
    "foreign", ["text", 3, None, [], {"stages": "x", "notes": 4}, {"stages": [1, {"stage": "s"}]}]
)
def test_foreign_values_under_the_key_do_no_harm(foreign: object) -> None:
    """A document from elsewhere that has something else under the key can still be used."""
    doc = Document("t", metadata={PROVENANCE_KEY: foreign})
    assert get_provenance(stage(doc))["stages"][-1]["stage"] == "bm25"
    assert get_provenance(add_note(doc, "n"))["notes"] == ["n"]


def test_get_provenance_is_a_copy() -> None:
    """Editing what get_provenance gave does not change the document."""
    doc = stage(Document("t"))
    get_provenance(doc)["stages"].clear()
    assert len(get_provenance(doc)["stages"]) == 1


@pytest.mark.slow
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.dates(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner) | st.tuples(inner),
    )
)
def test_to_plain_is_always_json(value: object) -> None:
    """Whatever goes in, what comes out is plain JSON, and stays as it is when converted again."""
    plain = to_plain(value)
    json.dumps(plain, allow_nan=False)
    assert to_plain(plain) == plain


def test_to_plain_ends_on_cycles() -> None:
    """A structure that holds itself is cut off, not followed for ever."""
    loop: list[object] = []
    loop.append(loop)
    json.dumps(to_plain(loop))


def test_notes_given_take_the_place_of_the_own_ones() -> None:
    """Notes for a joined document: repeats are left out, at most 32 are kept, the original is not changed."""
    doc = add_note(Document("t"), "own")
    assert get_provenance(stage(doc))["notes"] == ["own"]
    joined = stage(doc, notes=["a", "b", "a", *map(str, range(50))])
    assert get_provenance(joined)["notes"][:3] == ["a", "b", "0"]
    assert len(get_provenance(joined)["notes"]) == 32 and get_provenance(doc)["notes"] == ["own"]


def test_peeking_copies_nothing_and_survives_anything() -> None:
    """A view of the provenance, empty where there is none; what is no stage is left out."""
    doc = add_note(Document("t"), "n")
    assert peek_provenance(doc)["notes"] == ["n"] and peek_provenance(Document("t")) == {}
    odd = Document("t", metadata={PROVENANCE_KEY: {"stages": ["x", {"stage": "s"}], "notes": 5}})
    assert peek_provenance(odd)["stages"] == [{"stage": "s"}] and peek_provenance(odd)["notes"] == []
    assert peek_provenance(Document("t", metadata={PROVENANCE_KEY: "x"})) == {}


def ensemble(versions: list[str]) -> Any:
    """Two keyword searches, fused, for two versions of a question: what many chains hold."""
    documents = [Document(f"The fan of room {n} is loud. 风扇{n}", id=str(n)) for n in range(4)]
    words = kit.BM25Retriever.from_documents(documents, name="words")
    both = kit.EnsembleRetriever(retrievers=[words, words], name="both")
    model = FakeListChatModel(responses=[f'{{"queries": {json.dumps(versions)}}}'])
    return kit.MultiQueryRetriever.from_llm(model, both)


@pytest.mark.parametrize(
    ("question", "versions"),
    [
        ("Why is the fan of room 2 so loud at night?", ["fan noise in a room", "loud blower"]),
        ("为什么风扇2这么吵？\udc80", ["风扇噪音的原因", "风扇声音大怎么办"]),
    ],
)
def test_provenance_is_compact_and_any_store_takes_it(
    question: str, versions: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """A text of at most half the bytes; Chroma, JSON and a checkpoint give the same record and explanation back."""
    found = ensemble(versions).invoke(question)
    sizes = [
        (len(json.dumps(get_provenance(doc))), len(doc.metadata[PROVENANCE_KEY].encode("utf-8")))
        for doc in found
    ]
    with capsys.disabled():
        print(f"provenance, bytes a document: {sizes[0][0]} as a record, {sizes[0][1]} as kept")
    assert all(kept * 2 <= whole for whole, kept in sizes)
    chroma = Chroma(
        embedding_function=DeterministicFakeEmbedding(size=4), collection_name=f"p{uuid.uuid4().hex}"
    )
    ids = chroma.add_documents(found)
    stored = {doc.id: doc for doc in chroma.similarity_search("fan", k=9)}
    serde = JsonPlusSerializer()
    for one, again in [(doc, stored[key]) for key, doc in zip(ids, found, strict=True)]:
        assert get_provenance(again) == get_provenance(one)
        assert str(explain([again])) == str(explain([one]))
        assert json.loads(json.dumps(one.metadata)) == one.metadata
        assert serde.loads_typed(serde.dumps_typed(one)) == one


def test_a_record_of_an_earlier_version_is_read() -> None:
    """A dict under the key, as a thread's state of an earlier version holds it, is read and written on."""
    record = {"score": 1.0, "rank": 2, "stages": [{"stage": "bm25", "rank": 2, "score": 1.0}], "notes": ["n"]}
    old = Document("t", metadata={PROVENANCE_KEY: record})
    assert peek_score(old) == 1.0 and get_provenance(old)["notes"] == ["n"]
    assert [one["stage"] for one in get_provenance(stage(old, stage="rerank"))["stages"]] == [
        "bm25",
        "rerank",
    ]
