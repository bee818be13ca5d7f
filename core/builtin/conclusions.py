"""Words by which a statement says that it follows from what was said before, by language.

Openers conclude where a sentence begins with them; totals wherever they stand in it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

OPENERS: Mapping[str, str] = {
    "en": "therefore|thus|hence|so|consequently|accordingly|as a result|that means|this means|"
    "which means|it follows|in conclusion|overall|then",
    "zh": "因此|因而|所以|于是|故而|故|从而|由此|综上|总之|那么|可见|也就是说",
    "de": "also|daher|deshalb|deswegen|folglich|somit|demnach|damit|das bedeutet|das heißt",
    "fr": "donc|ainsi|par conséquent|c['’]est pourquoi|cela signifie|il s['’]ensuit",
    "es": "por lo tanto|por tanto|por consiguiente|así que|entonces|luego|esto significa",
    "pt": "portanto|por isso|assim|logo|consequentemente|isso significa",
    "it": "quindi|dunque|perciò|pertanto|di conseguenza|ciò significa",
    "nl": "dus|daarom|derhalve|bijgevolg|dat betekent",
}
TOTALS: Mapping[str, str] = {
    "en": "in total|altogether|in all|all together|the total|combined",
    "zh": "总共|一共|合计|总计|共计",
    "de": "insgesamt|zusammen|alles in allem",
    "fr": "au total|en tout",
    "es": "en total",
    "pt": "no total|ao todo",
    "it": "in totale|complessivamente",
    "nl": "in totaal|samen",
}


def concludes(text: str, language: str) -> bool:
    """True where the statement says by its words that it follows from others."""
    opener, total = _patterns(language if language in OPENERS else "en")
    return bool(opener.match(text) or total.search(text))


@lru_cache(maxsize=16)
def _patterns(language: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    end = "" if language == "zh" else r"(?!\w)"
    start = "" if language == "zh" else r"(?<!\w)"
    lead = r"[\W_]*(?:(?:and|und|et|y|e|en|而)\s+)?"
    return (
        re.compile(rf"{lead}(?:{OPENERS[language]}){end}", re.IGNORECASE),
        re.compile(rf"{start}(?:{TOTALS[language]}){end}", re.IGNORECASE),
    )
