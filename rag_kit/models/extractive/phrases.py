"""The words of a text that belong together: what is quoted, names, years, plain words side by side."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from rag_kit.text.analysis import load_segmenter
from rag_kit.text.evidence.questions import question_terms, terms

_MAX_WORDS = 5
_FRAMES = 0.3  # terms of this salience and less only frame a question
_PIECE = re.compile(
    r"[“\"「《『](?P<quoted>[^”\"」》』]{2,60})[”\"」》』]|(?P<year>\d+年(?:\d+月)?(?:\d+日)?)"
    r"|(?P<word>[A-Za-z0-9](?:[^\W\u3400-\u9fff]|['’.+#-])*)|[\u3400-\u9fff]+(?:[·•・][\u3400-\u9fff]+)*"
)
_END = re.compile(r"(?:['’]s|[.'’-])$")


class Phrase(NamedTuple):
    """Words that belong together, how much they pin a text down, whether they are a name, and where they end."""

    text: str
    weight: float
    named: bool
    end: int
    joins: bool = False


def phrases(text: str) -> list[Phrase]:
    """The phrases of a text, in order, repeated ones kept.

    Example:
        >>> [phrase.text for phrase in phrases("What is Henry Feilden's occupation?")]
        ['Henry Feilden', 'occupation']
    """
    result: list[Phrase] = []
    for word in _words(text):
        last = result[-1] if result else None
        gap = text[last.end : word.end - len(word.text)] if last else ""
        close = gap and gap.strip() in (("", "of", "of the") if word.named else ("",))
        joined = last and last.joins and word.joins and last.named == word.named and close
        if last and joined and len(last.text.split()) < _MAX_WORDS:
            longer = " ".join([last.text, *gap.split(), word.text])
            result[-1] = Phrase(longer, last.weight + word.weight, word.named, word.end, True)
        else:
            result.append(word)
    return result


def _words(text: str) -> Iterator[Phrase]:
    """The quoted texts, years and words of a text that say something."""
    by_key = {term.key: term for term in question_terms(text)}
    for match in _PIECE.finditer(text):
        if match["quoted"]:
            yield Phrase(match["quoted"], 3.0, True, match.end())
        elif match["year"]:
            yield Phrase(match["year"], 1.5, False, match.end())
        else:
            end = match.start()
            for word in [_END.sub("", match["word"])] if match["word"] else load_segmenter()(match[0]):
                end += len(word)
                word_terms = [by_key[key] for key in terms(word) if key in by_key]
                weight = max((term.salience for term in word_terms), default=0.0)
                if weight > _FRAMES and (match["word"] or len(word) > 1):
                    named = any(term.nominal for term in word_terms)
                    yield Phrase(word, weight, named, end, bool(match["word"]))
