"""In and out: a file is shown before it is stored, comes in, and goes out again."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from components.setup.import_export import RUNNING, Exporter, build_export
from core.exchange.archive import write_archive
from core.review.people import ensure_project
from core.runtime.errors import NotAllowed
from core.schema.records import Member
from core.store import open_store
from tests.formats.recorded_debates import archive, debate
from tests.pages.conftest import OpenApp
from tests.pages.driving import Site, member, press, put, told
from tests.waiting import wait_for

PAGE = "pages/setup/exchange.py"
SPAN = {"start": 4, "end": 9, "text": "tower", "category": "reasoning"}
GOOD = {"id": "a", "response": "The tower.", "label": "hallucinated", "spans": [SPAN]}
ROWS = b"\n".join([json.dumps(GOOD).encode(), b"broken", b'{"id": "b", "response": "Two."}'])


def given(at: AppTest, name: str, data: bytes) -> AppTest:
    at.file_uploader(key="exchange.file").set_value([(name, data, "text/plain")]).run()
    assert not at.exception, at.exception[0].message
    return at


def imported(at: AppTest, key: str = "exchange.import") -> AppTest:
    at.button(key=key).click().run()
    wait_for(lambda: at.session_state[RUNNING].is_over, "the import")
    at.run()
    assert not at.exception, at.exception[0].message
    return at


def test_a_file_is_shown_and_then_stored(site: Site, project_id: str) -> None:
    at = given(site.open(PAGE), "rows.jsonl", ROWS)
    assert "**3 rows**: 2 new, 0 known, 1 cannot be read." in told(at)
    assert list(at.dataframe[0].value["Id"]) == ["a", "b"]
    assert list(at.dataframe[0].value["Marked"]) == ["tower", ""]
    (why,) = at.dataframe[1].value["Why"]
    assert why.startswith("expected JSON")
    with open_store(site.home) as store:
        assert store.cases.all(project_id) == [], "nothing is stored before one says so"
    imported(at)
    assert "2 new cases" in told(at)
    assert "0 new, 2 known" in told(at)
    with open_store(site.home) as store:
        assert [case.id for case in store.cases.all(project_id)] == ["a", "b"]
        gold = store.golds.that_counts("a")
        assert gold is not None
        assert gold.spans[0].text == "tower"
        assert store.queue.get("b") is not None


def test_labels_come_in_as_suggestions(site: Site, project_id: str) -> None:
    at = given(site.open(PAGE), "rows.jsonl", ROWS)
    at.segmented_control(key="exchange.as").set_value("suggestions").run()
    at.text_input(key="exchange.agent").set_value("detector").run()
    imported(at)
    with open_store(site.home) as store:
        assert [s.agent for s in store.golds.suggestions("a")] == ["detector"]
        assert store.golds.of_case("a") == []


def test_columns_and_the_meaning_of_labels_are_chosen_before_anything_comes_in(
    site: Site, project_id: str
) -> None:
    at = given(site.open(PAGE), "set.csv", b"hyp,is_hal,rater\nOne.,0,ana\nTwo.,1,ana\n")
    assert at.dataframe[0].value.iloc[1].tolist() == ["Two.", "1", "ana"]
    (response,) = (box.key for box in at.selectbox if box.label == "Response")
    columns = str(response).removesuffix("response")
    for name, column in {"response": "hyp", "label": "is_hal", "annotator": "rater"}.items():
        put(at, f"{columns}{name}", column)
    assert "Choose what “0”, “1” means: sets differ in it." in told(at)
    assert at.button(key="exchange.import").disabled
    put(at, f"{columns}is_hal.means.0", "supported")
    put(at, f"{columns}is_hal.means.1", "hallucinated")
    assert "Answers of ana: each keeps the name" in told(at)
    imported(at)
    with open_store(site.home) as store:
        answers = {
            case.response: [(one.author, one.label) for one in store.corrections.of_case(case.id)]
            for case in store.cases.all(project_id)
        }
    assert answers == {
        "One.": [("ana (imported)", "supported")], "Two.": [("ana (imported)", "hallucinated")]
    }  # fmt: skip


def test_several_files_come_in_at_once_as_the_answers_of_a_named_person(
    site: Site, project_id: str
) -> None:
    at = site.open(PAGE)
    files = [("a.csv", b"claim,gt\nOne.,0\n"), ("b.csv", b"claim,gt\nTwo.,2\n")]
    at.file_uploader(key="exchange.file").set_value([(*one, "text/csv") for one in files]).run()
    for key in [str(mapped.key) for mapped in at.toggle if "mapped" in str(mapped.key)]:
        put(at, key, True)
    (label,) = (str(box.key) for box in at.selectbox if box.label == "Label")
    put(at, label, "gt")
    put(at, f"{label.removesuffix('label')}gt.means.0", "supported")
    assert at.button(key="exchange.import").disabled, "what 2 means nobody has said"
    put(at, f"{label.removesuffix('label')}gt.means.2", "unclear")
    put(at, "exchange.as", "answers")
    press(at, "exchange.import")
    assert "the name of the person who gave these answers" in told(at)
    put(at, "exchange.person", "Ben")
    imported(at)
    assert "a.csv: 1 new case" in told(at)
    assert "b.csv: 1 new case" in told(at)
    with open_store(site.home) as store:
        cases = store.cases.all(project_id)
        answers = [one for case in cases for one in store.corrections.of_case(case.id)]
        assert [(one.author, one.label) for one in answers] == [
            ("Ben (imported)", "supported"), ("Ben (imported)", "unclear")
        ]  # fmt: skip
        assert all(truth.basis != "gold" for truth in store.truths.labels(project_id).values())


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("empty.csv", b"\n", "empty file"),
        ("twice.csv", b"a,a\n1,2\n", "each column once"),
        ("photo.png", b"\x89PNG\r\n\x1a\n\xff", "UTF-8"),
    ],
)
def test_other_files_are_refused_in_words(
    app: OpenApp, project_id: str, name: str, data: bytes, words: str
) -> None:
    at = given(app(PAGE), name, data)
    assert words in at.error[0].value.replace("\\", "")


def test_what_leaves_the_page_comes_in_again(site: Site, project_id: str) -> None:
    imported(given(site.open(PAGE), "rows.jsonl", ROWS))
    mira = Exporter(site.home, project_id, "Mira")
    assert json.loads(build_export(mira, "jsonl", "reviewed").splitlines()[0])["id"] == "a"
    assert len(build_export(mira, "jsonl", "reviewed").splitlines()) == 1
    assert len(build_export(mira, "mu-shroom", "all").splitlines()) == 2
    assert build_export(mira, "archive", "all").startswith(b"PK")
    with zipfile.ZipFile(io.BytesIO(build_export(mira, "trajectories", "all"))) as packed:
        assert packed.namelist() == ["trajectories.jsonl", "trajectories.failed.jsonl"]


def test_who_lost_the_role_since_the_button_was_drawn_gets_no_file(
    project_id: str, home: Path
) -> None:
    member(home, project_id, "Ben", "annotator")
    ben = Exporter(home, project_id, "Ben")
    for name in ("csv", "archive", "trajectories"):
        with pytest.raises(NotAllowed, match="takes the role lead"):
            build_export(ben, name, "all")


def test_an_archive_brings_a_project(site: Site, project_id: str, tmp_path: Path) -> None:
    stream, other = io.BytesIO(), tmp_path / "other"
    with open_store(other) as store:
        write_archive(store, other, ensure_project(store, "Kim", 1.0), stream)
    at = given(site.open(PAGE), "project.zip", stream.getvalue())
    imported(at, "exchange.import.archive")
    assert "is here with 0 cases" in told(at)
    with open_store(site.home) as store:
        assert sorted(one.name for one in store.projects.all())[1].endswith("(2)")
    imported(at, "exchange.import.archive")
    assert "was here before, so nothing was stored" in told(at)


def test_who_may_not_begin_a_project_is_told_so_beside_an_archive(
    site: Site, project_id: str
) -> None:
    with open_store(site.home) as store:
        store.projects.set_member(Member(project_id, "Lea", "lead", 2.0))
        store.projects.save_note("person", "Lea")
    at = given(site.open(PAGE), "project.zip", b"PK\x03\x04")
    assert "Only admins can create a project: Mira." in told(at)
    assert not [b for b in at.button if b.key == "exchange.import.archive"]


def test_who_lost_the_role_since_the_file_was_shown_is_told(site: Site, project_id: str) -> None:
    at = given(site.open(PAGE), "rows.jsonl", ROWS)
    member(site.home, project_id, "Ann", "admin")
    member(site.home, project_id, "Mira", "annotator")
    press(at, "exchange.import")
    assert "Only leads and admins can import cases: Ann." in told(at)
    with open_store(site.home) as store:
        assert store.cases.all(project_id) == []


def test_an_annotator_neither_imports_nor_exports(site: Site, project_id: str) -> None:
    with open_store(site.home) as store:
        store.projects.set_member(Member(project_id, "Ben", "annotator", 2.0))
        store.projects.save_note("person", "Ben")
    at = site.open(PAGE)
    assert "Only leads and admins can import cases: Mira." in told(at)
    assert "Only leads and admins can export the answers of all: Mira." in told(at)
    assert not at.file_uploader


def test_recorded_debates_come_in_as_runs(site: Site, project_id: str) -> None:
    debates = archive({"1.json": debate(), "2.json": debate(source="另一句。")})
    at = given(site.open(PAGE), "debates.tar.gz", debates)
    assert "**2 rows**: 2 new, 0 known." in told(at)
    imported(at)
    assert "2 recorded debates" in told(at)
    with open_store(site.home) as store:
        runs = [run for case in store.cases.all(project_id)
                for run in store.runs.of_case(case.id, 1.0, 6)]  # fmt: skip
        assert [run.origin for run in runs] == ["imported", "imported"]
