"""Values of spreadsheet cells as their number format shows them: ``0%``, ``00000``, ``[h]:mm``, ``# ?/?``, dates."""

from __future__ import annotations

import datetime
import operator
import re
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

_TOKEN = re.compile(
    r"""
    (?P<general>General)
    | "(?P<quoted>[^"]*)"?
    | [\\!](?P<escaped>.)
    | [_*](?P<gap>.)
    | \[(?P<bracket>[^\]]*)\]
    | (?P<half>AM/PM|A/P|上午/下午)
    | (?P<exponent>E[+-])
    | (?P<date>y+|m+|d+|h+|s+(?:\.0+)?|a{3,4}|e+)
    | (?P<place>[0#?])
    | (?P<sign>.)
    """,
    re.I | re.X | re.S,
)
_CONDITION = re.compile(r"(<=|>=|<>|<|>|=)\s*(-?[\d.]+)")
_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "<>": operator.ne,
    "=": operator.eq,
}
_DAY_ZERO = datetime.datetime(1899, 12, 30)
# formats of the user's own country, which the file does not say: dates are written as ISO writes them
_LOCAL = {"mm-dd-yy": "yyyy-mm-dd", "m/d/yy h:mm": "yyyy-mm-dd hh:mm", "m/d/yyyy h:mm": "yyyy-mm-dd hh:mm"}
#: The built-in formats of Chinese Excel, by number.
CHINESE_FORMATS = {
    **dict.fromkeys((27, 36, 50, 52, 57), 'yyyy"年"m"月"'),
    **dict.fromkeys((28, 29, 51, 53, 54, 58), 'm"月"d"日"'),
    30: "m-d-yy",
    31: 'yyyy"年"m"月"d"日"',
    32: 'h"时"mm"分"',
    33: 'h"时"mm"分"ss"秒"',
    **dict.fromkeys((34, 55), '上午/下午h"时"mm"分"'),
    **dict.fromkeys((35, 56), '上午/下午h"时"mm"分"ss"秒"'),
}
_MONTHS = "January February March April May June July August September October November December".split()  # noqa: SIM905
_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()  # noqa: SIM905
_HAN = "一 二 三 四 五 六 七 八 九 十 十一 十二".split()  # noqa: SIM905
_HAN_DAYS = "一二三四五六日"

Moment = datetime.datetime | datetime.date | datetime.time | datetime.timedelta


class _Token(NamedTuple):
    """A piece of a format: its kind (``place`` of a digit, ``date``, ``text``, ...) and its text."""

    kind: str
    text: str


class _Section(NamedTuple):
    """A part of a format between semicolons, and the numbers that it is for."""

    tokens: list[_Token]
    condition: str
    limit: float
    chinese: bool


def shown(value: object, code: str) -> str:
    """The text that a cell shows; numbers of the format ``General`` have up to 15 digits, dates without one are ISO.

    Args:
        value: A number, a text, or a date, time or duration.
        code: The number format, in the notation of Excel in English.

    Example:
        >>> [shown(0.25, "0%"), shown(123, "00000"), shown(-3.5, '#,##0.00 "€"'), shown(2.75, "# ?/?")]
        ['25%', '00123', '-3.50 €', '2 3/4']
        >>> shown(datetime.timedelta(hours=30), "[h]:mm")
        '30:00'
    """
    try:
        sections = _sections(_LOCAL.get(code, code))
        if isinstance(value, Moment):
            return _moment_text(value, sections[0])
        if isinstance(value, str):
            return _text(value, sections)
        if isinstance(value, int | float):
            return _number_text(value, sections)
    except (InvalidOperation, OverflowError, ValueError):
        pass  # numbers beyond what such a format can hold are written in full
    return _plain_text(value)


def _plain_text(value: object) -> str:
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ").removesuffix(" 00:00:00")
    return f"{value:.15g}" if isinstance(value, float) else str(value)


@lru_cache(maxsize=1_000)
def _sections(code: str) -> list[_Section]:
    """The parts of a format; conditions that it does not write are those that Excel takes."""
    parts: list[list[_Token]] = [[]]
    for match in _TOKEN.finditer(code):
        kind, text = str(match.lastgroup), match[match.lastgroup or 0]
        if kind == "sign" and text == ";":
            parts.append([])
        elif kind == "bracket" and (currency := re.match(r"\$([^-]*)", text)):
            parts[-1] += [_Token("text", currency[1]), _Token(kind, text)]
        else:
            is_text = kind in ("quoted", "escaped") or (kind == "sign" and text not in ".,/%@")
            gap = " " if kind == "gap" else text
            parts[-1].append(_Token("text" if is_text or kind == "gap" else kind, gap))
    usual = {1: [""], 2: [">=", ""]}.get(len(parts), [">", "<", "", ""])
    sections = []
    for tokens, condition in zip(parts, usual, strict=False):
        brackets = [token.text for token in tokens if token.kind == "bracket"]
        written = next((match for text in brackets if (match := _CONDITION.fullmatch(text))), None)
        chinese = any(re.match(r"\$.*-.*[048]04$", text) for text in brackets)
        limit = float(written[2]) if written else 0.0
        sections.append(_Section(tokens, written[1] if written else condition, limit, chinese))
    return sections


def _text(value: str, sections: Sequence[_Section]) -> str:
    """A text in the fourth part of a format, or the part that has the sign ``@``."""
    fitting = [section.tokens for section in sections if ("sign", "@") in section.tokens]
    for tokens in [section.tokens for section in sections[3:]] or fitting:
        return "".join(value if token == ("sign", "@") else token.text for token in tokens if _is_text(token))
    return value


def _is_text(token: _Token) -> bool:
    return token.kind in ("text", "sign")


# --- numbers


def _number_text(value: float, sections: Sequence[_Section]) -> str:
    """A number in the first part of the format whose condition it fits."""
    for place, section in enumerate(sections[:3]):
        if not section.condition or _COMPARE[section.condition](value, section.limit):
            minus = "-" if value < 0 and (place == 0 or len(sections) == 1) else ""
            return minus + _in_section(abs(value), section.tokens)
    return _plain_text(value)


def _in_section(value: float, tokens: list[_Token]) -> str:
    if any(token.kind == "general" for token in tokens):
        texts = (
            _plain_text(value) if token.kind == "general" else token.text
            for token in tokens
            if token.kind != "bracket"
        )
        return "".join(texts)
    places = [n for n, token in enumerate(tokens) if token.kind == "place"]
    if not places:
        return "".join(token.text for token in tokens if _is_text(token))
    number = Decimal(f"{value:.15g}") * 100 ** tokens.count(_Token("sign", "%"))
    slash = tokens.index(("sign", "/")) if ("sign", "/") in tokens else -1
    if places[0] < slash:
        return _fraction_text(number, tokens, slash)
    power = next((n for n, token in enumerate(tokens) if token.kind == "exponent"), None)
    if power is not None:
        return _power_text(number, tokens, power)
    return _decimal_text(number, tokens)


def _decimal_text(number: Decimal, tokens: list[_Token]) -> str:
    """A number in places for digits; commas between places group by thousands, those after the last divide."""
    point = tokens.index(("sign", ".")) if ("sign", ".") in tokens else len(tokens)
    places = [n for n, token in enumerate(tokens) if token.kind == "place"]
    whole = [n for n in places if n < point]
    commas = [n for n, token in enumerate(tokens) if token == ("sign", ",")]
    grouped = any(whole and whole[0] < n < whole[-1] for n in commas)
    divided = sum(n > places[-1] or (bool(whole) and whole[-1] < n < point) for n in commas)
    decimals = len(places) - len(whole)
    number = (number / 1000**divided).quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP)
    digits, _, rest = f"{number:f}".partition(".")
    left = [token for n, token in enumerate(tokens[:point]) if n not in commas]
    right = [token for n, token in enumerate(tokens[point + 1 :], point + 1) if n not in commas]
    return _whole_text(digits.lstrip("0"), left, grouped) + _rest_text(rest, right)


def _whole_text(digits: str, tokens: list[_Token], grouped: bool) -> str:
    """The digits before the point, from the right into their places; those that are left go into the first."""
    text, count = "", 0
    left = sum(token.kind == "place" for token in tokens)
    for token in reversed(tokens):
        if token.kind != "place":
            text = (token.text if _is_text(token) else "") + text
            continue
        left -= 1
        last, digits = (digits, "") if not left else (digits[-1:], digits[:-1])
        for digit in reversed(last or {"0": "0", "?": " "}.get(token.text, "")):
            text = digit + ("," if grouped and count and count % 3 == 0 and digit != " " else "") + text
            count += 1
    return text + (digits if not count and digits else "")


def _rest_text(digits: str, tokens: list[_Token]) -> str:
    """The point and the digits after it, without zeros in the places ``#`` and ``?`` at the end."""
    places = [token.text for token in tokens if token.kind == "place"]
    while places and places[-1] != "0" and digits[-1:] == "0":
        places, digits = places[:-1], digits[:-1]
    text, begun = "." * bool(digits), iter(digits)
    return text + "".join(
        next(begun, "") if token.kind == "place" else token.text
        for token in tokens
        if token.kind != "bracket"
    )


def _power_text(number: Decimal, tokens: list[_Token], power: int) -> str:
    """A number with its power of ten; of three places before the point, as in ``##0.0E+0``, one of a thousand."""
    point = tokens.index(("sign", ".")) if ("sign", ".") in tokens[:power] else power
    step = max(1, sum(token.kind == "place" for token in tokens[:point]))
    exponent = number.adjusted() if number else 0
    exponent -= exponent % step
    decimals = sum(token.kind == "place" for token in tokens[point:power])
    if round(number.scaleb(-exponent), decimals) >= 10**step:
        exponent += step
    sign = "-" if exponent < 0 else "+" * tokens[power].text.endswith("+")
    text = _whole_text(str(abs(exponent)), tokens[power + 1 :], grouped=False)
    return f"{_decimal_text(number.scaleb(-exponent), tokens[:power])}E{sign}{text}"


def _fraction_text(number: Decimal, tokens: list[_Token], slash: int) -> str:
    """A number as a fraction: ``# ?/?`` with the whole before it, ``?/8`` in eighths."""
    first = slash
    while first and tokens[first - 1].kind == "place":
        first -= 1
    end = slash + 1
    while end < len(tokens) and (tokens[end].kind == "place" or tokens[end].text.isdigit()):
        end += 1
    below = "".join(token.text for token in tokens[slash + 1 : end])
    mixed = any(token.kind == "place" for token in tokens[:first])
    whole = int(number) if mixed else 0
    rest = Fraction(number) - whole
    part = (
        Fraction(round(rest * int(below)), int(below))
        if below.isdigit() and int(below)
        else rest.limit_denominator(10 ** len(below) - 1)
    )
    over, under = part.numerator, part.denominator
    if below.isdigit() and int(below):
        over, under = int(part * int(below)), int(below)
    if mixed and over == under:
        whole, over = whole + 1, 0
    before = "".join(token.text for token in tokens[:first] if token.kind == "text").rstrip()
    after = "".join(token.text for token in tokens[end:] if token.kind == "text")
    texts = [str(whole)] if mixed and (whole or not over) else []
    texts += [f"{over}/{under}"] if over or not mixed else []
    return before + " ".join(texts) + after


# --- dates and times


def _moment_text(value: Moment, section: _Section) -> str:
    """A date, a time or a duration in the pieces of a format."""
    tokens = [
        _Token("date", token.text)
        if re.fullmatch(r"(?i)h+|m+|s+", token.text) and token.kind == "bracket"
        else token
        for token in section.tokens
    ]
    elapsed = [
        n for n, token in enumerate(section.tokens) if token.kind == "bracket" and tokens[n].kind == "date"
    ]
    pieces = [n for n, token in enumerate(tokens) if token.kind == "date"]
    system = any(
        token.kind == "bracket" and re.match(r"\$-(?:F[48]00|x-sys)", token.text, re.I) for token in tokens
    )
    if not pieces or system:
        return _plain_text(value)
    moment = _as_datetime(value)
    fine = any("." in tokens[n].text for n in pieces)
    if not fine:  # as shown, to the second
        moment += datetime.timedelta(microseconds=500_000)
    half = any(token.kind == "half" for token in tokens)
    text = ""
    for place, token in enumerate(tokens):
        if token.kind == "date":
            at = pieces.index(place)
            near = [
                tokens[n].text[0].lower() for n in (*pieces[max(0, at - 1) : at], *pieces[at + 1 : at + 2])
            ]
            is_minute = token.text[0] in "mM" and ((at and near[0] == "h") or near[-1:] == ["s"])
            name = ("n" if is_minute else token.text[0].lower()) + token.text[1:].lower()
            text += (
                _elapsed_text(moment, name)
                if place in elapsed
                else _piece_text(moment, name, half, section.chinese)
            )
        elif token.kind == "half":
            names = "上午/下午" if section.chinese else token.text
            text += names.split("/")[moment.hour >= 12]
        elif token.kind in ("text", "sign"):
            text += token.text.replace("@", "")
    return text.strip().removesuffix(" 0:00:00").removesuffix(" 00:00:00")


def _as_datetime(value: Moment) -> datetime.datetime:
    if isinstance(value, datetime.datetime):
        return value
    if isinstance(value, datetime.date):
        return datetime.datetime.combine(value, datetime.time())
    return (
        _DAY_ZERO + value
        if isinstance(value, datetime.timedelta)
        else datetime.datetime.combine(_DAY_ZERO, value)
    )


def _elapsed_text(moment: datetime.datetime, name: str) -> str:
    """All hours, minutes or seconds of a duration."""
    seconds = (moment - _DAY_ZERO).total_seconds()
    return str(int(seconds // {"h": 3600, "m": 60, "n": 60, "s": 1}[name[0]])).zfill(len(name))


def _piece_text(moment: datetime.datetime, name: str, half: bool, chinese: bool) -> str:
    """A piece of a date or time: ``yyyy``, ``mmm``, ``dd``, ``h``, ``nn`` (minutes), ``ss.00``."""
    kind, length = name[0], len(name)
    if kind in "ye":
        return f"{moment.year:04}" if length > 2 or kind == "e" else f"{moment.year % 100:02}"
    if kind == "m" and length > 2:
        month = f"{_HAN[moment.month - 1]}月" if chinese else _MONTHS[moment.month - 1]
        return month if length == 4 or chinese else month[: 1 if length > 4 else 3]
    if kind == "a" or (kind == "d" and length > 2):
        if kind == "a" or chinese:
            return ("星期" if length == 4 else "周") + _HAN_DAYS[moment.weekday()]
        return _DAYS[moment.weekday()][: None if length > 3 else 3]
    if kind == "s" and "." in name:
        decimals = length - name.index(".") - 1
        return f"{moment.second:0{name.index('.')}}" + f".{moment.microsecond:06}"[: decimals + 1]
    hour = (moment.hour - 1) % 12 + 1 if half else moment.hour
    return str(
        {"m": moment.month, "d": moment.day, "h": hour, "n": moment.minute, "s": moment.second}[kind]
    ).zfill(min(length, 2))
