"""What a model said of an image, as passages: every debater may then quote it like any source.

The passages belong to a source of their own, `IMAGE#seen`, whose text is the description, so that
quotes of what was seen are never taken for words that stand in the image.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from core.events import ImageDescribed
from core.evidence.segment import sentences
from core.records import Passage

SEEN = "#seen"


def described_passages(
    images: Iterable[ImageDescribed], language: str, by_ocr: str
) -> list[Passage]:
    """A passage for each sentence of each description that is not OCR's (`by_ocr` is its agent)."""
    found: list[Passage] = []
    for image in images:
        if image.agent == by_ocr or not image.readable:
            continue
        for number, item in enumerate(sentences(image.text, language)):
            found.append(
                Passage(
                    id=f"{image.source_id}{SEEN}:{number}",
                    source_id=f"{image.source_id}{SEEN}",
                    source=f"{image.name} (as {image.agent} sees it)",
                    is_image=True,
                    page=None,
                    start=item.start,
                    end=item.end,
                    text=image.text[item.start : item.end],
                    score=0.0,
                )
            )
    return found


def described_texts(images: Mapping[str, ImageDescribed]) -> dict[str, str]:
    """The text of every description under its source's id."""
    return {f"{i}{SEEN}": event.text for i, event in images.items()}
