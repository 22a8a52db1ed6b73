"""The task ``rewrite_query``: the question in fewer and fewer words, until a query was not tried yet."""

from __future__ import annotations

import re

from rag_kit.models.extractive.blocks import Prompt, Reply
from rag_kit.text import content_words
from rag_kit.text.evidence.question import analyse
from rag_kit.text.evidence.terms import FRAME_WORDS

_MAX_QUESTION = 2_000
_HAN = re.compile(r"[\u3400-\u9fff]")
_FRAME_ZH = re.compile(
    r"请问|为什么|为何|什么时[候间]|何时|何地|何处|何人|什么|哪[一]?[个些里儿位年天种]|多少|多[大长高久远]|如何|怎样|怎么样?"
    r"|是不是|有没有|[谁吗呢吧的了是在有？?！!，,。]"
)
_WORD = re.compile(r"[^\W_][\w'’.+-]*")


def rewrite_query(prompt: Prompt) -> Reply:
    """The content words of the question, then the names and numbers among them, then its longest word.

    Returns:
        The first of these that is not among the lines of the block ``queries``; the question if all are.

    Example:
        >>> body = "<queries>Who wrote the novel Emma?</queries>"
        >>> rewrite_query(Prompt("rewrite_query", "", "Who wrote the novel Emma?", (), (), None, "", body)).text
        'wrote novel Emma'
    """
    question = prompt.question[:_MAX_QUESTION].strip()
    tried = {_plain(line) for line in prompt.block("queries").splitlines()}
    words = _words(question)
    names = {term.key for term in analyse(question).terms if term.nominal}
    named = [word for word in words if names & set(content_words(word))]
    options = [" ".join(words), " ".join(named), max(words, key=len, default="")]
    query = next((one for one in options if one and _plain(one) not in tried), question)
    return Reply(query, {"query": query}, as_json=True)


def _words(question: str) -> list[str]:
    """The words that say what is looked for; runs of Chinese are split where words of a question stand."""
    if _HAN.search(question):
        return [part for part in _FRAME_ZH.sub(" ", question).split() if part]
    words = [match.group().rstrip(".") for match in _WORD.finditer(question)]
    return [word for word in words if content_words(word) and word.lower() not in FRAME_WORDS]


def _plain(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip("?？.。 ")
