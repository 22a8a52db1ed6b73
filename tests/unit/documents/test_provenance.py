from __future__ import annotations

import datetime
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document

from rag_kit.documents import (
    PROVENANCE_KEY,
    add_note,
    get_provenance,
    peek_provenance,
    strip_provenance,
    to_plain,
    with_provenance,
)


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
    record = doc.metadata[PROVENANCE_KEY]
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
