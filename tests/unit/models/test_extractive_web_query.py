"""The extractive model's keywords for a web search, by rule; and the schema that any model fills in."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_kit.models import chat_model, structured_call
from rag_kit.models.schema import UnreadableError, target_of
from rag_kit.prompts import load_prompt
from rag_kit.prompts.schemas import MAX_KEYWORD, Keywords
from rag_kit.text import detect_language


def keywords(question: str) -> list[str]:
    """What the extractive model gives for the packaged prompt in the question's language."""
    prompt = load_prompt("web_query", language=detect_language(question))
    return structured_call(chat_model("extractive"), prompt, {"question": question}).keywords


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("What is Henry Feilden's occupation?", ["Henry", "Feilden", "occupation"]),
        ("Who wrote the first novel about Emma Woodhouse in Highbury?", ["wrote", "Woodhouse", "Highbury"]),
        ("鲁迅的原名是什么？", ["鲁迅", "原名"]),
        ("2023年诺贝尔物理学奖颁给了谁？", ["2023", "年", "诺贝尔物理学奖"]),
        ("why?", ["why?"]),
    ],
)
def test_the_longest_words_of_the_question(question: str, words: list[str]) -> None:
    """In the order of the question; a question without content words is its own keyword."""
    assert keywords(question) == words


@settings(max_examples=60, deadline=None)
@given(st.text(min_size=1, max_size=300).filter(str.strip))
def test_at_most_three_whatever_the_question(question: str) -> None:
    """Never more than three, never none, no repeats."""
    found = keywords(question)
    assert 1 <= len(found) <= 3
    assert len(set(found)) == len(found)


@pytest.mark.parametrize(
    ("given_words", "words"),
    [
        ("a\nb\nc\nd", ["a", "b", "c"]),
        (["x" * 999, " "], ["x" * MAX_KEYWORD]),
    ],
)
def test_the_schema_takes_what_models_write(given_words: Any, words: list[str]) -> None:
    """A text of lines, too many, too long: made right."""
    assert target_of(Keywords).accept({"keywords": given_words}).keywords == words


@pytest.mark.parametrize("given_words", [[], "", [""], None, 3, {"a": 1}])
def test_no_keyword_is_no_object(given_words: Any) -> None:
    """Then the caller's fallback counts."""
    with pytest.raises(UnreadableError):
        target_of(Keywords).accept({"keywords": given_words})
