"""The units that sums are stated in, English and Chinese, with exact factors.

A unit is a power product of lengths, masses, times and sums of money; what is counted (“apples”)
is no unit. Temperatures are not in it: their sums are not sums of amounts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

Dimensions = tuple[int, int, int, int]  # powers of length, mass, time, money
LENGTH, MASS, TIME, MONEY, BARE = (
    (1, 0, 0, 0),
    (0, 1, 0, 0),
    (0, 0, 1, 0),
    (0, 0, 0, 1),
    (0, 0, 0, 0),
)
# One line a unit: how many metres, kilograms, seconds or yuan it is, and its names.
LENGTHS = """
1 m metre metres meter meters 米 公尺
1000 km kilometre kilometres kilometer kilometers 千米 公里
1/10 dm decimetre decimetres decimeter decimeters 分米
1/100 cm centimetre centimetres centimeter centimeters 厘米 公分
1/1000 mm millimetre millimetres millimeter millimeters 毫米
127/5000 in inch inches 英寸
381/1250 ft foot feet 英尺
1143/1250 yd yard yards 码
201168/125 mi mile miles 英里
500 里
"""
MASSES = """
1 kg kilogram kilograms kilo kilos 千克 公斤
1/1000 g gram grams 克
1/1000000 mg milligram milligrams 毫克
1000 t tonne tonnes 吨 公吨
1/2 斤
1/20 两
45359237/100000000 lb lbs pound pounds 磅
45359237/1600000000 oz ounce ounces 盎司
"""
TIMES = """
1 s sec secs second seconds 秒 秒钟
60 min mins minute minutes 分钟
3600 h hr hrs hour hours 小时 个小时 钟头
86400 day days 天 日
604800 week weeks 周 星期 个星期
"""
SUMS_OF_MONEY = """
1 元 块 yuan
1/10 角 毛
"""
AREAS = """
10000 hectare hectares ha 公顷
2000/3 亩
"""
VOLUMES = """
1/1000 l litre litres liter liters 升
1/1000000 ml millilitre millilitres milliliter milliliters 毫升
"""
SQUARE = re.compile(r"(?:square|sq\.?)\s|平方")
CUBIC = re.compile(r"(?:cubic|cu\.?)\s|立方")
RAISED = {"²": 2, "³": 3, "^2": 2, "^3": 3, "**2": 2, "**3": 3}
LATIN = re.compile(r"[A-Za-z]+")
RAISED_AFTER = re.compile(r"²|³|(?:\^|\*\*)[23](?![0-9])")
AMBIGUOUS = frozenset("mgshtlLd") | {"in"}  # also names of unknowns, or words


@dataclass(frozen=True)
class Measure:
    """One of a unit is `factor` metres, kilograms, seconds or yuan, to the powers `dimensions`."""

    name: str
    factor: Fraction
    dimensions: Dimensions

    @property
    def is_ambiguous(self) -> bool:
        """True where the sign may as well stand for an unknown."""
        return self.name in AMBIGUOUS


def _read(table: str, dimensions: Dimensions) -> dict[str, Measure]:
    found: dict[str, Measure] = {}
    for line in table.split("\n"):
        factor, *names = line.split() or ["1"]
        found |= {name: Measure(name, Fraction(factor), dimensions) for name in names}
    return found


def powered(measure: Measure, power: int) -> Measure:
    """The unit to a power: a square metre."""
    one, two, three, four = (n * power for n in measure.dimensions)
    return Measure(f"{measure.name}^{power}", measure.factor**power, (one, two, three, four))


MEASURES: Mapping[str, Measure] = (
    _read(LENGTHS, LENGTH)
    | _read(MASSES, MASS)
    | _read(TIMES, TIME)
    | _read(SUMS_OF_MONEY, MONEY)
    | _read(AREAS, (2, 0, 0, 0))
    | _read(VOLUMES, (3, 0, 0, 0))
)
HAN_NAMES = sorted((name for name in MEASURES if not name.isascii()), key=len, reverse=True)
HAN = re.compile("|".join(HAN_NAMES))


def measure_at(text: str, start: int) -> tuple[Measure, int] | None:
    """The unit whose name begins at `start`, and where it ends; None where there is none."""
    power, place = 1, start
    for pattern, times in ((SQUARE, 2), (CUBIC, 3)):
        if match := pattern.match(text, start):
            power, place = times, match.end()
    match = LATIN.match(text, place) or HAN.match(text, place)
    if match is None:
        return None
    name = match.group()
    found = MEASURES.get(name) or MEASURES.get(name.lower() if len(name) > 2 else name)
    if found is None:
        found = MEASURES["l"] if name == "L" else MEASURES["ml"] if name == "mL" else None
    if found is None:
        return None
    end = match.end()
    if power == 1 and (raised := RAISED_AFTER.match(text, end)) and found.dimensions == LENGTH:
        power, end = RAISED[raised.group()], raised.end()
    return (found if power == 1 else powered(found, power)), end
