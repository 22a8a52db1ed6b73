"""The task ``web_query``: the keywords of a question, by rule."""

from __future__ import annotations

import re

from rag_kit.models.extractive.blocks import Prompt, Reply
from rag_kit.text.evidence.terms import question_terms, terms
from rag_kit.text.segment import load_segmenter

MOST = 3
MAX_QUESTION = 1_000
_MAX_WORDS = 5
_FRAMES = 0.3  # terms of this salience and less only frame a question
_QUOTED = re.compile(r"[“\"「《『]([^”\"」》』]{2,60})[”\"」》』]")
_WORD = re.compile(r"[A-Za-z0-9][\w'’.+#-]*|[\u3400-\u9fff]+(?:[·•・][\u3400-\u9fff]+)*")
_YEAR = re.compile(r"\d+年(?:\d+月)?(?:\d+日)?")
_HAN = re.compile(r"[\u3400-\u9fff]")


def web_query(prompt: Prompt) -> Reply:
    """At most three keywords: what is quoted, names, then the rarest words, in the order of the question.

    Example:
        >>> web_query(Prompt("web_query", "", "What is Henry Feilden's occupation?", (), (), None)).fields
        {'keywords': ['Henry Feilden', 'occupation']}
    """
    found = keywords((prompt.question or prompt.user).strip())
    return Reply(", ".join(found), {"keywords": found}, as_json=True)


def keywords(question: str) -> list[str]:
    """The keywords of a question; the question itself, cut, where it has none.

    Example:
        >>> keywords("《红楼梦》的作者出生于哪一年？")
        ['红楼梦', '作者']
    """
    question = question[:MAX_QUESTION]
    found: dict[str, tuple[float, int]] = {}
    rest = question
    for pattern in (_QUOTED, _YEAR):
        for match in pattern.finditer(question):
            inner = match[1] if pattern is _QUOTED else match[0]
            found.setdefault(inner, (3.0 if pattern is _QUOTED else 1.5, match.start()))
        rest = pattern.sub(lambda match: "," * len(match[0]), rest)
    for words, weight, at in runs(rest):
        text = words if _HAN.search(words) else " ".join(words.split())
        if text not in found:
            found[text] = (weight, at)
    best = sorted(found, key=lambda text: (-found[text][0], found[text][1]))[:MOST]
    return sorted(best, key=lambda text: found[text][1]) or [question[:200]]


def runs(text: str) -> list[tuple[str, float, int]]:
    """Words that belong together: neighbours that are all names or all plain, with nothing between them."""
    salience = {term.key: (term.salience, term.nominal) for term in question_terms(text)}
    runs: list[tuple[int, int, float, bool, int]] = []
    for start, end in _words(text):
        known = [salience[key] for key in terms(text[start:end]) if key in salience]
        weight = max((value for value, _ in known), default=0.0)
        if weight <= _FRAMES:
            continue
        named = any(nominal for _, nominal in known)
        if runs:
            first, last, before, was_named, count = runs[-1]
            gap = text[last:start]
            together = was_named == named and count < _MAX_WORDS and not gap.strip() and gap != ""
            if together:
                runs[-1] = (first, end, before + weight, named, count + 1)
                continue
        runs.append((start, end, weight, named, 1))
    return [(text[first:last], weight, first) for first, last, weight, _, _ in runs]


def _words(text: str) -> list[tuple[int, int]]:
    found = []
    for match in _WORD.finditer(text):
        if not _HAN.match(match[0]):
            word = re.sub(r"(?:['’]s|[.'’-])$", "", match[0])
            found.append((match.start(), match.start() + len(word)))
            continue
        at = match.start()
        for word in load_segmenter()(match[0]):
            if len(word) > 1:
                found.append((at, at + len(word)))
            at += len(word)
    return found
