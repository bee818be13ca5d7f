"""The roster that a command asks for: one model, a roster's name, or a roster's file."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from core.agents.roster_file import MOST_BYTES, ReadRoster, read_roster
from core.agents.rosters import SHIPPED, one_model, require_filled_in, sheet_named
from core.agents.sheet_rules import check_address, check_sheet, looks_like_a_key
from core.errors import InputError
from core.models.call import provider_of
from core.store import open_store

FILE_SUFFIX = ".json"


def chosen_roster(
    home: Path, roster: str, model: str = "", api_base: str = "", prompts: str = ""
) -> ReadRoster:
    """The sheet of that roster, or of `model` for every speaking role; nothing is stored.

    A roster that ends in .json or has a slash is a file, else a name. `prompts` is the digest of
    the prompts in force: a notice says when a file was written for others.

    Raises:
        InputError: there is no such roster, or its sheet or file breaks a rule.
    """
    found = _of_model(model, api_base) if model else _named(home, roster, prompts)
    require_filled_in(found.sheet)
    for role, seat in found.sheet.seats():
        where = "--model" if model else f"Roster, {role}, model"
        if seat.model and provider_of(seat) is None:
            raise InputError(
                f"{where}: expected a model's name as provider/model, such as openai/gpt-4o-mini "
                f"or ollama_chat/llama3.1, found “{seat.model}”. A server of your own also needs "
                "its address (--api-base)."
            )
    return found


def _of_model(model: str, api_base: str) -> ReadRoster:
    if looks_like_a_key(model):
        raise InputError("--model: expected a model's name, found what looks like a key.")
    if api_base:
        check_address("--api-base", api_base)
    sheet = one_model(model, api_base)
    check_sheet(sheet)
    return ReadRoster(sheet)


def _named(home: Path, roster: str, prompts: str) -> ReadRoster:
    if roster in SHIPPED:
        return ReadRoster(SHIPPED[roster])
    if roster.endswith(FILE_SUFFIX) or os.sep in roster:
        return _under_own_name(read_roster(_bytes(Path(roster)), prompts))
    if not home.is_dir():
        raise InputError(f"Expected a roster of {', '.join(SHIPPED)}, or a file; found “{roster}”.")
    with open_store(home) as store:
        return ReadRoster(sheet_named(roster, store))


def _under_own_name(found: ReadRoster) -> ReadRoster:
    """A file that calls itself as one of ours would pass for it on every page."""
    name = found.sheet.name
    if name not in SHIPPED or found.sheet == SHIPPED[name]:
        return found
    return replace(found, sheet=replace(found.sheet, name=f"{name} (file)"))


def _bytes(path: Path) -> bytes:
    try:
        if path.exists() and not path.is_file():
            raise InputError(f"Expected a roster's file at {path}, found a folder or a device.")
        with path.open("rb") as stream:
            return stream.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(f"Expected a roster's file at {path}, found: {why}.") from error
