"""PNG, JPEG and WebP pictures: opened within limits, set upright, read by OCR."""

from __future__ import annotations

import io
import re
import struct
from dataclasses import dataclass

from PIL import Image, ImageOps, UnidentifiedImageError

from core.documents.boxes import PictureText
from core.documents.draft import Draft, Place
from core.documents.request import ReadRequest, shown
from core.errors import InputError
from core.records import Source

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
