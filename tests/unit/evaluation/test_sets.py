"""Evaluation sets: what they are, and that a saved set comes back as it was."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation import EvaluationSet
from rag_kit.evaluation._files import write_jsonl
from rag_kit.evaluation.examples import Example, GoldSpan
from rag_kit.evaluation.outputs import Passage

EN = Example(
    "q1",
    "What moves the sea?",
    reference="The moon.",
    answers=("moon", "the moon"),
    reference_contexts=("The moon pulls the sea.",),
    relevant={"d1": 2, "d2": 0},
    spans=(GoldSpan("d1", "The moon", 0), GoldSpan("d1", "sea")),
    answerable=True,
    history=({"question": "Hi", "answer": "Hello"},),
    tags={"language": "en", "type": "single_hop"},
    metadata={"rubrics": {"1": "bad"}, "list": [1, 2.5, None]},
)
ZH = Example("q2", "什么引起潮汐？", tags={"language": "zh"}, answerable=False)


def test_examples_by_id_place_and_slice():
    """An id and a place give an example, a slice gives a set with the same name and corpus."""
    both = EvaluationSet("tides", [EN, ZH], corpus=["The moon pulls the sea."])
    assert both["q2"] is ZH and both[0] is EN and both[-1] is ZH
    assert list(both[1:]) == [ZH] and both[1:].corpus is both.corpus and both[1:].name == "tides"
    assert "q1" in both and EN in both and "q9" not in both
    with pytest.raises(KeyError, match="q9"):
        both["q9"]


def test_ids_are_unique():
    """Two examples with one id are refused with their places."""
    with pytest.raises(InvalidInputError, match=r"'q1'.*examples\[0\] and of examples\[2\]"):
        EvaluationSet("x", [EN, ZH, EN])


def test_the_corpus_takes_passages_documents_and_texts():
    """Each kind becomes a passage; provenance of a search stays out; one id with two texts is refused."""
    document = Document(id="d1", page_content="a", metadata={"year": 1, "rag_kit": {"rank": 1}})
    found = EvaluationSet("x", [EN], corpus=[document, "b", Passage("p", "c", {"t": (1,)})])
    assert [(p.text, p.metadata) for p in found.corpus or ()] == [
        ("a", {"year": 1}),
        ("b", {}),
        ("c", {"t": [1]}),
    ]
    assert found.documents()[0].id == "d1" and found.documents()[0].metadata == {"year": 1, "corpus_id": "d1"}
    with pytest.raises(InvalidInputError, match="'d1' and different texts"):
        EvaluationSet("x", [EN], corpus=[document, Document(id="d1", page_content="other")])
    with pytest.raises(InvalidInputError, match="has no corpus"):
        EvaluationSet("x", [EN]).documents()


def test_filter_and_slices():
    """By function, by tag, both; slices hold every example once."""
    both = EvaluationSet("tides", [EN, ZH])
    assert [e.id for e in both.filter(language="zh")] == ["q2"]
    assert [e.id for e in both.filter(lambda e: e.answerable, language="en")] == ["q1"]
    assert {k: [e.id for e in v] for k, v in both.slices("type").items()} == {
        "single_hop": ["q1"],
        "": ["q2"],
    }
    assert set(both.slices(lambda e: len(e.question) > 10)) == {"True", "False"}


@pytest.mark.parametrize("name", ["tides", "潮汐"])
@pytest.mark.parametrize("corpus", [None, [], [Passage("d1", "月球\n引力", {"page": 3})]])
def test_save_and_load_give_an_equal_set(tmp_path, name, corpus):
    """Name, examples, corpus and fingerprint come back, also where the name is not the file's."""
    before = EvaluationSet(name, [EN, ZH], corpus=corpus)
    after = EvaluationSet.load(before.save(tmp_path / "tides.jsonl"))
    assert after == before and after.fingerprint() == before.fingerprint()


def test_a_simple_set_is_plain_json_lines(tmp_path):
    """Without a corpus, every line is an example and nothing else."""
    EvaluationSet("tides", [EN, ZH]).save(tmp_path / "tides.jsonl")
    lines = (tmp_path / "tides.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["id"] for line in lines] == ["q1", "q2"] and "什么" in lines[1]


_TEXT = st.text(st.characters(codec="utf-8"), max_size=30)


@settings(deadline=None)
@given(
    question=_TEXT.filter(lambda t: t.strip()),
    reference=st.none() | _TEXT,
    answers=st.lists(_TEXT),
    metadata=st.dictionaries(_TEXT, st.none() | _TEXT | st.integers() | st.lists(_TEXT), max_size=3),
)
def test_any_text_survives_saving(tmp_path_factory, question, reference, answers, metadata):
    """Brackets, line ends, marks and quotes in texts come back as they were."""
    example = Example("e", question, reference=reference, answers=tuple(answers), metadata=metadata)
    before = EvaluationSet("set", [example])
    path = tmp_path_factory.mktemp("sets") / "set.jsonl"
    after = EvaluationSet.load(before.save(path))
    assert after[0].question == question and after[0].answers == tuple(answers)
    assert after.fingerprint() == before.fingerprint()


@pytest.mark.parametrize("blank", ["", " ", "\n", "\u3000"])
def test_a_blank_reference_is_none(tmp_path, blank):
    """A metric that needs a reference does not apply, and the set that was saved is the one that is loaded."""
    example = Example("q", "0", reference=blank)
    assert example.reference is None and example.missing({"reference"}) == ["reference"]
    before = EvaluationSet("a", [example])
    after = EvaluationSet.load(before.save(tmp_path / "a.jsonl"))
    assert after == before and after.fingerprint() == before.fingerprint()


def test_half_a_character_survives_and_a_failure_leaves_the_old_file(tmp_path):
    """A lone surrogate is written as an escape; where writing fails, what was there stays."""
    before = EvaluationSet("a", [Example("q", "\ud800?")])
    path = before.save(tmp_path / "a.jsonl")
    assert EvaluationSet.load(path) == before
    with pytest.raises(ValueError, match="JSON compliant"):
        write_jsonl(path, [{"n": 1}, {"n": float("nan")}])
    assert EvaluationSet.load(path) == before and [p.name for p in tmp_path.iterdir()] == ["a.jsonl"]
    with pytest.raises(InvalidInputError, match="ends in"):
        before.save(tmp_path / "a.csv")


def test_the_fingerprint_is_of_the_content():
    """Name and order do not count; a changed grade, reference or passage does."""
    base = EvaluationSet("a", [EN, ZH], corpus=["x"])
    assert base.fingerprint() == EvaluationSet("b", [ZH, EN], corpus=["x"]).fingerprint()
    others = [
        EvaluationSet("a", [EN]), EvaluationSet("a", [EN, ZH], corpus=["y"]), EvaluationSet("a", [EN, ZH]),
        EvaluationSet("a", [Example.from_json({**EN.to_json(), "relevant": {"d1": 1, "d2": 0}}), ZH], corpus=["x"]),
    ]  # fmt: skip
    assert len({base.fingerprint(), *(each.fingerprint() for each in others)}) == 5
