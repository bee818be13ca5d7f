"""The characters of an HTML page's bytes, as browsers find them out."""

from __future__ import annotations

import codecs
import re

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
