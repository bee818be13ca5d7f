"""Shows evidence in place: pages and images as pictures with boxes, quotes on a page, OCR boxes.

`isolation` runs `drawn`, `upright` and `search_page` in a child process that opens the file.
"""

from __future__ import annotations

import base64
import ctypes
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from PIL import Image, ImageDraw

from core.documents.images import open_picture
from core.documents.isolation import WorkerTask, run_task
from core.documents.quotes import fold_with_offsets
from core.documents.source_builder import ignore_progress
from core.runtime.concurrency import StopSignal
from core.runtime.config import Settings
from core.runtime.errors import InputError
from core.schema.records import BoundingBox, Source, SourceKind
from core.store.sqlite import from_plain, to_plain

RENDER_SECONDS = 20.0
UNNAMED_FILE = "the file"
STRIP_MARGIN_SHARE = 0.16
MAX_STRIP_SHARE = 0.8
BOX_FILL = (255, 196, 0, 72)
BOX_OUTLINE = (196, 98, 0, 255)
BOX_PADDING_PIXELS = 2
MAX_ASPECT = 4
MIN_PARTIAL_RATIO = 80.0
MIN_FUZZY_LENGTH = 8
MAX_QUOTE_LENGTH = 4000
DEVICE_RESOLUTION = 1_000_000
MAX_SHOWN_PIXELS = 16_000_000  # pixels: four times the width of a column, and quick to send
MAX_LOSSLESS_PIXELS = (
    2_000_000  # pixels; a larger PNG of a photo takes seconds and tens of megabytes
)
JPEG_QUALITY = 92
# Blanks and hyphens are ignored, as line ends change both.
IGNORED_CHARACTER = re.compile(r"[\s\x00-\x1f\u2010-\u2015\-−]")


@dataclass(frozen=True)
class UprightImage:
    """An image as people see it: upright by its EXIF data, on white, encoded anew.

    `data` is a PNG or JPEG as `media_type` says; `width` and `height` are in pixels.
    """

    data: bytes
    media_type: str
    width: int
    height: int


def load_upright_image(
    data: bytes, *, name: str = UNNAMED_FILE, settings: Settings | None = None
) -> UprightImage:
    """Return the whole image for a close look; very large ones are scaled down.

    Raises InputError: it is no picture, is damaged or too large, or cannot be drawn in time.
    """
    about = {"megapixels": (settings or Settings()).megapixels}
    answer = run_task(
        WorkerTask(encode_upright.__name__, name, data, about, RENDER_SECONDS),
        StopSignal(),
        ignore_progress,
    )
    return UprightImage(**(answer | {"data": base64.b64decode(answer["data"])}))


def render_page(
    data: bytes,
    kind: SourceKind,
    page: int,
    boxes: Sequence[BoundingBox],
    *,
    width: int = 1000,
    name: str = UNNAMED_FILE,
    settings: Settings | None = None,
) -> bytes:
    """Return a PNG of a PDF page (from 1) or image, `width` pixels wide, with the boxes marked.

    Raises InputError: there is no such page, or it cannot be drawn in time.
    """
    about: dict[str, Any] = {
        "kind": kind,
        "page": page,
        "boxes": to_plain(tuple(boxes)),
        "width": width,
        "megapixels": (settings or Settings()).megapixels,
    }
    answer = run_task(
        WorkerTask(draw_page.__name__, name, data, about, RENDER_SECONDS),
        StopSignal(),
        ignore_progress,
    )
    return base64.b64decode(answer["picture"])


def crop_around_boxes(picture: bytes, boxes: Sequence[BoundingBox]) -> bytes | None:
    """Return the full-width strip of a drawn page that holds the boxes, with some margin.

    Returns None if nothing can be left out: there is no box, or boxes all over the page.
    """
    if not boxes:
        return None
    page = Image.open(io.BytesIO(picture))
    margin = page.width * STRIP_MARGIN_SHARE
    top = max(0, round(min(box.top for box in boxes) * page.height - margin))
    bottom = min(page.height, round(max(box.bottom for box in boxes) * page.height + margin))
    if bottom - top > MAX_STRIP_SHARE * page.height:
        return None
    stream = io.BytesIO()
    page.crop((0, top, page.width, bottom)).save(stream, "PNG")
    return stream.getvalue()


def find_quote_boxes(
    data: bytes, page: int, quote: str, *, name: str = UNNAMED_FILE
) -> list[BoundingBox]:
    """Return one box per line of the quote on a PDF page (from 1); empty if it is not there.

    Blanks, hyphens, ligatures and typographic quotes are ignored; a near match counts too. Raises
    InputError: there is no such page, or it cannot be searched in time.
    """
    task = WorkerTask(
        search_page.__name__, name, data, {"page": page, "quote": quote}, RENDER_SECONDS
    )
    answer = run_task(task, StopSignal(), ignore_progress)
    return list(from_plain(tuple[BoundingBox, ...], answer["boxes"]))


def find_source_boxes(source: Source, start: int, end: int) -> list[tuple[int, BoundingBox]]:
    """Return (page, box) of all OCR text within `[start, end)` of the source's text, in order."""
    return [(seen.page, seen.box) for seen in source.boxes if seen.start < end and seen.end > start]


def draw_page(
    name: str,
    data: bytes,
    *,
    kind: SourceKind,
    page: int,
    boxes: Sequence[dict[str, float]],
    width: int,
    megapixels: int,
) -> dict[str, Any]:
    """Draw the page (from 1) or picture with the boxes marked, as a PNG `width` pixels wide.

    Raises InputError: there is no such page, or the file cannot be drawn.
    """
    if kind == "image":
        image = open_picture(name, data, megapixels)[0]
    elif kind == "pdf":
        roster = _load_sheet(name, data, page)
        scale = min(width / max(1.0, roster.get_width()), 10.0)
        image = roster.render(scale=scale).to_pil().convert("RGB")
    else:
        raise InputError(f"Only PDF pages and images can be shown as pictures, not {kind} files.")
    height = min(max(1, round(image.height * width / image.width)), MAX_ASPECT * width)
    image = image.resize((width, height), Image.Resampling.LANCZOS)
    layer = Image.new("RGBA", image.size)
    pen = ImageDraw.Draw(layer)
    for box in boxes:
        left, right = sorted((box["left"] * width, box["right"] * width))
        top, bottom = sorted((box["top"] * height, box["bottom"] * height))
        corners = (
            left - BOX_PADDING_PIXELS,
            top - BOX_PADDING_PIXELS,
            right + BOX_PADDING_PIXELS,
            bottom + BOX_PADDING_PIXELS,
        )
        pen.rectangle(corners, fill=BOX_FILL, outline=BOX_OUTLINE, width=BOX_PADDING_PIXELS)
    image = Image.alpha_composite(image.convert("RGBA"), layer).convert("RGB")
    return {"picture": _encode_image(image, "PNG")}


def _encode_image(image: Image.Image, kind: str, **options: Any) -> str:
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return base64.b64encode(stream.getvalue()).decode()


def encode_upright(name: str, data: bytes, *, megapixels: int) -> dict[str, Any]:
    """Return the fields of `UprightImage`: the picture as people see it, encoded anew.

    Small ones are lossless; those above `MAX_SHOWN_PIXELS` pixels are scaled down. Raises
    InputError: it is no picture, is cut off or too large.
    """
    image, _ = open_picture(name, data, megapixels)
    scale = min(1.0, (MAX_SHOWN_PIXELS / (image.width * image.height)) ** 0.5)
    if scale < 1.0:
        size = (max(1, int(image.width * scale)), max(1, int(image.height * scale)))
        image = image.resize(size, Image.Resampling.LANCZOS)
    size_fields = {"width": image.width, "height": image.height}
    # JPEG cannot be longer than 65,535 pixels on a side.
    if image.width * image.height <= MAX_LOSSLESS_PIXELS or max(image.size) > 65_535:
        return {"data": _encode_image(image, "PNG"), "media_type": "image/png", **size_fields}
    photo = _encode_image(image, "JPEG", quality=JPEG_QUALITY, subsampling=0)
    return {"data": photo, "media_type": "image/jpeg", **size_fields}


def _load_sheet(name: str, data: bytes, page: int) -> Any:
    from core.documents.pdf import load_page, open_pdf

    document = open_pdf(name, data)
    if not 1 <= page <= len(document):
        raise InputError(f"Expected a page from 1 to {len(document)}, found {page}.")
    return load_page(document, page - 1)


def search_page(name: str, data: bytes, *, page: int, quote: str) -> dict[str, Any]:
    """Return one box per line of the quote on a PDF page (from 1), as shares; none if not found.

    Blanks, hyphens, ligatures and typographic quotes are ignored; otherwise the most similar
    stretch counts if rapidfuzz scores it 80 or more of 100.
    """
    from core.documents.pdf_text import load_letters, order_letters

    roster = _load_sheet(name, data, page)
    letters = order_letters(load_letters(roster.get_textpage()))
    text, origin = _fold_for_search("".join(letter.text for letter in letters))
    match = _find_needle(_fold_for_search(quote[:MAX_QUOTE_LENGTH])[0], text)
    if match is None:
        return {"boxes": []}
    matched = [letters[index] for index in sorted({origin[place] for place in range(*match)})]
    return {"boxes": [_to_page_share(roster, *line) for line in _group_by_line(matched)]}


def _fold_for_search(text: str) -> tuple[str, list[int]]:
    pairs = [
        pair
        for pair in zip(*fold_with_offsets(text), strict=True)
        if not IGNORED_CHARACTER.match(pair[0])
    ]
    return "".join(letter for letter, _ in pairs), [place for _, place in pairs]


def _find_needle(needle: str, haystack: str) -> tuple[int, int] | None:
    """Return `[start, end)` of the needle, exact or (if it is long enough) nearly so."""
    if not needle:
        return None
    place = haystack.find(needle)
    if place >= 0:
        return place, place + len(needle)
    if len(needle) < MIN_FUZZY_LENGTH or len(haystack) < len(needle) // 2:
        return None
    from rapidfuzz import fuzz

    alignment = fuzz.partial_ratio_alignment(needle, haystack, score_cutoff=MIN_PARTIAL_RATIO)
    return (alignment.dest_start, alignment.dest_end) if alignment else None


def _group_by_line(letters: Sequence[Any]) -> list[tuple[float, float, float, float]]:
    """Return (left, bottom, right, top) around each line's letters."""
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


def _to_page_share(
    roster: Any, left: float, bottom: float, right: float, top: float
) -> BoundingBox:
    """Return the rectangle as shares of the page as it is shown: cropped and turned."""
    import pypdfium2.raw

    corners = []
    across, down = ctypes.c_int(), ctypes.c_int()
    for x, y in ((left, top), (right, bottom)):
        pypdfium2.raw.FPDF_PageToDevice(
            roster, 0, 0, DEVICE_RESOLUTION, DEVICE_RESOLUTION, 0, x, y, across, down
        )
        corners.append((across.value / DEVICE_RESOLUTION, down.value / DEVICE_RESOLUTION))
    edges = zip(*corners, strict=True)
    (x1, x2), (y1, y2) = (sorted(min(max(at, 0.0), 1.0) for at in ats) for ats in edges)
    return BoundingBox(x1, y1, x2, y2)
