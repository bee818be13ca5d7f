"""Undoes the disguises of characters: what is invisible, and what looks like something else.

Both functions are for text that goes to a model or is searched for tricks; offsets never refer to
what they return.
"""

from __future__ import annotations

import re
import unicodedata

# Zero-width and filler characters, direction marks and overrides, which carry no words; the tags
# at U+E0000 spell invisible ASCII.
_UNSEEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b\u200e\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e007f]"
)
# Joiners shape Indic and Persian words and emoji; next to ASCII they only hide something.
_JOINER = re.compile(
    "(?<![^\x00-\x7f\u200c\u200d])[\u200c\u200d]+|[\u200c\u200d]+(?=[\x00-\x7f]|$)"
    "|(?<=[\u200c\u200d])[\u200c\u200d]+"
)
# One selector after a character picks its form; after a letter or in a row they spell bytes.
_SELECTOR = re.compile(
    "(?<=[\ufe00-\ufe0f\U000e0100-\U000e01ef])[\ufe00-\ufe0f\U000e0100-\U000e01ef]+"
    "|(?<![^A-Za-z\\s])[\ufe00-\ufe0f\U000e0100-\U000e01ef]+"
)
_LINE_END = re.compile("\r\n|[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_CONTROL = {code: 0x2400 + code for code in range(0x20) if code not in (9, 10)} | {0x7F: 0x2421}
_SURROGATE = re.compile("[\ud800-\udfff]")
_TAG_LETTERS = {0xE0000 + code: code for code in range(0x20, 0x7F)}
# The letters of other scripts that pass for Latin ones.
_LOOKALIKES = dict(
    zip(
        "аеорсухіјѕԁһԛԝвнкмтгпзαορνικτυχеɑɡıʟᴀᴇɪᴏʀѵո",
        "aeopcyxijsdhqwbhkmtrn3aopviktuxeagilaeiorvn",
        strict=True,
    )
)


def visible(text: str) -> str:
    """The text without characters that nobody sees; control characters become their pictures."""
    text = _SURROGATE.sub("\ufffd", text)
    text = _LINE_END.sub("\n", text).translate(_CONTROL)
    while (seen := _SELECTOR.sub("", _JOINER.sub("", _UNSEEN.sub("", text)))) != text:
        text = seen
    return text


def spelled_out(text: str) -> str:
    """The text with what is written in invisible tag letters made readable."""
    return text.translate(_TAG_LETTERS)


def skeleton(text: str) -> str:
    """What the text looks like, in small Latin letters where it can; of the same length.

    A character stays what it is where its plain form has another length than one.
    """
    return text.translate(_SKELETON)


class _Skeleton(dict[int, str]):
    """Works a character out when it is first met."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        plain = unicodedata.normalize("NFKC", character).casefold()
        # Accented letters lose their accent; the mark itself is a character that stays.
        base = unicodedata.normalize("NFD", plain)[:1] if len(plain) == 1 else character
        found = base if len(plain) == 1 and base.isascii() else plain
        found = _LOOKALIKES.get(found, found)
        self[code] = found if len(found) == 1 else character
        return self[code]


_SKELETON = _Skeleton()
