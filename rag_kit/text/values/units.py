"""Units of measure and currencies: the names that texts use, the dimension, the factor to its base unit."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

_TABLE = Path(__file__).with_name("units.txt").read_text(encoding="utf-8")
#: A dimension that a name leaves open, with what it may be.
_OPEN = {
    "yen or yuan": {"CNY", "JPY"},
    "pounds": {"GBP", "mass"},
    "cents": {"USD", "EUR", "HKD"},
    "degrees": {"celsius", "fahrenheit"},
    "calendar days": {"time"},
    "basis points": {"ratio", "points"},
}
_RATES = {
    "kph": ("km", "h"), "mph": ("mile", "h"), "rpm": ("revolution", "min"),
    "Kbps": ("kbit", "s"), "Mbps": ("Mbit", "s"), "Gbps": ("Gbit", "s"),
}  # fmt: skip


class Unit(NamedTuple):
    """A unit: its symbol, what it measures, and how many of the dimension's base unit it is."""

    symbol: str
    dimension: str
    factor: float


class FoundUnit(NamedTuple):
    """A unit in a text, and where its name ends."""

    unit: Unit
    end: int


@cache
def _units() -> dict[str, Unit]:
    """Map each name to its unit; a name of three letters or more is also known in lower case and with a plural s."""
    table: dict[str, Unit] = {}
    for line in _TABLE.splitlines()[1:]:
        dimension, _, entries = line.partition(": ")
        for entry in entries.split("; "):
            factor, *names = entry.replace("µ", "μ").split()
            names = [name.replace("~", " ") for name in names]
            unit = Unit(names[0], dimension, float(factor))
            for name in names:
                table[name] = unit
                # hrs, US$ and cm3 have no plural
                if name.isascii() and len(name) > 2 and name[-1] not in "s%$3":
                    table.setdefault(name.lower(), unit)
                    table.setdefault(name.lower() + "s", unit)
    return table


_POWERS = {"²": "2", "³": "3", "^2": "2", "^3": "3"}
_LATIN = re.compile(
    r"(?:(?:square|cubic|working|business|calendar|consecutive|metric|nautical|percentage|basis|newton|per|pound|us|euro|swiss"
    r"|degrees?|grad)[ -])?"
    r"(?:[A-Z]{1,2}\$|[%‰€£¥$℃℉]|°[CF]?(?![A-Za-z])|[a-zA-ZäöüμµΩ]+(?:-hours?)?(?:²|³|\^[23]|[23](?!\d))?)",
    re.IGNORECASE,
)
_HAN = re.compile(r"[\u4e00-\u9fff]{1,5}")
_GAP = re.compile(r"(?: |-(?=[A-Za-z])|\u00a0)?")


def unit_at(text: str, position: int) -> FoundUnit | None:
    """Find the unit at a position of a text, maybe after a blank or hyphen.

    Example:
        >>> unit_at("36 months", 2)
        FoundUnit(unit=Unit(symbol='month', dimension='months', factor=1.0), end=9)
    """
    start = _GAP.match(text, position).end()  # type: ignore[union-attr]
    if han := _HAN.match(text, start):
        for size in range(len(han[0]), 0, -1):  # the longest name that is one
            if unit := _units().get(han[0][:size]):
                return FoundUnit(unit, start + size)
        return None
    match = _LATIN.match(text, start)
    if match is None:
        return None
    name = match[0].replace("µ", "μ")
    for power, digit in _POWERS.items():
        name = name.replace(power, digit)
    # a short name only as it is written: mW is not MW
    if unit := _units().get(name) or (_units().get(name.lower()) if len(name) > 2 else None):
        return FoundUnit(unit, match.end())
    first_word, blank, _ = match[0].partition(" ")
    if not blank:
        return None
    # "degrees celsius" is one name, of "degrees north" the first word is one
    unit = _units().get(first_word) or _units().get(first_word.lower())
    return FoundUnit(unit, start + len(first_word)) if unit else None


def unit_named(name: str) -> Unit:
    """Return the unit of a name in the table."""
    return _units()[name]


def rate_of(unit: Unit) -> tuple[Unit, Unit] | None:
    """Split a rate with a name of its own into its two units: mph into mile and hour."""
    names = _RATES.get(unit.symbol)
    return (unit_named(names[0]), unit_named(names[1])) if names else None


def dimensions_agree(one: str, other: str) -> bool:
    """Tell whether two dimensions are the same, or one may be the other, as "yen or yuan" may be "CNY"."""
    if one == other or other in _OPEN.get(one, ()) or one in _OPEN.get(other, ()):
        return True
    parts, others = one.split("/"), other.split("/")  # of "pounds/months" and "GBP/months"
    return len(parts) == len(others) > 1 and all(map(dimensions_agree, parts, others))


def is_money(dimension: str) -> bool:
    """Tell whether a dimension is a currency."""
    return dimension.isupper() or dimension in ("yen or yuan", "pounds", "cents")
