"""Make the PDF and the chart beside this file: `python -m core.baseline.examples.make`.

Needs reportlab from requirements-dev.txt and Pillow.
"""

from __future__ import annotations

from pathlib import Path

from PIL import Image, ImageDraw, ImageFont
from reportlab.lib.pagesizes import A5
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.platypus import PageBreak, Paragraph, SimpleDocTemplate, Spacer

EXAMPLES_DIR = Path(__file__).parent
BRIDGE_PAGES = (
    (
        "The Halden Bridge",
        "The Halden Bridge carries the coast road across the mouth of the river Halde. It links "
        "the port of Sandvik with the old town.",
        "Work began in the spring of 1925. The bridge was opened to traffic on 14 May 1932, two "
        "years later than planned.",
    ),
    (
        "Figures",
        "The bridge is 412 m long and 18 m wide. Its two towers are 61 m high and were built of "
        "local granite.",
        "About 9,400 vehicles cross it on a working day. Tolls were abolished in 1971.",
    ),
)
VISITORS_BY_REGION = {"North": 412, "South": 287, "East": 355, "West": 198}


def make_pdf(path: Path) -> None:
    """Write a fact sheet of two pages."""
    styles = getSampleStyleSheet()
    story: list[object] = []
    for title, *paragraphs in BRIDGE_PAGES:
        story.append(Paragraph(title, styles["Title"]))
        for paragraph in paragraphs:
            story += [Paragraph(paragraph, styles["BodyText"]), Spacer(1, 8)]
        story.append(PageBreak())
    document = SimpleDocTemplate(str(path), pagesize=A5, title="The Halden Bridge", invariant=1)
    document.build(story[:-1])


def make_chart(path: Path) -> None:
    """Write a bar chart with its values above the bars."""
    width, height = 900, 560
    image = Image.new("RGB", (width, height), "white")
    draw = ImageDraw.Draw(image)
    draw.text((60, 20), "Visitors by region, 2023 (thousands)", "black", ImageFont.load_default(30))
    base = height - 60
    for number, (region, value) in enumerate(VISITORS_BY_REGION.items()):
        left = 90 + number * 200
        top = base - value
        draw.rectangle((left, top, left + 120, base), "#3b6fa5")
        middle = left + 60
        draw.text((middle, top - 8), str(value), "black", ImageFont.load_default(24), anchor="mb")
        draw.text((middle, base + 10), region, "black", ImageFont.load_default(24), anchor="mt")
    draw.line((60, base, width - 40, base), "black", 2)
    image.save(path, optimize=True)


if __name__ == "__main__":
    make_pdf(EXAMPLES_DIR / "halden-bridge.pdf")
    make_chart(EXAMPLES_DIR / "visitors-by-region.png")
