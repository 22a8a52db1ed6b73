"""A value in normal form, and whether two values are the same."""

from __future__ import annotations

from typing import NamedTuple

from rag_kit.text.values.units import Unit, dimensions_agree, unit_named

TIMES = ("time", "months", "calendar days")
"""Dimensions of times, by which values are counted."""


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
    # a time of day that may be before or after noon, or a date in figures whose day may be its month
    open: bool = False
    begin: int = -1  # where the words of its bound begin; `start` where it has none
    about: bool = False  # said to be near only: about 500 m
    dated: bool = False  # a date whose year is that of the other end of a range

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
        # 96,580,000.50 yuan are not 96,580,000.60, and 202503180017 is not 202503180018
        digits = 9 if abs(self.base) < 1e7 else 15 if self.base.is_integer() else 13
        return " ".join(filter(None, (self.bound, f"{self.base:.{digits}g}", self.dimension, per)))


def counted_by(value: Value, *units: Unit) -> Value:
    """Return a value counted by units, as 35 EUR per month; of several, units of time come last."""
    for by in sorted(units, key=lambda unit: unit.dimension in TIMES):
        per, dimension = f"{value.per}·{by.symbol}".lstrip("·"), f"{value.dimension}/{by.dimension}"
        value = value._replace(per=per, factor=value.factor / by.factor, dimension=dimension)
    return value


def uncounted(value: Value) -> Value:
    """Return a value without the units that it is counted by."""
    factor = value.factor
    for symbol in value.per.split("·") if value.per else ():
        factor *= unit_named(symbol).factor
    return value._replace(per="", factor=factor, dimension=value.dimension.split("/")[0])


def same_value(stated: Value, said: Value) -> bool:
    """Tell whether the value `said` in a text supports a stated one: equal in any unit, and a date at least as exact.

    Example:
        >>> from rag_kit.text.values.reading import find_values
        >>> months, years, month, day = find_values("24 months, two years, March 2025, 3 March 2025")
        >>> same_value(months, years), same_value(month, day), same_value(day, month)
        (True, True, False)
    """
    dimensions = {stated.dimension, said.dimension}
    if {stated.bound, said.bound} == {"min", "max"}:
        return False
    if "date" in dimensions:
        return _same_date(stated, said)
    if stated.key or said.key:
        return stated.key == said.key
    if dimensions == {"clock"}:
        minutes = abs(stated.amount - said.amount)
        return minutes in (0, 24 * 60) or (minutes == 12 * 60 and (stated.open or said.open))
    if dimensions == {"clock", ""}:  # 0540 may be no time
        hours, minutes = divmod(max(stated, said, key=lambda value: value.dimension).amount, 60)
        return 100 * hours + minutes == min(stated, said, key=lambda value: value.dimension).amount
    if dimensions in ({"ordinal", "calendar days"}, {"ordinal", ""}):
        return stated.amount == said.amount
    if not dimensions_agree(stated.dimension, said.dimension):
        return False
    if "pounds" in dimensions and len(dimensions) > 1:  # money or mass: the other one tells which
        return stated.amount == said.amount
    if stated.about and _is_rounded(stated.amount, said.base / stated.factor):
        return True
    if not stated.dimension and stated.base.is_integer() and said.base.is_integer():
        return stated.base == said.base  # 202503180017 is not 202503180018
    return _close(stated.base, said.base)


def _is_rounded(amount: float, exact: float) -> bool:
    """Tell whether an amount is a more exact one rounded to fewer figures."""
    figures = len(f"{abs(amount):.12g}".replace(".", "").strip("0"))
    return _close(amount, float(f"{exact:.{figures}g}"))


def _close(one: float, other: float) -> bool:
    return abs(one - other) <= 1e-11 * max(abs(one), abs(other))


def _same_date(stated: Value, said: Value) -> bool:
    """Tell whether a date has all parts of a stated one; a plain number may be a year."""
    if stated.dimension != said.dimension:
        date, other = (stated, said) if stated.dimension == "date" else (said, stated)
        return not other.dimension and date.key == f"{other.amount:.0f}"
    parts, said_parts = ((*value.key.split("-"), "", "")[:3] for value in (stated, said))
    if stated.dated and not said_parts[0]:
        parts = ("", *parts[1:])
    year, month, day = said_parts
    readings = [said_parts, (year, day, month)] if stated.open != said.open else [said_parts]
    return any(
        all(not part or part == other for part, other in zip(parts, reading, strict=True))
        for reading in readings
    )
