"""Numbers and formulas in one line: labels of list items, superscripts, the equations of Word (OMML) and of MathML."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby
from typing import Any

from rag_kit.indexing.readers.parts import read_table

_ORDINAL = re.compile(r"(?:st|nd|rd|th|er|re|ère|e|ème|os?|as?)\.?", re.I)  # 1st, 1er, 1º
_RAISED_NUMBER = re.compile(r"\d{1,3}(?:\s*[,;–-]\s*\d{1,3})*|[a-z]|[*†‡§]+")
_UNIT = re.compile(
    r"(?<![A-Za-zÀ-ɏ])[A-Za-zÀ-ɏµΑ-ω]{1,3}$|[千厘毫分微]米$|[\d一二三四五六七八九十百千万]\s?(?:米|[公英海]里)$|/[米秒]$|[)\]}′°]$"
)
_MAX_WRITTEN = 1_000  # greater numbers of lists are written in digits
_ROMAN = {int(value): sign for value, sign in read_table("roman_numerals.txt").items()}
# styles with a sign for each number (①, ②, ...)
_SIGNS = {style: signs.split() for style, signs in read_table("number_rows.txt").items()}
#: The signs of 0 to 9 by style; in Chinese ones, those of ten and hundred, too, and of thousand for Excel.
DIGITS = read_table("number_digits.txt")
OMML = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_GRIDS = (f"{OMML}m", f"{OMML}eqArr", "mtable")  # matrices, and lines below each other
# element -> how it is written, as in "num/den"; in MathML its children have no names: they are a, b and c
_SHAPES = {tag.replace("m:", OMML): shape for tag, shape in read_table("equation_shapes.txt").items()}


def raised(before: str, text: str, after: str = "", *, note: bool = False) -> str:
    """Return a superscript as it is written behind the text before it: a power as ``^2``, a footnote's mark ``[2]``.

    A raised number is a power behind a unit, a variable, a bracket or a short number, else the mark of a footnote. If a
    fraction slash is ``after`` it, it is neither; with ``note``, it is known to be a mark.

    Example:
        >>> [before + raised(before, text) for before, text in (("10", "-3"), ("m", "2"), ("1", "st"), ("2020", "3"))]
        ['10^-3', 'm^2', '1st', '2020[3]']
    """
    text = text.strip()
    if after.startswith("⁄"):  # 1½
        return " " + text if before[-1:].isdigit() else text
    if re.fullmatch(r"(?:\d{1,3}|[a-z])\)", text):  # a mark such as 1)
        text, note = text[:-1], True
    is_apart = not before.strip() or before[-1].isspace()
    # in brackets already, or a sign such as ™
    is_complete = re.match(r"[\[(^]", text) or not re.search(r"\w|[*†‡§]", text)
    number = re.search(r"\d(?:[\d.,]*\d)?$", before[-20:])
    is_short = number is not None and len(number[0]) < 3
    # a single letter behind a longer number is the mark of a note
    is_ordinal = number and _ORDINAL.fullmatch(text) and (len(text) > 1 or is_short)
    if is_complete or is_ordinal or (is_apart and not text.isdigit()):
        return text
    takes_power = (is_short and text[0] not in "*†‡§") if number else _UNIT.search(before)
    if note or is_apart or (_RAISED_NUMBER.fullmatch(text) and not takes_power):
        return f"[{text}]"
    is_single = re.fullmatch(r"[+−–-]?(?:\w|\d+(?:\.\d+)?)[+−–-]?", text)
    return f"^{text}" if is_single else f"^({text})"


def lowered(before: str, text: str) -> str:
    """Return a subscript as it is written behind the text before it: unchanged, or with ``_`` between two digits."""
    return f"_{text}" if before[-1:].isdigit() and text[:1].isdigit() else text


def struck(text: str) -> str:
    """Mark a text that is struck, such as an old price beside the new one: ``~~5~~``."""
    inner = text.strip()
    return text.replace(inner, f"~~{inner}~~") if inner else text


def join_runs(runs: Iterable[tuple[str, int, bool]]) -> str:
    """Join the runs of a line, each given as text, shift (1 raised, -1 lowered, 0 neither) and whether it is struck."""
    text = ""
    for (shift, is_struck), alike in groupby(runs, key=lambda run: run[1:]):
        piece = "".join(run[0] for run in alike)
        piece = struck(piece) if is_struck else piece
        if shift:
            piece = raised(text, piece) if shift > 0 else lowered(text, piece)
        text += piece
    return text


def whole_number(text: str | None, default: int) -> int:
    """Return the whole number that an attribute says, else a default."""
    return int(text) if text and re.fullmatch(r"\s*[+-]?\d{1,9}\s*", text) else default


def list_number(number: int, style: str) -> str:
    """Write the number of a list item in a style of numbers.

    Styles have the names that Word gives them (``w:numFmt``); one that is not known counts 1, 2, 3.
    """
    text = str(number)
    if not 0 < number < _MAX_WRITTEN:
        return text
    if number <= len(_SIGNS.get(style, "")):
        return _SIGNS[style][number - 1]
    if style in DIGITS:
        return "".join(DIGITS[style][int(digit)] for digit in text)
    # chineseCounting and taiwaneseCountingThousand are both "Counting" in the table
    chinese_style = re.sub(r"^(chinese|taiwanese|japanese|ideograph)|Thousand$", "", style)
    if chinese_style in DIGITS:
        text = chinese_number(text, DIGITS[chinese_style])
        return text.removeprefix("一") if text.startswith("一十") else text  # in contracts 壹拾
    if style in ("ordinal", "ordinalText"):  # 1st, 11th
        ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
        return text + ("th" if 10 < number % 100 < 14 else ending)
    if style in ("upperRoman", "lowerRoman"):
        text, rest = "", number
        for value, sign in _ROMAN.items():
            text += sign * (rest // value)
            rest %= value
    elif style in ("upperLetter", "lowerLetter"):  # A to Z, then AA, BB
        text = chr(ord("A") + (number - 1) % 26) * ((number - 1) // 26 + 1)
    elif style == "decimalZero":
        text = text.zfill(2)
    return text.lower() if style.startswith("lower") else text


def chinese_number(digits: str, signs: str) -> str:
    """Write a number below 10^12 as in 二万零三百零五 (20305), by signs for 0 to 9, ten, hundred, perhaps thousand."""
    zero, units, text = signs[0], ["", *signs[10:]], ""
    for place, digit in enumerate(reversed(digits)):  # from the right
        end = len(digits) - place
        # each four digits have the sign of their power of 10,000, unless all are zeros
        has_power = place % 4 == 0 and place and digits[max(0, end - 4) : end].strip("0")
        power = "万亿"[place // 4 - 1] if has_power else ""
        text = (zero if digit == "0" else signs[int(digit)] + units[place % 4]) + power + text
    # zeros are never written at the end of four digits, and once elsewhere
    return re.sub(f"{zero}+", zero, re.sub(f"{zero}+(?=[万亿]|$)", "", text))


def equation_text(node: Any) -> str:
    """Write a node of an equation's XML (OMML or MathML) as text; long parts are in brackets, as in (a+b)/2."""
    if node.tag in ("annotation", "annotation-xml"):
        return ""
    if node.tag == f"{OMML}d":  # brackets: the XML gives their signs if they are not ( and )
        first, last = (node.find(f"{OMML}dPr/{OMML}{name}") for name in ("begChr", "endChr"))
        inside = ", ".join(map(equation_text, node.findall(f"{OMML}e")))
        opening = "(" if first is None else first.get(f"{OMML}val", "")
        return opening + inside + (")" if last is None else last.get(f"{OMML}val", ""))
    if node.tag in _GRIDS:
        rows = [row for row in node if row.tag in (f"{OMML}mr", f"{OMML}e", "mtr", "mlabeledtr")]
        grid = [[row] if row.tag == f"{OMML}e" else row for row in rows]  # an array has lines without cells
        return f"[{'; '.join(', '.join(map(equation_text, cells)) for cells in grid)}]"
    texts = list(map(equation_text, node))
    shape = _SHAPES.get(node.tag)
    if shape is None:
        own = "" if len(node) else node.text or ""  # a node with children has only white space beside them
        return (own if node.tag == f"{OMML}t" else own.strip()) + "".join(texts)
    if node.tag == "msqrt":  # all its children are under one root
        texts = ["".join(texts)]
    # children are named in OMML; in MathML the first is a, the second b
    names = [child.tag.removeprefix(OMML) for child in node] if node.tag.startswith(OMML) else "abc"
    text_of = dict(zip(names, texts, strict=False))

    def argument(match: re.Match[str]) -> str:  # with its sign ("^", or ""), in brackets if it is long
        text = text_of.get(match[2], "")
        return text and match[1] + (text if len(text) == 1 or text.isdigit() else f"({text})")

    # put each child's text in place of its name in the shape, such as "num/den"
    text = re.sub(r"(\W?)([a-z]+)", argument, shape)
    if node.tag == f"{OMML}nary":  # a sum, a product, or by default an integral
        sign = node.find(f"{OMML}naryPr/{OMML}chr")
        return f"{'∫' if sign is None else sign.get(f'{OMML}val', '')}{text} {text_of.get('e', '')}"
    return text
