"""Dates, times of day, ordinals, shares and identifiers: their forms in English, Chinese and German texts."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from rag_kit.text.language import word_set
from rag_kit.text.values.numbers import FIGURES, HAN, NUMBER_WORDS, SCALE, WORDS, read_any, read_fraction


class Reading(NamedTuple):
    """A value as its form says it, without its unit and offsets."""

    amount: float
    key: str = ""  # of a date or identifier
    is_open: bool = False  # a time of day before or after noon, or a date whose day may be its month


_MONTH_NAMES = (
    "january february march april may june july august september october november december",
    "jan feb mar apr may jun jul aug sep oct nov dec",
    "januar februar märz april mai juni juli august september oktober november dezember",
)
MONTHS = {name: number for names in _MONTH_NAMES for number, name in enumerate(names.split(), start=1)}
MONTHS["sept"] = 9
_DAY_NAMES = (
    "mon tue wed thu fri sat sun",
    "mon tues wednes thurs fri satur sun",
    "mon diens mitt donners frei sams sonn",
    "一 二 三 四 五 六 日",
)
_DAYS = {name: day for names in _DAY_NAMES for day, name in enumerate(names.split(), start=1)} | {"天": 7}
_RANKS = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth"
_ORDINALS = {name: number for number, name in enumerate(_RANKS.split(), start=1)}
_ORDINALS |= {"eighteenth": 18, "nineteenth": 19, "twentieth": 20}
_ORDINAL = "|".join(_ORDINALS)
MONTH = "|".join(sorted(MONTHS, key=len, reverse=True))
_CAPITAL = "|".join(sorted(map(str.capitalize, MONTHS), key=len, reverse=True))
_LONG = "|".join(name.capitalize() for name in MONTHS if len(name) > 5)
LETTERED = "[区座栋幢楼组类级班型款段轮标包线方]"  # that a letter names, as in B区
DIGITS = "〇零一二两三四五六七八九十"
_N = rf"(?:\d{{1,2}}|[{DIGITS}]{{1,3}})"  # up to two figures, as in days and hours
YEAR = r"(?:1[0-9]|20|21)\d\d"
_ND = r"(?:st|nd|rd|th)"
_WHEN = "凌晨|早上?|上午|中午|正午|下午|傍晚|晚上|晚"
COINS_ZH = "人民币|港[币元]|新?台币|美[元金]|日元|欧元|英镑"  # before an amount
_COINS = (
    r"(?:[A-Z]{1,2}|NT)?[$€£¥] ?|(?:EUR|USD|GBP|CNY|RMB|CHF|HKD|TWD|JPY) (?=\d)"
    rf"|(?:{COINS_ZH}) ?(?=\d|{HAN}元)"
)
_CODES = r"(?:ISO|IEC|DIN|EN|GB|ASTM|IEEE|ANSI|[A-Z]{2,4}/[A-Z]{1,4})"
# what 点 and numerals behind it are a decimal of, as in 三点五公里; 下午三点五名队员 is a time
_DECIMAL_OF = (
    r"(?:%|个百分点|摄氏|公[里斤顷]|千[米克瓦]|厘米|毫[米升克]|平方|立方|米|吨|升|度|元|万|亿|倍|亩|岁)"
)
_HAN_CLOCK = (
    rf"{_N} ?(?:时(?![间期代候])|点钟?(?![{DIGITS[:-1]}]++{_DECIMAL_OF}))(?: ?{_N} ?分(?!之)|半|一刻)?"
)
_HALF_OF_DAY = r"(?: ?[ap]\.?m\b\.?| in the (?:morning|afternoon|evening)| at night)?"
_FEW = "(?:one|two|three|four|five|six|seven|eight|nine|ten|[1-9])"
_PART = "(?:third|fourth|fifth|sixth|eighth|tenth)"
_MINUTES = {"half": 30, "quarter": 15, "a quarter": 15, "five": 5, "ten": 10, "twenty": 20, "twenty-five": 25}
_HOURS = "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
# "ten to twelve" by itself is a range
_TEN_TO = r"(?:five|ten|twenty(?:-five)?) to(?= \w+ ?(?:[ap]\.?m\b| in the ))"
_SPOKEN = (
    rf"(?i:(?:(?:{'|'.join(_MINUTES)}) past|(?:a )?quarter to|{_TEN_TO})"
    rf" (?:1[0-2]|[1-9]|{_HOURS})\b)"
)
_CLOCK = rf"(?:[01]?\d|2[0-4]):[0-5]\d(?::[0-5]\d)?(?![\d:])(?: Uhr|{_HALF_OF_DAY})"

_PATTERNS = {
    "date": (
        r"(?:\d{4} ?年)?元旦|New Year['’]s Day\b(?:,? \d{4}\b)?",
        rf"(?<![\d.]){YEAR}(?P<s>[-/.])(?:0?[1-9]|1[0-2])(?:(?P=s)(?:0?[1-9]|[12]\d|3[01]))?(?!\d|-(?!{YEAR}))",
        rf"(?<![\d{DIGITS}])(?:\d{{4}}|[一二][{DIGITS}]{{3}}) ?年(?! ?代)(?:度|(?: ?{_N} ?月份?(?: ?{_N} ?[日号])?)?)",
        rf"(?<![\d{DIGITS}])(?:1[0-2]|0?[1-9]|十[一二]?|[一二三四五六七八九]) ?月(?![球亮])(?:份| ?{_N} ?[日号])?",
        # 31/01/2025; which of two numbers up to 12 is the month stays open
        rf"(?<![\d/.-])(?<!ersion )(?<!elease )(?<![vV§])(?:0?[1-9]|[12]\d|3[01])(?P<t>[-/.])"
        rf"(?:0?[1-9]|[12]\d|3[01])(?P=t){YEAR}(?![\d/-])",
        rf"(?<![\d.,])\d{{1,2}}{_ND}?\.? (?:of )?(?!may\b(?! ?,? ?{YEAR}))(?i:{MONTH})\b\.?(?:,? {YEAR}(?!\d))?",
        rf"(?:{_CAPITAL})\b\.?(?: (?:the )?\d{{1,2}}{_ND}?(?![\d:%]|[.,]\d)(?:(?: ?, ?| ){YEAR}(?!\d))?"
        rf"|(?:,? | of ){YEAR}(?!\d))",
        rf"(?:{_LONG})\b|(?<=[iI]n )(?:{_CAPITAL})\b|(?:{_CAPITAL})\b(?=\.? ?(?:-|to|until) ?(?:{_CAPITAL})\b)"
        rf"|(?<=[a-z]-)(?:{_CAPITAL})\b|^(?:{_CAPITAL})\.?$",  # the last in a cell of a table
        r"(?:FY|[Ff]iscal(?: year)?)[ '-]?(?:\d{4}|\d\d)(?!\d)",
        rf"(?<![\d.])(?:(?<!\d,)|(?<=\d{{4}},)){YEAR}"
        rf"(?![\d%‰]| ?年代|\.\d|,\d(?!\d{{3}}(?!\d))|-?(?!Q[1-4])[A-Za-z]| (?!19|20)\d{{4}} \d{{4}})",
    ),
    "decade": (
        r"(?:1[5-9]|20)\d0['’]?s\b",
        rf"(?:(?:1[5-9]|20)?\d0|[一二][{DIGITS}]{{3}}|[二三四五六七八九]十) ?年代",
        rf"(?:上|{_N} ?)世纪 ?(?:\d0|[二三四五六七八九]十)年代",
    ),
    "century": (rf"(?:\d{{1,2}}{_ND}|(?i:{_ORDINAL}))[ -]century", rf"{_N} ?世纪"),
    "quarter": (
        rf"Q[1-4](?![A-Za-z\d])|(?:(?i:{_ORDINAL})|[1-4]{_ND}) quarter\b",
        "第?[1-4一二三四]季度?(?!度)",
    ),
    "clock": (
        rf"(?:(?:{_WHEN}) ?)?{_HAN_CLOCK}",
        rf"(?:(?:{_WHEN}) ?)?(?<![\d:.]){_CLOCK}",
        rf"{_SPOKEN}{_HALF_OF_DAY}",
        r"(?:12 )?(?i:noon|midday|midnight)\b",
        r"(?<=(?: at| by|til| to) )0\d[0-5]\d(?![\d-]|[.,:]\d)",
        r"(?<![\d:.])\d{1,2}(?:\.[0-5]\d)? ?(?:[ap]\.m\.|[ap]m\b)|(?<![\d:.])\d{1,2} Uhr\b",
    ),
    "weekday": (
        r"(?:(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day|(?:Mon|Diens|Donners|Frei|Sams|Sonn)tag|Mittwoch)s?\b",
        r"(?:周|星期|礼拜)[一二三四五六日天](?![个月年级次])",
        # Mon-Fri, Tue 6 May; not the Sun
        r"(?:Mon|Tue|Wed|Thu|Fri|Sat|(?<!he )Sun)\b\.?(?=[-,;:.)/|]|$| ?\d"
        r"| (?:and|to) (?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\b)",
    ),
    "id": (
        rf"{_CODES}(?:[/ ][A-Z]{{1,4}})* ?\d[A-Za-z\d.\-]*(?<=[A-Za-z\d])",
        r"[A-Z][A-Za-z]{0,7}-?\d[A-Za-z\d]*(?:[-/.][A-Za-z\d]+)*",
        r"[A-Z]{1,6}(?:-[A-Z\d]+)*-\d[A-Za-z\d]*",
        # 192.168.1.1, section 3.2.1, 1.1.1k; not 1.234.567
        r"(?<![\d.,])(?!\d{1,3}(?:\.\d{3})+(?!\.?\d))\d{1,5}(?:\.\d{1,5}){2,}(?![\d%°]|[.,]\d)(?:[a-z]{1,5}\d?\b)?",
        # numbers of accounts, cards and persons, in one piece or in groups, and of telephones
        r"(?<![\d.,])(?!(?:(?:19|20)\d\d ){2})(?:\d{4}(?: \d{4}){2,} \d{1,4}(?! ?[A-Za-z°])|\d{16,}[Xx]?|\d{17}[Xx])"
        r"(?![\d%元万亿]|[.,]\d| ?[$€£¥]|-\d)",
        r"(?<![\d.,-])(?:0\d{2,3}-\d{7,8}|\d{3,4}(?:-\d{3,4}){2})(?![\d-])|\+\d{1,3}(?:[ -]\d{2,5}){2,4}(?!\d)",
    ),
    "share": (
        rf"(?:{HAN}|\d+) ?分之 ?(?:{FIGURES}|{HAN})",
        rf"[{DIGITS}\d]成(?:[半一二三四五六七八九]|(?!年(?!轻)|[不本为员人立功分果套双群倍材]))",
        rf"(?i:a[ -]quarter|(?:one|two|three|four|five|seven)[ -](?:quarter|{_PART})s?"
        # "a third of it", but "a third reminder"
        rf"|a[ -]{_PART}(?=\W*$|[^\w\s-]| (?:of|off|less|more|to|from|in|by|and|or|than|as|are|is|w\w+|the|its)\b))"
        r"\b(?! quarter)(?! (?:hour|year|day|month|century))",
        r"[Hh]alf(?= (?:of|the|its|their|all|price|fare|pay)\b|$)(?! the time)",
        r"(?<![\d/])\d/(?:[2-9]|10)(?![\d/A-Za-z])",
        rf"(?<!umber )(?i:(?:one|1) in|{_FEW} out of)(?: every)? (?i:(?!one|1\b){_FEW}|[1-9]\d{{1,2}})\b"
        r"(?![.,:/]\d| (?:hundred|thousand|(?:hour|minute|day|week|month|year)s?\b))",
        rf"(?:[1-9]\d?(?:\.\d)?|[{DIGITS}]{{1,2}}) ?折(?![叠断磨返腾合])",
    ),
    "ordinal": (
        rf"\d{{1,4}}{_ND}\b|(?i:{_ORDINAL})\b(?! half| of all)",
        rf"第(?:\d{{1,4}}(?!\d{{0,3}}\.\d)|[{DIGITS}百千]{{1,6}})",  # but 第3.2条
    ),
    "number": (
        rf"(?:{_COINS})?(?:[-+]|(?:负(?=\d)|零下(?=[\d一二两三四五六七八九十])))?"
        rf"(?:(?i:half an? |(?:an?|{NUMBER_WORDS}|{FIGURES}) and a half(?= )"
        r"|an? (?=\w+ and (?:a half|a quarter|three[ -]quarters)))"
        rf"|半(?=个|年|天|小时|日|月|公?斤|公?升|公里|千克|吨|米|亩|分钟)|{FIGURES}|{HAN}|(?i:{NUMBER_WORDS}))(?:{SCALE})?",
    ),
}
FORMS = re.compile("|".join(f"(?P<{name}>{'|'.join(patterns)})" for name, patterns in _PATTERNS.items()))
NUMBER = re.compile(f"(?P<number>{'|'.join(_PATTERNS['number'])})")
#: Where a value may begin: a figure, a sign of money, a Chinese numeral, or a word of TRIGGERS.
STARTS = re.compile(
    r"[-+]?\d|(?<![背担胜抱肩承自])负(?=\d)|[$€£¥]|[〇零一二两三四五六七八九十百千万亿半第壹贰叁肆伍陆柒捌玖拾佰仟]|周(?=[一二三四五六日])|星(?=期)"
    r"|礼(?=拜)|[上中下正](?=午)|上(?=世纪)|元(?=旦)|凌(?=晨)|傍(?=晚)|(?<!最)[早晚](?=上|[\d一二三四五六七八九十])|[A-Za-zäöü]+"
    rf"|{COINS_ZH}"
)
TRIGGERS = word_set(
    "new one half quarter hundred thousand million fiscal mittwoch noon midday midnight"
).union(WORDS, MONTHS, _ORDINALS, (day + end for day in _DAYS for end in ("", "day", "days", "tag", "tags")))
#: Codes in capitals that a value may begin with, and what may follow "a" where that counts.
CODES = word_set("EUR USD GBP CNY RMB CHF HKD TWD JPY ISO IEC DIN EN GB ASTM IEEE ANSI FY US HK NT")
AFTER_A = re.compile(
    r"[ -](?:half|third|quarter|fourth|fifth|sixth|eighth|tenth|dozen|hundred|thousand|million"
    r"|\w+ and (?:a half|a quarter|three[ -]quarters))\b"
)
_NOON = re.compile(r"(?:12 )?(?:noon|midday|(?P<midnight>midnight))", re.IGNORECASE)
_NUMERAL = re.compile(rf"{FIGURES}|{HAN}")
_INTEGER = re.compile(rf"\d+|[{DIGITS}]+")


def _read_date(text: str) -> Reading | None:
    """Read a date; its key is as 2025-02-26, 2025-02, 2025, -02-26 or -02.

    A date such as 03/04/2025 is open: its key has 3 for the day, and it may be the month.
    """
    lowered = text.lower()
    named = [MONTHS[word] for word in re.findall(r"[a-zäöü]+", lowered) if word in MONTHS]
    numbers = [int(read_any(numeral)) for numeral in _INTEGER.findall(text)]
    year = month = day = 0
    is_open = False
    if lowered.startswith(("fy", "fis")):  # FY25, fiscal 2025
        year = numbers[0] if numbers[0] > 99 else 2000 + numbers[0]
    elif "元旦" in text or lowered.startswith("new"):
        year, month, day = numbers[0] if numbers else 0, 1, 1
    elif named:  # 3 March 2025
        month = named[0]
        year = next((number for number in numbers if number > 31), 0)
        day = next((number for number in numbers if number <= 31), 0)
    elif "月" in text and "年" not in text:
        month, day = (*numbers, 0)[:2]  # 5月 gives 5 and 0, for no day
    elif numbers[-1] > 31 and len(numbers) == 3:  # 31/01/2025, 01/31/2025, and 31.1.2025 in German
        day, month, year = numbers
        is_open = day <= 12 and day != month and "." not in text
        if month > 12:
            day, month = month, day
    else:  # 2025-02-26, 2025年2月
        year, month, day = (*numbers, 0, 0)[:3]
    if month > 12 or day > 31 or 0 < year < 1000:
        return None
    key = "-".join([str(year or ""), *(f"{part:02d}" for part in (month, day) if part)])
    return Reading(float(year or month), key, is_open and month <= 12 and day <= 12)


def _read_decade(text: str) -> Reading:
    """Read a decade as its first year: 1980 for "1980s", 80年代 and 二十世纪80年代."""
    century, _, decade = text.rpartition("世纪")
    year = read_any(_INTEGER.findall(decade)[0])
    if century and century != "上":
        year += (read_any(century.strip()) - 1) * 100
    if year <= 99:  # 80年代, 20年代, 上世纪20年代
        year += 1900 if year > 20 or century else 2000
    return Reading(year)


def _read_ordinal(text: str) -> Reading:
    """Read an ordinal as a number: an English word as in "the third", else a numeral as in "3rd" or 第3."""
    for word in re.findall(r"[a-z]+", text.lower()):
        if word in _ORDINALS:
            return Reading(_ORDINALS[word])
    numeral = _NUMERAL.search(text)
    return Reading(read_any(numeral[0]) if numeral else 0.0)


def _read_clock(text: str) -> Reading:
    """Read a time as minutes after midnight; it is open if it may be before or after noon, as "half past two"."""
    lowered = text.lower()
    if noon := _NOON.fullmatch(text):
        return Reading(0.0 if noon["midnight"] else 12 * 60.0)
    if len(text) == len("0540") and text.isdecimal():  # as on the railway, of 24 hours
        return Reading(int(text[:2]) * 60.0 + int(text[2:]))
    hour, minute = _hour_and_minute(text)
    is_late = re.search(r"p\.?m|afternoon|evening|night|下午|傍晚|晚", lowered) is not None
    is_early = re.search(r"a\.?m|morning|凌晨|早|上午", lowered) is not None
    if is_late and hour < 12:
        hour += 12
    if is_early and hour == 12:
        hour = 0
    is_definite = is_late or is_early or "uhr" in lowered or "午" in text
    return Reading(hour * 60 + minute, is_open=not is_definite and 1 <= hour <= 12)


def _hour_and_minute(text: str) -> tuple[float, float]:
    """Read the figures of a time: 8 and 45 for "quarter to nine", 8 and 15 for 8点一刻, 9 and 0 for "9 Uhr"."""
    if spoken := re.match(_SPOKEN, text):
        minutes, side, word = re.split(r" (past|to) ", spoken[0].lower())
        hour, minute = read_any(word), float(_MINUTES[minutes])
        return (hour - 1 or 12, 60 - minute) if side == "to" else (hour, minute)
    hour, minute = (*(read_any(numeral) for numeral in _INTEGER.findall(text)), 0.0)[:2]
    if "半" in text:
        return hour, 30.0
    return hour, 15.0 if "刻" in text else minute


def _read_share(text: str) -> Reading | None:
    """Read a share such as 三分之二, 三成五, two thirds, half or 2/3; None for a share of nothing (零分之二)."""
    if "分之" in text:
        whole, part = (read_any(piece.strip()) for piece in text.split("分之"))  # 三分之二: 3 and 2
        return Reading(part / whole) if whole else None
    if "成" in text:  # 三成, 三成半, 三成五
        tenths, _, rest = text.partition("成")
        hundredths = read_any(rest.replace("半", "五")) if rest else 0.0
        return Reading(read_any(tenths) / 10 + hundredths / 100)
    if text.endswith("折"):  # 八五折 and 8.5折 are 85 %
        digits = "".join(str(int(read_any(digit))) for digit in text if digit.isdigit() or digit in DIGITS)
        return Reading(float(f"0.{digits}"))
    if "/" in text or re.search(r" (?:in|of) ", text):  # 2/3, "one in five", "9 out of 10"
        above, *_, below = re.split("[/ ]", text.lower())
        return Reading(read_any(above) / read_any(below))
    words = re.split("[ -]", text.lower())  # "two", "thirds", or "half" alone
    return Reading(read_fraction(words[0], words[1]) if len(words) > 1 else 0.5)


def _read_id(text: str) -> Reading:
    """Read an identifier; its key lacks the joints, so that XR-20 is XR20, but 3.2.10 is not 3.21.0."""
    return Reading(0.0, re.sub(r"(?!(?<=\d)\.\d)[\W_]", "", text).upper())


def _read_weekday(text: str) -> Reading:
    name = text[-1] if text[-1] in _DAYS else re.sub(r"(?:day|tag|woch)s?$|\.$", "", text.lower())
    return Reading(float(_DAYS[name]))


#: Read a value of a form; None if it is none.
READERS: dict[str, Callable[[str], Reading | None]] = {
    "date": _read_date, "decade": _read_decade, "century": _read_ordinal, "quarter": _read_ordinal,
    "clock": _read_clock, "weekday": _read_weekday, "id": _read_id, "share": _read_share, "ordinal": _read_ordinal,
}  # fmt: skip
