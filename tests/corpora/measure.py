"""How the built-in engine does on the acceptance corpora: `python -m tests.corpora.measure`.

Statements: balanced accuracy by language and kind, `unclear` counted as wrong, and forced (by the
probability alone). Responses: how many planted errors are found, how many right statements are
called hallucinated, and how many marks a found error takes. `--part even` leaves the held part out.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.agents.rosters import make_built_in_roster
from core.baseline.encoder import load_multilingual_encoder
from core.pipeline.review import ReviewResources
from core.pipeline.run_factory import RunAgents
from core.pipeline.temporary_home import CheckMaterial, TemporaryHome, open_temporary_home
from core.runtime.concurrency import StopSignal
from core.runtime.config import Settings
from core.schema.records import Label, Plan
from core.schema.rosters import BUILT_IN_ROSTER
from core.schema.run_state import RunState
from core.store import open_store
from core.verdict.classifier import load_classifier
from tests.corpora.build_reports import build_report
from tests.corpora.loader import GENERIC, ReportCase, load_reports, load_statements


@dataclass(frozen=True)
class Said:
    """What was said of a single statement."""

    language: str
    kind: str
    gold: Label
    label: Label
    p: float


@dataclass(frozen=True)
class Counted:
    """What was said of one response."""

    name: str
    errors: int
    found: int
    right: int
    called_wrong: int
    supported: int
    marks: int
    marks_in_errors: int
    seconds: float


def staff_of(bench: TemporaryHome) -> RunAgents:
    """The built-in engine as a newcomer has it."""
    with open_store(bench.home) as store:
        classifier = load_classifier(bench.home, store.versions.active())
    encoder = load_multilingual_encoder()
    resources = ReviewResources(bench.home, bench.settings, encoder, classifier, lambda: 0.0)
    return RunAgents(make_built_in_roster(BUILT_IN_ROSTER), resources)


def statements_said(bench: TemporaryHome, part: str, protocol: str) -> list[Said]:
    """Every row of the statements corpus checked against its paragraph."""
    staff, said = staff_of(bench), []
    for row in load_statements():
        if part != "all" and row.is_held != (part == "held"):
            continue
        material = CheckMaterial(row.statement, "", (row.source,))
        run = bench.check(material, staff, Plan(protocol=protocol), StopSignal())
        said.append(Said(row.language, row.kind, row.label, *_outcome(run)))
    return said


def _outcome(run: RunState) -> tuple[Label, float]:
    verdict, judgement = run.verdict, run.judgement
    if verdict is None:
        raise LookupError("the run has no verdict")
    p = verdict.p_hallucinated
    if p is None and judgement is not None:
        p = judgement.p
    return verdict.label, 0.5 if p is None else p


def statement_figures(said: Sequence[Said]) -> dict[str, Any]:
    """Balanced accuracies of all rows, by language, and recall by kind."""
    by_language: dict[str, list[Said]] = defaultdict(list)
    by_kind: dict[str, list[Said]] = defaultdict(list)
    for one in said:
        by_language[one.language].append(one)
        by_kind[one.kind].append(one)
    return {
        "all": _balanced(said),
        "languages": {name: _balanced(own) for name, own in sorted(by_language.items())},
        "kinds": {
            name: {
                "n": len(own),
                "right": _share([one.label == one.gold for one in own]),
                "forced": _share([(one.p >= 0.5) == (one.gold == "hallucinated") for one in own]),
                "opposite": _share(
                    [one.label not in (one.gold, "unclear") for one in own]
                ),
            }
            for name, own in sorted(by_kind.items())
        },
    }  # fmt: skip


def _balanced(said: Sequence[Said]) -> dict[str, float]:
    right = [one for one in said if one.gold == "supported"]
    wrong = [one for one in said if one.gold == "hallucinated"]
    return {
        "n": len(said),
        "balanced": (
            _share([one.label == "supported" for one in right])
            + _share([one.label == "hallucinated" for one in wrong])
        ) / 2,
        "forced": (_share([one.p < 0.5 for one in right]) + _share([one.p >= 0.5 for one in wrong]))
        / 2,
        "unclear": _share([one.label == "unclear" for one in said]),
        "right_called_wrong": _share([one.label == "hallucinated" for one in right]),
    }  # fmt: skip


def _share(flags: Sequence[bool]) -> float:
    return round(sum(flags) / len(flags), 3) if flags else 0.0


def responses_counted(bench: TemporaryHome, part: str, protocol: str) -> list[Counted]:
    """Every long response checked against its report, as files."""
    staff, counted = staff_of(bench), []
    for case in load_reports():
        if part != "all" and case.is_held != (part == "held"):
            continue
        with tempfile.TemporaryDirectory() as folder:
            files = tuple(build_report(case, Path(folder)))
            response = case.response
            material = CheckMaterial(response.text, response.question, files=files)
            began = time.monotonic()
            run = bench.check(material, staff, Plan(protocol=protocol), StopSignal())
            counted.append(_counted(case, run, round(time.monotonic() - began, 1)))
            sys.stderr.write(f"{counted[-1]}\n")
    return counted


def _counted(case: ReportCase, run: RunState, seconds: float) -> Counted:
    """A statement of ours is met where the engine's own statement overlaps it."""
    judgement = run.judgement
    labels: Sequence[Label] = judgement.statement_labels if judgement else ()
    own = [s for _, s in sorted(run.statements.items())]
    flagged = [s for s, label in zip(own, labels, strict=False) if label == "hallucinated"]
    right_said = [s for s, label in zip(own, labels, strict=False) if label == "supported"]
    gold = [s for s in case.response.statements if s.kind != GENERIC]
    errors = [s for s in gold if s.label == "hallucinated"]
    right = [s for s in gold if s.label == "supported"]

    def overlaps(one: Any, other: Any) -> bool:
        return bool(one.start < other.end and other.start < one.end)

    clean = [s for s in flagged if not any(overlaps(s, error) for error in errors)]
    marks = list(run.spans)
    return Counted(
        case.name,
        len(errors),
        sum(any(overlaps(s, error) for s in flagged) for error in errors),
        len(right),
        sum(any(overlaps(s, one) for s in clean) for one in right),
        sum(any(overlaps(s, one) for s in right_said) for one in right),
        len(marks),
        sum(any(overlaps(mark, error) for error in errors) for mark in marks),
        seconds,
    )


def response_figures(counted: Sequence[Counted]) -> dict[str, Any]:
    """The totals over all responses."""
    total = {
        name: sum(getattr(one, name) for one in counted)
        for name in ("errors", "found", "right", "called_wrong", "supported", "marks",
                     "marks_in_errors", "seconds")
    }  # fmt: skip
    return {
        **total,
        "errors_found": round(total["found"] / max(1, total["errors"]), 3),
        "right_called_wrong": round(total["called_wrong"] / max(1, total["right"]), 3),
        "right_supported": round(total["supported"] / max(1, total["right"]), 3),
        "marks_per_error": round(total["marks"] / max(1, total["found"]), 2),
    }


def main() -> None:
    """Read the command line, check both corpora, print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=("all", "even", "held"), default="all")
    parser.add_argument("--only", choices=("statements", "responses"))
    parser.add_argument("--protocol", default="ceda")
    given = parser.parse_args()
    found: dict[str, Any] = {}
    with open_temporary_home(Settings()) as bench:
        if given.only != "responses":
            said = statements_said(bench, given.part, given.protocol)
            found["statements"] = statement_figures(said)
        if given.only != "statements":
            counted = responses_counted(bench, given.part, given.protocol)
            found["responses"] = response_figures(counted)
    sys.stdout.write(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
