"""Units of measure and currencies: the names that texts use, the dimension, the factor to its base unit."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

# dimension: factor names; factor names ... The first name of a unit is its symbol. "~" is a blank in a name.
_TABLE = """
length: .001 mm millimetre millimeter 毫米; .01 cm centimetre centimeter zentimeter 厘米 公分; .1 dm decimetre 分米
length: 1 m metre meter 米 公尺; 1000 km kilometre kilometer 公里 千米; .0254 inch inches 英寸; .3048 ft foot feet 英尺
length: 1e-6 µm um micron micrometre 微米; 1e-9 nm nanometre 纳米; .9144 yd yard; 1609.344 mile mi meile 英里
length: 1852 nautical~mile 海里
mass: 1e-6 mg milligram 毫克; .001 g gram gramme gramm 克; 1 kg kilogram kilo kilogramm 公斤 千克; 1000 t tonne ton 吨
mass: .5 斤; .45359237 lb lbs 磅; .0283495 oz ounce 盎司; 1e-9 µg ug microgram 微克
time: .001 ms millisecond 毫秒; 1 s sec second sekunde 秒 秒钟; 60 min minute 分钟; 3600 h hr hrs hour stunde 小时 钟头
time: 86400 d day tag tage tagen 天 日历天; 604800 week woche wochen wk 周 星期 礼拜
months: 1 month monat monate monaten 个月 月; 3 quarter quartal 季度 个季度; 12 year y yr jahr jahre jahren 年 周年 周岁 岁
months: 120 decade
workdays: 1 working~day business~day workday arbeitstag arbeitstage 工作日
volume: .001 ml millilitre milliliter 毫升; .01 cl; 1 l litre liter 升 公升; 3.785411784 gallon gal 加仑
volume: 1000 m3 cubic~metre cubic~meter 立方米 立方; 1e-3 cm3 cubic~centimetre 立方厘米; .158987e3 barrel 桶
area: 1 m2 square~metre square~meter sqm 平方米 平米; 1e6 km2 square~kilometre square~kilometer 平方公里 平方千米
area: 1e-4 cm2 square~centimetre 平方厘米; 1e4 ha hectare hektar 公顷; 666.6667 亩; 4046.856 acre 英亩; .092903 ft2 square~foot square~feet
power: .001 mW milliwatt; 1 W watt 瓦 瓦特; 1000 kW kilowatt 千瓦; 1e6 MW megawatt 兆瓦; 1e9 GW gigawatt; 745.7 hp horsepower 马力
energy: 1 J joule 焦耳; 1000 kJ kilojoule 千焦; 3.6e6 kWh kilowatt-hour kilowattstunde 千瓦时; 3.6e9 MWh; 4184 kcal kilocalorie 千卡 大卡; 3.6e3 Wh
pressure: 1 Pa pascal 帕; 1000 kPa 千帕; 1e6 MPa 兆帕; 1e5 bar 巴; 100 mbar millibar 毫巴; 6894.757 psi
voltage: .001 mV 毫伏; 1 V volt 伏 伏特; 1000 kV kilovolt 千伏
current: .001 mA milliampere 毫安; 1 A amp ampere 安 安培
charge: 1 mAh 毫安时; 1000 Ah
frequency: 1 Hz hertz 赫兹; 1000 kHz 千赫; 1e6 MHz 兆赫; 1e9 GHz
force: 1 N newton 牛 牛顿; 1000 kN 千牛
torque: 1 Nm newton~metre 牛米
resistance: 1 Ω ohm 欧姆; 1000 kΩ
data: 1 B byte 字节; 1e3 KB kB kilobyte; 1e6 MB megabyte 兆字节; 1e9 GB gigabyte; 1e12 TB terabyte; 1e15 PB petabyte
bits: 1 bit 比特; 1e3 kbit Kbit; 1e6 Mbit megabit; 1e9 Gbit gigabit
celsius: 1 °C ℃ degrees~celsius degree~celsius grad~celsius 摄氏度 度~c
fahrenheit: 1 °F ℉ degrees~fahrenheit degree~fahrenheit 华氏度
kelvin: 1 K kelvin 开尔文
degrees: 1 ° degree grad 度
ratio: .01 % percent per~cent prozent; .001 ‰ per~mille promille; 1e-4 基点
points: 1 percentage~point prozentpunkt prozentpunkte 个百分点 百分点
sound: 1 dB decibel 分贝
light: 1 lux lx 勒克斯; 1 lm lumen 流明
turns: 1 revolution 转
CNY: 1 元 yuan CNY RMB 人民币 块钱 元人民币; .1 角
USD: 1 $ USD US$ dollar 美元 美金 us~dollar
EUR: 1 € EUR euro 欧元
GBP: 1 £ GBP 英镑 pound~sterling
JPY: 1 JPY yen 日元 日圆
HKD: 1 HK$ HKD 港元 港币
TWD: 1 NT$ TWD 新台币 台币
KRW: 1 KRW won 韩元
CHF: 1 CHF franken swiss~franc 瑞士法郎
yen or yuan: 1 ¥
pounds: 1 pound
calendar days: 86400 日
rate: 1 kph; 1 mph; 1 rpm; 1 Kbps; 1 Mbps; 1 Gbps
"""
#: A dimension that a name leaves open, with what it may be.
_OPEN = {
    "yen or yuan": {"CNY", "JPY"},
    "pounds": {"GBP", "mass"},
    "degrees": {"celsius", "fahrenheit"},
    "calendar days": {"time"},
}
_RATES = {
    "kph": ("km", "h"), "mph": ("mile", "h"), "rpm": ("revolution", "min"),
    "Kbps": ("kbit", "s"), "Mbps": ("Mbit", "s"), "Gbps": ("Gbit", "s"),
}  # fmt: skip
_POUND = 0.45359237


class Unit(NamedTuple):
    """A unit: its symbol, what it measures, and how many of the dimension's base unit it is."""

    symbol: str
    dimension: str
    factor: float


@cache
def _units() -> dict[str, Unit]:
    """Name -> unit; plurals in -s and names in lower case are names too."""
    table: dict[str, Unit] = {}
    for line in _TABLE.strip().splitlines():
        dimension, _, rest = line.partition(": ")
        for entry in rest.split("; "):
            factor, *names = entry.replace("µ", "μ").split()
            unit = Unit(names[0], dimension, float(factor))
            for name in (name.replace("~", " ") for name in names):
                table[name] = unit
                if name.isascii() and len(name) > 2 and name[-1] not in "s%$3":
                    table.setdefault(name.lower(), unit)
                    table.setdefault(name.lower() + "s", unit)
    return table


_SQUARE = {"²": "2", "³": "3", "^2": "2", "^3": "3"}
_LATIN = re.compile(
    r"(?:(?:square|cubic|working|business|nautical|percentage|newton|per|pound|us|swiss|degrees?|grad)[ -])?"
    r"(?:[A-Z]{1,2}\$|[%‰€£¥$℃℉]|°[CF]?(?![A-Za-z])|[a-zA-ZäöüμµΩ]+(?:-hours?)?(?:²|³|\^[23]|[23](?!\d))?)",
    re.IGNORECASE,
)
_HAN = re.compile(r"[\u4e00-\u9fff]{1,5}")
_LONGEST = 5
_GAP = re.compile(r"(?: |-(?=[A-Za-z])|\u00a0)?")


def unit_at(text: str, place: int) -> tuple[Unit, int] | None:
    """The unit that begins at a place of a text, after one blank or hyphen, and where it ends; None if there is none.

    Example:
        >>> unit_at("36 months", 2)
        (Unit(symbol='month', dimension='months', factor=1.0), 9)
    """
    start = _GAP.match(text, place).end()  # type: ignore[union-attr]
    if run := _HAN.match(text, start):
        for size in range(len(run[0]), 0, -1):
            if unit := _units().get(run[0][:size]):
                return unit, start + size
        return None
    match = _LATIN.match(text, start)
    if match is None:
        return None
    name = match[0].replace("µ", "μ")
    for power, digit in _SQUARE.items():
        name = name.replace(power, digit)
    unit = _units().get(name) or (_units().get(name.lower()) if len(name) > 2 else None)
    if unit is None and " " in match[0]:
        first = re.match(r"\S+", match[0])[0]  # type: ignore[index]
        unit = _units().get(first)
        return (unit, start + len(first)) if unit else None
    return (unit, match.end()) if unit else None


def rate_of(unit: Unit) -> tuple[Unit, Unit] | None:
    """The two units of a rate with a name of its own, such as mph."""
    names = _RATES.get(unit.symbol)
    return (_units()[names[0]], _units()[names[1]]) if names else None


def dimensions_agree(one: str, other: str) -> bool:
    """Whether two dimensions are the same, or one leaves open what the other is."""
    return one == other or other in _OPEN.get(one, ()) or one in _OPEN.get(other, ())


def is_open(dimension: str) -> bool:
    """Whether the name of a unit leaves open what it measures."""
    return dimension in _OPEN


def is_money(dimension: str) -> bool:
    """Whether a dimension is a currency."""
    return dimension.isupper() or dimension in ("yen or yuan", "pounds")
