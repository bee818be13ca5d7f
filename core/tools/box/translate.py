"""Checks a claimed translation: put back by a model that did not see the text, then compared.

By a language model alone: no built-in reader knows two languages well enough. Source: HaluAgent
2.2 (the toolbox takes more tools than the paper's).
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from core.errors import InputError
from core.tools.toolbox import Answer, Bench, Example, Tool

OFF = (
    "The tool translate needs a language model; the built-in readers do not translate. Choose a "
    "roster with one."
)


class Translate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A claimed translation and the text that it stands for.

    text: the text that was translated.
    claimed: the translation to check, exactly as it stands in the response.
    source_language: the language of the text, by name or tag.
    target_language: the language that the translation should be in.
    """

    text: str
    claimed: str
    source_language: str
    target_language: str


class Back(msgspec.Struct, frozen=True):
    """A translation of the claimed translation into the text's language."""

    translation: str


class Compared(msgspec.Struct, frozen=True):
    """What the model says; `words` are the claimed translation's own that are wrong."""

    reason: str
    same_meaning: bool
    words: str
    instead: str
    p: Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]


def _translate(given: Translate, bench: Bench) -> Answer:
    if bench.ask is None:
        raise InputError(OFF)
    _require_all(given)
    back = bench.ask(
        "back_translation",
        {
            "from_language": given.target_language,
            "into_language": given.source_language,
            "text": given.claimed,
        },
        Back,
    )
    reply = bench.ask(
        "translation",
        {
            "text_language": given.source_language,
            "text": given.text,
            "claimed_language": given.target_language,
            "claimed": given.claimed,
            "back": back.translation,
        },
        Compared,
    )
    return _answer(given, back.translation, reply)


def _answer(given: Translate, back: str, reply: Compared) -> Answer:
    is_wrong = not reply.same_meaning
    start = given.claimed.find(reply.words) if is_wrong and reply.words.strip() else -1
    return Answer(
        "hallucinated" if is_wrong else "supported",
        reply.reason.strip() or "The model gave no reason.",
        {"text": given.text, "claimed": given.claimed, "back": back},
        # A probability on the other side of one half than the finding says nothing.
        reply.p if (reply.p >= 0.5) == is_wrong else None,
        start if start >= 0 else None,
        start + len(reply.words) if start >= 0 else None,
        reply.instead.strip() if is_wrong else "",
        "contradicted" if is_wrong else "",
    )


def _require_all(given: Translate) -> None:
    for name in given.__struct_fields__:
        if not str(getattr(given, name)).strip():
            raise InputError(f"Expected {name} for the tool translate, found nothing; give it.")


def _why_off(bench: Bench) -> str:
    return OFF if bench.ask is None else ""


TOOL = Tool(
    name="translate",
    description=(
        "Checks whether a claimed translation says what the text says: a language model puts it "
        "back without seeing the text, and then compares all three. Use it where a response "
        "translates something, or says what foreign words mean. Comes back with a label and the "
        "words that are wrong. Takes a language model."
    ),
    takes=Translate,
    work=_translate,
    examples=(
        Example(
            question="Translate into German: The ferry leaves before seven.",
            response="Die Fähre fährt nach sieben ab.",
            given=Translate(
                "The ferry leaves before seven.",
                "Die Fähre fährt nach sieben ab.",
                "English",
                "German",
            ),
            label="hallucinated",
            thought="The response is a translation, so I have it put back and compared.",
        ),
        Example(
            question="请把“票已售完”译成英文。",
            response="The tickets are sold out.",
            given=Translate("票已售完", "The tickets are sold out.", "Chinese", "English"),
            label="supported",
            thought="A translation was asked for, so its meaning is what there is to check.",
        ),
    ),
    why_off=_why_off,
    about="claimed",
)
