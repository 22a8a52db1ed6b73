"""Dates, times and durations of spreadsheet cells as their number format shows them."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from typing import NamedTuple

_DAY_ZERO = datetime.datetime(1899, 12, 30)
_MONTHS = "January February March April May June July August September October November December".split()  # noqa: SIM905
_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()  # noqa: SIM905
_HAN_MONTHS = "一 二 三 四 五 六 七 八 九 十 十一 十二".split()  # noqa: SIM905
_HAN_DAYS = "一二三四五六日"
_CHINESE = re.compile(r"\$.*-.*[048]04")
_SYSTEM = re.compile(r"\$-(?:F[48]00|x-sys)", re.I)
_SECONDS = {"h": 3600, "m": 60, "n": 60, "s": 1}

Moment = datetime.datetime | datetime.date | datetime.time | datetime.timedelta


class Token(NamedTuple):
    """A piece of a number format: its kind (``place`` of a digit, ``date``, ``text``, ...) and its text."""

    kind: str
    text: str


def plain_text(value: object) -> str:
    """A value without a format: numbers with up to 15 digits, dates as ISO writes them."""
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ").removesuffix(" 00:00:00")
    return f"{value:.15G}" if isinstance(value, float) else str(value)


def named_tokens(tokens: Sequence[Token]) -> tuple[Token, ...]:
    """The pieces of a format, those of dates in small letters, minutes with ``n`` in place of ``m``.

    Months and minutes have the same letter: minutes are behind hours, or before seconds.
    """
    named = list(tokens)
    pieces = [n for n, token in enumerate(tokens) if token.kind in ("date", "elapsed")]
    for before, place, after in zip([None, *pieces], pieces, [*pieces[1:], None], strict=False):
        name = tokens[place].text.lower()
        of_hour = before is not None and tokens[before].text[0] in "hH"
        of_hour = of_hour or (after is not None and tokens[after].text[0] in "sS")
        named[place] = Token(tokens[place].kind, name.replace("m", "n") if of_hour else name)
    if any(map(_CHINESE.match, (token.text for token in tokens if token.kind == "bracket"))):
        named = [Token("chinese", token.text) if token.kind == "date" else token for token in named]
        named = [Token("half", "上午/下午") if token.kind == "half" else token for token in named]
    if any(map(_SYSTEM.match, (token.text for token in tokens if token.kind == "bracket"))):
        return ()
    return tuple(named)


def moment_text(value: Moment, tokens: Sequence[Token]) -> str:
    """A date, a time or a duration in the pieces of a format; midnight is left out after a date.

    Example:
        >>> moment_text(datetime.timedelta(hours=30), [Token("elapsed", "h"), Token("text", ":"), Token("date", "nn")])
        '30:00'
    """
    kinds = {token.kind for token in tokens}
    if not kinds & {"date", "chinese", "elapsed"}:
        return plain_text(value)
    moment = _as_datetime(value)
    if moment.microsecond and all("." not in token.text for token in tokens if token.kind == "date"):
        moment += datetime.timedelta(microseconds=500_000)  # times are shown to the second
    text = ""
    for kind, piece in tokens:
        if kind == "elapsed":
            seconds = (moment - _DAY_ZERO).total_seconds()
            text += str(int(seconds // _SECONDS[piece[0]])).zfill(len(piece))
        elif kind in ("date", "chinese"):
            text += _piece_text(moment, piece, half="half" in kinds, chinese=kind == "chinese")
        elif kind == "half":
            text += piece.split("/")[moment.hour >= 12]
        elif kind == "text" or (kind == "sign" and piece != "@"):
            text += piece
    return re.sub(r"\s+0?0:00:00$", "", text.strip())


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


def _piece_text(moment: datetime.datetime, name: str, *, half: bool, chinese: bool) -> str:
    """A piece of a date or time: ``yyyy``, ``mmm``, ``dd``, ``h``, ``nn`` (minutes), ``ss.00``."""
    kind, length = name[0], len(name)
    if kind in "ye":
        return str(moment.year) if length > 2 or kind == "e" else f"{moment.year % 100:02}"
    if kind == "m" and length > 2:
        month = f"{_HAN_MONTHS[moment.month - 1]}月" if chinese else _MONTHS[moment.month - 1]
        return month if length == 4 or chinese else month[: 1 if length > 4 else 3]
    if kind == "a" or (kind == "d" and length > 2):
        day = moment.weekday()
        if kind == "a" or chinese:
            return ("星期" if length == 4 else "周") + _HAN_DAYS[day]
        return _DAYS[day] if length > 3 else _DAYS[day][:3]
    if "." in name:
        whole, _, decimals = name.partition(".")
        return f"{moment.second:0{len(whole)}}." + f"{moment.microsecond:06}"[: len(decimals)]
    hour = (moment.hour - 1) % 12 + 1 if half else moment.hour
    numbers = {"m": moment.month, "d": moment.day, "h": hour, "n": moment.minute, "s": moment.second}
    return str(numbers[kind]).zfill(min(length, 2))
