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

from core.documents.segmentation import (
    BLANK_LINE,
    FINAL_PUNCTUATION,
    LABELLED_ROW,
    LIST_ITEM_START,
    join_lines,
    split_text_units,
)
from core.documents.source_builder import (
    BlockContent,
    ReadRequest,
    SourceBuilder,
    format_file_name,
    text_block,
)
from core.runtime.errors import InputError, ReviewError
from core.schema.records import Source, SourceKind, TextBlock

SAVE_AS_UTF8_ADVICE = "save it as UTF-8 (“Encoding: UTF-8” when saving) and add it again"
UTF16_MARKS = ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))

DECLARED_CHARSET = re.compile(rb"""<meta[^>]+charset\s*=\s*["']?\s*([a-zA-Z0-9_:.\-]+)""", re.I)
DECLARATION_BYTES = 4096
# The encodings that the HTML standard assigns to these labels.
ENCODING_OF_LABEL = {
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
MARKDOWN_HEADING = regex.compile(r"(#{1,6})\s+\S")
HEADING_UNDERLINE = regex.compile(r"(?:={3,}|-{3,})")
ANY_DIGIT = regex.compile(r"\d")
MAX_TITLE_LENGTH = 120
MAX_HEADING_WORDS = 6
# Signatures of files that are not read.
UNREADABLE_SIGNATURES: tuple[tuple[bytes, str], ...] = (
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
AMBIGUOUS_SIGNATURES = (b"BM", b"MZ", b"ID3", b"PAR1", b"OggS", b"fLaC", b"Rar!")
MARKUP_PREAMBLE = re.compile(
    rb"\s*(?:<!--.*?-->|<\?.*?>|<!doctype\s(?!\s*html)[^>]*>)", re.S | re.I
)
HTML_START = re.compile(rb"\s*<(?:!doctype\s+html|html|head|body)\b", re.I)
SVG_START = re.compile(rb"\s*<svg\b", re.I)
KINDS_THAT_DECODE = ("html", "mail", "web archive")  # from encodings other than UTF-8
SAMPLE_BYTES = 4096
MAX_CONTENT_TYPES_BYTES = 1024 * 1024
WORD_PART = b"wordprocessingml.document.main+xml"
WORD_MACRO_PART = b"ms-word.document.macroEnabled.main+xml"
# Raise this when a reader's text or offsets change; stored readings are then made anew.
READER_VERSION = "8"


def read_text(request: ReadRequest) -> Source:
    """Read a text file.

    Raises InputError: the file is not UTF-8 (or UTF-16 with a BOM), or too long.
    """
    draft = SourceBuilder(request)
    text = decode_text(request.name, request.data)
    draft.add(text)
    for block in split_text_blocks(text):
        draft.mark(block)
    if not text.strip():
        draft.note("There is no text in this file, only blanks.")
    return draft.finish()


def split_text_blocks(text: str) -> Iterator[TextBlock]:
    """Yield the headings, list items and paragraphs of a plain text, with their offsets in it.

    A heading is marked with #, underlined, or a few words alone on a line above a sentence: at the
    start of the text, or between blank lines.
    """
    units = [place for place in split_text_units(text, 0, len(text)) if text[slice(*place)].strip()]
    for number, (start, end) in enumerate(units):
        line = text[start:end]
        following = text[slice(*units[number + 1])].strip() if number + 1 < len(units) else ""
        start, end = start + len(line) - len(line.lstrip()), end - len(line) + len(line.rstrip())
        line = line.strip()
        hashes = MARKDOWN_HEADING.match(line)
        if HEADING_UNDERLINE.fullmatch(line):
            continue
        if hashes and following:
            yield TextBlock("heading", start, end, len(hashes[1]))
        elif HEADING_UNDERLINE.fullmatch(following):
            yield TextBlock("heading", start, end, 1 if following[0] == "=" else 2)
        elif _is_heading(text, start, end, following):
            yield TextBlock("heading", start, end, 2 if start else 0)
        else:
            yield TextBlock("list item" if LIST_ITEM_START.match(line) else "paragraph", start, end)


def _is_heading(text: str, start: int, end: int, following: str) -> bool:
    line = text[start:end]
    if (
        not following
        or "\n" in line
        or FINAL_PUNCTUATION.search(line)
        or LABELLED_ROW.match(line)
        or LIST_ITEM_START.match(line)
    ):
        return False
    is_first = not text[:start].strip()
    if is_first and len(line) <= MAX_TITLE_LENGTH:
        return len(following) > len(line) or LABELLED_ROW.match(following) is not None
    is_apart = BLANK_LINE.match(text, end) and BLANK_LINE.search(text, max(0, start - 4), start)
    words = line.split()
    is_short = (
        len(words) <= MAX_HEADING_WORDS
        and len(line) <= MAX_TITLE_LENGTH
        and not ANY_DIGIT.search(line)
    )
    return bool(is_apart and is_short and line[0].isupper() and FINAL_PUNCTUATION.search(following))


def build_plain_blocks(text: str, known: frozenset[str]) -> Iterator[BlockContent]:
    """Yield the blocks of a text with its line breaks undone, each block on one line."""
    for block in split_text_blocks(text):
        whole = ""
        for line in text[block.start : block.end].splitlines():
            before, by = join_lines(whole, line.strip(), known)
            whole = before + by + line.strip() if whole else line.strip()
        yield text_block(block.kind, whole, block.level)


def decode_text(name: str, data: bytes) -> str:
    """Decode UTF-8 bytes, or UTF-16 bytes that begin with a BOM; the BOM is dropped.

    Raises InputError: names the offset of the first byte that does not fit.
    """
    if data.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        raise InputError(
            f"{format_file_name(name)} is UTF-32 text, which is not read; {SAVE_AS_UTF8_ADVICE}."
        )
    bom, encoding = next(((m, e) for m, e in UTF16_MARKS if data.startswith(m)), (b"", "utf-8"))
    if data.startswith(codecs.BOM_UTF8):
        bom = codecs.BOM_UTF8
    encoding_name = "UTF-16" if encoding != "utf-8" else "UTF-8"
    try:
        text = data[len(bom) :].decode(encoding)
    except UnicodeDecodeError as error:
        place = error.start + len(bom)
        raise InputError(
            f"{format_file_name(name)} is not {encoding_name} text: the byte at offset {place:,} "
            f"(0x{data[place]:02x}) does not fit; {SAVE_AS_UTF8_ADVICE}."
        ) from error
    if (nul := text.find("\x00")) >= 0:
        raise InputError(
            f"{format_file_name(name)} is not plain text: it has a NUL character at offset "
            f"{nul:,}; "
            f"if it is text in another encoding, {SAVE_AS_UTF8_ADVICE}."
        )
    return text


def decode_page(data: bytes) -> tuple[str, str]:
    """Return the page's text, and a remark if some bytes had to be replaced.

    A BOM takes precedence, then the declared charset, then UTF-8, then Windows-1252.
    """
    for bom, encoding in ((codecs.BOM_UTF8, "utf-8"), *UTF16_MARKS):
        if data.startswith(bom):
            return _decode_leniently(data[len(bom) :], encoding)
    declared = DECLARED_CHARSET.search(data[:DECLARATION_BYTES])
    label = declared[1].decode("ascii").lower() if declared else "utf-8"
    fallback = "cp1252"
    for encoding in (ENCODING_OF_LABEL.get(label, label), "utf-8"):
        try:
            return data.decode(encoding), ""
        except UnicodeDecodeError:
            fallback = encoding if declared else fallback
        except (LookupError, ValueError):  # no encoding of text
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
    FileType("mail", "an e-mail", ("eml",), ("mail", "read_mail")),
    FileType("web archive", "a saved web page", ("mhtml", "mht"), ("mail", "read_web_archive")),
    FileType(
        "table", "a table of plain text", ("csv", "tsv"), ("tables", "read_table"), is_light=True
    ),
    FileType(
        "image", "a PNG, JPEG or WebP image", ("png", "jpg", "jpeg", "webp"),
        ("images", "read_image"), (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff"), is_text=False,
    ),
)  # fmt: skip


def find_file_type(kind: SourceKind) -> FileType:
    """Return the file type of that kind."""
    return {one.kind: one for one in FILE_TYPES}[kind]


def guess_file_type(name: str) -> FileType | None:
    """Return the file type with this name's ending, or None."""
    _, dot, ending = name.rpartition(".")
    return next((one for one in FILE_TYPES if dot and ending.lower() in one.endings), None)


def list_endings() -> list[str]:
    """Return the endings of all files that are read."""
    return [ending for one in FILE_TYPES for ending in one.endings]


def _describe_endings() -> str:
    return f"Counterpoint reads .{', .'.join(list_endings())}"


def detect_kind(name: str, data: bytes) -> SourceKind:
    """Detect how to read the file.

    Raises InputError: it is empty, of an unsupported type, or not what its name says.
    """
    if not data:
        raise InputError(
            f"{format_file_name(name)} is empty (0 bytes); save it again and add it once more."
        )
    named_type, ending = guess_file_type(name), name.rpartition(".")[2].lower()
    expected = named_type.kind if named_type else None
    detected = _detect_content(name, data, expected)
    if detected is None:
        return _detect_text_kind(name, data, ending, named_type)
    if detected not in (one.kind for one in FILE_TYPES):
        as_named = f" called .{ending}" if expected else ""
        raise InputError(
            f"{format_file_name(name)} is {detected}{as_named}; {_describe_endings()}."
        )
    if expected in (None, detected):
        return detected
    raise InputError(
        f"{format_file_name(name)} is called .{ending} but holds {find_file_type(detected).words}; "
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
    for signature, outcome in (*read_here, *UNREADABLE_SIGNATURES):
        if data.startswith(signature):
            return None if signature in AMBIGUOUS_SIGNATURES and not _is_binary(data) else outcome
    if expected == "pdf" and b"%PDF-" in data[:1024]:
        return "pdf"  # some writers put a few bytes before the header, and all readers allow it
    if expected in ("text", "markdown"):
        return None  # a .txt may hold a page's source; under other names that is a mistake
    markup = _skip_preamble(data)
    if SVG_START.match(markup):
        return "an SVG drawing (save it as PNG)"
    return "html" if HTML_START.match(markup) else None


def _skip_preamble(data: bytes) -> bytes:
    """Return the first bytes after any BOM, comments and declarations.

    They are skipped one at a time: a single pattern would backtrack over every split of them.
    """
    sample = data.removeprefix(b"\xef\xbb\xbf")[:SAMPLE_BYTES]
    while preamble := MARKUP_PREAMBLE.match(sample):
        sample = sample[preamble.end() :]
    return sample


def _detect_text_kind(
    name: str, data: bytes, ending: str, named_type: FileType | None
) -> SourceKind:
    """Return the kind of a file without a known signature; `named_type` is its name's type."""
    if named_type and not named_type.is_text:
        actual = "something else" if _is_binary(data) else "plain text"
        raise InputError(
            f"{format_file_name(name)} is called .{ending} but holds {actual}, not "
            f"{named_type.words}; "
            "add the file that was meant."
        )
    if named_type and named_type.kind in KINDS_THAT_DECODE and not _is_binary(data):
        return named_type.kind
    if named_type is None and _is_binary(data):
        raise InputError(
            f"{format_file_name(name)} is of a type that is not read; {_describe_endings()}."
        )
    decode_text(name, data)
    return named_type.kind if named_type else "text"


def _is_binary(data: bytes) -> bool:
    sample = data[:SAMPLE_BYTES]
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
                    types = listing.read(MAX_CONTENT_TYPES_BYTES)
                if WORD_PART in types or WORD_MACRO_PART in types:
                    return "docx"
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, RuntimeError) as error:
        expectation = "a whole Word document" if expected == "docx" else "a whole zip archive"
        raise InputError(
            f"{format_file_name(name)} is not {expectation}: it is cut off or damaged; "
            "save or download it again and add it once more."
        ) from error
    if any(member.startswith("xl/") for member in members):
        return "an Excel workbook (save the sheet as .csv)"
    if any(member.startswith("ppt/") for member in members):
        return "a PowerPoint file (save it as PDF)"
    if "mimetype" in members:
        return "an OpenDocument or EPUB file (save it as .docx or PDF)"
    return "a zip archive (add the files in it one by one)"


def read_file(request: ReadRequest) -> Source:
    """Return the source in these bytes; its language is still "und".

    Raises InputError: the file cannot be read, for whatever reason; one sentence says why.
    """
    source_type = find_file_type(request.kind)
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
