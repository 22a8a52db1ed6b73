"""The values that a text states, in normal form: quantities, money, shares, dates, times, ordinals, identifiers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from rag_kit.text.language import SIMPLIFIED, TRADITIONAL, word_set
from rag_kit.text.values.forms import AFTER_A, CODES, FORMS, LETTERED, NUMBER, STARTS, TRIGGERS, read_form
from rag_kit.text.values.numbers import FIGURES, SCALES, read_any, read_figures
from rag_kit.text.values.units import Unit, dimensions_agree, rate_of, unit_at

_KWH = Unit("kWh", "energy", 3.6e6)
MAX_VALUES = 2000  # read from one text
_WIDE = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
_LEVEL = _WIDE | str.maketrans(TRADITIONAL + "−–—～〜―－　￥￡", SIMPLIFIED + "------- ¥£")


class Value(NamedTuple):
    """A value in a text, which has it at ``text[start:end]``.

    `dimension` is ``""`` for a plain number, that of the unit (``"time"``, ``"EUR"``), or ``"date"``, ``"clock"``
    (minutes of the day), ``"ordinal"``, ``"decade"``, ``"century"``, ``"quarter"``, ``"weekday"``, ``"id"``.
    """

    start: int
    end: int
    amount: float
    dimension: str = ""
    unit: str = ""  # its symbol
    per: str = ""  # symbol of the unit that it is counted by, as in 35 EUR a month
    bound: str = ""  # "min", "max" or ""
    key: str = ""  # a date as 2025-02-26, -12-24 or 2025; an identifier without its joints
    factor: float = 1.0  # of the unit and of the one that it is counted by: amount * factor compares
    open: bool = False  # a time of day that may be before or after noon
    begin: int = -1  # where the words of its bound begin; `start` where it has none
    about: bool = False  # said to be near only: about 500 m

    @property
    def base(self) -> float:
        """The amount in the base unit of the dimension."""
        return self.amount * self.factor

    @property
    def normal(self) -> str:
        """A text that equal values of one form share."""
        if self.key:
            return f"{self.bound} {self.dimension} {self.key}".lstrip()
        per = self.per and f"per {self.per}"
        digits = 9 if abs(self.base) < 1e7 else 13  # 96,580,000.50 yuan are not 96,580,000.60
        return " ".join(filter(None, (self.bound, f"{self.base:.{digits}g}", self.dimension, per)))


def level(text: str) -> str:
    """A text of the same length with plain figures, dashes and simplified characters."""
    return text if text.isascii() else text.translate(_LEVEL)


_COIN = re.compile(r"(?P<coin>[A-Z]{0,2}[$€£¥]|[A-Z]{3}|人民币)? ?(?P<sign>[-+])?(?P<number>.+)", re.DOTALL)
_SCALES = sorted(SCALES, key=len, reverse=True)
_COUNTED = (
    "个名位次倍人件台条项座家种本页层章部所间辆只块支级期届号口户份起国县省市村州"
    "场集头匹艘架棵门道步句篇轮批组对双"
)
_NO_NUMBER = word_set("万一 千万 一一 万万 百千 万千 十分 百分 千分")
# as in 单位：百万元; by themselves the last two are numbers
_ONLY_SCALES = ("万", "亿", "万亿", "百万", "千万")
_PART_AFTER = re.compile(r" and (?P<part>a half|a quarter|three[ -]quarters)\b|半(?![载径个])")
_PARTS = {"a quarter": 0.25, "three quarters": 0.75, "three-quarters": 0.75}
_PER = re.compile(r" ?[/·] ?(?=\S)| (?:per|an?|each|every|pro|je|im) | ?每(?=[^\s，。])")
_EACH = re.compile(r"(?:每|(?=逾期|延误|延期|迟延|延迟|超期))(逾期|延误|延期|迟延|延迟|超期)?一?个?")
_AFTER_EACH = re.compile(r"[\u4e00-\u9fff]{0,6}(?:为|是|约|：|:)?\s?")
_AFTER_LATE = re.compile(r"[^。；;\d]{0,14}")  # 每逾期一日，按合同总价的千分之五
_TIMES = ("time", "months", "calendar days")
_AGAIN = re.compile(rf" ?\(({FIGURES})\)")  # ninety (90) days
_RANGE = re.compile(r"\s?(?:-|~|to|and|bis|und|至|到|和)\s?")
_RANGE_ON = re.compile(r"[至到~-][\d一二两三四五六七八九十]")
_JOINED = re.compile(r"\s?(?:,?\s?and\s|零|又|und\s)?\s?")
_LOWER = re.compile(
    r"(?:\b(?:at least|(?:a )?minimum(?: of)?|(?:more|greater|older|higher|larger|longer|later) than|over|above"
    r"|exceed(?:s|ing)?|mindestens)|至少|最少|最低|超过|高于|大于|多于|≥|>)(?:[\u4e00-\u9fff]{1,10}的)?\s?$",
    re.IGNORECASE,
)
_UPPER = re.compile(
    r"(?:\b(?:at most|up to|(?:a )?maximum(?: of)?|(?:less|fewer|smaller|lower|younger|shorter|earlier) than|under"
    r"|below|höchstens|maximal)|至多|最多|最高|最大|低于|少于|小于|不满|未满|≤|<)(?:[\u4e00-\u9fff]{1,10}的)?\s?$",
    re.IGNORECASE,
)
_ABOUT = re.compile(
    r"(?:\b(?:about|around|roughly|nearly|almost|approximately|approx\.|some|circa|ca\.|etwa|rund)|约|大概|将?近)\s?$",
    re.IGNORECASE,
)
_ABOUT_AFTER = re.compile(r"左右|上下")
_DENIED = re.compile(r"(?:\b(?:not|no|never)|n't|不得?|未|没有?)\s?$", re.IGNORECASE)
_AFTER = re.compile(
    r"(?:\s[a-z]+){0,2},?\s?(?:(?P<min>or (?:more|above|higher|older)|at the earliest|以上|及以上)"
    r"|(?P<max>or (?:less|fewer|lower)|at the latest|以下|以内|之内))"
)


def find_values(text: str) -> list[Value]:
    """The values that a text states, in order, in normal form.

    Numbers in figures, words and Chinese numerals with their scale and unit; money; shares; dates, times of day and
    ordinals; identifiers such as XR-20. English and Chinese, and the common German forms. "Two years and 6 months" is
    one value, "5 to 10 days" are two.

    Example:
        >>> [(v.amount, v.unit, v.per) for v in find_values("Parking costs 35 EUR a month; the motor draws 2.5 kW.")]
        [(35.0, 'EUR', 'month'), (2.5, 'kW', '')]
        >>> [v.normal for v in find_values("2025年2月26日, 3 March 2025, 一年半, 24 months, 百分之八十, QX-45")]
        ['date 2025-02-26', 'date 2025-03-03', '18 months', '24 months', '0.8 ratio', 'id QX45']
    """
    plain = level(text)
    found: list[Value] = []
    for value in _scan(plain):
        found.append(value)
        if len(found) > 1:
            found[-2:] = _join(plain, *found[-2:])
        if len(found) >= MAX_VALUES:
            break
    return found


def _scan(text: str) -> Iterator[Value]:
    """Each value by itself."""
    end = 0
    for start in STARTS.finditer(text):
        place, word = start.start(), start[0]
        if word[0] in "+-" and text[place - 1 : place].strip("( ,:，：（~"):
            place += 1  # a hyphen after a word is no sign
        if place < end:
            continue
        if word[0].isalpha() and word.isascii() and not _may_begin(text, word, start.end()):
            continue
        match = FORMS.match(text, place)
        if match and match.lastgroup == "date" and match[0].isdecimal() and _is_counted(text, match.end()):
            match = NUMBER.match(text, place)
        if match is None or not match.lastgroup:
            continue
        value = _number(text, match) if match.lastgroup == "number" else _other(text, match)
        if value is not None:
            end = value.end
            yield value


def _is_counted(text: str, end: int) -> bool:
    """Tell whether figures that may be a year have a scale or a unit."""
    return text[end : end + 1] in (*_COUNTED, *"千万亿") or unit_at(text, end) is not None


def _may_begin(text: str, word: str, end: int) -> bool:
    """Tell whether a word may begin a value: one that counts or names a time, or letters before figures."""
    if word.lower() in TRIGGERS or word in CODES:
        return True
    following = text[end : end + 2]
    if len(word) == 1 and re.match(f" ?{LETTERED}", following):
        return word.isupper()
    if word in ("a", "A", "an", "An"):
        return AFTER_A.match(text, end) is not None
    return word[0].isupper() and (
        following[:1].isdigit() or (following[:1] in ("-", "/") and following[1:].isdigit())
    )


def _other(text: str, match: re.Match[str]) -> Value | None:
    """A value of a form that has no unit."""
    form, start, end = match.lastgroup or "", match.start(), match.end()
    read = read_form(form, match[0])
    if read is None:
        return None
    amount, key, is_open = read
    if form == "share":
        by, end = _counted_by(text, start, end, None)
        bound, begin = _bound(text, start, end)
        return counted_by(Value(start, end, amount, "ratio", bound=bound, begin=begin), *by)
    bound, begin = _bound(text, start, end) if form in ("date", "clock") else ("", start)
    return Value(start, end, amount, form, bound=bound, key=key, open=is_open, begin=begin)


def _number(text: str, match: re.Match[str]) -> Value | None:
    """A number with what stands around it: sign of money, scale, unit, what it is counted by, bounds."""
    start, end = match.span()
    parts = _COIN.fullmatch(match[0])
    if parts is None:
        return None
    amount, numeral = _amount(parts["number"])
    if (again := _AGAIN.match(text, end)) and read_figures(again[1]) == amount:
        end = again.end()
    coin = unit_at(parts["coin"], 0) if parts["coin"] else None
    unit = unit_at(text, end)
    if coin and not (unit and dimensions_agree(coin[0].dimension, unit[0].dimension)):
        unit = None
    if text.startswith("个半", end) and (
        unit := unit_at(text, end + 2) or unit_at(f"个{text[end + 2 :][:4]}", 0)
    ):
        amount += 0.5
        end += 2
        unit = unit._replace(end=end + 1) if text[end] == "月" else unit
    in_brackets = not text[max(0, start - 1) : start].strip(" (：:")
    kilo = numeral == "千" and unit and unit_at(text, match.end() - 1)  # 千瓦时 without a number
    if (
        kilo
        or numeral in _ONLY_SCALES[: 3 + 2 * in_brackets]
        or (not coin and unit is None and _counts_nothing(text, numeral, end))
    ):
        return None
    symbol, dimension, factor = "", "", 1.0
    if unit:
        (symbol, dimension, factor), end = unit
        if part := _PART_AFTER.match(text, end) if dimension in ("time", "months") else None:
            amount, end = amount + _PARTS.get(part["part"] or "", 0.5), part.end()
    elif coin:
        symbol, dimension, factor = coin[0]
    if parts["sign"] == "-":
        amount = -amount
    by, end = _counted_by(text, start, end, unit[0] if unit else None)
    if unit and (rate := rate_of(unit[0])):
        symbol, dimension, factor = rate[0]
    bound, begin = _bound(text, start, end)
    about = _ABOUT.search(text, max(0, start - 16), start) or _ABOUT_AFTER.match(text, end)
    value = Value(
        start, end, amount, dimension, symbol, bound=bound, factor=factor, begin=begin, about=bool(about)
    )
    return counted_by(value, *by)


def counted_by(value: Value, *units: Unit) -> Value:
    """A value counted by units; a time is the last of them."""
    for by in sorted(units, key=lambda unit: unit.dimension in _TIMES):
        per, dimension = f"{value.per}·{by.symbol}".lstrip("·"), f"{value.dimension}/{by.dimension}"
        value = value._replace(per=per, factor=value.factor / by.factor, dimension=dimension)
    return value


def uncounted(value: Value) -> Value:
    """A value without the units that it is counted by."""
    factor = value.factor
    for found in filter(None, (unit_at(name, 0) for name in value.per.split("·"))):
        factor *= found[0].factor
    return value._replace(per="", factor=factor, dimension=value.dimension.split("/")[0])


def _amount(text: str) -> tuple[float, str]:
    """The amount of a numeral with its scale or half, and the numeral."""
    lowered = text.lower()
    if lowered.startswith("half a") or text == "半":
        return 0.5, text
    if lowered.endswith(" and a half"):
        return read_any(text[: -len(" and a half")]) + 0.5, "1.5"
    for scale in _SCALES:
        if lowered.rstrip(".").endswith(scale) and text[0].isdigit() and text[0].isascii():
            return read_any(text[: -len(scale)].strip()) * SCALES[scale], text
    return read_any(text.strip()), text.strip()


def _counts_nothing(text: str, numeral: str, end: int) -> bool:
    """Tell whether a numeral without a unit is a part of a word, or as empty as "one" and 一."""
    if numeral == "一" and text[end : end + 1] in (*"级期号层等类组",):
        return False
    if numeral.lower() in ("one", "a", "an", "一", "半") or numeral in _NO_NUMBER:
        return True
    follows = text[end : end + 1] in (*_COUNTED,) or _RANGE_ON.match(text, end)
    return len(numeral) == 1 and not numeral.isascii() and not follows


def _counted_by(text: str, start: int, end: int, unit: Unit | None) -> tuple[list[Unit], int]:
    """The units that a value is counted by, as in 28元/平方米·月 or 每平方米每日6.8元, and where the last one ends."""
    if unit and (rate := rate_of(unit)):
        return [rate[1]], end
    after: list[Unit] = []
    while len(after) < 2 and (match := _PER.match(text, end)):
        following = _counting_unit(text, match.end() - (text[match.end() - 1] == " "))
        if not following or not (following[0].dimension in _TIMES or match[0].strip() in "/·per每"):
            break
        after.append(following[0])
        end = following[1]
    before = []
    for match in () if after else _EACH.finditer(text, max(0, start - 22), start):
        if found := _counting_unit(text, match.end()):
            between = (_AFTER_LATE if match[1] else _AFTER_EACH).fullmatch(text, found[1], start)
            before += [found[0]] if between else []
    return after or before[-2:], end


def _counting_unit(text: str, place: int) -> tuple[Unit, int] | None:
    """The unit at a place by which something is counted; 度 is a kilowatt-hour."""
    found = unit_at(text, place)
    return (_KWH, found[1]) if found and found[0].dimension == "degrees" else found


def _bound(text: str, start: int, end: int) -> tuple[str, int]:
    """Tell whether a value is a bound, "min" or "max", and where the words begin that say so."""
    first = max(0, start - 24)
    before = text[first:start]
    if (after := _AFTER.match(text, end)) and after.lastgroup:
        return after.lastgroup, start
    for bound, pattern, other in (("min", _LOWER, "max"), ("max", _UPPER, "min")):
        if match := pattern.search(before):
            denied = _DENIED.search(before[: match.start()])
            return (other if denied else bound), first + (denied or match).start()
    return "", start


def _join(text: str, first: Value, second: Value) -> list[Value]:
    """Two values, the first with the unit of the second in a range; or the one that they make, as 1 h 30 min."""
    between = text[first.end : second.start]
    if len(between) > 6:
        return [first, second]
    plain = not first.dimension and second.dimension and second.unit
    if plain and not first.key and _RANGE.fullmatch(between):
        first = first._replace(
            dimension=second.dimension, unit=second.unit, per=second.per, factor=second.factor
        )
    elif (
        first.dimension == second.dimension and first.unit and not first.per
        and 0 < second.base < first.factor and _JOINED.fullmatch(between)
    ):  # fmt: skip
        amount = first.amount + second.amount * second.factor / first.factor
        return [first._replace(end=second.end, amount=amount, per=second.per)]
    return [first, second]


def same_value(stated: Value, said: Value) -> bool:
    """Tell whether a text that says one value says the other too: equal across units, and dates as exact or less exact.

    Example:
        >>> both = find_values("24 months, two years, March 2025, 3 March 2025")
        >>> same_value(both[0], both[1]), same_value(both[2], both[3]), same_value(both[3], both[2])
        (True, True, False)
    """
    if {stated.bound, said.bound} == {"min", "max"}:
        return False
    if "date" in (stated.dimension, said.dimension):
        return _same_date(stated, said)
    if stated.key or said.key:
        return stated.key == said.key
    if stated.dimension == "clock" and said.dimension == "clock":
        apart = abs(stated.amount - said.amount)
        return apart == 0 or (apart == 720 and (stated.open or said.open))
    if {stated.dimension, said.dimension} in ({"ordinal", "calendar days"}, {"ordinal", ""}):
        return stated.amount == said.amount
    if "pounds" in (stated.dimension, said.dimension) and stated.dimension != said.dimension:
        return dimensions_agree(stated.dimension, said.dimension) and stated.amount == said.amount
    near = stated.about and _is_rounded(stated.amount, said.base / stated.factor)
    return dimensions_agree(stated.dimension, said.dimension) and (near or _close(stated.base, said.base))


def _is_rounded(amount: float, exact: float) -> bool:
    """Tell whether an amount of one or two significant figures is another one rounded to as many."""
    figures = len(f"{abs(amount):.6g}".replace(".", "").strip("0"))
    return figures <= 2 and _close(amount, float(f"{exact:.{figures}g}"))


def _close(one: float, other: float) -> bool:
    return abs(one - other) <= 1e-11 * max(abs(one), abs(other))


def _same_date(stated: Value, said: Value) -> bool:
    """Tell whether a date holds the parts of another; a year is also a plain number."""
    if stated.dimension != said.dimension:
        plain, date = sorted((stated, said), key=lambda value: value.dimension == "date")
        return not plain.dimension and date.key == f"{plain.amount:.0f}"
    parts = (*stated.key.split("-"), "", "")[:3], (*said.key.split("-"), "", "")[:3]
    return all(not mine or mine == other for mine, other in zip(*parts, strict=True))
