"""Word documents: paragraphs and tables in order, then notes, headers and footers.

The XML is walked here and not by python-docx, whose paragraphs leave out what stands in tracked
insertions, content controls and text boxes: words that everybody sees who opens the document.
"""

from __future__ import annotations

import io
import posixpath
import re
import zipfile
import zlib
from collections.abc import Iterator
from xml.etree.ElementTree import Element, ParseError, fromstring, iterparse
from xml.parsers import expat

from core.config import MEGABYTE
from core.errors import InputError
from core.intake.draft import Draft
from core.intake.request import ReadRequest
from core.intake.word_text import blocks_of, local
from core.records import Source

NOTES = re.compile(r"(?:foot|end)notes\d*\.xml")
MARGINS = re.compile(r"(?:header|footer)\d*\.xml")
LETTER = re.compile(r"[^\W\d_]{2}")
ENCRYPTED = 1  # Bit 0 of a zip member's flags.
BETWEEN = "\n\n"
DAMAGE = (zipfile.BadZipFile, zlib.error, ParseError, KeyError, EOFError, NotImplementedError)
AGAIN = "open it in Word, save it as .docx and add it again"


def read_docx(request: ReadRequest) -> Source:
    """Word documents.

    Raises:
        InputError: the file is damaged, unpacks to too much, or holds too much text.
    """
    draft = Draft(request)
    try:
        with zipfile.ZipFile(io.BytesIO(request.data)) as archive:
            _check_size(request, archive)
            if any(member.flag_bits & ENCRYPTED for member in archive.infolist()):
                raise InputError(
                    f"{request.file} is protected by a password; save it without one and add it "
                    "again."
                )
            _read_parts(request, archive, draft)
    except DAMAGE as error:
        raise InputError(
            f"{request.file} could not be read as a Word document: it is damaged ({error}); "
            f"{AGAIN}."
        ) from error
    except RecursionError as error:
        raise InputError(
            f"{request.file} could not be read as a Word document: its tables or text boxes are "
            "nested too deeply; put them beside each other and add it again."
        ) from error
    if not draft.length:
        draft.note("There is no text in this document; text in its pictures is not read.")
    return draft.finish()


def _check_size(request: ReadRequest, archive: zipfile.ZipFile) -> None:
    """Refuse a document that unpacks to more than the settings allow, before unpacking any."""
    most = request.settings.unpacked_megabytes
    unpacked = sum(member.file_size for member in archive.infolist())
    if unpacked > most * MEGABYTE:
        raise InputError(
            f"{request.file} unpacks to {unpacked / MEGABYTE:,.0f} MB; at most {most} MB are "
            "unpacked. Take large pictures out, or raise “Largest unpacked size” in Settings."
        )


def _read_parts(request: ReadRequest, archive: zipfile.ZipFile, draft: Draft) -> None:
    main = _main_part(archive)
    changed = False
    for element in _body(archive, main):
        changed = changed or _has_changes(element)
        draft.add_blocks(list(blocks_of(element)), BETWEEN)
    if changed:
        draft.note("The document has tracked changes; it was read as if all were accepted.")
    folder = posixpath.dirname(main)
    for pattern in (NOTES, MARGINS):
        known: set[str] = set()
        for part in sorted(archive.namelist()):
            if posixpath.dirname(part) != folder or not pattern.fullmatch(posixpath.basename(part)):
                continue
            blocks = [block for block in _blocks_of_part(archive, part) if LETTER.search(block)]
            draft.add_blocks([block for block in blocks if block not in known], BETWEEN)
            known.update(blocks)


def _main_part(archive: zipfile.ZipFile) -> str:
    """The path of the document's main part, which its package names."""
    for relation in fromstring(_whole(archive, "_rels/.rels")):  # noqa: S314 - DTDs are refused
        if relation.get("Type", "").endswith("/officeDocument"):
            return relation.get("Target", "").lstrip("/")
    return "word/document.xml"


def _whole(archive: zipfile.ZipFile, part: str) -> bytes:
    """A part's bytes. Its size was checked; zipfile never yields more than the directory says."""
    data = archive.read(part)
    _refuse_dtd(data)
    return data


class _BodyBegins(Exception):
    """The first element: no document type can be declared after it."""


def _refuse_dtd(data: bytes) -> None:
    """Whatever stands before it, and in any encoding: the XML parser itself looks for it."""

    def declared(*_: object) -> None:
        raise ParseError("a document type declaration, which no Word document has")

    def begun(*_: object) -> None:
        raise _BodyBegins

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = declared
    parser.StartElementHandler = begun
    try:
        parser.Parse(data, True)
    except _BodyBegins:
        return
    except (expat.ExpatError, ValueError, LookupError) as error:  # also: an unknown encoding
        raise ParseError(str(error)) from error


def _body(archive: zipfile.ZipFile, part: str) -> Iterator[Element]:
    """The blocks of the body one by one, each dropped after use to keep memory low."""
    path: list[Element] = []
    stream = io.BytesIO(_whole(archive, part))
    for event, element in iterparse(stream, events=("start", "end")):  # noqa: S314 - as above
        if event == "start":
            path.append(element)
            continue
        path.pop()
        if len(path) == 2 and local(path[1]) == "body":
            yield element
            path[1].clear()


def _blocks_of_part(archive: zipfile.ZipFile, part: str) -> Iterator[str]:
    """The texts of a part that is small: notes, a header, a footer."""
    for item in fromstring(_whole(archive, part)):  # noqa: S314 - DTDs are refused
        yield from blocks_of(item)


def _has_changes(element: Element) -> bool:
    return any(local(item) in ("ins", "del", "moveFrom", "moveTo") for item in element.iter())
