"""How dates are written, English and Chinese: the words, and one pattern with a named group for each form."""

from __future__ import annotations

import re

_FULL = "january february march april may june july august september october november december"  # whatever the locale
MONTHS = {name: number for number, name in enumerate(_FULL.split(), start=1)}
MONTHS |= {name[:3]: number for name, number in MONTHS.items()} | {"sept": 9}
WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
NUMBERS = {word: number for number, word in enumerate(WORDS, start=1)} | {
    **dict.fromkeys(("a", "an"), 1), "couple of": 2, "a couple of": 2, "few": 3, "a few": 3,
    "several": 3, "fifteen": 15, "twenty": 20, "thirty": 30, "fifty": 50, "hundred": 100,
}  # fmt: skip
HAN = dict(zip("〇零一二三四五六七八九两", [0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 2], strict=True))
DECADES = {
    "twenties": 20, "thirties": 30, "forties": 40, "fifties": 50, "sixties": 60, "seventies": 70,
    "eighties": 80, "nineties": 90,
}  # fmt: skip
H = "〇零一二三四五六七八九十两"
YEAR = r"(?:1[0-9]|20|21)\d\d"
FISCAL = r"(?:(?:FY|fiscal(?:\s+year)?|financial\s+year)[\s'’-]*)"
MONTH = r"(?:" + "|".join(sorted(MONTHS, key=len, reverse=True)) + r")\b\.?"
NUMBER = rf"(?:\d{{1,3}}|{'|'.join(sorted(NUMBERS, key=len, reverse=True))})"
COUNT = rf"(?:\d{{1,3}}|[{H}]{{1,3}}|几|数)"
UNITS = {
    "天": "day",
    "日": "day",
    "周": "week",
    "个星期": "week",
    "个月": "month",
    "年": "year",
    "季度": "quarter",
}
FIRST = dict.fromkeys(("first", "1st", "q1", "一", "1"), 1) | dict.fromkeys(
    ("second", "2nd", "q2", "二", "2"), 2
)
FIRST |= dict.fromkeys(("third", "3rd", "q3", "三", "3"), 3) | dict.fromkeys(
    ("fourth", "4th", "last", "q4", "四", "4"), 4
)
RELATIVE = re.compile(
    r"(?P<relative>(?:this|last|previous|current|past)\s+(?:year|month|week|quarter)\b(?!s)|today|yesterday"
    r"|今年|去年|前年|今天|昨天|(?:本|这个?|上个?)(?:月|周|星期))",
    re.IGNORECASE,
)
_B, _E = r"(?<![A-Za-z0-9_.$€£])", r"(?![A-Za-z0-9_%])"
ALL = re.compile(
    rf"""
    (?P<iso>{_B}(?P<iso_y>\d{{4}})(?P<iso_s>[-/.])(?P<iso_m>\d{{1,2}})(?P=iso_s)(?P<iso_d>\d{{1,2}})
        (?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?{_E})
  | (?P<compact>{_B}(?:1[5-9]|20)\d\d(?:0[1-9]|1[0-2])(?:[0-2]\d|3[01]){_E})
  | (?P<slashed>{_B}(?P<sl_a>\d{{1,2}})(?P<sl_s>[-/.])(?P<sl_b>\d{{1,2}})(?P=sl_s)(?P<sl_y>{YEAR}){_E})
  | (?P<ym>{_B}(?P<ym_y>{YEAR})[-/.](?P<ym_m>0?[1-9]|1[0-2])(?![-/.]?[A-Za-z0-9_]))
  | (?P<my>{_B}(?P<my_m>0?[1-9]|1[0-2])[/.](?P<my_y>{YEAR}){_E})
  | (?P<english>\b(?:(?P<en_d1>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?)?(?P<en_m1>{MONTH})
        \s*(?:of\s+|,\s*)?(?P<en_y1>{YEAR}){_E}
      | \b(?P<en_m2>{MONTH})\s+(?P<en_d2>\d{{1,2}})(?:st|nd|rd|th)?\s*,?\s+(?P<en_y2>{YEAR}){_E})
  | (?P<quarter>\b(?P<q_a>q[1-4]|(?:first|second|third|fourth|last|1st|2nd|3rd|4th)(?=\s+quarter))
        (?:\s+quarter)?(?:\s+of|\s*,)?\s*(?:{FISCAL}?(?P<q_y1>{YEAR})|(?:{FISCAL}|')(?P<q_y3>\d\d)){_E}
      | \b(?P<q_d>[1-4])Q\s*(?P<q_y4>(?:20)?\d\d){_E}
      | (?:{_B}|\b{FISCAL})(?P<q_y2>{YEAR})(?:\s*年?\s*第?(?=[qQ1-4一二三四])
        (?P<q_c>[qQ][1-4](?!\w)|[1-4一二三四](?=季度))(?:季度)?))
  | (?P<half>\b(?P<h_a>first|second|1st|2nd)\s+half\s+of\s+(?P<h_y1>{YEAR}){_E}
      | {_B}(?P<h_y2>{YEAR})年(?P<h_c>[上下])半年)
  | (?P<decade>\b(?:(?P<de_part>early|mid|late)[\s-]+(?:the\s+)?)?(?:
        (?:{_B}|')(?P<de_en>(?:1[5-9]|20)\d0|[2-9]0)(?:'s|’s|s)\b
      | (?:nineteen[\s-])?(?P<de_name>{"|".join(DECADES)})\b)
      | (?P<de_c>上(?:个)?世纪|二十世纪|20世纪)?(?P<de_zh>(?:1[5-9]|20)\d0|[2-9]0|[二三四五六七八九]十)年代)
  | (?P<chinese>(?<![\d{H}])(?P<zh_y>\d{{4}}|[一二][〇零一二三四五六七八九]{{3}})\s*年(?!代)
      (?:\s*(?P<zh_m>\d{{1,2}}|[{H}]{{1,2}})\s*月(?:份)?(?:\s*(?P<zh_d>\d{{1,2}}|[{H}]{{1,3}})\s*[日号])?)?)
  | (?P<century>\b(?:the\s+)?(?P<ce_en>\d\d?)(?:st|nd|rd|th)\s+century|(?P<ce_zh>\d\d?|[{H}]{{1,3}})世纪)
  | (?P<span>\b(?:last|past|previous|recent|preceding)\s+(?:(?P<sp_n>{NUMBER})\s+)?
        (?P<sp_u>days|weeks|months|quarters|years|decades?)\b(?!\s+of\s+the\b)
      | (?:最近|近|过去|前)的?(?P<sp_c>{COUNT})(?P<sp_cu>天|日|周|个星期|个月|年|季度)(?:里|内|间|来|以来|之内)?)
  | (?P<past_year>\b(?P<ago>{NUMBER})\s+years?\s+ago\b|(?P<ago_zh>{COUNT})年(?:之|以)?前)
  | {RELATIVE.pattern}
  | (?P<fiscal>\b{FISCAL}(?P<fy>{YEAR}|\d\d){_E})
  | (?P<plain>{_B}(?P<year>{YEAR}){_E})
    """,
    re.IGNORECASE | re.VERBOSE,
)
