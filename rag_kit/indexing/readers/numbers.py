"""Numbers as programs show them: the labels of list items, and superscripts written in one line."""

from __future__ import annotations

import re
from collections.abc import Callable

_ORDINAL = re.compile(r"(?:st|nd|rd|th|er|re|ère|e|ème|os?|as?)\.?", re.I)
_RAISED_NUMBER = re.compile(r"\d{1,3}(?:\s*[,;–-]\s*\d{1,3})*|[a-z]|[*†‡§]+")
_UNIT = re.compile(r"(?<![A-Za-zÀ-ɏ])[A-Za-zÀ-ɏµΑ-ω]{1,3}$|[千厘毫分微]米$|[)\]}′°]$")
_MAX_WRITTEN = 1_000  # greater numbers of lists are written in digits
_WORDS = [
    "Zero",
    "One",
    "Two",
    "Three",
    "Four",
    "Five",
    "Six",
    "Seven",
    "Eight",
    "Nine",
    "Ten",
    "Eleven",
    "Twelve",
    "Thirteen",
    "Fourteen",
    "Fifteen",
]
_RANKS = (
    "Zeroth First Second Third Fourth Fifth Sixth Seventh Eighth Ninth Tenth Eleventh Twelfth Thirteenth "  # noqa: SIM905
    "Fourteenth Fifteenth".split()
)


def raised(before: str, text: str, *, note: bool = False) -> str:
    """A superscript as it is written behind ``before``: a power with ``^``, the mark of a footnote in brackets.

    A raised number is a power behind a unit, a variable, a bracket or a short number, else the mark of a note.

    Args:
        before: The text before it in its line.
        text: The raised text.
        note: Whether it is known to be the mark of a note.

    Example:
        >>> [before + raised(before, text) for before, text in (("10", "-3"), ("m", "2"), ("1", "st"), ("2020", "3"))]
        ['10^-3', 'm^2', '1st', '2020[3]']
    """
    text = text.strip()
    if re.fullmatch(r"\d{1,3}\)", text):  # a mark such as 1)
        text, note = text[:-1], True
    apart = not before.strip() or before[-1].isspace()
    if not re.search(r"\w|[*†‡§]", text) or re.match(r"[\[(^]", text) or (apart and not text.isdigit()):
        return text
    if before[-1:].isdigit() and _ORDINAL.fullmatch(text):
        return text
    if note or apart or (_RAISED_NUMBER.fullmatch(text) and not _takes_power(before, text)):
        return f"[{text}]"
    return "^" + (text if re.fullmatch(r"[+−–-]?(?:\w|\d+(?:\.\d+)?)[+−–-]?", text) else f"({text})")


def _takes_power(before: str, text: str) -> bool:
    """Whether what stands before a raised number or letter can have it as a power."""
    if number := re.search(r"\d[\d.,]*$", before):
        return len(number[0]) < 3 and text[0] not in "*†‡§"
    return bool(_UNIT.search(before))


def lowered(before: str, text: str) -> str:
    """A subscript behind ``before``: as it is, but behind a number with ``_``."""
    return "_" * (before[-1:].isdigit() and text[:1].isdigit()) + text


def list_number(number: int, style: str) -> str:
    """The number of a list item in a style of numbers.

    Styles have the names that Word gives them (``w:numFmt``); one that is not known counts 1, 2, 3.

    Example:
        >>> [list_number(12, style) for style in ("upperRoman", "lowerLetter", "chineseCounting", "decimalZero")]
        ['XII', 'l', '十二', '12']
    """
    write = _STYLES.get(style)
    return (
        write(number)
        if write and 0 < number < _MAX_WRITTEN
        else "0" * (style == "decimalZero" and number < 10) + str(number)
    )


def _roman(number: int) -> str:
    signs = zip((1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1),
                "M CM D CD C XC L XL X IX V IV I".split(), strict=True)  # fmt: skip  # noqa: SIM905
    text = ""
    for value, sign in signs:
        text += sign * (number // value)
        number %= value
    return text


def _letters(number: int) -> str:
    """a to z, then aa, bb as Word and PowerPoint count."""
    return chr(97 + (number - 1) % 26) * ((number - 1) // 26 + 1)


def _of(signs: str) -> Callable[[int], str]:
    """Numbers that are signs of a row, as ① or 甲; beyond its end digits."""
    return lambda number: signs[number - 1] if number <= len(signs) else str(number)


def _from(first: str, last: str) -> Callable[[int], str]:
    return _of("".join(map(chr, range(ord(first), ord(last) + 1))))


def _chinese(digits: str, units: str, *, formal: bool = False) -> Callable[[int], str]:
    """Chinese numbers: 十二, 一百零五; in the ``formal`` ones of contracts ten is 壹拾."""

    def write(number: int) -> str:
        text = ""
        for unit, digit in zip(units[4 - len(str(number)) :], str(number), strict=True):
            text += digits[int(digit)] + unit.strip() if digit != "0" else digits[0]
        text = re.sub(f"{digits[0]}+", digits[0], text).rstrip(digits[0])
        return text[1:] if 10 <= number < 20 and not formal else text

    return write


def _ordinal(number: int) -> str:
    last = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{'th' if 10 < number % 100 < 14 else last}"


def _digits(signs: str) -> Callable[[int], str]:
    return lambda number: "".join(signs[int(digit)] for digit in str(number))


_HAN = _chinese("零一二三四五六七八九", "千百十 ")
_STYLES: dict[str, Callable[[int], str]] = {
    "upperRoman": _roman,
    "lowerRoman": lambda number: _roman(number).lower(),
    "upperLetter": lambda number: _letters(number).upper(),
    "lowerLetter": _letters,
    "ordinal": _ordinal,
    "cardinalText": lambda number: _WORDS[number] if number < len(_WORDS) else str(number),
    "ordinalText": lambda number: _RANKS[number] if number < len(_RANKS) else _ordinal(number),
    "numberInDash": lambda number: f"- {number} -",
    "decimalFullWidth": _digits("０１２３４５６７８９"),
    "decimalFullWidth2": _digits("０１２３４５６７８９"),
    "decimalEnclosedCircle": _from("①", "⑳"),
    "decimalEnclosedCircleChinese": _from("①", "⑳"),
    "decimalEnclosedParen": _from("⑴", "⒇"),
    "decimalEnclosedFullstop": _from("⒈", "⒛"),
    "ideographEnclosedCircle": _from("㊀", "㊉"),
    "chineseCounting": _HAN,
    "chineseCountingThousand": _HAN,
    "taiwaneseCounting": _HAN,
    "taiwaneseCountingThousand": _HAN,
    "japaneseCounting": _HAN,
    "ideographDigital": _digits("〇一二三四五六七八九"),
    "japaneseDigitalTenThousand": _digits("〇一二三四五六七八九"),
    "taiwaneseDigital": _digits("○一二三四五六七八九"),
    "chineseLegalSimplified": _chinese("零壹贰叁肆伍陆柒捌玖", "仟佰拾 ", formal=True),
    "ideographLegalTraditional": _chinese("零壹貳參肆伍陸柒捌玖", "仟佰拾 ", formal=True),
    "ideographTraditional": _of("甲乙丙丁戊己庚辛壬癸"),
    "ideographZodiac": _of("子丑寅卯辰巳午未申酉戌亥"),
    "koreanDigital": _digits("영일이삼사오육칠팔구"),
    "ganada": _of("가나다라마바사아자차카타파하"),
    "aiueo": _of("アイウエオカキクケコサシスセソタチツテトナニヌネノ"),
    "aiueoFullWidth": _of("アイウエオカキクケコサシスセソタチツテトナニヌネノ"),
    "iroha": _of("イロハニホヘトチリヌルヲワカヨタレソツネナラム"),
    "russianLower": _from("а", "я"),
    "russianUpper": _from("А", "Я"),
    "lowerGreek": _of("αβγδεζηθικλμνξοπρστυφχψω"),
}  # fmt: skip
