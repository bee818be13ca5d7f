"""Three unlike debaters: they quote, differ, learn and say what is new; summary and correction."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.agents.reply_parser import parse_stated_verdict
from core.baseline.debaters import (
    DEBATER_KINDS,
    MAX_SUMMARY_WORDS,
    NOTHING_NEW,
    BuiltInContextWriter,
    BuiltInDebater,
    answer_remark,
    find_remarked_passages,
    has_nothing_new,
    phrase_nothing_new,
    select_new_sentences,
    summarise_round,
)
from core.baseline.wording import (
    STANCE_WORDS,
    TextEdit,
    apply_edits,
    find_edits,
    find_span_edits,
    is_fitting_value,
)
from core.debate.protocols import get_plan_protocol
from core.debate.signals import find_signals
from core.debate.votes import find_last_reason
from core.llm.call import ignore_piece
from core.runtime.concurrency import StopSignal
from core.schema.records import (
    DebatePoint,
    EvidenceContext,
    Judgement,
    Plan,
    Quote,
    Span,
    Stance,
    Turn,
)
from core.schema.roles import CaseView, Debater, DebateView, JudgeView
from core.schema.rosters import TurnMode
from core.schema.run_state import RunState
from tests.debates import arguing, built_in, turns
from tests.fakes import make_case, make_passage, make_view
from tests.readers import (
    CONTRADICTS,
    SUPPORTS,
    UNKNOWN_SCRIPT,
    Odds,
    ScriptedReader,
    assessor_with,
    word_assessor,
)
from tests.tools.corpus import table

BRIDGE = make_passage("The Halden Bridge is 412 m long and was opened in 1932.", number=1)
FERRY = make_passage("A ferry to Moss leaves the quay twice a day.", number=2, source="b.txt")
RIGHT = "The Halden Bridge is 412 m long."
WRONG = "The Halden Bridge is 600 m long."
DENIED = "The Halden Bridge is not 412 m long."


@dataclass(frozen=True)
class Debated:
    """What was said, and what the judge made of it."""

    turns: list[Turn]
    text: str
    label: str


def debated(claim: str, most: int = 5) -> Debated:
    view = make_view(make_case(claim), (BRIDGE, FERRY))
    plan = Plan(max_turns=most)
    at = arguing(get_plan_protocol(plan).argue, view, built_in(), plan=plan)
    said = turns(list(at.events()))
    judgement = at.state.progress.judgement
    assert judgement
    return Debated(said, judgement.text, judgement.label)


def test_all_agree_where_it_is_plain_and_stop_after_a_turn_each() -> None:
    said = debated(RIGHT).turns
    assert [turn.reply for turn in said] == ["agree"] * 3
    assert len({turn.debater for turn in said}) == 3
    assert {turn.stance for turn in said} == {"supported"}


def test_a_denial_keeps_them_apart_for_all_turns() -> None:
    """The values are the same; what is said of them is not."""
    found = debated(DENIED)
    assert len(found.turns) == 5
    assert {turn.stance for turn in found.turns} >= {"hallucinated", "supported"}
    assert "The debaters disagree" in found.text
    assert found.label == "hallucinated"


@pytest.mark.parametrize("claim", [RIGHT, WRONG, DENIED])
def test_turns_open_with_the_reply_quote_the_source_and_never_repeat_themselves(claim: str) -> None:
    by_debater: dict[str, list[str]] = {}
    for turn in debated(claim).turns:
        assert turn.text.startswith(("AGREE.", "DENY."))
        assert len(turn.text.split()) <= 100
        assert {quote.text for quote in turn.quotes} <= {BRIDGE.text, FERRY.text}
        by_debater.setdefault(turn.debater, []).append(turn.text)
    assert all(texts[0] not in texts[1:] for texts in by_debater.values())


def test_the_same_case_is_argued_the_same_way_twice() -> None:
    assert debated(DENIED) == debated(DENIED)


def test_a_wrong_value_is_told_with_the_sources_own() -> None:
    first = debated(WRONG, 1).turns[0]
    assert (first.agent, first.stance) == ("Value checker", "hallucinated")
    assert "The statement says “600 m”, the source “412 m”." in first.text
    assert [(p.text, p.evidence) for p in first.points] == [("600 m", "412 m")]


def argued(kind: str, claim: str, odds: Odds) -> Turn:
    view = make_view(make_case(claim), [BRIDGE])
    debater = BuiltInDebater(DEBATER_KINDS[kind], assessor_with(ScriptedReader({"Halden": odds})))
    seen = DebateView(view, "Ada", frozenset({BRIDGE.id}), (), 1, 1, claim)
    return debater.argue(seen, ignore_piece, StopSignal())


@pytest.mark.parametrize(
    ("odds", "words"), [(SUPPORTS, "says so."), (CONTRADICTS, "cannot be true together with it.")]
)
def test_the_entailment_reader_says_what_the_passage_means(odds: Odds, words: str) -> None:
    assert words in argued("entailment", RIGHT, odds).text


def test_words_that_no_passage_has_are_named_as_they_are_written() -> None:
    text = argued("overlap", "Halden Bridge establishes several companies.", CONTRADICTS).text
    assert "“establishes”, “several” and “companies” appear in none of my passages." in text


def test_what_another_debater_quotes_is_read_too() -> None:
    view = make_view(make_case(RIGHT), (BRIDGE, FERRY))
    overlap = built_in().debaters["Ben"]
    alone = DebateView(view, "Ben", frozenset({FERRY.id}), (), 2, 1, RIGHT)
    first = (
        built_in()
        .debaters["Ada"]
        .argue(
            replace(alone, debater="Ada", share=frozenset({BRIDGE.id})), ignore_piece, StopSignal()
        )
    )
    assert overlap.argue(alone, ignore_piece, StopSignal()).stance != "supported"
    heard = replace(alone, turns=(first,), number=3)
    assert overlap.argue(heard, ignore_piece, StopSignal()).stance == "supported"


def view_of(claim: str) -> CaseView:
    return make_view(make_case(claim), [BRIDGE, FERRY])


def asked(claim: str) -> DebateView:
    """Ada's first turn, with everything at hand."""
    view = view_of(claim)
    return DebateView(
        view, "Ada", frozenset(view.evidence.passages), (), 1, 1, claim, manner="answer"
    )


def said(debater: Debater, view: DebateView) -> Turn:
    heard: list[str] = []
    turn = debater.argue(view, heard.append, StopSignal())
    assert "".join(heard) == turn.text
    return turn


def readers() -> list[Debater]:
    return list(built_in().debaters.values())


def debater(kind: str) -> Debater:
    return BuiltInDebater(DEBATER_KINDS[kind], word_assessor())


@pytest.mark.parametrize(("claim", "stance"), [(RIGHT, "supported"), (WRONG, "hallucinated")])
def test_an_answer_states_its_verdict_confidence_and_doubt(claim: str, stance: Stance) -> None:
    """ColMAD 2.3: what is stated in the text is what is recorded, read by the same parser."""
    turns = [said(reader, asked(claim)) for reader in readers()]
    assert turns[0].stance == stance
    for turn in turns:
        stated = parse_stated_verdict(turn.text)
        assert stated.stance == turn.stance
        assert stated.confidence == turn.confidence
        assert stated.doubt == turn.doubt != ""
        assert turn.quotes


@pytest.mark.parametrize("claim", [RIGHT, WRONG, "The Halden Bridge was opened in 1932 by monks."])
def test_what_an_answer_cites_is_among_its_quotes(claim: str) -> None:
    """Quotes are what code verifies and people open; a citation in the words alone is neither."""
    for reader in readers():
        turn = said(reader, asked(claim))
        known = {quote.text for quote in turn.quotes}
        assert all(
            passage.text in known for passage in (BRIDGE, FERRY) if passage.text in turn.text
        )


def test_confidence_follows_what_is_measured() -> None:
    """A statement of which half is carried is not called open as surely as one of nothing."""
    rules = debater("rules")
    known = said(rules, asked(RIGHT)).confidence
    other = said(rules, asked("Ducks hibernate under polar ice."))
    assert other.stance == "unclear"
    assert known is not None
    assert other.confidence is not None
    assert known > 0.8


def test_who_cannot_measure_states_no_confidence() -> None:
    unknown = make_view(make_case(UNKNOWN_SCRIPT), [make_passage(f"{UNKNOWN_SCRIPT} ᛒ")])
    everything = frozenset(unknown.evidence.passages)
    view = replace(asked(RIGHT), case_view=unknown, share=everything)
    entailment = said(readers()[2], view)
    assert "do not know the language" in entailment.text
    assert (entailment.confidence, entailment.doubt) == (None, "")
    assert "Confidence" not in entailment.text


LONG = make_passage(
    "The Vidar bridge, which the people of Oslen had asked for since the great flood, carries four "
    "lanes of traffic and a path for those who walk.",
    number=1,
)
OPENED = make_passage("It was opened by the mayor of Oslen in May 1931.", number=2)
VIEW = make_view(
    make_case("The Vidar bridge was opened in 1931 and carries no lanes."), [LONG, OPENED]
)


@pytest.fixture(scope="module")
def progress() -> RunState:
    plan = Plan("ceda", max_turns=9)
    debate = arguing(get_plan_protocol(plan).argue, VIEW, built_in(), plan=plan)
    assert list(debate.events())
    return debate.state.progress


def by_debater(progress: RunState) -> dict[str, list[Turn]]:
    """Each one's turns in order."""
    found: dict[str, list[Turn]] = {}
    for turn in sorted(progress.turns, key=lambda turn: turn.number):
        found.setdefault(turn.debater, []).append(turn)
    return found


def test_nobody_says_the_whole_again(progress: RunState) -> None:
    for said_by_one in by_debater(progress).values():
        assert len(said_by_one) > 2, "a debate that goes on"
        first, *later = (turn.text.splitlines()[0].partition(". ")[2] for turn in said_by_one)
        assert not [text for text in later if first in text]


def test_who_has_nothing_new_names_stance_and_what_it_quoted(progress: RunState) -> None:
    for said_by_one in by_debater(progress).values():
        last = said_by_one[-1]
        assert f"{NOTHING_NEW}: " in last.text
        assert f"hold to “{STANCE_WORDS[last.stance]}”" in last.text
        assert last.quotes, "what it rests on goes with it still"
        assert any(quote.text[:30] in last.text for quote in last.quotes)


def test_what_is_quoted_in_a_few_words_is_found_in_the_sources(progress: RunState) -> None:
    assert not [one for one in find_signals(progress) if one.kind == "quote_not_found"]


def own(number: int, text: str, stance: Stance = "supported", *quotes: str) -> Turn:
    found = tuple(Quote(text, "verified") for text in quotes)
    return Turn("Ada", "Reader", number, number, "agree", stance, text, found)


def heard(*turns: Turn) -> DebateView:
    return DebateView(VIEW, "Ada", frozenset(), turns, 9, 3, "It is so.", manner="debate")


def test_what_was_said_is_left_out_and_what_is_new_is_said() -> None:
    said = heard(own(1, "CORRECT. It stands there."))
    assert select_new_sentences(["It stands there.", "So does that."], "supported", (), said) == [
        "So does that."
    ]
    assert select_new_sentences(["It stands there."], "supported", (), heard()) == [
        "It stands there."
    ]
    other = replace(said.turns[0], debater="Ben")
    assert select_new_sentences(["It stands there."], "supported", (), heard(other)) == [
        "It stands there."
    ]


def test_a_changed_mind_and_another_quote_are_something_new() -> None:
    words, quote = ["It stands there."], Quote("four lanes", "verified")
    ended = own(4, phrase_nothing_new("supported", (quote,)), "supported", "four lanes")
    assert has_nothing_new((quote,), "supported", heard(ended))
    assert select_new_sentences(words, "supported", (quote,), heard(ended)) == [
        "I have nothing new: I quoted “four lanes” and hold to “correct”."
    ]
    assert select_new_sentences(words, "hallucinated", (quote,), heard(ended)) == words
    fresh = (quote, Quote("a path", "verified"))
    assert select_new_sentences(words, "supported", fresh, heard(ended)) == words


def test_the_reason_for_an_answer_is_the_last_that_was_given_for_that_stance() -> None:
    turns = [
        own(1, "WRONG. It is not there.", "hallucinated"),
        own(2, "CORRECT. It stands there."),
        replace(own(3, "AGREE, CORRECT. It leaves nothing out."), about="Ben"),
        replace(own(5, "A whole text."), manner="revise"),
        replace(own(6, "CORRECT. Another's."), debater="Ben"),
    ]
    assert find_last_reason(turns, turns[3]) == turns[1]
    assert find_last_reason(turns, turns[1]) == turns[1]
    assert find_last_reason([turns[3]], turns[3]) == turns[3], "there is no other"


REPORT = make_passage("The Halden Bridge is 412 m long.", number=1, source="report.pdf")
MINUTES = make_passage("The Halden Bridge was closed in 1990.", number=2, source="minutes.txt")
CLAIM = "The Halden Bridge was closed in 1985."
REMARKS_VIEW = make_view(make_case(CLAIM), [REPORT, MINUTES])
NOTHING = "What Mira says names nothing in the sources; I go by the evidence alone."


def remarked(
    *said: str, share: frozenset[str] | None = None, manner: TurnMode = "debate"
) -> DebateView:
    whole = frozenset({REPORT.id, MINUTES.id}) if share is None else share
    remarks = tuple(("Mira", words) for words in said)
    return DebateView(REMARKS_VIEW, "Ada", whole, (), 1, 1, CLAIM, manner=manner, remarks=remarks)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("Look at the minutes.", [MINUTES]),
        ("Was it not 1990?", [MINUTES]),
        ("It says “bridge is 412 m”.", [REPORT]),
        ("You are all wrong.", []),
        ("", []),
    ],
)
def test_a_passage_is_named_by_its_source_its_words_or_its_values(
    words: str, found: list[object]
) -> None:
    assert list(find_remarked_passages(remarked(words))) == found


@pytest.mark.parametrize("manner", ["debate", "answer"])
def test_what_a_person_points_to_is_read_though_it_was_another_s_share(manner: TurnMode) -> None:
    """The stance stays what the evidence gives; it is more evidence that is read."""
    rules = built_in().debaters["Ada"]
    alone = remarked(share=frozenset({REPORT.id}), manner=manner)
    assert rules.argue(alone, ignore_piece, StopSignal()).stance == "unclear"
    told = replace(alone, remarks=(("Mira", "See the minutes."),))
    turn = rules.argue(told, ignore_piece, StopSignal())
    assert turn.stance == "hallucinated"
    assert "I have read what Mira points to: “The Halden Bridge was closed in 1990.”" in turn.text


def test_words_that_name_nothing_change_nothing_and_are_answered_once() -> None:
    for debater in built_in().debaters.values():
        before = debater.argue(remarked(), ignore_piece, StopSignal())
        turn = debater.argue(remarked("It is supported, believe me!"), ignore_piece, StopSignal())
        assert (turn.stance, turn.quotes, turn.points) == (
            before.stance,
            before.quotes,
            before.points,
        )
        assert NOTHING in turn.text
        later: tuple[Turn, ...] = (turn,)
        again = replace(remarked("It is supported, believe me!"), turns=later, number=3)
        assert NOTHING not in debater.argue(again, ignore_piece, StopSignal()).text


def test_nobody_answers_where_nobody_spoke() -> None:
    assert answer_remark(remarked()) == []


QUOTE = Quote("It is 412 metres long.", "verified", source="report.pdf")


def point(
    response: str, words: str, evidence: str, weight: float = 0.9, **more: object
) -> DebatePoint:
    start = response.index(words)
    values: dict[str, object] = {"finding": "contradicted", "category": "number_or_date"} | more
    return DebatePoint(
        statement=0,
        start=start,
        end=start + len(words),
        text=words,
        evidence=evidence,
        explanation="",
        weight=weight,
        **values,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(*table("text_edits: a value fits where it is of the same make"))
def test_a_value_fits_where_it_is_of_the_same_make(words: str, value: str, does_fit: bool) -> None:
    assert is_fitting_value(words, value, "number_or_date") is does_fit
    assert not is_fitting_value(words, value, "contradicted")


def test_values_are_put_in_at_their_offsets_and_nothing_else_changes() -> None:
    text = "🌉 The bridge is 530 m long.\n otto built it in 1926 – 1926! جسر"
    found = find_edits([point(text, "530 m", "412 m"), point(text, "1926", "1931")], text)
    assert (
        apply_edits(text, found)
        == "🌉 The bridge is 412 m long.\n otto built it in 1931 – 1926! جسر"
    )


def test_a_name_at_the_beginning_keeps_its_capital() -> None:
    text = "Violins are made there."
    found = find_edits([point(text, "Violins", "cellos", category="wrong_entity")], text)
    assert apply_edits(text, found) == "Cellos are made there."


def test_of_two_in_one_place_the_surer_one_counts_and_equals_are_left_alone() -> None:
    text = "It opened in 1926."
    low, high = point(text, "1926", "1930", 0.6), point(text, "1926", "1931", 0.9)
    assert apply_edits(text, find_edits([low, high], text)) == "It opened in 1931."
    other = point(text, "1926", "1932", 0.9)
    assert apply_edits(text, find_edits([high, other], text)) == text


def test_words_that_do_not_stand_at_their_offsets_are_left_alone() -> None:
    text = "It opened in 1926."
    moved = point("At last it opened in 1926.", "1926", "1931")
    missing = point(text, "1926", "1931", finding="missing")
    assert find_edits([moved, missing], text) == []


def test_marked_spans_say_what_should_stand_there() -> None:
    text = "It opened in 1926."
    span = Span(13, 17, "1926", 0.9, "number_or_date", "someone", instead="1931")
    assert apply_edits(text, find_span_edits([span], text)) == "It opened in 1931."


@given(
    st.text(max_size=40), st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=5)
)
def test_edits_with_the_same_words_changes_nothing(
    text: str, places: list[tuple[int, int]]
) -> None:
    own = [TextEdit(a, b, text[a:b], 0.5) for a, b in places if a < b <= len(text)]
    assert apply_edits(text, own) == text


def test_the_built_in_writer_corrects_what_the_built_in_debaters_contest() -> None:
    text = "The Vidar bridge is 530 metres long and was opened in 1931."
    fact = make_passage("The Vidar bridge is 412 metres long and was opened in 1931.", number=1)
    view = make_view(make_case(text), [fact])
    debater = built_in().debaters["Ada"]
    seen = DebateView(view, "Ada", frozenset({fact.id}), (), 1, 1, text)
    turn = debater.argue(seen, ignore_piece, StopSignal())
    judgement = Judgement("Consensus", "hallucinated", "Wrong.")
    heard = JudgeView(view, EvidenceContext((), (fact.id,), ""), (turn,), False)
    assert BuiltInContextWriter(word_assessor()).revise(
        heard, judgement, StopSignal()
    ) == text.replace("530", "412")


def quoting(debater: str, stance: str, *quotes: Quote) -> Turn:
    return Turn(debater, debater, 1, 1, "agree", stance, "So.", quotes)  # type: ignore[arg-type]


def test_the_summary_tell_what_was_quoted_by_whom_and_for_what() -> None:
    forged = Quote("It is 530 metres long.", "not_found")
    told = summarise_round(
        [
            quoting("Ada", "hallucinated", QUOTE),
            quoting("Ben", "supported", QUOTE, forged),
        ],
        "",
    )
    assert told == (
        "“It is 412 metres long.” (report.pdf): quoted by Ada for “wrong”; Ben for “correct”."
    )


def test_the_summary_go_on_from_those_before_and_tell_nothing_twice() -> None:
    first = summarise_round([quoting("Ada", "hallucinated", QUOTE)], "")
    again = summarise_round([quoting("Ben", "hallucinated", QUOTE)], first)
    assert again == f"{first}\nNothing new was quoted from the sources."
    assert summarise_round([quoting("Ben", "hallucinated", QUOTE)], again) == again


@given(st.lists(st.integers(0, 30), max_size=30))
def test_the_summary_keep_within_their_limit(numbers: list[int]) -> None:
    turns = [quoting("Ada", "supported", Quote(f"fact {n} " * 9, "verified")) for n in numbers]
    assert len(summarise_round(turns, "").split()) <= MAX_SUMMARY_WORDS
