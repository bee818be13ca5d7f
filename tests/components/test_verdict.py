"""The verdict's card: readers that disagreed, and runs that were scored again."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from components.run.audit import list_statement_labels
from components.run.corrected_text import MARKED_VALUES_AUTHOR, list_changes, list_contested
from components.run.verdict import (
    HELD_OUT_METHOD,
    MEASURED_METHOD,
    PastVerdicts,
    PersonVerdict,
    apply_person_marks,
    describe_readers,
    describe_rescoring,
    find_person_verdict,
    render_readers,
    render_reasons,
    render_verdict,
)
from components.widgets.wording import clip_sentences
from core.baseline.wording import apply_edits
from core.schema.events import (
    Event,
    JudgementReached,
    LabelPredicted,
    MemoryEntry,
    MemoryUpdated,
    RunFinished,
    RunResumed,
    SpanAdjudicated,
    StatementFound,
)
from core.schema.records import (
    Judgement,
    Label,
    MeasuredAccuracy,
    Quote,
    ReaderStance,
    Span,
    Stance,
    Statement,
    Verdict,
)
from core.schema.reviews import Correction, GoldAnswer, StatementLabel
from core.schema.run_state import RunState, fold_events
from core.store.ground_truth import decide_truth
from tests.fakes import make_case

NAMES = ("Entailment reader", "Value checker", "Overlap reader")


def views(index: int, *stances: Stance) -> tuple[ReaderStance, ...]:
    return tuple(ReaderStance(n, index, s) for n, s in zip(NAMES, stances, strict=False))


def progress(*readers: ReaderStance) -> RunState:
    made = RunState()
    for index, text in enumerate(("The tower is <b>tall</b>.", "It is old.")):
        made.add(StatementFound(1.0, Statement(index, 0, len(text), text, text)))
    made.add(JudgementReached(2.0, Judgement("J", "supported", "x", readers=readers), 0.1))
    return made


def told(*readers: ReaderStance) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", render_readers(progress(*readers)))).strip()


def test_readers_that_agree_are_named_in_one_line() -> None:
    assert told(*views(0, "supported", "supported")) == (
        "Given all the evidence, the readers agree: Entailment reader: supported · "
        "Value checker: supported."
    )


def test_a_disagreement_is_plain_to_see() -> None:
    words = told(*views(0, "supported", "hallucinated", "unclear"))
    assert words.startswith("Given all the evidence, the readers disagree:")
    for part in ("✓ Entailment reader: supported", "✗ Value checker: hallucinated"):
        assert part in words


def test_of_several_statements_only_those_in_dispute_are_shown_and_escaped() -> None:
    readers = (*views(0, "supported", "hallucinated"), *views(1, "supported", "supported"))
    words = told(*readers)
    assert words.startswith("Given all the evidence, the readers disagree on 1 of 2 statements:")
    assert "The tower is &lt;b&gt;tall" in words
    assert "It is old" not in words


def test_all_views_stand_in_one_line_by_statement() -> None:
    readers = (*views(0, "supported", "supported"), *views(1, "unclear", "hallucinated"))
    line = describe_readers(Judgement("J", "unclear", "x", readers=readers))
    assert line == (
        "1. Entailment reader: supported · Value checker: supported; "
        "2. Entailment reader: unclear · Value checker: hallucinated"
    )


def test_a_run_from_before_readers_were_kept_shows_nothing() -> None:
    assert render_readers(progress()) == ""
    assert render_readers(RunState()) == ""


def test_an_audit_says_how_many_statements_were_read_of_how_many() -> None:
    """Sums and dates are worked out and read by nobody; the table below counts them too."""

    def audited(*readers: ReaderStance) -> str:
        made = progress(*readers)
        made.add(
            MemoryUpdated(1.5, MemoryEntry(1, "supported", 0.1, "It adds up.", ("calculator",)))
        )
        return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", render_readers(made))).strip()

    start = "Given all the evidence, the readers"
    words = audited(*views(0, "supported", "hallucinated"))
    assert words.startswith(f"{start} disagree on the one statement that they read (2 in all):")
    assert "The tower is" in words
    words = audited(*views(0, "supported", "supported"))
    assert words == f"{start} agree on the one statement that they read (2 in all)."
    both = (*views(0, "supported", "hallucinated"), *views(1, "supported", "supported"))
    assert audited(*both).startswith(f"{start} disagree on 1 of 2 statements:")


FIRST = Verdict("hallucinated", 0.83, 0.83, "Why.", classifier="seed")
AGAIN = Verdict("supported", 0.2, 0.8, "Why.", classifier="v2")
SPAN = Span(0, 3, "The", 0.9, "other", "Reader")
RULING = SpanAdjudicated(1.5, SPAN, True, "It is wrong.")
EVENTS: list[Event] = [LabelPredicted(1.0, FIRST), RULING, RunFinished(2.0, FIRST, 1.0)]


def test_a_new_score_stands_beside_the_first_verdict() -> None:
    progress = fold_events([*EVENTS, LabelPredicted(900.0, AGAIN, "Nora")])
    words = describe_rescoring(progress)
    assert words == (
        "Scored again by classifier v2. The run had ended with hallucinated, 83% likely, by seed."
    )
    assert words in str(render_verdict(progress, None))


def test_marks_do_not_stay_where_the_new_score_says_that_nothing_is_wrong() -> None:
    assert fold_events(EVENTS).spans == (SPAN,)
    assert fold_events([*EVENTS, LabelPredicted(900.0, AGAIN)]).spans == ()
    back = [*EVENTS, LabelPredicted(900.0, AGAIN), LabelPredicted(901.0, FIRST)]
    assert fold_events(back).spans == (SPAN,)
    assert describe_rescoring(fold_events(back)) == ""


def test_a_verdict_that_was_never_scored_again_says_nothing_of_it() -> None:
    assert describe_rescoring(fold_events(EVENTS)) == ""
    assert describe_rescoring(fold_events(EVENTS[:1])) == ""
    assert describe_rescoring(fold_events([*EVENTS, RunResumed(3.0)])) == ""


TEXT = "The bridge opened in 1931. It is 530 m long. It is blue."
SOURCE = "The bridge over the sound, which took four years to build, is 412 m long."
WRONG_SPAN = Span(
    33, 38, "530 m", 0.9, "number_or_date", "Audit", "412 m",
    Quote(SOURCE, "verified", 100.0, "s", "facts.pdf", 3, 0, len(SOURCE)),
)  # fmt: skip


def audited_run(verdict: Verdict) -> RunState:
    """An audit of three statements, the second of which is wrong."""
    labels: tuple[Label, ...] = ("supported", "hallucinated", "unclear")
    starts = (0, 27, 45, len(TEXT) + 1)
    made = RunState(case=make_case(TEXT))
    for index, label in enumerate(labels):
        start, end = starts[index], starts[index + 1] - 1
        words = TEXT[start:end]
        made.add(StatementFound(1.0, Statement(index, start, end, words, words)))
        p = {"supported": 0.1, "hallucinated": 0.9, "unclear": 0.5}[label]
        made.add(MemoryUpdated(1.5, MemoryEntry(index, label, p, "Because of it.", ("match",))))
    measured = MeasuredAccuracy("document", 90, 70)
    judgement = Judgement("J", "hallucinated", "x", statement_labels=labels, measured=measured)
    made.add(JudgementReached(2.0, judgement, 0.1))
    made.add(LabelPredicted(2.5, verdict))
    if verdict.label == "hallucinated":
        made.add(SpanAdjudicated(2.6, WRONG_SPAN, True, "It is wrong."))
    return made


FINDINGS = "1 of 3 statements is wrong. “It is 530 m long.”: “530 m” is wrong."
AUDITED = Verdict("hallucinated", 0.9, 0.9, FINDINGS, classifier="seed")


def plain(markup: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", markup)).strip()


def test_the_card_says_what_is_wrong_where_it_stands_and_how_far_to_trust_it() -> None:
    few = PastVerdicts("Only 2 past verdicts at this level were looked at: too few to say.", "How")
    assert plain(render_verdict(audited_run(AUDITED), None, few)) == (
        "✗ Hallucinated 90% likely "
        "1 of 3 statements wrong, 1 unclear: “530 m” should be “412 m”. "
        f"The source: “{SOURCE}” (facts.pdf, p. 3) "
        "Of 90 statements about long documents with a probability like this, 78% were right. ⓘ"
    )


def test_an_audits_findings_are_in_its_table_not_in_the_card() -> None:
    words = plain(render_verdict(audited_run(AUDITED), None))
    assert "It is 530 m long" not in words
    assert render_reasons(audited_run(AUDITED)) == "", "the table tells them"
    assert "Why." in render_reasons(fold_events(EVENTS))


def test_a_long_quote_is_cut_around_what_the_words_should_be() -> None:
    made = audited_run(AUDITED)
    assert WRONG_SPAN.quote
    long = Quote("Once upon a time, long ago, " * 20 + SOURCE, "verified", source="f", start=0)
    span = Span(33, 38, "530 m", 0.9, "number_or_date", "Audit", "412 m", long)
    made.rulings = [SpanAdjudicated(2.6, span, True, "")]
    assert re.search(r"“… [^”]*412 m long\.”", plain(render_verdict(made, None)))


def test_a_quote_holds_the_whole_sentence_that_proves() -> None:
    proof = "Work on it took four years and ended on the twelfth of May, when it was opened to all."
    text = f"The old ferry sank twice. {'It was rebuilt each time by hand. ' * 4}{proof} It rained."
    words = clip_sentences(text, "", "It opened on 12 May after four years of work.", 100)
    assert words == f"… {proof} It rained."
    assert clip_sentences(text, "sank twice", "", 60).startswith("The old ferry sank twice. It was")
    assert clip_sentences(proof, "opened to all", "", 40) == "… of May, when it was opened to all."
    assert (
        clip_sentences(proof, "four years", "", 40) == "… on it took four years and ended on the…"
    )
    assert clip_sentences("桥" * 90 + "长四百米", "四百米", "", 40) == "… " + "桥" * 36 + "长四百米"
    assert clip_sentences(proof, "", "", 200) == proof


def test_labels_of_a_model_that_failed_its_test_do_not_stand_beside_its_verdict() -> None:
    unfit = Verdict("unclear", None, None, FINDINGS, "model_not_fit", "It failed.", "seed")
    assert list_statement_labels(audited_run(AUDITED)) == ["supported", "hallucinated", "unclear"]
    assert list_statement_labels(audited_run(unfit)) == ["unclear"] * 3
    words = plain(render_verdict(audited_run(unfit), None))
    assert words.startswith("? Unclear It failed.")
    assert "wrong" not in words


def said(author: str, label: Label, at: float = 1.0, **more: object) -> Correction:
    return Correction(f"{author}{at}", "r", "c", author, at, label, **more)  # type: ignore[arg-type]


def leads(*answers: Correction, wanted: int = 1) -> PersonVerdict | None:
    return find_person_verdict(decide_truth((), answers, wanted), answers)


def test_what_counts_as_true_leads() -> None:
    both = [said("Mira", "supported"), said("Jo", "hallucinated", 2.0)]
    assert leads() is None
    settled = find_person_verdict(
        decide_truth([GoldAnswer("g", "c", "Lea", 3.0, "adjudicated", "unclear")], both), both
    )
    assert settled
    assert settled.describe(AUDITED) == "Settled by Lea"
    assert settled.others == tuple(both)
    brought = [GoldAnswer("g", "c", "set", 0.0, "imported", "supported")]
    imported = find_person_verdict(decide_truth(brought, both), both)
    assert imported
    assert imported.describe(AUDITED) == "By the imported answer"


@pytest.mark.parametrize("wanted", [1, 3])
def test_people_who_disagree_lead_with_that_and_not_with_the_newest_answer(wanted: int) -> None:
    made = audited_run(AUDITED)
    answers = (said("Mira", "supported", reason="I read it."), said("Jo", "hallucinated", 2.0))
    person = leads(*answers, wanted=wanted)
    words = plain(render_verdict(made, None, person=person))
    assert words.startswith(
        "2 people disagree Mira says supported: I read it. Jo says hallucinated. The machine: "
    )
    assert apply_person_marks(made, person) == made
    assert list_changes(make_case(TEXT), made, person)[1] == MARKED_VALUES_AUTHOR


def test_one_answer_leads_even_if_more_are_wanted_and_a_majority_by_number() -> None:
    made, first = audited_run(AUDITED), said("Mira", "supported")
    words = plain(render_verdict(made, None, person=leads(first, wanted=3)))
    assert words.startswith("Overruled by Mira: ✓ Supported")
    most = leads(first, said("Jo", "hallucinated", 2.0), said("Lea", "supported", 3.0))
    words = plain(render_verdict(made, None, person=most))
    assert words.startswith("Overruled by 2 people: ✓ Supported")
    assert "Mira says supported · Lea says supported · Jo says hallucinated" in words


@pytest.mark.parametrize(
    ("label", "machine", "words"),
    [
        ("supported", "hallucinated", "Overruled by Mira"),
        ("hallucinated", "hallucinated", "Confirmed by Mira"),
        ("hallucinated", "unclear", "Decided by Mira"),
        ("unclear", "unclear", "Confirmed by Mira"),
    ],
)
def test_the_lead_says_what_became_of_the_machines_verdict(
    label: Label, machine: Label, words: str
) -> None:
    person = leads(said("Mira", label))
    assert person
    assert person.describe(Verdict(machine, None, None, "Why.")) == words


def test_a_persons_marks_take_the_place_of_the_machines() -> None:
    made = audited_run(AUDITED)
    own = Span(21, 25, "1931", 1.0, "number_or_date", "Mira", "1932")
    person = leads(*[said("Mira", "hallucinated", spans=(own,), reason="<b>No</b>")])
    assert apply_person_marks(made, person).spans == (own,)
    assert made.spans == (WRONG_SPAN,)
    overruled = leads(*[said("Mira", "supported", spans=(own,))])
    assert apply_person_marks(made, overruled).spans == ()
    labelled = said("Mira", "hallucinated", statements=(StatementLabel(24, 41, "hallucinated"),))
    right = replace(labelled, statements=(StatementLabel(0, len(TEXT), "supported"),))
    for answer, marks in ((labelled, (WRONG_SPAN,)), (right, ())):
        shown = apply_person_marks(made, leads(answer))
        assert shown.spans == marks, "who marks no words leaves the machine's in wrong statements"
    markup = render_verdict(made, None, person=person)
    assert "&lt;b&gt;No" in markup
    words = plain(markup)
    assert words.startswith("Confirmed by Mira: ✗ Hallucinated")
    assert words.index("“1931” should be “1932”") < words.index("The machine: ✗ Hallucinated, 90%")


def test_the_corrected_text_follows_the_person_else_the_machine() -> None:
    made, case = audited_run(AUDITED), make_case(TEXT)

    def corrected(*corrections: Correction) -> str:
        edits, _ = list_changes(case, made, leads(*corrections))
        return apply_edits(TEXT, edits)

    own = Span(21, 25, "1931", 1.0, "other", "Mira", "the year after")
    answer = "The bridge opened late. It is 412 m long. It is blue."
    assert corrected() == TEXT.replace("530", "412")
    assert corrected(said("Mira", "hallucinated", spans=(own,))) == TEXT.replace(
        "1931", "the year after"
    )
    assert corrected(said("Mira", "hallucinated", corrected_answer=answer)) == answer
    assert corrected(said("Mira", "supported", spans=(own,))) == TEXT
    phrase = said("Mira", "hallucinated", spans=(own,), corrected_answer="1932")
    assert "opened in the year after" in corrected(phrase), "a phrase is not the whole text"
    twice = (own, replace(own, category="number_or_date", instead="1932"))
    assert "opened in the year after" in corrected(said("Mira", "hallucinated", spans=twice))


def test_who_labelled_statements_keeps_the_machines_changes_in_those_that_are_wrong() -> None:
    made, case = audited_run(AUDITED), make_case(TEXT)
    first, second = (StatementLabel(0, 23, "hallucinated"), StatementLabel(24, 41, "hallucinated"))
    person = leads(said("Mira", "hallucinated", statements=(first, second)))
    edits, by = list_changes(case, made, person)
    assert apply_edits(TEXT, edits) == TEXT.replace("530", "412")
    assert by == MARKED_VALUES_AUTHOR
    contested = [span.text for span in list_contested(case, made, person)]
    assert contested == [WRONG_SPAN.text, TEXT[0:23]]
    assert "2 of 2 labelled statements wrong: “" in plain(render_verdict(made, None, person=person))
    right = replace(second, label="supported")
    kept = leads(said("Mira", "hallucinated", statements=(first, right)))
    assert list_changes(case, made, kept) == ([], MARKED_VALUES_AUTHOR)


def test_each_change_of_a_written_answer_can_be_left() -> None:
    answer = "The bridge closed on Monday. It is 412 m long. It is blue."
    person = leads(*[said("Mira", "hallucinated", corrected_answer=answer)])
    edits, by = list_changes(make_case(TEXT), audited_run(AUDITED), person)
    assert by == "Mira"
    assert [(TEXT[e.start : e.end], e.instead) for e in edits] == [
        ("opened in 1931", "closed on Monday"), ("530", "412"),
    ]  # fmt: skip
    assert apply_edits(TEXT, edits[1:]) == TEXT.replace("530", "412")


def test_a_verdict_that_no_reader_gives_says_who_decided() -> None:
    made = audited_run(AUDITED)
    label = AUDITED.label
    apart = Judgement("J", label, "x", readers=views(0, "unclear", "unclear", "supported"))
    made.add(JudgementReached(2.0, apart, 0.1))
    words = f"No reader by itself calls it {label}: the judge’s own model"
    assert words in plain(render_verdict(made, None))
    alike = replace(apart, readers=views(0, label, "unclear"))
    made.add(JudgementReached(2.0, alike, 0.1))
    assert words not in plain(render_verdict(made, None))
    made.add(JudgementReached(2.0, replace(apart, by_tool="Calculator"), 0.1))
    assert words not in plain(render_verdict(made, None)), "a tool decided it"


def test_a_classifiers_measured_share_names_its_material_and_method() -> None:
    card = {"reliability": [{"low": 0.5, "high": 1.0, "n": 43, "right": 42}]}
    made = audited_run(AUDITED)
    made.judgement = None
    for version, kind, method in (
        ("seed", "labelled public statements", MEASURED_METHOD),
        ("v2", "held-out cases", HELD_OUT_METHOD),
    ):
        made.verdict = replace(AUDITED, classifier=version, confidence=0.9)
        markup = render_verdict(made, card)
        assert f"Of 43 {kind} with a confidence like this, 98% were right." in plain(markup)
        assert method in markup
