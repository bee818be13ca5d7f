"""Rosters as files, read strictly and with no key in them, and one tiny call to test each model."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, TypeVar
from urllib.parse import urlsplit

import msgspec

from core.llm.call import Call, Message, ModelRequest, Picture
from core.llm.client import ModelClient
from core.llm.failures import RetryPolicy
from core.llm.keys import Keys
from core.llm.limits import SpendingCaps
from core.llm.metering import CallAccount, MeteredClient, role_and_model
from core.runtime.concurrency import StopSignal, merge_streams
from core.runtime.errors import InputError, ModelRefused, ReplyError, ReviewError, Stopped
from core.schema.records import ModelCall
from core.schema.rosters import (
    BUILT_IN_READERS,
    MAX_CONCURRENCY,
    MAX_ROSTER_NAME_CHARACTERS,
    PANEL_READERS,
    PANEL_ROLE_PREFIX,
    AgentConfig,
    DebaterConfig,
    RosterConfig,
)
from core.store import open_store

MAX_FIELD_CHARS = {
    "name": MAX_ROSTER_NAME_CHARACTERS,
    "words": 600,
    "model": 200,
    "api_base": 300,
    "key_name": 100,
}
LONGEST_DEBATER = 40
DEBATERS = PANELISTS = (2, 8)
TEMPERATURE = (0.0, 2.0)
WHOLE = {
    "max_tokens": (1, 200_000),
    "window": (0, 20_000_000),
    "seconds": (1, 3600),
    "concurrency": (0, MAX_CONCURRENCY),
}
LEAST_WINDOW = 512
HIGHEST_PRICE = 10_000.0
MOST_WHOLE = 10**12  # of a number in a message
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
    """Return True for text that seems to hold an API key; model names do not."""
    kinds = (str.isdigit, str.isupper, str.islower)

    def is_random(word: str) -> bool:
        changes = sum(a.isdigit() != b.isdigit() for a, b in pairwise(word))
        return all(any(map(kind, word)) for kind in kinds) or changes >= 6

    return bool(KEY.search(text)) or any(map(is_random, LONG_WORD.findall(text)))


def check_roster(roster: RosterConfig) -> None:
    """Refuse a roster that cannot be saved or run.

    Raises InputError: it names the field, what was expected and what was found; never a key.
    """
    _check_name("name", roster.name, MAX_FIELD_CHARS["name"])
    _check_text("words", roster.words, MAX_FIELD_CHARS["words"])
    if not DIGEST.fullmatch(roster.prompts):
        raise roster_error(
            "prompts", "a digest (0 to 9, a to f) or an empty text", "something else"
        )
    low, high = DEBATERS
    if not low <= len(roster.debaters) <= high:
        raise roster_error("debaters", f"{low} to {high} debaters", f"{len(roster.debaters)}")
    seen: set[str] = set()
    for number, debater in enumerate(roster.debaters, 1):
        field = f"debater {number}, name"
        _check_name(field, debater.name, LONGEST_DEBATER)
        if debater.name.casefold() in seen:
            raise roster_error(field, "a name that no other debater has", f"“{debater.name}” again")
        seen.add(debater.name.casefold())
    low, high = PANELISTS
    if len(roster.span_panel) not in (0, *range(low, high + 1)):
        raise roster_error("span_panel", f"none, or {low} to {high}", f"{len(roster.span_panel)}")
    for role, agent in roster.agents_by_role():
        _check_seat(role, agent)


def roster_error(field: str, expected: str, found: str) -> InputError:
    """Return the error for a field of a roster."""
    return InputError(f"Roster, {field}: expected {expected}, found {found}.")


def _check_text(field: str, text: str, most: int) -> None:
    if looks_like_a_key(text):
        raise roster_error(
            field,
            "no key anywhere in a roster (key_name says under which name one is looked for)",
            "what looks like one; take it out",
        )
    if len(text) > most:
        raise roster_error(field, f"at most {most} characters", f"{len(text)}")
    if any("\ud800" <= char <= "\udfff" for char in text):
        raise roster_error(field, "text", "half a character (a lone surrogate)")
    if not all(char.isprintable() for char in text):
        raise roster_error(field, "one line of plain text", "characters that cannot be shown")


def _check_name(field: str, name: str, most: int) -> None:
    _check_text(field, name, most)
    if not name or name != name.strip():
        raise roster_error(field, "a name without spaces around it", f"“{name}”")


def _check_seat(role: str, agent: AgentConfig) -> None:
    is_panel = role.startswith(PANEL_ROLE_PREFIX)
    known = PANEL_READERS if is_panel else BUILT_IN_READERS if role.startswith("debater ") else ()
    is_open = is_panel and not (agent.reader or agent.model)  # nobody would sit there
    if is_open or agent.reader not in ("", *known):
        readers = f"one of {', '.join(known)}" if known else "none"
        raise roster_error(f"{role}, reader", readers, f"“{_shown(agent.reader)}”")
    if agent.reader and agent.model:
        raise roster_error(
            role, "either a model or a built-in reader", "both; leave one of them empty"
        )
    for name in ("model", "api_base", "key_name"):
        _check_text(f"{role}, {name}", getattr(agent, name), MAX_FIELD_CHARS[name])
    if agent.is_built_in:
        if agent != AgentConfig(reader=agent.reader):
            raise roster_error(f"{role}, model", "a model's name beside its settings", "none")
        return
    if any(char.isspace() for char in agent.model):
        raise roster_error(
            f"{role}, model", "a name like provider/model", f"“{agent.model}” with a space"
        )
    if agent.api_base:
        check_address(f"Roster, {role}, api_base", agent.api_base)
    if agent.key_name and not NAME_OF_KEY.fullmatch(agent.key_name):
        found = "something else; never write the key itself"
        raise roster_error(f"{role}, key_name", "a variable's name such as OPENAI_API_KEY", found)
    _check_numbers(role, agent)


def _check_numbers(role: str, agent: AgentConfig) -> None:
    low, high = TEMPERATURE
    if not low <= agent.temperature <= high:  # False for nan, too
        raise roster_error(f"{role}, temperature", f"{low:g} to {high:g}", f"{agent.temperature:g}")
    for name, (least, most) in WHOLE.items():
        value = getattr(agent, name)
        if not least <= value <= most:
            found = f"{value:,}" if abs(value) < MOST_WHOLE else "one far beyond that"
            raise roster_error(f"{role}, {name}", f"{least:,} to {most:,}", found)
    if 0 < agent.window < LEAST_WINDOW:
        expected = f"0 (as litellm knows it) or at least {LEAST_WINDOW}"
        raise roster_error(f"{role}, window", expected, f"{agent.window}")
    if (agent.price_in is None) != (agent.price_out is None):
        raise roster_error(role, "both prices or none of price_in and price_out", "one of them")
    for name in ("price_in", "price_out"):
        price = getattr(agent, name)
        if price is not None and not 0 <= price <= HIGHEST_PRICE:
            most_words = f"0 to {HIGHEST_PRICE:,.0f} US dollars for a million tokens"
            raise roster_error(f"{role}, {name}", most_words, f"{price:g}")


def check_address(where: str, address: str) -> None:
    """Refuse what is no http address, or one that carries a user, a password or a query.

    Raises InputError: it is such a one; it begins with `where`.
    """
    expected = f"{where}: expected an address like http://127.0.0.1:8000/v1"
    if looks_like_a_key(address):
        raise InputError(f"{expected} without a key in it, found what looks like one; take it out.")
    try:
        parts = urlsplit(address)
        is_web = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        raise InputError(f"{expected}, found a broken one.") from None
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise InputError(
            f"{expected} without user, password or query (keys do not belong there), found one "
            "with them."
        )
    if not is_web or any(char.isspace() or not char.isprintable() for char in address):
        raise InputError(f"{expected}, found “{_shown(address, 80)}”.")


WORD = "Reply with the single word OK and nothing else. (Test {nonce})"
COLOUR = "Which colour is the square in the picture? Reply with one word. (Test {nonce})"
RED = ("red", "红", "紅", "rouge", "rojo", "rosso", "vermelho", "赤")
EMBEDS, SEES = "retriever", "image reader"  # roles whose tests are others
OK = re.compile(r"\bok(?:ay)?\b", re.IGNORECASE)
FEW_TOKENS = 32
AT_ONCE = 8
SHOWN = 40
# Somebody is waiting: one more attempt after what may pass, and no long pauses.
TEST_RETRY_POLICY = RetryPolicy(tries=2, backoff=0.5, longest_wait=5.0, overall=2.0)


RoleTestOutcome = Literal["works", "answers", "fails"]


@dataclass(frozen=True)
class RoleTest:
    """The result of one role's test.

    A model that "answers" said something else than it was asked for: it can run all the same.
    `words` quote the answer, or say why there is none. Agents that share a model are asked once;
    `calls` stand with the first of their roles, so that a sum over all tests counts each call once.
    """

    role: str
    model: str
    outcome: RoleTestOutcome
    words: str
    seconds: float
    calls: tuple[ModelCall, ...] = ()


def probe_models(
    roster: RosterConfig,
    keys: Keys,
    stop: StopSignal,
    *,
    home: Path,
    account: CallAccount,
    clock: Callable[[], float],
) -> Iterator[RoleTest]:
    """Yield a result for every role that a model plays, as they arrive.

    `account.run_id` must be new for each test: it goes into the prompts, so that no earlier reply
    answers for a model that is away. Raises Stopped: `stop` was set; what was under way is closed.
    """
    with open_store(home) as store:
        settings = store.projects.settings()
    caps = SpendingCaps.of(settings)

    def results(agent: AgentConfig, roles: Sequence[str]) -> Iterator[RoleTest]:
        began = clock()
        # a client of its own, so that its calls are known from the others'
        sender = ModelClient(keys, TEST_RETRY_POLICY, settings.requests_per_second)
        client = MeteredClient(sender, home, account, caps, clock)
        asked = [
            _build_probe(roles[0], agent, most, account) for most in (FEW_TOKENS, agent.max_tokens)
        ]
        try:
            outcome, words = _test_model(client, asked, stop)
        except Stopped:
            raise
        except ReviewError as error:
            who = role_and_model(asked[0])  # the table names both
            outcome, words = "fails", str(error).removeprefix(who).lstrip(": ")
        seconds = max(0.0, clock() - began)
        calls = client.drain()
        for number, role in enumerate(roles):
            yield RoleTest(role, agent.model, outcome, words, seconds, () if number else calls)

    if streams := [partial(results, agent, roles) for agent, roles in _groups(roster)]:
        yield from merge_streams(streams, workers=AT_ONCE)


def _groups(roster: RosterConfig) -> list[tuple[AgentConfig, list[str]]]:
    """Group agents by model, address, key and temperature, with their roles.

    Seeing and embedding are tests of their own.
    """
    found: dict[tuple[object, ...], tuple[AgentConfig, list[str]]] = {}
    for role, agent in roster.agents_by_role():
        if not agent.is_built_in:
            kind = role if role in (SEES, EMBEDS) else "speaks"
            mark = (kind, agent.model, agent.api_base, agent.key_name, agent.temperature)
            found.setdefault(mark, (agent, []))[1].append(role)
    return list(found.values())


def _test_model(
    client: MeteredClient, asked: Sequence[ModelRequest], stop: StopSignal
) -> tuple[RoleTestOutcome, str]:
    """Return whether the model did what it was asked for, and what came back."""
    brief, whole = asked
    if brief.role == EMBEDS:
        found = client.embed(brief.call.agent, [brief.call.messages[0].text], stop)
        return "works", f"{len(found.vectors[0])} numbers for a text"
    try:
        reply = client.ask(brief, stop).text
    except ModelRefused:
        raise
    except ReplyError as error:
        # A model that thinks first may need the agent's whole token limit for one word.
        if error.reply.strip() or whole.call.agent.max_tokens <= FEW_TOKENS:
            raise
        reply = client.ask(whole, stop).text
    shown = " ".join(reply.split())
    shown = shown if len(shown) <= SHOWN else f"{shown[: SHOWN - 1]}…"
    if brief.role == SEES and not any(word in reply.casefold() for word in RED):
        return "answers", (
            f"“{shown}”. The picture shows a red square: make sure that this model takes images."
        )
    if brief.role != SEES and not OK.search(reply):
        return "answers", f"“{shown}” instead of the single word OK"
    return "works", f"“{shown}”"


def _build_probe(role: str, agent: AgentConfig, most: int, account: CallAccount) -> ModelRequest:
    agent = replace(agent, max_tokens=min(agent.max_tokens, most))
    text = (COLOUR if role == SEES else WORD).format(nonce=account.run_id[:12])
    pictures = (Picture("image/png", _red_square()),) if role == SEES else ()
    call = Call(agent, (Message("user", text, pictures),))
    return ModelRequest(role, f"test {role} {agent.max_tokens}", call)


def _red_square() -> bytes:
    from PIL import Image

    image = Image.new("RGB", (64, 64), "white")
    image.paste("#e00000", (8, 8, 57, 57))
    encoded = io.BytesIO()
    image.save(encoded, "PNG")
    return encoded.getvalue()


VERSION = 1
MARK = "counterpoint_roster"
MOST_BYTES = 100_000
SUFFIX = ".roster.json"
BUILT_IN_SEAT = "built-in"
ROLES = tuple(item.name for item in fields(RosterConfig) if item.default_factory is AgentConfig)
LATER = ("tool_picker", "reflector")  # roles that files from before do not name
TOP = (MARK, "name", "words", "prompts", "debaters", *ROLES, "span_panel", "panel_sees_evidence")
NEEDED = tuple(name for name in TOP[:-2] if name not in LATER)
DEBATER = ("name", "seat")
SEAT = tuple(item.name for item in fields(AgentConfig))
# Words in a field's name that say that its value is a secret.
SECRET = ("key", "token", "secret", "password", "credential", "authorization", "header")
ALWAYS_WRITTEN = ("model", "temperature", "max_tokens")
ANOTHER_VERSION = (
    "This roster was written for other prompts ({theirs}); here they are {ours}. It works, and its "
    "agents may answer differently."
)


@dataclass(frozen=True)
class ReadRoster:
    """A roster from a file; `notice` says what differs here, or is empty."""

    sheet: RosterConfig
    notice: str = ""


# What msgspec calls a type, as it is expected and as it is found.
EXPECTED = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
}
FOUND = EXPECTED | {"str": "a text", "object": "an object", "null": "nothing", "int": "a number"}
MISMATCH = re.compile(r"Expected `(\w+)[^`]*`, got `(\w+)`")
FIELD = re.compile(r"at `\$\.(\w+)`")
Kind = TypeVar("Kind")


def write_roster(roster: RosterConfig, prompts: str = "") -> bytes:
    """Return the roster as a file's bytes; `prompts` is the digest of the prompts in force.

    Raises InputError: the roster breaks a rule; what could not be read back is not written.
    """
    check_roster(roster)
    body: dict[str, Any] = {MARK: VERSION, "name": roster.name, "words": roster.words}
    body["prompts"] = roster.prompts or prompts
    body["debaters"] = [{"name": d.name, "seat": _written(d.seat)} for d in roster.debaters]
    body |= {role: _written(getattr(roster, role)) for role in ROLES}
    if roster.span_panel:
        body["span_panel"] = [_written(agent) for agent in roster.span_panel]
        body["panel_sees_evidence"] = roster.panel_sees_evidence
    return (json.dumps(body, ensure_ascii=False, indent=2) + "\n").encode()


def read_roster(data: bytes, prompts: str = "") -> ReadRoster:
    """Read a roster file; `prompts` is the digest of the prompts in force.

    Raises InputError: it is no roster file, or one that breaks a rule; the message names the field.
    """
    body = dict.fromkeys(LATER, BUILT_IN_SEAT) | _object("file", _parsed(data), TOP, NEEDED)
    version = body.pop(MARK)
    if version != VERSION or isinstance(version, bool):
        found = f"{version}" if version in range(1, 1000) else "something else"
        raise roster_error(
            MARK, f"version {VERSION}", f"{found}; export it again from a like version"
        )
    sees = body.pop("panel_sees_evidence", True)
    given: dict[str, Any] = {"panel_sees_evidence": _read("panel_sees_evidence", sees, bool)}
    lists = {"debaters": (_debater, "debater "), "span_panel": (_seat, PANEL_ROLE_PREFIX)}
    for name, (read, where) in lists.items():
        items: list[object] = _read(name, body.pop(name, []), list)
        given[name] = tuple(read(f"{where}{n}", item) for n, item in enumerate(items, 1))
    for name, value in body.items():
        given[name] = _seat(name, value) if name in ROLES else _read(name, value, str)
    roster = RosterConfig(**given)
    check_roster(roster)
    differs = bool(prompts and roster.prompts and roster.prompts != prompts)
    notice = ANOTHER_VERSION.format(theirs=roster.prompts, ours=prompts) if differs else ""
    return ReadRoster(roster, notice)


def _written(agent: AgentConfig) -> object:
    if agent == AgentConfig():
        return BUILT_IN_SEAT
    always = ALWAYS_WRITTEN if agent.model else ()
    values = ((item.name, getattr(agent, item.name), item.default) for item in fields(agent))
    return {name: value for name, value, usual in values if value != usual or name in always}


def _parsed(data: bytes) -> object:
    if len(data) > MOST_BYTES:
        raise roster_error("file", f"at most {MOST_BYTES:,} bytes", f"{len(data):,}")
    try:
        text = data.decode("utf-8-sig")
        parsed: object = json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        why = error.msg if isinstance(error, json.JSONDecodeError) else "it is no JSON in UTF-8"
        raise roster_error(
            "file", "a roster exported from here", f"something else ({why})"
        ) from None
    return parsed


def _once(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise roster_error(_shown(twice), "each field once", "it twice")
    return found


def _no_constant(name: str) -> object:
    raise roster_error("file", "plain numbers", name)


def _object(
    where: str,
    value: object,
    allowed: Sequence[str],
    needed: Sequence[str] = (),
    expected: str = "an object with fields",
) -> dict[str, Any]:
    body: dict[str, Any] = _read(where, value, dict, expected)
    for name in body:
        if name in allowed:
            continue
        if any(word in name.casefold() for word in SECRET):
            raise InputError(
                f"Roster, {where}: expected no key in a roster file, found the field "
                f"“{_shown(name)}”; take it out (key_name says under which name a key is looked "
                "for)."
            )
        raise roster_error(where, f"no fields but {', '.join(allowed)}", f"“{_shown(name)}”")
    if missing := [name for name in needed if name not in body]:
        raise roster_error(where, f"the field {missing[0]}", "none")
    return body


def _seat(where: str, value: object) -> AgentConfig:
    if value == BUILT_IN_SEAT:
        return AgentConfig()
    expected = f"“{BUILT_IN_SEAT}” or an object with a model"
    return _read(where, _object(where, value, SEAT, (), expected), AgentConfig)


def _debater(where: str, value: object) -> DebaterConfig:
    body = _object(where, value, DEBATER, DEBATER)
    return DebaterConfig(_read(f"{where}, name", body["name"], str), _seat(where, body["seat"]))


def _read(where: str, value: object, kind: type[Kind], expected: str = "") -> Kind:
    """Convert the value; messages never show it, for it may be a key."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        field = ", ".join([where, *FIELD.findall(str(error))])
        names = MISMATCH.match(str(error))
    if names is None:
        raise roster_error(field, "a number that can be", "one beyond all bounds")
    raise roster_error(field, expected or EXPECTED[names[1]], FOUND.get(names[2], "a number"))


def _shown(text: str, most: int = 40) -> str:
    if looks_like_a_key(text):
        return "…"
    return "".join(char if char.isprintable() else "?" for char in text[:most])
