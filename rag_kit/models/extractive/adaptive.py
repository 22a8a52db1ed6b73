"""The tasks ``classify_question``, ``clarify_question`` and ``direct_answer``: by the wording of the question."""

from __future__ import annotations

from rag_kit.models.extractive.blocks import Prompt, Reply
from rag_kit.text.citations.decline import DECLINED
from rag_kit.text.complexity import pointing_word, question_kind

_WHICH = {"en": 'What does "{}" refer to?', "zh": "“{}”指的是什么？"}
_WHAT = {"en": "What is your question about? Please name it.", "zh": "请问您想查的是什么？请写出名称。"}


def classify_question(prompt: Prompt) -> Reply:
    """Judge a question by rule.

    Example:
        >>> classify_question(Prompt("classify_question", "", "Is BM25 faster than SPLADE?", (), (), None)).text
        'multi'
    """
    kind = question_kind(prompt.question or prompt.user, has_history=bool(prompt.turns))
    return Reply(kind.complexity, kind._asdict(), as_json=True)


def clarify_question(prompt: Prompt) -> Reply:
    """Ask back for what a question points to.

    Example:
        >>> clarify_question(Prompt("clarify_question", "", "When does it start?", (), (), None)).text
        'What does "it" refer to?'
    """
    word = pointing_word(prompt.question)
    query = _WHICH[prompt.language].format(word) if word else _WHAT[prompt.language]
    return Reply(query, {"query": query}, as_json=True)


def direct_answer(prompt: Prompt) -> Reply:
    """Decline: without passages this model knows nothing.

    Example:
        >>> direct_answer(Prompt("direct_answer", "", "Hello!", (), (), None)).text
        'The answer is not in the documents.'
    """
    return Reply(DECLINED[prompt.language])
