"""A period of time as days: a day, month, quarter, year, a part of one, or a span of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, timedelta

DAY = timedelta(days=1)
MONTHS_OF = {"month": 1, "quarter": 3, "half": 6, "year": 12}
_GRAINS = {**{months: grain for grain, months in MONTHS_OF.items()}, 120: "years"}
_ANY_YEAR = 2000  # of what is said of no year; it has a 29 February
# Where a decade or year is cut into thirds and halves, in months, and a month, in days
_CUTS = {"years": (0, 48, 60, 84, 120), "year": (0, 4, 6, 8, 12), "month": (0, 10, 15, 20, 31)}
_PARTS = {
    "beginning": (0, 1), "early": (0, 1), "middle": (1, 3), "late": (3, 4), "end": (3, 4),
    "first_half": (0, 2), "second_half": (2, 4), "until_middle": (0, 3), "from_middle": (1, 4),
}  # fmt: skip


@dataclass(frozen=True)
class Period:
    """The days from `start` to before `end`; an `end` of ``date.max`` means until now ("the last five years").

    `grain` is what was named: ``"day"``, a name of `MONTHS_OF`, ``"years"``, or ``"span"`` for any other.
    `edge` is the name in `_PARTS` of the part that was named, such as ``"end"`` of a year, which nobody dates to the
    day; empty if the whole was named.
    """

    start: date
    end: date
    grain: str
    edge: str = ""
    is_open: bool = False  # 01/02/2024, which may be of another month
    has_year: bool = True  # else no year was named, and it is the last such period that has begun

    @classmethod
    def of_months(cls, year: int, month: int, count: int) -> Period | None:
        """Return `count` months from a month on, of any year if `year` is 0; ``None`` outside of 1000 to 2999."""
        if not (1 <= month <= 12 and count and (year == 0 or 1000 <= year <= 2999)):
            return None
        start = date(year or _ANY_YEAR, month, 1)
        return cls(start, add_months(start, count), _GRAINS.get(count, "span"), has_year=year > 0)

    @classmethod
    def of_date(cls, year: int, month: int, day: int, *, is_open: bool = False) -> Period | None:
        """Return a day, or the month, or year, if no day, or month, is given; ``None`` if there is no such day."""
        if not day and month:
            return cls.of_months(year, month, 1)
        if not day:
            return cls.of_months(year, 1, 12) if year else None
        try:
            start = date(year or _ANY_YEAR, month, day)
        except ValueError:
            return None
        is_real = 1000 <= start.year <= 2999  # others mean "always"
        return cls(start, start + DAY, "day", is_open=is_open, has_year=year > 0) if is_real else None

    def consists_of(self, *units: int) -> bool:
        """Tell whether it is whole months, quarters, halves or years, given by their numbers of months: 1, 3, 6, 12."""
        ends = [day for day in (self.start, self.end) if day < date.max]
        return any(all(day == first_day(day, months) for day in ends) for months in units)

    def part(self, name: str) -> Period:
        """Return the part of a decade, year or month that a name of `_PARTS` stands for; of another period, all."""
        first, last = _PARTS[name]
        start, end, cuts = self.start, self.end, _CUTS.get(self.grain)
        if cuts and self.grain == "month":  # in days; a month ends where it ends
            end = end if last == 4 else start + timedelta(cuts[last])
            start += timedelta(cuts[first])
        elif cuts:
            start, end = add_months(start, cuts[first]), add_months(start, cuts[last])
        return replace(self, start=start, end=end, edge=name)

    def around(self) -> Period:
        """Return the period with as much time again before and after it; one until now as it is."""
        if self.end == date.max:
            return self
        start, end = self.start, self.end
        grain = self.grain if self.grain in ("year", "years") else "span"
        if start.day == end.day == 1:
            months = 12 * (end.year - start.year) + end.month - start.month
            return Period(add_months(start, -months), add_months(end, months), grain, "middle")
        return Period(start - (end - start), end + (end - start), grain, "middle")

    def through(self, other: Period | None) -> Period:
        """Return the days from the beginning of the earlier of two periods to the end of the later."""
        if other is None or not self.has_year:  # from November to January, of whatever year
            return replace(self, end=(other or self).end)
        first, last = sorted((self, other), key=lambda period: period.start)
        years = {first.grain, last.grain} <= {"year", "years"}
        return Period(first.start, last.end, "years" if years else "span")

    def in_year(self, year: int) -> Period | None:
        """Return it in another year, which then counts as named; ``None`` if that has no such day, as 29 February."""
        try:
            start = self.start.replace(year=year)
            years = self.end.year - self.start.year
            end = start + DAY if self.grain == "day" else self.end.replace(year=year + years)
        except (ValueError, OverflowError):
            return None
        return replace(self, start=start, end=end, has_year=True)

    def last_begun(self, today: date) -> Period | None:
        """Return it as it is if it has a year, else the last such period that has begun; ``None`` if there is none."""
        if self.has_year:
            return self
        for ago in range(8):  # there are eight years between some 29 Februaries
            period = self.in_year(today.year - ago)
            if period is not None and period.start <= today:
                return replace(period, has_year=False)
        return None


def first_day(day: date, months: int) -> date:
    """Return the first day of the month, quarter, half or year, by its number of months, that a day is in."""
    return day.replace(month=(day.month - 1) // months * months + 1, day=1)


def add_months(first: date, count: int) -> date:
    """Return the first day of a month some months after that of another."""
    year, month = divmod(first.year * 12 + first.month - 1 + count, 12)
    return date(year, month + 1, 1)
