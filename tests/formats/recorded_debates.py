"""Debates of our own writing in the layout in which MAD's were recorded."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from typing import Any

SOURCE = "他把门带上了。"
BASE = "He brought the door along."
BETTER = "He pulled the door shut."


def message(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}


def reply(prefers: str, side: str = "", reason: str = "", translation: str = "") -> str:
    """A moderator's reply as it was recorded: a literal of Python's, not JSON."""
    return str(
        {
            "Whether there is a preference": prefers,
            "Supported Side": side,
            "Reason": reason,
            "Correct Translation": translation,
        }
    )


OPEN = reply("No", "", "Both are fluent, and it's close.")
CLEAR = reply("Yes", "Negative", "A door isn't carried.", BETTER)


def debate(
    first: Sequence[str] = (f"I stand by it: {BASE}", "Yes, I agree. You are right."),
    second: Sequence[str] = ("I disagree with you. The door is shut.", "I do not agree at all."),
    moderator: Sequence[str] = (OPEN, CLEAR),
    judge: str = "",
    **changed: Any,
) -> dict[str, Any]:
    """One debate; the first debater's opening is the translation that is argued about."""
    players: dict[str, Any] = {
        "Affirmative side": _player("You argue first.", [BASE, *first]),
        "Negative side": _player("You argue second.", second),
        "Moderator": _player("You moderate.", moderator),
    }
    if judge:
        players["Judge"] = _player("You judge.", ["First: one. Second: another.", judge])
    return {
        "model_name": "tiny-1",
        "temperature": 0,
        "num_players": 3,
        "source": SOURCE,
        "correct reference": BETTER,
        "incorrect reference": BASE,
        "base translation": BASE,
        "debate translation": BETTER,
        "reason": "A door is not carried.",
        "players": players,
    } | changed


def _player(system: str, said: Sequence[str]) -> list[dict[str, str]]:
    told = [message("system", system)]
    for words in said:
        told += [message("user", "Your turn."), message("assistant", words)]
    return told


def archive(files: Mapping[str, Any]) -> bytes:
    """A gzipped tar archive with these as JSON files, and a folder."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as packed:
        folder = tarfile.TarInfo("debates")
        folder.type = tarfile.DIRTYPE
        packed.addfile(folder)
        for name, value in files.items():
            body = value if isinstance(value, bytes) else json.dumps(value).encode()
            member = tarfile.TarInfo(f"debates/{name}")
            member.size = len(body)
            packed.addfile(member, io.BytesIO(body))
    return gzip.compress(out.getvalue())
