"""Taking an answer back after it was submitted, and two browsers that answer the same thing."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from dataclasses import replace

from PIL import Image, ImageDraw
from playwright.sync_api import Page, expect

from core.documents.library import store_file
from core.pipeline.jobs import JobRunner
from core.pipeline.single_check import CaseDraft, store_case
from core.review.people import ensure_project
from core.runtime.config import Settings
from core.schema.records import Member, Plan
from core.store import open_store
from tests.browser.conftest import check_prepared, settle, verdict
from tests.browser.serving import Site, list_newest_corrections
from tests.browser.test_review import CATS, checked

MakeSite = Callable[..., Site]
OpenPage = Callable[..., Page]
REASON = re.compile("^Reason")
SAVE = re.compile("^Save ?")


def test_an_answer_is_taken_back_after_the_next_item_has_come(
    make_site: MakeSite, open_page: OpenPage
) -> None:
    server = make_site()
    checked(server, ["Female cats tend to be left pawed.", "Male cats tend to be white."], CATS)
    page = open_page(server, "/review")
    page.get_by_text("0 of 2 items reviewed").wait_for()
    settle(page)
    page.keyboard.press("Control+Enter")
    page.get_by_text("Why this one").wait_for()
    settle(page)
    keys = page.get_by_role("button", name="Keys ( ? )")
    keys.click()
    expect(page.get_by_text("take back what was saved, skipped or flagged last")).to_be_visible()
    keys.click()
    expect(page.get_by_text("take back what was saved, skipped or flagged last")).to_be_hidden()
    first = page.url
    page.keyboard.press("Alt+3")
    page.get_by_label(REASON).click()
    settle(page)
    page.keyboard.type("two readings?")
    page.keyboard.press("Control+Enter")
    expect(page).not_to_have_url(first)
    page.get_by_text("Saved: unclear").wait_for()
    settle(page)
    page.keyboard.press("Alt+z")
    expect(page).to_have_url(first)
    chosen = page.get_by_test_id("stBaseButton-primary")
    expect(chosen.filter(has_text="Unclear")).to_be_visible()
    expect(page.get_by_label(REASON)).to_have_value("two readings?")
    settle(page)
    page.keyboard.press("Alt+1")
    expect(chosen.filter(has_text="Supported")).to_be_visible()
    settle(page)
    page.keyboard.press("Control+Enter")
    expect(page).not_to_have_url(first)
    page.get_by_text("Saved: supported").wait_for()
    settle(page)
    case_id = first.split("case=")[1]
    with open_store(server.home) as store:
        history = store.corrections.history(case_id)
        item, counts = store.queue.get(case_id), store.queue.counts_of(
            ensure_project(store, "Mira", 1.0).id, "Mira"
        )  # fmt: skip
        standing = store.corrections.of_case(case_id)
    assert [(c.label, bool(c.withdraws)) for c in history] == [
        ("unclear", False), ("unclear", True), ("supported", False),
    ]  # fmt: skip
    assert history[1].withdraws == history[0].id
    assert standing == [history[2]]
    assert standing[0].reason == "two readings?"
    assert item is not None
    assert item.given == 1
    assert (counts["submitted"], counts["claimed"]) == (1, 1)
    page.goto(first)
    page.get_by_text("History (3 entries)").click()
    page.get_by_text("took their answer back").wait_for()
    page.get_by_text("you may answer again").wait_for()


def test_marks_come_back_with_an_answer_that_is_taken_back(
    make_site: MakeSite, open_page: OpenPage
) -> None:
    server = make_site()
    page = open_page(server)
    check_prepared(page)
    assert verdict(page).endswith("Hallucinated")
    page.keyboard.press("Alt+2")
    page.locator(".cp-se-text").wait_for()
    settle(page)
    page.locator(".cp-se-text").focus()
    page.keyboard.press("Shift+A")
    settle(page)
    page.get_by_role("button", name=SAVE).click()
    page.get_by_text("said hallucinated").wait_for()
    settle(page)
    page.get_by_role("button", name="Undo").click()
    expect(
        page.get_by_test_id("stBaseButton-primary").filter(has_text="hallucinated")
    ).to_be_visible()
    expect(page.get_by_text("said hallucinated")).to_have_count(0)
    expect(page.locator(".cp-se-list")).to_contain_text("512 m")
    settle(page)
    page.get_by_role("button", name=SAVE).click()
    page.get_by_text("said hallucinated").wait_for()
    settle(page)
    with open_store(server.home) as store:
        (saved,) = list_newest_corrections(store)
        history = store.corrections.history(saved.case_id)
    assert [span.text for span in saved.spans] == ["512 m"]
    assert saved.accepted_all
    assert len(history) == 3


def test_two_browsers_that_answer_one_version_get_a_conflict(
    make_site: MakeSite, open_page: OpenPage
) -> None:
    server = make_site()
    mira = open_page(server)
    check_prepared(mira)
    assert verdict(mira).endswith("Hallucinated")
    with open_store(server.home) as store:
        project = ensure_project(store, "Mira", 1.0)
        (admin,) = store.projects.members(project.id)
        with store.writing():
            store.projects.save(replace(project, people_each=2))
            store.projects.set_member(Member(project.id, "Karl", "annotator", 1.0))
            store.projects.save_note("person", "Karl")
    karl = open_page(server, mira.url.removeprefix(server.url))
    assert verdict(karl).endswith("Hallucinated")
    for page, reason in ((mira, "it is 412 m"), (karl, "with the approaches it is right")):
        page.keyboard.press("Alt+1")
        expect(page.get_by_label(REASON)).to_be_focused()
        settle(page)
        page.keyboard.type(reason)
        page.wait_for_timeout(800)
    for page in (mira, karl):
        page.get_by_label(REASON).press("Control+Enter")
        settle(page)
    mira.get_by_text("it is 412 m").first.wait_for()
    karl.get_by_text("while this was open. Nothing of yours was saved yet.").wait_for()
    karl.get_by_text(f"{admin.person} said supported").first.wait_for()
    expect(karl.get_by_label(REASON)).to_have_value("with the approaches it is right")
    with open_store(server.home) as store:
        assert [c.author for c in list_newest_corrections(store)] == [admin.person]
    settle(karl)
    karl.get_by_role("button", name="Save mine after it").click()
    karl.get_by_text("with the approaches it is right").first.wait_for()
    expect(karl.get_by_text("Nothing of yours was saved yet")).to_have_count(0)
    settle(karl)
    with open_store(server.home) as store:
        (newest,) = list_newest_corrections(store)
        said = store.corrections.of_case(newest.case_id)
    assert [c.author for c in said] == [admin.person, "Karl"]


def test_evidence_is_marked_in_the_sources_and_comes_back_after_a_reload(
    make_site: MakeSite, open_page: OpenPage
) -> None:
    server = make_site()
    checked(server, ["Female cats tend to be left pawed."], "😺\r\n" + CATS)
    page = open_page(server, "/review")
    page.get_by_text("0 of 1 item reviewed").wait_for()
    settle(page)
    page.keyboard.press("Control+Enter")
    page.get_by_text("Why this one").wait_for()
    settle(page)
    page.keyboard.press("Alt+2")
    page.locator(".cp-se-text").wait_for()
    settle(page)
    page.get_by_text("More: how sure").click()
    page.get_by_text("certain", exact=True).click()
    settle(page)
    source = page.locator(".cp-se-text").nth(1)
    source.focus()
    for key in ("Home", *["ArrowRight"] * 6, "1"):
        page.keyboard.press(key)
    expect(page.locator(".cp-se-list").nth(1)).to_contain_text("contradicts it")
    page.wait_for_timeout(1000)
    settle(page)
    page.reload()
    page.get_by_text("Why this one").wait_for()
    settle(page)
    page.get_by_text("More: how sure, ratings, evidence (1 marked)").wait_for()
    settle(page)
    page.get_by_role("button", name=SAVE).click()
    page.get_by_text("Nothing else is waiting for you").wait_for()
    with open_store(server.home) as store:
        (saved,) = list_newest_corrections(store)
        (mark,) = saved.evidence
        text = store.readings.text(mark.source_id, mark.start, mark.end)
    assert saved.sure == 1.0
    assert text == mark.text
    assert mark.text in CATS
    assert mark.stance == "contradicts"


def test_a_box_is_drawn_in_an_image_and_saved_with_the_answer(
    make_site: MakeSite, open_page: OpenPage
) -> None:
    server = make_site()
    picture = Image.new("RGB", (400, 200), "white")
    ImageDraw.Draw(picture).text((40, 80), "The tower is 412 m tall.", fill="black", font_size=28)
    data = io.BytesIO()
    picture.save(data, "PNG")
    with open_store(server.home) as store:
        project = ensure_project(store, "Mira", 1.0)
        store.projects.save_note("person", "Mira")
        entry = store_file(
            store, server.home, project.id, "tower.png", data.getvalue(), "Mira", 1.0, Settings()
        )
        jobs = JobRunner(server.home)
        with store.writing():
            case = store_case(
                store,
                project,
                CaseDraft("The tower is 512 m tall.", images=(entry.id,)),
                "Mira",
                1.0,
            )
            run_id = jobs.queue(store, case, Plan())
        jobs.submit(store, [run_id], jobs.payer("Mira", {}))
        assert jobs.wait(run_id, 60)
    page = open_page(server, f"/run?run={run_id}")
    verdict(page)
    page.keyboard.press("Alt+2")
    page.locator(".cp-se-text").wait_for()
    settle(page)
    page.get_by_text("More: how sure").click()
    shown = page.locator(".cp-be-image, .cp-be img").first
    shown.scroll_into_view_if_needed()
    settle(page)
    area = shown.bounding_box()
    assert area is not None
    page.mouse.move(area["x"] + 0.25 * area["width"], area["y"] + 0.25 * area["height"])
    page.mouse.down()
    page.mouse.move(area["x"] + 0.75 * area["width"], area["y"] + 0.75 * area["height"], steps=4)
    page.mouse.up()
    page.locator(".cp-be-list li").wait_for()
    settle(page)
    page.get_by_label(REASON).fill("the picture says 412")
    page.get_by_label(REASON).press("Control+Enter")
    page.get_by_text("A box in the image").wait_for()
    with open_store(server.home) as store:
        (saved,) = list_newest_corrections(store)
    (box,) = saved.boxes
    assert box.source_id == entry.id
    for value, wanted in zip(
        (box.box.left, box.box.top, box.box.right, box.box.bottom), (0.25, 0.25, 0.75, 0.75),
        strict=True,
    ):  # fmt: skip
        assert abs(value - wanted) < 0.01


def test_a_browser_keeps_its_name_and_the_next_item_begins_at_its_top(
    make_site: MakeSite, open_page: OpenPage
) -> None:
    server = make_site()
    checked(server, ["Female cats tend to be left pawed.", "Male cats tend to be white."], CATS)
    mira = open_page(server, "/review", viewport={"width": 1280, "height": 600})
    mira.get_by_text("0 of 2 items reviewed").wait_for()
    settle(mira)
    jonas = open_page(server, "/settings")
    field = jonas.get_by_label("Your name, as shown on your corrections")
    field.wait_for()
    settle(jonas)
    field.fill("Jonas")
    field.press("Enter")
    jonas.get_by_role("button", name="Someone else works here now").click()
    jonas.get_by_text("First project · Jonas").wait_for()
    mira.reload()
    mira.get_by_text("First project · Mira").wait_for()
    jonas.reload()
    jonas.get_by_text("First project · Jonas").wait_for()
    mira.get_by_text("0 of 2 items reviewed").wait_for()
    settle(mira)
    mira.keyboard.press("Control+Enter")
    mira.get_by_text("Why this one").wait_for()
    settle(mira)
    first = mira.url
    mira.keyboard.press("Alt+3")
    mira.get_by_label(REASON).wait_for()
    settle(mira)
    mira.get_by_label(REASON).fill("two readings")
    main = mira.locator('[data-testid="stMain"]')
    main.evaluate("m => m.scrollTo(0, 400)")
    assert main.evaluate("m => m.scrollTop") > 100
    mira.get_by_label(REASON).press("Control+Enter")
    expect(mira).not_to_have_url(first)
    mira.get_by_text("Saved: unclear").wait_for()
    settle(mira)
    assert main.evaluate("m => m.scrollTop") == 0
    mira.keyboard.press("Control+Space")
    mira.get_by_text("Nothing else is waiting for you").wait_for()
    settle(mira)
    mira.keyboard.press("Alt+z")
    mira.get_by_text("Why this one").wait_for()
    with open_store(server.home) as store:
        (saved,) = list_newest_corrections(store)
    assert saved.author == "Mira"
