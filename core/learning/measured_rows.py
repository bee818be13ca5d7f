"""What is measured of the statements of labelled rows, for the evidence model to learn from.

Rows go through the real pipeline (reading, segmenting, retrieving) up to the judge's seat, in
which an observer writes the features down.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from core.agents.rosters import roster_named
from core.baseline.assessment import Assessor
from core.baseline.encoder import load_multilingual_encoder
from core.baseline.features import FEATURES
from core.concurrency import Stop
from core.config import ENCODER_DIR, PROJECT_ROOT, Settings
from core.learning.bench import Bench, Material, opened_bench
from core.llm.encoder import load_encoder
from core.pipeline.review import Resources
from core.pipeline.run_factory import Staff
from core.records import Judgement, Label, Plan, Span, Turn
from core.roles import DebateView, Judge, JudgeView, SpanRuling, Speak
from core.seats import BUILT_IN
from core.verdict.classifier import Classifier
from core.verdict.head import Head

KEPT_FEATURES = "features.jsonl"
MEASURED_BY = ("baseline", "documents", "tools")


@dataclass(frozen=True)
class EvidenceRow:
    """A response over its evidence; `wrong` is what people say of it."""

    name: str
    group: str
    language: str
    response: str
    question: str
    documents: tuple[str, ...]
    wrong: bool

    @property
    def digest(self) -> str:
        """Names all that is read of the row."""
        told = json.dumps([self.response, self.question, self.documents], ensure_ascii=False)
        return hashlib.sha256(told.encode()).hexdigest()


@dataclass(frozen=True)
class MeasuredRow:
    """A row with the features of each of its statements."""

    row: EvidenceRow
    statements: tuple[tuple[float, ...], ...]
    """In the order of `FEATURES`; none where nothing could be checked."""


class _Observer:
    """Sits in the judge's seat and writes down what was measured."""

    name = "Observer"
    built_in = True
    rule = "Writes down what is measured."

    def __init__(self, assessor: Assessor) -> None:
        self._assessor = assessor
        self.seen: tuple[tuple[float, ...], ...] = ()

    def decide(self, view: JudgeView, stop: Stop) -> Judgement:
        """Nothing is decided."""
        own = view.view
        measured = (
            self._assessor.measure(own, statement, own.evidence.of(statement.index))
            for statement in own.statements
        )
        self.seen = (
            tuple(tuple(one.row(FEATURES)) for one in measured) if own.evidence.passages else ()
        )
        return Judgement(self.name, "unclear", "Observed.", cause="not_addressed")


class Silent:
    """Sits where nothing is to be said or marked."""

    name = "Nobody"
    built_in = True
    rule = "Says nothing."

    def argue(self, view: DebateView, speak: Speak, stop: Stop) -> Turn:
        """An empty turn."""
        return Turn(view.debater, self.name, view.number, view.round, "agree", "unclear", "AGREE.")

    def propose(self, view: JudgeView, judgement: Judgement, stop: Stop) -> tuple[Span, ...]:
        """No span."""
        return ()

    def adjudicate(self, view: JudgeView, span: Span, label: Label, stop: Stop) -> SpanRuling:
        """Never asked, for nothing is proposed."""
        return SpanRuling(span, False, "Nothing is marked.")


def measured_rows(
    rows: Sequence[EvidenceRow], assessor: Assessor, cache: Path
) -> Iterator[MeasuredRow]:
    """The rows' features; from the folder `cache` where this code and reader measured them."""
    cache.mkdir(parents=True, exist_ok=True)
    path = cache / f"{assessor.reader.id}-{_measuring_digest()}-{KEPT_FEATURES}"
    known = dict(_known(path))
    with opened_bench(Settings()) as bench, path.open("a", encoding="utf-8") as kept:
        observer = _Observer(assessor)
        staff = observed_staff(bench, observer)
        for row in rows:
            statements = known.get(row.digest)
            if statements is None:
                observer.seen = ()
                material = Material(row.response, row.question, row.documents)
                bench.check(material, staff, Plan(max_turns=1, protocol="single"), Stop())
                statements = known[row.digest] = observer.seen
                kept.write(json.dumps({"row": row.digest, "statements": statements}) + "\n")
                kept.flush()
            yield MeasuredRow(row, statements)


def observed_staff(bench: Bench, judge: Judge) -> Staff:
    """The built-in pipeline up to the judge, who only looks; nothing is debated or marked."""
    encoder, silent = load_encoder(ENCODER_DIR), Silent()
    roster = replace(
        roster_named(BUILT_IN),
        debaters={"Nobody": silent},
        judge=judge,
        span_extractor=silent,
        span_adjudicator=silent,
    )
    unasked = Classifier("none", Head((0.0,) * encoder.width, 0.0), encoder, {})
    retriever = load_multilingual_encoder()
    resources = Resources(bench.home, bench.settings, retriever, unasked, lambda: 0.0)
    return Staff(roster, resources)


def _measuring_digest() -> str:
    """Names the code that reads documents and measures statements."""
    whole = hashlib.sha256()
    for folder in MEASURED_BY:
        for path in sorted((PROJECT_ROOT / "core" / folder).rglob("*")):
            if path.suffix in {".py", ".json"} and "weights" not in path.parts:
                whole.update(path.read_bytes())
    return whole.hexdigest()[:12]


def _known(path: Path) -> Iterator[tuple[str, tuple[tuple[float, ...], ...]]]:
    """What was kept; a line cut off is measured again from its row."""
    if not path.is_file():
        return
    for line in path.read_text(encoding="utf-8").split("\n"):
        try:
            told = json.loads(line)
            yield told["row"], tuple(tuple(row) for row in told["statements"])
        except (ValueError, TypeError, KeyError):
            continue
