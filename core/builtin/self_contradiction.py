"""Whether two statements of one response contradict each other, by the rules' contrasts.

Two sentences of a text that are alike but for one thing mostly list things: cups won in two years,
countries that each are ahead of another. So other names or places are no contradiction, other dates
only of what happens once, and a denial only where nothing bounds it in time.
"""

from __future__ import annotations

import regex

from core.builtin.assess import assess
from core.builtin.claims import claim_of
from core.builtin.contrast import Contrast, Kind
from core.records import Case, Passage, Statement

# A contrast between two sentences of one text is mostly about two things, not about one.
LEAST_WEIGHT = 0.75
LEAST_SHARED = 0.5
# A "not" that one of them lacks mostly belongs to other words: "not only", 非常.
LEAST_DENIED = 0.85
OWN = "the response itself"
TELLING: frozenset[Kind] = frozenset({"quantity", "date", "opposite", "negation"})
ONCE = regex.compile(
    r"\b(?:born|died|dies|death|birth|founded|established|opened|built|completed|erected|invented|"
    r"discovered|signed|abolished|independen(?:t|ce)|assassinated|geboren|gestorben|gegründet|"
    r"eröffnet|erbaut|né|née|mort|fondée?|nació|murió|fundad[oa])\b"
    r"|生于|出生|诞生|去世|逝世|成立|创立|创建|建于|建成|竣工|落成|通车|发明|发现于|签署|独立",
    regex.IGNORECASE,
)
IN_TIME = regex.compile(
    r"\b(?:since|until|till|before|after|again|yet|longer|anymore|then|later|first|last|now|still|"
    r"while|when|during|seit|bis|vor|nach|wieder|depuis|avant|après|desde|hasta|antes|después)\b"
    r"|以来|以前|之前|之后|以后|后来|再次|不再|尚未|首次|期间|当时",
    regex.IGNORECASE,
)


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
    if found[0].kind == "negation" and item.coverage < LEAST_DENIED:
        return ""
    is_one = found[0].weight >= LEAST_WEIGHT and _is_of_one_thing(found[0].kind, later, earlier)
    return _words(found[0]) if is_one else ""


def _is_of_one_thing(kind: Kind, later: Statement, earlier: Statement) -> bool:
    """Whether both cannot hold of two occasions or two things."""
    texts = (later.text, earlier.text)
    if kind == "date":
        return all(ONCE.search(text) for text in texts)
    if kind == "negation":
        return not any(IN_TIME.search(text) for text in texts)
    return kind in TELLING


def _words(found: Contrast) -> str:
    return found.explanation.rstrip(".").replace("the evidence", "the other")
