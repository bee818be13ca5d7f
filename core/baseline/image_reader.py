"""Agent B, built in: says what stands written in an image; what it cannot read it says so."""

from __future__ import annotations

from core.concurrency import Stop
from core.records import Case, Source

LEAST_LETTERS = 3
RULE = """Reads the text in the image by OCR (RapidOCR), pairs the values of charts and tables
with their labels by their places, and reports the lines as one paragraph. It sees no objects,
colours or shapes: an image without readable text is not judged."""


class OcrImageReader:
    """Built-in image reader: text in images only."""

    name = "OCR image reader"
    built_in = True
    rule = RULE

    def describe(self, case: Case, image: Source, stop: Stop) -> str:
        """The lines that were read, or an empty text."""
        if sum(letter.isalnum() for letter in image.text) < LEAST_LETTERS:
            return ""
        lines = [line.strip() for line in image.text.splitlines() if line.strip()]
        return f"Written in {image.name}: " + "; ".join(lines) + "."
