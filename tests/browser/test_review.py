"""An annotator's day in a real browser: item after item, by keyboard alone."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from playwright.sync_api import Page, expect

from core.documents.library import store_file
from core.pipeline.jobs import JobRunner
from core.pipeline.single_check import CaseDraft, store_case
from core.review.adjudication import record_correction
from core.review.people import ensure_project
from core.review.queue_ranking import fill_queue
from core.runtime.config import Settings
from core.schema.records import Plan, Span
from core.schema.reviews import Correction, GoldAnswer
from core.store import Store, open_store
from core.store.review_queue import NO_ITEM_FILTER
from tests.browser.conftest import settle
from tests.browser.serving import Site, list_newest_corrections

MakeSite = Callable[..., Site]
OpenPage = Callable[..., Page]
CATS = "Female cats tend to be right pawed, while male cats are more often left pawed."


def checked(server: Site, claims: list[str], text: str = "") -> None:
    """Checks of these claims that have finished, over the text if there is one."""
    with open_store(server.home) as store:
        project = ensure_project(store, "Mira", 1.0)
        store.projects.save_note("person", "Mira")
        documents: tuple[str, ...] = ()
        if text:
            entry = store_file(
                store, server.home, project.id, "cats.txt", text.encode(), "Mira", 1.0, Settings()
            )
            documents = (entry.id,)
        jobs = JobRunner(server.home)
        runs = []
        for claim in claims:
            with store.writing():
                case = store_case(
                    store, project, CaseDraft(claim, documents=documents), "Mira", 1.0
                )
                runs.append(jobs.queue(store, case, Plan()))
        jobs.submit(store, runs, jobs.payer("Mira", {}))
        assert all(jobs.wait(run_id, 60) for run_id in runs)


def test_twenty_items_are_labelled_submitted_and_followed_by_the_next_from_the_keyboard(
    make_site: MakeSite, open_page: OpenPage
) -> None:
    server = make_site()
    claims = [f"Cat number {n} sleeps all day." for n in range(20)]
    checked(server, claims)
    page = open_page(server, "/review")
    page.get_by_text("0 of 20 items reviewed").wait_for()
    settle(page)
    page.keyboard.press("Control+Enter")
    seen: set[str] = set()
    for _ in range(20):
        shown = page.get_by_text(re.compile(r"^Cat number \d+ sleeps all day\.$")).first
        shown.wait_for()
        settle(page)
        claim = shown.inner_text()
        assert claim not in seen, "an item came twice"
        seen.add(claim)
        page.keyboard.press("Alt+3")
        page.get_by_label("Reason (if you like)").wait_for()
        settle(page)
        page.keyboard.press("Control+Enter")
        expect(page.get_by_text(claim, exact=True)).to_have_count(0)
    page.get_by_text("Nothing else is waiting for you").wait_for()
    assert seen == set(claims)
    with open_store(server.home) as store:
        saved = list_newest_corrections(store)
        project = ensure_project(store, "Mira", 1.0)
        counts = store.queue.counts_of(project.id, "Mira")
    assert len(saved) == 20
    assert counts["submitted"] == 20


def test_a_blind_first_pass_hides_what_the_machine_found(
    make_site: MakeSite, open_page: OpenPage
) -> None:
    server = make_site()
    said = "Female cats tend to be left pawed. Male cats are more often left pawed."
    checked(server, [said], CATS)
    with open_store(server.home) as store:
        project = ensure_project(store, "Mira", 1.0)
        store.projects.save(replace(project, is_blind=True))
    page = open_page(server, "/review")
    page.get_by_text("0 of 1 item reviewed").wait_for()
    settle(page)
    for hidden in ("The machine says", "How likely hallucinated (%)"):
        expect(page.get_by_text(hidden)).to_have_count(0)
    page.keyboard.press("Control+Enter")
    page.get_by_text("Female cats tend to be left pawed.").first.wait_for()
    settle(page)
    expect(page.locator(".cp-verdict-label")).to_have_count(0)
    expect(page.get_by_role("tab", name="Debate")).to_have_count(0)
    shown = page.locator('[data-testid="stMain"]').inner_text()
    for told in ("✗", "✓", "disagree", "unsure", "quoted in the debate", "likely"):
        assert told not in shown
    page.keyboard.press("Alt+2")
    page.locator(".cp-se-text").wait_for()
    settle(page)
    expect(page.locator(".cp-se-suggested")).to_have_count(0)
    page.locator(".cp-se-text").focus()
    for key in ("Home", *["ArrowRight"] * 5, "1"):
        page.keyboard.press(key)
    expect(page.locator(".cp-se-list")).to_contain_text("“left”")
    settle(page)
    page.keyboard.press("Control+Enter")
    page.get_by_text("Nothing else is waiting for you").wait_for()
    with open_store(server.home) as store:
        (saved,) = list_newest_corrections(store)
    assert (saved.label, saved.is_blind, saved.machine_label) == (
        "hallucinated", True, "hallucinated"
    )  # fmt: skip
    assert [(span.text, span.source) for span in saved.spans] == [("left", "Mira")]


def test_what_is_skipped_or_flagged_is_passed_on(make_site: MakeSite, open_page: OpenPage) -> None:
    server = make_site()
    checked(server, ["One cat is asleep.", "Two cats are awake.", "Three cats are out."])
    page = open_page(server, "/review")
    page.get_by_text("0 of 3 items reviewed").wait_for()
    settle(page)
    page.keyboard.press("Control+Enter")
    for key, did in (("Control+Space", "Skipped, “"), ("Alt+f", "Flagged, “")):
        page.get_by_text("Why this one").wait_for()
        settle(page)
        page.keyboard.press(key)
        # The address changes before the page is drawn, and a key falls on what is drawn.
        page.get_by_text(did).wait_for()
        settle(page)
    page.get_by_text("Why this one").wait_for()
    settle(page)
    page.get_by_role("link", name="The queue").click()
    page.get_by_text(re.compile("Mira: 0 submitted, 1 skipped, 1 flagged · 20%")).wait_for()
    page.get_by_text("flagged", exact=True).click()
    settle(page)
    expect(page.locator("canvas td").filter(has_text=re.compile("cats? "))).to_have_count(1)


@pytest.mark.journey
def test_one_wrong_word_takes_three_keys_with_words_source_and_save_in_view(
    make_site: MakeSite, open_page: OpenPage
) -> None:
    """Where nothing is suggested: the item is blind. The next item then is there."""
    server = make_site()
    checked(server, ["The bridge over the sound is 512 m long.", "Nothing at all."], CATS)
    make_blind(server)
    view = {"width": 1366, "height": 768}
    page = open_page(server, f"/label?case={item_with(server, '512')}", viewport=view)
    words = page.locator(".cp-se-text")
    words.wait_for()
    settle(page)
    expect(words).to_be_focused()
    save = page.get_by_role("button", name=re.compile("^Save"))
    for part in (words, page.locator(".cp-sr-source"), save):
        box = part.bounding_box()
        assert box is not None
        assert box["y"] >= 0
        assert box["y"] + box["height"] <= view["height"]
    assert page.locator(".cp-text, .cp-se-text").count() == 1, "the response stands there once"
    expect(page.get_by_text("0 of 2 answered")).to_be_visible()
    expect(page.locator(".cp-se-clock")).to_have_text(re.compile(r"0:\d\d"))
    for key in ("h", "4", "Control+Enter"):
        page.keyboard.press(key)
    expect(page.get_by_text("Nothing at all.").first).to_be_visible(timeout=30_000)
    expect(words).to_have_count(1)  # the last item's go once the page is drawn
    expect(words).to_be_focused()
    expect(page.get_by_text("is in no source")).to_have_count(0)  # said of the last item
    with open_store(server.home) as store:
        (saved,) = list_newest_corrections(store)
    assert [(span.text, span.category) for span in saved.spans] == [("512", "number_or_date")]


def test_keys_of_a_quick_hand_wait_for_the_next_item(
    make_site: MakeSite, open_page: OpenPage
) -> None:
    """Six items are answered without a pause, each while it is drawn; none gets another answer."""
    server = make_site()
    checked(server, [f"Cat number {n} sleeps all day." for n in range(6)], CATS)
    make_blind(server)  # nothing to overturn, so no reason is asked
    page = open_page(server, f"/label?case={item_with(server, 'number 3')}")
    page.wait_for_function("window.counterpointKeys?.taker")
    said = "suhusu"
    for label in said:
        page.keyboard.press(label)
        page.wait_for_timeout(30)
        page.keyboard.press("Control+Enter")
        page.wait_for_timeout(30)
    page.get_by_text("Nothing else is waiting for you").wait_for(timeout=120_000)
    with open_store(server.home) as store:
        project = ensure_project(store, "Mira", 1.0)
        saved = sorted(store.corrections.newest_by_person(project.id), key=lambda one: one.at)
        assert sum(len(store.corrections.history(one.case_id)) for one in saved) == len(said)
    assert "".join(one.label[0] for one in saved) == said


BUTTONS_OUTSIDE_CARDS = """() => {
  const right = (element) => element.getBoundingClientRect().right;
  const cards = [...document.querySelectorAll('[class*="st-key-settle-version-"]')];
  return cards.filter((card) => right(card.querySelector("button")) > right(card)).length;
}"""


@pytest.mark.journey
def test_a_disagreement_is_settled_by_two_keys_with_all_of_it_in_view(
    make_site: MakeSite, open_page: OpenPage
) -> None:
    """What people said, the words, their source and Save; then the next case is there."""
    server = make_site()
    claims = [f"The bridge over the sound number {n} is 512 m long." for n in (1, 2)]
    checked(server, claims, CATS)
    first, second = (item_with(server, f"number {n}") for n in (1, 2))
    for case_id in (first, second):
        differ(server, case_id)
    answer_alike(server, first)
    view = {"width": 1366, "height": 768}
    page = open_page(server, f"/adjudicate_case?case={first}", viewport=view)
    words = page.locator(".cp-se-text")
    words.wait_for()
    settle(page)
    expect(words).to_be_focused()
    expect(page.get_by_text("0 of 2 settled")).to_be_visible()
    save = page.get_by_role("button", name=re.compile("^Save"))
    versions = page.get_by_role("button", name=re.compile("^Use this")).all()
    assert len(versions) == 5
    assert page.evaluate(BUTTONS_OUTSIDE_CARDS) == 0
    source = page.locator(".cp-sr-source")
    for part in (words, source, save, *versions[:3]):
        box = part.bounding_box()
        assert box is not None
        assert box["y"] >= 0
        assert box["y"] + box["height"] <= view["height"]
        assert part is save or box["y"] < 380
    page.keyboard.press("?")
    keys = page.locator(".cp-se-keys")
    expect(keys).to_be_visible()
    page.keyboard.press("Escape")
    expect(keys).to_be_hidden()
    page.keyboard.press("Alt+4")
    reason = page.get_by_label("Reason (needed")
    reason.wait_for()
    settle(page)
    page.keyboard.press("Control+Enter")
    settle(page)
    expect(reason).to_be_focused()  # the first case had a right answer
    for part in (reason, page.get_by_role("alert")):
        expect(part).to_be_in_viewport(ratio=1)
    page.keyboard.type("It is so.")
    page.keyboard.press("Control+Enter")
    page.get_by_text("1 of 2 settled").wait_for()
    expect(page.get_by_text("It is the right answer from now on.")).to_be_visible()
    settle(page)
    expect(page).to_have_url(re.compile(second))
    expect(words).to_be_focused()
    expect(page.locator(".st-key-settle-versions")).to_have_css("flex-wrap", "nowrap")
    page.keyboard.press("Alt+5")  # Karl's
    page.keyboard.press("Control+Enter")  # at once, before Python has brought it
    page.get_by_text("settled (2)").wait_for()
    with open_store(server.home) as store:
        settled = [store.golds.that_counts(case_id) for case_id in (first, second)]
    assert [(gold.label, [s.text for s in gold.spans]) for gold in settled if gold] == [
        ("supported", []), ("hallucinated", ["512"]),
    ]  # fmt: skip


def answer_alike(server: Site, case_id: str) -> None:
    """Lea answers as Ida did; an earlier right answer was imported."""
    with open_store(server.home) as store, store.writing():
        (case,) = store.cases.several([case_id])
        said = Correction("Lea" + case_id, None, case_id, "Lea", 5.0, "supported")
        record_correction(store, said, case)
        store.golds.add(
            GoldAnswer("gold", case_id, "Mira", 4.0, "imported", "hallucinated"), case.response
        )


def differ(server: Site, case_id: str) -> None:
    """Ida and Karl answer the case, each otherwise."""
    with open_store(server.home) as store, store.writing():
        (case,) = store.cases.several([case_id])
        at = case.response.index("512")
        span = Span(at, at + 3, "512", 1.0, "number_or_date", "Karl")
        for person, label, spans in (("Ida", "supported", ()), ("Karl", "hallucinated", (span,))):
            said = Correction(person + case_id, None, case_id, person, 5.0, label, spans)  # type: ignore[arg-type]
            record_correction(store, said, case)
            store.queue.end(case_id, person, "submitted", 6.0)


def test_a_flag_with_a_reason_is_typed_sent_and_closed_from_the_keyboard(
    make_site: MakeSite, open_page: OpenPage
) -> None:
    server = make_site()
    checked(server, ["One cat is asleep.", "Two cats are awake."])
    page = open_page(server, f"/label?case={item_with(server, 'One')}")
    page.locator(".cp-se-text").wait_for()
    settle(page)
    opener = page.get_by_role("button", name="Flag with a reason")
    field = page.get_by_label("Why a lead should look at it")
    for number, (submit, reason) in enumerate((("Enter", "asleep?"), ("Control+Enter", "both"))):
        opener.press("Enter")
        expect(field).to_be_focused()
        page.keyboard.type(reason)
        page.keyboard.press(submit)
        page.get_by_text(f"Flagged for a lead ({reason}), “").wait_for()
        expect(field).to_have_count(0)
        if not number:
            page.get_by_text("Why this one").wait_for()
            settle(page)
    with open_store(server.home) as store:
        project = ensure_project(store, "Mira", 1.0)
        assert store.queue.counts_of(project.id, "Mira")["flagged"] == 2
        assert not store.corrections.newest_by_person(project.id), "the flag saved no answer"


def test_words_of_the_response_and_a_search_move_the_source(
    make_site: MakeSite, open_page: OpenPage
) -> None:
    server = make_site()
    text = "Filler. " * 300 + CATS + " \u06a9تابخانه"
    checked(server, ["Male cats are right pawed."], text)
    page = open_page(server, f"/label?case={item_with(server, 'Male')}")
    found = page.locator(".cp-sr-source .cp-mark-evidence")
    page.locator(".cp-se-text").wait_for()
    settle(page)
    expect(page.locator(".cp-se-text")).to_be_focused()
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    expect(found).to_have_text("pawed")
    expect(found).to_be_in_viewport()
    page.get_by_role("searchbox", name="Search the sources").fill("MORE OFTEN")
    expect(found).to_have_text("more often")
    page.get_by_role("searchbox", name="Search the sources").fill("\u0643تاب")
    expect(found).to_have_text("\u06a9تاب")  # typed on another keyboard
    page.get_by_role("searchbox", name="Search the sources").fill("dogs")
    expect(page.locator(".cp-sr-said")).to_have_text("“dogs” is in no source.")


def make_blind(server: Site) -> None:
    with open_store(server.home) as store:
        project = ensure_project(store, "Mira", 1.0)
        store.projects.save(replace(project, is_blind=True))


def item_with(server: Site, words: str) -> str:
    """The case of the item whose response has these words."""
    with open_store(server.home) as store:
        project = ensure_project(store, "Mira", 1.0)
        fill_queue(store, project.id, 9.0)
        items, _ = store.queue.page(
            project.id, NO_ITEM_FILTER, ["open"], limit=99, offset=0, now=9.0
        )
        (case_id,) = (item.case_id for item in items if words in claim_of(store, item.case_id))
    return case_id


def claim_of(store: Store, case_id: str) -> str:
    case = store.cases.get(case_id)
    assert case is not None
    return case.response
