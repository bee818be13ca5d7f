"""Files made in code: PDFs, Word documents, zips, charts and scans, as the bytes of an upload."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import docx
import pytest
from PIL import Image, ImageDraw, ImageFont
from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.lib.utils import ImageReader
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas

from core.documents.source_builder import ReadRequest
from core.runtime.config import Settings
from core.schema.records import Source, SourceKind

NOTO = Path("/usr/share/fonts/truetype/noto")
LATIN = NOTO / "NotoSans-Regular.ttf"
HEBREW = NOTO / "NotoSansHebrew-Regular.ttf"
CHINESE = Path("/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc")
A4 = (595.0, 842.0)

needs_noto = pytest.mark.skipif(not LATIN.exists(), reason="the Noto fonts are not installed")


def request(name: str, data: bytes, kind: SourceKind, **settings: int) -> ReadRequest:
    """A request under default settings but for those given."""
    return ReadRequest("a" * 64, name, data, kind, replace(Settings(), **settings))


def blocks_of(source: Source) -> list[tuple[str, str]]:
    """(kind, text) of every block."""
    return [(block.kind, source.text[block.start : block.end]) for block in source.blocks]


def check_offsets(source: Source) -> None:
    """Blocks and pages lie in the text one after the other, boxes in their page and picture."""
    end = 0
    for block in source.blocks:
        assert end <= block.start < block.end <= len(source.text)
        assert source.text[block.start : block.end].strip()
        end = block.end
    end = 0
    for page in source.pages:
        assert end <= page.start <= page.end <= len(source.text)
        end = page.end
    pages = {page.number: page for page in source.pages}
    for seen in source.boxes:
        assert pages[seen.page].start <= seen.start < seen.end <= pages[seen.page].end
        assert 0 <= seen.box.left < seen.box.right <= 1
        assert 0 <= seen.box.top < seen.box.bottom <= 1


def pdf(
    *pages: Callable[[Canvas], None] | str, size: tuple[float, float] = A4, **options: Any
) -> bytes:
    """A PDF; a page is what a function draws, or lines of text from the top down."""
    stream = io.BytesIO()
    canvas = Canvas(stream, pagesize=size, **options)
    for page in pages:
        if isinstance(page, str):
            write_lines(canvas, page.split("\n"))
        else:
            page(canvas)
        canvas.showPage()
    canvas.save()
    return stream.getvalue()


def write_lines(canvas: Canvas, lines: Sequence[str], x: float = 60, y: float = 780) -> None:
    """Lines below each other, in the font that is set."""
    for number, line in enumerate(lines):
        canvas.drawString(x, y - 16 * number, line)


def font(canvas: Canvas, name: str, path: Path) -> None:
    """Write on in that font."""
    pdfmetrics.registerFont(TTFont(name, str(path)))
    canvas.setFont(name, 12)


def encrypted(user: str, owner: str = "owner") -> bytes:
    """A PDF of one page that opens with that user password."""
    return pdf("Locked away.", encrypt=StandardEncryption(user, ownerPassword=owner))


def scan(image: Image.Image) -> bytes:
    """A PDF whose only page is the picture."""

    def draw(canvas: Canvas) -> None:
        canvas.drawImage(ImageReader(image), 0, 0, *A4)

    return pdf(draw)


def word(build: Callable[[Any], None]) -> bytes:
    """A Word document made by python-docx."""
    document = docx.Document()
    build(document)
    stream = io.BytesIO()
    document.save(stream)
    return stream.getvalue()


def edited(data: bytes, changes: Mapping[str, Callable[[str], str]]) -> bytes:
    """The zip file with the text of some members changed."""
    stream = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(data)) as old,
        zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for name in old.namelist():
            content = old.read(name)
            if name in changes:
                content = changes[name](content.decode()).encode()
            new.writestr(name, content)
    return stream.getvalue()


def zipped(**members: bytes) -> bytes:
    """A zip file; in the names `__` stands for a slash and `_xml` for an ending."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name.replace("__", "/").replace("_xml", ".xml"), content)
    return stream.getvalue()


def png(image: Image.Image, **options: Any) -> bytes:
    """The picture as PNG."""
    stream = io.BytesIO()
    image.save(stream, "PNG", **options)
    return stream.getvalue()


def png_that_claims(width: int, height: int) -> bytes:
    """A PNG of a few bytes whose header declares a picture of any size."""

    def chunk(name: bytes, content: bytes) -> bytes:
        return (
            struct.pack(">I", len(content))
            + name
            + content
            + struct.pack(">I", zlib.crc32(name + content))
        )

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    pixels = zlib.compress(b"\x00" * 1000)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
    )


def letters(size: float, path: Path = LATIN) -> ImageFont.FreeTypeFont:
    """A font for drawing into pictures."""
    return ImageFont.truetype(str(path), int(size))


def bar_chart(width: int, height: int, size: int) -> Image.Image:
    """Vertical bars with their values above, names below, and an axis on the left."""
    image = Image.new("RGB", (width, height), "white")
    pen = ImageDraw.Draw(image)
    title = "Visitors by region, 2023 (thousands)"
    pen.text((width * 0.2, height * 0.03), title, fill="black", font=letters(size * 1.4))
    base = height * 0.88
    for number, (name, value) in enumerate(
        {"North": 412, "South": 287, "East": 355, "West": 198}.items()
    ):
        x, bar = width * (0.14 + 0.21 * number), value / 450 * height * 0.7
        pen.rectangle((x, base - bar, x + width * 0.12, base), fill=(60, 110, 180))
        middle = x + width * 0.06
        pen.text((middle, base - bar - 4), str(value), "black", letters(size), "mb")
        pen.text((middle, base + 6), name, "black", letters(size), "mt")
    for tick in range(0, 500, 100):
        y = base - tick / 450 * height * 0.7
        pen.text((width * 0.09, y), str(tick), "black", letters(size * 0.8), "rm")
    return image


def sideways_chart(width: int, height: int, size: int) -> Image.Image:
    """Horizontal bars: names left, values at the bars' ends, an axis below."""
    image = Image.new("RGB", (width, height), "white")
    pen = ImageDraw.Draw(image)
    pen.text((width * 0.3, height * 0.03), "Share of energy by source", "black", letters(size))
    bars = {"Solar": 12.5, "Wind power": 31.0, "Hydro": 24.5, "Natural gas": 18.0}
    for number, (name, value) in enumerate(bars.items()):
        y, length = height * (0.16 + 0.18 * number), value / 40 * width * 0.55
        pen.rectangle((width * 0.3, y, width * 0.3 + length, y + height * 0.1), fill="#bc4749")
        middle = y + height * 0.05
        pen.text((width * 0.28, middle), name, "black", letters(size), "rm")
        pen.text((width * 0.3 + length + 8, middle), f"{value}%", "black", letters(size), "lm")
    for tick in range(0, 50, 10):
        x = width * 0.3 + tick / 40 * width * 0.55
        pen.text((x, height * 0.9), str(tick), "black", letters(size * 0.8), "mt")
    return image


def table_picture(width: int, height: int, size: int) -> Image.Image:
    """A small table with lines between its rows."""
    image = Image.new("RGB", (width, height), "white")
    pen = ImageDraw.Draw(image)
    rows = [
        ("Country", "Capital", "Population"),
        ("Portugal", "Lisbon", "10.4 million"),
        ("Norway", "Oslo", "5.5 million"),
        ("Uruguay", "Montevideo", "3.4 million"),
    ]
    for number, row in enumerate(rows):
        y = height * (0.08 + 0.23 * number)
        pen.line((10, y - 6, width - 10, y - 6), fill="grey")
        for column, text in enumerate(row):
            pen.text((width * (0.04 + 0.33 * column), y), text, "black", letters(size))
    return image


def page_picture(lines: Sequence[str], path: Path = LATIN, size: int = 30) -> Image.Image:
    """A page of 1240 x 1754 pixels (A4 at 150 dpi) with lines of text from the top down."""
    image = Image.new("RGB", (1240, 1754), "white")
    pen = ImageDraw.Draw(image)
    for number, line in enumerate(lines):
        pen.text((120, 140 + 1.5 * size * number), line, "black", letters(size, path))
    return image


def photograph(width: int = 640, height: int = 480) -> Image.Image:
    """Soft gradients and blobs without any text."""
    image = Image.linear_gradient("L").resize((width, height))
    sky = Image.merge(
        "RGB",
        (
            image,
            image.rotate(180),
            image.transpose(Image.Transpose.ROTATE_90).resize((width, height)),
        ),
    )
    pen = ImageDraw.Draw(sky)
    for number in range(14):
        x, y = (number * 97) % width, (number * 61) % height
        pen.ellipse((x, y, x + 90, y + 60), fill=(30 + 15 * number, 90, 200 - 10 * number))
    return sky
