"""Numbers in figures, words and Chinese numerals."""

from __future__ import annotations

import re
import unicodedata

HAN_DIGITS = "〇零一二两三四五六七八九"
_BANKERS = str.maketrans("壹贰叁肆伍陆柒捌玖拾佰仟", "一二三四五六七八九十百千")
_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
)
_SMALL_DE = "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf"
_TEENS = "seventeen eighteen nineteen"
WORDS: dict[str, float] = {word: value for value, word in enumerate(f"{_SMALL} {_TEENS}".split())}
WORDS |= {word: value for value, word in enumerate(_SMALL_DE.split()) if value > 1}
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
WORDS |= {word: 10.0 * tens for tens, word in enumerate(_TENS.split(), start=2)}
WORDS |= {"dozen": 12, "zwanzig": 20, "dreißig": 30}
_TIMES = {"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}
SCALES = _TIMES | {
    "k": 1e3, "tausend": 1e3, "mn": 1e6, "mio": 1e6, "millionen": 1e6, "bn": 1e9, "mrd": 1e9, "milliarden": 1e9,
    "千": 1e3, "万": 1e4, "十万": 1e5, "百万": 1e6, "千万": 1e7, "亿": 1e8, "十亿": 1e9, "百亿": 1e10, "千亿": 1e11,
    "万亿": 1e12,
}  # fmt: skip
_UP_TO_99 = (
    rf"(?:(?:{_TENS.replace(' ', '|')})(?:[ -](?:{'|'.join(_SMALL.split()[1:10])}))?"
    rf"|{'|'.join(sorted(WORDS, key=len, reverse=True))})\b"
)
_HUNDREDS = rf"(?:{'|'.join(_TIMES)}|dozen)\b(?:(?: and |[ -]){_UP_TO_99})?"
FIGURES = (
    r"\d{1,3}(?:[,'\u00a0\u202f\u2009]\d{3})+(?!\d)(?:\.\d+)?|\d{1,3}(?:(?:\.\d{3})+,\d+(?!\d)|(?:\.\d{3}){2,}(?!\.?\d))"
    r"|(?<!,)\d+,\d{1,2}(?![\d,])|\d+(?:\.\d+)?"
)
HAN = rf"(?:[{HAN_DIGITS}十百千万亿壹贰叁肆伍陆柒捌玖拾佰仟]{{1,30}}(?:点[{HAN_DIGITS}]{{1,30}})?)"
# "twenty-one thousand and five"; "eleven one-litre bottles" and "between five and ten" have two numbers
NUMBER_WORDS = rf"(?:{_UP_TO_99}|{_HUNDREDS})(?:[ -]{_HUNDREDS})*"
SCALE = (
    r"[ ]?(?:thousand|million|billion|trillion|mn|mio\b\.?|millionen|bn|mrd\b\.?|milliarden|tausend|k)(?![A-Za-z\d])"
    r"|万亿|[十百千]?[万亿]|千(?![克瓦米卡帕赫伏牛焦])"
)
_FRACTIONS = {
    "half": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "sixth": 6, "eighth": 8, "tenth": 10,
}  # fmt: skip


def read_figures(text: str) -> float:
    """Read a number in figures; "1,250" has a thousands separator, "12,5" a decimal comma.

    Example:
        >>> read_figures("1,286,000"), read_figures("1.250,50"), read_figures("12,5")
        (1286000.0, 1250.5, 12.5)
    """
    if re.fullmatch(r"\d{1,3}(?:\.\d{3})+,\d+|\d{1,3}(?:\.\d{3}){2,}|\d+,\d{1,2}", text):  # 1.250,50 or 12,5
        text = text.replace(".", "").replace(",", ".")
    return float(re.sub(r"[^\d.]", "", text))


def read_han(text: str) -> float:
    """Read a number in Chinese numerals, digit by digit (一九三三) or with tens and hundreds (二十三).

    Example:
        >>> read_han("二十三"), read_han("一九三三"), read_han("两千"), read_han("九十八点二"), read_han("叁佰万")
        (23.0, 1933.0, 2000.0, 98.2, 3000000.0)
    """
    whole, _, decimals = text.translate(_BANKERS).partition("点")
    values = [_numeral_value(numeral) for numeral in whole]
    number = int("".join(map(str, values))) if max(values) < 10 else _add_up(values)
    fraction = "".join(str(_numeral_value(numeral)) for numeral in decimals)
    return float(f"{number}.{fraction}")


def _numeral_value(numeral: str) -> int:
    return int(unicodedata.numeric(numeral, 2))  # 两 has no value of its own there


def _add_up(values: list[int]) -> int:
    """Add up the values of numerals, the highest multiplied by those before it: [2, 10, 3] (二十三) is 2 * 10 + 3."""
    highest = max(values, default=0)
    if highest < 10:
        return values[-1] if values else 0
    position = values.index(highest)
    return (_add_up(values[:position]) or 1) * highest + _add_up(values[position + 1 :])


def read_words(text: str) -> float:
    """Read a number in English words.

    Example:
        >>> read_words("one hundred and twenty-five"), read_words("two million"), read_words("a")
        (125.0, 2000000.0, 1.0)
    """
    total = below_scale = 0.0  # of the words up to the last thousand, million ..., and of those since
    for word in re.findall(r"[^\W\d_]+", text.lower()):
        if word == "dozen":
            below_scale = (below_scale or 1) * 12
        elif word == "hundred":
            below_scale = (below_scale or 1) * 100
        elif word in _TIMES:
            total, below_scale = total + (below_scale or 1) * _TIMES[word], 0.0
        else:
            below_scale += WORDS.get(word, 0.0)
    return (total + below_scale) or float(text.lower() in ("a", "an", "one"))  # "a" is 1


def read_fraction(count: str, part: str) -> float:
    """Read a fraction such as "two thirds", given as count and part.

    Example:
        >>> read_fraction("three", "quarters")
        0.75
    """
    return read_words(count) / _FRACTIONS[part.lower().removesuffix("s").replace("halve", "half")]


def read_any(text: str) -> float:
    """Read a number in figures, Chinese numerals or English words."""
    if text[:1].isdigit() and text[:1].isascii():
        return read_figures(text)
    return read_han(text) if text[:1] > "\u2fff" else read_words(text)
