"""Reads PNG, JPEG and WebP pictures: opened within limits, set upright, read by OCR (RapidOCR).

Measured on 378 and 1,373 drawn strings: text is *found* best on a grey copy of 1.2 megapixels (on
coloured ones bars hide their neighbours), and *read* best from the picture as given.
"""

from __future__ import annotations

import io
import logging
import math
import os
import re
import struct
import threading
import unicodedata
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from PIL import Image, ImageOps, ImageStat, UnidentifiedImageError

from core.documents.source_builder import (
    PictureText,
    ReadRequest,
    SourceBuilder,
    TextBox,
    format_file_name,
)
from core.runtime.errors import InputError
from core.schema.records import Source

TextQuad = tuple[tuple[float, float], ...]  # clockwise from the top left corner of the upright text

DETECTION_PIXELS = 1_200_000
MAX_ENLARGEMENT = 4.0
MAX_STRIP_ASPECT = 1.7  # times its width
MAX_STRIPS = 16
MIN_SIDE_PIXELS = 6  # pixels; letters are indistinguishable below that
MAX_LINE_ASPECT = 200.0  # times its height; lines of text are shorter, ruled lines may be longer
STRIP_OVERLAP = 0.12
CLOSE_LOOK_SCALE = 0.6
MARGIN_PIXELS = 24
DARK_LEVEL = 110
LINE_HEIGHT_PIXELS = 48
MIN_TALL_ASPECT = 1.5
ORIENTATION_SAMPLES = 3
SURE_SCORE = 0.85
MIN_SCORE = 0.8
MIN_SHORT_SCORE = 0.85
SHORT_LETTERS = 2
MIN_LETTER_DENSITY = 0.6
OCR_OPTIONS: dict[str, Any] = {
    "Global.log_level": "critical",
    "Global.use_cls": False,  # it turns short numbers upside down: 300 became 00E
    "Global.use_preprocess_img": False,
    "Global.use_vertical_padding": False,
    "EngineConfig.onnxruntime.intra_op_num_threads": min(4, os.cpu_count() or 1),
    "Det.limit_type": "max",
    "Det.limit_side_len": 8000,
    "Det.thresh": 0.2,
    "Det.box_thresh": 0.35,
}
IMAGE_FORMATS = ("PNG", "JPEG", "WEBP")
DAMAGE_ERRORS = (OSError, ValueError, SyntaxError, EOFError, struct.error, IndexError, KeyError)
VIETNAMESE_LETTER = re.compile("[ơưƠƯ]")
KNOWN_SCRIPTS = "it reads Latin letters, Chinese and Japanese"

# `open_picture` checks our own limit before any pixel is decoded, with a helpful message.
Image.MAX_IMAGE_PIXELS = None

_lock = threading.Lock()


def read_image(request: ReadRequest) -> Source:
    """Read a picture: the text in it, line by line, each piece with its place.

    Raises InputError: the picture is damaged, cut off, or too large.
    """
    from core.documents.layout import build_picture_blocks

    draft = SourceBuilder(request)
    picture, frames = open_picture(request.name, request.data, request.settings.megapixels)
    if frames > 1:
        draft.note(f"The picture is animated; only the first of its {frames} frames was read.")
    request.report(0, 1, "looking for text in the picture")
    picture_text = read_picture_text(picture)
    blocks = list(build_picture_blocks(picture_text))
    draft.add_blocks(blocks, box=picture_text.box)
    draft.add_page(1, 0, "ocr")
    kinds = {block.kind for block in blocks}
    if "chart label" in kinds and "table row" not in kinds:
        draft.note("It seems to be a chart: its values cannot be read here.")
    if not picture_text.items:
        draft.note("No text could be read in this picture.")
    if remark := describe_ocr_gaps(picture_text):
        draft.note(remark)
    return draft.finish(width=picture.width, height=picture.height)


def describe_ocr_gaps(found: PictureText) -> str:
    """Return what OCR could not do in a picture or on a page, as sentences; empty if nothing."""
    remarks = []
    if found.turned:
        remarks.append(f"It lay on its side or head and was turned by {found.turned}° to be read.")
    if found.unread:
        places = "One place looks" if found.unread == 1 else f"{found.unread} places look"
        remarks.append(f"{places} like text but could not be read ({KNOWN_SCRIPTS}).")
    if VIETNAMESE_LETTER.search("".join(item.text for item in found.items)):
        remarks.append("Some Vietnamese letters are unknown to the reader and are missing.")
    return " ".join(remarks)


def open_picture(name: str, data: bytes, megapixels: int) -> tuple[Image.Image, int]:
    """Return the first frame as people see it (upright, RGB, on white) and the number of frames.

    Raises:
        InputError: it is no picture, is cut off, or has more than `megapixels` megapixels.
    """
    try:
        with Image.open(io.BytesIO(data), formats=IMAGE_FORMATS) as image:
            size = image.width * image.height / 1e6
            if size > megapixels:
                raise InputError(
                    f"{format_file_name(name)} has {image.width:,} × {image.height:,} pixels "
                    f"({size:,.0f} megapixels); at most {megapixels} are read. "
                    "Make it smaller and add it again."
                )
            frames = int(getattr(image, "n_frames", 1))
            image.load()
            return _flatten_on_white(_apply_orientation(image)), frames
    except UnidentifiedImageError as error:
        raise InputError(
            f"{format_file_name(name)} could not be read as a PNG, JPEG or WebP image; "
            "save it again as PNG and add it once more."
        ) from error
    except DAMAGE_ERRORS as error:
        raise InputError(
            f"{format_file_name(name)} is damaged or cut off; save or  download it again and "
            f"add it once more."
        ) from error


def _apply_orientation(image: Image.Image) -> Image.Image:
    try:
        return ImageOps.exif_transpose(image)
    except DAMAGE_ERRORS:
        return image


def _flatten_on_white(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I"):  # 16 bits per pixel: Pillow would clip, not scale
        image = image.convert("I").point(lambda value: value / 256).convert("L")
    if image.mode in ("RGBA", "LA", "PA", "La", "RGBa") or "transparency" in image.info:
        layers = image.convert("RGBA")
        paper = Image.new("RGBA", layers.size, "white")
        paper.alpha_composite(layers)
        return paper.convert("RGB")
    return image.convert("RGB")


@lru_cache(maxsize=1)
def _load_engine() -> Callable[..., Any]:
    logging.getLogger("RapidOCR").setLevel(logging.CRITICAL)
    from rapidocr import RapidOCR

    engine: Callable[..., Any] = RapidOCR(params=OCR_OPTIONS)
    return engine


def read_picture_text(picture: Image.Image) -> PictureText:
    """Return all text that can be read in an RGB picture; one picture is read at a time.

    If most of what was found in a large picture is unreadable, its letters were too small, so it is
    read again strip by strip.
    """
    if min(picture.size) < MIN_SIDE_PIXELS:
        return PictureText((), picture.width, picture.height)
    with _lock:
        strips = _count_strips(picture)
        first = _read_strips(picture, strips)
        needed_strips = math.ceil(
            picture.width * picture.height * CLOSE_LOOK_SCALE**2 / DETECTION_PIXELS
        )
        if needed_strips <= strips or first.unread <= len(first.items):
            return first
        second = _read_strips(picture, min(needed_strips, MAX_STRIPS))
        return max(first, second, key=lambda found: sum(len(item.text) for item in found.items))


def _count_strips(picture: Image.Image) -> int:
    """Return how many strips a tall picture is first searched in.

    Small strips are enlarged, so a narrow picture gets no more than its pixels call for.
    """
    wanted = round(picture.height / (MAX_STRIP_ASPECT * picture.width))
    most = max(MAX_STRIPS, math.ceil(picture.width * picture.height / DETECTION_PIXELS))
    return max(1, min(wanted, most))


def _read_strips(picture: Image.Image, strips: int) -> PictureText:
    quads = _find_quads(picture, strips)
    turned = _detect_rotation(picture, quads)
    if turned:
        picture = picture.rotate(-turned, expand=True)
        quads = _find_quads(picture, strips)
    items = []
    for quad in quads:
        text, score = _read_place(picture, quad)
        if _is_readable(text, score, quad):
            xs, ys = zip(*quad, strict=True)
            place = (min(xs), min(ys), max(xs), max(ys))
            items.append(TextBox(text.strip(), *place, round(score, 3)))
    return PictureText(tuple(items), picture.width, picture.height, len(quads) - len(items), turned)


def _find_quads(picture: Image.Image, strips: int) -> list[TextQuad]:
    """Return where text seems to stand, in pixels, searching strips as wide as the picture.

    Strips overlap, and each keeps only the lines whose centre lies in it, so no line is cut.
    """
    height = picture.height / strips
    quads: list[TextQuad] = []
    for number in range(strips):
        top, bottom = number * height, (number + 1) * height
        start, end = max(0.0, top - STRIP_OVERLAP * height), bottom + STRIP_OVERLAP * height
        strip = picture.crop((0, int(start), picture.width, min(picture.height, math.ceil(end))))
        for quad in _find_in(strip):
            moved = tuple((x, y + int(start)) for x, y in quad)
            centre = sum(y for _, y in moved) / 4
            if top <= centre < bottom or strips == 1:
                quads.append(moved)
    return quads


def _find_in(picture: Image.Image) -> list[TextQuad]:
    import numpy as np

    grey = ImageOps.autocontrast(picture.convert("L"))
    if ImageStat.Stat(grey).median[0] < DARK_LEVEL:
        grey = ImageOps.invert(grey)
    scale = min(math.sqrt(DETECTION_PIXELS / (grey.width * grey.height)), MAX_ENLARGEMENT)
    size = (max(1, round(grey.width * scale)), max(1, round(grey.height * scale)))
    paper = int(ImageStat.Stat(grey).median[0])
    grey = ImageOps.expand(grey.resize(size, Image.Resampling.LANCZOS), MARGIN_PIXELS, fill=paper)
    detection = _load_engine()(
        np.asarray(grey.convert("RGB")), use_det=True, use_cls=False, use_rec=False
    )

    def to_picture(pixel: float, limit: int) -> float:
        return min(max((float(pixel) - MARGIN_PIXELS) / scale, 0.0), float(limit))

    quads = detection.boxes if detection.boxes is not None else ()
    return [
        tuple((to_picture(x, picture.width), to_picture(y, picture.height)) for x, y in q)
        for q in quads
    ]


def _quad_size(quad: TextQuad) -> tuple[float, float]:
    """Return width and height of the text's own rectangle, at least a pixel each."""
    width = max(math.dist(quad[0], quad[1]), math.dist(quad[3], quad[2]), 1.0)
    height = max(math.dist(quad[0], quad[3]), math.dist(quad[1], quad[2]), 1.0)
    return width, height


def _is_line(quad: TextQuad) -> bool:
    return max(_quad_size(quad)) <= MAX_LINE_ASPECT * min(_quad_size(quad))


def _is_tall(quad: TextQuad) -> bool:
    width, height = _quad_size(quad)
    return height > MIN_TALL_ASPECT * width


def _detect_rotation(picture: Image.Image, quads: Sequence[TextQuad]) -> int:
    """Return by how many degrees clockwise the picture must be turned to be read: 0, 90, 180, 270.

    A few large pieces are tried; the picture is turned only if that reads surely and better.
    """
    lines = [quad for quad in quads if _is_line(quad)]
    largest = sorted(lines, key=lambda quad: -math.prod(_quad_size(quad)))
    tall = [quad for quad in largest if _is_tall(quad)]
    areas = [sum(math.prod(_quad_size(quad)) for quad in some) for some in (tall, largest)]
    is_lying = 2 * areas[0] > areas[1]
    samples = [
        _crop_quad(picture, quad) for quad in (tall if is_lying else largest)[:ORIENTATION_SAMPLES]
    ]
    if not samples:
        return 0

    def score(degrees: int) -> float:
        turned = (sample.rotate(-degrees, expand=True) for sample in samples)
        return sum(_recognise(sample)[1] for sample in turned) / len(samples)

    scores = {degrees: score(degrees) for degrees in ((90, 270) if is_lying else (0,))}
    if not is_lying and scores[0] < SURE_SCORE:
        scores[180] = score(180)
    best = max(scores, key=lambda degrees: scores[degrees])
    return best if best == 0 or scores[best] >= SURE_SCORE else 0


def _crop_quad(picture: Image.Image, quad: TextQuad, pad: float = 0.0) -> Image.Image:
    """Return the place set upright, at least as high as OCR wants, with `pad` heights around."""
    width, height = _quad_size(quad)
    if pad:
        (ax, ay), (bx, by) = quad[0], quad[1]
        (dx, dy) = quad[3]
        along = ((bx - ax) / width * pad * height, (by - ay) / width * pad * height)
        down = ((dx - ax) * pad, (dy - ay) * pad)
        signs = ((-1, -1), (1, -1), (1, 1), (-1, 1))
        quad = tuple(
            (x + a * along[0] + d * down[0], y + a * along[1] + d * down[1])
            for (x, y), (a, d) in zip(quad, signs, strict=True)
        )
        width, height = width + 2 * pad * height, height * (1 + 2 * pad)
    scale = max(1.0, LINE_HEIGHT_PIXELS / min(width, height))
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    corners = (*quad[0], *quad[3], *quad[2], *quad[1])
    crop = picture.transform(size, Image.Transform.QUAD, corners, Image.Resampling.BICUBIC)
    if min(size) > 2 * LINE_HEIGHT_PIXELS:
        crop = crop.reduce(int(min(size) // LINE_HEIGHT_PIXELS))
    return crop


def _recognise(line: Image.Image) -> tuple[str, float]:
    import numpy as np

    pixels = np.ascontiguousarray(np.asarray(line)[:, :, ::-1])
    read = _load_engine()(pixels, use_det=False, use_cls=False, use_rec=True)
    return (str(read.txts[0]), float(read.scores[0])) if read.txts else ("", 0.0)


def _read_place(picture: Image.Image, quad: TextQuad) -> tuple[str, float]:
    if not _is_line(quad):
        return "", 0.0
    crop = _crop_quad(picture, quad)
    if _is_tall(quad):
        sideways = [_recognise(crop.rotate(degrees, expand=True)) for degrees in (90, 270)]
        return max((*sideways, _recognise(crop)), key=lambda found: found[1])
    first = _recognise(crop)
    if first[1] >= SURE_SCORE:
        return first
    return max(first, _recognise(_crop_quad(picture, quad, 0.12)), key=lambda found: found[1])


def _is_readable(text: str, score: float, quad: TextQuad) -> bool:
    """Return False for a guess: too unsure, or in a script that OCR does not know.

    It drops letters of unknown scripts and is sure of the rest, so a line with far fewer letters
    than its length has room for was not read. It knows only part of Greek.
    """
    letters = [letter for letter in text if not letter.isspace()]
    if not letters or score < (MIN_SHORT_SCORE if len(letters) <= SHORT_LETTERS else MIN_SCORE):
        return False
    width, height = _quad_size(quad)
    length = max(width, height) / min(width, height)
    if len(letters) < MIN_LETTER_DENSITY * length and (
        width > height or len(letters) > SHORT_LETTERS
    ):
        return False
    greek = sum(unicodedata.name(letter, "").startswith("GREEK") for letter in letters)
    return greek < 3 or 2 * greek < len(letters)
