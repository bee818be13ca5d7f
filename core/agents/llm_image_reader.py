"""Agent B by a language model: writes itself a prompt for the image, then reads it (CEDA A.3.2)."""

from __future__ import annotations

import io
from concurrent.futures import ThreadPoolExecutor

from PIL import Image

from core.agents.ask import LlmAgent, case_fields
from core.agents.heard import whole_sentences
from core.agents.refusal import is_refusal
from core.concurrency import Stop
from core.config import Settings
from core.documents.images import open_picture
from core.documents.library import file_bytes
from core.errors import ModelRefused, ReplyError
from core.models.call import Completion, Picture
from core.records import Case, Source

LONGEST_SIDE = 1568  # what Claude takes without scaling down itself; others take less or as much
MOST_BYTES = 3_500_000  # providers refuse images of 5 MB, which base64 makes of these


class LlmImageReader(LlmAgent):
    """Image reader with a language model that sees."""

    prompts = ("image_question", "image_reading")

    def describe(self, case: Case, image: Source, stop: Stop) -> str:
        """One conclusive paragraph on what the image shows that matters to the claim.

        Raises:
            ModelRefused: the model declined, or says that it sees no image.
            ReplyError: it said nothing.
        """
        about = f"image {image.id[:8]}"
        asking = self._asking(
            "image_question", case, stop, role="image reader", slot=f"{about} question"
        )
        name = asking.fenced("image name", image.name)
        with ThreadPoolExecutor(max_workers=1) as pool:  # while the model thinks of its question
            ready = pool.submit(picture_of, file_bytes(self._work.home, image.id), image.name)
            question = asking.say(asking.whole({**case_fields(asking, case), "image_name": name}))
            picture = ready.result()
        asking = self._asking(
            "image_reading", case, stop, role="image reader", slot=f"{about} reading"
        )
        prompt = asking.fenced("image prompt", _usable(question))
        messages = asking.whole({"image_prompt": prompt, "image_name": name}, (picture,))
        seen = asking.say(messages)
        text = " ".join(_usable(seen).split())
        return whole_sentences(text, case.language) if seen.finish == "length" else text


def picture_of(data: bytes, name: str) -> Picture:
    """The image upright, on white, at most `LONGEST_SIDE` pixels long, without its metadata.

    Photographs know where they were taken; a provider need not.
    """
    with Image.open(io.BytesIO(data)) as stored:
        is_photograph = stored.format == "JPEG"
    image = open_picture(name, data, Settings().megapixels).image
    image.thumbnail((LONGEST_SIDE, LONGEST_SIDE), Image.Resampling.LANCZOS)
    if not is_photograph:
        out = io.BytesIO()
        image.save(out, "PNG")
        if out.tell() <= MOST_BYTES:
            return Picture("image/png", out.getvalue())
    out = io.BytesIO()
    image.save(out, "JPEG", quality=90)
    return Picture("image/jpeg", out.getvalue())


def _usable(said: Completion) -> str:
    if not said.text.strip():
        raise ReplyError("Expected a text, found an empty reply.", reply=said.text)
    if is_refusal(said.text):
        raise ModelRefused("It declined to describe the image.", reply=said.text)
    return said.text.strip()
