"""How questions for a calendar are put, in English, Chinese, German, French and Spanish."""

from __future__ import annotations

import re

from core.tools.calendar import TimeUnit

UNITS: dict[str, TimeUnit] = {
    "day": "day", "week": "week", "month": "month", "year": "year",
    "tag": "day", "woche": "week", "monat": "month", "jahr": "year",
    "jour": "day", "semaine": "week", "mois": "month", "année": "year", "an": "year",
    "día": "day", "semana": "week", "mes": "month", "año": "year",
    "天": "day", "日": "day", "周": "week", "星期": "week", "礼拜": "week", "月": "month",
    "年": "year",
}  # fmt: skip
HAN_UNIT = r"(?:个?(?P<han>星期|礼拜|月)|(?P<short>天|日|周|年))"
SPACED_UNIT = (
    r"(?P<spaced>days?|weeks?|months?|years?|tage?n?|wochen?|monate?n?|jahre?n?"
    r"|jours?|semaines?|mois|ans?|années?|días?|semanas?|mes(?:es)?|años?)\b"
)
HOW_LONG = re.compile(
    r"(?:how many|number of|how long in|wie viele|wieviele|combien (?:de\s|d['’])|cuánt[oa]s)\s*"
    rf"{SPACED_UNIT}|(?:多少|几)\s*{HAN_UNIT}(?![几月])",
    re.IGNORECASE,
)
WHICH_WEEKDAY = re.compile(
    r"\b(?:what|which) (?:day of the week|weekday)\b|(?:星期|周|礼拜)几"
    r"|\b(?:an |auf )?(?:welche[rnm]?|was für ein(?:en)?) wochentag\b"
    r"|\bquel jour de la semaine\b|\bqué día de la semana\b",
    re.IGNORECASE,
)
WHICH_DATE = re.compile(
    r"\b(?:what|which) (?:is the |was the |will be the |calendar )?(?:date|day)\b"
    r"|几月几[日号]|哪一?[天日]|什么日期|几号|日期是(?:什么|多少)"
    r"|\bwelche[rs] (?:datum|tag)\b|\bquelle (?:est la |était la |sera la )?date\b|\bquel jour\b"
    r"|\bqué (?:fecha|día)\b|\bcuál (?:es|era|será) la fecha\b",
    re.IGNORECASE,
)
HOW_OLD = re.compile(
    r"\bhow old\b|多大|多少岁|几岁|年龄|\bwie alt\b|\bquel âge\b|\bqué edad\b"
    r"|\bcuántos años (?:tenía|tiene|tendrá)\b",
    re.IGNORECASE,
)
BORN = re.compile(r"\b(?:born|geboren|née?|nacid[oa]|nació)\b|出生|生于|诞生", re.IGNORECASE)
BORN_BEFORE = re.compile(
    r"(?:\bborn(?:\s+(?:on|in))?|生于|出生于|诞生于|\b(?:née?|nacid[oa]|nació)(?:\s+(?:le|el))?)\s*$"
    r"|\b(?:wurde|ist|geboren)\s+am\s*$",
    re.IGNORECASE,
)
BORN_BEHIND = re.compile(r"\s*(?:出生|诞生)(?!于)|\s*geboren(?!\s+am)\b", re.IGNORECASE)
# Another's age, or one that is not meant.
OF_ANOTHER = re.compile(
    r"['’]s\b|\b(?:his|her|their|its|not|never|before|seine?|ihre?|nicht|sa|son|ses|su|sus|pas)\b"
    r"|的(?!时候|年龄)|[不没]",
    re.IGNORECASE,
)
# Whether both ends count is open, but for this wording, whose shared answers count one.
SETTLED = re.compile(r"从\s*到\s*共有多少天")
STEP = re.compile(
    r"(?P<figure>\d{1,6}|[a-zäöüßéèêáíóúñ]+(?:[- ][a-zéèíáó]+)?)\s+" + SPACED_UNIT
    + r"|(?P<number>\d{1,6}|[一二三四五六七八九十百千两零〇]{1,9})\s*" + HAN_UNIT,
    re.IGNORECASE,
)  # fmt: skip
AFTER = re.compile(
    r"\b(?:after|later|from|following|past|nach|später|après|plus tard|después|más tarde)\b|后",
    re.IGNORECASE,
)
BEFORE = re.compile(
    r"\b(?:before|earlier|prior|preceding|ago|vor|früher|avant|plus tôt|antes)\b|前", re.IGNORECASE
)
INCLUSIVE = re.compile(
    r"\binclusive(?:ly)?\b|\beinschließlich\b|\binklusive\b|\binclus(?:es)?\b|\bambos incluidos\b"
    r"|\bboth (?:end )?(?:days|dates|ends)(?: are)? (?:included|counted)\b"
    r"|\b(?:including|counting) (?:both|the (?:start|first))[a-z ]*|\bthrough\b"
    r"|[包含]{1,2}(?:首尾|头尾|两端|起止)|(?:首尾|头尾|两端)(?:都|均)?(?:算|计|包含|包括)(?:入|在内)?",
    re.IGNORECASE,
)
# What a question for the calendar alone consists of beside its dates; any other word asks for more.
FILLER = re.compile(
    r"\b(?:how|many|number|of|are|there|is|was|were|will|be|it|on|in|at|the|between|from|to|until"
    r"|till|up|and|did|do|does|have|has|passed|pass|elapsed|elapse|total|altogether|please|exactly"
    r"|what|which|date|day|days|fall|falls|fell|calculate|compute|find|tell|me|lie|a|an|that|week"
    r"|for|difference|counted|if|you|count"
    r"|wie|viele|sind|es|liegen|liegt|zwischen|dem|der|den|das|und|vom|von|bis|zum|am|im|war|ist"
    r"|wird|fällt|fiel|auf|ein|einen|vergehen|vergingen|vergangen|datum|tag|genau|haben|wir|welcher"
    r"|combien|y|t-il|il|entre|le|la|et|du|au|est|était|sera|tombe|tombait|quel|jour|date|c|se|sont"
    r"|écoulent|s|écoulé|écoulés|exactement|passé|passés|à|une?|quelle|ce|de"
    r"|cuántos|hay|el|del|al|desde|hasta|fue|es|era|será|cae|cayó|en|qué|día|fecha|pasan|pasaron"
    r"|transcurren|transcurrieron|exactamente|cuál|los|las|a|con|que)\b"
    r"|[从自由到至和与跟及之间共一总有相隔差距离间请问计算是经过了的这那中在当期起开始呢吗日两者为止]"
    r"|[\W_]",
    re.IGNORECASE,
)
