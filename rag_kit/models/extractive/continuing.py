"""The tasks of an answer that grows by sentences: ``retrieve_needed``, ``continue_answer``, ``continue_unaided``."""

from __future__ import annotations

import re

from rag_kit.models.extractive.answer import MAX_SENTENCES, cite
from rag_kit.models.extractive.blocks import Prompt, Reply
from rag_kit.models.extractive.support import strength
from rag_kit.text import sentences
from rag_kit.text.evidence.passages import is_question
from rag_kit.text.evidence.question import analyse
from rag_kit.text.evidence.sentences import choose, collect, without_distraction
from rag_kit.text.evidence.terms import terms

END = "END"
_MAX_QUESTION = 4_000
_MARK = re.compile(r"\[\d+\]$")
_NOT_WORD = re.compile(r"\W+")
_SMALL_TALK = re.compile(
    r"\W*(?:hello|hi|hey|thanks|thank you(?: very much)?|good (?:morning|afternoon|evening|night)|bye|goodbye"
    r"|你好|您好|谢谢(?:你|您)?|多谢|早上好|下午好|晚上好|再见)[\s\W]*(?:there|all|everybody|大家|各位)?\W*",
    re.IGNORECASE,
)


def retrieve_needed(prompt: Prompt) -> Reply:
    """Look things up unless it is small talk: this model knows nothing by itself.

    Example:
        >>> retrieve_needed(Prompt("retrieve_needed", "", "Who made BM25?", (), (), None)).text
        'yes'
    """
    needed = "no" if _SMALL_TALK.fullmatch(prompt.question) else "yes"
    return Reply(needed, {"retrieve": needed}, as_json=True)


def continue_answer(prompt: Prompt) -> Reply:
    """The next sentences of the passage that answer the question, or END.

    A further sentence must hold a term of the question that the answer so far does not.

    Example:
        >>> from rag_kit.text.evidence.passages import PassageText
        >>> passage = PassageText(1, "BM25 ranks by words. It was made in the 1990s by Robertson.", "BM25")
        >>> continue_answer(Prompt("continue_answer", "", "Who made BM25?", (passage,), (), None)).text
        'It was made in the 1990s by Robertson.'
    """
    question = analyse(prompt.question[:_MAX_QUESTION])
    answer = prompt.block("answer")
    known = {_plain(one.text) for one in sentences(answer)}
    if len(known) >= MAX_SENTENCES:
        return Reply(END)
    found = collect(question, prompt.passages)
    picked = choose(question, found, MAX_SENTENCES)
    if strength(question, prompt.passages, found, picked) < 0.5:
        return Reply(END)
    answered = question.keys & frozenset(terms(answer))
    count = prompt.block("count")
    room = int(count) if count.isascii() and count.isdigit() and 0 < len(count) < 3 else 1
    texts = []
    for one in without_distraction(picked):
        text = _MARK.sub("", cite(one))
        if not is_question(text) and _plain(text) not in known and (not answer or one.matched - answered):
            texts.append(text)
    return Reply(" ".join(texts[:room]) or END)


def continue_unaided(prompt: Prompt) -> Reply:
    """END: without passages this model has nothing to say."""
    return Reply(END)


def _plain(text: str) -> str:
    return _NOT_WORD.sub("", text.casefold())
