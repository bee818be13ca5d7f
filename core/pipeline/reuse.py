"""What a finished run spares the one that checks its case again: steps with the same inputs.

Reading is not among them: it is kept by content in the store. Whether a roster's steps may be
taken over at all is `Roster.is_deterministic`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from core.config import PROJECT_ROOT
from core.events import AUDIT, Event
from core.progress import Progress
from core.records import Case, RoleUsed

Through = Literal["statements", "judgement"]
DEBATE = (
    "passages_found", "context_built", "debate_noted", "turn_started", "turn_finished",
    "consensus_reached", "round_summarised", "debate_decided", "judgement_sampled",
    "consensus_weighed", "response_revised",
)  # fmt: skip
STEPS: dict[Through, frozenset[str]] = {
    "statements": frozenset({"statement_found"}),
    "judgement": frozenset({"statement_found", *DEBATE, "judgement_reached"}),
}


@dataclass(frozen=True)
class Earlier:
    """The finished run that is checked again, with its events."""

    run_id: str
    events: tuple[Event, ...]


def reusable(before: Progress, now: Progress, read_at: Mapping[str, float]) -> Through | None:
    """The last step of `before` whose inputs are those of `now`, which has read its sources.

    `read_at` says when each source's reading was made: one made since `before` looked at it may
    hold another text.
    """
    if before.case is None or now.case is None or not before.code or before.code != now.code:
        return None
    if _texts(before.case) != _texts(now.case) or _segmenter(before) != _segmenter(now):
        return None
    used = before.documents | before.images
    same_sources = _sources(before) == _sources(now) and all(
        i in read_at and read_at[i] <= event.at for i, event in used.items()
    )
    is_repeatable = not _is_audit(now) and not before.remarks  # nobody says the same again
    is_weighed = before.weighed is not None
    is_same_cast = _cast(before, is_weighed=is_weighed) == _cast(now, is_weighed=is_weighed)
    if same_sources and is_same_cast and is_repeatable:
        return "judgement"
    # A response too short to tell its language takes that of its sources.
    return "statements" if same_sources or now.case.language != "und" else None


def _is_audit(progress: Progress) -> bool:
    """Its tools answer from beyond the run's inputs: the web, a sandbox that is there or not."""
    return progress.plan is not None and progress.plan.protocol == AUDIT


def copies(earlier: Earlier, through: Through, now: float) -> Iterator[Event]:
    """The earlier run's events of these steps as of now: they take no time and cost nothing."""
    finished = {e.turn.number for e in earlier.events if e.kind == "turn_finished"}
    started: set[int] = set()
    for event in earlier.events:
        if event.kind not in STEPS[through]:
            continue
        if event.kind == "turn_started":
            if event.number in started or event.number not in finished:
                continue  # cut off, and begun anew when that run was resumed
            started.add(event.number)
        if event.kind in ("turn_finished", "judgement_sampled", "judgement_reached"):
            yield replace(event, at=now, seconds=0.0, cost=0.0)
        else:
            yield replace(event, at=now)


def code_digest() -> str:
    """Names the program as it lies on disk: rules live in code, and another rule reads otherwise.

    Taken once, when the engine is loaded (some 30 ms): later the disk may hold another program
    than the one that runs. Everything in `core` counts, and the pinned packages: too much is only
    done anew once.
    """
    files = [p for p in (PROJECT_ROOT / "core").rglob("*") if p.suffix in (".py", ".json")]
    whole = hashlib.sha256()
    for path in sorted([*files, PROJECT_ROOT / "requirements.txt"]):
        whole.update(hashlib.sha256(path.read_bytes()).digest())
    return whole.hexdigest()


def _texts(case: Case) -> tuple[str, ...]:
    return case.response, case.question, case.role, case.instruction, case.language


def _segmenter(progress: Progress) -> tuple[RoleUsed, ...]:
    return tuple(used for used in progress.roles if used.role == "segmenter")


def _sources(progress: Progress) -> tuple[object, ...]:
    """The case's sources in order, and what came of each: names are quoted in the debate.

    An agent's failure in the earlier debate counts too: another check should try again.
    """
    case = progress.case
    texts = {i: event.text for i, event in progress.images.items()}
    failed = {(problem.source_id, problem.message) for problem in progress.problems}
    return case and (case.documents, case.images), progress.source_names, texts, failed


def _cast(progress: Progress, *, is_weighed: bool) -> tuple[object, ...]:
    """Who plays which role under which rules, and the plan up to the label.

    Spans are always proposed and ruled upon anew, so who marks them, and what people's marks have
    taught them since, is no matter here; nor are weights of debaters where nobody weighed them.
    """
    roles = tuple(used for used in progress.roles if not used.role.startswith("span "))
    plan = progress.plan
    if plan is not None:
        plan = replace(plan, classifier="", span_threshold=0, span_examples=0, span_member=0)
        plan = plan if is_weighed else replace(plan, agent_weights=0)
    return roles, plan
