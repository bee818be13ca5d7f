"""Keys and rosters in Settings, through the app itself and a server on this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from streamlit.proto.TextInput_pb2 import TextInput
from streamlit.testing.v1 import AppTest

from core.agents.roster_files import read_roster, write_roster
from core.agents.rosters import SHIPPED_ROSTERS, make_single_model_roster
from core.llm.prompting import PromptBook
from core.review.people import ensure_project
from core.schema.records import PersonRole
from core.schema.rosters import AgentConfig, RosterConfig
from core.store import open_store
from core.store.projects import SavedRoster
from tests.llm.loopback import Asked, Reply, loopback
from tests.pages.conftest import ROOT, OpenApp
from tests.pages.driving import Site, member, press, put
from tests.waiting import wait_for

PAGE = "pages/setup/settings.py"
SECRET = "sk-typed-5e7c1f-never-shown"


@pytest.fixture(autouse=True)
def project_id(home: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A project whose admin is Mira; no key is at hand."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION_NAME"):
        monkeypatch.delenv(name, raising=False)
    with open_store(home) as store:
        project = ensure_project(store, "Mira", 1.0)
        store.projects.save_note("person", "Mira")
    return project.id


@pytest.fixture
def page(app: OpenApp) -> AppTest:
    return app(PAGE)


@pytest.fixture
def seats(monkeypatch: pytest.MonkeyPatch) -> None:
    """The table of seats keeps what `type_in` types, as a browser's would."""
    monkeypatch.setattr("components.setup.roster_fields.st.data_editor", lambda *_, **__: None)


def type_in(at: AppTest, **cells: dict[str, object]) -> None:
    """Cells of the table of seats by column; a seat is named with _ for the spaces."""
    draft = at.session_state["rosters.draft"]
    key = f"rosters.edit.seats.{draft['round']}"
    edits: dict[int, dict[str, object]] = (
        dict(at.session_state[key]["edited_rows"]) if key in at.session_state else {}
    )
    for number, row in enumerate(draft["rows"]):
        name = row["role"].lower().replace(" ", "_")
        edits[number] = edits.get(number, {}) | cells.get(name, {})
    at.session_state[key] = {"edited_rows": edits}


def cell(at: AppTest, seat: str, column: str) -> object:
    rows = at.session_state["rosters.draft"]["typed"]
    return next(row[column] for row in rows if row["role"] == seat)


def choose(at: AppTest, name: str) -> AppTest:
    return put(at, "rosters.choice", name)


def tables(at: AppTest) -> str:
    return "\n".join(item.proto.body for item in at.get("html"))


def errors(at: AppTest) -> list[str]:
    return [error.value.replace("\\", "").replace("\u2060", "") for error in at.error]


def everything(at: AppTest) -> str:
    """All that the page sends to the browser."""
    return str([node.proto for node in at._tree if getattr(node, "proto", None) is not None])


def kept(home: Path, name: str) -> list[SavedRoster]:
    with open_store(home) as store:
        return store.rosters.history(name)


def newest(home: Path, name: str) -> RosterConfig:
    sheet = kept(home, name)[0].sheet
    assert sheet is not None
    return sheet


def keep(home: Path, sheet: RosterConfig, by: str = "Karl") -> None:
    with open_store(home) as store:
        store.rosters.save(sheet, by, time.time())


def mine(**changes: object) -> RosterConfig:
    sheet = replace(make_single_model_roster("openai/tiny", "http://127.0.0.1:9/v1"), name="Mine")
    return replace(sheet, **changes)  # type: ignore[arg-type]


def written(at: AppTest, name: str) -> AppTest:
    """A copy of the built-in roster under that name, one model in every speaking role."""
    press(at, "rosters.copy")
    for field, value in (("name", name), ("all.model", "openai/tiny"),
                         ("all.api_base", "http://127.0.0.1:9/v1")):  # fmt: skip
        at.text_input(key=f"rosters.edit.{field}").set_value(value)
    return press(at, "rosters.everywhere")


# Keys


def test_keys_are_shown_by_name_with_where_they_are(
    app: OpenApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    at = app(PAGE)
    shown = tables(at)
    for row in ("AWS_ACCESS_KEY_ID", "missing", "✓ environment", "ceda-mistral"):
        assert row in shown
    assert at.text_input(key="settings.key.AWS_ACCESS_KEY_ID").value == ""
    assert at.text_input(key="settings.key.AWS_ACCESS_KEY_ID").proto.type == TextInput.PASSWORD
    assert at.text_input(key="settings.key.AWS_REGION_NAME").proto.type == TextInput.DEFAULT
    assert not [f for f in at.text_input if f.key == "settings.key.AWS_SECRET_ACCESS_KEY"]
    assert SECRET not in everything(at)


def test_a_typed_key_leaves_its_field_and_lives_in_the_session(page: AppTest, home: Path) -> None:
    at = put(page, "settings.key.AWS_ACCESS_KEY_ID", f" {SECRET} ")
    assert "typed in this session" in tables(at)
    assert at.session_state["keys.typed.AWS_ACCESS_KEY_ID"] == SECRET
    assert "settings.key.AWS_ACCESS_KEY_ID" not in [field.key for field in at.text_input]
    assert SECRET not in everything(at)
    at = press(at, "settings.forget.AWS_ACCESS_KEY_ID")
    assert at.text_input(key="settings.key.AWS_ACCESS_KEY_ID").value == ""
    assert "keys.typed.AWS_ACCESS_KEY_ID" not in at.session_state
    stored = b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())
    assert SECRET.encode() not in stored


# The table


def test_the_paper_is_shown_seat_by_seat(page: AppTest) -> None:
    shown = tables(choose(page, "ceda"))
    for words in (
        "Debater Ada",
        "bedrock/mistral.mistral-7b-instruct-v0:2",
        "bedrock/anthropic.claude-3-5-haiku-20241022-v1:0",
        "bedrock/amazon.titan-embed-text-v1",
        "<td",
        "0.6",
        "$3 in, $15 out",
        f"en {PromptBook().prompt('judge', 'en').hash}",
        f"zh {PromptBook().prompt('judge', 'zh').hash}",
    ):
        assert words in shown
    assert any(PromptBook().digest() in caption.value for caption in page.caption)


def test_an_unknown_price_is_said_to_be_so(page: AppTest, home: Path) -> None:
    keep(home, mine())
    shown = tables(choose(page.run(), "Mine"))
    assert "price unknown" in shown
    assert any("tokens are capped" in caption.value for caption in page.caption)
    assert "http://127.0.0.1:9/v1" in shown


def test_foreign_text_is_shown_letter_by_letter(page: AppTest, home: Path) -> None:
    name = "<b>x</b> ![y](http://evil.example/p.png)"
    keep(home, mine(name=name, words=name), by=name)
    at = choose(page.run(), name)
    assert "<b>x" not in tables(at)
    assert not [c for c in at.caption if "](http" in c.value or "<b>" in c.value]
    at = press(at, "rosters.remove")
    assert not [m for m in at.markdown if "](http" in m.value or "<b>" in m.value]


def test_the_page_is_drawn_without_litellm() -> None:
    code = (
        "import sys\n"
        "from streamlit.testing.v1 import AppTest\n"
        f"at = AppTest.from_file({str(ROOT / PAGE)!r}, default_timeout=60)\n"
        "at.session_state['person'] = 'Mira'\n"
        "at.run().selectbox(key='rosters.choice').set_value('ceda').run()\n"
        "at.button(key='rosters.copy').click().run()\n"
        "assert not at.exception and at.button(key='rosters.save')\n"
        "assert 'litellm' not in sys.modules and 'torch' not in sys.modules\n"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT, env=env)


# Copies, changes, removal


def test_a_copy_gets_one_model_everywhere_and_is_kept(page: AppTest, home: Path) -> None:
    at = press(written(page, "Mine"), "rosters.save")
    assert [saved.author for saved in kept(home, "Mine")] == ["Mira"]
    sheet = newest(home, "Mine")
    assert sheet.judge == AgentConfig("openai/tiny", "http://127.0.0.1:9/v1")
    assert sheet.words == "Every speaking role is openai/tiny at http://127.0.0.1:9/v1."
    assert sheet.retriever.is_built_in
    warmth = [(d.seat.temperature, d.seat.max_tokens) for d in sheet.debaters]
    assert warmth == [(0.2, 100), (0.6, 100), (0.2, 100)]
    assert at.selectbox(key="rosters.choice").value == "Mine"
    assert not [f for f in at.text_input if f.key == "rosters.edit.name"]


@pytest.mark.parametrize("name", sorted(SHIPPED_ROSTERS))
def test_every_shipped_roster_survives_the_form(page: AppTest, home: Path, name: str) -> None:
    at = press(choose(page, name), "rosters.copy")
    if name == "address":  # its model is to be filled in
        at.text_input(key="rosters.edit.all.model").set_value("openai/x")
        at = press(at, "rosters.everywhere")
    at.text_input(key="rosters.edit.name").set_value("Copy")
    at = press(at, "rosters.save")
    assert not errors(at)
    sheet = newest(home, "Copy")
    if name != "address":
        assert list(sheet.agents_by_role()) == list(SHIPPED_ROSTERS[name].agents_by_role())


@pytest.mark.parametrize("name", ["ceda", "CEDA", "builtin", "Mine"])
def test_a_name_that_is_taken_is_not_taken_over(page: AppTest, home: Path, name: str) -> None:
    keep(home, mine())
    at = press(written(page, name), "rosters.save")
    words = "Karl keeps already" if name == "Mine" else "comes with Counterpoint"
    assert any(words in error for error in errors(at))
    assert len(kept(home, name)) == (name == "Mine")
    assert at.text_input(key="rosters.edit.name").value == name


@pytest.mark.usefixtures("seats")
def test_nothing_typed_is_lost_to_a_refusal_or_another_page(page: AppTest, home: Path) -> None:
    at = written(page, "Mine")
    own = {"model": "openai/cutter", "api_base": "ftp://x", "temperature": 0.35}
    type_in(at, segmenter=own)
    at = press(at, "rosters.save")
    (error,) = errors(at)
    assert error.startswith("Roster, segmenter, api_base: expected an address")
    assert not kept(home, "Mine")
    at.switch_page("pages/setup/library.py").run()
    del at.session_state[f"rosters.edit.seats.{at.session_state['rosters.draft']['round']}"]
    at.switch_page(PAGE).run()
    assert cell(at, "Segmenter", "api_base") == "ftp://x"
    type_in(at, segmenter={"api_base": "http://127.0.0.1:9"})
    at = press(at, "rosters.save")
    assert not errors(at)
    assert newest(home, "Mine").segmenter == AgentConfig(
        "openai/cutter", "http://127.0.0.1:9", temperature=0.35
    )


@pytest.mark.usefixtures("seats")
@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ({"reader": "rules", "model": ""}, "judge, reader: expected none"),
        ({"model": "two words"}, "judge, model: expected a name like"),
        ({"key_name": SECRET}, "judge, key_name: expected no key"),
        ({"api_base": "http://u:p@x/v1"}, "judge, api_base: expected an address like"),
        ({"price_in": 3.0}, "judge: expected both prices"),
        ({"window": 17}, "judge, window: expected 0"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(
    page: AppTest, home: Path, cells: dict[str, object], words: str
) -> None:
    at = written(page, "Mine")
    type_in(at, judge=cells)
    at = press(at, "rosters.save")
    (error,) = errors(at)
    assert words in error
    assert SECRET not in error
    assert not kept(home, "Mine")


@pytest.mark.usefixtures("seats")
def test_debaters_come_and_go(page: AppTest, home: Path) -> None:
    at = put(written(page, "Mine"), "rosters.edit.debaters", 4)
    at = press(at, "rosters.save")
    assert any("debater 4, name: expected a name" in error for error in errors(at))
    type_in(at, debater_4={"name": "Dora", "reader": "overlap"}, debater_1={"name": "Ann"})
    press(at, "rosters.save")
    sheet = newest(home, "Mine")
    assert [d.name for d in sheet.debaters] == ["Ann", "Ben", "Cleo", "Dora"]
    assert sheet.debaters[3].seat == AgentConfig(reader="overlap")
    at = press(at, "rosters.change")
    at = put(at, "rosters.edit.debaters", 2)
    press(at, "rosters.save")
    assert [d.name for d in newest(home, "Mine").debaters] == ["Ann", "Ben"]


def test_a_change_is_a_new_version_and_an_old_one_comes_back(page: AppTest, home: Path) -> None:
    keep(home, mine(words="first"))
    at = press(choose(page.run(), "Mine"), "rosters.change")
    at.text_input(key="rosters.edit.words").set_value("second")
    at = press(at, "rosters.save")
    newest, first = kept(home, "Mine")
    assert newest.sheet == replace(mine(), words="second")
    assert (newest.author, first.author) == ("Mira", "Karl")
    at = press(at, f"rosters.version.{first.number}")
    assert at.text_input(key="rosters.edit.words").value == "first"
    press(at, "rosters.save")
    assert kept(home, "Mine")[0].sheet == first.sheet
    assert len(kept(home, "Mine")) == 3


def test_somebody_elses_change_is_not_overwritten_unseen(page: AppTest, home: Path) -> None:
    keep(home, mine())
    at = press(choose(page.run(), "Mine"), "rosters.change")
    keep(home, mine(words="theirs"))
    at.text_input(key="rosters.edit.words").set_value("ours")
    at = press(at, "rosters.save")
    assert any("was changed by Karl meanwhile" in error for error in errors(at))
    assert at.text_input(key="rosters.edit.words").value == "ours"
    press(at, "rosters.save")
    assert [saved.sheet.words for saved in kept(home, "Mine") if saved.sheet][:2] == [
        "ours",
        "theirs",
    ]


def test_removal_asks_first_and_keeps_the_history(page: AppTest, home: Path) -> None:
    keep(home, mine())
    at = press(choose(page.run(), "Mine"), "rosters.remove")
    at = press(at, "rosters.keep")
    at = press(press(at, "rosters.remove"), "rosters.sure")
    assert "Mine" not in at.selectbox(key="rosters.choice").options
    removed, saved = kept(home, "Mine")
    assert (removed.sheet, removed.author) == (None, "Mira")
    assert saved.sheet == mine()
    press(written(at, "Mine"), "rosters.save")
    assert len(kept(home, "Mine")) == 3


def test_nothing_being_written_is_lost_to_another_copy(page: AppTest, home: Path) -> None:
    keep(home, mine())
    at = choose(written(page.run(), "Other"), "Mine")
    assert at.button(key="rosters.copy").disabled
    assert at.button(key="rosters.change").disabled
    assert at.text_input(key="rosters.edit.name").value == "Other"


# Who may


@pytest.mark.parametrize(("role", "may"), [("annotator", False), ("lead", True)])
def test_only_leads_and_admins_change_rosters(
    site: Site, project_id: str, role: PersonRole, may: bool
) -> None:
    keep(site.home, mine())
    member(site.home, project_id, "Karl", "admin")
    member(site.home, project_id, "Mira", role)
    at = choose(site.open(PAGE), "Mine")
    assert bool([button for button in at.button if button.key == "rosters.copy"]) is may
    if not may:
        assert any(r"can change model sets\: Karl\." in caption.value for caption in at.caption)
        return
    at = press(at, "rosters.copy")
    assert [f for f in at.text_input if f.key == "rosters.edit.name"]
    at = press(press(at, "rosters.remove"), "rosters.sure")
    assert kept(site.home, "Mine")[0].sheet is None
    upload(at, write_roster(mine(name="New")))
    assert kept(site.home, "New")


# Files


def upload(at: AppTest, data: bytes) -> AppTest:
    (field,) = [f for f in at.file_uploader if str(f.key).startswith("rosters.import.")]
    return field.set_value([("r.roster.json", data, "application/json")]).run()


def test_a_roster_comes_in_from_a_file(page: AppTest, home: Path) -> None:
    at = upload(page, write_roster(mine(), "0123456789ab"))
    assert kept(home, "Mine")[0].sheet == mine(prompts="0123456789ab")
    assert at.selectbox(key="rosters.choice").value == "Mine"
    assert any("written for other prompts" in info.value for info in at.info)
    at = upload(at, write_roster(mine(), "0123456789ab"))
    assert any("here already" in info.value for info in at.info)
    assert len(kept(home, "Mine")) == 1


@pytest.mark.parametrize("harm", ["not json", "key", "temperature", "half"])
def test_a_bad_file_is_refused_whole(page: AppTest, home: Path, harm: str) -> None:
    body = json.loads(write_roster(mine()))
    if harm == "key":
        body["judge"]["api_key"] = SECRET
    if harm == "temperature":
        body["judge"]["temperature"] = 3
    data = json.dumps(body).encode()
    data = {"not json": b"\xff\xfe{", "half": data[:-40]}.get(harm, data)
    at = upload(page, data)
    (error,) = errors(at)
    assert error.startswith("Roster, ")
    assert SECRET not in everything(at)
    assert not kept(home, "Mine")
    assert "Mine" not in at.selectbox(key="rosters.choice").options


def test_a_file_of_a_known_name_asks_before_it_becomes_a_version(page: AppTest, home: Path) -> None:
    keep(home, mine())
    at = upload(page.run(), write_roster(mine(words="from a file")))
    assert len(kept(home, "Mine")) == 1
    at = press(at, "rosters.import.leave")
    assert len(kept(home, "Mine")) == 1
    at = upload(at, write_roster(mine(words="from a file")))
    press(at, "rosters.import.sure")
    assert kept(home, "Mine")[0].author == "Mira"
    assert newest(home, "Mine").words == "from a file"


def test_a_file_under_a_shipped_name_opens_as_a_copy(page: AppTest, home: Path) -> None:
    at = upload(page, write_roster(replace(mine(), name="ceda")))
    assert at.text_input(key="rosters.edit.name").value == "ceda (imported)"
    assert any("never changes" in info.value for info in at.info)
    press(at, "rosters.save")
    assert kept(home, "ceda (imported)")
    assert not kept(home, "ceda")


def test_what_is_exported_can_be_read_again(page: AppTest) -> None:
    at = choose(page, "ceda")
    (button,) = [b for b in at.get("download_button") if "rosters.export" in b.proto.id]
    assert button.proto.label == "Export"
    digest = PromptBook().digest()
    assert read_roster(write_roster(SHIPPED_ROSTERS["ceda"], digest), digest).sheet.debaters


# The test of every role


def until_tested(at: AppTest) -> AppTest:
    wait_for(lambda: "rosters.untest" not in {button.key for button in at.run().button}, "the test")
    return at


def calls_of(home: Path) -> int:
    with open_store(home) as store:
        return store.ledger._db.query_one("SELECT COUNT(*) AS n FROM calls")["n"]  # type: ignore[attr-defined,no-any-return]


def test_every_role_is_tested_by_a_click_and_by_nothing_else(page: AppTest, home: Path) -> None:
    def answer(asked: Asked) -> Reply:
        return Reply("red" if asked.images else "OK")

    with loopback(answer) as server:
        keep(home, replace(make_single_model_roster("tiny", server.base), name="Here"))
        at = choose(page.run(), "Here")
        assert not server.asked
        at = until_tested(press(at, "rosters.test"))
        shown = tables(at)
        for role in ("Image reader", "Debater Ada", "Judge", "Span adjudicator"):
            assert role in shown
        assert shown.count("✓ works") == 9
        spent = len(server.asked)
        # Seats alike are asked once; then each of the judge's twelve cases, and once more where its
        # reply is no verdict.
        assert spent == 4 + 12 * 2
        assert "0 of 12 right, 12 unreadable; 10 are needed" in shown
        assert any("cost unknown" in caption.value for caption in at.caption)
        at = at.run().run()
        at.switch_page("pages/setup/library.py").run()
        at.switch_page(PAGE).run()
        assert tables(at).count("✓ works") == 9
        assert len(server.asked) == spent
        at = until_tested(press(at, "rosters.test"))
        assert len(server.asked) == 2 * spent


def test_what_is_wrong_is_said_in_words_and_no_key_is(page: AppTest, home: Path) -> None:
    seat_key = "THEIRS_API_KEY"
    with loopback(Reply(status=401, message=f"no such key {SECRET}")) as server:
        keep(home, replace(make_single_model_roster("tiny", server.base, seat_key), name="Here"))
        at = choose(page.run(), "Here")
        at = put(at, f"settings.key.{seat_key}", SECRET)
        at = until_tested(press(at, "rosters.test"))
        assert server.asked[0].bearer == SECRET
    assert tables(at).count("✗ no answer") == 9
    assert seat_key in tables(at)
    assert SECRET not in everything(at)


def test_a_model_that_answers_otherwise_is_quoted_and_not_called_broken(
    page: AppTest, home: Path
) -> None:
    with loopback(Reply("The square is <b>round</b>.")) as server:
        keep(home, replace(make_single_model_roster("tiny", server.base), name="Here"))
        at = until_tested(press(choose(page.run(), "Here"), "rosters.test"))
    shown = tables(at)
    assert shown.count("≈ answers, but not as asked</strong>: “The square is &lt;b&gt;round") == 9
    assert "✓ works" not in shown
    assert "✗ no answer" not in shown
    assert any(
        "0 of 9 roles work; 9 answer, but not as asked" in caption.value.replace("\\", "")
        for caption in at.caption
    )


def test_a_model_still_to_be_filled_in_is_not_asked(page: AppTest) -> None:
    at = press(choose(page, "address"), "rosters.test")
    assert any("found the placeholder" in error for error in errors(at))


def test_a_test_can_be_stopped(page: AppTest, home: Path) -> None:
    with loopback(Reply(fault="hang_before")) as server:
        keep(home, replace(make_single_model_roster("tiny", server.base), name="Here"))
        at = press(choose(page.run(), "Here"), "rosters.test")
        wait_for(lambda: server.asked, "the first call")
        asked = time.monotonic()
        at = until_tested(press(at, "rosters.untest"))
        assert time.monotonic() - asked < 5
    assert any("was stopped" in error for error in errors(at))


def test_results_of_an_earlier_version_are_not_shown_for_the_new_one(
    page: AppTest, home: Path
) -> None:
    with loopback(Reply("red OK")) as server:
        sheet = replace(make_single_model_roster("tiny", server.base), name="Here")
        keep(home, sheet)
        at = until_tested(press(choose(page.run(), "Here"), "rosters.test"))
        assert "✓ works" in tables(at)
        keep(home, replace(sheet, words="changed"))
        assert "✓ works" not in tables(at.run())


def test_a_missing_key_is_named_and_nothing_is_sent(page: AppTest) -> None:
    at = until_tested(press(choose(page, "ceda"), "rosters.test"))
    assert tables(at).count("✗ no answer") == 10
    assert "needs a key: expected" in tables(at)
    assert any("0 of 10 roles work" in caption.value for caption in at.caption)


# The panel that marks words


def test_a_panel_is_seated_seen_and_taken_out_again(page: AppTest, home: Path) -> None:
    at = press(page, "rosters.copy")
    at.text_input(key="rosters.edit.name").set_value("Panel")
    at = put(at, "rosters.edit.panel", 3)
    at = put(at, "rosters.edit.sees", False)
    at = press(at, "rosters.save")
    assert not errors(at)
    sheet = newest(home, "Panel")
    assert [seat.reader for seat in sheet.span_panel] == ["rules", "overlap", "entailment"]
    assert not sheet.panel_sees_evidence
    assert "built-in overlap reader" in tables(choose(at, "Panel"))
