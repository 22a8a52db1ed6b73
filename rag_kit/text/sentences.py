"""Sentences with their exact place in the source, in English and Chinese."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

from rag_kit.errors import InvalidInputError
from rag_kit.text.language import HAN

CLOSERS = "\"'”’»)\\]）】」』》〉｣］"
_STOP = re.compile(
    rf"(?P<stop>[.!?。！？｡．]+|…+|\.{{3,}})(?P<close>[{CLOSERS}]*)"
    r"(?P<cite>(?:[ \t]?\[\d{1,3}(?:[,，–-] ?\d{1,3})*\])*)"
)
_LINE = re.compile(r"[^\r\n\x0b\x0c\x85\u2028\u2029]*(?:\r\n|[\r\n\x0b\x0c\x85\u2028\u2029]|$)")
_SOFT = (re.compile(r"[;；]"), re.compile(r"[,，、:：]"), re.compile(r"\s"))


class Sentence(NamedTuple):
    """A sentence and where it stands: ``text == source[start:end]``."""

    text: str
    start: int
    end: int


def sentences(text: str, *, max_chars: int = 1000) -> list[Sentence]:
    """Cut a text into sentences.

    Ends are English and Chinese stops with the quotes, brackets and citation marks that follow them; blank
    lines, headings, list items and table rows stand alone; a hard-wrapped line runs on. Abbreviations, initials,
    decimals, list numbers, book titles (《…！》) and dots inside words do not end a sentence. What stays longer
    than ``max_chars`` is cut at a semicolon, comma or space.

    Args:
        text: Any text.
        max_chars: Longest sentence, in characters; at least 20.

    Returns:
        The sentences in order, without surrounding white space; together they hold every visible character.

    Raises:
        InvalidInputError: ``max_chars`` below 20.

    Example:
        >>> [s.text for s in sentences("Dr. Li paid $3.50. “真的吗？”他问。对。")]
        ['Dr. Li paid $3.50.', '“真的吗？”他问。', '对。']
    """
    if max_chars < 20:
        raise InvalidInputError(f"max_chars={max_chars} is too small; use 20 or more.")
    found: list[Sentence] = []
    for start, end in _blocks(text):
        for a, b in _cut_block(text, start, end):
            for c, d in _bounded(text, a, b, max_chars):
                found.append(Sentence(text[c:d], c, d))
    return found


def _blocks(text: str) -> Iterator[tuple[int, int]]:
    """Spans that no sentence crosses: lines, with hard-wrapped ones put together."""
    start = previous_start = previous_end = -1
    for match in _LINE.finditer(text):
        a, b = match.start(), match.end()
        line = text[a:b]
        blank = not line.strip()
        if start >= 0 and (blank or not joins_next_line(text[previous_start:previous_end], line)):
            yield start, previous_end
            start = -1
        if start < 0 and not blank:
            start = a
        previous_start, previous_end = a, b
    if start >= 0:
        yield start, previous_end


def _cut_block(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    begin = start
    for match in _STOP.finditer(text, start, end):
        if match.end() <= begin:
            continue
        cut = sentence_end(text, begin, end, match)
        if cut:
            yield begin, cut
            begin = cut
    if begin < end:
        yield begin, end


def _bounded(text: str, start: int, end: int, limit: int) -> Iterator[tuple[int, int]]:
    """Trim white space, then cut what is too long where it hurts least."""
    while True:
        start, end = _trimmed(text, start, end)
        if start >= end:
            return
        if end - start <= limit:
            yield start, end
            return
        cut = start + limit
        for pattern in _SOFT:
            places = [m.end() for m in pattern.finditer(text, start + limit // 2, start + limit)]
            if places:
                cut = places[-1]
                break
        yield start, _trimmed(text, start, cut)[1]
        start = cut


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """A span without the white space at its ends."""
    inner = text[start:end].strip()
    start += text[start:end].find(inner)
    return start, start + len(inner)


_HAN = re.compile(f"[{HAN}]")
_OPEN_TITLE = 60  # how far back an opening 《 is looked for

_MONTHS = _words("jan feb mar apr jun jul aug sep sept oct nov dec")
# Never the end, whatever follows.
TITLES = _words(
    "mr mrs ms mx dr prof st mt ft gen col lt sgt capt maj rep sen gov pres rev hon fr messrs mme mlle "
    "fig figs eq eqs eqn sec secs ch chap vol vols pp ref refs tab art cf viz vs e.g i.e eg ie ca approx resp"
).union(_MONTHS)
# The end only where the next word begins a sentence.
MAYBE_ABBREVIATIONS = _words(
    "etc inc ltd co corp bros jr sr al no nos p op ed eds dept univ assn ave blvd rd est ext max min avg "
    "a.m p.m u.s u.k u.n e.u u.s.a d.c ph.d m.d b.a m.a b.s m.s b.sc m.sc et"
)
BEFORE_NUMBER = _words("no nos p op art tab ed vol ch sec fig eq")
_STARTERS = _words(
    "the a an this that these those it he she we they i you in on at by for from with as if when while where "
    "there here however but and so also then thus our my his her its their what who why how after before "
    "although because since during both each many most some such to no not yet one two"
)
_RUN_ON = _words(
    "the a an of by for in on at to and or with from as is are was were that which their its our his her this "
    "these into than between et"
)
_WORD_BEFORE = re.compile(r"(?:^|[\s(\[“\"'‘—–/（，。、])([^\W\d_]+(?:\.[^\W\d_]+)*)$")
_LIST_NUMBER = re.compile(r"\s*[(（]?(?:\d{1,3}(?:\.\d{1,3})*|[a-zA-Z]|[ivxIVX]{1,4})$")
_SPEECH = re.compile(
    f"[{HAN}]{{0,3}}?(?:说道|问道|喊道|答道|叫道|笑道|写道|回答|表示|說道|問道|说|道|问|喊|叫|答|說|問|写)(?:[，。：,：；]|$|[{HAN}])"
)
_MARKER = re.compile(
    r"\s*(?:[-*+•·●○▪◦‣–—]\s|#{1,6}\s|>|\||```|~~~|[(（]?\d{1,3}[.)）、．]\s?|[(（]?[a-zA-Z][.)]\s|"
    r"[(（]?[一二三四五六七八九十百]{1,4}[)）、．.]|第[一二三四五六七八九十百\d]{1,4}[章节条篇部]|[①-⑳]|\[\d{1,3}\]\s)"
)
_STOPS = ".!?。！？｡．…:：;；"


def joins_next_line(line: str, following: str) -> bool:
    """Whether a line is hard-wrapped, so that its sentence goes on in the following line.

    Example:
        >>> joins_next_line("a line of text that was broken by the width of a\\n", "page of paper")
        True
        >>> joins_next_line("Shopping\\n", "- milk")
        False
    """
    line = line.strip()
    following = following.strip()
    if (
        _MARKER.match(following)
        or line.startswith(("#", "|", "```", "~~~"))
        or following.startswith(("```", "~~~"))
    ):
        return False
    last = line.rstrip(CLOSERS.replace("\\", ""))[-1:] or line[-1]
    if last in _STOPS or _width(line) < 40:
        return False
    first = following[0]
    if last in ",，、" or first.islower():
        return True
    if _HAN.match(first):
        return bool(_HAN.match(last))
    return line.rsplit(None, 1)[-1].lower() in _RUN_ON or last == "-"


def sentence_end(text: str, begin: int, end: int, match: re.Match[str]) -> int:
    """Where the sentence that began at ``begin`` ends, if the stop that was matched ends it; else 0."""
    stop = match["stop"]
    after = match.end()
    following = text[after : min(end, after + 40)]
    wide = any(character in "。！？｡" for character in stop)
    if not following.strip():
        return end
    if _inside_title(text, begin, match.start(), following, match["close"]):
        return 0
    if wide or _HAN.match(following[0]) or following[0] in "“「『《（":
        return _wide_stop(text, begin, match, following, wide)
    if not following[0].isspace():
        # A stop glued to what follows is a file name, a number, an address; unless a citation mark closed it.
        return after if match["cite"] and following[0].isupper() else 0
    word = following.split(None, 1)[0] if following.strip() else ""
    opening = word.lstrip("\"'“‘«([（「『*_")
    first = opening[:1]
    if first.islower() or (stop == "." and _is_abbreviation(text, begin, match, opening)):
        return 0
    return after


def _wide_stop(text: str, begin: int, match: re.Match[str], following: str, wide: bool) -> int:
    stop, close, after = match["stop"], match["close"], match.end()
    before = text[match.start() - 1 : match.start()]
    if stop in {".", "．"}:
        # "v2.0版" and "3．5": a dot between word characters; "……模型.接着" is a stop typed in ASCII.
        typed_in_ascii = (_HAN.match(before) or close) and not before.isdigit()
        return after if typed_in_ascii and _HAN.match(following[0]) else 0
    if not wide and set(stop) <= {"…", "."}:
        return after if close or (len(stop) > 1 and match.start() - begin >= 8) else 0
    if not wide and not _HAN.match(before) and not close:
        return after if _HAN.match(following[0]) or following[0] in "“「『《" else 0
    if close and close[0] in "”」』\"’'" and _SPEECH.match(following):
        return 0
    if close and close[0] in "）)】]》" and not following[0].isspace():
        return 0
    return after


def _inside_title(text: str, begin: int, position: int, following: str, close: str) -> bool:
    window = text[max(begin, position - _OPEN_TITLE) : position]
    return window.rfind("《") > window.rfind("》") and ("》" in following or "》" in close)


def _is_abbreviation(text: str, begin: int, match: re.Match[str], following: str) -> bool:
    if match["close"] or match["cite"]:
        return False
    before = text[max(begin, match.start() - 24) : match.start()]
    if match.start() - begin < 8 and _LIST_NUMBER.fullmatch(text[begin : match.start()]):
        return True
    found = _WORD_BEFORE.search(before)
    if not found:
        return False
    word = found[1].lower()
    starts = re.sub(r"\W+$", "", following).lower() in _STARTERS
    if word in BEFORE_NUMBER and following[:1].isdigit():
        return True
    if len(word) == 1:
        # An initial: "J. Smith". After "vitamin C." a new sentence shows by its first word.
        return word != "i" and found[1].isupper() and not starts
    if word in TITLES:
        # "May", "Sat" and the like are left out above; a month at an end is followed by a starter.
        return not (starts and word in _MONTHS)
    if word in MAYBE_ABBREVIATIONS:
        return word not in {"no", "p", "ed", "max", "min"} and not starts
    return "." in word and all(len(part) == 1 for part in word.split(".")) and not starts


def _width(line: str) -> int:
    if line.isascii():
        return len(line)
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in line[:80])
