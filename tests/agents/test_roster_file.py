"""A roster as a file: it comes back the same, and whatever is wrong in one is said in a line."""

from __future__ import annotations

import json
import string
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.agents.roster_files import (
    MOST_BYTES,
    check_roster,
    looks_like_a_key,
    read_roster,
    write_roster,
)
from core.agents.rosters import SHIPPED_ROSTERS, load_chosen_roster, make_single_model_roster
from core.runtime.errors import InputError
from core.schema.rosters import (
    BUILT_IN_READERS,
    PANEL_READERS,
    AgentConfig,
    DebaterConfig,
    RosterConfig,
)

Body = dict[str, Any]
PLAIN = string.ascii_letters + "äöü中文, .-"
names = st.text(PLAIN, min_size=1, max_size=40).filter(lambda text: text == text.strip())
models = st.builds(
    AgentConfig,
    model=st.sampled_from(["openai/x", "bedrock/a.b-c-v1:0", "ollama_chat/llama3.1", "gpt"]),
    api_base=st.sampled_from(["", "http://127.0.0.1:8000/v1", "https://[::1]:1/v1", "http://ö.se"]),
    key_name=st.sampled_from(["", "MY_KEY", "_k2"]),
    temperature=st.floats(0, 2),
    max_tokens=st.integers(1, 200_000),
    window=st.sampled_from([0, 512, 8192, 20_000_000]),
    seconds=st.integers(1, 3600),
    concurrency=st.integers(0, 64),
)
prices = st.one_of(st.none(), st.tuples(st.floats(0, 10_000), st.floats(0, 10_000)))
priced = st.builds(
    lambda seat, price: replace(seat, price_in=price[0], price_out=price[1]) if price else seat,
    models,
    prices,
)
seats = st.one_of(st.just(AgentConfig()), priced)
debaters = st.lists(
    st.builds(
        DebaterConfig,
        names,
        st.one_of(seats, st.builds(AgentConfig, reader=st.sampled_from(BUILT_IN_READERS))),
    ),
    min_size=2,
    max_size=8,
    unique_by=lambda debater: debater.name.casefold(),
)
panels = st.lists(
    st.one_of(priced, st.builds(AgentConfig, reader=st.sampled_from(PANEL_READERS))),
    min_size=2,
    max_size=8,
)
sheets = st.builds(
    RosterConfig,
    name=names,
    words=st.text(PLAIN, max_size=200),
    retriever=seats,
    segmenter=seats,
    tool_picker=seats,
    reflector=seats,
    image_reader=seats,
    context_writer=seats,
    debaters=debaters.map(tuple),
    judge=seats,
    span_extractor=seats,
    span_adjudicator=seats,
    prompts=st.sampled_from(["", "0123abcd"]),
)
with_panels = st.builds(
    lambda sheet, panel, sees: replace(sheet, span_panel=tuple(panel), panel_sees_evidence=sees),
    sheets,
    panels,
    st.booleans(),
)


@given(st.one_of(sheets, with_panels))
def test_what_is_written_is_read_back_to_the_last_field(sheet: RosterConfig) -> None:
    found = read_roster(write_roster(sheet))
    assert found.sheet == sheet
    assert found.notice == ""


def test_a_file_from_before_the_panel_is_read_without_one() -> None:
    told = json.loads(write_roster(SHIPPED_ROSTERS["msa"]))
    assert len(told.pop("span_panel")) == 4
    assert told.pop("panel_sees_evidence") is False
    sheet = read_roster(json.dumps(told).encode()).sheet
    assert (sheet.span_panel, sheet.panel_sees_evidence) == ((), True)


@pytest.mark.parametrize(
    ("panel", "message"),
    [
        ([{"reader": "rules"}], "span_panel: expected none, or 2 to 8, found 1"),
        ([{"reader": "rules"}] * 9, "span_panel: expected none, or 2 to 8, found 9"),
        ([{"reader": "rules"}, "built-in"], "span panel 2, reader: expected one of rules"),
        ([{"reader": "rules"}, {"reader": "tea leaves"}], "reader: expected one of rules"),
        ("everybody", "span_panel: expected a list"),
    ],
)
def test_a_panel_of_nobody_is_refused(panel: object, message: str) -> None:
    told = json.loads(write_roster(SHIPPED_ROSTERS["msa"])) | {"span_panel": panel}
    with pytest.raises(InputError, match=message):
        read_roster(json.dumps(told).encode())


def test_what_a_panel_sees_is_true_or_false() -> None:
    told = json.loads(write_roster(SHIPPED_ROSTERS["msa"])) | {"panel_sees_evidence": "no"}
    with pytest.raises(InputError, match="panel_sees_evidence: expected true or false"):
        read_roster(json.dumps(told).encode())


def test_every_shipped_sheet_keeps_the_rules_and_comes_back() -> None:
    for sheet in SHIPPED_ROSTERS.values():
        assert read_roster(write_roster(sheet)).sheet == sheet


def test_a_file_from_before_the_audit_is_read_with_built_in_seats() -> None:
    body: Body = json.loads(
        write_roster(make_single_model_roster("openai/x", "http://127.0.0.1:1/v1"))
    )
    del body["tool_picker"], body["reflector"]
    sheet = read_roster(json.dumps(body).encode()).sheet
    assert sheet.tool_picker == sheet.reflector == AgentConfig()
    assert sheet.judge.model == "openai/x"


def test_the_file_is_for_people() -> None:
    text = write_roster(SHIPPED_ROSTERS["ceda"]).decode()
    assert text.startswith('{\n  "counterpoint_roster": 1,\n  "name": "ceda",')
    assert '"segmenter": "built-in"' in text
    assert '"model": "bedrock/mistral.mistral-7b-instruct-v0:2"' in text


def test_other_prompts_are_told_and_no_obstacle() -> None:
    data = write_roster(SHIPPED_ROSTERS["ceda"], "aaaa1111")
    found = read_roster(data, "bbbb2222")
    assert "aaaa1111" in found.notice
    assert "bbbb2222" in found.notice
    assert found.sheet.prompts == "aaaa1111"
    assert read_roster(data, "aaaa1111").notice == ""
    assert read_roster(write_roster(SHIPPED_ROSTERS["ceda"]), "bbbb2222").notice == ""


def changed(change: Callable[[Body], object]) -> bytes:
    body: Body = json.loads(
        write_roster(make_single_model_roster("openai/x", "http://127.0.0.1:1/v1"))
    )
    change(body)
    return json.dumps(body).encode()


def setting(role: str, field: str, value: object) -> Callable[[Body], object]:
    return lambda body: body[role].update({field: value})


SECRETS = [
    "sk-proj-abcdefghijklmnop1234",
    "AKIAIOSFODNN7EXAMPLE",
    "AIzaSyA1234567890abcdefghijklmnopqrstu",
    "gsk_abcdefghijklmnopqrst",
    "hf_abcdefghijklmnopqrst",
    "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY",
]
WRONG: list[tuple[Callable[[Body], object], str]] = [
    (lambda b: b.update(colour="red"), "“colour”"),
    (lambda b: b.pop("judge"), "the field judge, found none"),
    (lambda b: b.update(counterpoint_roster=2), "counterpoint_roster: expected version 1, found 2"),
    (lambda b: b.update(counterpoint_roster=True), "version 1"),
    (lambda b: b.update(name=5), "name: expected text, found a number"),
    (lambda b: b.update(name="  "), "name: expected a name"),
    (lambda b: b.update(name="x" * 81), "name: expected at most 80 characters, found 81"),
    (lambda b: b.update(name="a\nb"), "name: expected one line"),
    (lambda b: b.update(name="\ud800"), "name: expected text, found half a character"),
    (lambda b: b.update(words="w" * 601), "words: expected at most 600"),
    (lambda b: b.update(judge=None), "judge: expected “built-in” or an object"),
    (lambda b: b.update(judge="builtin"), "judge: expected “built-in” or an object"),
    (lambda b: b.update(judge={"temperature": 0.5}), "judge, model: expected a model's name"),
    (setting("judge", "temperature", 2.1), "judge, temperature: expected 0 to 2, found 2.1"),
    (setting("judge", "temperature", -0.1), "judge, temperature"),
    (setting("judge", "temperature", "hot"), "judge, temperature: expected a number, found a text"),
    (setting("judge", "temperature", True), "judge, temperature: expected a number"),
    (setting("judge", "temperature", None), "judge, temperature: expected a number"),
    (setting("judge", "temperature", 10**400), "judge, temperature"),
    (setting("judge", "max_tokens", 0), "judge, max_tokens: expected 1 to 200,000, found 0"),
    (setting("judge", "max_tokens", 10.0), "judge, max_tokens: expected a whole number"),
    (setting("judge", "max_tokens", True), "judge, max_tokens: expected a whole number"),
    (
        setting("judge", "max_tokens", 10**4000),
        "judge, max_tokens: expected 1 to 200,000, found one far",
    ),
    (setting("judge", SECRETS[0], 1), "“…”"),
    (setting("judge", "window", 100), "judge, window"),
    (setting("judge", "seconds", 0), "judge, seconds"),
    (setting("judge", "concurrency", 65), "judge, concurrency: expected 0 to 64"),
    (setting("judge", "price_in", 1.0), "both prices"),
    (lambda b: b["judge"].update(price_in=-1, price_out=1), "judge, price_in"),
    (setting("judge", "model", ""), "judge, model: expected a model's name beside its settings"),
    (setting("judge", "model", "a b"), "judge, model: expected a name like"),
    (setting("judge", "reader", "rules"), "judge, reader: expected none"),
    (setting("judge", "api_base", "ftp://x"), "judge, api_base: expected an address like"),
    (setting("judge", "api_base", "http://"), "judge, api_base: expected an address like"),
    (setting("judge", "api_base", "http://x:99999"), "judge, api_base: expected an address like"),
    (setting("judge", "api_base", "file:///etc/passwd"), "judge, api_base"),
    (setting("judge", "api_base", "javascript:1"), "judge, api_base"),
    (setting("judge", "api_base", "http://me:pw@x/v1"), "judge, api_base"),
    (setting("judge", "api_base", "http://x/v1?api=1"), "judge, api_base"),
    (setting("judge", "api_base", "http://x y/v1"), "judge, api_base"),
    (setting("judge", "key_name", "MY KEY"), "judge, key_name: expected a variable's name"),
    (setting("judge", "api_key", "x"), "expected no key in a roster file"),
    (setting("judge", "Authorization", "x"), "expected no key in a roster file"),
    (lambda b: b.update(secret="x"), "expected no key in a roster file"),
    (lambda b: b.update(debaters="Ada"), "debaters: expected a list, found a text"),
    (lambda b: b["debaters"].pop(), "debaters: expected 2 to 8 debaters, found 1"),
    (lambda b: b["debaters"].extend(b["debaters"] * 4), "debaters: expected 2 to 8"),
    (lambda b: b["debaters"][1].update(name="ada"), "debater 2, name: expected a name that no"),
    (lambda b: b["debaters"][1].update(name=""), "debater 2, name: expected a name"),
    (lambda b: b["debaters"][1].update(name="x" * 41), "debater 2, name: expected at most 40"),
    (lambda b: b["debaters"][0]["seat"].update(reader="rules"), "either a model or a built-in"),
    (lambda b: b["debaters"][0].update(seat={"reader": "tea"}), "reader: expected one of rules"),
    (lambda b: b["debaters"][0].update(side="pro"), "debater 1: expected no fields but name, seat"),
]


@pytest.mark.parametrize(("change", "named"), WRONG)
def test_whatever_is_wrong_is_said_in_one_line(
    change: Callable[[Body], object], named: str
) -> None:
    with pytest.raises(InputError) as raised:
        read_roster(changed(change))
    message = str(raised.value)
    assert named in message
    assert "\n" not in message
    assert len(message) < 400


@pytest.mark.parametrize(
    ("data", "named"),
    [
        (b"", "something else"),
        (b"\xff\xfe\x00", "something else"),
        (b"[]", "an object"),
        (b"[" * 50_000, "something else"),
        (b"{}", "counterpoint_roster"),
        (b'{"name": 1, "name": 2}', "name: expected each field once"),
        (b'{"name": NaN}', "plain numbers, found NaN"),
        (b'{"a": ' + b"9" * 5000 + b"}", "something else"),
        (b" " * (MOST_BYTES + 1), "at most 100,000 bytes"),
    ],
)
def test_what_is_no_roster_file_is_refused(data: bytes, named: str) -> None:
    with pytest.raises(InputError, match=named):
        read_roster(data)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=6,
)


@given(st.data())
def test_whatever_stands_in_a_field_is_taken_as_it_is_or_refused_in_a_line(
    data: st.DataObject,
) -> None:
    body: Body = json.loads(
        write_roster(make_single_model_roster("openai/x", "http://127.0.0.1:1/v1"))
    )
    place: Body = body
    name = data.draw(st.sampled_from(sorted(body)))
    if name not in ("debaters", "segmenter", "retriever") and isinstance(body[name], dict):
        place = body[name]
        name = data.draw(st.sampled_from([*sorted(place), "window", "seconds", "price_in"]))
    place[name] = data.draw(anything)
    written = json.dumps(body).encode()
    try:
        sheet = read_roster(written).sheet
    except InputError as error:
        message = str(error)
        assert "\n" not in message
        assert len(message) < 400
    else:
        assert read_roster(write_roster(sheet)).sheet == sheet


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused_in_words(data: bytes) -> None:
    with pytest.raises(InputError):
        read_roster(data)


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("field", ["key_name", "model", "api_base"])
def test_a_key_is_refused_wherever_it_stands_and_never_shown(field: str, secret: str) -> None:
    value = f"http://127.0.0.1/{secret}" if field == "api_base" else secret
    with pytest.raises(InputError) as raised:
        read_roster(changed(setting("judge", field, value)))
    assert secret not in str(raised.value)
    with pytest.raises(InputError):
        write_roster(make_single_model_roster("openai/x", key_name=secret))


def test_no_shipped_word_or_model_is_taken_for_a_key() -> None:
    for sheet in SHIPPED_ROSTERS.values():
        for text in (sheet.name, sheet.words, *(seat.model for _, seat in sheet.agents_by_role())):
            assert not looks_like_a_key(text), text
    for name in ("AZURE_OPENAI_API_KEY_2", "OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY"):
        check_roster(make_single_model_roster("openai/x", key_name=name))
    check_roster(make_single_model_roster("openai/Qwen3-235B-A22B-Instruct-2507-FP8"))
    check_roster(
        make_single_model_roster("fireworks_ai/accounts/fireworks/models/mixtral-8x22b-instruct-hf")
    )


def test_a_file_does_not_pass_for_one_of_ours(tmp_path: Path) -> None:
    path = tmp_path / "evil.json"
    path.write_bytes(
        write_roster(replace(make_single_model_roster("openai/gpt-4o-mini"), name="builtin"))
    )
    assert load_chosen_roster(tmp_path, str(path)).sheet.name == "builtin (file)"
    path.write_bytes(write_roster(SHIPPED_ROSTERS["ceda"]))
    assert load_chosen_roster(tmp_path, str(path)).sheet.name == "ceda"
