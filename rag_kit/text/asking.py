"""The words a question asks by, which say nothing about its topic and are left out of a search for it."""

from __future__ import annotations

import re

from rag_kit.text._traditional import SIMPLIFIED, TRADITIONAL

# Left out of a query that asks something. "who", "when" and "where" stay: without them questions about persons and
# times lose passages whose relative clauses have them (docs/decisions/0039).
_ASKING = (
    "how what which why do does did can could should would am were been has have had i me my we us our please"
    " tell"
)
_CHINESE = (
    "请问|是?(?:为什么|为何|什么(?:样|时候|时间|地方)?|怎么样?|怎样|如何|哪(?:些|[个一位里儿年种])?(?!咤)|谁|何[时地人处]|多少)"
    "|是否|吗(?!啡)|呢(?![绒喃])|我们?(?:可以|应该|需要|能|该|要|想)"
)
_ASKS = re.compile(
    r"\b(?:how|what|which|why|who|whom|whose|when|where)\b|[?？]|^\s*(?:do|does|did|can|could|should|would|please|tell)\b"
    rf"|{_CHINESE}",
    re.IGNORECASE,
)
# what is quoted, a title, and a noun after an article ("the can", "The Who") belong to the topic
_WORDS = re.compile(
    r"(?P<kept>《[^》]*》|“[^”]*”|「[^」]*」|\"[^\"]*\"|\b(?:the|an?)\s+\w+)"
    rf"|\b(?:{_ASKING.replace(' ', '|')})\b(?!['’]t)(?:['’]s)?|{_CHINESE}",
    re.IGNORECASE,
)
_TO_SIMPLIFIED = str.maketrans(TRADITIONAL, SIMPLIFIED)
_PLAIN_WORD = re.compile(r"(?:^|\s)[a-z]")
#: Terms, as an `Analyzer` makes them, of which a query has one if it holds a word to leave out.
ASKING_TERMS = frozenset(
    [*_ASKING.split(), "doe", "whi", "pleas", *"么怎哪谁何吗呢我", "请问", "多少", "是否"]
)


def without_question_words(query: str) -> str:
    """Leave out question words, auxiliaries and pronouns of the asker; a text that asks nothing stays as it is.

    A word in capitals, or with a capital inside a sentence, is taken for a name and stays, as does what is quoted.

    Example:
        >>> without_question_words("How do I cap the number of calls?").split()
        ['cap', 'the', 'number', 'of', 'calls?']
        >>> without_question_words("Which albums did The Who record?").split()
        ['albums', 'The', 'Who', 'record?']
        >>> without_question_words("如何限制调用次数？").strip()
        '限制调用次数？'
    """
    if not query.isascii():
        query = query.translate(_TO_SIMPLIFIED)
    if not _ASKS.search(query):
        return query
    return _WORDS.sub(lambda match: match[0] if match["kept"] or _is_name(match) else " ", query)


def _is_name(match: re.Match[str]) -> bool:
    """Whether a question word is written as names are."""
    word, before = match[0], match.string[: match.start()].rstrip()
    if word.lower() == word or word == "I":
        return False
    if word.isupper():
        return not match.string.isupper()
    return before[-1:] not in ("", *".?!:;") and _PLAIN_WORD.search(match.string) is not None
