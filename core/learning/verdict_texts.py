"""Judge's texts for labelled claims, by running the built-in pipeline over them as it is.

Used for the seed head (trained once, over public sets) and for the seed texts that every
retraining starts from. Source: CEDA 4.2 (debate summaries are the training instances).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from core.agents.rosters import roster_named
from core.baseline.encoder import load_multilingual_encoder
from core.concurrency import Stop
from core.config import Settings
from core.engine import Resources
from core.learning.bench import Material, opened_bench
from core.models.encoder import Embedder
from core.progress import Progress
from core.records import Judgement, Label, Plan
from core.staffing import Staff
from core.verdict.classifier import Classifier
from core.verdict.head import Head


@dataclass(frozen=True)
class LabelledClaim:
    """A claim over texts, with the label people gave it; `group` holds related rows together."""

    claim: str
    texts: tuple[str, ...]
    label: Label
    group: str
    question: str = ""


@dataclass(frozen=True)
class Lesson:
    """What a head learns from: a judge's text with its own p, if it gave one, and the label.

    `group` holds the lessons of a case together.
    """

    text: str
    label: Label
    p: float | None = None
    group: str = ""


@dataclass(frozen=True)
class JudgedClaim:
    """What the built-in judge made of a labelled claim, and the debate that it heard."""

    row: LabelledClaim
    judgement: Judgement
    progress: Progress


def judged(rows: Iterable[LabelledClaim], encoder: Embedder) -> Iterator[JudgedClaim]:
    """Each row with its judgement, in order; everything happens in a folder that goes away."""
    roster = roster_named("builtin")
    silent = Classifier("none", Head((0.0,) * encoder.width, 0.0), encoder, {})
    settings = Settings()
    with opened_bench(settings) as bench:
        retriever = load_multilingual_encoder()
        staff = Staff(roster, Resources(bench.home, settings, retriever, silent, lambda: 0.0))
        for row in rows:
            material = Material(row.claim, row.question, row.texts)
            progress = bench.check(material, staff, Plan(), Stop())
            if progress.judgement is not None:
                yield JudgedClaim(row, progress.judgement, progress)
