"""Takes what people's marks taught into use, and back; pins and removes examples.

Every step is appended with who took it and why; call inside `Store.writing()`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from core.errors import InputError
from core.learned_marks import EXAMPLES
from core.learning.span_answers import SpanAnswer
from core.learning.span_examples import decided
from core.learning.span_threshold import Kind, Proposal
from core.store import Store
from core.store.versions import NONE, Choice, Learned, read_body

Decision = Literal["pin", "unpin", "remove", "allow"]
LEADS = "say what people's marks change"
LONGEST_REASON = 1000  # characters
DECISION_WORDS: dict[Decision, str] = {
    "pin": "Pinned an example",
    "unpin": "Unpinned an example",
    "remove": "Removed an example",
    "allow": "Allowed a removed example again",
}


def threshold_body(
    proposals: Mapping[Kind, Proposal], answers: Sequence[SpanAnswer]
) -> dict[str, Any]:
    """What is kept of thresholds: each kind's that do better, and what they rest on."""
    used = {case for found in proposals.values() for case in found.cases}
    said = [i for answer in answers if answer.case.id in used for i in answer.said]
    return {
        **{kind: found.body for kind, found in proposals.items() if found.is_better},
        "corrections": sorted(said),
    }


def take_into_use(store: Store, learned: Learned, reason: str) -> int:
    """Keep a learned thing and use it in new checks; its number.

    Raises:
        NotAllowed: the author is no lead of the project.
        InputError: there is no reason, or one that is too long.
    """
    store.projects.require(learned.project_id, learned.author, "lead", LEADS)
    words = _reason(reason)
    number = store.learned.add(learned)
    store.learned.use(
        Choice(learned.kind, learned.project_id, number, learned.at, learned.author, words)
    )
    return number


def go_back(store: Store, choice: Choice) -> None:
    """Use an earlier one again from now on, or (number 0) what ships.

    Raises:
        NotAllowed: they are no lead of the project.
        InputError: no reason, too long a one, no such number, or it is in use already.
    """
    store.projects.require(choice.project_id, choice.by, "lead", LEADS)
    _reason(choice.reason)
    choices = store.learned.choices(choice.kind, choice.project_id)
    # Not `in_use`: one that was tampered with cannot be read, and is what people go back from.
    if (choices[0].number if choices else NONE) == choice.number:
        raise InputError("That is in use already; nothing was changed.")
    store.learned.use(choice)


def decide(
    store: Store, project_id: str, example_id: str, decision: Decision, *, by: str, now: float
) -> int:
    """Pin or remove one of the examples in use, or take that back; the new number.

    Raises:
        InputError: it is not among those in use (any more).
        ConfigError: those in use are not as they were kept, or of another form.
    """
    current = store.learned.in_use(EXAMPLES, project_id)
    known = read_body(current, lambda body: body["examples"]) if current else []
    if current is None or all(one["id"] != example_id for one in known):
        raise InputError("That example is not in use any more; reload the page.")
    pinned, removed = (set(part) - {example_id} for part in decided(current.body))
    if decision == "pin":
        pinned.add(example_id)
    elif decision == "remove":
        removed.add(example_id)
    body = current.body | {
        "examples": sorted(known, key=lambda one: one["id"] not in pinned),
        "pinned": sorted(pinned),
        "removed": sorted(removed),
    }
    learned = Learned(EXAMPLES, project_id, now, by, body)
    return take_into_use(store, learned, DECISION_WORDS[decision])


def _reason(words: str) -> str:
    """The reason on one line.

    Raises:
        InputError: there is none, or it is too long.
    """
    reason = " ".join(words.split())
    if not reason or len(reason) > LONGEST_REASON:
        raise InputError(
            f"Expected a reason of up to {LONGEST_REASON:,} characters, found {len(reason):,}; a "
            "few words are enough."
        )
    return reason
