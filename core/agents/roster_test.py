"""Tests the language models of a roster with one tiny call each, and says in words what is wrong.

The calls go over the ledger like any other: they are paid for, counted, and held under the caps.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from core.concurrency import Stop, merged
from core.errors import ModelRefused, ReplyError, ReviewError, Stopped
from core.llm.call import Asked, Call, Completion, Message, Picture
from core.llm.client import LiteLlm
from core.llm.failures import Patience
from core.llm.keys import Keys
from core.llm.limits import Caps
from core.llm.metering import Account, LedgerDesk, who_of
from core.records import ModelCall
from core.seats import RosterSheet, Seat
from core.store import open_store

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
    """Roles that one call answers for."""

    kind: Kind
    seat: Seat
    roles: tuple[str, ...]


@dataclass(frozen=True)
class _Bench:
    """What all tests of one click share."""

    keys: Keys
    home: Path
    account: Account
    caps: Caps
    clock: Callable[[], float]
    stop: Stop

    def desk(self) -> LedgerDesk:
        """A desk for one group alone, so that its calls are known from the others'."""
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
    answers for a model that is away.

    Raises:
        Stopped: `stop` was set; what was under way is closed.
    """
    with open_store(home) as store:
        caps = Caps.of(store.projects.settings())
    bench = _Bench(keys, home, account, caps, clock, stop)
    streams = [_results(bench, group) for group in _groups(sheet)]
    if streams:
        yield from merged(streams, workers=AT_ONCE)


def _groups(sheet: RosterSheet) -> list[_Group]:
    """Seats that share model, address, key and temperature are one; seeing is a test of its own."""
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
    """What came back, in words."""
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
