"""Where evidence stands: pages and images as pictures with boxes, quotes on a page, OCR boxes."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from core.concurrency import Stop
from core.config import Settings
from core.documents.isolation import Task, run_alone
from core.documents.request import silent
from core.records import Box, Source, SourceKind
from core.store.codec import from_plain, to_plain

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
