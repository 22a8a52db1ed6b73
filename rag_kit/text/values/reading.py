"""The values that a text states, in normal form: quantities, money, shares, dates, times, ordinals, identifiers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rag_kit.text.language import SIMPLIFIED, TRADITIONAL, word_set
from rag_kit.text.values import forms
from rag_kit.text.values.numbers import FIGURES, SCALES, read_any, read_figures
from rag_kit.text.values.units import FoundUnit, Unit, dimensions_agree, rate_of, unit_at, unit_named
from rag_kit.text.values.value import TIMES, Value, counted_by, join, share_unit

MAX_VALUES = 2000  # read from one text
_WIDE = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
_LEVEL = _WIDE | str.maketrans(TRADITIONAL + "−–—～〜―－　￥￡∶", SIMPLIFIED + "------- ¥£:")


def level(text: str) -> str:
    """Return a text of the same length with plain figures, dashes and simplified characters."""
    return text if text.isascii() else text.translate(_LEVEL)


_COIN = re.compile(
    rf"(?P<coin>[A-Z]{{0,2}}[$€£¥]|[A-Z]{{3}}|{forms.COINS_ZH})? ?(?P<sign>[-+负]|零下)?(?P<number>.+)",
    re.DOTALL,
)
_SCALES = sorted(SCALES, key=len, reverse=True)
_SHORT_SCALES = {"m": 1e6, "M": 1e6, "B": 1e9}  # of money
_COUNTED = frozenset(
    "个名位次倍人件台条项座家种本页层章部所间辆只块支级期届号口户份起国县省市村州"
    "楼场集头匹艘架棵门道步句篇轮批组对双册瓶箱袋包盒张片粒盘卷株枚杯碗桶罐幅笔票项趟遍顿幢栋扇辈"
)
_NO_NUMBER = word_set("万一 千万 一一 万万 百千 万千 十分 百分 千分")
# a scale by itself is no number; some are none in a caption alone, as in 单位：百万元 and (thousand EUR)
_ONLY_SCALES = ("万", "亿", "万亿")
_SCALES_OF_CAPTIONS = ("百万", "千万", "thousand", "million", "billion")
_BEFORE_SCALE = re.compile(r"(?:^|[(（:：]|\bin) ?$")
_PART_AFTER = re.compile(r" and (?P<part>a half|a quarter|three[ -]quarters)\b|半(?![载径个])")
_PARTS = {"a quarter": 0.25, "three quarters": 0.75, "three-quarters": 0.75}
_OF_A = re.compile(r" of (?:an?|one) ")
_HAN_DIGIT = "[零一二三四五六七八九十]"
_PROPORTION = re.compile(
    rf"(?P<first>\d{{1,4}}(?:\.\d+)?|{_HAN_DIGIT}(?=比{_HAN_DIGIT}))(?P<colon>:| : | to |比)"
    rf"(?P<last>\d{{1,6}}(?:\.\d+)?(?![\d:.]?\d|[,-]\d)|(?<=比){_HAN_DIGIT}(?![零一二三四五六七八九十百千万亿点]))"
)
_DECIMAL = re.compile(r"\d+(?:\.\d+)?")
_TIME = re.compile(r"(?:[01]?\d|2[0-4]):[0-5]\d")
_BEFORE_PROPORTION = re.compile(
    r"(?:\b(?:ratio|proportion|odds)(?: of| is| was)?|\b(?:scale|score|mixed)"
    r"|(?:比例|比分|比率|之比|配比)[为是：:]?)\s?$"
)
_PROPORTION_WITHIN = 16  # characters before a proportion in which such a word is looked for
_PER = re.compile(r" ?[/·] ?(?=\S)| (?:per|an?|each|every|pro|je|im) | ?每(?=[^\s，。])")
_YEARLY = re.compile(r" ?p\.\s?a\.")
_ANY_UNIT = ("/", "·", "per", "每")  # after these, and not "a", "each" ..., other units than times count, too
_LATE = "逾期|延误|延期|迟延|延迟|超期"
_EACH = re.compile(rf"(?:每|(?<![第月十])(?=一[日天])|(?={_LATE}))(?P<late>{_LATE})?[一1]?个?")
_POINTING = re.compile(rf"(?:[上下同这那]|每(?:{_LATE})?)$")  # 上一年, 每一年, 每逾期1日
_AFTER_EACH = re.compile(r"(?:[\u4e00-\u9fff]{0,6}|(?:(?![前后])[\u4e00-\u9fff]){7,12})(?:为|是|约|：|:)?\s?")
_AFTER_LATE = re.compile(r"[^。；;\d]{0,14}")  # 每逾期一日，按合同总价的千分之五
_MAX_COUNTING = 2  # units that a value is counted by
# characters before a value in which words for "each", its bound and "about" are looked for
_EACH_WITHIN, _BOUND_WITHIN, _ABOUT_WITHIN = 22, 24, 16
_AGAIN = re.compile(rf" ?\(({FIGURES})\)")  # ninety (90) days
_SIGNED = re.compile(
    r"(?<=[\u4e00-\u9fff])[-+]\d[\d,.]*\s?(?:[%‰℃°度元万亿]|[A-Za-z]{1,3}\b)"  # 增长率-3.5%
    r"|(?<=[\u4e00-\u9fff])(?<!\d[\u4e00-\u9fff])[-+]\d[\d,.]*\s?[~至到-]\s?[-+]?\d[\d,.]*\s?[%‰℃°度]"  # 从-20至40℃
)
_RANGE_ON = re.compile(r"[至到~-][\d一二两三四五六七八九十]")
# between the word of a bound and its value, as in 最高可申请5万元 and 至少提前4小时
_TO_VALUE = (
    r"(?:[\u4e00-\u9fff]{1,10}的"
    r"|(?P<verb>(?:只?[可能]|(?<=[最至][多少]))[^\W\d_的一二两三四五六七八九十百千万]{0,8}))?[为是]?\s?$"
)
_LOWER = re.compile(
    r"(?:\b(?:at least|as (?:few|low|early) as|(?:a )?minimum(?: of)?|over|above"
    r"|(?:more|greater|older|higher|larger|longer|later|taller|heavier|wider|deeper|thicker|faster) than"
    rf"|exceed(?:s|ing)?|mindestens)|至少|最少|最低|超过|高于|大于|多于|(?<!期)(?<!圆)年?满|≥|>){_TO_VALUE}",
    re.IGNORECASE,
)
_UPPER = re.compile(
    r"(?:\b(?:at most|up to|as (?:long|many|high|large|far|late) as|(?:a )?maximum(?: of)?|under"
    r"|(?:capped|limited) (?:at|to)"
    r"|(?:less|fewer|smaller|lower|younger|shorter|earlier|lighter|narrower|thinner|slower|cheaper) than"
    rf"|below|höchstens|maximal)|至多|最多|最高|最大|低于|少于|小于|不[满到足]|未满|≤|<){_TO_VALUE}",
    re.IGNORECASE,
)
_ABOUT = re.compile(
    r"(?:\b(?:about|around|roughly|nearly|almost|approximately|approx\.|some|circa|ca\.|etwa|rund)|(?:大?约|大概|将?近)为?)\s?$",
    re.IGNORECASE,
)
_ABOUT_AFTER = re.compile(r"左右|上下")
# maybe with a verb in between: not take more than
_DENIED = re.compile(
    r"(?:(?:\b(?:not|no|never)|n't)(?: [a-z]+){0,2}|(?:最[多大])?不[得应宜能可会]?|未|没有?)\s?$",
    re.IGNORECASE,
)
_AFTER = re.compile(
    r"(?:\s[a-z]+){0,2},?\s?(?:(?P<min>or (?:more|above|higher|older|longer|later)|at the earliest|以上|及以上)"
    r"|(?P<max>or (?:less|fewer|lower|shorter|earlier)|at the latest|以下|以内|之内))"
)


def find_values(text: str) -> list[Value]:
    """Return the values that a text states, in order, in normal form.

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
    for value in _single_values(plain):
        found.append(value)
        if len(found) > 1:
            found[-2:] = join(plain, *found[-2:])
            share_unit(plain, found)
        if len(found) >= MAX_VALUES:
            break
    return found


def _single_values(text: str) -> Iterator[Value]:
    """Yield the values of a text one by one; "1 h 30 min" gives two, which are joined later."""
    end = 0  # of the value before
    for beginning in forms.STARTS.finditer(text):
        start, word = beginning.start(), beginning[0]
        if word[0] in "+-":  # a hyphen after a word, as in "page-3", is no sign; one of 增长率-3.5% is
            is_after_word = text[start - 1 : start].strip("( ,:，：（~")
            if is_after_word and (start == end or not _SIGNED.match(text, start)):
                start += 1
        is_latin = word[0].isalpha() and word.isascii()
        if start < end or (is_latin and not _may_begin(text, word, beginning.end())):
            continue
        value = _read_proportion(text, start) or _read_form(text, start)
        if value is not None:
            end = value.end
            yield value


def _read_proportion(text: str, start: int) -> Value | None:
    """Read a proportion or score such as 1:50; "1 to 50" and what may be a time of day are one only behind a word."""
    match = _PROPORTION.match(text, start)
    if match is None or _has_unit_behind(text, match.end()):  # 附件1：3份 is none
        return None
    may_be_other = _TIME.fullmatch(match[0]) or match["colon"] == " to "
    if may_be_other and not _BEFORE_PROPORTION.search(text, max(0, start - _PROPORTION_WITHIN), start):
        return None
    first, last = read_any(match["first"]), read_any(match["last"])
    return Value(start, match.end(), first, "proportion", key=f"{first:g}:{last:g}", begin=start)


def _has_unit_behind(text: str, end: int) -> bool:
    """Tell whether a numeral that ends at a position has a unit, a scale or a word for what is counted behind it."""
    following = text[end : end + 1]
    return following in (*"千万亿", *_COUNTED) or unit_at(text, end) is not None


def _may_begin(text: str, word: str, end: int) -> bool:
    """Tell whether a Latin word that ends at a position may begin a value: a number, a time or an identifier."""
    if word.lower() in forms.TRIGGERS or word in forms.CODES:
        return True
    following = text[end : end + 2]
    if len(word) == 1 and re.match(f" ?{forms.LETTERED}", following):  # B区
        return word.isupper()
    has_digit_behind = following.removeprefix("-")[:1].isdigit()  # A3, A-03
    if word in ("a", "A", "an", "An") and not (word == "A" and has_digit_behind):
        return forms.AFTER_A.match(text, end) is not None
    return word[0].isupper() and following.removeprefix("-").removeprefix("/")[:1].isdigit()  # XR-20


def _read_form(text: str, start: int) -> Value | None:
    """Read a number, date, time, ordinal, share or identifier; None if there is none, as in 2025-13."""
    match = forms.FORMS.match(text, start)
    if match and match.lastgroup == "date" and _DECIMAL.fullmatch(match[0]):
        is_month = text[match.end() : match.end() + 1] in ("月", "日")  # 2023.5月
        if _has_unit_behind(text, match.end()) and not is_month:  # 2000 kg, 1998.5万元
            match = forms.NUMBER.match(text, start)
    if match is None:
        return None
    form, end = match.lastgroup or "", match.end()
    if form == "number":
        return _read_number(text, match)
    reading = forms.READERS[form](match[0])
    if reading is None:
        return None
    if form == "share":
        return _complete_share(text, start, end, reading.amount)
    bound, begin = _bound(text, start, end) if form in ("date", "clock") else ("", start)
    return Value(
        start, end, reading.amount, form, bound=bound, key=reading.key, open=reading.is_open, begin=begin
    )


def _complete_share(text: str, start: int, end: int, share: float) -> Value:
    """Return a share with its bound and "per" units; one of a unit, as "a quarter of a litre", as an amount of that."""
    if (of := _OF_A.match(text, end)) and (part := unit_at(text, of.end())):
        symbol, dimension, factor = part.unit
        return Value(start, part.end, share, dimension, symbol, factor=factor, begin=start)
    units, end = _counting_units(text, start, end)
    bound, begin = _bound(text, start, end)
    about, begin = _about(text, begin, end)
    return counted_by(Value(start, end, share, "ratio", bound=bound, begin=begin, about=about), *units)


def _read_number(text: str, match: re.Match[str]) -> Value | None:
    """Read a number with all that belongs to it: sign of money, scale, unit, the units that it is counted by, bound.

    None if the numeral is a part of a word or counts nothing, as "one" in "one of them".
    """
    start, end = match.span()
    [(coin_name, sign, number)] = _COIN.findall(match[0])  # "€", "-" and "5.50"
    amount, numeral = _read_amount(number)
    again = _AGAIN.match(text, end)
    if again and read_figures(again[1]) == amount:
        end = again.end()
    coin = unit_at(coin_name, 0) if coin_name else None
    unit = _unit_behind(text, end, coin)
    if text.startswith("个半", end):  # 两个半小时, 三个半月
        unit = unit_at(text, end + len("个半"))
        amount += 0.5 if unit else 0.0
    is_in_unit = numeral == "千" and unit and unit_at(text, match.end() - 1)  # 千瓦时 is no number of 瓦时
    counts_nothing = not coin and unit is None and _counts_nothing(text, numeral, end)
    if is_in_unit or counts_nothing or _is_scale_or_pointer(text, numeral, start):
        return None
    measured = coin.unit if coin else Unit("", "", 1.0)
    if unit:
        measured, end = unit
    elif coin and text[end : end + 1] in _SHORT_SCALES and not text[end + 1 : end + 2].isalnum():  # €61m
        amount, end = amount * _SHORT_SCALES[text[end]], end + 1
    half = _PART_AFTER.match(text, end) if measured.dimension in ("time", "months") else None
    if half:  # "a year and a half", "a year and a quarter", 一年半
        amount, end = amount + _PARTS.get(half["part"] or "", 0.5), half.end()
    if numeral != "两" and not measured.dimension and text[end : end + 1] in (*"期届号级",):  # 一期, 三号
        measured = Unit("", "ordinal", 1.0)
    if sign and sign != "+":
        amount = -amount
    return _complete_number(text, start, end, amount, measured)


def _is_scale_or_pointer(text: str, numeral: str, start: int) -> bool:
    """Tell whether a numeral is no number: a scale alone, as in 单位：百万元, or the 一 of 上一年 and 每一年."""
    window = max(0, start - 4)  # where the few characters before it begin
    if numeral in ("一", "1"):
        return _POINTING.search(text, window, start) is not None
    if numeral.lower() in _SCALES_OF_CAPTIONS:
        return _BEFORE_SCALE.search(text, window, start) is not None
    return numeral in _ONLY_SCALES


def _complete_number(text: str, start: int, end: int, amount: float, measured: Unit) -> Value:
    """Return a number of a unit with its bound, "about" and the units that it is counted by: 5 EUR a month."""
    if rate := rate_of(measured):
        measured, *units = rate  # mph: miles, by the hour
    else:
        units, end = _counting_units(text, start, end)
    if amount == 1 and text.startswith("次", end):  # 每年1次 is 每年一次, which is no value
        units = []
    bound, begin = _bound(text, start, end)
    about, _ = _about(text, begin, end)
    symbol, dimension, factor = measured
    value = Value(start, end, amount, dimension, symbol, bound=bound, factor=factor, begin=begin, about=about)
    return counted_by(value, *units)


def _unit_behind(text: str, end: int, coin: FoundUnit | None) -> FoundUnit | None:
    """Find the unit behind a number; behind one with a sign of money, as $5, only a unit of that money counts."""
    unit = unit_at(text, end + (text.startswith(")", end) and "±" in text[max(0, end - _BOUND_WITHIN) : end]))
    if coin is None or unit is None:
        return unit
    if text.startswith("元", unit.end - 1):
        return unit._replace(unit=coin.unit)  # 港币60元 are no yuan
    return unit if dimensions_agree(coin.unit.dimension, unit.unit.dimension) else None


def _read_amount(text: str) -> tuple[float, str]:
    """Read a number with its scale or half; return its amount and the numeral: "1.5 million" -> 1500000.0 and itself.

    Of "one and a half" the numeral is "1.5", which, unlike "one", always counts something.
    """
    lowered = text.lower()
    if lowered.startswith("half a") or text == "半":
        scale = next((scale for scale in _SCALES if lowered.endswith(scale)), "")  # half a million
        return 0.5 * SCALES.get(scale, 1.0), text
    if lowered.endswith(" and a half"):
        return read_any(text[: -len(" and a half")]) + 0.5, "1.5"
    for scale in _SCALES:
        if lowered.rstrip(".").endswith(scale) and text[0].isdigit() and text[0].isascii():
            return read_any(text[: -len(scale)].strip()) * SCALES[scale], text
    return read_any(text.strip()), text.strip()


def _counts_nothing(text: str, numeral: str, end: int) -> bool:
    """Tell whether a numeral without a unit is a part of a word, or as empty as "one" and 一."""
    following = text[end : end + 1]
    if numeral == "一" and following in (*"级期号层等类组",):  # 一期 is the first
        return False
    if numeral.lower() in ("one", "a", "an", "一", "半") or numeral in _NO_NUMBER:
        return True
    is_single_han = len(numeral) == 1 and not numeral.isascii()
    return is_single_han and following not in _COUNTED and not _RANGE_ON.match(text, end)  # 三至五天


def _counting_units(text: str, start: int, end: int) -> tuple[list[Unit], int]:
    """Find the units that a value is counted by, behind it (28元/平方米·月) or before it (每平方米每日6.8元).

    Returns the units, none if it is counted by none, and where the value with those behind it ends.
    """
    behind: list[Unit] = []
    if yearly := _YEARLY.match(text, end):
        behind, end = [unit_named("year")], yearly.end()
    while len(behind) < _MAX_COUNTING and (per := _PER.match(text, end)):
        unit = _counting_unit(text, per.end())
        if not unit or not (unit.unit.dimension in TIMES or per[0].strip() in _ANY_UNIT):
            break
        behind.append(unit.unit)
        end = unit.end
    if behind:
        return behind, end
    before: list[Unit] = []
    for each in _EACH.finditer(text, max(0, start - _EACH_WITHIN), start):
        unit = _counting_unit(text, each.end())
        between = _AFTER_LATE if each["late"] else _AFTER_EACH  # between the unit and the value
        if unit and between.fullmatch(text, unit.end, start):
            before.append(unit.unit)
    return before[-_MAX_COUNTING:], end


def _counting_unit(text: str, position: int) -> FoundUnit | None:
    """Find the unit at a position by which something is counted; 度 is a kilowatt-hour there."""
    found = unit_at(text, position)
    return found._replace(unit=unit_named("kWh")) if found and found.unit.dimension == "degrees" else found


def _bound(text: str, start: int, end: int) -> tuple[str, int]:
    """Return the bound of a value, "min" for "at least 5", "max" or "", and where its words begin, else `start`."""
    if (after := _AFTER.match(text, end)) and after.lastgroup:
        return after.lastgroup, start
    offset = max(0, start - _BOUND_WITHIN)
    before = text[offset:start]
    for bound, pattern, opposite in (("min", _LOWER, "max"), ("max", _UPPER, "min")):
        match = pattern.search(before)
        if match and (denied := _DENIED.search(before[: match.start()])):  # "not more than 5" is at most 5
            return opposite, offset + denied.start()
        if match:  # a verb between bound and value is a word of its own
            return bound, start if match["verb"] else offset + match.start()
    return "", start


def _about(text: str, begin: int, end: int) -> tuple[bool, int]:
    """Tell whether "about" or the like is said of a value; also return where the value with such a word begins."""
    if before := _ABOUT.search(text, max(0, begin - _ABOUT_WITHIN), begin):
        return True, before.start()
    return _ABOUT_AFTER.match(text, end) is not None, begin
