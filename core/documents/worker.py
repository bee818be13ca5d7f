"""The child process: reads or draws one file, then ends. `isolation` starts it.

On stdin comes one line of JSON, then the file's bytes; then stdin stays open, and its end means
that the parent is gone. On stdout go lines of JSON: progress, and one answer.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, BinaryIO

from core.documents.request import shown
from core.errors import InputError

# What is kept back from the parent's time limit to wind up slow reading with a remark.
WIND_UP = 0.85
LONGEST_REASON = 120

Answer = dict[str, Any]
Say = Callable[[Answer], None]


def main() -> None:
    """Answer one request."""
    say = _say_on(_own_stdout())
    header = json.loads(sys.stdin.buffer.readline())
    data = sys.stdin.buffer.read(header["size"])
    if len(data) < header["size"]:  # the parent went away in the middle
        os._exit(1)
    threading.Thread(target=_end_with_parent, args=(sys.stdin.buffer,), daemon=True).start()
    _limit(header["memory"], header["seconds"])
    try:
        say(COMMANDS[header["command"]](header, data, say))
    except InputError as error:
        say({"problem": str(error)})
    except MemoryError:
        say({"problem": header["too_large"]})
    except Exception as error:  # noqa: BLE001 - the libraries' errors on damaged files are endless
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:LONGEST_REASON]
        say({"problem": f"{shown(header['name'])} cannot be shown as a picture ({reason})."})
    # Not sys.exit: PDFium and onnxruntime may hang or crash while they are taken down.
    os._exit(0)


def _own_stdout() -> BinaryIO:
    """A private copy of stdout; what libraries print goes where stderr goes."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return answers


def _say_on(stream: BinaryIO) -> Say:
    def say(answer: Answer) -> None:
        stream.write(json.dumps(answer, default=vars).encode() + b"\n")
        stream.flush()

    return say


def _end_with_parent(stream: BinaryIO) -> None:
    stream.read()
    os._exit(1)


def _limit(memory: int, seconds: float) -> None:
    """Bound address space and processor time where the platform can."""
    try:
        import resource
    except ImportError:  # Windows
        return
    cores = os.cpu_count() or 1
    processor = int(seconds * cores) + 10
    for what, value in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_CPU, processor),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(what)
        allowed = value if hard == resource.RLIM_INFINITY else min(value, hard)
        try:
            resource.setrlimit(what, (allowed, hard))
        except (ValueError, OSError):  # macOS refuses some of them
            continue


def _read(header: Answer, data: bytes, say: Say) -> Answer:
    from core.config import Settings
    from core.documents.readers import read
    from core.documents.request import ReadRequest

    request = ReadRequest(
        source_id=header["source_id"],
        name=header["name"],
        data=data,
        kind=header["kind"],
        settings=Settings(**header["settings"]),
        report=lambda done, total, note: say({"progress": [done, total, note]}),
        ends_at=time.monotonic() + WIND_UP * header["seconds"],
    )
    return {"source": read(request)}


def _picture(header: Answer, data: bytes, _say: Say) -> Answer:
    from core.documents.rendering import picture_of
    from core.records import Box

    picture = picture_of(
        header["name"],
        data,
        header["kind"],
        header["page"],
        [Box(**box) for box in header["boxes"]],
        header["width"],
        header["megapixels"],
    )
    return {"picture": base64.b64encode(picture).decode()}


def _upright(header: Answer, data: bytes, _say: Say) -> Answer:
    from core.documents.rendering import upright_of

    picture, media_type, width, height = upright_of(header["name"], data, header["megapixels"])
    encoded = base64.b64encode(picture).decode()
    return {"picture": encoded, "media_type": media_type, "width": width, "height": height}


def _places(header: Answer, data: bytes, _say: Say) -> Answer:
    from core.documents.rendering import places_of

    return {"boxes": places_of(header["name"], data, header["page"], header["quote"])}


COMMANDS: dict[str, Callable[[Answer, bytes, Say], Answer]] = {
    "read": _read,
    "picture": _picture,
    "places": _places,
    "upright": _upright,
}
