"""Detects what kind of file bytes are (by content, then by name) and reads plain text.

`read` picks the reader of each kind.
"""

from __future__ import annotations

import codecs
import io
import re
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module

import regex

from core.documents.draft import BlockContent, Draft, ReadRequest, content, shown
from core.documents.segmentation import BLANK_LINE, FINAL, ITEM, ROW, joined_lines, text_units
from core.runtime.errors import InputError, ReviewError
from core.schema.records import Block, Source, SourceKind

AS_UTF8 = "save it as UTF-8 (“Encoding: UTF-8” when saving) and add it again"
WIDE = ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))

DECLARED = re.compile(rb"""<meta[^>]+charset\s*=\s*["']?\s*([a-zA-Z0-9_:.\-]+)""", re.I)
DECLARATION_WITHIN = 4096
# The encodings that the HTML standard assigns to these labels.
MEANT = {
    label: encoding
    for encoding, labels in (
        ("cp1252", "iso-8859-1 latin1 latin-1 us-ascii ascii"),
        ("gb18030", "gb2312 gbk"),
        ("cp932", "shift_jis x-sjis"),
        ("cp949", "euc-kr ks_c_5601-1987"),
        ("cp1254", "iso-8859-9"),
        ("big5hkscs", "big5"),
        ("utf-8", "utf-16 utf-16le utf-16be"),
    )
    for label in labels.split()
}
HASHES = regex.compile(r"(#{1,6})\s+\S")
UNDERLINE = regex.compile(r"(?:={3,}|-{3,})")
DIGIT = regex.compile(r"\d")
LONGEST_TITLE = 120
MOST_WORDS = 6
# Signatures of files that are not read.
SIGNATURES: tuple[tuple[bytes, str], ...] = (
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
# Plain text may begin with these words, so they count as signatures only with binary content.
AMBIGUOUS = (b"BM", b"MZ", b"ID3", b"PAR1", b"OggS", b"fLaC", b"Rar!")
PREAMBLE = re.compile(rb"\s*(?:<!--.*?-->|<\?.*?>|<!doctype\s(?!\s*html)[^>]*>)", re.S | re.I)
HTML = re.compile(rb"\s*<(?:!doctype\s+html|html|head|body)\b", re.I)
SVG = re.compile(rb"\s*<svg\b", re.I)
SAMPLE = 4096
LARGEST_LIST = 1024 * 1024
WORD_PART = b"wordprocessingml.document.main+xml"
WORD_MACRO_PART = b"ms-word.document.macroEnabled.main+xml"
# Raise this when a reader's text or offsets change; stored readings are then made anew.
READER_VERSION = "3"


def read_text(request: ReadRequest) -> Source:
    """Read a text file.

    Raises InputError: the file is not UTF-8 (or UTF-16 with a BOM), or too long.
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
    """Yield the headings, list items and paragraphs of a plain text, with their offsets in it.

    A heading is marked with #, underlined, or a few words alone on a line above a sentence: at the
    start of the text, or between blank lines.
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


def plain_blocks(text: str, known: frozenset[str]) -> Iterator[BlockContent]:
    """Yield the blocks of a text with its line breaks undone, each block on one line."""
    for block in text_blocks(text):
        whole = ""
        for line in text[block.start : block.end].splitlines():
            before, by = joined_lines(whole, line.strip(), known)
            whole = before + by + line.strip() if whole else line.strip()
        yield content(block.kind, whole, block.level)


def decoded(name: str, data: bytes) -> str:
    """Decode UTF-8 bytes, or UTF-16 bytes that begin with a BOM; the BOM is dropped.

    Raises InputError: names the offset of the first byte that does not fit.
    """
    if data.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        raise InputError(f"{shown(name)} is UTF-32 text, which is not read; {AS_UTF8}.")
    bom, encoding = next(((m, e) for m, e in WIDE if data.startswith(m)), (b"", "utf-8"))
    if data.startswith(codecs.BOM_UTF8):
        bom = codecs.BOM_UTF8
    encoding_name = "UTF-16" if encoding != "utf-8" else "UTF-8"
    try:
        text = data[len(bom) :].decode(encoding)
    except UnicodeDecodeError as error:
        place = error.start + len(bom)
        raise InputError(
            f"{shown(name)} is not {encoding_name} text: the byte at offset {place:,} "
            f"(0x{data[place]:02x}) does not fit; {AS_UTF8}."
        ) from error
    if (nul := text.find("\x00")) >= 0:
        raise InputError(
            f"{shown(name)} is not plain text: it has a NUL character at offset {nul:,}; "
            f"if it is text in another encoding, {AS_UTF8}."
        )
    return text


def decoded_page(data: bytes) -> tuple[str, str]:
    """Return the page's text, and a remark if some bytes had to be replaced.

    A BOM takes precedence, then the declared charset, then UTF-8, then Windows-1252.
    """
    for bom, encoding in ((codecs.BOM_UTF8, "utf-8"), *WIDE):
        if data.startswith(bom):
            return _decode_leniently(data[len(bom) :], encoding)
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
    return _decode_leniently(data, fallback)


def _decode_leniently(data: bytes, encoding: str) -> tuple[str, str]:
    """Return the decoded text; bytes that do not fit become U+FFFD and are remarked on."""
    try:
        return data.decode(encoding), ""
    except UnicodeDecodeError:
        remark = f"Some bytes do not fit the page's encoding ({encoding}) and show as \ufffd."
        return data.decode(encoding, "replace"), remark


@dataclass(frozen=True)
class FileType:
    """A type of file that is read: its name, endings, signatures and reader.

    `reader` names the module beside this one and its function, which turns a `ReadRequest` into a
    `Source`. `is_text`: it may be plain text in UTF-8; all others must begin with a signature.
    `is_light`: the reader is plain Python and linear, so small files need no child process.
    """

    kind: SourceKind
    words: str
    endings: tuple[str, ...]
    reader: tuple[str, str]
    signatures: tuple[bytes, ...] = ()
    is_text: bool = True
    is_light: bool = False


FILE_TYPES = (
    FileType("text", "plain text", ("txt", "text"), ("readers", "read_text"), is_light=True),
    FileType("markdown", "Markdown text", ("md", "markdown"), ("html", "read_markdown")),
    FileType("pdf", "a PDF", ("pdf",), ("pdf", "read_pdf"), (b"%PDF-",), is_text=False),
    FileType("docx", "a Word document", ("docx",), ("docx", "read_docx"), is_text=False),
    FileType("html", "an HTML page", ("html", "htm", "xhtml"), ("html", "read_html")),
    FileType(
        "table", "a table of plain text", ("csv", "tsv"), ("tables", "read_table"), is_light=True
    ),
    FileType(
        "image", "a PNG, JPEG or WebP image", ("png", "jpg", "jpeg", "webp"),
        ("images", "read_image"), (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff"), is_text=False,
    ),
)  # fmt: skip


def file_type(kind: SourceKind) -> FileType:
    """Return the file type of that kind."""
    return {one.kind: one for one in FILE_TYPES}[kind]


def type_of_name(name: str) -> FileType | None:
    """Return the file type with this name's ending, or None."""
    _, dot, ending = name.rpartition(".")
    return next((one for one in FILE_TYPES if dot and ending.lower() in one.endings), None)


def endings() -> list[str]:
    """Return the endings of all files that are read."""
    return [ending for one in FILE_TYPES for ending in one.endings]


def _describe_endings() -> str:
    return f"Counterpoint reads .{', .'.join(endings())}"


def kind_of(name: str, data: bytes) -> SourceKind:
    """Detect how to read the file.

    Raises InputError: it is empty, of an unsupported type, or not what its name says.
    """
    if not data:
        raise InputError(f"{shown(name)} is empty (0 bytes); save it again and add it once more.")
    named_type, ending = type_of_name(name), name.rpartition(".")[2].lower()
    expected = named_type.kind if named_type else None
    detected = _detect_content(name, data, expected)
    if detected is None:
        return _detect_text_kind(name, data, ending, named_type)
    if detected not in (one.kind for one in FILE_TYPES):
        as_named = f" called .{ending}" if expected else ""
        raise InputError(f"{shown(name)} is {detected}{as_named}; {_describe_endings()}.")
    if expected in (None, detected):
        return detected
    raise InputError(
        f"{shown(name)} is called .{ending} but holds {file_type(detected).words}; "
        "give it its right ending, or add the file that was meant."
    )


def _detect_content(name: str, data: bytes, expected: SourceKind | None) -> str | None:
    """Return a kind, words for an unsupported type, or None if it may be plain text."""
    if data.startswith(b"PK\x03\x04") or data.startswith(b"PK\x05\x06"):
        return _detect_in_zip(name, data, expected)
    if data.startswith(b"RIFF"):
        return "image" if data[8:12] == b"WEBP" else "an audio or video file"
    if data[4:8] == b"ftyp":
        heic = data[8:12] in (b"heic", b"heix", b"mif1", b"avif")
        return "an image of a type that is not read (save it as JPEG)" if heic else "a video file"
    read_here = ((signature, one.kind) for one in FILE_TYPES for signature in one.signatures)
    for signature, outcome in (*read_here, *SIGNATURES):
        if data.startswith(signature):
            return None if signature in AMBIGUOUS and not _is_binary(data) else outcome
    if expected == "pdf" and b"%PDF-" in data[:1024]:
        return "pdf"  # some writers put a few bytes before the header, and all readers allow it
    if expected in ("text", "markdown"):
        return None  # a .txt may hold a page's source; under other names that is a mistake
    markup = _skip_preamble(data)
    if SVG.match(markup):
        return "an SVG drawing (save it as PNG)"
    return "html" if HTML.match(markup) else None


def _skip_preamble(data: bytes) -> bytes:
    """Return the first bytes after any BOM, comments and declarations.

    They are skipped one at a time: a single pattern would backtrack over every split of them.
    """
    sample = data.removeprefix(b"\xef\xbb\xbf")[:SAMPLE]
    while preamble := PREAMBLE.match(sample):
        sample = sample[preamble.end() :]
    return sample


def _detect_text_kind(
    name: str, data: bytes, ending: str, named_type: FileType | None
) -> SourceKind:
    """Return the kind of a file without a known signature; `named_type` is its name's type."""
    if named_type and not named_type.is_text:
        actual = "something else" if _is_binary(data) else "plain text"
        raise InputError(
            f"{shown(name)} is called .{ending} but holds {actual}, not {named_type.words}; "
            "add the file that was meant."
        )
    if named_type and named_type.kind == "html" and not _is_binary(data):
        return "html"  # its reader handles encodings other than UTF-8
    if named_type is None and _is_binary(data):
        raise InputError(f"{shown(name)} is of a type that is not read; {_describe_endings()}.")
    decoded(name, data)
    return named_type.kind if named_type else "text"


def _is_binary(data: bytes) -> bool:
    sample = data[:SAMPLE]
    if sample.startswith((b"\xff\xfe", b"\xfe\xff")):
        return False
    control = sum(byte < 32 and byte not in b"\t\n\r\f\x1b" for byte in sample)
    return b"\x00" in sample or control > len(sample) // 20


def _detect_in_zip(name: str, data: bytes, expected: SourceKind | None) -> str:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = set(archive.namelist())
            if "[Content_Types].xml" in members:
                with archive.open("[Content_Types].xml") as listing:
                    types = listing.read(LARGEST_LIST)
                if WORD_PART in types or WORD_MACRO_PART in types:
                    return "docx"
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, RuntimeError) as error:
        expectation = "a whole Word document" if expected == "docx" else "a whole zip archive"
        raise InputError(
            f"{shown(name)} is not {expectation}: it is cut off or damaged; "
            "save or download it again and add it once more."
        ) from error
    if any(member.startswith("xl/") for member in members):
        return "an Excel workbook (save the sheet as .csv)"
    if any(member.startswith("ppt/") for member in members):
        return "a PowerPoint file (save it as PDF)"
    if "mimetype" in members:
        return "an OpenDocument or EPUB file (save it as .docx or PDF)"
    return "a zip archive (add the files in it one by one)"


def read(request: ReadRequest) -> Source:
    """Return the source in these bytes; its language is still "und".

    Raises InputError: the file cannot be read, for whatever reason; one sentence says why.
    """
    source_type = file_type(request.kind)
    module, function = source_type.reader
    reader: Callable[[ReadRequest], Source] = getattr(
        import_module(f"core.documents.{module}"), function
    )
    try:
        return reader(request)
    except ReviewError:
        raise
    except MemoryError as error:
        raise InputError(
            f"{request.file} needs more memory to be read than is allowed; split it and add "
            "its parts."
        ) from error
    except Exception as error:
        raise InputError(
            f"{request.file} could not be read as {source_type.words}; "
            "open it in the program it comes from, save it again and add it once more."
        ) from error
