"""Draw the charts of the reports as PNG pictures, with a font that comes with reportlab."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from tests.corpora.loader import Chart

WIDTH, HEIGHT = 1000, 560
LEFT, TOP, RIGHT, BOTTOM = 110, 90, 960, 490
INK, GREY, FILL = "#222222", "#bbbbbb", "#4a7ba6"


def draw_chart(chart: Chart) -> bytes:
    """Return the chart as a PNG picture; a caption the font cannot write stays outside it."""
    image = Image.new("RGB", (WIDTH, HEIGHT), "white")
    draw = ImageDraw.Draw(image)
    if all(ord(letter) < 256 or letter in "–—’₂" for letter in chart.title + chart.unit):
        draw.text((LEFT, 22), chart.title, INK, _font(24))
        draw.text((LEFT, 56), chart.unit, INK, _font(18))
    top = _axis_top(chart.values)
    _draw_axis(draw, top)
    step = (RIGHT - LEFT) / len(chart.values)
    points = [
        (LEFT + step * (place + 0.5), BOTTOM - (BOTTOM - TOP) * value / top)
        for place, value in enumerate(chart.values)
    ]
    if chart.kind == "line":
        draw.line(points, FILL, 4)
    for (x, y), label, value in zip(points, chart.labels, chart.values, strict=True):
        if chart.kind == "bar":
            draw.rectangle((x - step * 0.3, y, x + step * 0.3, BOTTOM), FILL)
        else:
            draw.ellipse((x - 6, y - 6, x + 6, y + 6), FILL)
        draw.text((x, BOTTOM + 12), label, INK, _font(17), anchor="ma")
        if chart.printed_values:
            draw.text((x, y - 10), f"{value:,g}", INK, _font(18), anchor="mb")
    written = io.BytesIO()
    image.save(written, "PNG")
    return written.getvalue()


def _draw_axis(draw: ImageDraw.ImageDraw, top: float) -> None:
    for part in range(5):
        y = BOTTOM - (BOTTOM - TOP) * part / 4
        draw.line((LEFT, y, RIGHT, y), GREY, 1)
        draw.text((LEFT - 12, y), f"{top * part / 4:,g}", INK, _font(16), anchor="rm")
    draw.line((LEFT, TOP, LEFT, BOTTOM), INK, 2)


def _axis_top(values: Sequence[float]) -> float:
    """Return a round number a little above the largest value."""
    top = 1.0
    while top < max(values):
        top *= 10
    return next(top * part for part in (0.2, 0.4, 0.6, 0.8, 1.0, 1.2) if top * part >= max(values))


def _font(size: int) -> ImageFont.FreeTypeFont:
    import reportlab

    return ImageFont.truetype(Path(reportlab.__file__).parent / "fonts" / "Vera.ttf", size)
