"""The sentence that says an answer is not in the documents, and how others put it.

A decline is read clause by clause. A clause says that the sources lack something ("absent"), is about the sources or a
courtesy ("aside"), or states something else ("other"). An answer is a decline if the first clause that is not an
aside says that something is lacking, and little else is stated.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from rag_kit.text.citations.decline_patterns import CHINESE, CONCLUDED, ENGLISH, Rules
from rag_kit.text.language import fold
from rag_kit.text.sentences import sentences

DECLINED = {"en": "The answer is not in the documents.", "zh": "文档中没有答案。"}
"""The decline sentence that the prompts ask for, by language."""

_MAX_CHARS = 3000
_MAX_STATED = 1 / 3  # share of a decline that may state something else, in characters
_HAN = re.compile(r"[\u4e00-\u9fff]")
_MARK = re.compile(r"[\[［【]\s*\d[^\]］】]{0,40}[\]］】]")
# "The answer is not in the documents" in other languages: words for answer, for not, and for documents
_OTHER_LANGUAGES = Path(__file__).with_name("declines.txt").read_text(encoding="utf-8")
_MAX_SENTENCES_OTHER = 3
_MIN_STEM = 5  # letters of a word that others may begin with
# In "According to the manual, it does not contain lead" something else than the manual lacks something, so the
# opening is removed: it would name a source as what "it" stands for.
_ACCORDING_TO = re.compile(r"^according to [^,]{1,60}, (?=(?:it|they) (?:do|does|did|has|have|had|never)\b)")
_EDGES = "*_`\"'“”「」 "


def is_declined(answer: str) -> bool:
    """Tell whether an answer says that the documents do not hold it, and little else.

    Long and polite declines count too, with apologies, advice and what the documents do contain, and so does a text
    whose last sentence concludes that the question cannot be answered. A text that begins with a statement, draws
    another conclusion, or has over 3,000 characters is an answer, even if it adds what the documents lack. Twelve more
    languages are read for the sentence that the prompts ask for, however the model words it.

    Example:
        >>> is_declined("The answer is not in the documents."), is_declined("文档中没有答案。")
        (True, True)
        >>> is_declined("I'm sorry, but the context does not give the price. It only lists the colours.")
        True
        >>> is_declined("It was built in 1890. The documents do not say by whom."), is_declined("Paris.[1]")
        (False, False)
    """
    if len(answer) > _MAX_CHARS:
        return False
    if _declines_in_other_language(answer):
        return True
    last = "".join(sentence.text for sentence in sentences(answer)[-1:])
    if CONCLUDED.search(fold(last)) and not _MARK.search(last):
        return True
    is_cited = _MARK.search(answer) is not None
    clauses = list(_clauses(answer))
    source_named = any(re.search(rules.source, clause) for clause, rules in clauses)
    declined = False
    chars = other_chars = 0
    for clause, rules in clauses:
        chars += len(clause)
        says_lack = re.search(rules.absent, clause) or (not is_cited and re.search(rules.unsaid, clause))
        if says_lack or (source_named and re.search(rules.absent_later, clause)):
            declined = True
        elif re.search(rules.concludes, clause):
            return False
        elif not re.search(rules.aside, clause):
            if not declined or _MARK.search(clause):
                return False
            other_chars += len(clause)
    return declined and other_chars <= _MAX_STATED * chars


def _declines_in_other_language(answer: str) -> bool:
    """Tell whether the first or last sentence of a short answer declines in one of twelve further languages."""
    texts = [span.text.casefold() for span in sentences(answer)]
    if len(texts) > _MAX_SENTENCES_OTHER:
        return False
    cited = {text for text in texts if _MARK.search(text)}
    for *lacking, sources in _word_patterns():
        naming = {text for text in texts if re.search(sources, text)}
        for text in {*texts[:1], *texts[-1:]} - cited:
            # without a name of the sources these state an answer
            must_name = cited if text in naming else set(texts) - {text}
            if naming and must_name <= naming and all(re.search(words, text) for words in lacking):
                return True
    return False


@cache
def _word_patterns() -> list[list[str]]:
    """Return, for each language, three patterns that are all in a decline: words for answer, for not, for documents."""
    lines = [line.split(" / ") for line in _OTHER_LANGUAGES.splitlines()]
    return [["|".join(map(_word_pattern, words.strip().split("|"))) for words in line] for line in lines]


def _word_pattern(word: str) -> str:
    """Return a pattern for a word; a long one may have further letters, and scripts without blanks have no bounds."""
    if word > "\u2fff":
        return word
    return rf"\b{word}" if len(word) >= _MIN_STEM else rf"\b{word}\b"


def _clauses(answer: str) -> Iterator[tuple[str, Rules]]:
    """Cut an answer into folded clauses, each with the rules of its language."""
    for sentence in sentences(answer):
        text = _ACCORDING_TO.sub("", fold(sentence.text).strip(_EDGES))
        rules = CHINESE if _HAN.search(text) else ENGLISH
        clauses = (part.strip(" ，,。.!！") for part in re.split(rules.clause, text))
        yield from ((clause, rules) for clause in clauses if clause)
