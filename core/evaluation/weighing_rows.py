"""What the built-in readers find on labelled rows: the features that the judge's weights see.

Rows go through the real pipeline (reading, segmenting, retrieving), but nobody debates and nobody
marks words. What was found is kept in a folder outside the project, by what it depends on and by
all that is read of a row; label and group are always those of the row itself.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from core.agents.rosters import roster_named
from core.builtin.judge import BuiltInJudge
from core.builtin.weighing import features_of
from core.concurrency import Stop
from core.config import ENCODER_DIR, PROJECT_ROOT, Settings
from core.engine import Resources
from core.evaluation.gold import GoldRow
from core.evaluation.kept import digest_of
from core.learning.bench import Bench, Material, opened_bench
from core.models.encoder import load_encoder
from core.models.reader import load_reader
from core.records import Judgement, Label, Plan, Span, Turn
from core.roles import DebateView, Judge, JudgeView, SpanRuling, Speak
from core.seats import BUILT_IN
from core.staffing import Staff
from core.verdict.classifier import Classifier
from core.verdict.head import Head

# what a feature depends on, the judge's and the span reader's own files apart
ASIDE = ("judge", "span")
DEPENDS_ON = (
    "builtin",
    "engine.py",
    "evidence",
    "intake",
    "learning/bench.py",
    "models/encoder.py",
    "models/reader.py",
)

Statements = tuple[Mapping[str, float], ...]


@dataclass(frozen=True)
class FeatureRow:
    """A labelled row with each statement's features; none where nothing could be checked."""

    name: str
    id: str
    group: str
    label: Label
    statements: Statements


class _Observer:
    """Sits in the judge's seat and writes down what the readers found."""

    name = "Observer"
    built_in = True
    rule = "Writes down what the readers find."

    def __init__(self, judge: BuiltInJudge) -> None:
        self._judge = judge
        self.seen: list[dict[str, float]] = []

    def decide(self, view: JudgeView, stop: Stop) -> Judgement:
        """Nothing is decided."""
        looks = self._judge.looks(view, stop) if view.view.evidence.passages else []
        self.seen = [features_of(look) for look in looks]
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


def observed_staff(bench: Bench, judge: Judge) -> Staff:
    """The built-in pipeline up to the judge, who only looks; nothing is debated or marked."""
    encoder = load_encoder(ENCODER_DIR)
    silent, own = Silent(), roster_named(BUILT_IN, encoder)
    roster = replace(
        own,
        debaters={"Nobody": silent},
        judge=judge,
        span_extractor=silent,
        span_adjudicator=silent,
    )
    unasked = Classifier("none", Head((0.0,) * encoder.width, 0.0), encoder, {})
    resources = Resources(bench.home, bench.settings, encoder, unasked, lambda: 0.0)
    return Staff(roster, resources)


class Observing:
    """The pipeline with an observer in it; open for as long as rows come."""

    def __init__(self, bench: Bench) -> None:
        self._observer = _Observer(BuiltInJudge(load_encoder(ENCODER_DIR), load_reader()))
        self._bench, self._staff = bench, observed_staff(bench, self._observer)

    def features(self, row: GoldRow) -> Statements:
        """Each statement's features."""
        self._observer.seen = []
        material = Material(row.response, row.question, row.documents, row.images)
        self._bench.check(material, self._staff, Plan(max_turns=1), Stop())
        return tuple(self._observer.seen)


def feature_rows(name: str, rows: Sequence[GoldRow], cache: Path) -> Iterator[FeatureRow]:
    """The rows' features, from the cache where they are there; rows without a label are left out.

    Raises:
        InputError: a row cannot be checked.
        ConfigError: the reader or the encoder cannot be loaded.
    """
    cache.mkdir(parents=True, exist_ok=True)
    path = cache / f"{name.replace(' ', '-')}-{_version()}.jsonl"
    known = _known(path)
    with opened_bench(Settings()) as bench, path.open("a", encoding="utf-8") as kept:
        observing: Observing | None = None
        for row in rows:
            if row.label is None:
                continue
            digest = digest_of(row)
            statements = known.get(digest)
            if statements is None:
                observing = observing or Observing(bench)
                statements = observing.features(row)
                kept.write(json.dumps({"row": digest, "statements": statements}) + "\n")
                kept.flush()
            yield FeatureRow(name, row.id, row.group, row.label, statements)


def _known(path: Path) -> dict[str, Statements]:
    """The statements' features by the row's digest; a line cut off is read again from its row."""
    found: dict[str, Statements] = {}
    if not path.is_file():
        return found
    for line in path.read_text(encoding="utf-8").split("\n"):
        try:
            told = json.loads(line)
            found[told["row"]] = tuple(told["statements"])
        except (ValueError, TypeError, KeyError):
            continue
    return found


def _version() -> str:
    """Changes when the same row could give other features."""
    whole = hashlib.sha256(f"{load_encoder(ENCODER_DIR).id} {load_reader().id}".encode())
    for place in DEPENDS_ON:
        root = PROJECT_ROOT / "core" / place
        for path in sorted(root.rglob("*")) if root.is_dir() else [root]:
            inside = path.relative_to(PROJECT_ROOT / "core")
            is_aside = any(part.startswith((*ASIDE, "__pycache__")) for part in inside.parts)
            if path.is_file() and not is_aside:
                whole.update(f"{inside.as_posix()} ".encode())
                whole.update(hashlib.sha256(path.read_bytes()).digest())
    return whole.hexdigest()[:12]
