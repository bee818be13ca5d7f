"""A server with login in a real browser: three people, a provider on this computer, one project."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from components.widgets.wording import WORD_JOINER as JOINER
from core.store import open_store
from tests.browser.conftest import settle, until_kept
from tests.browser.identity_provider import Provider
from tests.browser.serving import Server, free_port
from tests.browser.test_correction import checked
from tests.browser.tls_proxy import TlsProxy

OpenPage = Callable[..., Page]
PEOPLE = {
    "Anna": {"sub": "1", "email": "Anna@example.org", "email_verified": True},
    "Bo": {"sub": "2", "email": "bo@example.org", "email_verified": True},
    "Cleo": {"sub": "3", "email": "bo@example.org", "email_verified": False},
}
ANNA, BO = "anna@example.org", "bo@example.org"
REASON = re.compile("^Reason")


@pytest.fixture
def provider() -> Iterator[Provider]:
    port = free_port()
    made = Provider(PEOPLE, f"http://127.0.0.1:{port}/oauth2callback")
    made.start()
    yield made
    made.stop()


def operator(folder: Path, provider: Provider) -> None:
    secrets = folder / "operator" / ".streamlit" / "secrets.toml"
    secrets.parent.mkdir(parents=True)
    secrets.write_text(provider.secrets_file())


@pytest.fixture
def server(make_server: Callable[..., Server], provider: Provider, tmp_path: Path) -> Server:
    """A server whose operator wrote an `[auth]` section into the secrets of their account."""
    operator(tmp_path, provider)
    port = int(provider.redirect_uri.split(":")[2].split("/")[0])
    return make_server(port=port, account=tmp_path / "operator")


def log_in(page: Page, person: str) -> None:
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("link", name=person, exact=True).click()
    page.wait_for_url(re.compile(r"^https?://127\.0\.0\.1:\d+/$"))
    page.get_by_role("button", name="Log out").wait_for()
    settle(page)


def menu(page: Page) -> list[str]:
    return page.locator('[data-testid="stSidebarNav"] a').all_inner_texts()


def test_two_people_work_under_their_identities_and_a_third_is_told_whom_to_ask(
    server: Server, provider: Provider, open_page: OpenPage
) -> None:
    page = open_page(server, "/history", beside=provider.url, is_new=True)
    page.get_by_role("button", name="Log in").wait_for()
    settle(page)
    assert menu(page) == []
    expect(page.locator("body")).not_to_contain_text("First project")
    expect(page.locator("body")).not_to_contain_text("not found")
    assert not server.home.exists(), "something was written for somebody unknown"
    log_in(page, "Anna")
    assert any("History" in entry for entry in menu(page))
    checked(page)
    link = page.url.removeprefix(server.url)

    bo = open_page(server, link, beside=provider.url)
    log_in(bo, "Bo")
    told = bo.get_by_text("who has no role here yet")
    told.wait_for()
    words = told.inner_text()
    assert f"logged in as {BO}, who has no role here yet. Ask {ANNA} to" in words.replace(
        JOINER, ""
    )
    name = words.split(" as ")[1].split(",")[0]  # as one copies it, with what nobody sees
    assert menu(bo) == []
    bo.goto(server.url + link)
    told.wait_for()
    expect(bo.locator("body")).not_to_contain_text("Hallucinated")

    page.get_by_role("link", name="Project").click()
    page.get_by_role("tab", name="People").click()
    page.get_by_label("Add a person").fill(name.capitalize())
    page.get_by_label("Add a person").press("Tab")
    settle(page)
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_label("Add a person").and_(page.locator('[value=""]')).wait_for()
    expect(page.get_by_text(re.compile("^bo@.*since"))).to_be_visible()

    bo.goto(server.url + "/review")
    bo.get_by_text("0 of 1 item reviewed").wait_for()
    settle(bo)
    bo.keyboard.press("Control+Enter")
    bo.get_by_role("button", name="Agree (h)").wait_for()
    settle(bo)
    bo.keyboard.press("Alt+3")
    bo.get_by_label(REASON).fill("two sources differ")
    settle(bo)
    bo.keyboard.press("Control+Enter")
    bo.get_by_text("Nothing else is waiting for you").wait_for()

    with open_store(server.home) as store, store.writing():
        (project,) = store.projects.all()
        store.projects.save(replace(project, people_each=2))  # Bo's answer alone would do
    page.goto(server.url + link)
    page.get_by_text("two sources differ").first.wait_for()
    page.get_by_role("button", name="Agree: hallucinated").wait_for()
    settle(page)
    page.keyboard.press("Alt+2")
    page.get_by_test_id("stBaseButton-primary").filter(has_text="hallucinated").wait_for()
    settle(page)
    page.keyboard.press("Control+Enter")
    page.get_by_text("Saved.").wait_for()
    with open_store(server.home) as store:
        (project,) = store.projects.all()
        roles = {m.person: m.role for m in store.projects.members(project.id)}
        said = {(c.author, c.label) for c in store.corrections.newest_by_person(project.id)}
    assert roles == {ANNA: "admin", BO: "annotator"}
    assert said == {(ANNA, "hallucinated"), (BO, "unclear")}

    bo.goto(server.url + "/settings")
    mine = bo.get_by_text("the name shown on your corrections")
    mine.wait_for()
    assert BO in mine.inner_text().replace(JOINER, "")
    expect(bo.get_by_label("Your name")).to_have_count(0)

    cleo = open_page(server, beside=provider.url)
    log_in(cleo, "Cleo")
    hers = cleo.get_by_text("who has no role here yet").inner_text().replace(JOINER, "")
    assert f"logged in as 3 ({provider.url}), who" in hers

    bo.get_by_role("button", name="Log out").click()
    bo.get_by_role("button", name="Log in").wait_for()
    assert provider.sessions_ended == 1
    assert menu(bo) == []
    bo.reload()
    bo.get_by_role("button", name="Log in").wait_for()


def test_what_was_typed_outlives_a_login_that_ended_and_a_download_does_not_need_another(
    server: Server, provider: Provider, open_page: OpenPage
) -> None:
    page = open_page(server, beside=provider.url)
    log_in(page, "Anna")
    checked(page)
    link = page.url
    page.keyboard.press("Alt+2")
    expect(page.get_by_label(REASON)).to_be_focused()
    settle(page)
    page.keyboard.type("the approaches count too")
    until_kept(page, server, "the approaches count too")
    with page.expect_download() as loading:
        page.get_by_role("button", name="Trace file").click()
    assert json.loads(loading.value.path().read_text())["format"] == "counterpoint-trace"
    page.context.clear_cookies()
    page.goto(link)
    page.get_by_role("button", name="Log in").wait_for()
    expect(page.locator("body")).not_to_contain_text("approaches")
    log_in(page, "Anna")
    page.goto(link)
    expect(page.get_by_label(REASON)).to_have_value("the approaches count too")


def test_an_admin_downloads_answers_archive_and_report(
    server: Server, provider: Provider, open_page: OpenPage
) -> None:
    page = open_page(server, beside=provider.url)
    log_in(page, "Anna")
    checked(page)
    page.get_by_role("link", name="Import / export").click()
    for name, beginning in (("JSONL (everything)", b'{"'), ("Whole project", b"PK")):
        button = page.get_by_role("button", name=name)
        button.wait_for()
        settle(page)
        with page.expect_download() as loading:
            button.click()
        assert loading.value.path().read_bytes().startswith(beginning)
    page.get_by_role("link", name="History").click()
    button = page.get_by_role("button", name="Report of these runs")
    button.wait_for()
    settle(page)
    with page.expect_download() as loading:
        button.click()
    assert "1 run" in loading.value.path().read_text()


def test_a_forged_cookie_and_a_silent_provider_let_nobody_in(
    server: Server, provider: Provider, open_page: OpenPage
) -> None:
    page = open_page(server, beside=provider.url)
    log_in(page, "Anna")
    forged = []
    for cookie in page.context.cookies():
        if cookie["name"].startswith("_streamlit_user"):
            value = cookie["value"]
            cookie["value"] = ("B" if value[10] != "B" else "C").join((value[:10], value[11:]))
        forged.append(cookie)
    page.context.clear_cookies()
    page.context.add_cookies(forged)  # type: ignore[arg-type]
    page.reload()
    page.get_by_role("button", name="Log in").wait_for()
    provider.stop()
    page.get_by_role("button", name="Log in").click()
    page.get_by_text("Expected the identity provider at").wait_for()
    assert page.url.startswith(server.url)


def test_behind_a_proxy_with_tls_one_logs_in_at_the_proxys_address_alone(
    make_server: Callable[..., Server], open_page: OpenPage, tmp_path: Path
) -> None:
    port = free_port()
    proxy = TlsProxy(tmp_path, port)
    provider = Provider(PEOPLE, f"{proxy.url}/oauth2callback")
    provider.start()
    operator(tmp_path, provider)
    server = make_server(port=port, account=tmp_path / "operator")
    page = open_page(server, beside=proxy.url)
    page.get_by_text("You can log in only at").wait_for()
    expect(page.get_by_role("button", name="Log in")).to_have_count(0)
    front = Server(server.home, proxy.url, port)
    outside = open_page(front, beside=provider.url, ignore_https_errors=True)
    log_in(outside, "Anna")
    checked(outside)
    outside.reload()
    outside.get_by_role("button", name="Log out").click()
    outside.get_by_role("button", name="Log in").wait_for()
    assert outside.url.startswith(proxy.url)
    provider.stop()
    proxy.close()
