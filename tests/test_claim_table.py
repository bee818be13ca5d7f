"""Tables of claims: read, checked row by row, taken up again, given back without formulas."""

from __future__ import annotations

import csv
import io
import json
import threading
from pathlib import Path

import pytest

from core.documents.library import store_file
from core.documents.tables import safe_cell
from core.pipeline.batch_check import (
    find_problems,
    format_results_csv,
    load_batch_results,
    read_claims,
    resume_batch,
    start_batch,
    summarize_run,
)
from core.pipeline.jobs import JobRunner
from core.review.people import ensure_project
from core.runtime.config import Settings
from core.runtime.errors import InputError
from core.schema.events import ProblemMet
from core.schema.records import Plan
from core.schema.run_state import fold_events
from core.store import Store, open_store
from core.store.traces import export_trace, import_trace

pytestmark = pytest.mark.usefixtures("without_weights")

CATS = "Female cats tend to be right pawed, while male cats are more often left pawed."
TABLE = """claim,question,document
Female cats tend to be right pawed.,,cats.txt
Female cats tend to be left pawed.,,cats.txt
"Yes, they do.",Do female cats tend to be right pawed?,cats.txt; none.txt
,,cats.txt
"""


def results_csv(store: Store, batch: str) -> str:
    """The results of a batch as they are downloaded."""
    rows = load_batch_results(store, batch)
    found = [summarize_run(store, run) for _, run in rows]
    return format_results_csv(rows, found, lambda run: f"http://here/run?run={run}").decode(
        "utf-8-sig"
    )


@pytest.mark.parametrize(
    ("data", "claims"),
    [
        (b"claim\nOne.\nTwo.", ["One.", "Two."]),
        ("Claim;Quelle\nÄpfel, rot;x".encode(), ["Äpfel, rot"]),
        (b"\xef\xbb\xbftext\tfile\nOne.\ta.txt", ["One."]),
        (b'response\n"Two\nlines"', ["Two\nlines"]),
        (b'{"id": 1, "Claim": "One, two."}\n\n{"Claim": "Three."}', ["One, two.", "Three."]),
        (b'{"id": 1}\n{"id": 2, "text": "Two."}', ["", "Two."]),
    ],
)
def test_tables_of_many_kinds_are_read(data: bytes, claims: list[str]) -> None:
    assert [row.claim for row in read_claims("t.csv", data, 10)] == claims


def test_sources_are_named_in_several_ways() -> None:
    data = b"claim,document,image\nOne.,a.pdf; b.txt,c.png"
    assert read_claims("t.csv", data, 10)[0].sources == ("a.pdf", "b.txt", "c.png")


def test_sources_may_stand_in_the_table_itself() -> None:
    one, two, three = read_claims(
        "t.jsonl",
        json.dumps(
            {"claim": "One.", "context": ["A; b.", "C."], "files": ["a.pdf", "b.txt"]}
        ).encode()
        + b'\n{"claim": "\\ud83d"}\n'
        + json.dumps({"claim": "Three.", "document": CATS * 2}).encode(),
        10,
    )
    assert (one.sources, one.texts) == (("a.pdf", "b.txt"), (("context", "A; b.\nC."),))
    assert "not a JSON object" in two.problem
    assert (three.sources, three.texts) == ((), (("document", CATS * 2),))


def test_a_text_in_the_table_is_the_rows_source(home: Path) -> None:
    claims = ("Female cats tend to be left pawed.", "Female cats tend to be right pawed.")
    one, three = (f"{claim},{CATS!r}\n" for claim in claims)
    table = f"claim,context\n{one}Fine.,GIF89a\n{three}"
    with open_store(home) as store:
        project = ensure_project(store, "Mira", 1.0)
        rows = read_claims("cats.csv", table.replace("'", '"').encode(), 10)
        jobs = JobRunner(home)
        batch = start_batch(store, jobs, project, rows, author="Mira", name="cats.csv", plan=Plan())
        for row, _ in load_batch_results(store, batch):
            assert row.run_id is None or jobs.wait(row.run_id, 60)
        (row, run), (refused, _), (same, _) = load_batch_results(store, batch)
        assert run is not None
        assert run.label == "hallucinated"
        assert "(cats, context 1.txt)" in summarize_run(store, run).source_says
    assert row.sources == same.sources == ("cats, context 1.txt",)
    assert "is a GIF image" in refused.problem


def test_further_columns_come_back_with_the_results(home: Path) -> None:
    data = b"Ticket,claim,label,Ticket\nT-1,One.,old,=SUM(A1)\nT-2,Two."
    rows = read_claims("t.csv", data, 10)
    assert rows[0].others == (("Ticket", "T-1"), ("label", "old"), ("Ticket", "=SUM(A1)"))
    with open_store(home) as store:
        project = ensure_project(store, "Mira", 1.0)
        batch = start_batch(
            store, JobRunner(home), project, rows, author="Mira", name="t.csv", plan=Plan()
        )
        text = results_csv(store, batch)
    header, one, two = csv.reader(io.StringIO(text))
    assert header[-3:] == ["Ticket", "label (table)", "Ticket"]
    assert one[-3:] == ["T-1", "old", "'=SUM(A1)"]
    assert two[-1] == "T-2"
    assert header.count("label") == 1


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"a,b\n1,2", "one column called claim, found a, b"),
        (b'{"a": 1, "b": 2}', "one field called claim, found a, b; name the field"),
        (b"claim", "expected rows below the header, found none"),
        (b"", "found none"),
        (b"claim\n" + b"x\n" * 11, "at most 10 claims, found more"),
        ("claim\nCafé".encode("latin-1"), "UTF-8"),
        (b"PK\x03\x04 and so on", "is a workbook, not plain text; save its sheet as CSV"),
    ],
)
def test_bad_tables_are_refused_in_words(data: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_claims("t.csv", data, 10)


@pytest.mark.parametrize(
    ("data", "claims", "problems"),
    [
        (b'claim\nOne.\n"Two.\nThree.', ["One.", '"Two.', "Three."], {2: "line 3 do not match"}),
        (
            b'claim\n"Two.\nThree.\n"Four" is even.\nFive.',
            ['"Two.', "Three.", '"Four" is even.', "Five."],
            {1: "line 2 do not match", 3: "line 4 do not match"},
        ),
        (b'claim\n\n"Hamlet" is a play.', ['"Hamlet" is a play.'], {1: "line 3 do not match"}),
        (b'claim\tfile\n"One.\ta.txt', ['"One.\ta.txt'], {1: "line 2 do not match"}),
        (b"claim\nOne, two.\nThree.,,", ["One  two.", "Three."], {1: "more cells than the header"}),
        (b'claim\n"Two\nlines"\n"a" b', ["Two\nlines", '"a" b'], {2: "line 4 do not match"}),
    ],
)
def test_a_broken_row_is_refused_alone(
    data: bytes, claims: list[str], problems: dict[int, str]
) -> None:
    rows = read_claims("t.csv", data, 10)
    assert [row.claim for row in rows] == claims
    assert {row.number for row in rows if row.problem} == set(problems)
    assert all(words in rows[number - 1].problem for number, words in problems.items())


def test_what_prevents_a_row_is_known_before_it_runs(home: Path) -> None:
    with open_store(home) as store:
        project = ensure_project(store, "Mira", 1.0)
        for name in ("cats.txt", "cut.pdf"):
            data = b"%PDF-" if name.endswith("pdf") else CATS.encode()
            entry = store_file(store, home, project.id, name, data, "Mira", 1.0, Settings())
        store.library.set_status(entry.id, "refused", "“cut.pdf” could not be read.")
        store.projects.save_setting("response_characters", 100)
        data = (
            b"claim,document\nFine.,cats.txt\n ,cats.txt\nGone.,a.pdf; b.pdf\nCut.,cut.pdf\n"
        ) + b"It is too long. " * 7
        rows = find_problems(store, project.id, read_claims("t.csv", data, 10))
    assert [row.problem for row in rows][:4] == [
        "",
        "It has no text to check.",
        "The library has no file called a.pdf, b.pdf.",
        "“cut.pdf” could not be read.",
    ]
    assert "at most 100 characters" in rows[4].problem


@pytest.fixture
def batch(home: Path) -> str:
    """A batch of four rows, of which two can be checked."""
    with open_store(home) as store:
        project = ensure_project(store, "Mira", 1.0)
        store_file(store, home, project.id, "cats.txt", CATS.encode(), "Mira", 1.0, Settings())
        jobs = JobRunner(home)
        rows = read_claims("t.csv", TABLE.encode(), 10)
        batch_id = start_batch(store, jobs, project, rows, author="Mira", name="t.csv", plan=Plan())
        for row, _ in load_batch_results(store, batch_id):
            assert row.run_id is None or jobs.wait(row.run_id, 60)
    return batch_id


def test_rows_are_checked_and_bad_ones_say_why(home: Path, batch: str) -> None:
    with open_store(home) as store:
        found = load_batch_results(store, batch)
    labels = [run.label if run else None for _, run in found]
    assert labels == ["supported", "hallucinated", None, None]
    assert "no file called none.txt" in found[2][0].problem
    assert found[3][0].problem == "It has no text to check."


def test_results_go_out_as_a_table(home: Path, batch: str) -> None:
    with open_store(home) as store:
        text = results_csv(store, batch)
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["label"] for row in rows] == ["supported", "hallucinated", "", ""]
    assert rows[0]["claim"] == "Female cats tend to be right pawed."
    assert float(rows[1]["p_hallucinated"]) > 0.5
    assert rows[2]["status"] == "not checked"
    assert rows[1]["marked_words"] == "left"
    assert CATS in rows[0]["source_says"]
    assert "(cats.txt)" in rows[1]["source_says"]
    assert "Verdict: INCORRECT" in rows[1]["reason"]
    assert rows[1]["link"].endswith(rows[1]["run_id"])
    assert (rows[2]["reason"], rows[2]["link"]) == ("", "")
    asked = "Do female cats tend to be right pawed?"
    assert [row["question"] for row in rows] == ["", "", asked, ""]


def test_a_batch_that_cannot_be_stored_leaves_no_case(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError("disk full")

    with open_store(home) as store:
        project = ensure_project(store, "Mira", 1.0)
        monkeypatch.setattr(store.batches, "add", full)
        rows = read_claims("t.csv", b"claim\nOne.\nTwo.", 10)
        with pytest.raises(OSError, match="disk full"):
            start_batch(
                store, JobRunner(home), project, rows, author="Mira", name="t.csv", plan=Plan()
            )
        assert next(store.db.query("SELECT count(*) AS n FROM cases"))["n"] == 0


def test_a_row_says_what_it_rests_on(home: Path) -> None:
    with open_store(home) as store:
        project = ensure_project(store, "Mira", 1.0)
        files = [
            store_file(store, home, project.id, name, name.encode(), "Mira", 1.0, Settings()).id
            for name in ("cats.txt", "more.md")
        ]
        rows = read_claims("t.csv", b"claim,document\nOne.,cats.txt\nTwo.,", 10)
        jobs = JobRunner(home)
        batch = start_batch(
            store, jobs, project, rows, author="Mira", name="t", plan=Plan(), common=files[1:]
        )
        named = [row.sources for row, _ in load_batch_results(store, batch)]
        for row, _ in load_batch_results(store, batch):
            assert row.run_id
            assert jobs.wait(row.run_id, 60)
    assert [set(names) for names in named] == [{"cats.txt", "more.md"}, {"more.md"}]


def test_the_record_of_a_run_begins_with_the_files_that_could_not_be_read(home: Path) -> None:
    unread = ProblemMet(1.0, "reading", "“cut.pdf” could not be read.", "cut.pdf")
    with open_store(home) as store:
        project = ensure_project(store, "Mira", 1.0)
        jobs = JobRunner(home)
        rows = read_claims("t.csv", b"claim\nOne.\n", 10)
        batch = start_batch(
            store, jobs, project, rows, author="Mira", name="t", plan=Plan(), unread=[unread]
        )
        ((row, _),) = load_batch_results(store, batch)
        assert row.run_id
        assert jobs.wait(row.run_id, 60)
        events = [event for _, event in store.runs.events(row.run_id)]
        trace = export_trace(store, row.run_id, 1e12, 6.0)
        copy = import_trace(store, trace, project.id, lambda *_: [])
        copied = fold_events(event for _, event in store.runs.events(copy))
    assert events[0] == unread
    assert fold_events(events).problems == [unread]
    assert fold_events(events).verdict is not None
    assert copied.problems == [unread]


def test_open_rows_are_taken_up_again(home: Path, batch: str) -> None:
    with open_store(home) as store:
        jobs = JobRunner(home)
        run_id = load_batch_results(store, batch)[0][0].run_id
        assert run_id
        store.db.execute("UPDATE runs SET status = 'stopped' WHERE id = ?", [run_id])
        assert resume_batch(store, jobs, batch, "Mira") == 1
        assert jobs.wait(run_id, 60)
        run = load_batch_results(store, batch)[0][1]
    assert run
    assert run.status == "finished"


def test_a_row_that_never_started_is_started_once_by_two_who_ask(home: Path, batch: str) -> None:
    """Both have the page open; each presses “Check those that are open”."""
    with open_store(home) as store:
        row = load_batch_results(store, batch)[0][0]
        store.db.execute("UPDATE batch_rows SET run_id = NULL WHERE row = 1")
    barrier = threading.Barrier(2)
    taken: list[int] = []

    def ask() -> None:
        jobs = JobRunner(home)
        with open_store(home) as store:
            barrier.wait(10)
            taken.append(resume_batch(store, jobs, batch, "Mira"))
            for row, _ in load_batch_results(store, batch):
                assert row.run_id is None or jobs.wait(row.run_id, 60)

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == [0, 1]
    with open_store(home) as store:
        assert row.case_id
        assert len(store.runs.of_case(row.case_id, 0.0, 0.0)) == 2, "the first one and its heir"


@pytest.mark.parametrize(
    "text",
    [
        "=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx", "\nx", " =1", "\u00a0=1", "\u200b=1",
        "\u200b\t=1", "＝1", "＠A",
    ],
)  # fmt: skip
def test_no_cell_is_a_formula(text: str) -> None:
    assert safe_cell(text) == "'" + text


@pytest.mark.parametrize("text", ["", "a = b", "5 - 3", " plain", "“=1”", "北京"])
def test_a_text_stays_a_text(text: str) -> None:
    assert safe_cell(text) == text


def test_numbers_and_nothing_stay_as_they_are() -> None:
    assert safe_cell(-0.5) == "-0.5"
    assert safe_cell(None) == ""
