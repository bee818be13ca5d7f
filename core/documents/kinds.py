"""What kind of file these bytes are: by their content first, then by their name."""

from __future__ import annotations

import io
import re
import zipfile
from typing import get_args

from core.documents.request import shown
from core.documents.text import decoded
from core.errors import InputError
from core.records import SourceKind

READ_HERE = ".txt, .md, .pdf, .docx, .html, .csv, .tsv, .png, .jpg and .webp"
KINDS: dict[str, SourceKind] = {
    "txt": "text",
    "text": "text",
    "md": "markdown",
    "markdown": "markdown",
    "pdf": "pdf",
    "docx": "docx",
    "html": "html",
    "htm": "html",
    "xhtml": "html",
    "csv": "table",
    "tsv": "table",
    "png": "image",
    "jpg": "image",
    "jpeg": "image",
    "webp": "image",
}
WORDS: dict[SourceKind, str] = {
    "text": "plain text",
    "markdown": "Markdown text",
    "pdf": "a PDF",
    "docx": "a Word document",
    "html": "an HTML page",
    "table": "a table of plain text",
    "image": "a PNG, JPEG or WebP image",
}
SIGNATURES: tuple[tuple[bytes, str], ...] = (
    (b"%PDF-", "pdf"),
    (b"\x89PNG\r\n\x1a\n", "image"),
    (b"\xff\xd8\xff", "image"),
    (b"GIF8", "a GIF image (save it as PNG)"),
    (b"BM", "a bitmap image (save it as PNG)"),
    (b"II*\x00", "a TIFF image (save it as PNG or PDF)"),
    (b"MM\x00*", "a TIFF image (save it as PNG or PDF)"),
    (b"{\\rtf", "a rich text (RTF) document (save it as .docx or PDF)"),
    (b"\xd0\xcf\x11\xe0", "an old Office document (save it as .docx or PDF)"),
    (b"%!PS", "a PostScript file (save it as PDF)"),
    (b"MZ", "a Windows program"),
    (b"\x7fELF", "a program"),
    (b"ID3", "an audio file"),
    (b"\xff\xfb", "an audio file"),
    (b"OggS", "an audio file"),
    (b"fLaC", "an audio file"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"7z\xbc\xaf", "a 7-Zip archive"),
    (b"Rar!", "a RAR archive"),
    (b"SQLite format 3\x00", "a database"),
    (b"PAR1", "a Parquet file"),
)
# Words that people do begin plain text with; as a signature they count only with binary content.
AMBIGUOUS = (b"BM", b"MZ", b"ID3", b"PAR1", b"OggS", b"fLaC", b"Rar!")
PREAMBLE = re.compile(rb"\s*(?:<!--.*?-->|<\?.*?>|<!doctype\s(?!\s*html)[^>]*>)", re.S | re.I)
HTML = re.compile(rb"\s*<(?:!doctype\s+html|html|head|body)\b", re.I)
SVG = re.compile(rb"\s*<svg\b", re.I)
SAMPLE = 4096
LARGEST_LIST = 1024 * 1024
WORD_PART = b"wordprocessingml.document.main+xml"
WORD_MACRO_PART = b"ms-word.document.macroEnabled.main+xml"


def kind_of(name: str, data: bytes) -> SourceKind:
    """How to read the file.

    Raises:
        InputError: it is empty, of a type that is not read, or not what its name says.
    """
    if not data:
        raise InputError(f"{shown(name)} is empty (0 bytes); save it again and add it once more.")
    ending = name.rpartition(".")[2].lower() if "." in name else ""
    expected = KINDS.get(ending)
    found = _found(name, data, expected)
    if found is None:
        return _text_kind(name, data, ending, expected)
    if found not in get_args(SourceKind):
        called = f" called .{ending}" if expected else ""
        raise InputError(f"{shown(name)} is {found}{called}; Counterpoint reads {READ_HERE}.")
    kind: SourceKind = found  # type: ignore[assignment]  # narrowed by get_args above
    if expected is None or expected == kind:
        return kind
    raise InputError(
        f"{shown(name)} is called .{ending} but holds {WORDS[kind]}; "
        "give it its right ending, or add the file that was meant."
    )


def _found(name: str, data: bytes, expected: SourceKind | None) -> str | None:
    """A kind, the words for a type that is not read, or None for what may be plain text."""
    if data.startswith(b"PK\x03\x04") or data.startswith(b"PK\x05\x06"):
        return _in_zip(name, data, expected)
    if data.startswith(b"RIFF"):
        return "image" if data[8:12] == b"WEBP" else "an audio or video file"
    if data[4:8] == b"ftyp":
        heic = data[8:12] in (b"heic", b"heix", b"mif1", b"avif")
        return "an image of a type that is not read (save it as JPEG)" if heic else "a video file"
    for signature, what in SIGNATURES:
        if data.startswith(signature):
            return None if signature in AMBIGUOUS and not _is_binary(data) else what
    if expected == "pdf" and b"%PDF-" in data[:1024]:
        return "pdf"  # Some writers put a few bytes before the header, and all readers allow it.
    if expected in ("text", "markdown"):
        return None  # Somebody's .txt may well hold a page's source; elsewhere it is a mistake.
    markup = _markup(data)
    if SVG.match(markup):
        return "an SVG drawing (save it as PNG)"
    return "html" if HTML.match(markup) else None


def _markup(data: bytes) -> bytes:
    """The first characters after a BOM, comments and declarations, if any.

    One at a time: a single pattern for them all would try every way to split a row of comments.
    """
    sample = data.removeprefix(b"\xef\xbb\xbf")[:SAMPLE]
    while preamble := PREAMBLE.match(sample):
        sample = sample[preamble.end() :]
    return sample


def _text_kind(name: str, data: bytes, ending: str, expected: SourceKind | None) -> SourceKind:
    """The kind of a file without any known signature."""
    if expected in ("pdf", "docx", "image"):
        what = "something else" if _is_binary(data) else "plain text"
        raise InputError(
            f"{shown(name)} is called .{ending} but holds {what}, not {WORDS[expected]}; "
            "add the file that was meant."
        )
    if expected == "html" and not _is_binary(data):
        return "html"  # Its reader knows other encodings than UTF-8.
    if expected is None and _is_binary(data):
        raise InputError(
            f"{shown(name)} is of a type that is not read; Counterpoint reads {READ_HERE}."
        )
    decoded(name, data)
    return expected or "text"


def _is_binary(data: bytes) -> bool:
    """True when bytes that no text has are common in the beginning."""
    sample = data[:SAMPLE]
    if sample.startswith((b"\xff\xfe", b"\xfe\xff")):
        return False
    control = sum(byte < 32 and byte not in b"\t\n\r\f\x1b" for byte in sample)
    return b"\x00" in sample or control > len(sample) // 20


def _in_zip(name: str, data: bytes, expected: SourceKind | None) -> str:
    """What a zip file is by the list of its members."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = set(archive.namelist())
            if "[Content_Types].xml" in members:
                with archive.open("[Content_Types].xml") as listing:
                    types = listing.read(LARGEST_LIST)
                if WORD_PART in types or WORD_MACRO_PART in types:
                    return "docx"
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, RuntimeError) as error:
        what = "a whole Word document" if expected == "docx" else "a whole zip archive"
        raise InputError(
            f"{shown(name)} is not {what}: it is cut off or damaged; "
            "save or download it again and add it once more."
        ) from error
    if any(member.startswith("xl/") for member in members):
        return "an Excel workbook (save the sheet as .csv)"
    if any(member.startswith("ppt/") for member in members):
        return "a PowerPoint file (save it as PDF)"
    if "mimetype" in members:
        return "an OpenDocument or EPUB file (save it as .docx or PDF)"
    return "a zip archive (add the files in it one by one)"
