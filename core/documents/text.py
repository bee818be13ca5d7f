"""Plain text, kept exactly as it is but for a leading BOM; and how the bytes of pages are read."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator

import regex

from core.documents.draft import Content, Draft, content
from core.documents.request import ReadRequest, shown
from core.documents.segmentation import BLANK_LINE, FINAL, ITEM, ROW, joined_lines, text_units
from core.errors import InputError
from core.records import Block, Source

AS_UTF8 = "save it as UTF-8 (“Encoding: UTF-8” when saving) and add it again"
WIDE = ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))

DECLARED = re.compile(rb"""<meta[^>]+charset\s*=\s*["']?\s*([a-zA-Z0-9_:.\-]+)""", re.I)
DECLARATION_WITHIN = 4096
# What the HTML standard says these labels mean.
MEANT = {
    "iso-8859-1": "cp1252",
    "latin1": "cp1252",
    "latin-1": "cp1252",
    "us-ascii": "cp1252",
    "ascii": "cp1252",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "x-sjis": "cp932",
    "euc-kr": "cp949",
    "ks_c_5601-1987": "cp949",
    "iso-8859-9": "cp1254",
    "big5": "big5hkscs",
    "utf-16": "utf-8",
    "utf-16le": "utf-8",
    "utf-16be": "utf-8",
}
HASHES = regex.compile(r"(#{1,6})\s+\S")
UNDERLINE = regex.compile(r"(?:={3,}|-{3,})")
DIGIT = regex.compile(r"\d")
LONGEST_TITLE = 120
MOST_WORDS = 6


def read_text(request: ReadRequest) -> Source:
    """Text files.

    Raises:
        InputError: the file is not UTF-8 (or UTF-16 with a BOM), or too long.
    """
    draft = Draft(request)
    text = decoded(request.name, request.data)
    draft.add(text)
    for block in text_blocks(text):
        draft.mark(block)
    if not text.strip():
        draft.note("There is no text in this file, only blanks.")
    return draft.finish()


def text_blocks(text: str) -> Iterator[Block]:
    """Headings, list items and paragraphs of a plain text, as they stand in it.

    A heading is marked with #, underlined, or a few words alone on a line above a sentence: as the
    title of the whole, or between blank lines.
    """
    units = [place for place in text_units(text, 0, len(text)) if text[slice(*place)].strip()]
    for number, (start, end) in enumerate(units):
        line = text[start:end]
        following = text[slice(*units[number + 1])].strip() if number + 1 < len(units) else ""
        start, end = start + len(line) - len(line.lstrip()), end - len(line) + len(line.rstrip())
        line = line.strip()
        hashes = HASHES.match(line)
        if UNDERLINE.fullmatch(line):
            continue
        if hashes and following:
            yield Block("heading", start, end, len(hashes[1]))
        elif UNDERLINE.fullmatch(following):
            yield Block("heading", start, end, 1 if following[0] == "=" else 2)
        elif _is_heading(text, start, end, following):
            yield Block("heading", start, end, 2 if start else 0)
        else:
            yield Block("list item" if ITEM.match(line) else "paragraph", start, end)


def _is_heading(text: str, start: int, end: int, following: str) -> bool:
    """True for the first line of a text where it may be a title, and for few words set apart."""
    line = text[start:end]
    if not following or "\n" in line or FINAL.search(line) or ROW.match(line) or ITEM.match(line):
        return False
    is_first = not text[:start].strip()
    if is_first and len(line) <= LONGEST_TITLE:
        return len(following) > len(line) or ROW.match(following) is not None
    is_apart = BLANK_LINE.match(text, end) and BLANK_LINE.search(text, max(0, start - 4), start)
    words = line.split()
    is_short = len(words) <= MOST_WORDS and len(line) <= LONGEST_TITLE and not DIGIT.search(line)
    return bool(is_apart and is_short and line[0].isupper() and FINAL.search(following))


def plain_blocks(text: str, known: frozenset[str]) -> Iterator[Content]:
    """The blocks of a text whose lines were broken for lack of room, each on one line."""
    for block in text_blocks(text):
        whole = ""
        for line in text[block.start : block.end].splitlines():
            before, by = joined_lines(whole, line.strip(), known)
            whole = before + by + line.strip() if whole else line.strip()
        yield content(block.kind, whole, block.level)


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


def decoded_page(data: bytes) -> tuple[str, str]:
    """The page's characters, and a remark when some bytes had to be replaced.

    A BOM counts first, then the declared charset, then UTF-8, then Windows-1252.
    """
    for mark, encoding in (
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
    ):
        if data.startswith(mark):
            return _replaced(data[len(mark) :], encoding)
    declared = DECLARED.search(data[:DECLARATION_WITHIN])
    label = declared[1].decode("ascii").lower() if declared else "utf-8"
    fallback = "cp1252"
    for encoding in (MEANT.get(label, label), "utf-8"):
        try:
            return data.decode(encoding), ""
        except UnicodeDecodeError:
            fallback = encoding if declared else fallback
        except LookupError:
            continue
    return _replaced(data, fallback)


def _replaced(data: bytes, encoding: str) -> tuple[str, str]:
    """The text, with U+FFFD and a remark where bytes do not fit."""
    try:
        return data.decode(encoding), ""
    except UnicodeDecodeError:
        remark = f"Some bytes do not fit the page's encoding ({encoding}) and show as \ufffd."
        return data.decode(encoding, "replace"), remark
