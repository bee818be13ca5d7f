"""Recorded debates come in as they were held: who spoke when, and no label that nobody gave."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.exchange.mad import read_mad as read
from core.exchange.registry import detect_format
from core.exchange.rows import ExchangeRow, RecordedRun
from core.runtime.errors import InputError
from core.schema.events import JudgementReached
from core.schema.records import Turn
from tests.formats.recorded_debates import BASE, BETTER, OPEN, SOURCE, archive, debate, reply


def row_of(value: Any) -> ExchangeRow:
    found = read("debate.json", json.dumps(value).encode())
    assert not found.problems
    return found.rows[0]


def run_of(value: Any) -> RecordedRun:
    run = row_of(value).run
    assert run is not None
    return run


def turns_of(run: RecordedRun) -> list[Turn]:
    return [event.turn for event in run.events if event.kind == "turn_finished"]


def test_the_response_is_what_the_debate_was_about() -> None:
    row = row_of(debate())
    assert (row.response, row.question, row.golds) == (BASE, SOURCE, ())
    assert ("correct reference", BETTER) in row.others


def test_rounds_stand_in_the_order_in_which_they_were_held() -> None:
    run = run_of(debate())
    told = [event.kind for event in run.events]
    one_round = ["turn_started", "turn_finished"] * 2
    assert told == [
        *one_round, "judgement_sampled", *one_round, "judgement_reached", "response_revised",
    ]  # fmt: skip
    taken = turns_of(run)
    assert [(t.number, t.round, t.debater.split()[0]) for t in taken] == [
        (1, 1, "Affirmative"), (2, 1, "Negative"), (3, 2, "Affirmative"), (4, 2, "Negative"),
    ]  # fmt: skip
    assert [t.reply for t in taken] == ["agree", "deny", "agree", "deny"]
    assert {t.manner for t in taken} == {"tit_for_tat"}
    assert {event.at for event in run.events} == {0.0}, "the record knows no times"


def test_a_preference_is_told_and_is_no_label() -> None:
    run = run_of(debate())
    sample, last = (e.judgement for e in run.events if e.kind.startswith("judgement"))  # type: ignore[union-attr]
    assert (sample.text, sample.label) == (
        "After round 1 the moderator saw no clear preference.",
        "unclear",
    )
    assert (
        last.text == "After round 2 the moderator preferred the translation of the negative side."
    )
    assert last.prose.endswith(f"A door isn't carried. It reads: “{BETTER}”.")
    verdict = run.verdict
    assert (verdict.label, verdict.p_hallucinated, verdict.cause) == (
        "unclear",
        None,
        "not_settled",
    )
    assert "no label" in verdict.cause_words
    assert {turn.stance for turn in turns_of(run)} == {"unclear"}


def test_a_judge_has_the_last_word() -> None:
    said = json.dumps({"Reason": "It is clearer.", "Correct Translation": BETTER})
    run = run_of(debate(moderator=(OPEN, OPEN), judge=said))
    last = next(event for event in run.events if isinstance(event, JudgementReached))
    assert last.judgement.agent == "Judge (tiny-1)"
    assert last.judgement.text == "After the last round the judge chose a translation."
    assert sum(event.kind == "judgement_sampled" for event in run.events) == 2
    assert [used.role for used in run.roles] == [
        "debater Affirmative side", "debater Negative side", "moderator", "judge",
    ]  # fmt: skip


def test_a_reply_of_no_use_says_so() -> None:
    run = run_of(debate(moderator=("I would rather not say.",)))
    assert run.verdict.cause == "unreadable_reply"
    assert "I would rather not say." in run.verdict.rationale


@given(st.text(), st.text(max_size=20), st.sampled_from(["Yes", "No"]))
def test_a_moderators_reply_is_read_and_never_run(reason: str, side: str, prefers: str) -> None:
    told = reply(prefers, side, reason).encode("utf-8", "ignore").decode()
    run = run_of(debate(moderator=(told,)))
    assert run.verdict.label == "unclear"
    assert run.verdict.rationale.startswith("After round 1 the moderator")


def test_what_stays_as_it_was_offers_no_other_text() -> None:
    run = run_of(debate(**{"debate translation": BASE}))
    assert not any(event.kind == "response_revised" for event in run.events)


def test_an_archive_is_read_in_the_order_of_its_numbers() -> None:
    files = {f"{n}.json": debate(source=f"句{n}") for n in (10, 2, 1)} | {"note.txt": b"hm"}
    data = archive(files)
    assert detect_format("debates.tar.gz", data) == "mad"
    assert detect_format("debates.tar", gzip.decompress(data)) == "mad"
    assert [row.question for row in read("debates.tar.gz", data).rows] == ["句1", "句2", "句10"]


def test_debates_may_be_lines() -> None:
    lines = "\n".join(json.dumps(debate(source=f"句{n}")) for n in range(3)).encode()
    assert detect_format("debates.jsonl", lines) == "mad"
    assert len(read("debates.jsonl", lines).rows) == 3


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (debate(**{"base translation": " "}), "base translation"),
        (debate(players={}), "nobody spoke"),
        (debate(players=[]), "players"),
        (debate(moderator=()), "a moderator's word"),
        (debate(first=(), second=()), "nobody spoke"),
        (b"{", "JSON"),
    ],
)
def test_a_bad_debate_is_left_out_with_its_reason(value: Any, told: str) -> None:
    found = read("d.tar.gz", archive({"1.json": debate(), "2.json": value}))
    assert len(found.rows) == 1
    (problem,) = found.problems
    assert problem.place == 2
    assert told in problem.reason


def test_links_and_broken_archives_are_not_followed() -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as packed:
        link = tarfile.TarInfo("1.json")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        packed.addfile(link)
    assert read("d.tar", out.getvalue()).rows == ()
    whole = gzip.decompress(archive({"1.json": debate(), "2.json": debate()}))
    with pytest.raises(InputError, match="whole tar archive"):
        read("d.tar", whole[:3_000])
    with pytest.raises(InputError, match="gzip"):
        read("d.tar.gz", archive({"1.json": debate()})[:-20])
