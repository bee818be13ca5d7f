"""What models did in a run: its cost, and what was of no use, said once and there to be read."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from components.run.debate import cost_words, cut_words
from core.schema.records import ModelCall


def the_judge_and_two_turns() -> None:
    from components.run.debate import draw_problems
    from core.schema.events import ProblemMet, RunFinished
    from core.schema.progress import Progress
    from core.schema.records import Verdict

    progress = Progress()
    why = "Judge (x): no verdict line. So there is no verdict."
    progress.add(ProblemMet(1.0, "reading", "b.txt is empty."))
    progress.add(ProblemMet(1.0, "debating", "Ada's turn 1 is lost.", reply="Hm."))
    progress.add(ProblemMet(2.0, "debating", "Ben's turn 2 is lost.", reply="Well."))
    progress.add(ProblemMet(3.0, "judging", why, reply="Who knows?"))
    verdict = Verdict("unclear", None, None, why, "unreadable_reply", why)
    progress.add(RunFinished(4.0, verdict, 3.0, None))
    draw_problems(progress, "r")


def test_the_verdicts_own_words_are_not_said_again_and_every_reply_is_there() -> None:
    at = AppTest.from_function(the_judge_and_two_turns, default_timeout=30).run()
    assert not at.exception
    assert [shown.value.replace("\\", "") for shown in at.warning] == [
        "b.txt is empty.",
        "- Ada's turn 1 is lost.\n- Ben's turn 2 is lost.",
    ]
    assert at.expander[0].label == "What was said, as it came (3)"
    assert [code.value for code in at.code] == ["Hm.", "Well.", "Who knows?"]


@pytest.mark.parametrize(
    ("cost", "words"),
    [
        (None, "cost unknown"),
        (0.0, "no cost"),
        (0.000002, "US$0.000002000"),
        (0.0123, "US$0.0123"),
        (0.5, "US$0.50"),
        (12.346, "US$12.35"),
    ],
)
def test_a_cost_that_is_unknown_or_tiny_is_never_shown_as_nothing(
    cost: float | None, words: str
) -> None:
    assert cost_words(cost) == words


def test_what_was_cut_is_said_once_for_each_role_by_its_last_call() -> None:
    def call(role: str, cut: str) -> ModelCall:
        return ModelCall("i", role, "s", "m", "en/judge", "h", 1, 1, 0.0, 0.1, cut=cut)

    calls = [call("debater Ada", f"{n} of 20 turns did not fit.") for n in range(4)]
    calls += [call("debater Ada", ""), call("judge", "9 of 20 turns did not fit.")]
    assert cut_words(calls) == [
        "Cut to fit the model: debater Ada, 4 calls, the last: 3 of 20 turns did not fit.",
        "Cut to fit the model: judge: 9 of 20 turns did not fit.",
    ]
