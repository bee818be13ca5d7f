"""Tells statements that could be true or false from greetings, questions, opinions and offers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from core.builtin.claims import claim_of
from core.records import Case, Statement

QUESTION = re.compile(r"[?？؟][\s\"'”’)）】」]*$")
FIGURE = re.compile(r"\d|[零一二两三四五六七八九十百千万亿]{2,}")
# How an opinion, a greeting, an offer or a wish begins; folded by case.
OPENERS: Mapping[str, str] = {
    "en": "i think|i believe|i feel|i hope|i would say|i['’]d say|in my (?:humble )?opinion|"
    "personally|to my mind|hello|hi|hey|dear|sure|of course|certainly|great question|"
    "good question|thank you|thanks|you['’]re welcome|let me know|feel free|please|"
    "hope (?:this|that)|i['’]m sorry|i am sorry|sorry|as an ai|here is|here are|here['’]s|"
    "let['’]s|best regards|good luck",
    "zh": "我认为|我觉得|我相信|我希望|在我看来|个人认为|依我看|你好|您好|大家好|亲爱的|当然|好的|"
    "谢谢|感谢|不客气|希望(?:这|以上|对)|如果(?:你|您)(?:还)?有|请|抱歉|对不起|作为(?:一个)?(?:ai|人工智能)|"
    "以下是|祝",
    "de": "ich (?:denke|glaube|finde|meine|hoffe)|meiner meinung nach|hallo|guten tag|danke|"
    "vielen dank|gerne|natürlich|bitte|lass mich wissen|hier (?:ist|sind)|viel erfolg",
    "fr": "je (?:pense|crois|trouve)|j['’]espère|à mon avis|selon moi|bonjour|salut|merci|"
    "bien sûr|n['’]hésitez pas|désolé|voici|bonne chance",
    "es": "(?:yo )?(?:creo|pienso|opino) que|en mi opinión|espero que|hola|buenos días|gracias|"
    "por supuesto|claro|por favor|no dudes|lo siento|aquí (?:está|están|tienes)|buena suerte",
}


def why_not_checkable(case: Case, statement: Statement) -> str:
    """Why nothing can be checked of it, in a sentence; empty where something can.

    An opinion that states a figure is checked: the figure is no opinion.
    """
    text = statement.text.strip()
    if QUESTION.search(text):
        return "It asks, and states nothing."
    if _openers(case.language).match(text) and not FIGURE.search(text):
        return "It greets, offers, wishes or gives an opinion, and states no fact to check."
    if not claim_of(case, statement).has_content:
        return "It says nothing that could be true or false."
    return ""


@lru_cache(maxsize=16)
def _openers(language: str) -> re.Pattern[str]:
    known = language if language in OPENERS else "en"
    end = "" if known == "zh" else r"(?!\w)"
    return re.compile(rf"[\W_]*(?:{OPENERS[known]}){end}", re.IGNORECASE)
