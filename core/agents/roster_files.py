"""Rosters as files: readable JSON with a version, read strictly, within bounds, with no key in it.

Also tests the language models of a roster with one tiny call each; these calls go over the ledger
like any other.
"""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from core.llm.call import Asked, Call, Completion, Message, Picture
from core.llm.client import LiteLlm
from core.llm.failures import Patience
from core.llm.keys import Keys
from core.llm.limits import Caps
from core.llm.metering import Account, LedgerDesk, who_of
from core.runtime.concurrency import Stop, merged
from core.runtime.errors import InputError, ModelRefused, ReplyError, ReviewError, Stopped
from core.schema.records import ModelCall
from core.schema.rosters import (
    LONGEST_NAME,
    PANEL,
    PANEL_READERS,
    READERS,
    DebaterSeat,
    RosterSheet,
    Seat,
)
from core.store import open_store

LONGEST = {"name": LONGEST_NAME, "words": 600, "model": 200, "api_base": 300, "key_name": 100}
LONGEST_DEBATER = 40
DEBATERS = PANELISTS = (2, 8)
TEMPERATURE = (0.0, 2.0)
WHOLE = {"max_tokens": (1, 200_000), "window": (0, 20_000_000), "seconds": (1, 3600)}
LEAST_WINDOW = 512
HIGHEST_PRICE = 10_000.0
NAME_OF_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# How the keys of common providers begin, and a long run of mixed letters and digits.
KEY = re.compile(
    r"(?<![A-Za-z0-9])"
    r"((sk|pk|rk|xai|nvapi|pplx|gsk|hf|r8|gh[opsur]|github_pat|glpat)[-_][A-Za-z0-9_-]{12,}"
    r"|A[KS]IA[0-9A-Z]{12,}|AIza[0-9A-Za-z_-]{20,}|Bearer\s+\S{8,}|eyJ[A-Za-z0-9_-]{20,})"
)
LONG_WORD = re.compile(r"[A-Za-z0-9]{28,}")
DIGEST = re.compile(r"[0-9a-f]{0,64}")


def looks_like_a_key(text: str) -> bool:
    """True for text that holds what providers' keys look like; a model's name does not."""
    return bool(KEY.search(text)) or any(_is_random(word) for word in LONG_WORD.findall(text))


def _is_random(word: str) -> bool:
    kinds = (str.isdigit, str.isupper, str.islower)
    changes = sum(a.isdigit() != b.isdigit() for a, b in pairwise(word))
    return all(any(kind(char) for char in word) for kind in kinds) or changes >= 6


def check_sheet(sheet: RosterSheet) -> None:
    """Refuse a sheet that cannot be kept or run as it is.

    Raises InputError: it names the field, what was expected and what was found; never a key.
    """
    _check_text("name", sheet.name, LONGEST["name"])
    if not sheet.name or sheet.name != sheet.name.strip():
        raise wrong("name", "a name without spaces around it", f"“{sheet.name}”")
    _check_text("words", sheet.words, LONGEST["words"])
    if not DIGEST.fullmatch(sheet.prompts):
        raise wrong("prompts", "a digest (0 to 9, a to f) or an empty text", "something else")
    _debater_names(sheet)
    if len(sheet.span_panel) not in (0, *range(PANELISTS[0], PANELISTS[1] + 1)):
        low, high = PANELISTS
        raise wrong("span_panel", f"no seat, or {low} to {high}", f"{len(sheet.span_panel)}")
    for role, seat in sheet.seats():
        _check_seat(role, seat)


def wrong(field: str, expected: str, found: str) -> InputError:
    """The error of a field of a roster."""
    return InputError(f"Roster, {field}: expected {expected}, found {found}.")


def _check_text(field: str, text: str, most: int) -> None:
    if looks_like_a_key(text):
        raise wrong(
            field,
            "no key anywhere in a roster (key_name says under which name one is looked for)",
            "what looks like one; take it out",
        )
    if len(text) > most:
        raise wrong(field, f"at most {most} characters", f"{len(text)}")
    if not all(char.isprintable() for char in text):
        raise wrong(field, "one line of plain text", "characters that cannot be shown")


def _debater_names(sheet: RosterSheet) -> None:
    low, high = DEBATERS
    if not low <= len(sheet.debaters) <= high:
        raise wrong("debaters", f"{low} to {high} debaters", f"{len(sheet.debaters)}")
    seen: set[str] = set()
    for number, debater in enumerate(sheet.debaters, 1):
        field = f"debater {number}, name"
        _check_text(field, debater.name, LONGEST_DEBATER)
        if not debater.name.strip() or debater.name != debater.name.strip():
            raise wrong(field, "a name without spaces around it", f"“{debater.name}”")
        if debater.name.casefold() in seen:
            raise wrong(field, "a name that no other debater has", f"“{debater.name}” again")
        seen.add(debater.name.casefold())


def _check_seat(role: str, seat: Seat) -> None:
    is_open = role.startswith(PANEL) and not (seat.reader or seat.model)  # nobody would sit there
    known = _readers(role)
    if is_open or seat.reader not in ("", *known):
        readers = f"one of {', '.join(known)}" if known else "none"
        raise wrong(f"{role}, reader", readers, f"“{seat.reader[:40]}”")
    if seat.reader and seat.model:
        raise wrong(role, "either a model or a built-in reader", "both; leave one of them empty")
    for name in ("model", "api_base", "key_name"):
        _check_text(f"{role}, {name}", getattr(seat, name), LONGEST[name])
    if seat.is_built_in:
        if seat != Seat(reader=seat.reader):
            raise wrong(f"{role}, model", "a model's name beside its settings", "none")
        return
    if any(char.isspace() for char in seat.model):
        raise wrong(f"{role}, model", "a name like provider/model", f"“{seat.model}” with a space")
    if seat.api_base:
        check_address(f"Roster, {role}, api_base", seat.api_base)
    if seat.key_name and not NAME_OF_KEY.fullmatch(seat.key_name):
        found = "something else; never write the key itself"
        raise wrong(f"{role}, key_name", "a variable's name such as OPENAI_API_KEY", found)
    _numbers(role, seat)


def _readers(role: str) -> tuple[str, ...]:
    if role.startswith(PANEL):
        return PANEL_READERS
    return READERS if role.startswith("debater ") else ()


def _numbers(role: str, seat: Seat) -> None:
    low, high = TEMPERATURE
    if not low <= seat.temperature <= high:  # False for nan, too
        raise wrong(f"{role}, temperature", f"{low:g} to {high:g}", f"{seat.temperature:g}")
    for name, (least, most) in WHOLE.items():
        value = getattr(seat, name)
        if not least <= value <= most:
            raise wrong(f"{role}, {name}", f"{least:,} to {most:,}", f"{value:,}")
    if 0 < seat.window < LEAST_WINDOW:
        expected = f"0 (as litellm knows it) or at least {LEAST_WINDOW}"
        raise wrong(f"{role}, window", expected, f"{seat.window}")
    if (seat.price_in is None) != (seat.price_out is None):
        raise wrong(role, "both prices or none of price_in and price_out", "one of them")
    for name in ("price_in", "price_out"):
        price = getattr(seat, name)
        if price is not None and not (math.isfinite(price) and 0 <= price <= HIGHEST_PRICE):
            most_words = f"0 to {HIGHEST_PRICE:,.0f} US dollars for a million tokens"
            raise wrong(f"{role}, {name}", most_words, f"{price:g}")


def check_address(where: str, address: str) -> None:
    """Refuse what is no http address, or one that carries a user, a password or a query.

    Raises InputError: it is such a one; it begins with `where`.
    """
    expected = f"{where}: expected an address like http://127.0.0.1:8000/v1"
    if looks_like_a_key(address):
        raise InputError(f"{expected} without a key in it, found what looks like one; take it out.")
    try:
        parts = urlsplit(address)
        is_good_port = parts.port is None or parts.port > 0
    except ValueError:
        raise InputError(f"{expected}, found a broken one.") from None
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise InputError(
            f"{expected} without user, password or query (keys do not belong there), found one "
            "with them."
        )
    is_web = parts.scheme in ("http", "https") and parts.hostname and is_good_port
    is_plain = all(char.isprintable() and not char.isspace() for char in address)
    if not (is_web and is_plain):
        shown = "".join(char if char.isprintable() else "?" for char in address[:80])
        raise InputError(f"{expected}, found “{shown}”.")


Kind = Literal["speaks", "sees", "embeds"]

WORD = "Reply with the single word OK and nothing else. (Test {nonce})"
COLOUR = "Which colour is the square in the picture? Reply with one word. (Test {nonce})"
RED = ("red", "红", "紅", "rouge", "rojo", "rosso", "vermelho", "赤")
KINDS: dict[str, Kind] = {"retriever": "embeds", "image reader": "sees"}
PICTURE_PIXELS = 64
FEW_TOKENS = 32
AT_ONCE = 8
SHOWN = 40
# Somebody is waiting: one more attempt after what may pass, and no long pauses.
PATIENCE = Patience(tries=2, backoff=0.5, longest_wait=5.0, overall=2.0)


@dataclass(frozen=True)
class Probe:
    """What became of one role's test.

    Seats that share a model are asked once; `calls` stand with the first of their roles, so that
    a sum over all probes counts each call once.
    """

    role: str
    model: str
    works: bool
    words: str
    seconds: float
    calls: tuple[ModelCall, ...] = ()


@dataclass(frozen=True)
class _Group:
    kind: Kind
    seat: Seat
    roles: tuple[str, ...]


@dataclass(frozen=True)
class _Bench:
    keys: Keys
    home: Path
    account: Account
    caps: Caps
    clock: Callable[[], float]
    stop: Stop

    def desk(self) -> LedgerDesk:
        model = LiteLlm(self.keys, PATIENCE)
        return LedgerDesk(model, self.home, self.account, self.caps, self.clock)


def probe(
    sheet: RosterSheet,
    keys: Keys,
    stop: Stop,
    *,
    home: Path,
    account: Account,
    clock: Callable[[], float],
) -> Iterator[Probe]:
    """One result for every role that a model plays, in order of arrival.

    `account.run_id` must be new for each test: it goes into the prompts, so that no earlier reply
    answers for a model that is away. Raises Stopped: `stop` was set; what was under way is closed.
    """
    with open_store(home) as store:
        caps = Caps.of(store.projects.settings())
    bench = _Bench(keys, home, account, caps, clock, stop)
    streams = [_results(bench, group) for group in _groups(sheet)]
    if streams:
        yield from merged(streams, workers=AT_ONCE)


def _groups(sheet: RosterSheet) -> list[_Group]:
    found: dict[tuple[object, ...], _Group] = {}
    for role, seat in sheet.seats():
        if seat.is_built_in:
            continue
        kind = KINDS.get(role, "speaks")
        mark = (kind, seat.model, seat.api_base, seat.key_name, seat.temperature)
        before = found.get(mark, _Group(kind, seat, ()))
        found[mark] = replace(before, roles=(*before.roles, role))
    return list(found.values())


def _results(bench: _Bench, group: _Group) -> Callable[[], Iterator[Probe]]:
    def results() -> Iterator[Probe]:
        began = bench.clock()
        desk = bench.desk()
        try:
            works, words = True, _tested(bench, group, desk)
        except Stopped:
            raise
        except ReviewError as error:
            who = who_of(_asked(bench, group, FEW_TOKENS))
            works, words = False, str(error).removeprefix(who).lstrip(": ")  # the table names both
        seconds = max(0.0, bench.clock() - began)
        calls = desk.drain()
        for number, role in enumerate(group.roles):
            own = () if number else calls
            yield Probe(role, group.seat.model, works, words, seconds, own)

    return results


def _tested(bench: _Bench, group: _Group, desk: LedgerDesk) -> str:
    asked = _asked(bench, group, FEW_TOKENS)
    if group.kind == "embeds":
        found = desk.embed(group.seat, [asked.call.messages[0].text], bench.stop)
        return f"Answered with {len(found.vectors[0])} numbers for a text."
    try:
        return _answer_words(group, desk.ask(asked, bench.stop))
    except ModelRefused:
        raise
    except ReplyError as error:
        # A model that thinks first may need the seat's whole token limit for one word.
        if error.reply.strip() or group.seat.max_tokens <= FEW_TOKENS:
            raise
        asked = _asked(bench, group, group.seat.max_tokens)
        return _answer_words(group, desk.ask(asked, bench.stop))


def _asked(bench: _Bench, group: _Group, most: int) -> Asked:
    seat = replace(group.seat, max_tokens=min(group.seat.max_tokens, most))
    nonce = bench.account.run_id[:12]
    sees = group.kind == "sees"
    text = (COLOUR if sees else WORD).format(nonce=nonce)
    pictures = (Picture("image/png", _red_square()),) if sees else ()
    slot = f"test {group.roles[0]} {seat.max_tokens}"
    return Asked(group.roles[0], slot, Call(seat, (Message("user", text, pictures),)))


def _answer_words(group: _Group, found: Completion) -> str:
    said = " ".join(found.text.split())
    said = said if len(said) <= SHOWN else f"{said[: SHOWN - 1]}…"
    if group.kind == "sees" and not any(word in found.text.casefold() for word in RED):
        return (
            f"Answered “{said}”, but the picture shows a red square: make sure that this model "
            "takes images."
        )
    return f"Answered “{said}”."


def _red_square() -> bytes:
    from PIL import Image, ImageDraw

    image = Image.new("RGB", (PICTURE_PIXELS, PICTURE_PIXELS), "white")
    edge = PICTURE_PIXELS // 8
    corner = PICTURE_PIXELS - edge
    ImageDraw.Draw(image).rectangle((edge, edge, corner, corner), "#e00000")
    encoded = io.BytesIO()
    image.save(encoded, "PNG")
    return encoded.getvalue()


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
WHOLE_FIELDS = ("max_tokens", "window", "seconds")
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

    Raises InputError: the sheet breaks a rule; what could not be read back is not written.
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

    Raises InputError: it is no roster file, or one that breaks a rule; the message names the field.
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
    body = _object(where, value, (*TEXTS, *NUMBERS, *WHOLE_FIELDS), ())
    given: dict[str, Any] = {}
    for name, item in body.items():
        field = f"{where}, {name}"
        if name in TEXTS:
            given[name] = _text(field, item)
        elif name in WHOLE_FIELDS:
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
    if looks_like_a_key(name):
        return "…"
    return "".join(char if char.isprintable() else "?" for char in name)[:40]
