"""Rows that cannot be read are listed with line and reason; the others come in."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.exchange import importer as incoming
from core.exchange.file_decoding import MAX_ROW_CHARS
from core.exchange.importer import ImportRequest, import_rows
from core.exchange.registry import FORMATS, READ_ONLY_FORMATS, WRITABLE_FORMATS
from core.runtime.errors import InputError, NotAllowed
from core.schema.events import RunFinished, RunStarted
from core.schema.records import Member, Plan, Project, Run, Source, Verdict
from core.schema.reviews import Correction, EvidenceMark, GoldAnswer, QueueEvent, Suggestion
from core.store import open_store
from core.store.sqlite import to_plain
from tests.exchange.stores import NOW, NOWHERE, exported, imported, project_of
from tests.fakes import make_case

GOOD = {"id": "good", "response": "The tower is old.", "label": "supported", "spans": []}


def lines(*rows: Any) -> bytes:
    return b"".join(r if isinstance(r, bytes) else json.dumps(r).encode() + b"\n" for r in rows)


def reasons(name: str, data: bytes) -> list[tuple[int, str]]:
    """Places and reasons; the good row beside them came in."""
    with open_store(None) as store:
        outcome = imported(store, FORMATS[name].read("rows", data))
        assert store.cases.get("good") is not None
        return [(one.place, one.reason) for one in outcome.problems]


def test_what_is_foreseen_is_what_comes_in() -> None:
    twice, other = dict(GOOD), GOOD | {"response": "The tower is new."}
    long = {"id": "long", "response": "x" * 101}
    with open_store(None) as store:
        store.projects.save_setting("response_characters", 100)
        read = FORMATS["jsonl"].read("rows", lines(GOOD, twice, other, long, {"response": "A."}))
        new, known, problems = incoming.preview_import(store, read, project_of(store))
        outcome = imported(store, read)
    assert (new, known, problems) == (outcome.new, outcome.known, outcome.problems)
    assert (new, known, [one.place for one in problems]) == (2, 1, [3, 4])


BAD = json.loads((Path(__file__).parent / "bad_rows.json").read_text(encoding="utf-8"))
BESIDE = {  # a good row of each format
    "jsonl": GOOD,
    "mu-shroom": {"id": "good", "model_output_text": "Right.", "hard_labels": []},
    "ragtruth": {"id": "good", "response": "Right.", "labels": []},
    "label-studio": {"data": {"id": "good", "text": "Right."}},
    "argilla": {"id": "good", "fields": {"response": "Right."}},
}


@pytest.mark.parametrize("case", BAD, ids=[f"{one['format']}: {one['words']}" for one in BAD])
def test_a_bad_row_is_listed_and_the_good_one_beside_it_comes_in(case: dict[str, Any]) -> None:
    name, row = case["format"], case["row"]
    bad = row.encode() + b"\n" if isinstance(row, str) else row
    if name in ("label-studio", "argilla"):
        data, place = json.dumps([BESIDE[name], bad]).encode(), 2
    else:
        data, place = lines(BESIDE[name], b"\n", bad), 3
    (found,) = reasons(name, data)
    assert (found[0], case["words"] in found[1]) == (place, True), found
    assert found[1].startswith("expected") or name != "jsonl"


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (b'{"id": "x", "response": "a", "n": ' + b"9" * 5000 + b"}\n", "expected JSON"),
        (b"[" * 200_000 + b"\n", "expected JSON"),
        (b'{"id": "x", "response": "caf\xe9"}\n', "UTF-8"),
        ({"id": "x", "response": "a" * 60_001}, "60,000"),
    ],
)
def test_a_row_that_no_table_shows_is_listed_too(row: Any, words: str) -> None:
    (found,) = reasons("jsonl", lines(GOOD, b"\n", row))
    assert (found[0], words in found[1]) == (3, True), found


def test_a_row_is_limited_before_it_is_parsed() -> None:
    (found,) = reasons("jsonl", lines(GOOD, b'{"response": "' + b"a" * MAX_ROW_CHARS + b'"}\n'))
    assert "characters in a row" in found[1]


def test_bad_rows_of_a_table_are_listed_by_line() -> None:
    table = (
        'id,response,label,spans\ngood,"two\nlines",supported,\nx,abc,maybe,\ny,abc,,"[{]"\n'
        "z,,supported,\nw,a,b,c,d\nv,abc,supported,\n"
    )
    found = reasons("csv", table.encode())
    assert [place for place, _ in found] == [4, 5, 6, 7]
    assert ["supported, hallucinated" in found[0][1], "cells" in found[3][1]] == [True, True]


def test_an_unclosed_quote_says_that_the_rest_was_not_read() -> None:
    (found,) = reasons("csv", b'id,response\ngood,a\nx,"open\ny,b\n')
    assert found[0] == 3
    assert "What follows" in found[1]


def test_a_list_that_breaks_off_keeps_what_came_before() -> None:
    rows = b'[{"data": {"id": "good", "text": "Right."}}, {"data": {"id": "x"'
    (found,) = reasons("label-studio", rows)
    assert found[0] == 2


@pytest.mark.parametrize("name", [*WRITABLE_FORMATS, *READ_ONLY_FORMATS])
@pytest.mark.parametrize(
    "data",
    [b"", b" \n", b"\x1f\x8bno gzip", b"\xff\xfe\x00", b"caf\xe9\n", b"\x89PNG\r\n\x1a\n\xff"],
    ids=["empty", "blank", "gzip", "odd", "latin", "picture"],
)
def test_what_is_no_text_is_refused_with_a_sentence(name: str, data: bytes) -> None:
    with pytest.raises(InputError):
        FORMATS[name].read("rows", data)


@pytest.mark.parametrize("name", [*WRITABLE_FORMATS, *READ_ONLY_FORMATS])
@pytest.mark.parametrize("data", [b"{}", b"[]", b"[{}]", b"null", b'"x"', b"a,b\n1,2\n", b"\x00"])
def test_nothing_that_is_another_kind_of_file_comes_in(name: str, data: bytes) -> None:
    try:
        read = FORMATS[name].read("rows", data)
    except InputError:
        return
    assert not read.rows


def test_gzip_bom_and_crlf_are_taken_as_they_come() -> None:
    with open_store(None) as store:
        data = b"\xef\xbb\xbf" + json.dumps(GOOD).encode() + b"\r\n\r\n"
        assert imported(store, FORMATS["jsonl"].read("rows", gzip.compress(data))).new == 1


def test_numbers_as_ids_are_texts_from_then_on() -> None:
    with open_store(None) as store:
        rows = lines({"id": 7, "response": "a"}, {"id": "7", "response": "a"}, {"response": "b"})
        outcome = imported(store, FORMATS["jsonl"].read("rows", rows))
        assert (outcome.new, outcome.known) == (2, 1)
        assert json.loads(exported(store, "jsonl").splitlines()[0])["id"] == "7"


def test_offsets_of_javascript_are_seen_by_the_quote() -> None:
    text = "😀😀 wrong word"
    span = {"start": 5, "end": 10, "text": "wrong"}
    row = {"id": "good", "response": text, "spans": [span]}
    with open_store(None) as store:
        assert not imported(store, FORMATS["jsonl"].read("rows", lines(row))).problems
        (gold,) = store.golds.of_case("good")
        assert [(s.start, s.end, s.text) for s in gold.spans] == [(3, 8, "wrong")]


def test_the_spans_of_one_answer_count_in_one_unit() -> None:
    spans = [{"start": 2, "end": 3, "text": "a"}, {"start": 9, "end": 10, "text": "b"}]
    row = {"id": "good", "response": "😀aaaa 😀b", "spans": spans}
    with open_store(None) as store:
        assert not imported(store, FORMATS["jsonl"].read("rows", lines(row))).problems
        (gold,) = store.golds.of_case("good")
        assert [(s.start, s.end) for s in gold.spans] == [(1, 2), (7, 8)]


def test_an_answer_is_of_a_run_over_its_own_case_alone() -> None:
    answer = Correction("k", "r", "mine", "Ana", NOW - 1, "supported")
    with open_store(None) as store:
        project = project_of(store)
        store.projects.save(Project("other", "Other", NOW + 1))
        for name, home in (("mine", project.id), ("theirs", "other")):
            case = replace(make_case("Right."), id=name, project_id=home)
            store.cases.add(case, [])
            run = Run(f"of-{name}", name, home, Plan(), "queued", 1.0)
            store.runs.add(run, "", 0.0)
            verdict = Verdict("supported", 0.1, 0.9, "")
            store.runs.append(
                run.id, None, [RunStarted(1.0, case, Plan(), ()), RunFinished(2.0, verdict, 1.0)]
            )
        for number, run_id in enumerate(("of-theirs", "of-mine", "of-nobody")):
            said = replace(answer, id=f"k{number}", run_id=run_id, reason=str(number))
            row = {"id": "mine", "response": "Right.", "corrections": [to_plain(said)]}
            assert not imported(store, FORMATS["jsonl"].read("rows", lines(row))).problems
        found = {one.id: one.run_id for one in store.corrections.history("mine")}
        assert found == {"k0": None, "k1": "of-mine", "k2": None}
        assert store.corrections.of_run("of-theirs") == []


def test_no_time_is_yet_to_come() -> None:
    late = NOW + 1e9
    row = GOOD | {
        "corrections": [to_plain(Correction("k", None, "good", "Ana", late, "unclear"))],
        "golds": [to_plain(GoldAnswer("g", "good", "Ana", late, "imported", "hallucinated"))],
        "suggestions": [to_plain(Suggestion("s", "good", "bot", late, "supported"))],
        "handlings": [to_plain(QueueEvent("good", "Ana", late, "skipped"))],
    }
    with open_store(None) as store:
        assert not imported(store, FORMATS["jsonl"].read("rows", lines(row))).problems
        times = [one.at for one in store.corrections.history("good")]
        times += [one.at for one in store.golds.of_case("good")]
        times += [one.at for one in store.golds.suggested("good")]
        times += [one.at for one in store.queue_events.of_case("good")]
        assert len(times) >= 5
        assert set(times) == {NOW}


def test_only_a_lead_brings_rows_in() -> None:
    with open_store(None) as store:
        project = project_of(store)
        store.projects.set_member(Member(project.id, "ben", "annotator", 1.0))
        read = FORMATS["jsonl"].read("rows", lines({**GOOD, "documents": [{"text": "A source."}]}))
        with pytest.raises(NotAllowed, match="takes the role lead"):
            import_rows(store, NOWHERE, read, ImportRequest(project, "ben", NOW, "rows"))
        assert store.cases.all(project.id) == []
        assert store.library.all(project.id) == []


def test_a_lead_who_is_one_no_more_brings_no_further_part_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(incoming, "ROWS_PER_TRANSACTION", 1)
    rows = [{**GOOD, "id": str(number)} for number in range(3)]
    with open_store(None) as store:
        project = project_of(store)
        store.projects.set_member(Member(project.id, "ben", "lead", 1.0))

        def demoted(done: int, _: int) -> None:
            if done == 1:
                store.projects.set_member(Member(project.id, "ben", "annotator", 1.0))

        order = ImportRequest(project, "ben", NOW, "rows")
        with pytest.raises(NotAllowed):
            import_rows(store, NOWHERE, FORMATS["jsonl"].read("rows", lines(*rows)), order, demoted)
        assert [case.id for case in store.cases.all(project.id)] == ["0"]


def test_evidence_that_is_not_in_its_source_is_listed() -> None:
    wrong = EvidenceMark("facts", 0, 5, "412 m")
    given = Correction("k", None, "good", "Ana", 1.0, "unclear", evidence=(wrong,))
    with open_store(None) as store:
        source = Source("facts", "facts.txt", "text", "It is 512 m tall.")
        store.readings.save(source, reader="1", seconds=0.0, now=1.0)
        row = {**GOOD, "corrections": [to_plain(given)]}
        (problem,) = imported(store, FORMATS["jsonl"].read("rows", lines(row))).problems
        assert "is not at characters 0 to 5 of its source" in problem.reason
        assert store.cases.get("good") is None
