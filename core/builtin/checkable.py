"""Tells statements that could be true or false from greetings, questions, opinions and offers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from core.builtin.claims import claim_of
from core.builtin.reading import read
from core.records import Case, Statement
from core.tools.code_blocks import is_code

QUESTION = re.compile(r"[?？؟][\s\"'”’)）】」]*$")
FIGURE = re.compile(r"\d|[零一二两三四五六七八九十百千万亿]{2,}")
# Words that only lead up to what is said: "Of course, …", "Please note that …".
LEADS: Mapping[str, str] = {
    "en": "sure|of course|certainly|(?:i['’]m |i am )?sorry,? but|"
    "please (?:note|remember|be aware|keep in mind)(?: that)?",
    "zh": "当然|好的|请(?:注意|记住)",
    "de": "gerne|natürlich|bitte beachten sie,?(?: dass)?",
    "fr": "bien sûr|(?:veuillez )?notez que",
    "es": "por supuesto|claro(?: que)?|tenga en cuenta que",
}
# How a greeting, an offer or a wish begins; folded by case.
OPENERS: Mapping[str, str] = {
    "en": "hello|hi|hey|dear|great question|good question|thank you|thanks(?! to)|"
    "you['’]re welcome|let me|feel free|please|hope (?:this|that)|i hope|"
    "(?:i['’]m |i am )?sorry|as an ai(?: language)?(?: model| assistant)?,|here is|here are|"
    "here['’]s|let['’]s|best regards|good luck|"
    "i can(?:not|['’]t)?|i['’]d|i['’]ll|i will|i would|"
    "(?:i['’]m |i am )?(?:happy|glad) to|no problem",
    "zh": "你好|您好|大家好|亲爱的|谢谢|感谢|不客气|我希望|希望(?:这|以上|对)|"
    "如果(?:你|您)(?:还)?有|请|抱歉|对不起|作为(?:一个)?(?:ai|人工智能)|以下是|祝(?:你|您|大家|好运|愉快|一切)|"
    "我(?:可以|来|会|将)|没问题|(?:我?(?:很|非常)(?:高兴|乐意|荣幸)|乐意)(?:为|能|可以|帮|和|与|回答|见到|认识)",
    "de": "ich hoffe|hallo|guten tag|danke|vielen dank|bitte|lass mich wissen|hier (?:ist|sind)|"
    "viel erfolg|ich (?:kann|helfe)",
    "fr": "j['’]espère|bonjour|salut|merci|n['’]hésitez pas|désolé|voici|bonne chance|je peux",
    "es": "espero que|hola|buenos días|gracias(?! a)|por favor|no dudes|lo siento|"
    "aquí (?:está|están|tienes)|buena suerte|puedo",
}
OPINIONS: Mapping[str, str] = {
    "en": "i think|i believe|i feel|i would say|i['’]d say|in my (?:humble )?opinion|personally|"
    "to my mind",
    "zh": "我认为|我觉得|我相信|在我看来|个人认为|依我看",
    "de": "ich (?:denke|glaube|finde|meine)|meiner meinung nach",
    "fr": "je (?:pense|crois|trouve)|à mon avis|selon moi",
    "es": "(?:yo )?(?:creo|pienso|opino) que|en mi opinión",
}
ASKS = "It asks, and states nothing."
NO_FACT = "It greets, offers, wishes or gives an opinion, and states no fact to check."
CODE = "It is code: running it tells whether it works, comparing its words does not."
NOTHING = "It says nothing that could be true or false."


def why_not_checkable(case: Case, statement: Statement) -> str:
    """Why nothing can be checked of it, in a sentence; empty where something can.

    What only leads up to a fact ("Of course, …") leaves it one. An opinion that states a figure or
    names somebody is checked: what it says of them may be a fact that is put carefully.
    """
    text = statement.text.strip()
    if is_code(text):
        return CODE
    if QUESTION.search(text):
        return ASKS
    said = text
    while lead := _pattern("lead", case.language).match(said):
        said = said[lead.end() :]
    if not FIGURE.search(text):
        if not said.strip(" .,!:;…。，！：；") or _pattern("opener", case.language).match(said):
            return NO_FACT
        if _pattern("opinion", case.language).match(said) and not _names(said, case.language):
            return NO_FACT
    return "" if claim_of(case, statement).has_content else NOTHING


def _names(text: str, language: str) -> bool:
    return any(unit.kind == "name" for unit in read(text, language).units)


@lru_cache(maxsize=64)
def _pattern(kind: str, language: str) -> re.Pattern[str]:
    """How a lead, an opener or an opinion begins; in English where the language is unknown."""
    by_language = {"lead": LEADS, "opener": OPENERS, "opinion": OPINIONS}[kind]
    known = language if language in by_language else "en"
    end = "" if known == "zh" else r"(?![\w-])"
    return re.compile(rf"[\W_]*(?:{by_language[known]}){end}", re.IGNORECASE)
