"""Cuts a text into its sentences, so that an agent can check them one by one.

A sentence that opens with a pronoun says so, with the sentence before it: whoever checks it
completes it. Source: HaluAgent 2.2, A.2 (system tool `split_text`).
"""

from __future__ import annotations

import msgspec

from core.errors import InputError
from core.evidence.segment import sentences
from core.evidence.terms import fold
from core.tools.toolbox import Answer, Bench, Example, Tool

MOST_CHARACTERS = 60_000
PRONOUNS = frozenset(
    "it he she they this these that those his her its their him them er sie es ihr ihre sein seine"
    " diese dieser dieses il elle ils elles ce cela cette ces ella ellos ellas esto eso".split()
)
CHINESE_PRONOUNS = ("它", "他", "她", "这", "這", "那", "该", "該", "其", "此")


class SplitText(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A text to cut, and its language as a tag such as en or zh where it is known."""

    text: str
    language: str = "und"


def _split(given: SplitText, bench: Bench) -> Answer:
    if len(given.text) > MOST_CHARACTERS:
        raise InputError(
            f"Expected a text of at most {MOST_CHARACTERS:,} characters, found "
            f"{len(given.text):,}; cut it in parts."
        )
    bench.stop.check()
    found = sentences(given.text, given.language)
    if not found:
        return Answer("unclear", "The text holds no sentence.", has_something=False)
    texts = [given.text[item.start : item.end] for item in found]
    rows = [
        {
            "start": item.start,
            "end": item.end,
            "text": text,
            "refers_to": texts[number - 1] if number and _points_back(text) else "",
        }
        for number, (item, text) in enumerate(zip(found, texts, strict=True))
    ]
    count = "1 sentence" if len(rows) == 1 else f"{len(rows)} sentences"
    return Answer("unclear", f"The text has {count}.", {"sentences": rows})


def _points_back(text: str) -> bool:
    """True for a sentence that opens with a pronoun, whose meaning stands before it."""
    stripped = text.lstrip("\"'“‘«「（([*_ ")
    if stripped.startswith(CHINESE_PRONOUNS):
        return True
    first = next(iter(stripped.split()), "")
    return fold(first).split("'")[0].strip(",.:;") in PRONOUNS


TOOL = Tool(
    name="split_text",
    description=(
        "Cuts a text into its sentences and says where each stands. Use it once, at the "
        "beginning, for a response of more than one sentence; then check them one by one. "
        "A sentence that opens with a pronoun comes with the sentence that it refers to."
    ),
    takes=SplitText,
    work=_split,
    examples=(
        Example(
            question="Tell me about the Orrin bridge.",
            response="The Orrin bridge was opened in 1931. It is 412 m long.",
            given=SplitText("The Orrin bridge was opened in 1931. It is 412 m long.", "en"),
            label="unclear",
            thought="There are two sentences that can be wrong by themselves, so I cut the text.",
        ),
        Example(
            question="介绍一下云溪桥。",
            response="云溪桥建于1931年。它长412米。",
            given=SplitText("云溪桥建于1931年。它长412米。", "zh"),
            label="unclear",
            thought="这段回答有两句话，先拆开再逐句核查。",
        ),
    ),
    is_system=True,
)
