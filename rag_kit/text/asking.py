"""The words a question asks by, which say nothing about its topic and are left out of a search for it."""

from __future__ import annotations

import re

from rag_kit.text.language import SIMPLIFIED, TRADITIONAL, cache_of_texts, word_set
from rag_kit.text.sentences import sentences

# Left out of a query that asks something. "who", "when" and "where" stay: without them questions about persons and
# times lose passages whose relative clauses have them (docs/decisions/0039).
_ASKING = word_set(
    "how what which why do does did can could should would am were been has have had i me my we us our please tell"
)
_CHINESE = (
    "请问|是?(?:为什么|为何|什么(?:意思|样|时候|时间|地方)?|怎么样?|怎样|如何|哪(?:些|[个一位里儿年种])?(?!咤)|谁|何[时地人处]|多少)"
    "|是否|吗(?!啡)|呢(?![绒喃])|我们?(?:可以|应该|需要|能|该|要|想)"
)
_ASKS = re.compile(
    rf"\b(?:how|what|which|why|who|whom|whose|when|where)\b|^\s*(?:do|does|did|can|could|should|would|please|tell)\b|{_CHINESE}",
    re.IGNORECASE,
)
_FIRST_PERSON = re.compile(r"\bI\b|\b(?i:me|my|we|us|our)\b|我")
# words, and what is quoted or a title, which is passed over
_WORDS = re.compile(
    rf"[A-Za-z]+(?:['’](?:s\b|[a-z]+))?|《[^》]*》|“[^”]*”|「[^」]*」|\"[^\"]*\"|(?P<chinese>{_CHINESE})"
)
_ARTICLE = re.compile(r"\b(?:the|an?)\s+$", re.IGNORECASE)
_PLAIN_WORD = re.compile(r"(?:^|\s)[a-z]")
_TO_SIMPLIFIED = str.maketrans(TRADITIONAL, SIMPLIFIED)


def asks(text: str) -> bool:
    """Tell whether a text has a question mark or words that ask.

    Example:
        >>> asks("Tell me about Emma."), asks("I live in Bath.")
        (True, False)
    """
    return "?" in text or "？" in text or _ASKS.search(text) is not None


def without_remarks(text: str) -> str:
    """Remove sentences in which askers speak of themselves and ask nothing, unless all are such.

    Example:
        >>> without_remarks("I live in Bath. Who wrote Emma?")
        'Who wrote Emma?'
    """
    texts = [sentence.text for sentence in sentences(text)]
    kept = [sentence for sentence in texts if asks(sentence) or not _FIRST_PERSON.search(sentence)]
    return " ".join(kept) if 0 < len(kept) < len(texts) else text


@cache_of_texts(256)
def without_question_words(query: str) -> str:
    """Remove question words, auxiliaries and pronouns of the asker from a question; other texts stay.

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
    if asks(query):
        return _WORDS.sub(_blank_or_word, query)
    return query


def _blank_or_word(match: re.Match[str]) -> str:
    """Return a blank for a question word; keep a noun after an article ("the can", "The Who") and a name."""
    word = match[0]
    lower = word.lower()
    if lower not in _ASKING and lower.removesuffix("'s").removesuffix("’s") not in _ASKING:
        return " " if match["chinese"] else word
    before = match.string[: match.start()]
    if _ARTICLE.search(before):
        return word
    if word in (lower, "I"):
        return " "
    if word.isupper():
        return " " if match.string.isupper() else word
    begins_sentence = before.rstrip()[-1:] in ("", *".?!:;")
    is_name = not begins_sentence and _PLAIN_WORD.search(match.string)  # in a title all words have capitals
    return word if is_name else " "
