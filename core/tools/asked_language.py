"""Reads from a question which language its answer shall be in, and whether the answer is in it.

Strict: "the word for sea in French" or "the schools in English towns" ask for no language.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from core.intake.language import UNKNOWN, language_of
from core.tools.asked_bounds import both_ends
from core.tools.kept import Kept, kept_otherwise, not_told

ENGLISH: Mapping[str, str] = {
    "english": "en", "french": "fr", "german": "de", "spanish": "es", "chinese": "zh",
    "mandarin": "zh", "japanese": "ja", "korean": "ko", "russian": "ru", "italian": "it",
    "portuguese": "pt", "dutch": "nl", "arabic": "ar", "hindi": "hi", "turkish": "tr",
    "polish": "pl", "swedish": "sv", "danish": "da", "norwegian": "no", "finnish": "fi",
    "greek": "el", "hebrew": "he", "thai": "th", "vietnamese": "vi", "ukrainian": "uk",
    "czech": "cs", "hungarian": "hu", "romanian": "ro", "indonesian": "id", "persian": "fa",
}  # fmt: skip
GERMAN: Mapping[str, str] = {
    "englisch": "en", "deutsch": "de", "französisch": "fr", "spanisch": "es", "italienisch": "it",
    "chinesisch": "zh", "japanisch": "ja", "russisch": "ru", "polnisch": "pl", "türkisch": "tr",
    "niederländisch": "nl", "portugiesisch": "pt",
}  # fmt: skip
FRENCH: Mapping[str, str] = {
    "anglais": "en", "français": "fr", "allemand": "de", "espagnol": "es", "italien": "it",
    "chinois": "zh", "japonais": "ja", "russe": "ru", "portugais": "pt", "arabe": "ar",
    "néerlandais": "nl",
}  # fmt: skip
SPANISH: Mapping[str, str] = {
    "inglés": "en", "español": "es", "castellano": "es", "alemán": "de", "francés": "fr",
    "italiano": "it", "chino": "zh", "japonés": "ja", "ruso": "ru", "portugués": "pt",
    "árabe": "ar",
}  # fmt: skip
CHINESE: Mapping[str, str] = {
    "中文": "zh", "汉语": "zh", "英文": "en", "英语": "en", "法文": "fr", "法语": "fr",
    "德文": "de", "德语": "de", "西班牙文": "es", "西班牙语": "es", "日文": "ja", "日语": "ja",
    "韩文": "ko", "韩语": "ko", "俄文": "ru", "俄语": "ru", "意大利语": "it", "意大利文": "it",
    "葡萄牙语": "pt", "阿拉伯语": "ar",
}  # fmt: skip
CODES = {**ENGLISH, **GERMAN, **FRENCH, **SPANISH, **CHINESE}
WORDS = {code: name.capitalize() for name, code in ENGLISH.items()} | {"zh": "Chinese"}


def _one_of(names: Mapping[str, str]) -> str:
    return f"(?P<language>{'|'.join(sorted(names, key=len, reverse=True))})"


TEXT = (
    r"(?:answer|response|reply|text|essay|story|poem|letter|summary|paragraph|sentence|description"
    r"|email|review|article|explanation)"
)
NO_OTHER = rf"(?:and|or|und)\s+(?!in\b|{'|'.join(ENGLISH)})"
ALONE = rf"(?=\s*(?:$|[.,;:!?\n])|\s+(?:(?:only|please|to|about|on|that|for|with)\b|{NO_OTHER}))"
ASKING = tuple(
    re.compile(pattern, re.IGNORECASE | re.MULTILINE)
    for pattern in (
        rf"\b(?:answer|respond|reply)(?:\s+(?:to\s+)?(?:me|us|this|it|the\s+question|back))?"
        rf"(?:\s+(?:only|entirely))?\s+in\s+{_one_of(ENGLISH)}{ALONE}",
        rf"\b(?:write|give|provide|compose|draft)(?:\s+(?:me|us))?\s+(?:your|the|an?)\s+"
        rf"(?:\w+\s+)?{TEXT}\s+in\s+{_one_of(ENGLISH)}{ALONE}",
        rf"\b(?:answer|response|reply|output)\s+(?:should|must|shall|has\s+to|needs\s+to|is\s+to)"
        rf"\s+be\s+(?:(?:written|given|entirely|only)\s+)*in\s+{_one_of(ENGLISH)}{ALONE}",
        # "In French, describe …" and "In French." say nothing but that.
        rf"(?:^|[.!?]\s+)(?:please,?\s+)?in\s+{_one_of(ENGLISH)}"
        rf"(?:,\s+(?:please\s+)?(?:describe|explain|write|tell|summari[sz]e|answer|give)\b"
        rf"|(?:,?\s+please)?\s*[.!]?\s*$)",
        rf"\btranslate\b[^.?!]{{0,200}}\b(?:in)?to\s+{_one_of(ENGLISH)}{ALONE}",
        rf"\b(?:antworte|antworten\s+sie|schreibe?|schreiben\s+sie|beantworte|formuliere)\b"
        rf"(?:\s+(?:bitte|mir|es|die\s+frage|nur)){{0,2}}\s+auf\s+{_one_of(GERMAN)}\b",
        rf"\bübersetze?n?\b[^.?!]{{0,200}}\bins\s+{_one_of(GERMAN)}e\b",
        rf"\b(?:réponds|répondez|écris|écrivez|rédige[zr]?)\b(?:\s+(?:moi|la\s+réponse|uniquement))?"
        rf"\s+en\s+{_one_of(FRENCH)}\b",
        rf"\btradui(?:s|sez|re)\b[^.?!]{{0,200}}\ben\s+{_one_of(FRENCH)}\b",
        rf"\b(?:responde|responda|contesta|conteste|escribe|escriba|redacta)\b"
        rf"(?:\s+(?:la\s+respuesta|solo))?\s+en\s+{_one_of(SPANISH)}\b",
        rf"\btradu(?:ce|zca|cir)\b[^.?!]{{0,200}}\bal\s+{_one_of(SPANISH)}\b",
        rf"(?:用|以|使用){_one_of(CHINESE)}(?:来|进行|简要|简短|详细)?"
        r"(?:回答|作答|回复|答复|写|撰写|描述|介绍|解释|说明|概括|总结)",
        rf"(?:翻译|译)(?:成|为|到){_one_of(CHINESE)}",
    )
)
# Languages that the detector may take for each other in a short text.
ALIKE = (
    frozenset("no da sv".split()),
    frozenset("id ms".split()),
    frozenset("es gl ca pt".split()),
    frozenset("cs sk".split()),
    frozenset("zh ja".split()),
    frozenset("ar fa ur".split()),
    frozenset("ru uk bg be sr mk".split()),
    frozenset("hi mr ne".split()),
    frozenset("de nl af lb".split()),
)
FENCED = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)


def asked_language(question: str) -> str:
    """The ISO 639-1 code of the language asked for; empty for none, or for more than one."""
    shown = both_ends(question)
    found = {
        CODES[match["language"].lower()] for pattern in ASKING for match in pattern.finditer(shown)
    }
    return found.pop() if len(found) == 1 else ""


def check_language(text: str, asked: str) -> Kept:
    """Whether the text, without its code, is in a language given as an ISO 639-1 code.

    A language that resembles it is not told from it, nor is one of a text too short to say.
    """
    wanted = WORDS.get(asked, asked)
    found = language_of(FENCED.sub(" ", text))
    if found == UNKNOWN:
        return not_told("language", wanted, "the answer is too short or too mixed to say")
    is_like = found != asked and any({found, asked} <= group for group in ALIKE)
    if is_like:
        return not_told("language", wanted, f"it may be that or {WORDS.get(found, found)}")
    is_in = f"is in {WORDS.get(found, f'another language ({found})')}"
    return kept_otherwise("language", wanted, is_in, holds=found == asked)
