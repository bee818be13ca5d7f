"""Pictures are opened upright, on white, within limits; what is in them is read with places."""

from __future__ import annotations

import io

import pytest
from PIL import Image, ImageDraw

from core.documents import images
from core.documents.images import MAX_STRIPS, describe_ocr_gaps, open_picture, read_image
from core.documents.readers import read_file
from core.documents.source_builder import PictureText, TextBox
from core.runtime.errors import InputError
from core.schema.records import Source
from tests.documents.builders import (
    CHINESE,
    bar_chart,
    check_offsets,
    letters,
    needs_noto,
    page_picture,
    photograph,
    png,
    png_that_claims,
    request,
    sideways_chart,
    table_picture,
)

MEGAPIXELS = 40


def read_png(image: Image.Image) -> Source:
    source = read_image(request("a.png", png(image), "image"))
    check_offsets(source)
    return source


def lines_of(source: Source) -> list[str]:
    return [line for line in source.text.splitlines() if line]


def saved(image: Image.Image, kind: str, **options: object) -> bytes:
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return stream.getvalue()


def opened(data: bytes) -> Image.Image:
    return open_picture("a.png", data, MEGAPIXELS)[0]


def test_transparent_pictures_lie_on_white() -> None:
    assert opened(png(Image.new("RGBA", (2, 2), (255, 0, 0, 0)))).getpixel((0, 0)) == (255,) * 3
    palette = Image.new("P", (2, 2), 0)
    palette.putpalette([0, 0, 0] * 256)
    assert opened(png(palette, transparency=0)).getpixel((0, 0)) == (255,) * 3


def test_deep_greys_are_scaled_and_not_clipped() -> None:
    grey = opened(png(Image.new("I;16", (2, 2), 30000))).getpixel((0, 0))
    assert grey == (30000 // 256,) * 3


def test_pictures_stand_as_the_camera_was_held() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    data = saved(Image.new("RGB", (40, 20), "red"), "JPEG", exif=exif)
    assert opened(data).size == (20, 40)


def test_of_moving_pictures_the_first_frame_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "_find_in", lambda _strip: [])
    frames = [Image.new("RGB", (20, 20), colour) for colour in ("red", "blue")]
    for kind in ("WEBP", "PNG"):
        data = saved(frames[0], kind, save_all=True, append_images=frames[1:])
        picture, count = open_picture("a", data, MEGAPIXELS)
        assert count == 2
        assert read_image(request("a", data, "image")).notes[0] == (
            "The picture is animated; only the first of its 2 frames was read."
        )
        red, _, blue = picture.getpixel((5, 5))  # type: ignore[misc]
        assert red > 200 > blue


def test_bombs_are_refused_before_they_are_decoded() -> None:
    bomb = png_that_claims(40_000, 30_000)
    assert len(bomb) < 200
    with pytest.raises(InputError, match=r"“b\.png” has 40,000 × 30,000 pixels \(1,200 megapix"):
        open_picture("b.png", bomb, MEGAPIXELS)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
def test_truncated_pictures_are_refused(kind: str, share: float) -> None:
    data = saved(photograph(200, 150), kind)
    with pytest.raises(InputError, match=r"“a\.png” (is damaged or cut off|could not be read)"):
        opened(data[: int(len(data) * share)])


@pytest.mark.parametrize("data", [b"", b"no picture", png_that_claims(100, 100)])
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(InputError, match=r"a\.png") as caught:
        opened(data)
    assert "\n" not in str(caught.value)


def test_remarks_on_what_ocr_could_not_do() -> None:
    item = TextBox("Việt Nam ơi", 0, 0, 10, 10)
    assert describe_ocr_gaps(PictureText((), 10, 10)) == ""
    assert "One place looks like text" in describe_ocr_gaps(PictureText((), 10, 10, unread=1))
    assert "3 places look like text but could not be read" in describe_ocr_gaps(
        PictureText((), 10, 10, unread=3)
    )
    assert "turned by 90°" in describe_ocr_gaps(PictureText((), 10, 10, turned=90))
    assert "Vietnamese" in describe_ocr_gaps(PictureText((item,), 10, 10))


@needs_noto
@pytest.mark.slow
@pytest.mark.parametrize(("width", "height", "size"), [(900, 600, 18), (480, 320, 11)])
def test_bar_charts_are_read_completely(width: int, height: int, size: int) -> None:
    source = read_png(bar_chart(width, height, size))
    lines = lines_of(source)
    assert lines[:5] == [
        title := "Visitors by region, 2023 (thousands)",
        f"{title}, North: 412",
        f"{title}, South: 287",
        f"{title}, East: 355",
        f"{title}, West: 198",
    ]
    assert lines[5].startswith("Axis: ")
    assert {"100", "200", "300", "400"} <= set(lines[5].removeprefix("Axis: ").split(", "))
    assert len(lines) == 6
    assert (source.width, source.height, source.notes) == (width, height, ())
    (value,) = [seen for seen in source.boxes if source.text[seen.start : seen.end] == "355"]
    assert 0.55 < value.box.left < value.box.right < 0.75
    assert value.box.bottom < 0.36
    assert value.score > 0.8


@needs_noto
@pytest.mark.slow
def test_horizontal_bars_are_read_completely() -> None:
    assert lines_of(read_png(sideways_chart(760, 480, 16))) == [
        "Share of energy by source",
        "Share of energy by source, Solar: 12.5%",
        "Share of energy by source, Wind power: 31.0%",
        "Share of energy by source, Hydro: 24.5%",
        "Share of energy by source, Natural gas: 18.0%",
        "Axis: 0, 10, 20, 30, 40",
    ]


@needs_noto
@pytest.mark.slow
def test_tables_in_pictures_become_rows_with_their_names() -> None:
    source = read_png(table_picture(560, 260, 15))
    assert lines_of(source) == [
        "Country Portugal, Capital: Lisbon; Population: 10.4 million",
        "Country Norway, Capital: Oslo; Population: 5.5 million",
        "Country Uruguay, Capital: Montevideo; Population: 3.4 million",
    ]
    names = [seen for seen in source.boxes if source.text[seen.start : seen.end] == "Capital"]
    assert len(names) == 3
    assert len({seen.box for seen in names}) == 1


@pytest.mark.slow
def test_photographs_without_text_give_none() -> None:
    source = read_png(photograph())
    assert source.text == ""
    assert source.notes[0] == "No text could be read in this picture."


@needs_noto
@pytest.mark.slow
def test_a_photo_of_a_page_held_sideways_is_turned_by_its_exif() -> None:
    upright = page_picture(["A museum of the sea", "with 1,250 exhibits"]).crop((0, 0, 900, 400))
    exif = Image.Exif()
    exif[0x0112] = 6
    data = saved(upright.rotate(90, expand=True), "JPEG", exif=exif)
    source = read_image(request("a.jpg", data, "image"))
    check_offsets(source)
    assert lines_of(source) == ["A museum of the sea with 1,250 exhibits"]
    assert (source.width, source.height, source.notes) == (900, 400, ())


@needs_noto
@pytest.mark.slow
def test_a_scan_that_lies_on_its_side_is_turned_and_its_boxes_turned_back() -> None:
    upright = page_picture(["A museum of the sea", "with 1,250 exhibits"]).crop((0, 0, 900, 400))
    source = read_png(upright.rotate(90, expand=True))
    assert source.text == "A museum of the sea with 1,250 exhibits"
    assert "turned by 90°" in source.notes[0]
    box = source.boxes[0].box
    assert box.right - box.left < 0.15 < 0.3 < box.bottom - box.top
    assert box.left > 0.3


@needs_noto
@pytest.mark.slow
def test_chinese_is_read_and_unknown_scripts_are_said_to_be_unread() -> None:
    chinese = page_picture(["2023年有五万人参观了博物馆"], CHINESE, 40).crop((0, 0, 1000, 300))
    assert read_png(chinese).text == "2023年有五万人参观了博物馆"
    russian = page_picture(["Музей посетили 50 тысяч человек"]).crop((0, 0, 1000, 300))
    source = read_png(russian)
    assert source.text == ""
    assert "could not be read (it reads Latin letters, Chinese and Japanese)" in source.notes[1]


@needs_noto
@pytest.mark.slow
def test_long_screenshots_are_read_strip_by_strip_and_no_line_twice() -> None:
    lines = [f"Line {number} of a page of news, in a long screenshot." for number in range(1, 9)]
    picture = Image.new("RGB", (800, 3000), "white")
    pen = ImageDraw.Draw(picture)
    for number, line in enumerate(lines):
        pen.text((40, 30 + 365 * number), line, "black", letters(16))
    assert lines_of(read_png(picture)) == lines


@pytest.mark.parametrize("turned", [0, 90, 180, 270])
def test_turned_looks_give_boxes_in_the_picture_as_it_is(turned: int) -> None:
    """A mark drawn into a picture is found again where it was, however the picture is turned."""
    picture = Image.new("L", (100, 200))
    picture.paste(255, (10, 20, 30, 60))
    upright = picture.rotate(-turned, expand=True)
    left, top, right, bottom = upright.getbbox() or (0, 0, 0, 0)
    item = TextBox("x", left, top, right, bottom)
    box = PictureText((item,), upright.width, upright.height, turned=turned).box(item)
    places = (box.left, box.top, box.right, box.bottom)
    assert places == pytest.approx((0.1, 0.1, 0.3, 0.3))


def test_whatever_goes_wrong_in_a_reader_is_one_sentence() -> None:
    with pytest.raises(InputError, match=r"“a\.png”") as caught:
        read_file(request("a.png", b"\x89PNG\r\n\x1a\n", "image"))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("width", "height", "strips"),
    [
        (1, 30_000, 0),
        (30_000, 3, 0),
        (20, 20_000, MAX_STRIPS),
        (100, 100_000, MAX_STRIPS),
        (900, 600, 1),
        (800, 3000, 2),
        (1000, 40_000, 24),
    ],
)
def test_text_is_sought_in_few_strips(
    width: int, height: int, strips: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sought: list[Image.Image] = []

    def find_in(strip: Image.Image) -> list[images.TextQuad]:
        sought.append(strip)
        return []

    monkeypatch.setattr(images, "_find_in", find_in)
    assert images.read_picture_text(Image.new("RGB", (width, height), "white")).items == ()
    assert len(sought) == strips


def test_a_ruled_line_is_not_read_as_text(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = ((0.0, 100.0), (9000.0, 100.0), (9000.0, 103.0), (0.0, 103.0))
    monkeypatch.setattr(images, "_find_in", lambda _strip: [rule])
    monkeypatch.setattr(images, "_recognise", lambda _line: pytest.fail("it was read"))
    found = images.read_picture_text(Image.new("RGB", (9000, 200), "white"))
    assert (found.items, found.unread) == ((), 1)
