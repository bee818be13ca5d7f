"""PNG, JPEG and WebP pictures: opened within limits, set upright, read by OCR.

Pieces of text with the rectangles around them, on a page or in a picture, y downwards.

Where evidence stands: pages and images as pictures with boxes, quotes on a page, OCR boxes.
"""

from __future__ import annotations

import base64
import io
import re
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from statistics import median
from typing import Any, NamedTuple

from PIL import Image, ImageOps, UnidentifiedImageError

from core.concurrency import Stop
from core.config import Settings
from core.documents.draft import Content, Draft, Piece, Place
from core.documents.isolation import Task, run_alone
from core.documents.request import ReadRequest, shown, silent
from core.errors import InputError
from core.records import BlockKind, Box, Source, SourceKind
from core.store.sqlite import from_plain, to_plain

SECONDS = 20.0
THE_FILE = "the file"
MARGIN = 0.16
MOST_OF_PAGE = 0.8


@dataclass(frozen=True)
class Upright:
    """An image as people see it: turned as the camera noted it, on white, encoded by us.

    `data` is a PNG or JPEG as `media_type` says; `width` and `height` are its pixels.
    """

    data: bytes
    media_type: str
    width: int
    height: int


def upright_picture(
    data: bytes, *, name: str = THE_FILE, settings: Settings | None = None
) -> Upright:
    """The whole image to be looked at closely; very large ones are made smaller.

    Raises:
        InputError: it is no picture, is damaged or too large, or cannot be drawn in time.
    """
    about = {"megapixels": (settings or Settings()).megapixels}
    answer = run_alone(Task("upright", name, data, about, SECONDS), Stop(), silent)
    picture = base64.b64decode(answer["picture"])
    return Upright(picture, answer["media_type"], answer["width"], answer["height"])


def page_picture(
    data: bytes,
    kind: SourceKind,
    page: int,
    boxes: Sequence[Box],
    *,
    width: int = 1000,
    name: str = THE_FILE,
    settings: Settings | None = None,
) -> bytes:
    """A PNG of a PDF's page (from 1) or of an image, `width` pixels wide, with the boxes marked.

    Raises:
        InputError: there is no such page, or it cannot be drawn in time.
    """
    about: dict[str, Any] = {
        "kind": kind,
        "page": page,
        "boxes": to_plain(tuple(boxes)),
        "width": width,
        "megapixels": (settings or Settings()).megapixels,
    }
    answer = run_alone(Task("picture", name, data, about, SECONDS), Stop(), silent)
    return base64.b64decode(answer["picture"])


def strip_around(picture: bytes, boxes: Sequence[Box]) -> bytes | None:
    """The full-width strip of a drawn page that holds the boxes, with some of what surrounds them.

    None where there is nothing to leave out: no box, or boxes all over the page.
    """
    from PIL import Image

    if not boxes:
        return None
    page = Image.open(io.BytesIO(picture))
    margin = page.width * MARGIN
    top = max(0, round(min(box.top for box in boxes) * page.height - margin))
    bottom = min(page.height, round(max(box.bottom for box in boxes) * page.height + margin))
    if bottom - top > MOST_OF_PAGE * page.height:
        return None
    stream = io.BytesIO()
    page.crop((0, top, page.width, bottom)).save(stream, "PNG")
    return stream.getvalue()


def quote_boxes(data: bytes, page: int, quote: str, *, name: str = THE_FILE) -> list[Box]:
    """Where a quote stands on a PDF's page (from 1): one box per line; empty where it does not.

    Blanks, hyphens, ligatures and typographic quotes do not matter; a near match counts too.

    Raises:
        InputError: there is no such page, or it cannot be searched in time.
    """
    task = Task("places", name, data, {"page": page, "quote": quote}, SECONDS)
    answer = run_alone(task, Stop(), silent)
    return list(from_plain(tuple[Box, ...], answer["boxes"]))


def boxes_of(source: Source, start: int, end: int) -> list[tuple[int, Box]]:
    """(page, box) of all that OCR saw within `[start, end)` of the source's text, in order."""
    return [(seen.page, seen.box) for seen in source.boxes if seen.start < end and seen.end > start]


class TextBox(NamedTuple):
    """A piece of text and the upright rectangle around it. `score` in [0, 1] is OCR's."""

    text: str
    left: float
    top: float
    right: float
    bottom: float
    score: float = 1.0
    bold: bool = False

    @property
    def width(self) -> float:
        """From left to right."""
        return self.right - self.left

    @property
    def height(self) -> float:
        """From top to bottom."""
        return self.bottom - self.top

    @property
    def x(self) -> float:
        """The centre, horizontally."""
        return (self.left + self.right) / 2

    @property
    def y(self) -> float:
        """The centre, vertically."""
        return (self.top + self.bottom) / 2


@dataclass(frozen=True)
class PictureText:
    """All text that OCR read in a picture of `width` x `height` pixels.

    Where the picture had to be turned clockwise by `turned` degrees to be read, places and size
    are those of the turned picture; `box` gives them in the picture as it is. `unread` counts
    places that look like text and could not be read.
    """

    items: tuple[TextBox, ...]
    width: int
    height: int
    unread: int = 0
    turned: int = 0

    def box(self, item: TextBox) -> Box:
        """The item's place as shares of the picture before it was turned."""
        left, right = (share(x, self.width) for x in (item.left, item.right))
        top, bottom = (share(y, self.height) for y in (item.top, item.bottom))
        if self.turned == 90:
            return Box(top, 1 - right, bottom, 1 - left)
        if self.turned == 180:
            return Box(1 - right, 1 - bottom, 1 - left, 1 - top)
        if self.turned == 270:
            return Box(1 - bottom, left, 1 - top, right)
        return Box(left, top, right, bottom)


class Part(NamedTuple):
    """Some characters of a block; `box` is None for what only joins the others."""

    text: str
    box: TextBox | None = None


@dataclass(frozen=True)
class PlacedBlock:
    """A block whose parts know where they were seen."""

    kind: BlockKind | None
    parts: tuple[Part, ...]
    level: int = 0

    @property
    def text(self) -> str:
        """The block's characters."""
        return "".join(part.text for part in self.parts)

    def content(self, place: Callable[[TextBox], Place]) -> Content:
        """The block with places on a page."""
        pieces = (Piece(part.text, place(part.box) if part.box else None) for part in self.parts)
        return Content(self.kind, tuple(pieces), self.level)


def share(place: float, size: float) -> float:
    """A coordinate as a share of the size, between 0 and 1."""
    return min(max(place / size, 0.0), 1.0) if size else 0.0


def usual_height(items: Sequence[TextBox]) -> float:
    """The median height of the items; 1 when there are none."""
    return median(item.height for item in items) if items else 1.0


def around(items: Iterable[TextBox], text: str) -> TextBox:
    """The rectangle around all items, with that text."""
    lefts, tops, rights, bottoms, scores = zip(
        *((i.left, i.top, i.right, i.bottom, i.score) for i in items), strict=True
    )
    return TextBox(text, min(lefts), min(tops), max(rights), max(bottoms), min(scores))


def rows_of(items: Sequence[TextBox]) -> list[list[TextBox]]:
    """The items in rows from top to bottom, each row from left to right.

    An item joins the row whose items' centres it overlaps by half its height.
    """
    rows: list[list[TextBox]] = []
    total = height = 0.0  # of the last row: the sum of its centres, and how high its first item is
    for y, item in sorted(((item[2] + item[4]) / 2, item) for item in items):
        own = item[4] - item[2]
        if rows and y - total / len(rows[-1]) < 0.5 * min(own, height):
            rows[-1].append(item)
            total += y
        else:
            rows.append([item])
            total, height = y, own
    return [sorted(row, key=itemgetter(1)) if len(row) > 1 else row for row in rows]


def split_box(item: TextBox, parts: Sequence[str]) -> list[TextBox]:
    """The item cut into the parts of its text, each given its share of the width."""
    cut: list[TextBox] = []
    place = 0
    for part in parts:
        start = item.text.index(part, place)
        place = start + len(part)
        left, right = (item.left + item.width * at / len(item.text) for at in (start, place))
        cut.append(item._replace(text=part, left=left, right=right))
    return cut


FORMATS = ("PNG", "JPEG", "WEBP")
DAMAGE = (OSError, ValueError, SyntaxError, EOFError, struct.error, IndexError, KeyError)
VIETNAMESE = re.compile("[ơưƠƯ]")
UNREAD_CHART = "It seems to be a chart: its values cannot be read here."
KNOWN_SCRIPTS = "it reads Latin letters, Chinese and Japanese"

# Our own limit is checked before any pixel is decoded, with a sentence that says what to do.
Image.MAX_IMAGE_PIXELS = None


@dataclass(frozen=True)
class Picture:
    """An upright RGB image on white, and remarks on what was left out of it."""

    image: Image.Image
    notes: tuple[str, ...] = ()


def read_image(request: ReadRequest) -> Source:
    """Pictures: the text in them, line by line, each piece with its place.

    Raises:
        InputError: the picture is damaged, cut off, or too large.
    """
    from core.documents.layout import picture_blocks
    from core.documents.ocr import read_picture_text

    draft = Draft(request)
    picture = open_picture(request.name, request.data, request.settings.megapixels)
    for note in picture.notes:
        draft.note(note)
    request.report(0, 1, "looking for text in the picture")
    found = read_picture_text(picture.image)
    blocks = list(picture_blocks(found))
    draft.add_blocks(b.content(lambda box: Place(1, found.box(box), box.score)) for b in blocks)
    draft.add_page(1, 0, "ocr")
    if any(block.kind == "chart label" for block in blocks) and not any(
        block.kind == "table row" for block in blocks
    ):
        draft.note(UNREAD_CHART)
    if not found.items:
        draft.note("No text could be read in this picture.")
    if remark := remark_on(found):
        draft.note(remark)
    return draft.finish(width=picture.image.width, height=picture.image.height)


def remark_on(found: PictureText) -> str:
    """A sentence on what OCR could not do in a picture or on a page; empty if nothing."""
    remarks = []
    if found.turned:
        remarks.append(f"It lay on its side or head and was turned by {found.turned}° to be read.")
    if found.unread:
        places = "One place looks" if found.unread == 1 else f"{found.unread} places look"
        remarks.append(f"{places} like text but could not be read ({KNOWN_SCRIPTS}).")
    if VIETNAMESE.search("".join(item.text for item in found.items)):
        remarks.append("Some Vietnamese letters are unknown to the reader and are missing.")
    return " ".join(remarks)


def open_picture(name: str, data: bytes, megapixels: int) -> Picture:
    """The picture as a person sees it: first frame, upright, on white.

    Raises:
        InputError: it is no picture, is cut off, or has more than `megapixels` megapixels.
    """
    try:
        with Image.open(io.BytesIO(data), formats=FORMATS) as image:
            size = image.width * image.height / 1e6
            if size > megapixels:
                raise InputError(
                    f"{shown(name)} has {image.width:,} × {image.height:,} pixels "
                    f"({size:,.0f} megapixels); at most {megapixels} are read. "
                    "Make it smaller and add it again."
                )
            frames = int(getattr(image, "n_frames", 1))
            image.load()
            upright = _on_white(_upright(image))
    except UnidentifiedImageError as error:
        raise InputError(
            f"{shown(name)} could not be read as a PNG, JPEG or WebP image; "
            "save it again as PNG and add it once more."
        ) from error
    except DAMAGE as error:
        raise InputError(
            f"{shown(name)} is damaged or cut off ({_reason(error)}); "
            "save or download it again and add it once more."
        ) from error
    notes = (f"The picture is animated; only the first of its {frames} frames was read.",)
    return Picture(upright, notes if frames > 1 else ())


def _reason(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:120]


def _upright(image: Image.Image) -> Image.Image:
    """Turned as the camera noted it; a note that cannot be read counts as none."""
    try:
        return ImageOps.exif_transpose(image)
    except DAMAGE:
        return image


def _on_white(image: Image.Image) -> Image.Image:
    """RGB, with white behind whatever is transparent."""
    if image.mode.startswith("I"):  # 16 bits per pixel: Pillow would clip, not scale.
        image = image.convert("I").point(lambda value: value / 256).convert("L")
    if image.mode in ("RGBA", "LA", "PA", "La", "RGBa") or "transparency" in image.info:
        layers = image.convert("RGBA")
        paper = Image.new("RGBA", layers.size, "white")
        paper.alpha_composite(layers)
        return paper.convert("RGB")
    return image.convert("RGB")
