"""A case as its agents see it: its statements with the evidence that a run has found by now."""

from __future__ import annotations

from collections.abc import Sequence

from core.evidence.described import described_texts
from core.progress import Progress
from core.records import Case, Source
from core.roles import CaseView, Evidence


def view_of(case: Case, progress: Progress, sources: Sequence[Source]) -> CaseView:
    """The case with what was found for it; of the sources those that hold any of it."""
    evidence = Evidence(
        progress.evidence,
        {index: tuple(p.id for p in found) for index, found in progress.passages.items()},
    )
    used = {passage.source_id for passage in evidence.passages.values()}
    texts = {s.id: s.text for s in sources} | described_texts(progress.images)
    return CaseView(
        case=case,
        statements=tuple(s for _, s in sorted(progress.statements.items())),
        evidence=evidence,
        sources={i: text for i, text in texts.items() if i in used},
        unreadable_images=progress.unreadable_images,
    )
