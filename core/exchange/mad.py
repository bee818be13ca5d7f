"""Debates as MAD recorded them: two debaters and a moderator over the translation of a sentence.

A file holds one debate as JSON, several as a list or on lines, or is a tar archive with one in each
of its files. The response is the translation that the first debater began with, the question the
sentence; what the debate came to is the response as it should read. Nobody was asked for a label of
the response: one translation may be better than another that is right. So every stance and the
verdict are `unclear`, and the run says why. Whose words say that they agree, agrees; whoever does
not say so goes on opposing, and the first to speak agrees where it stands by its translation to the
letter. Source: Liang et al. as in SC-MAKS tables 1 and 2; the record knows no times and no costs.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence

from core.exchange.fields import others_of, rows_of
from core.exchange.packed import is_tar, json_items, tarred, text_of
from core.exchange.rows import ExchangeRow, Problem, Read, Record, RecordedRun
from core.runtime.errors import shown
from core.schema.events import (
    Event,
    JudgementReached,
    JudgementSampled,
    ResponseRevised,
    TurnFinished,
    TurnStarted,
)
from core.schema.records import Judgement, Reply, RoleUsed, Turn, Verdict

FIRST, SECOND, MODERATOR, JUDGE = "Affirmative side", "Negative side", "Moderator", "Judge"
INSTRUCTION = "Say whether the response is a right translation of the sentence in the question."
NO_LABEL = (
    "This debate was recorded elsewhere. It asked which translation is best, not whether the "
    "response holds, so there is no label."
)
KEPT = ("correct reference", "incorrect reference", "model_name", "temperature")
KEYS = ("Whether there is a preference", "Supported Side", "Reason", "Correct Translation")
_KEY = re.compile(rf"""['"]({"|".join(KEYS)})['"]\s*:""")
_AGREES = re.compile(r"\b(disagree|(?:not|n't|n’t)\s+(?:\w+\s+)?agree|agree)", re.IGNORECASE)
_NUMBERS = re.compile(r"(\d+)")
OPENING = 300  # characters in which a turn says whether it agrees
MOST_NAMED = 40


def is_mad(value: object) -> bool:
    """Whether a decoded row looks like a recorded debate."""
    return isinstance(value, dict) and {"players", "base translation", "source"} <= value.keys()


def read_mad(name: str, data: bytes) -> Read:
    """The debates of a file, each a case with its run."""
    items = _files(name, data) if is_tar(data) else json_items(text_of(name, data))
    rows, problems = rows_of(items, _row)
    return Read(tuple(rows), tuple(problems), "debate")


def _files(name: str, data: bytes) -> Iterator[tuple[int, object] | Problem]:
    files = [(file, body) for file, body in tarred(name, data) if file.endswith(".json")]
    for place, (file, body) in enumerate(sorted(files, key=lambda one: _natural(one[0])), 1):
        yield from _one(place, json_items(text_of(file, body)))


def _natural(name: str) -> list[tuple[int, str]]:
    parts = _NUMBERS.split(name)
    return [(int(part), "") if part.isdecimal() else (0, part) for part in parts]


def _one(
    place: int, items: Iterable[tuple[int, object] | Problem]
) -> Iterator[tuple[int, object] | Problem]:
    for item in items:
        yield Problem(place, item.reason) if isinstance(item, Problem) else (place, item[1])


def _row(record: Record) -> ExchangeRow:
    response, players = record.text("base translation"), record.inner("players")
    model = record.plain("model_name").strip()[:MOST_NAMED] or "an unnamed model"
    taken = _turns(players, response, model)
    if not taken:
        raise record.broken("a debate with turns, found one in which nobody spoke")
    concluded = list(_concluded(players, model))
    if not concluded:
        raise record.broken("a debate with a moderator's word on it, found none")
    revised = _revised(record, response)
    last = concluded[-1]
    verdict = Verdict("unclear", None, None, last.prose, last.cause, last.cause_words)
    roles, events = tuple(_roles(players, model)), (*_events(taken, concluded), *revised)
    return ExchangeRow(
        id="",
        response=response,
        question=record.text("source"),
        language="en",
        instruction=INSTRUCTION,
        others=others_of({name: record.fields.get(name) for name in KEPT}, ()),
        place=record.line,
        run=RecordedRun("mad", f"recorded: {model}", roles, events, verdict),
    )


def _said(players: Record, name: str, role: str = "assistant") -> list[str]:
    """What a player said, or was told, in order; nothing where there is no such player."""
    if name not in players.fields:
        return []
    messages = players.records(name)
    return [one.plain("content") for one in messages if one.plain("role") == role]


def _turns(players: Record, response: str, model: str) -> list[Turn]:
    """Both debaters' turns as they followed; the first one's opening is the response itself."""
    taken: list[Turn] = []
    own = {FIRST: _said(players, FIRST)[1:], SECOND: _said(players, SECOND)}
    for number in range(1, max(map(len, own.values())) + 1):
        for place, name in enumerate((FIRST, SECOND)):
            if number > len(own[name]):
                continue
            text = own[name][number - 1]
            reply: Reply = "agree" if _agrees(text) else "deny"
            if number == 1 and name == FIRST:
                reply = "agree" if _bare(response) in _bare(text) else "deny"
            taken.append(
                Turn(
                    name, model, 2 * number - 1 + place, number, reply, "unclear", text,
                    manner="tit_for_tat",
                )
            )  # fmt: skip
    return taken


def _agrees(text: str) -> bool:
    found = _AGREES.search(text[:OPENING])
    return found is not None and found.group(1).lower() == "agree"


def _bare(text: str) -> str:
    return re.sub(r"\W+", " ", text).strip().casefold()


def _concluded(players: Record, model: str) -> Iterator[Judgement]:
    for number, reply in enumerate(_said(players, MODERATOR), 1):
        yield _judgement(f"Moderator ({model})", f"After round {number} the moderator", reply)
    for reply in _said(players, JUDGE)[-1:]:  # before that it lists the candidates
        yield _judgement(f"Judge ({model})", "After the last round the judge", reply)


def _judgement(agent: str, who: str, reply: str) -> Judgement:
    """No label, whatever was preferred: nobody asked for one."""
    said = _fields(reply)
    prefers, translation = said.get(KEYS[0], "").lower(), said.get(KEYS[3], "")
    if not said:
        text = f"{who} gave a reply that could not be read."
    elif prefers == "yes" and said.get(KEYS[1]):
        side = shown(said[KEYS[1]], MOST_NAMED).lower()
        text = f"{who} preferred the translation of the {side} side."
    elif prefers == "no" or not translation:
        text = f"{who} saw no clear preference."
    else:
        text = f"{who} chose a translation."
    chosen = f" It reads: “{translation}”." if translation else ""
    prose = " ".join(part for part in (text, said.get(KEYS[2], ""), chosen.strip()) if part)
    return Judgement(
        agent,
        "unclear",
        text,
        cause="not_settled" if said else "unreadable_reply",
        cause_words=f"{text} {NO_LABEL}",
        prose=prose if said else f"{text} It says: {reply}",
    )


def _fields(reply: str) -> dict[str, str]:
    """The values of a moderator's reply, which is JSON or a Python literal, never evaluated."""
    found = list(_KEY.finditer(reply))
    ends = [*(one.start() for one in found), len(reply)][1:]
    return {
        one.group(1): _unquoted(reply[one.end() : end])
        for one, end in zip(found, ends, strict=True)
    }


def _unquoted(value: str) -> str:
    bare = value.strip().rstrip("},").strip()
    is_quoted = len(bare) > 1 and bare[0] in "'\"" and bare[-1] == bare[0]
    return (bare[1:-1] if is_quoted else bare).replace("\\'", "'").replace('\\"', '"').strip()


def _events(turns: Sequence[Turn], concluded: Sequence[Judgement]) -> Iterator[Event]:
    """Rounds of turns, each with what was said after it; the last of these is the judgement."""
    *samples, last = concluded
    rounds = max(turn.round for turn in turns)
    for number in range(1, max(rounds, len(samples)) + 1):
        for turn in (turn for turn in turns if turn.round == number):
            yield TurnStarted(0.0, turn.debater, turn.agent, turn.number, turn.round)
            yield TurnFinished(0.0, turn, 0.0, None)
        if number <= len(samples):
            note = f"after round {number}"
            yield JudgementSampled(0.0, samples[number - 1], number, note, 0.0, None)
    yield JudgementReached(0.0, last, 0.0, None)


def _revised(record: Record, response: str) -> list[ResponseRevised]:
    text = record.spare("debate translation")
    agent = JUDGE if JUDGE in record.inner("players").fields else MODERATOR
    return [ResponseRevised(0.0, agent, text)] if text and text != response.strip() else []


def _roles(players: Record, model: str) -> Iterator[RoleUsed]:
    for name in (FIRST, SECOND, MODERATOR, JUDGE):
        for rule in _said(players, name, "system")[:1]:
            role = f"debater {name}" if name in (FIRST, SECOND) else name.lower()
            yield RoleUsed(role, model, False, rule, hashlib.sha256(rule.encode()).hexdigest()[:12])
