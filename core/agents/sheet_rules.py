"""What a roster sheet must keep to before it is stored, seated or passed on: bounds, no keys."""

from __future__ import annotations

import math
import re
from itertools import pairwise
from urllib.parse import urlsplit

from core.errors import InputError
from core.seats import LONGEST_NAME, PANEL, PANEL_READERS, READERS, RosterSheet, Seat

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
    """Mixed cases and digits, or letters and digits that change places again and again."""
    kinds = (str.isdigit, str.isupper, str.islower)
    changes = sum(a.isdigit() != b.isdigit() for a, b in pairwise(word))
    return all(any(kind(char) for char in word) for kind in kinds) or changes >= 6


def check_sheet(sheet: RosterSheet) -> None:
    """Refuse a sheet that cannot be kept or run as it is.

    Raises:
        InputError: it names the field, what was expected and what was found; never a key.
    """
    _text("name", sheet.name, LONGEST["name"])
    if not sheet.name or sheet.name != sheet.name.strip():
        raise wrong("name", "a name without spaces around it", f"“{sheet.name}”")
    _text("words", sheet.words, LONGEST["words"])
    if not DIGEST.fullmatch(sheet.prompts):
        raise wrong("prompts", "a digest (0 to 9, a to f) or an empty text", "something else")
    _debater_names(sheet)
    if len(sheet.span_panel) not in (0, *range(PANELISTS[0], PANELISTS[1] + 1)):
        low, high = PANELISTS
        raise wrong("span_panel", f"no seat, or {low} to {high}", f"{len(sheet.span_panel)}")
    for role, seat in sheet.seats():
        _seat(role, seat)


def wrong(field: str, expected: str, found: str) -> InputError:
    """The error of a field of a roster."""
    return InputError(f"Roster, {field}: expected {expected}, found {found}.")


def _text(field: str, text: str, most: int) -> None:
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
        _text(field, debater.name, LONGEST_DEBATER)
        if not debater.name.strip() or debater.name != debater.name.strip():
            raise wrong(field, "a name without spaces around it", f"“{debater.name}”")
        if debater.name.casefold() in seen:
            raise wrong(field, "a name that no other debater has", f"“{debater.name}” again")
        seen.add(debater.name.casefold())


def _seat(role: str, seat: Seat) -> None:
    is_open = role.startswith(PANEL) and not (seat.reader or seat.model)  # nobody would sit there
    known = _readers(role)
    if is_open or seat.reader not in ("", *known):
        readers = f"one of {', '.join(known)}" if known else "none"
        raise wrong(f"{role}, reader", readers, f"“{seat.reader[:40]}”")
    if seat.reader and seat.model:
        raise wrong(role, "either a model or a built-in reader", "both; leave one of them empty")
    for name in ("model", "api_base", "key_name"):
        _text(f"{role}, {name}", getattr(seat, name), LONGEST[name])
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
    """The built-in readers that may sit there."""
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

    Raises:
        InputError: it is such a one; it begins with `where`.
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
