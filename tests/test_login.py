"""Identities and their names, the `[auth]` section, and what it takes to come in."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import core.pipeline.doctor
from core.__main__ import main
from core.review.people import (
    ProviderIdentity,
    check_provider,
    ensure_project,
    find_project,
    load_login,
    name_guest,
    normalize_member_name,
    parse_identity,
    parse_login,
    resolve_name,
)
from core.runtime.config import PROJECT_ROOT
from core.runtime.errors import ConfigError, NotAllowed
from core.schema.records import Member, PersonRole, Project
from core.store import Store, open_store
from core.store.projects import GUEST

GOOD: dict[str, Any] = {
    "redirect_uri": "https://cp.example.org/oauth2callback",
    "cookie_secret": "0123456789abcdef" * 2,
    "client_id": "cp",
    "client_secret": "s3cret-of-the-client",
    "server_metadata_url": "https://id.example.org/.well-known/openid-configuration",
}
ANNA = ProviderIdentity("https://id.example.org", "1", "anna@example.org")


def claims(**more: object) -> dict[str, object]:
    return {"iss": "https://id.example.org", "sub": "1", **more}


def joined(store: Store, project_id: str, person: str, role: str = "annotator") -> None:
    with store.writing():
        store.projects.set_member(Member(project_id, person, role, 2.0))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("said", "mail"),
    [
        ({"email": "Anna@Example.org", "email_verified": True}, "anna@example.org"),
        ({"email": "anna@example.org", "email_verified": "true"}, "anna@example.org"),
        ({"email": "anna@example.org", "email_verified": False}, ""),
        ({"email": "anna@example.org", "email_verified": "false"}, ""),
        ({"email": "anna@example.org", "email_verified": 1.5}, ""),
        ({"email": "anna@example.org"}, ""),
        ({"email_verified": True}, ""),
        ({"email": ["anna@example.org"], "email_verified": True}, ""),
        ({"email": "an na@example.org", "email_verified": True}, ""),
        ({"email": "ánna@example.org", "email_verified": True}, ""),
        ({"email": "\u212aarl@example.org", "email_verified": True}, ""),  # small, it is a k
        ({"email": "an\u200bna@example.org", "email_verified": True}, ""),
        ({"email": "anna@example.org\n", "email_verified": True}, ""),
        ({"email": "anna@example.org", "email_verified": 1}, ""),
        ({"email": "1 (https://id.example.org)", "email_verified": True}, ""),
        ({"email": f"{'a' * 80}@example.org", "email_verified": True}, ""),
    ],
)
def test_only_a_verified_address_counts(said: dict[str, object], mail: str) -> None:
    assert parse_identity(claims(**said)) == ProviderIdentity("https://id.example.org", "1", mail)


@pytest.mark.parametrize("gone", ["iss", "sub"])
@pytest.mark.parametrize("value", [None, "", 7])
def test_without_issuer_and_subject_there_is_no_identity(gone: str, value: object) -> None:
    with pytest.raises(ConfigError, match="“iss” and “sub”"):
        parse_identity(claims() | {gone: value})


@given(st.lists(st.tuples(st.text(min_size=1), st.text(min_size=1)), min_size=2, max_size=4))
def test_two_identities_never_have_one_name(pairs: list[tuple[str, str]]) -> None:
    known = set(pairs)
    names = {ProviderIdentity(*pair).own_name for pair in known}
    assert len(names) == len(known)
    for name in names:
        assert 0 < len(name) <= 80
        assert name == name.strip() == normalize_member_name(name)


def test_a_subject_cannot_be_written_so_that_it_reads_as_another() -> None:
    first = ProviderIdentity("https://b.org", "a (https://c.org)")
    second = ProviderIdentity("https://b.org) (https://c.org", "a")
    assert (
        len({first.own_name, second.own_name, ProviderIdentity("https://c.org", "a").own_name}) == 3
    )
    assert ProviderIdentity("https://id.org", "anna@example.org").own_name != "anna@example.org"


def test_whoever_comes_first_to_an_empty_home_is_admin(store: Store) -> None:
    assert resolve_name(store, ANNA, 1.0) == "anna@example.org"
    project = find_project(store, "anna@example.org", "")
    assert store.projects.role_of(project.id, "anna@example.org") == "admin"
    second = ProviderIdentity("https://id.example.org", "2", "bo@example.org")
    assert resolve_name(store, second, 2.0) == "bo@example.org"
    with pytest.raises(NotAllowed, match=r"bo@example.org, who has no role.*Ask anna@example.org"):
        find_project(store, "bo@example.org", project.id)
    assert len(store.projects.all()) == 1


def test_two_who_come_at_once_do_not_both_become_admin(home: Path) -> None:
    bo = ProviderIdentity("https://id.example.org", "2", "bo@example.org")
    with open_store(home) as one, open_store(home) as other:
        looked = one.projects.first()
        resolve_name(other, bo, 1.0)
        assert looked is None
        resolve_name(one, ANNA, 2.0)
        (project,) = one.projects.all()
        assert [m.person for m in one.projects.members(project.id)] == ["bo@example.org"]


def test_somebody_without_a_role_leaves_nothing_behind(store: Store) -> None:
    ensure_project(store, "Mira", 1.0)
    before = list(store.db.conn.iterdump())
    assert resolve_name(store, ANNA, 2.0) == "anna@example.org"
    with pytest.raises(NotAllowed, match="Ask Mira to add"):
        find_project(store, "anna@example.org", "")
    assert list(store.db.conn.iterdump()) == before


def test_an_address_stays_with_the_first_identity_that_did_something_under_it(store: Store) -> None:
    project = ensure_project(store, "Mira", 1.0)
    joined(store, project.id, "anna@example.org")
    heir = ProviderIdentity("https://id.example.org", "9", "anna@example.org")
    elsewhere = ProviderIdentity("https://other.example.org", "1", "anna@example.org")
    assert resolve_name(store, ANNA, 2.0) == "anna@example.org"
    for stranger in (heir, elsewhere):
        name = resolve_name(store, stranger, 3.0)
        assert name == stranger.own_name
        with pytest.raises(NotAllowed):
            find_project(store, name, project.id)
    assert resolve_name(store, ANNA, 4.0) == "anna@example.org"


def test_who_gets_another_address_keeps_their_name(store: Store) -> None:
    project = ensure_project(store, "Mira", 1.0)
    joined(store, project.id, "anna@example.org")
    resolve_name(store, ANNA, 2.0)
    married = ProviderIdentity(ANNA.issuer, ANNA.subject, "anna.berg@example.org")
    assert resolve_name(store, married, 3.0) == "anna@example.org"
    assert (
        resolve_name(store, ProviderIdentity(ANNA.issuer, ANNA.subject), 4.0) == "anna@example.org"
    )
    taker = ProviderIdentity(ANNA.issuer, "5", "anna@example.org")
    assert resolve_name(store, taker, 5.0) == taker.own_name


def test_an_admin_may_type_an_address_in_capitals(store: Store) -> None:
    assert normalize_member_name(" Anna@Example.ORG ") == "anna@example.org"
    assert normalize_member_name("anna@\u2060example.org\u200b") == "anna@example.org"
    assert normalize_member_name("Ann\u00a0 Lee\u202e \u3164") == "Ann Lee"
    assert normalize_member_name("Le\u0301na") == "L\u00e9na"
    assert (
        normalize_member_name("Aa1 (https://id.example.org/A)") == "Aa1 (https://id.example.org/A)"
    )


def test_only_projects_in_which_one_is_are_offered(store: Store) -> None:
    first = ensure_project(store, "Mira", 1.0)
    other = Project("b", "Other", 2.0)
    with store.writing():
        store.projects.save(other)
    joined(store, other.id, "anna@example.org")
    assert store.projects.of("anna@example.org") == [other]
    assert find_project(store, "anna@example.org", first.id) == other
    joined(store, first.id, "anna@example.org")
    assert find_project(store, "anna@example.org", "b") == other
    assert find_project(store, "anna@example.org", "") == first


def test_what_holds_for_all_takes_the_role_in_the_first_project(store: Store) -> None:
    first = ensure_project(store, "Mira", 1.0)
    with store.writing():
        store.projects.save(Project("b", "Other", 2.0))
    joined(store, "b", "Karl", "admin")
    with pytest.raises(NotAllowed, match="takes the role lead; Karl has none in “First project”"):
        store.projects.require_for_all("Karl", "lead", "change model sets")
    joined(store, first.id, "Karl", "lead")
    store.projects.require_for_all("Karl", "lead", "change model sets")
    with pytest.raises(NotAllowed, match="takes the role admin; Karl has lead"):
        store.projects.require_for_all("Karl", "admin", "change limits")


def test_nobody_may_anything_in_an_empty_home(store: Store) -> None:
    with pytest.raises(NotAllowed, match="Karl has none"):
        store.projects.require_for_all("Karl", "annotator", "look")


def test_a_whole_section_is_taken() -> None:
    found = parse_login(GOOD)
    assert found.origin == "https://cp.example.org"
    assert list(found.providers) == ["default"]
    assert "s3cret" not in repr(found)


def test_providers_may_have_names() -> None:
    keys = ("client_id", "client_secret", "server_metadata_url")
    named = {name: GOOD[name] for name in keys}
    rest = {name: value for name, value in GOOD.items() if name not in keys}
    assert list(parse_login(rest | {"google": named, "okta": named}).providers) == [
        "google",
        "okta",
    ]
    both = parse_login(GOOD | {"google": named, "client_kwargs": {"prompt": "login"}})
    assert list(both.providers) == ["default", "google"]
    with pytest.raises(ConfigError, match=r"under \[auth.google\].*no client_id"):
        parse_login(rest | {"google": named | {"client_id": ""}})
    with pytest.raises(ConfigError, match="without underscore"):
        parse_login(rest | {"my_own": named})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"cookie_secret": None}, "cookie_secret of at least 32 random characters.*found none"),
        ({"cookie_secret": "short-one"}, "found a shorter one"),
        ({"cookie_secret": 7}, "cookie_secret"),
        ({"redirect_uri": None}, "redirect_uri such as https.*found none"),
        ({"redirect_uri": "https://cp.example.org/"}, "found “https://cp.example.org/”"),
        ({"redirect_uri": "http://cp.example.org/oauth2callback"}, "redirect_uri such as https"),
        ({"redirect_uri": "javascript:/oauth2callback"}, "redirect_uri such as https"),
        ({"client_id": None}, "found no client_id"),
        ({"client_secret": "  "}, "found no client_secret"),
        ({"server_metadata_url": None, "client_id": None}, "no client_id and no server_metadata"),
    ],
)
def test_an_incomplete_section_is_one_sentence_without_secrets(
    change: dict[str, object], words: str
) -> None:
    with pytest.raises(ConfigError, match=words) as raised:
        parse_login(GOOD | change)
    assert "\n" not in str(raised.value)
    for secret in (GOOD["client_secret"], GOOD["cookie_secret"], "short-one"):
        assert secret not in str(raised.value)


def test_a_section_that_is_no_table_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"table \[auth\]"):
        parse_login("yes")


@pytest.mark.parametrize("host", ["localhost:8501", "127.0.0.1:8501", "[::1]:8501"])
def test_this_computer_needs_no_tls(host: str) -> None:
    found = parse_login(GOOD | {"redirect_uri": f"http://{host}/oauth2callback"})
    assert found.origin == f"http://{host}"


def test_a_port_that_only_the_server_knows_is_not_compared() -> None:
    found = parse_login(GOOD | {"redirect_uri": "http://localhost:{port}/oauth2callback"})
    assert found.origin == ""


@pytest.mark.parametrize("package", ["authlib", "httpx"])
def test_a_missing_package_is_named(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name: None if name == package else object()
    )
    with pytest.raises(ConfigError, match=f"(?i)package {package}, which login needs"):
        parse_login(GOOD)


def written(folder: Path, text: str) -> None:
    (folder / ".streamlit").mkdir(parents=True, exist_ok=True)
    (folder / ".streamlit" / "secrets.toml").write_text(text, encoding="utf-8")


def toml(values: dict[str, Any]) -> str:
    return "[auth]\n" + "".join(f"{name} = {json.dumps(value)}\n" for name, value in values.items())


def test_the_files_say_whether_login_is_on(tmp_path: Path) -> None:
    mine, ours = tmp_path / "mine", tmp_path / "ours"
    assert load_login((mine, ours)) is None
    written(ours, 'OPENAI_API_KEY = "sk"\n')
    assert load_login((mine, ours)) is None
    written(mine, toml(GOOD))
    found = load_login((mine, ours))
    assert found
    assert found.origin == "https://cp.example.org"


@pytest.mark.parametrize("text", ["[auth", 'cookie_secret = "s3cret', "\udc80"])
def test_secrets_that_cannot_be_read_let_nobody_in(tmp_path: Path, text: str) -> None:
    (tmp_path / ".streamlit").mkdir()
    (tmp_path / ".streamlit" / "secrets.toml").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ConfigError, match="nobody is let in") as raised:
        load_login((tmp_path,))
    assert "s3cret" not in str(raised.value)


class Answers(BaseHTTPRequestHandler):
    """Says what a server says that is no provider."""

    def do_GET(self) -> None:
        body = {"/doc": b'{"authorization_endpoint": "x"}', "/page": b"<html>", "/list": b"[]"}
        self.send_response(200 if self.path in body else 404)
        self.end_headers()
        self.wfile.write(body.get(self.path, b""))

    def log_message(self, *_: Any, **__: Any) -> None:
        """Say nothing."""


@pytest.fixture
def address() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Answers)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_a_provider_is_asked_before_anybody_is_sent_there(address: str) -> None:
    check_provider(f"{address}/doc")
    for path, words in (("/none", "404"), ("/page", "found"), ("/list", "discovery document")):
        with pytest.raises(ConfigError, match=words) as raised:
            check_provider(address + path)
        assert "\n" not in str(raised.value)
        assert address.removeprefix("http://") in str(raised.value)


@pytest.mark.parametrize("place", ["http://127.0.0.1:9/x", "nonsense", "https://", "ftp://a/b"])
def test_a_provider_that_does_not_answer_is_one_sentence(place: str) -> None:
    with pytest.raises(ConfigError, match=r"identity provider at .* to answer, found"):
        check_provider(place)


# What the operator is told


def test_the_operators_example_is_whole() -> None:
    text = (PROJECT_ROOT / "docs" / "operators.md").read_text(encoding="utf-8")
    example = tomllib.loads(text.split("```toml\n")[1].split("```")[0])["auth"]
    with pytest.raises(ConfigError, match="cookie_secret"):
        parse_login(example)
    found = parse_login(example | {"cookie_secret": GOOD["cookie_secret"]})
    assert found.origin == "https://counterpoint.example.org"


def doctor(capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    code = main(["doctor"])
    return code, capsys.readouterr().out


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The operator's account, where Streamlit looks for secrets too; no other check is made."""
    looks = tuple(look for look in core.pipeline.doctor.DOCTOR_CHECKS if look[0] == "login")
    assert looks
    monkeypatch.setattr("core.pipeline.doctor.DOCTOR_CHECKS", looks)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_doctor_says_whether_login_is_on(
    account: Path, address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out = doctor(capsys)
    assert (code, "ok    login: off: whoever opens the page" in out) == (0, True)
    written(account, toml(GOOD | {"server_metadata_url": f"{address}/doc"}))
    code, out = doctor(capsys)
    host = address.removeprefix("http://")
    assert (code, f"ok    login: on at https://cp.example.org, by {host}" in out) == (0, True)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"client_id": ""}, "found no client_id"),
        ({"server_metadata_url": "http://127.0.0.1:9/x"}, "identity provider at 127.0.0.1:9"),
    ],
)
def test_doctor_says_what_is_wrong_with_the_login(
    account: Path, capsys: pytest.CaptureFixture[str], change: dict[str, str], words: str
) -> None:
    written(account, toml(GOOD | change))
    code, out = doctor(capsys)
    assert code == 1
    assert out.startswith("FAIL  login: Expected")
    assert words in out
    assert out.count("\n") == 1


@pytest.mark.parametrize(
    ("guest", "known", "then"),
    [
        ("annotator", "admin", "admin"),
        ("admin", "annotator", "admin"),
        ("lead", None, "lead"),
        (None, "lead", "lead"),
    ],
)
def test_a_guest_who_takes_a_known_name_takes_no_role_away(
    guest: PersonRole | None, known: PersonRole | None, then: PersonRole
) -> None:
    with open_store(None) as store:
        project = ensure_project(store, "Lee", 1.0)
        with store.writing():
            for person, role in ((GUEST, guest), ("Ana", known)):
                if role:
                    store.projects.set_member(Member(project.id, person, role, 1.0))
        name_guest(store, project.id, "Ana", 2.0)
        assert store.projects.role_of(project.id, "Ana") == then
        assert store.projects.role_of(project.id, GUEST) is None
