"""Plain text, kept exactly as it is (line ends and all) but for a leading BOM."""

from __future__ import annotations

import codecs

from core.errors import InputError
from core.intake.draft import Draft
from core.intake.request import ReadRequest, shown
from core.records import Source

AS_UTF8 = "save it as UTF-8 (“Encoding: UTF-8” when saving) and add it again"
WIDE = ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))


def read_text(request: ReadRequest) -> Source:
    """Text files.

    Raises:
        InputError: the file is not UTF-8 (or UTF-16 with a BOM), or too long.
    """
    draft = Draft(request)
    text = decoded(request.name, request.data)
    draft.add(text)
    if not text.strip():
        draft.note("There is no text in this file, only blanks.")
    return draft.finish()


def decoded(name: str, data: bytes) -> str:
    """The text of UTF-8 bytes, or of UTF-16 bytes that begin with a BOM; without the BOM.

    Raises:
        InputError: names the offset of the first byte that does not fit.
    """
    if data.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        raise InputError(f"{shown(name)} is UTF-32 text, which is not read; {AS_UTF8}.")
    mark, encoding = next(((m, e) for m, e in WIDE if data.startswith(m)), (b"", "utf-8"))
    if data.startswith(codecs.BOM_UTF8):
        mark = codecs.BOM_UTF8
    words = "UTF-16" if encoding != "utf-8" else "UTF-8"
    try:
        text = data[len(mark) :].decode(encoding)
    except UnicodeDecodeError as error:
        place = error.start + len(mark)
        raise InputError(
            f"{shown(name)} is not {words} text: the byte at offset {place:,} "
            f"(0x{data[place]:02x}) does not fit; {AS_UTF8}."
        ) from error
    if (at := text.find("\x00")) >= 0:
        raise InputError(
            f"{shown(name)} is not plain text: it has a NUL character at offset {at:,}; "
            f"if it is text in another encoding, {AS_UTF8}."
        )
    return text
