"""Sentences with their exact offsets in the source, in English and Chinese."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from rag_kit.errors import InvalidInputError
from rag_kit.text.language import HAN, detect_language, word_list, word_set

_CLOSERS = "\"'”’»)\\]）】」』》〉｣］"
_STOP = re.compile(
    rf"(?P<stop>[.!?。！？｡．]+|…+|\.{{3,}})(?P<close>[{_CLOSERS}]*)"
    r"(?P<cite>(?:[ \t]?\[\d{1,3}(?:[,，–-] ?\d{1,3})*\])*)"
)
_LINE = re.compile(r"[^\r\n\x0b\x0c\x85\u2028\u2029]*(?:\r\n|[\r\n\x0b\x0c\x85\u2028\u2029]|$)")
_ROW = re.compile(r"\s*\|.*\|(?:\s*[\[【][\d,，、 –-]+[\]】])*\s*(?!.)")  # citations may follow the last bar
# the stop at the end of a sentence, also before closing quotes and brackets: 'so.")'
_ENDED = re.compile(r"[.!?。！？…][\"'”’」』)）\]]*$")
_SOFT = (re.compile(r"[;；]"), re.compile(r"[,，、:：]"), re.compile(r"\s"))


class Sentence(NamedTuple):
    """A sentence and its offsets: ``text == source[start:end]``."""

    text: str
    start: int
    end: int


def sentences(text: str, *, max_chars: int = 1000) -> list[Sentence]:
    """Cut a text into sentences, in order and without surrounding white space; no visible character is lost.

    Ends are English and Chinese stops with the quotes, brackets and citation marks that follow them; blank
    lines, headings, list items and table rows are sentences of their own; a hard-wrapped line runs on. Abbreviations,
    initials, decimals, list numbers, book titles (《…！》) and dots inside words do not end a sentence. A sentence
    longer than ``max_chars`` (at least 20) is cut at a semicolon, comma or space.

    Raises:
        InvalidInputError: ``max_chars`` is below 20.

    Example:
        >>> [s.text for s in sentences("Dr. Li paid $3.50. “真的吗？”他问。对。")]
        ['Dr. Li paid $3.50.', '“真的吗？”他问。', '对。']
    """
    if max_chars < 20:
        raise InvalidInputError(f"max_chars={max_chars} is too small; use 20 or more.")
    spans = (span for block in _blocks(text) for span in _cut_block(text, *block))
    pieces = (piece for span in spans for piece in _cut_long(text, *span, max_chars))
    return [Sentence(text[start:end], start, end) for start, end in pieces]


def _blocks(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of spans that no sentence crosses: lines, or hard-wrapped lines joined."""
    start = end = 0
    previous = ""
    for match in _LINE.finditer(text):
        line = match[0].strip()
        if not (previous and line and _joins_next_line(previous, line)):
            if start < end:
                yield start, end
            start = match.start()
        end, previous = match.end(), line
    yield start, end


def _cut_block(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Cut a block into sentences, with the white space between them; a row of a table is one."""
    if not _ROW.match(text, start, end):
        for match in _STOP.finditer(text, start, end):
            if match.end() > start and _ends_sentence(text, start, end, match):
                yield start, match.end()
                start = match.end()
    yield start, end


def _cut_long(text: str, start: int, end: int, limit: int) -> Iterator[tuple[int, int]]:
    """Cut a sentence into pieces of at most `limit` characters, without white space around them.

    Each ends at the last semicolon in its second half, else at the last comma or blank there, else at the limit.
    """
    start, end = _trim(text, start, end)
    while end - start > limit:
        cut = start + limit
        for pattern in _SOFT:
            if ends := [match.end() for match in pattern.finditer(text, start + limit // 2, start + limit)]:
                cut = ends[-1]
                break
        yield _trim(text, start, cut)
        start, end = _trim(text, cut, end)
    if start < end:
        yield start, end


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    inner = text[start:end].strip()
    start += text[start:end].find(inner)
    return start, start + len(inner)


_HAN = re.compile(f"[{HAN}]")
_OPEN_TITLE = 60  # how far back an opening 《 is looked for
_AHEAD, _BEHIND = 40, 24  # characters read behind a stop (for a word, or the end of a title), and before it
_MAX_LIST_NUMBER = 8
_MIN_WRAPPED = 40  # columns of a line that was broken by the width of a page

_NEVER_LAST = word_list("never last")
_RARELY_LAST = word_list("rarely last")  # only where the next word begins a sentence
_BEFORE_NUMBER = word_set("no nos p op art tab ed vol ch sec fig eq")
_FIRST_WORDS = word_list("first words")
_WORD_BEFORE = re.compile(r"(?:^|[\s(\[“\"'‘—–/（，。、])([^\W\d_]+(?:\.[^\W\d_]+)*)$")
_INITIALS = re.compile(r"[^\W\d_a-zI]|[^\W\d_](?:\.[^\W\d_])+")
_SPACED = re.compile(r"(?:^|[\s(])[a-zäöü](?:\. [A-Za-zÄÖÜ]\||\|[A-Za-zÄÖÜ]\.$)")  # z. B.; | is the stop
_GERMAN_DAY = re.compile(r"(?:^|[\s(])(?:[012]?\d|3[01])$")
_GERMAN_ORDINAL = re.compile(
    r"\b(?:[Dd](?:er|ie|as|e[mns])|[Ii]m|[VvBb](?:om|eim)|[Zz]u[mr]|[Jj]ede[rsnm]) \d{1,3}$"
)
AFTER_DAY = re.compile(
    r"(?:Januar|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember|Jahrhunderts?|Quartals?"
    r"|Stock|Etage|Tag(?:e[sn]?)?|Woche|Monats?|Lebensjahrs?|Auflage|Klasse|Geburtstage?s?)\b"
)
_LIST_NUMBER = re.compile(r"\s*[(（]?(?:\d{1,3}(?:\.\d{1,3})*|[a-zA-Z]|[ivxIVX]{1,4})$")
_SPEECH = re.compile(
    f"[{HAN}]{{0,3}}?(?:说道|问道|喊道|答道|叫道|笑道|写道|回答|表示|說道|問道|说|道|问|喊|叫|答|說|問|写)(?:[，。：,：；]|$|[{HAN}])"
)
MARKER = re.compile(
    r"(?:[-*+•·●○▪◦‣–—]\s|#{1,6}\s|>|\||```|~~~|[(（]?\d{1,3}[.)）、．]\s?|[(（]?[a-zA-Z][.)]\s|"
    r"[(（]?[一二三四五六七八九十百]{1,4}[)）、．.]|第[一二三四五六七八九十百\d]{1,4}[章节条篇部]|[①-⑳]|\[\d{1,3}\]\s)"
)
_STOPS = ".!?。！？｡．…:：;；"


def _joins_next_line(line: str, following: str) -> bool:
    """Tell whether a line is hard-wrapped, so that its sentence goes on in the following line."""
    if MARKER.match(following) or line.startswith(("#", "|", "```", "~~~")):
        return False
    last = line.rstrip(_CLOSERS.replace("\\", ""))[-1:] or line[-1]
    if last in _STOPS or len(line) + len(_HAN.findall(line)) < _MIN_WRAPPED:
        return False
    if last in ",，、-" or following[0].islower():
        return True
    return bool(_HAN.match(following) and _HAN.match(last))


def _ends_sentence(text: str, begin: int, end: int, match: re.Match[str]) -> bool:
    """Tell whether the stop ``match`` ends the sentence from ``begin``, in a block that ends at ``end``."""
    following = text[match.end() : min(end, match.end() + _AHEAD)]
    if not following.strip():
        return True
    before = text[max(begin, match.start() - _OPEN_TITLE) : match.start()]
    if before.rfind("《") > before.rfind("》") and "》" in match["close"] + following:  # inside a title
        return False
    full_width = any(character in "。！？｡" for character in match["stop"])
    if full_width or _HAN.match(following) or following[0] in "“「『《（":
        return _ends_chinese(text, match, following, full_width)
    if not following[0].isspace():
        # A stop glued to what follows is a file name, a number, an address; unless a citation mark closed it.
        return bool(match["cite"]) and following[0].isupper()
    word = following.split(None, 1)[0].lstrip("\"'“‘«([（「『*_")
    if word[:1].islower():
        return False
    return match["stop"] != "." or not _is_abbreviation(text, begin, match, word)


def _ends_chinese(text: str, match: re.Match[str], following: str, full_width: bool) -> bool:
    """Tell whether a Chinese stop, or one before Chinese text, ends a sentence."""
    close = match["close"]
    if not full_width:
        # a stop typed in ASCII, and not "v2.0版", "Yahoo!邮箱" or an ellipsis
        typed = match["stop"] in ".．!?" and _HAN.match(text[match.start() - 1 : match.start()])
        return bool(close or typed)
    if close and close[0] in "”」』\"’'":
        return not _SPEECH.match(following)
    return not (close and close[0] in "）)】]》" and not following[0].isspace())  # 他（张三。）走了


def _is_abbreviation(text: str, begin: int, match: re.Match[str], following: str) -> bool:
    """Tell whether a full stop follows an abbreviation, initials or the number of a list item or day.

    The sentence begins at `begin`; `following` is the word behind the stop.
    """
    if match.start() - begin < _MAX_LIST_NUMBER and _LIST_NUMBER.fullmatch(text[begin : match.start()]):
        return True
    window = text[max(begin, match.start() - _BEHIND) : match.start()]
    is_spaced = _SPACED.search(f"{window}|{following}")
    is_day = _GERMAN_DAY.search(window) and AFTER_DAY.match(following)  # 3. Oktober
    if is_spaced or is_day or _GERMAN_ORDINAL.search(window):  # z. B., der 2. Abschnitt
        return True
    before = _WORD_BEFORE.search(window)
    if not before:
        return False
    word = before[1].lower()
    if word in _NEVER_LAST or (word in _BEFORE_NUMBER and following[:1].isdigit()):  # Dr. Li, No. 5
        return True
    if re.sub(r"\W+$", "", following).lower() in _FIRST_WORDS:
        return False
    return word in _RARELY_LAST or _INITIALS.fullmatch(before[1]) is not None  # Acme Inc., J. R. R.


def end_sentence(text: str) -> str:
    """Write a sentence on one line with a stop at its end, by which the check of citations knows it; rows stay."""
    text = " ".join(text.split())
    if text.startswith("|") or _ENDED.search(text):
        return text
    return text.rstrip(",;:，；：、") + ("。" if detect_language(text) == "zh" else ".")


def append_part(text: str, part: str, *, on_new_line: bool = False) -> str:
    """Append a part: a row of a table, and what follows one, on a new line; a Chinese sentence without a blank."""
    if not text:
        return part
    if on_new_line or part.startswith("|") or text.rpartition("\n")[2].startswith("|"):
        return f"{text}\n{part}"
    return text + part if detect_language(part) == "zh" else f"{text} {part}"
