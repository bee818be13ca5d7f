"""Read debates recorded by MAD: two debaters and a moderator on the translation of a sentence.

A file holds one debate as JSON, several as a list or on lines, or is a tar archive with one debate
per file. The response is the translation that the first debater began with, the question is the
sentence, and the debate's result is the revised response. Nobody was asked for a label of the
response: one translation may be better than another that is right. So every stance and the
verdict are `unclear`, and the run says why. A debater agrees if its words say so and else opposes;
the first speaker agrees in its first turn if it repeats its translation word for word. Source:
Liang et al. as in SC-MAKS tables 1 and 2; the record has no times and no costs.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence

from core.exchange.fields import collect_extra_columns, parse_rows
from core.exchange.file_decoding import decode_file_text, is_tar, iter_json_items, read_tar_files
from core.exchange.rows import ExchangeRow, FileRecord, ParsedFile, RecordedRun, RowProblem
from core.runtime.errors import make_printable
from core.schema.events import (
    Event,
    JudgementReached,
    JudgementSampled,
    ResponseRevised,
    TurnFinished,
    TurnStarted,
)
from core.schema.records import Judgement, RoleAssignment, Turn, TurnReply, Verdict

AFFIRMATIVE, NEGATIVE, MODERATOR, JUDGE = "Affirmative side", "Negative side", "Moderator", "Judge"
INSTRUCTION = "Say whether the response is a right translation of the sentence in the question."
NO_LABEL_REASON = (
    "This debate was recorded elsewhere. It asked which translation is best, not whether the "
    "response holds, so there is no label."
)
KEPT_COLUMNS = ("correct reference", "incorrect reference", "model_name", "temperature")
REPLY_KEYS = ("Whether there is a preference", "Supported Side", "Reason", "Correct Translation")
_KEY = re.compile(rf"""['"]({"|".join(REPLY_KEYS)})['"]\s*:""")
_AGREEMENT = re.compile(r"\b(disagree|(?:not|n't|n’t)\s+(?:\w+\s+)?agree|agree)", re.IGNORECASE)
_NUMBER = re.compile(r"(\d+)")
AGREEMENT_CHARS = 300  # leading characters of a turn that are searched for agreement
MAX_MODEL_NAME_CHARS = 40


def is_mad(value: object) -> bool:
    """Return True if a decoded row looks like a recorded debate."""
    return isinstance(value, dict) and {"players", "base translation", "source"} <= value.keys()


def read_mad(name: str, data: bytes) -> ParsedFile:
    """Read the debates of a file, each as a case with its run."""
    items = (
        _iter_tar_items(name, data)
        if is_tar(data)
        else iter_json_items(decode_file_text(name, data))
    )
    rows, problems = parse_rows(items, _parse_row)
    return ParsedFile(tuple(rows), tuple(problems), "debate")


def _iter_tar_items(name: str, data: bytes) -> Iterator[tuple[int, object] | RowProblem]:
    files = [(file, body) for file, body in read_tar_files(name, data) if file.endswith(".json")]
    for place, (file, body) in enumerate(sorted(files, key=lambda one: _split_numbers(one[0])), 1):
        yield from _place_items(place, iter_json_items(decode_file_text(file, body)))


def _split_numbers(name: str) -> list[tuple[int, str]]:
    parts = _NUMBER.split(name)
    return [(int(part), "") if part.isdecimal() else (0, part) for part in parts]


def _place_items(
    place: int, items: Iterable[tuple[int, object] | RowProblem]
) -> Iterator[tuple[int, object] | RowProblem]:
    for item in items:
        yield RowProblem(place, item.reason) if isinstance(item, RowProblem) else (place, item[1])


def _parse_row(record: FileRecord) -> ExchangeRow:
    response, players = record.text("base translation"), record.inner("players")
    model = record.plain("model_name").strip()[:MAX_MODEL_NAME_CHARS] or "an unnamed model"
    turns = _build_turns(players, response, model)
    if not turns:
        raise record.broken("a debate with turns, found one in which nobody spoke")
    judgements = list(_iter_judgements(players, model))
    if not judgements:
        raise record.broken("a debate with a moderator's word on it, found none")
    revisions = _build_revisions(record, response)
    last = judgements[-1]
    verdict = Verdict("unclear", None, None, last.prose, last.cause, last.cause_words)
    roles = tuple(_iter_roles(players, model))
    events = (*_iter_events(turns, judgements), *revisions)
    return ExchangeRow(
        id="",
        response=response,
        question=record.text("source"),
        language="en",
        instruction=INSTRUCTION,
        others=collect_extra_columns({name: record.fields.get(name) for name in KEPT_COLUMNS}, ()),
        place=record.line,
        run=RecordedRun("mad", f"recorded: {model}", roles, events, verdict),
    )


def _get_messages(players: FileRecord, name: str, role: str = "assistant") -> list[str]:
    """Return the messages of a player with this role, in order; [] if there is no such player."""
    if name not in players.fields:
        return []
    messages = players.records(name)
    return [one.plain("content") for one in messages if one.plain("role") == role]


def _build_turns(players: FileRecord, response: str, model: str) -> list[Turn]:
    """Return both debaters' turns in order; the first one's opening is the response itself."""
    turns: list[Turn] = []
    texts_by_debater = {
        AFFIRMATIVE: _get_messages(players, AFFIRMATIVE)[1:],
        NEGATIVE: _get_messages(players, NEGATIVE),
    }
    for number in range(1, max(map(len, texts_by_debater.values())) + 1):
        for place, name in enumerate((AFFIRMATIVE, NEGATIVE)):
            if number > len(texts_by_debater[name]):
                continue
            text = texts_by_debater[name][number - 1]
            reply: TurnReply = "agree" if _is_agreeing(text) else "deny"
            if number == 1 and name == AFFIRMATIVE:
                reply = "agree" if _normalize_words(response) in _normalize_words(text) else "deny"
            position = 2 * number - 1 + place
            turn = Turn(name, model, position, number, reply, "unclear", text, manner="tit_for_tat")
            turns.append(turn)
    return turns


def _is_agreeing(text: str) -> bool:
    match = _AGREEMENT.search(text[:AGREEMENT_CHARS])
    return match is not None and match.group(1).lower() == "agree"


def _normalize_words(text: str) -> str:
    return re.sub(r"\W+", " ", text).strip().casefold()


def _iter_judgements(players: FileRecord, model: str) -> Iterator[Judgement]:
    for round_number, reply in enumerate(_get_messages(players, MODERATOR), 1):
        yield _build_judgement(
            f"Moderator ({model})", f"After round {round_number} the moderator", reply
        )
    for reply in _get_messages(players, JUDGE)[-1:]:  # its earlier replies list the candidates
        yield _build_judgement(f"Judge ({model})", "After the last round the judge", reply)


def _build_judgement(agent: str, speaker: str, reply: str) -> Judgement:
    """Return a judgement without a label, whatever was preferred: nobody asked for one."""
    fields = _parse_reply(reply)
    prefers, translation = fields.get(REPLY_KEYS[0], "").lower(), fields.get(REPLY_KEYS[3], "")
    if not fields:
        text = f"{speaker} gave a reply that could not be read."
    elif prefers == "yes" and fields.get(REPLY_KEYS[1]):
        side = make_printable(fields[REPLY_KEYS[1]], MAX_MODEL_NAME_CHARS).lower()
        text = f"{speaker} preferred the translation of the {side} side."
    elif prefers == "no" or not translation:
        text = f"{speaker} saw no clear preference."
    else:
        text = f"{speaker} chose a translation."
    quoted = f" It reads: “{translation}”." if translation else ""
    prose = " ".join(part for part in (text, fields.get(REPLY_KEYS[2], ""), quoted.strip()) if part)
    return Judgement(
        agent,
        "unclear",
        text,
        cause="not_settled" if fields else "unreadable_reply",
        cause_words=f"{text} {NO_LABEL_REASON}",
        prose=prose if fields else f"{text} It says: {reply}",
    )


def _parse_reply(reply: str) -> dict[str, str]:
    """Return the values of a moderator's reply: JSON or a Python literal, never evaluated."""
    matches = list(_KEY.finditer(reply))
    ends = [*(match.start() for match in matches), len(reply)][1:]
    return {
        match.group(1): _strip_quotes(reply[match.end() : end])
        for match, end in zip(matches, ends, strict=True)
    }


def _strip_quotes(value: str) -> str:
    stripped = value.strip().rstrip("},").strip()
    is_quoted = len(stripped) > 1 and stripped[0] in "'\"" and stripped[-1] == stripped[0]
    text = stripped[1:-1] if is_quoted else stripped
    return text.replace("\\'", "'").replace('\\"', '"').strip()


def _iter_events(turns: Sequence[Turn], judgements: Sequence[Judgement]) -> Iterator[Event]:
    """Yield each round's turns and the sample judgement after it, then the final judgement."""
    *samples, last = judgements
    rounds = max(turn.round for turn in turns)
    for number in range(1, max(rounds, len(samples)) + 1):
        for turn in (turn for turn in turns if turn.round == number):
            yield TurnStarted(0.0, turn.debater, turn.agent, turn.number, turn.round)
            yield TurnFinished(0.0, turn, 0.0, None)
        if number <= len(samples):
            note = f"after round {number}"
            yield JudgementSampled(0.0, samples[number - 1], number, note, 0.0, None)
    yield JudgementReached(0.0, last, 0.0, None)


def _build_revisions(record: FileRecord, response: str) -> list[ResponseRevised]:
    text = record.spare("debate translation")
    agent = JUDGE if JUDGE in record.inner("players").fields else MODERATOR
    return [ResponseRevised(0.0, agent, text)] if text and text != response.strip() else []


def _iter_roles(players: FileRecord, model: str) -> Iterator[RoleAssignment]:
    for name in (AFFIRMATIVE, NEGATIVE, MODERATOR, JUDGE):
        for rule in _get_messages(players, name, "system")[:1]:
            role = f"debater {name}" if name in (AFFIRMATIVE, NEGATIVE) else name.lower()
            yield RoleAssignment(
                role, model, False, rule, hashlib.sha256(rule.encode()).hexdigest()[:12]
            )
