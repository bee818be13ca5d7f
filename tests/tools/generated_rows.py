"""Makes questions with right and wrong answers about lengths and dates, in five languages.

`python -m tests.tools.generated_rows` prints how the tools do on them, by language. Lengths,
dates and deviations are drawn from a seed; no threshold of the tools was chosen on them. Truth is
worked out here with nothing of theirs. Deviations lie outside the grey zone of 5 to 10 % that
people disagree about; `grey_rows` are those inside it.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from core.runtime.concurrency import Stop
from core.schema.records import Case, Label, Statement
from core.tools.registry import Bench, tool_named, use

LANGUAGES = ("en", "zh", "de", "fr", "es")
SEED = 20_240_229
TIMES = 48  # rows of each language and kind of tool
WORDS = {
    "en": "river stone lantern quiet morning garden bridge copper window harvest seldom bright",
    "de": "Fluss Stein Laterne leise Morgen Garten Kupfer Fenster Ernte selten hell Wolke",
    "fr": "rivière pierre lanterne calme matin jardin pont cuivre moisson rarement clair nuage",
    "es": "piedra farol tranquilo mañana jardín puente cobre ventana cosecha claro nube camino",
    "zh": "河石灯静晨园桥铜窗收少亮云路山木鸟雨",
}
LENGTHS = {
    "en": {
        "point": ("Describe the garden in {} words.", "Write {} words about bridges."),
        "least": ("Explain rain in at least {} words.",),
        "most": ("Answer in no more than {} words: what is copper?",),
        "about": ("Write a story of about {} words.",),
    },
    "de": {
        "point": ("Beschreibe den Garten in {} Wörtern.", "Schreibe {} Wörter über Brücken."),
        "least": ("Erkläre den Regen in mindestens {} Wörtern.",),
        "most": ("Antworte mit höchstens {} Wörtern.",),
        "about": ("Schreibe eine Geschichte mit etwa {} Wörtern.",),
    },
    "fr": {
        "point": ("Décris le jardin en {} mots.", "Écris {} mots sur les ponts."),
        "least": ("Explique la pluie en au moins {} mots.",),
        "most": ("Réponds en {} mots maximum.",),
        "about": ("Rédige un texte d'environ {} mots.",),
    },
    "es": {
        "point": ("Describe el jardín en {} palabras.", "Escribe {} palabras sobre puentes."),
        "least": ("Explica la lluvia en al menos {} palabras.",),
        "most": ("Responde en {} palabras como máximo.",),
        "about": ("Redacta un texto de unas {} palabras.",),
    },
    "zh": {
        "point": ("请用{}字描述花园。", "用{}个字介绍桥。"),
        "least": ("请写一篇不少于{}字的短文。",),
        "most": ("请用不超过{}字说明雨。",),
        "about": ("写一段{}字左右的介绍。",),
    },
}
MONTHS = {
    "en": "January February March April May June July August September October November December",
    "de": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "es": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre"
    " diciembre",
}
WEEKDAYS = {
    "en": "Monday Tuesday Wednesday Thursday Friday Saturday Sunday",
    "de": "Montag Dienstag Mittwoch Donnerstag Freitag Samstag Sonntag",
    "fr": "lundi mardi mercredi jeudi vendredi samedi dimanche",
    "es": "lunes martes miércoles jueves viernes sábado domingo",
    "zh": "星期一 星期二 星期三 星期四 星期五 星期六 星期日",
}
DAY = {"en": "{d} {m} {y}", "de": "{d}. {m} {y}", "fr": "{d} {m} {y}", "es": "{d} de {m} de {y}"}
# kind -> language -> (question, answer); a statement has no question.
DATES = {
    "days": {
        "en": ("How many days are there from {a} to {b}?", "There are {x} days."),
        "de": ("Wie viele Tage liegen zwischen dem {a} und dem {b}?", "Es sind {x} Tage."),
        "fr": ("Combien de jours y a-t-il entre le {a} et le {b} ?", "Il y a {x} jours."),
        "es": ("¿Cuántos días hay entre el {a} y el {b}?", "Hay {x} días."),
        "zh": ("从{a}到{b}共有多少天？", "共有{x}天。"),
    },
    "weekday": {
        "en": ("What day of the week was {a}?", "It was a {x}."),
        "de": ("Welcher Wochentag war der {a}?", "Es war ein {x}."),
        "fr": ("Quel jour de la semaine était le {a} ?", "C'était un {x}."),
        "es": ("¿Qué día de la semana fue el {a}?", "Fue {x}."),
        "zh": ("{a}是星期几？", "是{x}。"),
    },
    "later": {
        "en": ("What date is {n} days after {a}?", "It is {x}."),
        "de": ("Welches Datum ist {n} Tage nach dem {a}?", "Es ist der {x}."),
        "fr": ("Quelle est la date {n} jours après le {a} ?", "C'est le {x}."),
        "es": ("¿Qué fecha es {n} días después del {a}?", "Es el {x}."),
        "zh": ("{a}之后{n}天是哪一天？", "是{x}。"),
    },
    "age": {
        "en": ("How old was Mira, born on {a}, on {b}?", "She was {x} years old."),
        "de": ("Wie alt war Mira, geboren am {a}, am {b}?", "Sie war {x} Jahre alt."),
        "fr": ("Mira est née le {a}. Quel âge avait-elle le {b} ?", "Elle avait {x} ans."),
        "es": ("Mira nació el {a}. ¿Qué edad tenía el {b}?", "Tenía {x} años."),
        "zh": ("李雷生于{a}，{b}他多少岁？", "{x}岁。"),
    },
    "said days": {
        "en": ("", "From {a} to {b} are {x} days."),
        "de": ("", "Vom {a} bis zum {b} sind es {x} Tage."),
        "fr": ("", "Du {a} au {b}, il y a {x} jours."),
        "es": ("", "Del {a} al {b} hay {x} días."),
        "zh": ("", "从{a}到{b}共有{x}天。"),
    },
    "said weekday": {
        "en": ("", "{a} was a {x}."),
        "de": ("", "Der {a} war ein {x}."),
        "fr": ("", "Le {a} était un {x}."),
        "es": ("", "El {a} fue {x}."),
        "zh": ("", "{a}是{x}。"),
    },
}


@dataclass(frozen=True)
class Row:
    """One question and answer with its label; `off` is the deviation, a share of what is asked."""

    kind: str
    language: str
    question: str
    response: str
    label: Label
    off: float = 0.0


def length_rows(seed: int = SEED, times: int = TIMES) -> Iterator[Row]:
    """Answers of a known length to questions that ask for one; half of them wrong."""
    chance = random.Random(seed)
    for language in LANGUAGES:
        for turn in range(times):
            kind = chance.choice(sorted(LENGTHS[language]))
            question = chance.choice(LENGTHS[language][kind])
            asked, is_right = chance.randint(60, 260), turn % 2 == 0
            off = _deviation(chance, kind, is_right=is_right)
            count = _count(asked, off, kind)
            label: Label = "supported" if is_right else "hallucinated"
            text = _text(chance, language, count)
            yield Row(kind, language, question.format(asked), text, label, count / asked - 1)


def grey_rows(seed: int = SEED, times: int = TIMES) -> Iterator[Row]:
    """Answers 5 to 10 % off a bare figure; the label is what the stated rule says: 7.5 %."""
    chance = random.Random(seed + 1)
    for language in LANGUAGES:
        for _ in range(times):
            asked = chance.randint(100, 400)
            count = round(asked * (1 + chance.choice((-1, 1)) * chance.uniform(0.05, 0.1)))
            off = count / asked - 1
            label: Label = "supported" if abs(count - asked) <= 0.075 * asked else "hallucinated"
            question = chance.choice(LENGTHS[language]["point"]).format(asked)
            yield Row("grey", language, question, _text(chance, language, count), label, off)


def _deviation(chance: random.Random, kind: str, *, is_right: bool) -> float:
    """The share by which the length is off, signed so that a bound is kept or broken."""
    sign = chance.choice((-1, 1))
    if kind == "point":
        return sign * (chance.uniform(0, 0.045) if is_right else chance.uniform(0.11, 0.6))
    if kind == "about":
        return sign * (chance.uniform(0, 0.15) if is_right else chance.uniform(0.27, 0.6))
    kept = 1 if kind == "least" else -1
    # Full stops, one sign in twenty in Chinese, count or do not: a bound is missed by more.
    return kept * chance.uniform(0, 0.6) if is_right else -kept * chance.uniform(0.08, 0.6)


def _count(asked: int, off: float, kind: str) -> int:
    """The length itself; a broken bound is missed by one unit at least, and a mark is none."""
    count = round(asked * (1 + off))
    if kind == "least" and off < 0:
        return min(count, asked - 2)
    return max(count, asked + 2) if kind == "most" and off > 0 else count


def _text(chance: random.Random, language: str, count: int) -> str:
    """So many words, or characters with the full stops among them in Chinese."""
    if language == "zh":
        signs = [chance.choice(WORDS["zh"]) for _ in range(count)]
        for place in range(19, count - 1, 20):
            signs[place] = "。"
        signs[-1] = "。"
        return "".join(signs)
    words = [chance.choice(WORDS[language].split()) for _ in range(count)]
    lines = [" ".join(words[place : place + 12]) for place in range(0, count, 12)]
    return " ".join(f"{line[0].upper()}{line[1:]}." for line in lines)


def date_rows(seed: int = SEED, times: int = TIMES) -> Iterator[Row]:
    """Questions for the calendar and statements about dates; half of the answers wrong."""
    chance = random.Random(seed + 2)
    for language in LANGUAGES:
        for turn in range(times):
            kind = sorted(DATES)[turn // 2 % len(DATES)]
            yield _date_row(chance, kind, language, is_right=turn % 2 == 0)


def _date_row(chance: random.Random, kind: str, language: str, *, is_right: bool) -> Row:
    # Chinese years are read up to 2100.
    first = date(1800, 1, 1) + timedelta(days=chance.randint(0, 75_000))
    far = chance.randint(2_500, 30_000) if kind == "age" else chance.randint(20, 4_000)
    last = first + timedelta(days=far)
    # Days that miss by one are left open on purpose, for both ends may count.
    off = 0 if is_right else chance.choice((-1, 1)) * chance.randint(2, max(3, far // 3))
    said = {
        "days": lambda: str(far + off),
        "weekday": lambda: _weekday(first + timedelta(days=off % 7 or (not is_right)), language),
        "later": lambda: _day(last + timedelta(days=off), language),
        "age": lambda: str(_age(first, last) + (0 if is_right else chance.randint(1, 9))),
    }[kind.removeprefix("said ")]()
    question, answer = DATES[kind][language]
    named = {"a": _day(first, language), "b": _day(last, language), "n": far, "x": said}
    response = answer.format(**named)
    label: Label = "supported" if is_right else "hallucinated"
    return Row(kind, language, question.format(**named), response, label, off / far)


def _weekday(day: date, language: str) -> str:
    return WEEKDAYS[language].split()[(day.toordinal() - 1) % 7]


def _age(born: date, day: date) -> int:
    had_birthday = (day.month, day.day) >= (born.month, born.day)
    return day.year - born.year - (not had_birthday)


def _day(day: date, language: str) -> str:
    if language == "zh":
        return f"{day.year}年{day.month}月{day.day}日"
    month = MONTHS[language].split()[day.month - 1]
    number = "1er" if language == "fr" and day.day == 1 else str(day.day)
    return DAY[language].format(d=number, m=month, y=day.year)


def told(row: Row) -> Label:
    """What the tools say of a row, `unclear` where none of them reads it."""
    case = Case("c", "p", row.response, row.question, language=row.language)
    whole = None if row.question else Statement(0, 0, len(row.response), row.response, row.response)
    for name in ("conditions", "calendar"):
        tool = tool_named(name)
        given = tool.reads(whole, case) if tool.reads else None
        if given is not None:
            return use(tool, given, Bench(Stop())).label
    return "unclear"


def wrongly_told(rows: Sequence[Row]) -> list[tuple[Row, Label]]:
    """Rows whose label the tools miss, with what they say."""
    return [(row, label) for row in rows if (label := told(row)) != row.label]


def _table(name: str, make: Callable[[], Iterator[Row]]) -> str:
    rows = list(make())
    missed = [row for row, _ in wrongly_told(rows)]
    lines = [f"{name:<22}{'n':>6}{'right':>7}{'accuracy':>10}{'always hallucinated':>21}"]
    for language in (*LANGUAGES, "all"):
        ours = [row for row in rows if language in (row.language, "all")]
        right = len(ours) - sum(1 for row in missed if language in (row.language, "all"))
        trivial = sum(row.label == "hallucinated" for row in ours) / len(ours)
        shown = f"{right / len(ours):>10.3f}{trivial:>21.3f}"
        lines.append(f"  {language:<20}{len(ours):>6}{right:>7}{shown}")
    return "\n".join(lines)


if __name__ == "__main__":
    tables = (("lengths", length_rows), ("lengths 5-10 % off", grey_rows), ("dates", date_rows))
    for title, maker in tables:
        sys.stdout.write(f"{_table(title, maker)}\n\n")
