"""Evidence is shown where it stands."""

from __future__ import annotations

import io

import pytest
from PIL import Image
from reportlab.pdfgen.canvas import Canvas

from core.documents.rendering import (
    crop_around_boxes,
    find_quote_boxes,
    find_source_boxes,
    load_upright_image,
    render_page,
    search_page,
)
from core.runtime.errors import InputError
from core.schema.records import BoundingBox, BoxedText, Source
from tests.documents.builders import LATIN, encrypted, font, needs_noto, pdf, png, write_lines

LINES = [
    "The museum of the harbour was founded in 1904 and has a classi-",
    "fication of its 1,250 ships.",
]


def opened(picture: bytes) -> Image.Image:
    return Image.open(io.BytesIO(picture)).convert("RGB")


def test_pages_are_drawn_with_their_boxes_marked() -> None:
    data = pdf("One", "Two")
    plain = opened(render_page(data, "pdf", 2, []))
    marked = opened(render_page(data, "pdf", 2, [BoundingBox(0.5, 0.5, 0.6, 0.6)], width=500))
    assert plain.size == (1000, 1416)
    assert marked.size == (500, 708)
    red, green, blue = marked.getpixel((275, 390))  # type: ignore[misc]
    assert (red, blue < 220) == (255, True)
    assert blue < green
    assert marked.getpixel((100, 600)) == (255, 255, 255)


def test_the_strip_around_a_quote_is_the_page_at_that_height() -> None:
    data = pdf("One", "Two")
    box = BoundingBox(0.5, 0.5, 0.6, 0.52)
    page = render_page(data, "pdf", 1, [box])
    strip = crop_around_boxes(page, [box])
    assert strip is not None
    whole, part = opened(page), opened(strip)
    assert part.size == (1000, 348)
    assert part.getpixel((550, 174)) == whole.getpixel((550, 722))
    assert crop_around_boxes(page, []) is None
    assert (
        crop_around_boxes(
            page, [box, BoundingBox(0.1, 0.05, 0.2, 0.1), BoundingBox(0.1, 0.9, 0.2, 0.95)]
        )
        is None
    )


def test_images_are_drawn_too() -> None:
    picture = opened(
        render_page(png(Image.new("RGB", (50, 100), "blue")), "image", 1, [], width=200)
    )
    assert picture.size == (200, 400)
    assert picture.getpixel((100, 200)) == (0, 0, 255)


@pytest.mark.parametrize(
    ("data", "page", "words"),
    [
        (pdf("One"), 2, "Expected a page from 1 to 1, found 2"),
        (pdf("One"), 0, "Expected a page from 1 to 1, found 0"),
        (encrypted("secret"), 1, "is protected by a password"),
        (b"no pdf", 1, "cannot be shown as a picture"),
    ],
)
def test_what_cannot_be_drawn_is_a_sentence(data: bytes, page: int, words: str) -> None:
    with pytest.raises(InputError, match=words):
        render_page(data, "pdf", page, [])


def test_other_files_have_no_pages_to_draw() -> None:
    with pytest.raises(InputError, match="Only PDF pages and images"):
        render_page(b"text", "text", 1, [])


def test_quotes_are_found_line_by_line() -> None:
    boxes = find_quote_boxes(pdf("\n".join(LINES)), 1, "has a classification of its 1,250 ships")
    first, second = boxes
    assert 0.4 < first.left < first.right < 0.8
    assert second.left == pytest.approx(60 / 595, abs=0.01)
    assert first.bottom <= second.top
    assert first.top == pytest.approx(1 - 790 / 842, abs=0.02)


@needs_noto
@pytest.mark.parametrize(
    ("quote", "found"),
    [
        ("an official finding", 1),
        ("an oﬃcial ﬁnding", 1),
        ("AN  OFFICIAL\nFINDING", 1),
        ("well-known", 1),
        ("wellknown", 1),
        ("“quoted”", 1),
        ('"quoted"', 1),
        ("an offical findig", 1),
        ("something that is not there at all", 0),
        ("", 0),
        ("zzz", 0),
    ],
)
def test_typography_and_small_slips_do_not_matter(quote: str, found: int) -> None:
    def draw(canvas: Canvas) -> None:
        font(canvas, "NotoSans", LATIN)
        write_lines(canvas, ["It is an official finding, well-known and “quoted” often."])

    assert len(search_page("a.pdf", pdf(draw), page=1, quote=quote)["boxes"]) == found


def test_boxes_follow_a_turned_page() -> None:
    def draw(canvas: Canvas) -> None:
        canvas.setPageRotation(90)
        canvas.drawString(60, 300, "Turned words")

    (box,) = search_page("a.pdf", pdf(draw), page=1, quote="Turned words")["boxes"]
    assert box.bottom - box.top > box.right - box.left
    assert box.left == pytest.approx(300 / 595, abs=0.02)
    assert box.top == pytest.approx(60 / 842, abs=0.02)


def test_boxes_of_a_stretch_are_those_that_it_touches() -> None:
    boxes = tuple(
        BoxedText(start, start + 4, page, BoundingBox(0, 0, 1, start / 10), 0.9)
        for start, page in ((0, 1), (5, 1), (10, 2))
    )
    source = Source("x", "a.png", "image", "four five more", boxes=boxes)
    assert find_source_boxes(source, 0, 4) == [(1, boxes[0].box)]
    assert find_source_boxes(source, 3, 6) == [(1, boxes[0].box), (1, boxes[1].box)]
    assert find_source_boxes(source, 9, 99) == [(2, boxes[2].box)]
    assert find_source_boxes(source, 4, 5) == []


def test_an_image_to_look_at_closely_is_upright_and_carries_nothing_else() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by a quarter
    exif[0x010E] = "taken at home"
    stream = io.BytesIO()
    Image.linear_gradient("L").resize((400, 200)).convert("RGB").save(stream, "JPEG", exif=exif)
    shown = load_upright_image(stream.getvalue())
    assert (shown.media_type, shown.width, shown.height) == ("image/png", 200, 400)
    with Image.open(io.BytesIO(shown.data)) as image:
        assert (image.format, image.size) == ("PNG", (200, 400))
        assert not image.getexif()
    assert b"taken at home" not in shown.data


def test_a_very_large_image_is_made_smaller_and_keeps_its_shape() -> None:
    shown = load_upright_image(png(Image.new("RGB", (7000, 3500), "blue")))
    assert shown.media_type == "image/jpeg"
    assert shown.width * shown.height <= 16_000_000
    assert shown.width / shown.height == pytest.approx(2, abs=0.001)
    assert opened(shown.data).size == (shown.width, shown.height)


@pytest.mark.parametrize("data", [b"<svg xmlns='http://www.w3.org/2000/svg'/>", b"GIF89a", b""])
def test_what_is_no_png_jpeg_or_webp_is_never_shown(data: bytes) -> None:
    with pytest.raises(InputError):
        load_upright_image(data)
