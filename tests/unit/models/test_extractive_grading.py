"""What the embedded judge takes for support, and its tasks of grading."""

from __future__ import annotations

import pytest

from rag_kit.models.extractive.blocks import Prompt
from rag_kit.models.extractive.evidence import PassageText
from rag_kit.models.extractive.grading import judge_nugget_support, judge_nuggets, relevant_sentences, said
from rag_kit.models.extractive.holding import Text

SPREAD = (
    "Ada Byron was born in 1815. She liked birds. She drew them. Lord Byron, a poet, was her father. Tea was served. "
    "She died in London in 1852."
)
SPREAD_ZH = "阿达出生于1815年。她喜欢鸟。她常常画鸟。她的父亲是诗人拜伦。那天有茶。她于1852年在伦敦去世。"


@pytest.mark.parametrize(
    ("text", "statement", "supported"),
    [
        (
            SPREAD,
            "Ada Byron, whose father was the poet Lord Byron, was born in 1815 and died in London.",
            True,
        ),
        (
            SPREAD,
            "Ada Byron, whose father was the poet Lord Byron, was born in 1816 and died in London.",
            False,
        ),
        (
            SPREAD,
            "Ada Byron, whose father was the poet Lord Byron, was born in 1815 and died in Paris.",
            False,
        ),
        (SPREAD, "Ada Byron was born in 1852.", False),
        (SPREAD, "Ada Byron was not born in 1815.", False),
        (SPREAD, "Grace Hopper was an admiral.", False),
        (SPREAD_ZH, "她的父亲是诗人拜伦。", True),
        (SPREAD_ZH, "阿达出生于1816年。", False),
        (SPREAD_ZH, "她的父亲不是诗人拜伦。", False),
    ],
)
def test_support_by_the_whole_text(text, statement, supported):
    """Facts from several places support a statement together; a changed number, name or negation does not pass."""
    assert (Text(text).verdict(statement).status == "supported") is supported


def test_the_quote_is_verbatim():
    """The quote of a verdict is a span of the text, also where the whole text supports the statement."""
    text = Text(SPREAD)
    found = text.verdict(
        "Ada Byron, whose father was the poet Lord Byron, was born in 1815 and died in London."
    )
    assert SPREAD[found.start : found.end]
    assert 0 <= found.start < found.end <= len(SPREAD)
    assert Text("").verdict("Ada Byron was born in 1815.").status == "unsupported"
    assert text.verdict("").status == "unsupported"


def test_support_of_several_passages():
    """Passages may support a statement one by one or together, in full or in part."""
    halves = ["The Rhine is 1,230 km long.", "The Rhine flows into the North Sea."]
    assert said("The Rhine flows into the North Sea.", halves) == "full"
    assert said("The Rhine is 1,230 km long and flows into the North Sea.", halves) == "full"
    assert said("The Rhine is 1,320 km long.", halves) == "none"
    assert said("Cats sleep.", halves) == "none"


def test_nuggets_are_sentences_each_once():
    """What holds words of the question and what it asks for is vital, the rest okay; never more than asked for."""
    passages = (
        PassageText(1, "Emma is a novel. Jane Austen wrote Emma."),
        PassageText(2, "Emma is a novel."),
    )
    body = "<count>{}</count>"
    prompt = Prompt("judge_nuggets", "", "Who wrote Emma?", passages, (), None, "", body.format(5))
    found = judge_nuggets(prompt).fields["nuggets"]
    assert sorted(one["text"] for one in found) == ["Emma is a novel.", "Jane Austen wrote Emma."]
    assert {one["text"]: one["importance"] for one in found}["Jane Austen wrote Emma."] == "vital"
    prompt = Prompt("judge_nuggets", "", "Who wrote Emma?", passages, (), None, "", body.format(1))
    assert len(judge_nuggets(prompt).fields["nuggets"]) == 1


def test_every_nugget_gets_its_label():
    """Each number has one label, also for an answer that says nothing."""
    passages = (PassageText(1, "Jane Austen wrote Emma."), PassageText(2, "Emma is set in Highbury."))
    for answer, expected in (("Jane Austen wrote Emma [1].", ["full", "none"]), ("", ["none", "none"])):
        prompt = Prompt("judge_nugget_support", "", "?", passages, (), None, "", f"<answer>{answer}</answer>")
        labels = judge_nugget_support(prompt).fields["labels"]
        assert [(one["id"], one["support"]) for one in labels] == list(enumerate(expected, start=1))


def test_relevant_sentences_of_nothing():
    """No sentence, or none that shares a word with the question, gives none."""
    assert relevant_sentences("Who wrote Emma?", []) == []
    assert relevant_sentences("Who wrote Emma?", ["Cats sleep.", "Dogs bark."]) == []
