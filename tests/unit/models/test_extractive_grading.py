"""The embedded model's part in Self-RAG: deterministic, by words, in both languages."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rag_kit.models import chat_model, structured_call, text_call
from rag_kit.models.extractive.blocks import Prompt
from rag_kit.models.extractive.model import perform
from rag_kit.prompts import load_prompt, render_passages

FAN = "The fan is red. The fan starts at 60 degrees. It stops at 50 degrees."
PUMP = "水泵是红色的。水泵在四十度时启动，在三十度时停止。"
MODEL = chat_model("extractive")


def ask(name: str, language: str = "en", **values: Any) -> Any:
    """A structured call with the packaged prompt."""
    for key in {"passages", "statements"} & values.keys():
        values[key] = render_passages([values[key]])
    prompt = load_prompt(name, language=language)
    call = structured_call if prompt.output_schema is not None else text_call
    return call(MODEL, prompt, values)


def critique(statement: str, language: str = "en", **values: Any) -> Any:
    """The labels of one statement."""
    [labels] = ask("critique", language, statements=statement, count=1, **values).labels
    return labels


@pytest.mark.parametrize(
    ("question", "language", "needed"),
    [
        ("When does the fan start?", "en", "yes"),
        ("Hello there!", "en", "no"),
        ("Thank you very much.", "en", "no"),
        ("水泵什么时候启动？", "zh", "yes"),
        ("你好！", "zh", "no"),
        ("Hello, when does the fan start?", "en", "yes"),
    ],
)
def test_everything_but_small_talk_is_looked_up(question: str, language: str, needed: str) -> None:
    """It knows nothing by itself."""
    assert ask("retrieve_needed", language, question=question, answer="").retrieve == needed


def test_an_answer_grows_by_sentences_that_add_something_and_ends() -> None:
    """First the sentence that answers, then what adds a term of the question, then END; two at once if asked for."""
    question = "At how many degrees does the fan start and when does it stop?"
    said = ask("continue_answer", question=question, passages=FAN, answer="", count="1")
    assert said == "The fan starts at 60 degrees."
    more = ask("continue_answer", question=question, passages=FAN, answer=said, count="1")
    assert more == "It stops at 50 degrees."
    assert (
        ask("continue_answer", question=question, passages=FAN, answer=f"{said} {more}", count="1") == "END"
    )
    both = ask("continue_answer", question=question, passages=FAN, answer="", count="2")
    assert both == f"{said} {more}"


@pytest.mark.parametrize("passage", ["Bananas ripen faster next to apples.", "When does the fan start?", ""])
def test_a_passage_that_does_not_answer_ends(passage: str) -> None:
    """Beside the point, a question itself, or empty."""
    values = {"question": "At how many degrees does the fan start?", "answer": "", "count": "1"}
    assert ask("continue_answer", passages=passage, **values) == "END"
    assert ask("continue_unaided", **values) == "END"


@pytest.mark.parametrize(
    ("statement", "support"),
    [
        ("The fan starts at 60 degrees.", "full"),
        ("The fan starts at 61 degrees.", "none"),
        ("Bananas ripen faster.", "none"),
    ],
)
def test_a_statement_is_held_against_its_passage(statement: str, support: str) -> None:
    """A changed number is no support."""
    values = {"question": "At how many degrees does the fan start?", "passages": FAN, "answer": ""}
    verdict = critique(statement, **values)
    assert (verdict.relevance, verdict.support) == ("relevant", support)


def test_usefulness_follows_what_is_asked_for() -> None:
    """The number that is asked for is worth more than a colour, a repetition or a question."""
    values = {"question": "At how many degrees does the fan start?", "passages": FAN}
    rating = {
        statement: critique(statement, answer=answer, **values).usefulness
        for statement, answer in [
            ("The fan starts at 60 degrees.", ""),
            ("The fan is red.", ""),
            ("The fan starts at 60 degrees", "The fan starts at 60 degrees."),
            ("At how many degrees does the fan start?", ""),
        ]
    }
    best, colour, again, question = rating.values()
    assert best >= 4 > colour and again <= 2 and question <= 2


def test_an_irrelevant_passage_is_labelled_so() -> None:
    """By the words that it shares with the question."""
    fruit = "Bananas ripen faster next to apples."
    verdict = critique(fruit, question="At how many degrees does the fan start?", passages=fruit, answer="")
    assert (verdict.relevance, verdict.support, verdict.usefulness) == ("irrelevant", "full", 1)


def test_chinese_continuation_and_critique() -> None:
    """The same in Chinese."""
    question = "水泵在几度时启动？"
    said = ask("continue_answer", "zh", question=question, passages=PUMP, answer="", count="1")
    assert said == "水泵在四十度时启动，在三十度时停止。"
    verdict = critique(said, "zh", question=question, passages=PUMP, answer="")
    assert (verdict.relevance, verdict.support) == ("relevant", "full")


def test_support_and_use_of_an_answer() -> None:
    """The graders of the loop: an invented number, a decline."""
    question = "At how many degrees does the fan start?"
    good = ask("grade_support", question=question, passages=FAN, answer="The fan starts at 60 degrees.[1]")
    bad = ask(
        "grade_support",
        question=question,
        passages=FAN,
        answer="The fan is red.[1] The fan starts at 61 degrees.[1]",
    )
    assert good.relevant and not bad.relevant
    assert bad.reason == "The passages do not say: The fan starts at 61 degrees."
    assert ask("grade_usefulness", question=question, answer="The fan starts at 60 degrees.[1]").relevant
    assert not ask(
        "grade_usefulness", question=question, answer="The answer is not in the documents."
    ).relevant
    assert not ask("grade_usefulness", question=question, answer="Bananas ripen.[1]").relevant


def test_rewriting_leaves_the_content_words_once() -> None:
    """Content words; where they were tried, the question again."""
    question = "Who wrote the novel Emma in England?"
    first = ask("rewrite_query", question=question, queries=question).query
    assert first == "wrote novel Emma England"
    assert ask("rewrite_query", question=question, queries=f"{question}\n{first}").query == question
    assert (
        ask("rewrite_query", "zh", question="水泵什么时候启动？", queries="水泵什么时候启动？").query
        == "水泵 启动"
    )


def test_an_answer_after_a_rejection_comes_from_the_passages() -> None:
    """A rejected answer is not repeated."""
    said = ask(
        "answer_again",
        question="At how many degrees does the fan start?",
        passages=FAN,
        answer="At 61 degrees.[1]",
        reason="61 is nowhere",
    )
    assert "60 degrees" in said and "61" not in said


@pytest.mark.parametrize(
    "task",
    ["retrieve_needed", "continue_answer", "continue_unaided", "critique", "critique_usefulness",
     "grade_support", "grade_usefulness", "rewrite_query", "answer_again"],
)  # fmt: skip
def test_empty_prompts_raise_nothing(task: str) -> None:
    """A prompt without any block still gets an answer; the same one twice."""
    prompt = Prompt(task)
    assert perform(prompt) == perform(prompt)
    if task not in ("continue_answer", "continue_unaided", "answer_again"):
        json.loads(perform(prompt))
