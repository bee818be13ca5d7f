"""A mixed response audited with mouse and keyboard: a sum worked out, what reflection changed.

A longer one is read beside its sources, and its statements are labelled by keys.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page, expect

from core.pipeline.single_check import CaseDraft, store_case
from core.review.people import ensure_project
from core.schema.events import SpanProposed, WordsScored
from core.schema.records import Plan, Run, Span, WordScore
from core.store import open_store
from tests.audit.audit_events import CASE, told
from tests.browser.conftest import choose, click_until, open_way, settle, verdict
from tests.browser.serving import Site, list_newest_corrections
from tests.documents.builders import pdf

MakeSite = Callable[..., Site]
OpenPage = Callable[..., Page]
FACTS = "The Orrin bridge is 412 m long. It was opened in 1931."
RESPONSE = (
    "The Orrin bridge is 412 m long. The walk across took 2 + 3 = 6 hours. "
    "So all 6 hours were paid for."
)
STEPS = re.compile("^How each statement was checked")
NAMES = "Orrin Alder Birch Cedar Drum Elder Firth Gorse Hazel Iris Juniper Kelp".split()
NAMES += "Larch Maple Nettle Osier Poplar Rowan".split()
LENGTHS = [310 + 7 * number for number in range(18)]
LINES = [f"The {n} bridge is {m} m long." for n, m in zip(NAMES, LENGTHS, strict=True)]
SENTENCES = list(LINES)
WRONG = (3, 10)
for place in WRONG:
    SENTENCES[place] = f"The {NAMES[place]} bridge is 900 m long."
LONG = " ".join(SENTENCES)
REPORT = pdf("\n".join(LINES[:9]), "\n".join(LINES[9:17]))
IN_VIEW = """element => {
  const place = element.getBoundingClientRect();
  return place.top >= 0 && place.bottom <= window.innerHeight;
}"""


def written(folder: Path, name: str, content: str | bytes) -> Path:
    """A file of that name and content."""
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def audit(page: Page, response: str, *files: Path) -> None:
    """Choose to audit, type the response, give sources, press Check, wait for the verdict."""
    open_way(page)
    ways = page.get_by_role("combobox", name=re.compile("How to check"))
    choose(page, ways, re.compile("^Audit"))
    expect(page.get_by_text(re.compile("fits a long response"))).to_be_visible()
    page.get_by_label("Text to check").fill(response)
    page.locator('[data-testid="stFileUploader"] input[type=file]').first.set_input_files(files)
    page.get_by_text(re.compile(r"characters|pages")).nth(len(files) - 1).wait_for(timeout=60_000)
    settle(page)
    page.get_by_role("button", name=re.compile("Check.*Enter")).click()
    assert verdict(page).endswith("Hallucinated")


def test_an_audited_response_is_read_statement_by_statement(
    make_site: MakeSite, open_page: OpenPage, tmp_path: Path
) -> None:
    page = open_page(make_site(), viewport={"width": 1000, "height": 500})
    audit(page, RESPONSE, written(tmp_path, "bridge.txt", FACTS))
    rows = page.locator("summary.cp-row")
    click_until(page, page.get_by_text(STEPS), rows.first)
    expect(rows).to_have_count(3)
    expect(rows.nth(0)).to_contain_text("Supported")
    expect(rows.nth(1)).to_contain_text("2 + 3 = 6")
    expect(rows.nth(1).locator("mark")).to_have_text("6")
    expect(rows.nth(2)).to_contain_text("So all 6 hours")
    # With the keyboard: the row opens on the sum, and closes.
    rows.nth(1).focus()
    page.keyboard.press("Enter")
    second = page.locator("details.cp-statement:has(summary.cp-row)").nth(1)
    expect(second.get_by_text("2 + 3 = 6 ✗")).to_be_visible()
    expect(second.get_by_text("It comes to 5.")).to_be_visible()
    page.keyboard.press("Enter")
    expect(second.get_by_text("It comes to 5.")).to_be_hidden()
    # What rests on the wrong sum was changed by reflection, which says because of what.
    rows.nth(2).click()
    third = page.locator("details.cp-statement:has(summary.cp-row)").nth(2)
    expect(third.get_by_text(re.compile("→.*Hallucinated.*Because of statement 2"))).to_be_visible()
    # A link leads to the statement's words in the response.
    words = page.locator("#cp-statement-3")
    assert not words.evaluate(IN_VIEW)
    third.get_by_role("link", name="Show statement 3 in the response").click()
    expect(page.locator(".cp-st-one:target")).to_have_text(re.compile("^So all 6 hours"))
    assert words.evaluate(IN_VIEW)


def test_eighteen_statements_are_labelled_beside_their_sources_in_twenty_keys(
    make_site: MakeSite, open_page: OpenPage, tmp_path: Path
) -> None:
    server = make_site()
    page = open_page(server)
    noted = f"The {NAMES[-1]} bridge is {LENGTHS[-1]} m long."
    audit(page, LONG, written(tmp_path, "bridges.pdf", REPORT), written(tmp_path, "n.txt", noted))
    statements, source = page.locator(".cp-st-one"), page.locator(".cp-st-source")
    expect(statements).to_have_count(18)
    # It opens on the first wrong one, with the page that says otherwise.
    expect(source).to_contain_text("bridges.pdf, p. 1")
    expect(source.locator("img")).to_be_visible()
    expect(source.get_by_text("Opening the source")).to_have_count(0)
    assert source.evaluate("pane => pane.scrollLeft") == 0, "nothing is cut off at its left"
    tops = source.locator(".cp-st-place").evaluate(
        "row => [...row.children].map((e) => e.offsetTop)"
    )
    assert max(tops) - min(tops) < 20, "name and buttons share a row"
    # A click on a mark moves the source to another page, one on a statement to another file.
    mark = page.locator(".cp-st-one .cp-st-mark", has_text="900").last
    clicked = "mark => { mark.click(); return document.querySelector('.cp-st-source').innerText; }"
    assert "Opening the source…" in mark.evaluate(clicked), "said until the page has come"
    expect(source).to_contain_text("bridges.pdf, p. 2")
    expect(source.locator("img")).to_have_js_property("complete", True)
    expect(source.get_by_text("Opening the source")).to_have_count(0)
    statements.last.click()
    expect(source.locator(".cp-mark-evidence")).to_have_text(noted)
    expect(source).to_contain_text("n.txt")
    # One key for each statement, one to begin at the first, one to save.
    settle(page)
    page.keyboard.press("Home")
    for number in range(18):
        page.keyboard.press("h" if number in WRONG else "s")
    expect(page.locator(".cp-st-count")).to_contain_text("18 of 18 labelled")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".cp-st-count")).to_have_text("18 of 18 labelled · saved")
    page.get_by_text("said hallucinated").wait_for()
    with open_store(server.home) as store:
        (saved,) = list_newest_corrections(store)
    labels = [one.label for one in saved.statements]
    assert labels == ["hallucinated" if n in WRONG else "supported" for n in range(18)]
    assert [LONG[one.start : one.end] for one in saved.statements] == SENTENCES
    # They are there again after a reload.
    page.reload()
    expect(page.locator(".cp-st-count")).to_have_text("18 of 18 labelled · saved")
    expect(page.locator(".cp-st-labelled")).to_have_count(18)


def told_run(home: Path) -> str:
    """A stored audit of which an agent's mark was dropped, and a word is suspected."""
    with open_store(home) as store:
        project = ensure_project(store, "Mira", 1.0)
        store.projects.save_note("person", "Mira")
        case = store_case(store, project, CaseDraft(CASE.response, CASE.question), "Mira", 1.0)
        run = Run("a" * 32, case.id, project.id, Plan(), "queued", 1.0)
        start = CASE.response.index("412 m")
        dropped = Span(start, start + 5, "412 m", 0.6, "wrong_entity", "A")
        events = [*told(case), SpanProposed(12.0, dropped)]
        events.append(WordsScored(12.1, "A", (WordScore(0, 3, 0.3),), 0.5))
        with store.writing():
            store.runs.add(run, "nobody", 1.0)
            store.runs.append(run.id, "nobody", events)
    return run.id


def test_weak_marks_order_and_kinds_are_chosen_by_key_and_slider(
    make_site: MakeSite, open_page: OpenPage
) -> None:
    server = make_site()
    page = open_page(server, f"/run?run={told_run(server.home)}")
    marks, card = page.locator(".cp-st-mark"), page.locator(".cp-st-card")
    marks.first.wait_for()
    settle(page)
    expect(marks).to_have_text(["Monday"])
    slider = page.get_by_role("slider", name="Show weaker marks")
    for least, shown in ((50, ["412 m", "Monday"]), (30, ["The", "412 m", "Monday"])):
        slider.fill(str(least))
        expect(marks).to_have_text(shown)
    expect(page.locator(".cp-st-weak")).to_have_count(2)
    page.get_by_role("button", name="wrong entity").click()
    expect(marks).to_have_text(["The", "Monday"])
    slider.fill("100")
    expect(marks).to_have_text(["Monday"])
    # By key: wrong ones first, the mark of the statement, the one after, a label and its undoing.
    page.locator(".cp-st-text").focus()
    page.keyboard.press("o")
    expect(page.locator(".cp-st-one").first).to_have_text(re.compile("12 March"))
    page.keyboard.press("m")
    expect(page.locator(".cp-st-mark-active")).to_have_text("Monday")
    expect(card).to_contain_text("“Monday”: number or date (98%)")
    page.keyboard.press("s")
    expect(card).to_contain_text("3 of 5")
    expect(page.locator("#cp-statement-2")).to_have_class(re.compile("cp-supported"))
    page.keyboard.press("Control+z")
    expect(page.locator("#cp-statement-2")).to_have_class(re.compile("cp-hallucinated"))
    page.keyboard.press("?")
    expect(page.get_by_text("the next statement, the one before")).to_be_visible()


def test_labels_outlive_a_reload_and_another_window_that_saved_meanwhile(
    make_site: MakeSite, open_page: OpenPage
) -> None:
    server = make_site()
    path = f"/run?run={told_run(server.home)}"
    first, second = open_page(server, path), open_page(server, path)
    count = ".cp-st-count"
    for page, keys in ((first, "aaaa"), (second, "ssss")):
        page.locator(".cp-st-one").first.wait_for()
        settle(page)
        for key in keys:
            page.keyboard.press(key)
        expect(page.locator(count)).to_have_text("4 of 5 labelled · not saved yet")
    settle(second)
    second.reload()
    expect(second.locator(count)).to_have_text("4 of 5 labelled · not saved yet")
    expect(second.locator(".cp-st-labelled.cp-supported")).to_have_count(4)
    settle(second)
    first.keyboard.press("Control+Enter")
    expect(first.locator(count)).to_have_text("4 of 5 labelled · saved")
    second.get_by_role("button", name="Save labels").click()
    second.get_by_text("while this was open. Nothing of yours was saved yet.").wait_for()
    settle(second)
    second.get_by_role("button", name="Save mine after it").click()
    expect(second.locator(count)).to_have_text("4 of 5 labelled · saved")
    with open_store(server.home) as store:
        saved = store.corrections.of_run("a" * 32)
    assert [one.label for one in saved] == ["hallucinated", "supported"]
    assert [one.label for one in saved[1].statements] == ["supported"] * 4


def test_a_narrow_page_shows_the_same_without_scrolling_sideways(
    make_site: MakeSite, open_page: OpenPage, tmp_path: Path
) -> None:
    page = open_page(make_site(), viewport={"width": 390, "height": 800})
    audit(page, RESPONSE, written(tmp_path, "bridge.txt", FACTS))
    click_until(page, page.get_by_text(STEPS), page.locator("summary.cp-row").first)
    for row in page.locator("summary.cp-row").all():
        row.evaluate("row => row.parentElement.open || row.click()")
    settle(page)
    main = page.locator('[data-testid="stMain"]')
    assert main.evaluate("element => element.scrollWidth <= element.clientWidth")
    expect(page.get_by_text("It comes to 5.").first).to_be_visible()
