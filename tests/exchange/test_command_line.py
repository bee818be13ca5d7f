"""`import` and `export` by command line: fresh homes, exit codes, one summary, listed problems."""

from __future__ import annotations

import csv
import getpass
import io
import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from core.__main__ import main
from core.exchange.annotation_tools import build_labeling_config
from core.exchange.command_line import ARCHIVE, MAX_PROBLEMS_SHOWN
from core.exchange.registry import FORMATS, READ_ONLY_FORMATS, WRITABLE_FORMATS
from core.learning.training_set import load_training_set
from core.pipeline.jobs import JobRunner
from core.pipeline.single_check import await_outcome
from core.review.adjudication import record_correction
from core.review.people import ensure_project, find_operator, switch_person
from core.schema.records import CATEGORY_WORDS, Member, Plan, Span
from core.schema.reviews import Correction
from core.store import open_store
from core.store.projects import GUEST
from tests.test_architecture import ROOT

ROWS = (
    {"id": "a", "response": "👩‍👩‍👧 =1+1", "label": "hallucinated",
     "spans": [{"start": 6, "end": 10}]},
    {"id": 7, "response": "same", "label": "supported"},
    {"id": "c", "response": "same"},
)  # fmt: skip


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Three cases: with a span, without, and without a label."""
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in ROWS), encoding="utf-8")
    return path


def run(*arguments: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    code = main([*arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def state(home: Path) -> list[tuple[Any, ...]]:
    with open_store(home) as store:
        project = store.projects.all()[0]
        cases = [(case, store.golds.that_counts(case.id)) for case in store.cases.all(project.id)]
        return [
            (
                case.id,
                case.response,
                gold.label if gold else None,
                [(s.start, s.end) for s in gold.spans] if gold else None,
            )
            for case, gold in cases
        ]


def test_the_formats_are_those_that_are_listed() -> None:
    assert WRITABLE_FORMATS == ("jsonl", "csv", "label-studio", "argilla", "mu-shroom", "ragtruth")
    assert READ_ONLY_FORMATS == ("faithbench", "haluquestqa", "xsum", "mad")
    assert ARCHIVE not in FORMATS


@pytest.mark.parametrize("name", WRITABLE_FORMATS)
def test_each_format_leaves_one_home_and_enters_another(
    name: str, file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second, out = tmp_path / "one", tmp_path / "two", str(tmp_path / "out")
    assert (
        run("import", "--format", "jsonl", str(file), "--home", str(first), capsys=capsys)[0] == 0
    )
    assert (
        run("export", "--format", name, "--out", out, "--home", str(first), capsys=capsys)[0] == 0
    )
    assert run("import", "--format", name, out, "--home", str(second), capsys=capsys)[0] == 0
    assert state(second) == state(first)
    assert [row[0] for row in state(first)] == ["a", "7", "c"]
    before = state(second)
    code, text, _ = run(
        "import", "--format", name, out, "--home", str(second), "--json", capsys=capsys
    )
    found = json.loads(text)
    assert (code, found["new"], found["known"], found["golds"]) == (0, 0, 3, 0)
    assert state(second) == before


def test_bad_rows_are_listed_and_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"id": 1, "response": "ok"}\n' + "broken\n" * (MAX_PROBLEMS_SHOWN + 5))
    code, _, err = run("import", "--format", "jsonl", str(path), "--home", str(tmp_path / "h"),
                       capsys=capsys)  # fmt: skip
    told = err.splitlines()
    assert code == 0
    assert told[0].startswith("line 2: expected JSON")
    assert told[MAX_PROBLEMS_SHOWN] == "… and 5 more."
    assert "1 new case" in told[-1]
    assert "55 rows left out" in told[-1]


def test_a_file_of_bad_rows_alone_exits_with_two(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("broken\n")
    code, out, err = run(
        "import", "--format", "jsonl", str(path), "--home", str(tmp_path / "h"), "--json",
        capsys=capsys,
    )  # fmt: skip
    assert code == 2
    assert json.loads(out)["problems"][0]["line"] == 1
    assert "line 1" in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("import", "--format", "jsonl", "nowhere.jsonl"), "nowhere.jsonl"),
        (("import", "--format", "word", "x"), "invalid choice"),
        (("import", "--format", "jsonl", ""), "empty"),
        (("import", "--format", "jsonl", str(ROOT)), "folder"),
        (("export", "--format", "csv", "--out", "-", "--project", "None of these"), "project"),
        (("export", "--format", "faithbench", "--out", "-"), "invalid choice"),
        (("export", "--format", "csv", "--out", "/nowhere/at/all"), "written"),
    ],
)
def test_bad_input_takes_one_line(
    arguments: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(*arguments, capsys=capsys)
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert words in err


def test_labels_come_in_as_suggestions_where_that_is_said(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "h"
    code, out, _ = run(
        "import", "--format", "jsonl", str(file), "--as", "suggestions", "--agent", "mine",
        "--home", str(home), "--json", capsys=capsys,
    )  # fmt: skip
    assert (code, json.loads(out)["suggestions"], json.loads(out)["golds"]) == (0, 2, 0)
    with open_store(home) as store:
        (found,) = store.golds.suggestions("a")
        item = store.queue.get("a")
    assert (found.agent, found.label, len(found.spans)) == ("mine", "hallucinated", 1)
    assert item is not None
    assert (item.run_id, item.label) == (None, "hallucinated")


def test_no_cell_is_a_formula(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, home = tmp_path / "rows.csv", str(tmp_path / "h")
    cells = ["=1+1", "+1", "-1", "@x", "\tx", "\rx", "'=1", "  =1", "=cmd|' /C calc'!A0"]
    with path.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([("response", "=title"), *((cell, cell) for cell in cells)])
    assert run("import", "--format", "csv", str(path), "--home", home, capsys=capsys)[0] == 0
    out = str(tmp_path / "out.csv")
    assert run("export", "--format", "csv", "--out", out, "--home", home, capsys=capsys)[0] == 0
    text = Path(out).read_bytes().decode("utf-8-sig")
    for row in csv.reader(io.StringIO(text, newline="")):
        assert not any(cell.lstrip()[:1] in tuple("=+-@\t\r") for cell in row if cell.strip())
    again = str(tmp_path / "again")
    assert run("import", "--format", "csv", out, "--home", again, capsys=capsys)[0] == 0
    assert [row[1] for row in state(Path(again))] == cells


def test_documents_come_along(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    responses, sources = tmp_path / "response.jsonl", tmp_path / "source_info.jsonl"
    responses.write_text('{"id": "1", "source_id": "s", "response": "Old.", "labels": []}\n' * 1)
    sources.write_text('{"source_id": "s", "source_info": "The tower is old."}\n')
    home, other, out = tmp_path / "h", tmp_path / "o", str(tmp_path / "out")
    code, text, _ = run(
        "import", "--format", "ragtruth", str(responses), "--sources", str(sources), "--home",
        str(home), "--json", capsys=capsys,
    )  # fmt: skip
    assert (code, json.loads(text)["documents"]) == (0, 1)
    for name in ("jsonl", "ragtruth", "csv", "label-studio"):
        target = other / name
        run("export", "--format", name, "--out", out, "--home", str(home), capsys=capsys)
        run("import", "--format", name, out, "--home", str(target), capsys=capsys)
        with open_store(target) as store, open_store(home) as first:
            case, before = store.cases.get("1"), first.cases.get("1")
            assert case is not None
            assert before is not None
            assert case.documents == before.documents != ()


def test_what_comes_in_can_be_checked_and_labelled_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], without_weights: None
) -> None:
    """Its documents have been read: none waits to be read for good."""
    home, rows, out = tmp_path / "h", tmp_path / "rows.jsonl", tmp_path / "out.jsonl"
    page = "Female cats tend to be right pawed, while male cats are more often left pawed."
    row = {"id": "1", "response": "Female cats tend to be left pawed."}
    row |= {"documents": [{"name": "cats.txt", "text": page}]}  # type: ignore[dict-item]
    rows.write_text(json.dumps(row), encoding="utf-8")
    run("import", "--format", "jsonl", str(rows), "--home", str(home), capsys=capsys)
    with open_store(home) as store:
        project, case = ensure_project(store, "lee", 1.0), store.cases.get("1")
        assert [entry.status for entry in store.library.all(project.id)] == ["ready"]
    assert case is not None
    jobs = JobRunner(home)
    run_id = jobs.start(case, Plan(), by="lee")
    await_outcome(home, jobs, run_id, "lee", time.time)
    with open_store(home) as store:
        verdict = store.runs.judgement(run_id)
        assert verdict is not None
        assert verdict.label == "hallucinated"
        span = Span(23, 27, "left", 1.0, "contradicted", "lee")
        answer = Correction("k", run_id, "1", "lee", 9.0, "hallucinated", (span,))
        with store.writing():
            record_correction(store, answer, case)
        assert [(row.label, row.people) for row in load_training_set(store).rows] == [
            ("hallucinated", ("lee",))
        ]
    _, _, told = run(
        "export", "--format", "jsonl", "--out", str(out), "--home", str(home), capsys=capsys
    )
    assert "1 with a ground truth, 0 in dispute" in told
    assert json.loads(out.read_text())["label"] == "hallucinated"


def test_a_reader_that_goes_away_is_no_bad_input(file: Path, tmp_path: Path) -> None:
    home = str(tmp_path / "h")
    assert main(["import", "--format", "jsonl", str(file), "--home", home]) == 0
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "core", "export", "--format", "csv", "--out", "-"],
            stdout=full,
            stderr=subprocess.PIPE,
            cwd=ROOT,
            env=os.environ | {"COUNTERPOINT_HOME": home},
            check=False,
        )
    assert (done.returncode, b"cannot be written" in done.stderr) == (1, True)


@pytest.mark.slow
def test_a_process_of_its_own_reads_and_writes(file: Path, tmp_path: Path) -> None:
    def command(*arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [sys.executable, "-m", "core", *arguments, "--home", str(tmp_path / "h")],
            input=given,
            capture_output=True,
            cwd=ROOT,
            env=os.environ | {"PYTHONIOENCODING": "ascii"},
            check=False,
        )

    taken = command("import", "--format", "jsonl", "-", given=file.read_bytes())
    assert (taken.returncode, taken.stdout) == (0, b"")
    assert b"3 new cases" in taken.stderr
    given = command("export", "--format", "jsonl", "--out", "-")
    assert given.returncode == 0
    assert [json.loads(line)["id"] for line in given.stdout.splitlines()] == ["a", "7", "c"]
    assert len(given.stderr.splitlines()) == 1


def test_a_tables_document_is_a_file_of_the_library_or_a_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home, path = tmp_path / "h", tmp_path / "rows.csv"
    rows = tmp_path / "rows.jsonl"
    document = {"name": "facts.pdf", "text": "The tower is old."}
    rows.write_text(json.dumps({"id": "a", "response": "Old.", "documents": [document]}))
    path.write_text("id,response,document\nb,Old.,facts.pdf.txt\nc,New.,The tower is new.\n")
    for name, given in (("jsonl", rows), ("csv", path)):
        code, _, err = run("import", "--format", name, str(given), "--home", str(home),
                           capsys=capsys)  # fmt: skip
        assert (code, "left out" in err) == (0, False), err
    with open_store(home) as store:
        cases = {one: store.cases.get(one) for one in "abc"}
        names = [entry.name for entry in store.library.all(store.projects.all()[0].id)]
    found = {one: case.documents for one, case in cases.items() if case}
    assert found["a"] == found["b"] != found["c"]
    assert sorted(names) == ["c.txt", "facts.pdf.txt"]


def test_the_labelling_configuration_has_the_projects_own_categories(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home, out = tmp_path / "h", str(tmp_path / "tasks.json")
    own = ("wrong_entity", 'says "more" than <it> & $does')
    with open_store(home) as store:
        project = ensure_project(store, "Mira", 1.0)
        assert labels_of(build_labeling_config(project.categories)) == list(CATEGORY_WORDS)
        store.projects.save(replace(project, categories=own))
    code, _, err = run(
        "export", "--format", "label-studio", "--out", out, "--home", str(home), capsys=capsys
    )
    assert code == 0
    assert labels_of(err[err.index("<View>") : err.index("</View>") + 7]) == list(own)


def labels_of(config: str) -> list[str | None]:
    found = ElementTree.fromstring(config)  # noqa: S314 - of our own making
    assert [one.get("value") for one in found.iter("Text")] == ["$question", "$text"]
    return [label.get("value") for label in found.iter("Label")]


def home_that_a_guest_left(folder: Path) -> Path:
    """Mira leads it; the last who typed a name in a browser is an annotator."""
    with open_store(folder) as store:
        project = ensure_project(store, "Mira", 1.0)
        switch_person(store, project.id, "Gus", 2.0)
        store.projects.set_member(Member(project.id, "Ada", "lead", 0.5))
    return folder


@pytest.mark.parametrize(("named", "expected"), [((), "Mira"), (("--by", " Zoe "), "Zoe")])
def test_who_works_at_the_command_line_is_the_first_admin_or_who_is_named(
    named: tuple[str, ...],
    expected: str,
    file: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    home, archive = home_that_a_guest_left(tmp_path / "h"), str(tmp_path / "a.zip")
    with open_store(home) as store:
        store.projects.set_member(Member(store.projects.all()[0].id, "Zoe", "lead", 3.0))
    at = ("--home", str(home), *named)
    assert run("import", "--format", "jsonl", str(file), *at, capsys=capsys)[0] == 0
    with open_store(home) as store:
        golds = [gold for case in ("a", "7") for gold in store.golds.of_case(case)]
    assert {gold.author for gold in golds} == {expected}
    code, _, _ = run("export", "--format", "archive", "--out", archive, *at, capsys=capsys)
    assert code == 0
    code, _, err = run("import", "--format", "archive", archive, *at, capsys=capsys)
    assert (code, "takes the role admin; Zoe has lead" in err) == ((0, False), (2, True))[
        len(named) // 2
    ]


def test_the_command_line_leaves_an_empty_home_to_the_systems_user(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "h"
    assert run("import", "--format", "jsonl", str(file), "--home", str(home), capsys=capsys)[0] == 0
    with open_store(home) as store:
        members = store.projects.members(store.projects.all()[0].id)
    expected = {getpass.getuser(): "admin", GUEST: "admin"}  # who first gives a name is the guest
    assert {one.person: one.role for one in members} == expected
    with open_store(home) as store:
        assert find_operator(store) == getpass.getuser()


def test_who_begins_a_home_at_the_command_line_by_name_is_its_only_admin(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    at = ("--home", str(tmp_path), "--by", "Zoe")
    assert run("import", "--format", "jsonl", str(file), *at, capsys=capsys)[0] == 0
    with open_store(tmp_path) as store:
        assert store.projects.admins(store.projects.all()[0].id) == ["Zoe"]


def test_documents_that_a_set_names_by_its_field_are_named_by_their_case(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, home = tmp_path / "qa.jsonl", tmp_path / "h"
    rows = [
        {"id": ask, "response": "Yes.", "question": ask, "documents": [{"name": name, "text": ask}]}
        for ask, name in (("Who?", "knowledge.txt"), ("When?", "context.txt"), ("How?", "a.txt"))
    ]
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    assert run("import", "--format", "jsonl", str(file), "--home", str(home), capsys=capsys)[0] == 0
    with open_store(home) as store:
        names = {entry.name for entry in store.library.all(store.projects.all()[0].id)}
    assert names == {"Who?, knowledge.txt", "When?, context.txt", "a.txt"}
