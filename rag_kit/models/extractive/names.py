"""The names in a text: persons, places, titles, dates, amounts; by spelling, and by the Chinese dictionary's marks."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rag_kit.text import content_words
from rag_kit.text.language import HAN
from rag_kit.text.segment import tagged_words

_MOST = 200
_TITLE = re.compile(r"《([^《》]{1,60})》")
_DATE_ZH = re.compile(
    r"(?:公元前?)?\d{1,4}\s?年(?:\s?\d{1,2}\s?月(?:\s?\d{1,2}\s?[日号])?)?|\d{1,2}\s?月\s?\d{1,2}\s?[日号]"
)
_AMOUNT = re.compile(
    rf"(?<![\w.])[$€£¥￥]?\d+(?:[.,:]\d+)*(?:\s?(?:%|％|‰|°C|[a-zA-Z]{{1,3}}(?![a-zA-Z])|[{HAN}]{{1,2}}(?=[，。、；,.\s]|$)))?"
)
_CAPITALS = re.compile(r"[A-Z\u00c0-\u00de][\w'’&.\-]*[\w]|[A-Z](?![\w])")
_JOIN = re.compile(r"\s+(?:(?:of|the|de|van|von|du|la|and|for)\s+){0,2}")
_SENTENCE_END = re.compile(r"[.!?:;。！？：；\n“\"(]\s*$")
_COMMON = re.compile(r"(?:ed|ing|ly|s')$")
_NAME_FLAGS = ("nr", "ns", "nt", "nz")
_HAN_RUN = re.compile(f"[{HAN}·]{{2,2000}}")


def names(text: str) -> list[str]:
    """The names in a text, each once, in order.

    A capitalised word that only begins a sentence is taken unless its ending makes it a verb or an adverb.

    Example:
        >>> names("The Eiffel Tower stands in Paris. Completed in 1889, it is 330 m high.")
        ['Eiffel Tower', 'Paris', '1889', '330 m']
        >>> names("爱因斯坦生于德国，著有《相对论浅说》。")
        ['爱因斯坦', '德国', '相对论浅说']
    """
    found: list[tuple[int, int, str]] = []
    for pattern in (_TITLE, _DATE_ZH, _AMOUNT):
        for match in pattern.finditer(text):
            start, end = match.span(1 if match.re is _TITLE else 0)
            if not any(start < other[1] and other[0] < end for other in found[-_MOST:]):
                found.append((start, end, text[start:end].strip()))
    found.extend(_capitalised(text))
    found.extend(_chinese(text, found))
    found.sort()
    return list(dict.fromkeys(name for _, _, name in found if name))[:_MOST]


def _capitalised(text: str) -> Iterator[tuple[int, int, str]]:
    words = list(_CAPITALS.finditer(text))
    at = 0
    while at < len(words):
        last = at
        while last + 1 < len(words) and _JOIN.fullmatch(text[words[last].end() : words[last + 1].start()]):
            last += 1
        group = words[at : last + 1]
        at = last + 1
        opens = group[0].start() == 0 or _SENTENCE_END.search(
            text[max(0, group[0].start() - 4) : group[0].start()]
        )
        while group and (not content_words(group[0][0]) or (opens and _COMMON.search(group[0][0]))):
            group, opens = group[1:], None
        if group:
            start, end = group[0].start(), group[-1].end()
            yield start, end, text[start:end]


def _chinese(text: str, taken: list[tuple[int, int, str]]) -> Iterator[tuple[int, int, str]]:
    titles = [(start, end) for start, end, _ in taken if text[start - 1 : start] == "《"]
    for run in _HAN_RUN.finditer(text):
        if any(start <= run.start() and run.end() <= end for start, end in titles):
            continue
        place = run.start()
        for word, flag in tagged_words(run[0], guess=True):
            if len(word) > 1 and flag.startswith(_NAME_FLAGS):
                yield place, place + len(word), word
            place += len(word)
