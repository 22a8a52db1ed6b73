"""Pieces of documents that mix English and Chinese, and which questions about them are kept."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.documents import Document

from rag_kit.evaluation import generate
from rag_kit.evaluation.generating_pieces import Piece, example_of
from rag_kit.models.extractive.blocks import Prompt
from rag_kit.models.extractive.generating import generate_single_hop
from rag_kit.models.extractive.model import ExtractiveChatModel
from rag_kit.text import detect_language
from rag_kit.text.evidence.sentences import PassageText

ENGLISH = (
    "The Mizar pump was built in 1912 by Grace Weber, whom the town calls 水泵女士. It moves water from the lake to "
    "the mill of the town.\n\n天枢水泵建于1950年，由格蕾丝设计。\n\nThe Alkor mill was opened in 1873 by Ada Stone."
)
CHINESE = (
    "天枢水泵建于1912年，英文名叫 Dubhe pump，由格蕾丝设计，它把湖水送到磨坊，是全城最古老的水泵，至今仍在使用。"
    "天璇磨坊建于1873年，位于湖边，周围的居民都到这里磨面。\n\nThe Alkor mill was built in 1931 by Ada Stone."
)


@pytest.mark.parametrize("text", [ENGLISH, CHINESE])
def test_a_question_speaks_as_the_sentence_that_it_asks_about(text: str) -> None:
    """In both directions: a word of the other language in a sentence, and a sentence of it in a page."""
    found = generate(
        [Document(text, id="d")], ExtractiveChatModel(), n=6, per_passage=6, kinds=["single_hop"], seed=1
    )
    assert len(found) >= 2
    for example in found:
        asked = detect_language(example.spans[0].text)
        assert detect_language(example.question) == asked == example.tags["language"], example.question
    assert {example.tags["language"] for example in found} == {"en", "zh"}


@pytest.mark.parametrize(
    ("question", "quote", "kept"),
    [
        ("Who built the Alkor mill?", "The Alkor mill was built in 1931 by Ada Stone.", True),
        ("天玑磨坊是谁建造的？", "The Alkor mill was built in 1931 by Ada Stone.", False),
        (
            "By whom was the pump 天枢水泵 designed?",
            "天枢水泵建于1912年，英文名叫 Dubhe pump，由格蕾丝设计",
            False,
        ),
    ],
)
def test_another_language_than_the_sentences_is_dropped(question: str, quote: str, kept: bool) -> None:
    """The page is Chinese; what counts is the sentence quoted."""
    answer = "Ada Stone" if "Ada" in quote else "格蕾丝"
    reference = f"{answer} did." if detect_language(question) == "en" else f"是{answer}建造的。"
    item: dict[str, Any] = {
        "question": question,
        "answers": [answer],
        "reference": reference,
        "quotes": [quote],
    }
    found = example_of(item, "single_hop", [Piece("d", CHINESE, 0, "zh", {})], "auto")
    assert (found == "wrong_language") is not kept
    if kept:
        assert not isinstance(found, str) and found.tags["language"] == "en"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_set_of_one_language_stays_one(language: str) -> None:
    """A requested language leaves out sentences of the other one."""
    documents = [Document(ENGLISH, id="en"), Document(CHINESE, id="zh")]
    found = generate(
        documents, ExtractiveChatModel(), n=6, per_passage=6, kinds=["single_hop"], seed=1, language=language
    )
    assert len(found) >= 1
    assert {detect_language(example.question) for example in found} == {language}


@pytest.mark.parametrize(
    "markup",
    [
        "| s1 | The first steam engine of the valley was delivered in 1912 to the mill |",
        "# -> The first steam engine of the valley was delivered in 1912 to the mill.",
        "Engines [1] of the valley, as the old papers say, were delivered in 1912 to the mill.",
        "Call deliver(1912, 'mill') to see how the engines of the valley came to the mill in 1913.",
        "| s₃ | 这座山谷里的蒸汽机于1912年送到磨坊那里 |",
    ],
)
def test_no_gap_is_cut_into_tables_and_code(markup: str) -> None:
    """Rows of tables, code, its output and citation marks are no sentences that anybody would ask about."""
    prose = "The first steam engine of the valley, as papers say, was brought in 1912 to the mill."
    asked = [
        generate_single_hop(Prompt("generate_single_hop", passages=(PassageText(1, text),)))
        for text in (markup, prose)
    ]
    assert [len(reply["questions"]) for reply in asked] == [0, 1]
