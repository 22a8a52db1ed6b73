"""A value that a model or a question names, as the field stores it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import Any

from rag_kit.query_construction.dates import Period, parse_period
from rag_kit.query_construction.fields import MetadataField
from rag_kit.text import fold

_TRUE = frozenset({"true", "yes", "y", "1", "是", "真", "对"})
_FALSE = frozenset({"false", "no", "n", "0", "否", "假", "不是"})
_NUMBER = re.compile(r"[-+]?(?:\d{1,3}(?:[,，]\d{3})+|\d+)(?:\.\d+)?(?:[eE][-+]?\d+)?")
_MAX_TEXT = 500


class Unusable(Exception):
    """A value that the field cannot have; the message says why."""


@dataclass(frozen=True)
class Coerced:
    """A value as the field stores it, or a period to compare with.

    Attributes:
        value: A scalar, or a ``Period`` for a field of dates or years.
        note: What was changed; empty if nothing.
    """

    value: Any
    note: str = ""


def coerce(field: MetadataField, value: Any, today: date) -> Coerced:
    """Fit a value to a field.

    Raises:
        Unusable: It cannot be made to fit.

    Example:
        >>> coerce(MetadataField("pages", "int"), "1,200", date(2026, 1, 1))
        Coerced(value=1200, note="pages: '1,200' was read as 1200")
    """
    original = value
    value = _unwrap(value)
    made = _MAKE[field.type](field, value, today)
    changed = type(made) is not type(original) or made != original
    note = ""
    if changed and not isinstance(made, Period):
        note = f"{field.name}: {short(original)} was read as {short(made)}"
    elif isinstance(made, Period):
        note = f"{field.name}: {made.note}" if made.note else ""
    return Coerced(made, note)


def _unwrap(value: Any) -> Any:
    """``{"date": "2020-05-01", "type": "date"}`` and one-entry lists hold a plain value."""
    if isinstance(value, dict):
        for key in ("date", "datetime", "value", "year"):
            if key in value and not isinstance(value[key], dict):
                return value[key]
        raise Unusable("an object is no value")
    if isinstance(value, (list, tuple)):
        if len(value) == 1:
            return _unwrap(value[0])
        raise Unusable("a list stands where one value belongs")
    if isinstance(value, date):
        return value.isoformat()
    return value


def _number(field: MetadataField, value: Any, kind: str) -> Any:
    """A number; of a field of years also the text that is none."""
    if isinstance(value, bool):
        raise Unusable("true and false are no numbers")
    number = parse_number(value) if isinstance(value, str) else value
    if number is None and field.is_year and isinstance(value, str):
        return value
    if not isinstance(number, (int, float)) or not math.isfinite(number):
        raise Unusable(f"{short(value)} is no {kind}")
    return number


def _int(field: MetadataField, value: Any, today: date) -> Any:
    number = _number(field, value, "whole number")
    if isinstance(number, float) and number.is_integer():
        number = int(number)
    if isinstance(number, int) and abs(number) >= 2**63:
        raise Unusable(f"{short(number)} is too large")
    # 20200501, a time stamp or "last year" for a field of years
    if field.is_year and (isinstance(number, str) or (isinstance(number, int) and number > 9999)):
        period = parse_period(str(number), today)
        if period is None:
            raise Unusable(
                f"{short(number)} is no whole number" if isinstance(number, str) else f"{number} is no year"
            )
        return period
    return number


def _float(field: MetadataField, value: Any, today: date) -> Any:
    return _number(field, value, "number")


def _bool(field: MetadataField, value: Any, today: date) -> Any:
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    if word in _TRUE or word in _FALSE:
        return word in _TRUE
    raise Unusable(f"{short(value)} is neither true nor false")


def _date(field: MetadataField, value: Any, today: date) -> Any:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise Unusable(f"{short(value)} is no date")
    text = str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
    period = parse_period(text, today)
    if period is None and field.date_format == "timestamp" and parse_number(text) is not None:
        return parse_number(text)
    if period is None:
        raise Unusable(f"{short(value)} is no date")
    return period


def _str(field: MetadataField, value: Any, today: date) -> Any:
    if value is None or isinstance(value, bool):
        raise Unusable(f"{short(value)} is no text")
    text = str(value).strip()
    if not text or len(text) > _MAX_TEXT:
        raise Unusable("a text of 1 to 500 characters is needed")
    if not field.values or text in field.values:
        return text
    known = _known(field, text)
    if known is not None:
        return known
    if field.complete:
        raise Unusable(f"{short(text)} is not among the values of the field")
    return text


def _known(field: MetadataField, text: str) -> str | None:
    """The one value that differs in case, blanks, dashes or plural only."""
    for key in (_folded, loose):
        found = {value for value in field.values if isinstance(value, str) and key(value) == key(text)}
        if len(found) == 1:
            return str(found.pop())
    return None


def _folded(text: str) -> str:
    return re.sub(r"[\s_\-]+", " ", fold(text)).strip()


def loose(text: str) -> tuple[str, ...]:
    """The words of a text, sorted, each in the singular: ``Neoplasms, Breast`` is ``breast neoplasm``.

    Example:
        >>> loose("Neoplasms, Breast") == loose("breast neoplasm")
        True
    """
    return tuple(sorted(singular(word) for word in re.findall(r"[^\W_]+", fold(text))))


_IRREGULAR = {
    "children": "child", "women": "woman", "men": "man", "mice": "mouse", "feet": "foot", "teeth": "tooth",
    "people": "person", "diagnoses": "diagnosis", "prognoses": "prognosis", "metastases": "metastasis",
    "analyses": "analysis", "criteria": "criterion", "data": "datum", "vertebrae": "vertebra",
    "knives": "knife", "lives": "life", "wives": "wife", "leaves": "leaf", "shelves": "shelf", "halves": "half",
    "wolves": "wolf", "calves": "calf", "loaves": "loaf", "scarves": "scarf", "thieves": "thief", "geese": "goose",
}  # fmt: skip
_SPELLING = (
    ("tumour", "tumor"), ("haem", "hem"), ("oedem", "edem"), ("aemi", "emi"), ("paed", "ped"), ("oesoph", "esoph"),
    ("behaviour", "behavior"), ("colour", "color"), ("labour", "labor"), ("isation", "ization"), ("foet", "fet"),
    ("centre", "center"), ("programme", "program"), ("gynaec", "gynec"), ("orthopaed", "orthoped"),
)  # fmt: skip


def singular(word: str) -> str:
    """A crude singular, for comparing words only: both sides go through it.

    Example:
        >>> [singular(word) == singular(plural) for word, plural in
        ...  [("report", "reports"), ("movie", "movies"), ("battery", "batteries"), ("virus", "viruses"),
        ...   ("box", "boxes"), ("hero", "heroes"), ("case", "cases"), ("salesman", "salesmen")]]
        [True, True, True, True, True, True, True, True]
    """
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) > 5:
        for british, american in _SPELLING:
            word = word.replace(british, american)
    if len(word) > 4 and word.endswith("men"):
        return word[:-2] + "an"
    if len(word) > 4 and word.endswith(("sses", "xes", "ches", "shes")):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    # "movies" and "movie", "batteries" and "battery" meet at the y; "viruses", "cases" and "heroes" at the letter
    # before the e
    if len(word) > 3 and word.endswith("ie"):
        return word[:-2] + "y"
    return word[:-1] if len(word) > 3 and word.endswith(("se", "ze", "xe", "oe")) else word


def parse_number(text: str) -> int | float | None:
    """A number in a text: ``"1,200"``, ``"4.5"``, ``" 3 "``.

    Example:
        >>> parse_number("1,200"), parse_number("4.5"), parse_number("many")
        (1200, 4.5, None)
    """
    text = text.strip()
    if not _NUMBER.fullmatch(text) or len(text) > 40:
        return None
    plain = text.replace(",", "").replace("，", "")
    try:
        return int(plain)
    except ValueError:
        number = float(plain)
        return number if math.isfinite(number) else None


def short(value: Any) -> str:
    """A value as it is written, cut for a message."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


_MAKE: dict[str, Callable[[MetadataField, Any, date], Any]] = {
    "int": _int, "float": _float, "bool": _bool, "date": _date, "str": _str,
}  # fmt: skip
