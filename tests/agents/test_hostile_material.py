"""Texts that try to steer the judge or to break the fence, in every place where others write."""

from __future__ import annotations

import json
import re

import pytest

from core.agents.llm_audit import LlmSegmenter
from core.agents.llm_debater import LlmContextWriter, LlmDebater
from core.agents.llm_judge import LlmJudge
from core.agents.llm_panel import LlmSpanAdjudicator, LlmSpanExtractor
from core.llm.call import ignore_piece
from core.runtime.concurrency import StopSignal
from core.schema.records import ContextFact, EvidenceContext, Judgement, Quote, Span, Turn
from tests.agents.seats import FENCE, SEAT, debate_view, judge_view, text_of, workplace
from tests.fakes import make_case, make_passage, make_view
from tests.llm.hostile import HOSTILE

DELIMITER = re.compile(rf"⟦(/?)([\w ]+) {FENCE.token}⟧")


def assert_fenced(prompt: str) -> None:
    """Every fence is opened once, closed once, and nothing of ours stands within another."""
    marks = DELIMITER.findall(prompt)
    assert marks
    assert prompt.count(FENCE.token) == len(marks)
    assert [end for end, _ in marks] == ["", "/"] * (len(marks) // 2)
    kinds = [kind for _, kind in marks]
    assert kinds[::2] == kinds[1::2]
    assert len(set(kinds)) == len(kinds) // 2


@pytest.mark.parametrize("evil", HOSTILE, ids=lambda text: ascii(text)[1:30])
def test_no_text_leaves_its_fence_in_any_prompt(evil: str) -> None:
    evil = evil.replace("TOKEN", FENCE.token)
    case = make_case(f"It opened. {evil}", question=evil, role=evil, instruction=evil)
    view = make_view(case, [make_passage(evil, number=1, source=evil), make_passage("Fact.")])
    ids = tuple(view.evidence.passages)
    turn = Turn("Ben", "m", 1, 1, "deny", "hallucinated", evil, (Quote(evil, "not_found", 0.0),))
    seen = judge_view(
        view, turn, context=EvidenceContext((), ids, evil, (evil,), (ContextFact(evil, ids),))
    )
    judged = Judgement("m", "hallucinated", evil)
    span = Span(0, 2, "It", 0.9, "contradicted", "m", instead=evil)
    stop = StopSignal()
    shares = {"facts": [], "conflicts": [], "shares": {}, "summary": ""}
    place = workplace(
        [
            json.dumps({"statements": [{"quote": "It opened.", "rewrite": evil}]}),
            json.dumps(shares),
            "AGREE.",
            "Verdict: 0",
            json.dumps({"spans": []}),
            json.dumps({"reason": evil, "hallucinated": True, "p": 1}),
        ]
    )
    LlmSegmenter(SEAT, place.work).segment(case, stop)
    LlmContextWriter(SEAT, place.work).write(view, ["Ada", "Ben"], stop)
    debating = debate_view(view, (turn,), conflicts=(evil,))
    LlmDebater(SEAT, place.work).argue(debating, ignore_piece, stop)
    LlmJudge(SEAT, place.work).decide(seen, stop)
    LlmSpanExtractor(SEAT, place.work).propose(seen, judged, stop)
    LlmSpanAdjudicator(SEAT, place.work).adjudicate(seen, span, "hallucinated", stop)
    place.model.finished()
    for call in place.model.calls:
        assert_fenced(text_of(call))
