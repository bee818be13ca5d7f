"""Whether two statements of one response contradict each other, by the rules' contrasts."""

from __future__ import annotations

from core.builtin.assess import assess
from core.builtin.claims import claim_of
from core.builtin.contrast import Contrast
from core.records import Case, Passage, Statement

# A contrast between two sentences of one text is mostly about two things, not about one.
LEAST_WEIGHT = 0.75
LEAST_SHARED = 0.5
OWN = "the response itself"


def contradiction(case: Case, later: Statement, earlier: Statement) -> str:
    """Why both cannot hold, in words; empty where they can.

    Only where the two are nearly the same words, and differ in one thing alone, or one denies what
    the other says.
    """
    claim = claim_of(case, later)
    is_sum = "=" in later.text or "=" in earlier.text  # a step, with values of its own
    if is_sum or not claim.has_content or claim.own_start > 0:
        return ""
    text = earlier.rewrite
    passage = Passage(OWN, OWN, OWN, False, None, 0, len(text), text, 1.0)
    item = assess(claim, [passage], {OWN: text})
    found = [part.contrast for part in item.contradictions]
    if len(found) != 1 or item.coverage < LEAST_SHARED:
        return ""
    return _words(found[0]) if found[0].weight >= LEAST_WEIGHT else ""


def _words(found: Contrast) -> str:
    return found.explanation.rstrip(".").replace("the evidence", "the other")
