"""Declines are told from answers as language models really put them."""

from __future__ import annotations

from pathlib import Path

import pytest

from rag_kit.text.citations.decline import is_declined

EXAMPLES = Path(__file__).resolve().parents[2] / "support" / "citations"


def examples(kind: str, language: str) -> list[str]:
    return (EXAMPLES / f"{kind}_{language}.txt").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("language", ["en", "zh"])
def test_long_and_polite_declines_are_found(language: str) -> None:
    """At least 85% of refusals with apologies, advice and what the documents do contain are declines."""
    found = [is_declined(text) for text in examples("refusals", language)]
    assert sum(found) >= 0.85 * len(found)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_answers_that_negate_are_no_declines(language: str) -> None:
    """Answers made to be mistaken for declines ("was not in the documents of 1950", partial or polite) rarely are."""
    found = [is_declined(text) for text in examples("answers", language)]
    assert sum(found) <= 0.02 * len(found)


@pytest.mark.parametrize(
    "answer",
    [
        "The tower is 120 m high. The documents do not say when it was finished.",
        "The passages do not name the architect, but a plaque names Jonas Berg, so he was probably the architect.",
        "While the context does not state it directly, the answer is Vienna.",
        "According to the article, it has never included a harbour.",
        "The passages state that there is no evidence of a second fire.",
        "这座桥由李明设计。文档没有给出建造年份。",
        "文档没有直接说明，但可以推断他于1947年去世。",
    ],
)
def test_partial_answers_are_answers(answer: str) -> None:
    """An answer that adds what the documents lack, or concludes from what they hold, is no decline."""
    assert not is_declined(answer)


@pytest.mark.parametrize("part", ["[1] ", "the documents that you have ", "not, ", "i cannot ", "没有", "这"])
def test_repeated_parts_end(part: str) -> None:
    """A text of one repeated part neither raises nor runs away."""
    assert is_declined(part * (3000 // len(part))) in (True, False)
