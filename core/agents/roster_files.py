"""A roster as a file: readable JSON with a version, read strictly, with no key in it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from core.agents.sheet_rules import check_sheet, looks_like_a_key, wrong
from core.errors import InputError
from core.seats import PANEL, DebaterSeat, RosterSheet, Seat

VERSION = 1
MARK = "counterpoint_roster"
MOST_BYTES = 100_000
MOST_WHOLE = 10**12
SUFFIX = ".roster.json"
BUILT_IN_SEAT = "built-in"
ROLES = (
    "retriever",
    "segmenter",
    "tool_picker",
    "reflector",
    "image_reader",
    "context_writer",
    "judge",
    "span_extractor",
    "span_adjudicator",
)
LATER = ("tool_picker", "reflector")  # roles that files from before do not name
TOP = (MARK, "name", "words", "prompts", "debaters", *ROLES)
NEEDED = tuple(name for name in TOP if name not in LATER)
PANEL_FIELDS = ("span_panel", "panel_sees_evidence")  # in files of rosters that have a panel
TEXTS = ("model", "api_base", "key_name", "reader")
NUMBERS = ("temperature", "price_in", "price_out")
WHOLE = ("max_tokens", "window", "seconds")
# Words in a field's name that say that its value is a secret.
SECRET = ("key", "token", "secret", "password", "credential", "authorization", "header")
ALWAYS_SAID = ("model", "temperature", "max_tokens")
ANOTHER_VERSION = (
    "This roster was written for other prompts ({theirs}); here they are {ours}. It works, and its "
    "agents may answer differently."
)


@dataclass(frozen=True)
class ReadRoster:
    """A roster from a file; `notice` is empty or says what differs here."""

    sheet: RosterSheet
    notice: str = ""


def roster_file(sheet: RosterSheet, prompts: str = "") -> bytes:
    """The sheet as a file's bytes; `prompts` is the digest of the prompts in force.

    Raises:
        InputError: the sheet breaks a rule; what could not be read back is not written.
    """
    check_sheet(sheet)
    body: dict[str, Any] = {MARK: VERSION, "name": sheet.name, "words": sheet.words}
    body["prompts"] = sheet.prompts or prompts
    body["debaters"] = [{"name": d.name, "seat": _written(d.seat)} for d in sheet.debaters]
    body |= {role: _written(getattr(sheet, role)) for role in ROLES}
    if sheet.span_panel:
        body["span_panel"] = [_written(seat) for seat in sheet.span_panel]
        body["panel_sees_evidence"] = sheet.panel_sees_evidence
    return (json.dumps(body, ensure_ascii=False, indent=2) + "\n").encode()


def read_roster(data: bytes, prompts: str = "") -> ReadRoster:
    """The roster in a file; `prompts` is the digest of the prompts in force here.

    Raises:
        InputError: it is no roster file, or one that breaks a rule; the message names the field.
    """
    body = _object("file", _parsed(data), (*TOP, *PANEL_FIELDS), needed=NEEDED)
    if body[MARK] != VERSION or isinstance(body[MARK], bool):
        found = str(body[MARK]) if body[MARK] in range(1, 1000) else _kind(body[MARK])
        raise wrong(MARK, f"version {VERSION}", f"{found}; export it again from a like version")
    texts = {name: _text(name, body[name]) for name in ("name", "words", "prompts")}
    seats = {role: _seat(role, body.get(role, BUILT_IN_SEAT)) for role in ROLES}
    given: dict[str, Any] = {**seats, **texts, **_panel(body)}
    sheet = RosterSheet(debaters=_debaters(body["debaters"]), **given)
    check_sheet(sheet)
    differs = bool(prompts and sheet.prompts and sheet.prompts != prompts)
    notice = ANOTHER_VERSION.format(theirs=sheet.prompts, ours=prompts) if differs else ""
    return ReadRoster(sheet, notice)


def _written(seat: Seat) -> object:
    if seat == Seat():
        return BUILT_IN_SEAT
    usual = Seat()
    told = {item.name: getattr(seat, item.name) for item in fields(seat)}
    return {
        name: value
        for name, value in told.items()
        if value != getattr(usual, name) or (seat.model and name in ALWAYS_SAID)
    }


def _parsed(data: bytes) -> object:
    if len(data) > MOST_BYTES:
        raise wrong("file", f"at most {MOST_BYTES:,} bytes", f"{len(data):,}")
    try:
        parsed: object = json.loads(
            data.decode("utf-8-sig"), object_pairs_hook=_once, parse_constant=_no_constant
        )
    except (ValueError, RecursionError) as error:
        why = error.msg if isinstance(error, json.JSONDecodeError) else "it is no JSON in UTF-8"
        raise wrong("file", "a roster exported from here", f"something else ({why})") from None
    return parsed


def _once(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    names = [name for name, _ in pairs]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise wrong(_shown(twice), "each field once", "it twice")
    return dict(pairs)


def _no_constant(name: str) -> object:
    raise wrong("file", "plain numbers", name)


def _object(
    where: str, value: object, allowed: Sequence[str], needed: Sequence[str]
) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise wrong(where, "an object with fields", _kind(value))
    for name in value:
        if name in allowed:
            continue
        if any(word in name.casefold() for word in SECRET):
            raise InputError(
                f"Roster, {where}: expected no key in a roster file, found the field "
                f"“{_shown(name)}”; take it out (key_name says under which name a key is looked "
                "for)."
            )
        known = ", ".join(allowed)
        raise wrong(where, f"no fields but {known}", f"“{_shown(name)}”")
    missing = next((name for name in needed if name not in value), None)
    if missing is not None:
        raise wrong(where, f"the field {missing}", "none")
    return value


def _debaters(value: object) -> tuple[DebaterSeat, ...]:
    if not isinstance(value, list):
        raise wrong("debaters", "a list", _kind(value))
    found: list[DebaterSeat] = []
    for number, item in enumerate(value, 1):
        where = f"debater {number}"
        body = _object(where, item, ("name", "seat"), ("name", "seat"))
        name = _text(f"{where}, name", body["name"])
        found.append(DebaterSeat(name, _seat(where, body["seat"])))
    return tuple(found)


def _panel(body: Mapping[str, object]) -> dict[str, Any]:
    """The panel's seats and what they see; nothing where the file has no panel."""
    seats, sees = body.get("span_panel", []), body.get("panel_sees_evidence", True)
    if not isinstance(seats, list):
        raise wrong("span_panel", "a list", _kind(seats))
    if not isinstance(sees, bool):
        raise wrong("panel_sees_evidence", "true or false", _kind(sees))
    panel = tuple(_seat(f"{PANEL}{number}", item) for number, item in enumerate(seats, 1))
    return {"span_panel": panel, "panel_sees_evidence": sees}


def _seat(where: str, value: object) -> Seat:
    if value == BUILT_IN_SEAT:
        return Seat()
    if not isinstance(value, dict):
        raise wrong(where, f"“{BUILT_IN_SEAT}” or an object with a model", _kind(value))
    body = _object(where, value, (*TEXTS, *NUMBERS, *WHOLE), ())
    given: dict[str, Any] = {}
    for name, item in body.items():
        field = f"{where}, {name}"
        if name in TEXTS:
            given[name] = _text(field, item)
        elif name in WHOLE:
            given[name] = _whole(field, item)
        elif item is not None or name == "temperature":
            given[name] = _number(field, item)
    return Seat(**given)


def _text(field: str, value: object) -> str:
    if not isinstance(value, str):
        raise wrong(field, "text", _kind(value))
    try:
        value.encode()
    except UnicodeEncodeError:
        raise wrong(field, "text", "half a character (a lone surrogate)") from None
    return value


def _whole(field: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise wrong(field, "a whole number", _kind(value))
    if abs(value) > MOST_WHOLE:
        raise wrong(field, "a whole number within bounds", "one far beyond them")
    return value


def _number(field: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise wrong(field, "a number", _kind(value))
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise wrong(field, "a number that can be", "one beyond all bounds")
    return number


def _kind(value: object) -> str:
    """What was found, by its kind: the value itself may be a key."""
    kinds = {dict: "an object", list: "a list", str: "a text", bool: "true or false"}
    return "nothing" if value is None else kinds.get(type(value), "a number")


def _shown(name: str) -> str:
    """A field's name as a message may show it."""
    if looks_like_a_key(name):
        return "…"
    return "".join(char if char.isprintable() else "?" for char in name)[:40]
