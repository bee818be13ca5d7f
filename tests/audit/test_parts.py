"""The parts of an audit by themselves: what is remembered, placed, reflected on, concluded."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.baseline.entailment import EntailmentReader
from core.baseline.reflector import BuiltInReflector
from core.baseline.segmenter import BuiltInSegmenter
from core.pipeline.audit_stage import AuditResult, apply_revisions, build_audit_judgement
from core.pipeline.audit_steps import (
    blank_same_words,
    close_contested,
    conclude_statement,
    drop_unrelated_label,
    group_into_waves,
    is_blanked_copy,
    locate_tool_finding,
    restrict_view,
    settle_refuted,
    split_labels,
)
from core.runtime.concurrency import StopSignal
from core.schema.events import LabelRevision, MemoryEntry, ToolUse
from core.schema.records import Judgement, Label, ReaderStance, Statement
from core.schema.roles import CaseView, Evidence, ToolStep
from core.tools.registry import load_tools
from core.tools.text_tools import MatchInput
from tests.fakes import make_case, make_passage
from tests.readers import CONTRADICTS, ScriptedReader, assessor_with, word_assessor

END = ToolStep("Done.")
SUM = '{"text": "%s"}'


def view_of(text: str, language: str = "en", **fields: object) -> CaseView:
    case = make_case(text, language=language, **fields)
    return CaseView(case, BuiltInSegmenter().segment(case, StopSignal()), Evidence({}, {}), {})


def use(statement: int | None, label: Label, tool: str = "calculator", **fields: object) -> ToolUse:
    values: dict[str, object] = {"given": "{}", "gave": "{}", "words": f"{tool} says {label}."}
    values |= {"p": {"supported": 0.1, "hallucinated": 0.95}.get(label)} | fields
    return ToolUse(
        tool=tool,
        statement=statement,
        outcome="found",
        label=label,
        seconds=0.0,
        **values,  # type: ignore[arg-type]
    )


def entry(statement: int, label: Label, **fields: object) -> MemoryEntry:
    p = {"supported": 0.1, "hallucinated": 0.9}.get(label)
    return replace(MemoryEntry(statement, label, p, f"evidence {statement}"), **fields)  # type: ignore[arg-type]


def test_what_is_worked_out_wrong_outweighs_what_was_read() -> None:
    said = [use(0, "hallucinated"), use(0, "supported", "match")]
    held = conclude_statement(0, said, END)
    assert (held.label, held.p, held.is_contested) == ("hallucinated", 0.95, False)
    assert held.tools == ("calculator", "match")


def test_a_right_sum_in_a_sentence_that_the_sources_deny_is_contested() -> None:
    held = conclude_statement(0, [use(0, "supported"), use(0, "hallucinated", "match")], END)
    assert (held.label, held.is_contested) == ("hallucinated", True)


def test_readers_that_differ_and_a_middling_p_are_contested() -> None:
    differ = '{"readers": [{"reader": "a", "statement": 0, "stance": "supported"},'
    differ += ' {"reader": "b", "statement": 0, "stance": "hallucinated"}]}'
    assert conclude_statement(0, [use(0, "supported", "match", gave=differ)], END).is_contested
    assert conclude_statement(0, [use(0, "supported", "match", p=0.45)], END).is_contested
    assert not conclude_statement(0, [use(0, "supported", "match", p=0.1)], END).is_contested


def test_the_picker_overrules_a_reading_and_only_contests_what_was_worked_out() -> None:
    end = ToolStep("The match is mistaken.", label="hallucinated", evidence="It says 412.")
    over = conclude_statement(0, [use(0, "supported", "match")], end)
    assert (over.label, over.evidence, over.is_contested) == ("hallucinated", "It says 412.", False)
    assert over.p is None, "the reading's p is of the other label"
    assert conclude_statement(0, [use(0, "supported")], end).is_contested


@pytest.mark.parametrize("outcome", ["off", "failed", "nothing"])
def test_a_tool_that_failed_is_no_label(outcome: str) -> None:
    broken = replace(use(0, "unclear"), outcome=outcome, p=None)  # type: ignore[arg-type]
    held = conclude_statement(0, [broken], END)
    assert (held.label, held.p) == ("unclear", None)


def test_wrong_words_are_placed_in_the_response() -> None:
    view = view_of("It was warm. The sum 3 + 4 = 8 holds.")
    statement = view.statements[1]
    start = statement.text.index("8")
    said = use(1, "hallucinated", given=SUM % statement.text, start=start, end=start + 1)
    moved = locate_tool_finding(said, statement, view.case)
    assert moved.start is not None
    assert view.case.response[moved.start : moved.end] == "8"
    lost = locate_tool_finding(replace(said, given=SUM % "8 and 8 again"), statement, view.case)
    assert (lost.start, lost.end) == (None, None)


def test_a_rewrite_moves_no_place() -> None:
    view = view_of("Ann has a dog. She is 8 years old.")
    statement = view.statements[1]
    rewrite = "Ann is 8 years old."
    start = rewrite.index("8 years")
    said = use(1, "hallucinated", given=SUM % rewrite, start=start, end=start + 7)
    moved = locate_tool_finding(said, statement, view.case)
    assert moved.start is not None
    assert view.case.response[moved.start : moved.end] == "8 years"


def test_conclusions_wait_for_the_others() -> None:
    view = view_of("3 + 4 = 7. Ann has two dogs. So 7 * 2 = 14.")
    first, later = group_into_waves(view.statements, "en")
    assert [s.index for s in first] == [0, 1]
    assert [s.index for s in later] == [2]


SILENT, DENYING = ScriptedReader(), ScriptedReader({"": CONTRADICTS})
"""What the one reads decides nothing, what the other reads contradicts everything."""


def reflected(
    view: CaseView, labels: list[Label], *uses: ToolUse, reader: EntailmentReader = SILENT
) -> dict[int, LabelRevision]:
    memory = [entry(index, label) for index, label in enumerate(labels)]
    found = BuiltInReflector(assessor_with(reader)).reflect(view, memory, uses, StopSignal())
    return {change.statement: change for change in found}


SPOILED = [
    ("en", "3 + 4 = 8. 8 * 2 = 16. In total that is 16.", "8", "7"),
    ("zh", "他有3 + 4 = 8个苹果。又乘以2，8 * 2 = 16。所以一共是16。", "8", "7"),
    ("de", "Das sind 3 + 4 = 8 Tage. Dann 8 * 2 = 16. Insgesamt sind das 16.", "8", "7"),
]


@pytest.mark.parametrize(("language", "text", "wrong", "right"), SPOILED)
def test_a_wrong_sum_spoils_what_is_calculated_from_it(
    language: str, text: str, wrong: str, right: str
) -> None:
    view = view_of(text, language)
    start = text.index(wrong)
    told = use(0, "hallucinated", start=start, end=start + len(wrong), instead=right)
    changes = reflected(view, ["hallucinated", "supported", "supported"], told)
    assert sorted(changes) == [1, 2]
    assert changes[1].because_of == (0,)
    assert changes[2].because_of == (1,)
    assert {change.reach for change in changes.values()} == {"global"}


def test_a_later_statement_that_uses_the_corrected_value_stands() -> None:
    text = "3 + 4 = 8. Rather, 3 + 4 = 7. So 7 * 2 = 14."
    told = use(0, "hallucinated", start=8, end=9, instead="7")
    assert reflected(view_of(text), ["hallucinated", "supported", "supported"], told) == {}


def test_a_number_of_another_thing_is_not_spoiled() -> None:
    text = "Ann has 3 + 4 = 12 apples. A year has 12 months."
    start = text.index("12")
    told = use(0, "hallucinated", start=start, end=start + 2, instead="7")
    assert reflected(view_of(text), ["hallucinated", "supported"], told) == {}


def test_what_the_evidence_carries_on_its_own_stands() -> None:
    text = "The tower has 8 floors. So its 8 floors are lit."
    told = use(0, "hallucinated", "match", start=14, end=22, instead="7 floors")
    carried = use(1, "supported", "match")
    assert reflected(view_of(text), ["hallucinated", "supported"], told, carried) == {}


def test_of_two_that_contradict_each_other_the_uncarried_one_falls() -> None:
    text = "The museum is open every day. The museum is not open every day."
    carried = use(0, "supported", "match")
    changes = reflected(view_of(text), ["supported", "unclear"], carried, reader=DENYING)
    assert list(changes) == [1]
    assert (changes[1].after, changes[1].because_of) == ("hallucinated", (0,))
    one_way = ScriptedReader({"not open": CONTRADICTS})
    assert reflected(view_of(text), ["supported", "unclear"], carried, reader=one_way) == {}


def test_two_different_things_do_not_contradict_each_other() -> None:
    text = "Anna has 3 cats. Ben has 4 cats. The first bridge is 300 m long. The second is 400 m."
    assert reflected(view_of(text), ["unclear"] * 4, reader=DENYING) == {}


def test_what_stands_word_for_word_in_a_passage_is_not_hallucinated() -> None:
    view = view_of("The tower is 412 m tall.")
    passage = make_passage("Visitors know: The tower is 412 m tall. It is old.")
    view = replace(view, evidence=Evidence({passage.id: passage}, {0: (passage.id,)}))
    changes = reflected(view, ["hallucinated"], use(0, "hallucinated", "match"))
    assert (changes[0].reach, changes[0].after) == ("local", "supported")


def test_what_stands_word_for_word_spoils_nothing_after_it() -> None:
    second = "So the tower has 8 floors and 30 rooms."
    view = view_of(f"3 + 4 = 8. {second} The 30 rooms of the tower are cold.")
    passage = make_passage(f"They say: {second} It is old.")
    view = replace(view, evidence=Evidence({passage.id: passage}, {1: (passage.id,)}))
    wrong = use(0, "hallucinated", start=8, end=9, instead="7")
    read = use(1, "hallucinated", "match")
    changes = reflected(view, ["hallucinated", "hallucinated", "supported"], wrong, read)
    assert {index: change.after for index, change in changes.items()} == {1: "supported"}


def test_what_a_wrong_statement_spoils_is_wrong_whoever_called_it_so() -> None:
    view = view_of("3 + 4 = 8. Therefore 8 * 2 = 16.")
    bare = MemoryEntry(1, "hallucinated", None, "")
    wrong = use(0, "hallucinated", start=8, end=9, instead="7")
    agent = BuiltInReflector(word_assessor())
    told = agent.reflect(view, (entry(0, "hallucinated"), bare), (wrong,), StopSignal())
    done = {
        c.statement: held
        for c, held in apply_revisions(told, {0: entry(0, "hallucinated"), 1: bare})
    }
    assert done.get(1, bare).label == "hallucinated"


def test_a_number_that_the_evidence_gives_is_not_spoiled_by_a_wrong_statement_beside_it() -> None:
    view = view_of(
        "Its five ferries take adults for 12.50. Two adult tickets cost 2 × 12.50 = 25.00."
    )
    given = make_passage("A ticket costs 12.50 euros for an adult.")
    other = make_passage("The tower is 12.50 m high.")
    wrong, right = use(0, "hallucinated", "match"), use(1, "supported")
    for passage, after in ((given, {}), (other, {1: "hallucinated"})):
        seen = replace(view, evidence=Evidence({passage.id: passage}, {1: (passage.id,)}))
        changes = reflected(seen, ["hallucinated", "supported"], wrong, right)
        assert {index: change.after for index, change in changes.items()} == after


def test_a_fenced_program_is_one_statement_that_completes_nothing_after_it() -> None:
    code = "```python\ndef fares(a, b):\n    return a * 12.5\n\nassert fares(2, 1) == 31.0\n```"
    view = view_of(f"Here it is:\n\n{code}\n\nIt returns 31.0 for two adults. It is short.")
    assert [s.text for s in view.statements][:2] == ["Here it is:", code]
    assert next(s.rewrite for s in view.statements if s.text.startswith("It")).split()[0] != "2"
    assert all(view.case.response[s.start : s.end] == s.text for s in view.statements)


def test_a_response_that_is_a_program_is_one_statement() -> None:
    """The examples of its docstring were called facts that contradict each other."""
    code = (
        'def is_even(n):\n    """\n    >>> is_even(3)\n    False\n    >>> is_even(4)\n    True\n'
        '    """\n    return n % 2 == 0\n\nassert is_even(4) == True\nassert is_even(3) == False'
    )
    (statement,) = view_of(f" {code}\n").statements
    assert statement.text == code
    assert len(view_of("The class Tower is open. Its def is long.").statements) == 2


def test_changes_to_nothing_and_to_nobody_are_left_out() -> None:
    memory = {0: entry(0, "supported"), 1: entry(1, "unclear", is_checkable=False)}
    changes = [
        LabelRevision(0, "local", "unclear", "hallucinated", "why", (7, 0)),
        LabelRevision(0, "local", "supported", "unclear", "again"),
        LabelRevision(1, "local", "unclear", "supported", "not checkable"),
        LabelRevision(9, "local", "unclear", "supported", "not there"),
    ]
    done = list(apply_revisions(changes, memory))
    assert [(c.statement, c.before, c.because_of) for c, _ in done] == [(0, "supported", ())]
    assert done[0][1].label == "hallucinated"


def test_what_goes_to_debate_keeps_its_places() -> None:
    view = view_of("The tower is old. It is 512 m tall. Trees grow there.")
    cut = restrict_view(view, [1])
    assert [s.index for s in cut.statements] == [1]
    kept = cut.statements[0]
    assert cut.case.response[kept.start : kept.end] == "It is 512 m tall."
    assert cut.case.response.split() == kept.text.split()
    assert len(cut.case.response) == len(view.case.response)
    assert kept.rewrite in cut.case.instruction


def test_a_judge_who_calls_several_wrong_together_is_asked_of_each() -> None:
    wrong = Judgement("Judge", "hallucinated", "Wrong.")
    assert split_labels(wrong, [1, 2]) is None
    assert split_labels(wrong, [2]) == {2: "hallucinated"}
    assert split_labels(replace(wrong, label="supported"), [1, 2]) == dict.fromkeys(
        [1, 2], "supported"
    )
    memory = {1: entry(1, "hallucinated", p=0.55, is_contested=True)}
    after = list(
        close_contested(memory, {1: ("supported", Judgement("Judge", "supported", "Right."))})
    )
    assert (after[0].label, after[0].is_contested) == ("supported", False)
    assert after[0].p is None or after[0].p < 0.5


def test_the_judge_s_p_is_the_statement_s_that_it_was_asked_about_alone() -> None:
    memory = {i: entry(i, "hallucinated", p=0.55, is_contested=True) for i in (1, 2)}
    sure = Judgement("Judge", "hallucinated", "Wrong.", p=0.95)
    unsure = replace(sure, p=0.6)
    alone = close_contested(memory, {1: ("hallucinated", sure), 2: ("hallucinated", unsure)})
    assert [after.p for after in alone] == [0.95, 0.6]
    together = close_contested(memory, {1: ("hallucinated", sure), 2: ("hallucinated", sure)})
    assert [after.p for after in together] == [0.55, 0.55]


def test_the_whole_refutes_the_statement_that_holds_the_words() -> None:
    view = view_of("Hello there. That takes 40 days.")
    memory = {0: entry(0, "unclear", is_checkable=False), 1: entry(1, "supported")}
    start = view.case.response.index("40")
    told = use(None, "hallucinated", "calendar", start=start, end=start + 7)
    after = list(settle_refuted(view.statements, memory, [told]))
    assert [(e.statement, e.label) for e in after] == [(1, "hallucinated")]


def test_a_broken_condition_is_wrong_though_every_statement_holds() -> None:
    view = view_of("The tower is old. It is tall.")
    memory = {0: entry(0, "supported"), 1: entry(1, "supported")}
    told = build_audit_judgement(
        AuditResult(view, memory, [use(None, "hallucinated", "conditions")])
    )
    assert (told.label, told.by_tool) == ("hallucinated", "conditions")
    assert told.statement_labels == ("supported", "supported")


def test_greetings_have_no_part_in_the_verdict() -> None:
    view = view_of("Hello! The tower is 412 m tall.")
    memory = {0: entry(0, "unclear", is_checkable=False), 1: entry(1, "supported")}
    told = build_audit_judgement(AuditResult(view, memory, []))
    assert told.label == "supported"
    assert "says nothing that could be checked" in told.prose
    nothing = build_audit_judgement(AuditResult(view_of("Hello!"), {0: memory[0]}, []))
    assert (nothing.label, nothing.cause) == ("unclear", "not_addressed")


labels = st.sampled_from(get_args(Label))
remembered = st.builds(
    MemoryEntry,
    st.just(0),
    labels,
    st.one_of(st.none(), st.floats(0.0, 1.0)),
    st.text(max_size=8),
    is_checkable=st.booleans(),
)
whole_uses = st.builds(use, st.none(), labels, st.sampled_from(["conditions", "code", "calendar"]))


def test_conflict_of_sources_is_quoted_in_conclusion() -> None:
    view = view_of("The ferry takes 25 minutes.")
    words = "The sources disagree: “25 minutes” (a.txt) contradicts “55 minutes” (b.txt)."
    conflict = use(0, "unclear", "match", gave='{"cause": "sources_disagree"}', words=words)
    judgement = build_audit_judgement(AuditResult(view, {0: entry(0, "unclear")}, [conflict]))
    assert (judgement.cause, judgement.cause_words) == ("sources_disagree", words)


@given(st.lists(remembered, max_size=6), st.lists(whole_uses, max_size=3))
def test_the_verdict_follows_from_the_statements_whatever_they_are(
    drawn: list[MemoryEntry], on_whole: list[ToolUse]
) -> None:
    view = view_of(" ".join(f"Tower {'abcdef'[i]} is old." for i in range(len(drawn))) or " ")
    memory = {i: replace(one, statement=i) for i, one in enumerate(drawn[: len(view.statements)])}
    told = build_audit_judgement(AuditResult(view, memory, on_whole))
    held = [one.label for one in memory.values() if one.is_checkable]
    refuted = any(one.label == "hallucinated" for one in on_whole)
    assert len(told.statement_labels) == len(view.statements)
    assert (told.label == "hallucinated") == ("hallucinated" in held or refuted)
    if told.label == "supported":
        assert "hallucinated" not in held
        assert all(label == "supported" for label in held) or told.by_tool
    assert (told.label == "unclear") == (told.cause is not None)
    if told.p is not None:
        assert 0.0 <= told.p <= 1.0
        assert told.label != "supported" or told.p < 0.5
    for point in told.points:
        assert view.case.response[point.start : point.end] == point.text


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("The tower is 512 m tall.", "hallucinated"),
        ("Orrin tower is 512 m tall", "hallucinated"),
        ("3 + 4 = 8.", "unclear"),
        ("The tower is 512 m tall. 3 + 4 = 8, and much more than that was said.", "unclear"),
    ],
)
def test_a_finding_about_other_words_is_none_of_the_statement(text: str, label: Label) -> None:
    statement = Statement(0, 0, 16, "It is 512 m tall.", "The Orrin tower is 512 m tall.")
    made = replace(use(0, "hallucinated"), given=json.dumps({"text": text}))
    found = drop_unrelated_label(made, statement)
    assert (found.label, found.outcome == "nothing") == (label, label == "unclear")


SEARCHED = ToolUse("search", 0, "{}", "{}", "found", "unclear", "Found 2 places.", 0.1)
FAILED = ToolUse("match", 0, "{}", "{}", "failed", "unclear", "The service is down.", 0.1)


def test_a_search_after_a_comparison_takes_no_label_from_it() -> None:
    held = conclude_statement(0, [use(0, "hallucinated", "match", p=0.9), SEARCHED], END)
    assert (held.label, held.p) == ("hallucinated", 0.9)


def test_a_picker_who_shrugs_at_what_was_worked_out_wrong_contests_it() -> None:
    shrug = ToolStep("Who knows.", label="unclear", evidence="Hard to say.")
    assert conclude_statement(0, [use(0, "hallucinated", "calculator", p=0.95)], shrug).is_contested
    beside = conclude_statement(0, [use(0, "supported", "calculator", p=0.15)], shrug)
    assert (beside.label, beside.is_contested) == ("unclear", False)


def test_a_tool_that_failed_is_told_of_and_is_no_lack_of_evidence() -> None:
    held = conclude_statement(0, [SEARCHED, FAILED], END)
    assert held.label == "unclear"
    assert held.evidence == "Found 2 places. The tool match failed: The service is down."
    whole = Statement(0, 0, 12, "It is a fact", "It is a fact")
    view = CaseView(make_case(whole.text), (whole,), Evidence({}, {}), {})
    told = build_audit_judgement(
        AuditResult(view, {0: held}, [SEARCHED, FAILED, replace(FAILED, tool="code")])
    )
    assert "2 calls of “code” and “match” failed" in told.cause_words


RESPONSE = "It was a mild winter. There are 104 days."
CASE = make_case(RESPONSE, question="How many days are there from 2014-02-06 to 2014-05-25?")
MILD, DAYS = RESPONSE[:21], RESPONSE[22:]
STATEMENTS = (Statement(0, 0, 21, MILD, MILD), Statement(1, 22, 41, DAYS, DAYS))
VIEW = CaseView(CASE, STATEMENTS, Evidence({}, {}), {})
BROKEN = ToolUse(
    "calendar", None, "{}", "{}", "found", "hallucinated", "The calendar gives 108 days.", 0.0,
    p=0.94, start=32, end=40, instead="108 days", category="number_or_date",
)  # fmt: skip
OPEN = {i: MemoryEntry(i, "unclear", None, "No tool says anything about it.") for i in (0, 1)}


@pytest.fixture
def spoiled() -> AuditResult:
    """A date that is wrong in the second statement, found over the response as a whole."""
    memory = OPEN | {entry.statement: entry for entry in settle_refuted(STATEMENTS, OPEN, [BROKEN])}
    return AuditResult(VIEW, memory, [BROKEN])


def test_an_error_found_over_the_whole_counts_once(spoiled: AuditResult) -> None:
    assert spoiled.memory[1].label == "hallucinated"
    assert build_audit_judgement(spoiled).p == 0.94


def test_it_is_told_once(spoiled: AuditResult) -> None:
    assert build_audit_judgement(spoiled).prose.count("The calendar gives 108 days.") == 1


def test_only_its_words_are_wrong_not_all_of_the_statement(spoiled: AuditResult) -> None:
    assert [point.text for point in build_audit_judgement(spoiled).points] == ["104 days"]


def test_readers_are_told_in_the_order_of_the_statements_whoever_answered_first() -> None:
    seen = [ReaderStance("Value checker", index, "unclear") for index in (1, 0)]
    uses = [
        ToolUse("match", r.statement, "{}", json.dumps({"readers": [asdict(r)]}), "found",
                "unclear", "", 0.0)
        for r in seen
    ]  # fmt: skip
    assert build_audit_judgement(AuditResult(VIEW, OPEN, uses)).readers == tuple(reversed(seen))


def test_what_stands_in_no_statement_is_told_and_counted_beside_them(spoiled: AuditResult) -> None:
    length = replace(
        BROKEN, tool="conditions", words="Nine words, not five.", start=None, end=None, p=0.8
    )
    both = build_audit_judgement(replace(spoiled, uses=[BROKEN, length]))
    assert both.prose.startswith("Nine words, not five.")
    assert both.p == pytest.approx(1 - 0.06 * 0.2, abs=1e-4)


TEXT = "Rome was founded in 1853."
QUESTION = "Tell me any fact on Rome and its kings."  # has “Rome” where the statement has the year


def test_a_longer_question_beside_the_statement_moves_no_place() -> None:
    asked = msgspec.json.encode(MatchInput(TEXT, question=QUESTION)).decode()
    said = ToolUse(
        "match", 0, asked, "{}", "found", "hallucinated", "753 BC.", 0.0, start=20, end=24
    )
    statement = Statement(0, 0, len(TEXT), TEXT, TEXT)
    moved = locate_tool_finding(
        said, statement, make_case(TEXT, question=QUESTION), load_tools()["match"].about
    )
    assert (moved.start, moved.end) == (20, 24)


def test_every_tool_names_a_field_that_it_takes() -> None:
    gives_places = {name: tool for name, tool in load_tools().items() if not tool.is_system}
    for name in gives_places.keys() - {"search"}:
        assert gives_places[name].about in gives_places[name].takes.__struct_fields__, name


@given(st.text(min_size=1, max_size=40), st.data())
def test_a_text_with_blanks_keeps_its_places(words: str, data: st.DataObject) -> None:
    gone = data.draw(st.sets(st.integers(0, len(words) - 1)))
    cut = "".join(" " if i in gone else char for i, char in enumerate(words))
    is_cut = cut != words and bool(cut.strip())
    assert is_blanked_copy(cut, words) is is_cut
    assert not is_blanked_copy(words, words)
    if not is_cut:
        return
    own = Statement(0, 2, 2 + len(words), words, f"In short: {words}")
    made = blank_same_words(cut, own)
    assert (made.start, made.end, made.text) == (own.start, own.end, cut)
    assert made.rewrite == cut or is_blanked_copy(made.rewrite, own.rewrite)


def test_what_is_blank_in_a_statement_is_blank_where_it_stands_alone() -> None:
    own = "It is 500 m + 12 m = 512 m long."
    cut = own.replace("500 m + 12 m =", " " * 14)
    statement = Statement(0, 0, len(own), own, own.replace("It", "The bridge"))
    assert blank_same_words(cut, statement).rewrite.split() == [
        "The",
        "bridge",
        "is",
        "512",
        "m",
        "long.",
    ]
    unlike = Statement(0, 0, len(own), own, "The bridge measures 512 m.")
    assert blank_same_words(cut, unlike).rewrite == cut
