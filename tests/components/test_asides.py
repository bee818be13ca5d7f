"""People's words, rounds in brief and weights stand where they were said: live, replayed, told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from components.report import build_report
from components.report_formats import write_markdown
from components.run.replay import replay_until, schedule_events
from components.run.transcript import (
    collect_asides,
    list_spoken_texts,
    render_weights,
    select_asides,
)
from components.widgets.html import Html
from core.pipeline.single_check import build_outcome
from core.schema.events import (
    ConsensusWeighed,
    DebateNoted,
    Event,
    JudgementSampled,
    PersonSpoke,
    RoundSummarised,
    RunStarted,
    TurnFinished,
)
from core.schema.records import Judgement, Plan, Run, Turn
from core.schema.run_state import fold_events
from core.verdict.consensus_weights import LearnedConsensusPolicy, LearnedWeights, Method
from tests.components.speaking import debate_html
from tests.fakes import make_case

CASE = make_case("The tower is 512 m tall.")
SAID = PersonSpoke(3.0, "Mira", "Look <b>here</b>: ``` 北京 العربية")


def turn(number: int, round_: int) -> TurnFinished:
    said = f"DENY. Turn {number} says so."
    return TurnFinished(
        float(number), Turn("Ada", "m", number, round_, "deny", "unclear", said), 0.5
    )


EVENTS: list[Event] = [
    RunStarted(0.0, CASE, Plan(protocol="sc_maks"), ()),
    turn(1, 0),
    turn(3, 1),  # turns of a phase end in any order
    SAID,
    turn(2, 1),
    RoundSummarised(4.0, "Writer", 1, "In <i>brief</i>."),
    turn(4, 2),
    ConsensusWeighed(5.0, "uniform", (("Ada", 0.75), ("Ben", 0.25)), 0.6),
]


def test_they_stand_between_the_turns_that_they_were_said_between() -> None:
    progress = fold_events(EVENTS)
    made = debate_html(progress.turns, placed=collect_asides(progress))
    parts = ["Turn 1", "Turn 2", "Turn 3", "Look &lt;b&gt;", "In &lt;i&gt;", "Turn 4", "Weighed"]
    places = [made.index(part) for part in parts]
    assert places == sorted(places)
    assert made.count("Look &lt;b&gt;") == made.count("In &lt;i&gt;brief") == 1
    assert "Weighed all alike: Ada 75% · Ben 25%. Together: 60% for hallucinated." in made


@pytest.mark.parametrize(
    ("method", "told"),
    [
        ("uniform", "Weighed all alike (weights 3): Ada 60% · Ben 40%."),
        ("record", "Weighed by how often each was right here (weights 3): Ada 60% · Ben 40%."),
        ("logistic", "what they err in together counted once (weights 3): Ada 60% · Ben 40%."),
        (
            "policy",
            "Weighed by how each answer fared in the debate (weights 3): Ada 60% · Ben 40%.",
        ),
    ],
)
def test_learned_weights_are_told_in_words_with_their_number(method: Method, told: str) -> None:
    weigher = LearnedConsensusPolicy(LearnedWeights(method), {}, 3)
    weighed = ConsensusWeighed(5.0, weigher.method, (("Ada", 0.6), ("Ben", 0.4)), 0.6)
    assert told in render_weights(weighed)


def test_words_before_the_first_turn_and_without_any_are_shown() -> None:
    for events in ([EVENTS[0], SAID], [EVENTS[0], SAID, EVENTS[1]]):
        progress = fold_events(events)
        made = debate_html(progress.turns, placed=collect_asides(progress))
        assert made.count("Mira") == 1


@pytest.mark.parametrize("numbers", [[], [1], [2, 5], [1, 2, 3]])
def test_each_aside_is_shown_once_whatever_turns_there_are(numbers: list[int]) -> None:
    placed = {place: [Html(f"p{place}")] for place in range(7)}
    shown = select_asides(placed, 0, numbers[0] if numbers else None)
    for number, following in zip(numbers, [*numbers[1:], None], strict=False):
        shown += select_asides(placed, number, following)
    assert sorted(shown) == sorted(f"p{place}" for place in placed)


def test_a_replay_says_them_in_their_time() -> None:
    placed = schedule_events(EVENTS, "reading")
    spoke = next(cue.at for cue in placed if cue.event.kind == "person_spoke")
    before, _ = replay_until(placed, spoke - 0.01)
    then, _ = replay_until(placed, spoke)
    assert (before.remarks, then.remarks) == ([], [SAID])


def test_a_report_and_the_command_line_tell_them() -> None:
    run = Run("r", CASE.id, CASE.project_id, Plan(), "finished", 0.0)
    progress = fold_events(EVENTS)
    text = write_markdown(build_report(run, CASE, progress, [], None))
    assert (
        text.index("Turn 3") < text.index("Mira, a person, to all debaters:") < text.index("Turn 4")
    )
    told = build_outcome(run, progress)
    assert told["remarks"] == [{"by": "Mira", "text": SAID.text}]
    assert told["corrected"] is None


def test_a_judgement_on_the_way_stands_after_the_turns_that_it_heard() -> None:
    said = Judgement("Moderator", "unclear", "No.", prose="Not <b>yet</b>.", cause="not_settled")
    sample = JudgementSampled(2.5, said, 1, "after round 1", 0.1)
    events = [EVENTS[0], turn(1, 1), turn(2, 1), sample, turn(3, 2)]
    progress = fold_events(events)
    made = debate_html(progress.turns, placed=collect_asides(progress))
    places = [made.index(part) for part in ("Turn 2", "after round 1", "Not &lt;b&gt;", "Turn 3")]
    assert places == sorted(places)
    told = list_spoken_texts(progress)
    assert told[2] == "Moderator, after round 1: unclear\nNot <b>yet</b>."
    at = [cue.at for cue in schedule_events(events, "reading")]
    assert at[3] > at[2], "it takes time to read"


def test_how_the_debate_is_held_stands_once_before_the_first_turn() -> None:
    noted = DebateNoted(0.5, "<b>Cleo</b> is not seated.")
    progress = fold_events([EVENTS[0], noted, replace(noted, at=0.6), *EVENTS[1:]])
    made = debate_html(progress.turns, placed=collect_asides(progress))
    assert made.count("&lt;b&gt;Cleo") == 1
    assert made.index("&lt;b&gt;Cleo") < made.index("Turn 1")
    assert list_spoken_texts(progress)[0] == noted.words
    told = build_outcome(Run("r", CASE.id, CASE.project_id, Plan(), "finished", 0.0), progress)
    assert (told["notes"], told["problems"]) == ([noted.words], [])
