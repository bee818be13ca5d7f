"""Pages as pictures with places marked, and where on a PDF page a quote stands.

Runs in the child process (worker.py): pages are drawn by the same libraries that read them.
"""

from __future__ import annotations

import ctypes
import io
import re
import unicodedata
from collections.abc import Sequence
from typing import Any

from PIL import Image, ImageDraw

from core.documents.images import open_picture
from core.errors import InputError
from core.records import Box, SourceKind

FILL = (255, 196, 0, 72)
EDGE = (196, 98, 0, 255)
PADDING = 2
TALLEST = 4
FUZZY_FROM = 80.0
SHORTEST_FUZZY = 8
LONGEST_QUOTE = 4000
FINE = 1_000_000
MOST_SHOWN = 16_000_000  # pixels: four times the width of a column, and quick to send
MOST_LOSSLESS = 2_000_000  # pixels; a larger PNG of a photo takes seconds and tens of megabytes
JPEG_QUALITY = 92
# Neither blanks nor hyphens count: line ends change both.
LEFT_OUT = re.compile(r"[\s\x00-\x1f\u00ad\u2010-\u2015\-−]+")
TYPOGRAPHY = str.maketrans({"“": '"', "”": '"', "„": '"', "‘": "'", "’": "'", "‚": "'"})


def picture_of(
    name: str, data: bytes, kind: SourceKind, page: int, boxes: Sequence[Box], width: int, most: int
) -> bytes:
    """A PNG, `width` pixels wide, of the page (from 1) or picture with the boxes marked.

    `most` is the largest picture that is opened, in megapixels.

    Raises:
        InputError: there is no such page, or the file cannot be drawn.
    """
    if kind == "image":
        image = open_picture(name, data, most).image
    elif kind == "pdf":
        image = _drawn_page(name, data, page, width)
    else:
        raise InputError(f"Only PDF pages and images can be shown as pictures, not {kind} files.")
    height = min(max(1, round(image.height * width / image.width)), TALLEST * width)
    image = _marked(image.resize((width, height), Image.Resampling.LANCZOS), boxes)
    stream = io.BytesIO()
    image.save(stream, "PNG")
    return stream.getvalue()


def upright_of(name: str, data: bytes, most: int) -> tuple[bytes, str, int, int]:
    """(bytes, media type, width, height) of the picture as people see it, encoded anew.

    Small ones without loss; above `MOST_SHOWN` pixels they are made smaller. `most` is the largest
    picture that is opened, in megapixels.

    Raises:
        InputError: it is no picture, is cut off or too large.
    """
    image = open_picture(name, data, most).image
    scale = min(1.0, (MOST_SHOWN / (image.width * image.height)) ** 0.5)
    if scale < 1.0:
        size = (max(1, int(image.width * scale)), max(1, int(image.height * scale)))
        image = image.resize(size, Image.Resampling.LANCZOS)
    stream = io.BytesIO()
    # JPEG cannot be longer than 65,535 pixels on a side.
    if image.width * image.height <= MOST_LOSSLESS or max(image.size) > 65_535:
        image.save(stream, "PNG")
        return stream.getvalue(), "image/png", *image.size
    image.save(stream, "JPEG", quality=JPEG_QUALITY, subsampling=0)
    return stream.getvalue(), "image/jpeg", *image.size


def _drawn_page(name: str, data: bytes, page: int, width: int) -> Image.Image:
    sheet = _sheet(name, data, page)
    scale = min(width / max(1.0, sheet.get_width()), 10.0)
    image: Image.Image = sheet.render(scale=scale).to_pil().convert("RGB")
    return image


def _sheet(name: str, data: bytes, page: int) -> Any:
    from core.documents.pdf import load_page, open_pdf

    document = open_pdf(name, data)
    if not 1 <= page <= len(document):
        raise InputError(f"Expected a page from 1 to {len(document)}, found {page}.")
    return load_page(document, page - 1)


def _marked(image: Image.Image, boxes: Sequence[Box]) -> Image.Image:
    layer = Image.new("RGBA", image.size)
    pen = ImageDraw.Draw(layer)
    for box in boxes:
        left, right = sorted((box.left * image.width, box.right * image.width))
        top, bottom = sorted((box.top * image.height, box.bottom * image.height))
        corners = (left - PADDING, top - PADDING, right + PADDING, bottom + PADDING)
        pen.rectangle(corners, fill=FILL, outline=EDGE, width=PADDING)
    return Image.alpha_composite(image.convert("RGBA"), layer).convert("RGB")


def places_of(name: str, data: bytes, page: int, quote: str) -> list[Box]:
    """One box per line of the quote on a PDF page (from 1), as shares; none where it is not.

    Blanks, hyphens, ligatures and typographic quotes do not matter; failing that, the likeliest
    stretch counts if rapidfuzz gives it 80 or more of 100.
    """
    from core.documents.pdf_text import in_reading_order, letters_of

    sheet = _sheet(name, data, page)
    letters = in_reading_order(letters_of(sheet.get_textpage()))
    folded: list[str] = []
    origin: list[int] = []
    for index, letter in enumerate(letters):
        for part in _folded(letter.text):
            folded.append(part)
            origin.append(index)
    found = _find(_folded(quote[:LONGEST_QUOTE]), "".join(folded))
    if found is None:
        return []
    inside = sorted({origin[place] for place in range(*found)})
    return [_share(sheet, *line) for line in _by_line([letters[index] for index in inside])]


def _folded(text: str) -> str:
    plain = unicodedata.normalize("NFKC", text.translate(TYPOGRAPHY)).casefold()
    return LEFT_OUT.sub("", plain)


def _find(needle: str, haystack: str) -> tuple[int, int] | None:
    """`[start, end)` of the needle, exactly or (if it is long enough) nearly."""
    if not needle:
        return None
    place = haystack.find(needle)
    if place >= 0:
        return place, place + len(needle)
    if len(needle) < SHORTEST_FUZZY or len(haystack) < len(needle) // 2:
        return None
    from rapidfuzz import fuzz

    near = fuzz.partial_ratio_alignment(needle, haystack, score_cutoff=FUZZY_FROM)
    return (near.dest_start, near.dest_end) if near else None


def _by_line(letters: Sequence[Any]) -> list[tuple[float, float, float, float]]:
    """(left, bottom, right, top) around each line's letters."""
    lines: list[tuple[float, float, float, float]] = []
    for letter in letters:
        if letter.right <= letter.left or letter.top <= letter.bottom:
            continue
        if lines:
            left, bottom, right, top = lines[-1]
            overlap = min(top, letter.top) - max(bottom, letter.bottom)
            if overlap > 0.3 * min(top - bottom, letter.top - letter.bottom):
                lines[-1] = (
                    min(left, letter.left),
                    min(bottom, letter.bottom),
                    max(right, letter.right),
                    max(top, letter.top),
                )
                continue
        lines.append((letter.left, letter.bottom, letter.right, letter.top))
    return lines


def _share(sheet: Any, left: float, bottom: float, right: float, top: float) -> Box:
    """The rectangle as shares of the page as it is shown: cropped and turned."""
    import pypdfium2.raw

    corners = []
    across, down = ctypes.c_int(), ctypes.c_int()
    for x, y in ((left, top), (right, bottom)):
        pypdfium2.raw.FPDF_PageToDevice(sheet, 0, 0, FINE, FINE, 0, x, y, across, down)
        corners.append((across.value / FINE, down.value / FINE))
    (x1, y1), (x2, y2) = corners
    xs, ys = sorted((_clipped(x1), _clipped(x2))), sorted((_clipped(y1), _clipped(y2)))
    return Box(xs[0], ys[0], xs[1], ys[1])


def _clipped(share: float) -> float:
    return min(max(share, 0.0), 1.0)
