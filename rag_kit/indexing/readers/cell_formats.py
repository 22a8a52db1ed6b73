"""Values of spreadsheet cells as their number format shows them: ``0%``, ``00000``, ``[h]:mm``, ``# ?/?``, dates."""

from __future__ import annotations

import datetime
import operator
import re
from collections.abc import Callable, Iterable, Sequence
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from fractions import Fraction
from functools import lru_cache
from itertools import takewhile
from typing import NamedTuple

from rag_kit.indexing.readers.numbers import DIGITS, chinese_number, list_number
from rag_kit.indexing.readers.parts import read_table

_TOKEN = re.compile(
    r'(?P<general>General)|"(?P<text>[^"]*)"?|[\\!](?P<escaped>.)|[_*](?P<gap>.)|\[(?P<elapsed>h+|m+|s+)\]'
    r"|\[(?P<bracket>[^\]]*)\]|(?P<half_day>AM/PM|A/P|上午/下午)|(?P<exponent>E[+-])"
    r"|(?P<date>y+|m+|d+|h+|s+(?:\.0+)?|a{3,4}|g{1,3}(?=e)|e+)|(?P<digit>[0#?])|(?P<sign>[.,/%@;])|(?P<other>.)",
    re.I | re.S,
)
_CONDITION = re.compile(r"(<=|>=|<>|<|>|=)\s*(-?[\d.]+)")
_COLOUR = re.compile(r"black|blue|cyan|green|magenta|red|white|yellow|color ?\d+", re.I)
_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "<>": operator.ne, "=": operator.eq,
}  # fmt: skip
# formats of the user's own country, which the file does not say: dates are written as ISO writes them
_LOCAL = {"mm-dd-yy": "yyyy-mm-dd", "m/d/yy h:mm": "yyyy-mm-dd hh:mm", "m/d/yyyy h:mm": "yyyy-mm-dd hh:mm"}
#: The built-in formats of Chinese Excel, by number.
CHINESE_FORMATS = {int(number): code for number, code in read_table("chinese_formats.txt").items()}
_DAY_ZERO = datetime.datetime(1899, 12, 30)
_CHINESE = re.compile(r"\$.*-.*[048]04")  # a bracket that names Chinese, as [$-804]
_SYSTEM = re.compile(r"\$-(?:F[48]00|x-sys)", re.I)  # the system's form, as [$-F800]
_NATIVE = re.compile(r"(?!.*\$\S*-(?!\S*804)).*(DBNum[123])")  # for Chinese signs; not with another country
# first day of an era, its country as in [$-411], and its names for g, gg and ggg
_ERAS = [(datetime.date.fromisoformat(day), row.split()) for day, row in read_table("eras.txt").items()]
_SECONDS = {"h": 3600, "m": 60, "n": 60, "s": 1}  # minutes are n beside hours or seconds, else m
_Moment = datetime.datetime | datetime.date | datetime.time


class _Token(NamedTuple):
    """A piece of a number format: its kind (a group of `_TOKEN`, such as ``digit``), and its text, such as ``#``."""

    kind: str
    text: str


_POINT, _COMMA, _SLASH = _Token("sign", "."), _Token("sign", ","), _Token("sign", "/")
_PERCENT, _TEXT = _Token("sign", "%"), _Token("sign", "@")


class _Section(NamedTuple):
    """A section of a format, between semicolons, and the numbers that it is for: those that compare so to a limit."""

    tokens: tuple[_Token, ...]
    comparison: str  # a key of `_COMPARE`; "" for all numbers
    limit: float
    shows_minus: bool  # before a negative number


def shown(value: object, code: str) -> str:
    """Write a value as a cell shows it by its number format (``code``), in the notation of Excel in English.

    Example:
        >>> [shown(0.25, "0%"), shown(123, "00000"), shown(-3.5, '#,##0.00 "€"'), shown(2.75, "# ?/?")]
        ['25%', '00123', '-3.50 €', '2 3/4']
    """
    sections = _sections(_LOCAL.get(code, code))
    try:
        if isinstance(value, datetime.timedelta) and _has_clock(sections[0].tokens):  # a number in the file
            value /= datetime.timedelta(days=1)
        if isinstance(value, _Moment):
            return _moment_text(value, sections[0].tokens)
        if isinstance(value, str):
            # texts have the fourth section, or one with the sign @
            fitting = [*sections[3:], *(section for section in sections if _TEXT in section.tokens)]
            return _write_texts(fitting[0].tokens, value) if fitting else value
        if isinstance(value, int | float):
            return _number_text(value, sections)
    except (InvalidOperation, OverflowError, ValueError):
        pass  # beyond what such a format can hold: written in full
    return plain_text(value)


def plain_text(value: object) -> str:
    """Write a value without a format: numbers with up to 15 digits, dates as ISO writes them."""
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ").removesuffix(" 00:00:00")
    return f"{value:.15G}" if isinstance(value, float) else str(value)


@lru_cache(maxsize=1_000)
def _sections(code: str) -> list[_Section]:
    """Split a format such as ``0.0;-0.0;"none"`` into sections, each with the numbers that it is for."""
    parts = _split_tokens(code)
    number_sections = len(parts) - (len(parts) > 1 and _TEXT in parts[-1])  # without one for texts
    # how Excel compares a number with zero where a section has no condition of its own; "" also for texts
    comparisons = {1: ["", ""], 2: [">=", "", ""]}.get(number_sections, [">", "<", "", ""])
    sections: list[_Section] = []
    for tokens, comparison in zip(parts, comparisons, strict=False):
        brackets, limit = _brackets(tokens), 0.0
        # behind a section with the limit zero, negative numbers show no minus but what is written in their section
        shows_minus = not sections or (sections[-1].shows_minus and sections[-1].limit != 0)
        if any(map(_COLOUR.fullmatch, brackets)):  # also in one that is as the first, but red
            texts = {"".join(t.text for t in part if t.kind == "text").strip() for part in (tokens, parts[0])}
            shows_minus = shows_minus or len(texts) == 1
        if condition := next(filter(None, map(_CONDITION.fullmatch, brackets)), None):
            shows_minus, comparison, limit = True, condition[1], float(condition[2])
        sections.append(_Section(_with_minutes(tokens), comparison, limit, shows_minus))
    return sections


def _brackets(tokens: Iterable[_Token]) -> list[str]:
    return [token.text for token in tokens if token.kind == "bracket"]


def _has_clock(tokens: Iterable[_Token]) -> bool:
    return any(token.kind in ("date", "elapsed") for token in tokens)


def _split_tokens(code: str) -> list[list[_Token]]:
    """Split a format into sections of tokens; escaped and other characters become texts, and so does a currency."""
    sections: list[list[_Token]] = [[]]
    for match in _TOKEN.finditer(code):
        kind = str(match.lastgroup)
        text = match[kind]
        if kind == "sign" and text == ";":
            sections.append([])
            continue
        if kind == "gap":  # "_x": a gap as wide as x; "*x" fills up with x: "-* 0" shows -5
            before = sections[-1][-1].text[-1:] if sections[-1] else ""
            text = "" if match[0].startswith("*") and not before.isalnum() else " "
        sections[-1].append(_Token("text" if kind in ("escaped", "other", "gap") else kind, text))
        if kind == "bracket" and (currency := re.match(r"\$([^-]+)", text)):  # [$€-407]
            sections[-1].append(_Token("text", currency[1]))
    return sections


def _write_texts(tokens: Sequence[_Token], value: str = "") -> str:
    """Write the texts and signs of a section, with a value for ``@`` and ``General``."""
    kept = (token for token in tokens if token.kind in ("text", "sign", "general"))
    return "".join(value if token == _TEXT or token.kind == "general" else token.text for token in kept)


def _number_text(value: float, sections: Sequence[_Section]) -> str:
    """Write a number by the first section whose condition it fits."""
    for tokens, comparison, limit, shows_minus in sections[:3]:
        if comparison and not _COMPARE[comparison](value, limit):
            continue
        minus = "-" if value < 0 and shows_minus else ""
        if _has_clock(tokens):  # a day as charts keep it, or a duration
            return minus + _moment_text(_DAY_ZERO + datetime.timedelta(days=abs(value)), tokens)
        if not _digit_count(tokens):
            return minus + _in_native_signs(_write_texts(tokens, plain_text(abs(value))), tokens)
        return minus + _in_native_signs(_digits_text(Decimal(f"{abs(value):.15g}"), tokens), tokens)
    return plain_text(value)


def _digit_count(tokens: Iterable[_Token]) -> int:
    return sum(token.kind == "digit" for token in tokens)


def _in_native_signs(text: str, tokens: Sequence[_Token]) -> str:
    """Write digits in Chinese signs if a section says so: 21 is 二一 by ``[DBNum1]0``, 二十一 by ``[DBNum1]``."""
    if (match := _NATIVE.match(" ".join(_brackets(tokens)))) is None:
        return text
    signs, is_date = DIGITS[match[1]], _has_clock(tokens)
    if is_date or not _digit_count(tokens):  # then numbers are counted: 十, 百
        most, ten = (2, "十") if is_date else (12, "一十")  # digits (a year has more), and how 10 is written
        counted = rf"(?<![.\d])[1-9]\d{{0,{most - 1}}}(?![\dE])"
        text = re.sub(counted, lambda number: chinese_number(number[0], signs).replace("一十", ten), text)
    return text.translate(str.maketrans("0123456789", signs[:10]))


def _digits_text(number: Decimal, tokens: tuple[_Token, ...]) -> str:
    """Write a positive number by a section with places for digits: as a fraction, with a power of ten, or plainly."""
    places = _places(tokens)
    number *= places.factor
    if _SLASH in tokens and _digit_count(tokens[: tokens.index(_SLASH)]):
        return _fraction_text(number, tokens)
    for index, token in enumerate(tokens):
        if token.kind == "exponent":
            return _power_text(number, tokens, index)
    return places.text(number)


class _Places:
    """The places for digits in a section, such as ``#,##0.00``."""

    def __init__(self, tokens: Sequence[_Token]) -> None:
        point = tokens.index(_POINT) if _POINT in tokens else len(tokens)
        places = [n for n, token in enumerate(tokens) if token.kind == "digit"]
        whole_places = [n for n in places if n < point]
        first_whole, last_whole = (whole_places[0], whole_places[-1]) if whole_places else (point, point)
        commas = [n for n, token in enumerate(tokens) if token == _COMMA] if places else []
        # a comma between places groups by thousands; one behind them divides by a thousand, as in "0,," for millions
        self._grouped = any(first_whole < n < last_whole for n in commas)
        divisions = sum(last_whole < n < point or n > places[-1] for n in commas)
        # a number is multiplied by this before it is written
        self.factor = Decimal(100) ** tokens.count(_PERCENT) / Decimal(1000) ** divisions
        self._last_digit = Decimal(1).scaleb(len(whole_places) - len(places))  # 0.01 for two decimals
        self._whole = [token for token in tokens[:point] if token != _COMMA]
        self._decimals = [token for token in tokens[point + 1 :] if token != _COMMA]

    def text(self, number: Decimal) -> str:
        """Write a number in these places."""
        whole, _, decimals = f"{number.quantize(self._last_digit, ROUND_HALF_UP):f}".partition(".")
        text = _whole_text(whole.lstrip("0"), self._whole, grouped=self._grouped)
        return text + _decimals_text(decimals, self._decimals)


_places = lru_cache(maxsize=1_000)(_Places)  # makes them once for each section


def _whole_text(digits: str, tokens: list[_Token], *, grouped: bool = False) -> str:
    """Put the digits before the point into their places, from the right; the first place takes all that are left."""
    text, digits_written = "", 0
    places_left = _digit_count(tokens)
    for token in reversed(tokens):
        if token.kind != "digit":
            text = _write_texts([token]) + text
            continue
        places_left -= 1
        own_digits, digits = (digits[-1:], digits[:-1]) if places_left else (digits, "")
        if not own_digits and token.text == "0":  # without a digit, 0 shows a zero, # and ? nothing
            own_digits = "0"
        for digit in reversed(own_digits):
            comma = "," if grouped and digits_written and digits_written % 3 == 0 else ""
            text = digit + comma + text
            digits_written += 1
    return text + digits  # where there are no places


def _decimals_text(digits: str, tokens: list[_Token]) -> str:
    """Write the point and the digits after it, without zeros in the last places that are ``#`` or ``?``."""
    places = [token.text for token in tokens if token.kind == "digit"]
    while places and places[-1] != "0" and digits.endswith("0"):
        places, digits = places[:-1], digits[:-1]
    remaining = iter(digits)
    texts = (next(remaining, "") if token.kind == "digit" else _write_texts([token]) for token in tokens)
    return ("." if digits else "") + "".join(texts)


def _power_text(number: Decimal, tokens: tuple[_Token, ...], e_index: int) -> str:
    """Write a number with a power of ten; the token at ``e_index`` is the ``E+``.

    The exponent is a multiple of the number of places before the point: ``##0.0E+0`` writes 12345 as ``12.3E+3``.
    """
    mantissa_tokens, exponent_tokens = tokens[:e_index], list(tokens[e_index + 1 :])
    whole_tokens = list(takewhile(lambda token: token != _POINT, mantissa_tokens))
    step = max(1, _digit_count(whole_tokens))  # of exponents
    decimal_count = _digit_count(mantissa_tokens[len(whole_tokens) :])
    exponent = number.adjusted() // step * step if number else 0  # adjusted() is 4 for 12345
    if round(number.scaleb(-exponent), decimal_count) >= 10**step:  # 999.96, rounded, is 1.0E+3
        exponent += step
    mantissa = _places(mantissa_tokens).text(number.scaleb(-exponent))
    plus = "+" if tokens[e_index].text.endswith("+") else ""
    digits = _whole_text(str(abs(exponent)).lstrip("0"), exponent_tokens)
    return f"{mantissa}E{'-' if exponent < 0 else plus}{digits}"


def _fraction_text(number: Decimal, tokens: tuple[_Token, ...]) -> str:
    """Write a number as a fraction: 2.75 is ``2 3/4`` by ``# ?/?``, ``11/4`` by ``?/?``, ``2 6/8`` by ``# ?/8``."""
    slash = tokens.index(_SLASH)
    upper = list(takewhile(lambda token: token.kind == "digit", reversed(tokens[:slash])))  # the numerator
    lower = list(takewhile(lambda token: token.kind == "digit" or token.text.isdigit(), tokens[slash + 1 :]))
    before, after = tokens[: slash - len(upper)], tokens[slash + 1 + len(lower) :]
    has_whole = _digit_count(before) > 0
    whole = int(number) if has_whole else 0
    rest = Fraction(number) - whole
    denominator = int("".join(token.text for token in lower).strip("#?") or 0)
    if denominator:  # a fixed one, as in ?/8
        numerator = round(rest * denominator)
    else:  # the nearest fraction with as many digits as there are places
        numerator, denominator = rest.limit_denominator(10 ** len(lower) - 1).as_integer_ratio()
    if has_whole and numerator == denominator:
        whole, numerator = whole + 1, 0
    texts = [_write_texts(before).strip()]
    if has_whole and (whole or not numerator):
        texts.append(str(whole))
    if numerator or not has_whole:
        texts.append(f"{numerator}/{denominator}")
    return " ".join(texts).strip() + _write_texts(after)


def _with_minutes(tokens: Sequence[_Token]) -> tuple[_Token, ...]:
    """Return tokens with those of dates in small letters, and ``m`` for minutes (behind h or before s) as ``n``."""
    indices = [n for n, token in enumerate(tokens) if token.kind in ("date", "elapsed")]
    names = [tokens[n].text.lower() for n in indices]
    result = list(tokens)
    for n, before, name, after in zip(indices, ["", *names], names, [*names[1:], ""], strict=False):
        is_minute = before.startswith("h") or after.startswith("s")
        result[n] = _Token(tokens[n].kind, name.replace("m", "n") if is_minute else name)
    return tuple(result)


def _moment_text(moment: _Moment, tokens: Sequence[_Token]) -> str:
    """Write a date, a time, or a duration since day zero as a section shows it, without 0:00:00 after a date."""
    brackets = " ".join(_brackets(tokens))
    if not _has_clock(tokens) or _SYSTEM.search(brackets):
        return plain_text(moment)
    if isinstance(moment, datetime.time):
        moment = datetime.datetime.combine(_DAY_ZERO, moment)
    elif not isinstance(moment, datetime.datetime):
        moment = datetime.datetime.combine(moment, datetime.time())
    has_decimals = any("." in token.text for token in tokens if token.kind == "date")  # of seconds, as ss.0
    if moment.microsecond and not has_decimals:
        moment += datetime.timedelta(microseconds=500_000)  # so that the seconds are rounded
    has_half_days = any(token.kind == "half_day" for token in tokens)
    text = ""
    for kind, piece in tokens:
        if kind == "elapsed":  # [h]:mm shows 30:00 for a day and six hours
            seconds = (moment - _DAY_ZERO).total_seconds()
            text += str(int(seconds // _SECONDS[piece[0]])).zfill(len(piece))
        elif kind == "date":
            text += _date_text(moment, piece, brackets, half_days=has_half_days)
        elif kind == "half_day":
            morning, afternoon = ("上午/下午" if _CHINESE.search(brackets) else piece).split("/")
            text += morning if moment.hour < 12 else afternoon
        elif kind == "text" or (kind == "sign" and piece != "@"):
            text += piece
    return _in_native_signs(re.sub(r"\s+0?0:00:00$", "", text.strip()), tokens)


def _date_text(moment: datetime.datetime, name: str, brackets: str, *, half_days: bool) -> str:
    """Write a piece of a date or time: ``yyyy``, ``mmm``, ``dd``, ``h``, ``nn`` (minutes), ``ss.00``, ``ggg`` (an era).

    With ``half_days``, hours are those of a clock of 12 hours; ``brackets`` name a language, which may have eras.
    """
    letter, length, chinese = name[0], len(name), _CHINESE.search(brackets)
    if letter in "ge":
        countries = brackets.replace("ja-JP", "411").replace("zh-TW", "404")
        begun_eras = (era for era in _ERAS if era[1][0] in countries and era[0] <= moment.date())
        first_day, era_names = next(begun_eras, (datetime.date.min, [""] * 4))  # without one, e is the year
        year = moment.year - first_day.year + 1
        number = "元" if year == 1 and "gannen" in brackets else str(year).zfill(length)
        return era_names[length] if letter == "g" else number
    if letter == "y":
        return str(moment.year) if length > 2 else f"{moment.year % 100:02}"
    if letter == "m" and length > 2:
        month = f"{list_number(moment.month, 'chineseCounting')}月" if chinese else f"{moment:%B}"
        return month if length == 4 or chinese else month[: 1 if length > 4 else 3]  # mmmmm: one letter
    if letter == "a" or (letter == "d" and length > 2 and chinese):
        return ("星期" if length == 4 else "周") + "一二三四五六日"[moment.weekday()]
    if letter == "d" and length > 2:
        return f"{moment:%A}" if length > 3 else f"{moment:%a}"
    if "." in name:
        whole, _, decimals = name.partition(".")
        return f"{moment.second:0{len(whole)}}." + f"{moment.microsecond:06}"[: len(decimals)]
    hour = (moment.hour - 1) % 12 + 1 if half_days else moment.hour  # 0 and 12 are both 12
    numbers = {"m": moment.month, "d": moment.day, "h": hour, "n": moment.minute, "s": moment.second}
    return str(numbers[letter]).zfill(min(length, 2))
