"""How every page looks: nothing in the console, nothing wider than a phone, in both themes."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page

from components.app.frame import MENU, URL_PATHS
from components.app.login import COOKIE
from core.documents.library import store_file
from core.pipeline.jobs import JobRunner
from core.pipeline.single_check import CaseDraft, store_case
from core.review.adjudication import record_correction
from core.review.people import ensure_project
from core.runtime.config import Settings
from core.schema.records import Label, Plan, Span, new_id
from core.schema.reviews import Correction
from core.store import open_store
from tests.browser.conftest import choose_home, settle
from tests.browser.serving import Server, Site

BRIDGE = "The bridge over the sound opened in 1931. It is 412 m long."
ARABIC = "يبلغ طول الجسر 512 مترا."
ARABIC_SOURCE = "افتتح الجسر فوق المضيق عام 1931. يبلغ طول الجسر 412 مترا."
pytestmark = pytest.mark.xdist_group("looks")
ANSWERED = 11  # verdicts; charts are drawn from ten on
CROWDED = 2600  # pixels: what nobody scrolls through on a phone to find a setting
# Streamlit first asks for its health below a page's own address, where there is none.
PROBES = ("/_stcore/health", "/_stcore/host-config")


class LookedAt:
    """A site over a home with checks, answers and a claim in Arabic."""

    def __init__(self, server: Site) -> None:
        self.server = server
        self.runs: list[str] = []
        self.cases: list[str] = []
        with open_store(server.home) as store:
            project = ensure_project(store, "Mira", 1.0)
            store.projects.save_note("person", "Mira")
            jobs = JobRunner(server.home)
            files = [("bridge.txt", BRIDGE), ("arabic.txt", ARABIC_SOURCE)]
            sources = [
                store_file(
                    store, server.home, project.id, name, text.encode(), "Mira", 1.0, Settings()
                ).id
                for name, text in files
            ]
            drafts = [CaseDraft(ARABIC, "ما طول الجسر؟", (sources[1],))]
            drafts += [
                CaseDraft(f"The bridge over the sound is {500 + n} m long.", "", (sources[0],))
                for n in range(ANSWERED)
            ]
            for draft in drafts:
                with store.writing():
                    case = store_case(store, project, draft, "Mira", 1.0)
                    self.runs.append(jobs.queue(store, case, Plan()))
                    self.cases.append(case.id)
            jobs.submit(store, self.runs, jobs.payer("Mira", {}))
            assert all(jobs.wait(run_id, 120) for run_id in self.runs)
            for n, (run_id, case_id) in enumerate(zip(self.runs[1:], self.cases[1:], strict=True)):
                checked = store.cases.get(case_id)
                assert checked is not None
                label: Label = "hallucinated" if n % 3 else "supported"
                start = checked.response.index("5")
                words = checked.response[start : start + 3]
                span = Span(start, start + 3, words, 1.0, "reasoning", "Mira")
                said = Correction(
                    new_id(), run_id, case_id, "Mira", time.time(), label,
                    (span,) if n % 3 else (), "So.", machine_label="hallucinated",
                )  # fmt: skip
                with store.writing():
                    record_correction(store, said, checked)

    def addresses(self) -> list[str]:
        """Each page of the menu, and those that links lead to."""
        pages = []
        for path, _, icon in (entry for entries in MENU.values() for entry in entries):
            name = URL_PATHS.get(path, path.rsplit("/", 1)[-1].removesuffix(".py"))
            if icon:
                pages.append("/" if name == "new" else f"/{name}")
        run, case = self.runs[0], self.cases[0]
        linked = (
            f"run?run={run}",
            f"replay?run={run}",
            f"label?case={case}",
            f"adjudicate_case?case={case}",
        )
        return [*pages, *(f"/{address}" for address in linked)]


@pytest.fixture(scope="module")
def looked_at(shared_server: Server, tmp_path_factory: pytest.TempPathFactory) -> LookedAt:
    return LookedAt(Site(tmp_path_factory.mktemp("looks") / "home", shared_server.url))


@pytest.fixture(params=[("light", 1280), ("dark", 390)], ids=["light", "dark and narrow"])
def page(browser: Browser, looked_at: LookedAt, request: pytest.FixtureRequest) -> Iterator[Page]:
    scheme, width = request.param
    viewport = {"width": width, "height": 800}
    context = browser.new_context(viewport=viewport, color_scheme=scheme)  # type: ignore[arg-type]
    choose_home(context, looked_at.server)
    context.add_cookies([{"name": COOKIE, "value": "Mira", "url": looked_at.server.url}])
    yield context.new_page()
    context.close()


def open_settled(page: Page, address: str) -> None:
    page.goto(address)
    page.locator("h1").first.wait_for(timeout=60_000)
    settle(page)


def test_no_page_gives_a_warning_an_error_or_a_line_too_wide(
    looked_at: LookedAt, page: Page
) -> None:
    told: list[str] = []

    def note(message: ConsoleMessage) -> None:
        is_probe = message.location["url"].endswith(PROBES)
        if message.type in ("warning", "error") and not is_probe:
            told.append(f"{page.url}: {message.text} {message.location['url']}")

    page.on("console", note)
    page.on("pageerror", lambda error: told.append(f"{page.url}: {error}"))
    too_wide, too_long = [], []
    for address in looked_at.addresses():
        open_settled(page, looked_at.server.url + address)
        main = page.get_by_test_id("stMain")
        if main.evaluate("element => element.scrollWidth - element.clientWidth") > 0:
            too_wide.append(address)
        if main.evaluate("element => element.scrollHeight") > CROWDED and address == "/settings":
            too_long.append(address)
    assert told == []
    assert (too_wide, too_long) == ([], [])


def test_a_right_to_left_claim_is_aligned_and_punctuated_right(
    looked_at: LookedAt, page: Page
) -> None:
    open_settled(page, f"{looked_at.server.url}/label?case={looked_at.cases[0]}")
    title = page.locator("h1").first
    assert title.inner_text().endswith(" · Label")
    places = title.evaluate(
        """element => {
          const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
          let node = walker.nextNode();
          while (!node.data.includes("·")) node = walker.nextNode();
          const left = (from, to) => {
            const range = document.createRange();
            range.setStart(node, from);
            range.setEnd(node, to);
            return range.getBoundingClientRect();
          };
          const stop = node.data.indexOf(".");
          return {
            right: element.getBoundingClientRect().right - left(0, 1).right,
            first: left(0, 1).left, stop: left(stop, stop + 1).left,
            label: left(node.data.indexOf("L"), node.data.length).left,
          };
        }"""
    )
    assert places["right"] < 30, "it begins at the right"
    assert places["label"] < places["stop"] < places["first"], "the full stop ends the claim"


def test_a_table_that_goes_on_beyond_its_edge_shows_that(looked_at: LookedAt, page: Page) -> None:
    open_settled(page, f"{looked_at.server.url}/agreement")
    page.locator(".dvn-scroller").first.wait_for()
    told = page.locator(".dvn-scroller").evaluate_all(
        """tables => tables.map((table) =>
          [table.scrollWidth > table.clientWidth, getComputedStyle(table).boxShadow !== "none"])"""
    )
    assert all(is_cut == has_shadow for is_cut, has_shadow in told)
    width = page.evaluate("innerWidth")
    assert any(is_cut for is_cut, _ in told) == (width == 390)
