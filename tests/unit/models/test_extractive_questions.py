"""The extractive model's tasks of Adaptive-RAG: what a question needs, the next step, a question back."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_kit.models import chat_model, structured_call, text_call
from rag_kit.models.schema import target_of
from rag_kit.prompts import load_prompt, render_passages
from rag_kit.prompts.rendering import render_history
from rag_kit.prompts.schemas import MAX_KEYWORD, Keywords
from rag_kit.text import detect_language
from rag_kit.text.citations.decline import DECLINED
from rag_kit.text.complexity import question_kind

KINDS = [
    ("Hello!", "chat", "none"),
    ("Hi there, how are you?", "chat", "none"),
    ("Thanks a lot!", "chat", "none"),
    ("你好！", "chat", "none"),
    ("谢谢你的帮助。", "chat", "none"),
    ("您能做什么？", "chat", "none"),
    ("Thanks, what is BM25?", "question", "single"),
    ("Who wrote Emma?", "question", "single"),
    ("What is the capital of France?", "question", "single"),
    ("水泵什么时候启动？", "question", "single"),
    ("How long does it take to charge the battery?", "question", "single"),
    ("Where was hepcidin first discovered?", "question", "single"),
    ("Is it legal to park here at night?", "question", "single"),
    ("When does the fan start if it is hot?", "question", "single"),
    ("What is the difference between BM25 and SPLADE?", "question", "multi"),
    ("Compare BM25 and SPLADE.", "question", "multi"),
    ("Where was the director of Alien born?", "question", "single"),
    ("长江和黄河有什么区别？", "question", "multi"),
    ("《活着》的作者毕业于哪所大学？", "question", "single"),
    ("When does it start?", "unclear", "single"),
    ("And in 2020?", "unclear", "single"),
    ("Why?", "unclear", "single"),
    ("它什么时候启动？", "unclear", "single"),
    ("那北京呢？", "unclear", "single"),
    ("When does it start? (the pump)", "question", "single"),
]


@pytest.mark.parametrize(("question", "intent", "complexity"), KINDS)
def test_what_a_question_needs(question: str, intent: str, complexity: str) -> None:
    """By wording, in both languages; the reason is in the question's language."""
    kind = question_kind(question)
    assert (kind.intent, kind.complexity) == (intent, complexity)
    assert detect_language(kind.reason) == detect_language(question)


@pytest.mark.parametrize("question", [q for q, intent, _ in KINDS if intent == "unclear"])
def test_with_a_history_nothing_is_unclear(question: str) -> None:
    """A reference may point to the conversation."""
    assert question_kind(question, has_history=True).intent == "question"


@pytest.mark.slow
@given(st.text(max_size=3000))
@settings(max_examples=40, deadline=None)
def test_any_text_has_a_kind(text: str) -> None:
    """Never an exception, always a known kind, and bounded work."""
    kind = question_kind(text)
    assert kind.intent in {"chat", "question", "unclear"} and kind.complexity in {"none", "single", "multi"}


@pytest.mark.parametrize(
    "text",
    [
        "the director " * 500,
        "who is older, " * 300 + "or",
        "比" * 2000,
        "的导演" * 700,
        "What is the wife of the " * 200,
        "是什么，" * 600,
    ],
)
def test_long_texts_take_no_long_time(text: str) -> None:
    """No pattern runs away."""
    start = time.perf_counter()
    question_kind(text)
    hop(text)
    assert time.perf_counter() - start < 2.0


def hop(question: str, *steps: tuple[str, str]) -> Any:
    turns = [turn for asked, said in steps for turn in (("user", asked), ("assistant", said))]
    language = detect_language(question)
    values = {"question": question, "history": render_history(turns), "count": 3}
    return structured_call(chat_model("extractive"), load_prompt("next_hop", language=language), values)


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("Compare BM25 and SPLADE in terms of memory.", ["BM25 memory", "SPLADE memory"]),
        ("比较北京和上海的房价", ["北京的房价", "上海的房价"]),
        ("Where was the director of Alien born?", ["Where was the director of Alien born?"]),
        ("谁写了《家》？", ["谁写了《家》？"]),
    ],
)
def test_steps_end_by_themselves(question: str, asked: list[str]) -> None:
    """Each thing that is compared once, any other question as it is; then done."""
    steps: list[tuple[str, str]] = []
    while not (found := hop(question, *steps)).done:
        steps.append((found.query, "x"))
    assert [text for text, _ in steps] == asked


def answered(question: str, steps: list[str], texts: list[str]) -> str:
    turns = [turn for asked in steps for turn in (("user", asked), ("assistant", "x"))]
    language = detect_language(question)
    values = {"question": question, "history": render_history(turns), "passages": render_passages(texts)}
    return text_call(chat_model("extractive"), load_prompt("answer_from_hops", language=language), values)


def test_the_answer_holds_a_sentence_for_each_step() -> None:
    """With the number of its passage; a step without evidence adds nothing; no evidence at all declines."""
    texts = ["The Rhine is 1230 km long.", "The Danube is 2850 km long."]
    steps = ["How long is the Danube?", "How long is the Rhine?", "Who wrote Emma?"]
    said = answered("Is the Danube longer than the Rhine?", steps, texts)
    assert said == "The Danube is 2850 km long.[2] The Rhine is 1230 km long.[1]"
    assert answered("Who wrote Emma?", ["Who wrote Emma?"], texts) == DECLINED["en"]
    assert answered("谁写了《家》？", ["谁写了《家》？"], ["水泵在四十度时启动。"]) == DECLINED["zh"]


@pytest.mark.parametrize(
    ("question", "word"), [("When does it start?", "question about?"), ("它什么时候启动？", "想查的是什么")]
)
def test_the_question_back_asks_for_the_name(question: str, word: str) -> None:
    """In the language of the question."""
    language = detect_language(question)
    prompt = load_prompt("clarify_question", language=language)
    found = structured_call(chat_model("extractive"), prompt, {"question": question, "reason": "x"})
    assert word in found.query and detect_language(found.query) == language


def keywords(question: str) -> list[str]:
    """Return the extractive model's reply to the packaged prompt in the question's language."""
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


@settings(max_examples=30, deadline=None)
@given(st.text(min_size=1, max_size=300).filter(str.strip))
def test_at_most_three_whatever_the_question(question: str) -> None:
    """Never more than three, never none, no repeats."""
    found = keywords(question)
    assert 1 <= len(found) <= 3
    assert len(set(found)) == len(found)


@pytest.mark.parametrize(
    ("given_words", "words"), [("a\nb\nc\nd", ["a", "b", "c"]), (["x" * 999, " "], ["x" * MAX_KEYWORD])]
)
def test_the_schema_takes_what_models_write(given_words: Any, words: list[str]) -> None:
    """A text of lines, too many, too long: made right."""
    assert target_of(Keywords).accept({"keywords": given_words}).keywords == words
