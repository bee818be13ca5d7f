"""Rows whose words people marked, as a panel of the built-in readers extracts and votes on them.

Rows go through the real pipeline (reading, segmenting, retrieving) without a debate. The span
reader was trained on these rows: here it tells what readers that saw none of the row's fold told.
What was said of a row is kept in a folder outside the project, by all that it depends on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from core.agents.rosters import panel_reader
from core.baseline.encoder import load_multilingual_encoder
from core.baseline.entailment import shared_assessor
from core.baseline.panel import WordPanelist
from core.baseline.shipped_reader import load_reader
from core.concurrency import Stop
from core.config import PROJECT_ROOT, Settings
from core.evaluation.gold import GoldRow
from core.evaluation.outcomes import digest_of
from core.learning.bench import Bench, Material, opened_bench
from core.learning.measured_rows import observed_staff
from core.pipeline.span_voting import VotedRun, rotate
from core.records import Judgement, Plan, WordScore
from core.roles import CaseView, JudgeView
from core.seats import PANEL_READERS
from training.span_rows import MarkedRow, Numbers

DEPENDS_ON = ("baseline", "spans", "documents", "engine.py")
Runs = tuple[VotedRun, ...]


@dataclass(frozen=True)
class PanelRow:
    """A row with its fold, and the runs of the panel over it."""

    row: GoldRow
    fold: int
    runs: Runs


class _Line(msgspec.Struct, frozen=True):
    row: str
    runs: Runs


LINES = msgspec.json.Decoder(_Line)


class _Watcher:
    """Sits in the judge's seat and keeps what a judge would see."""

    name = "Watcher"
    built_in = True
    rule = "Keeps what there is to see."

    def __init__(self) -> None:
        self.seen: CaseView | None = None

    def decide(self, view: JudgeView, stop: Stop) -> Judgement:
        """Nothing is decided."""
        self.seen = view.view
        return Judgement(self.name, "unclear", "Watched.", cause="not_addressed")


class _UnseenWords(WordPanelist):
    """The span reader with the scores of readers that saw none of the row's fold."""

    def __init__(self) -> None:
        super().__init__(shared_assessor())
        self.scores: tuple[WordScore, ...] = ()

    def score_words(self, view: CaseView, stop: Stop) -> tuple[WordScore, ...]:
        """What was put there for the row."""
        return self.scores


class _Watching:
    """The pipeline, a panel over what it finds, and the scores of the row under way."""

    def __init__(self, bench: Bench) -> None:
        self._watcher, self._words = _Watcher(), _UnseenWords()
        self._panel = [panel_reader(name) for name in PANEL_READERS if name != "words"]
        self._bench, self._staff = bench, observed_staff(bench, self._watcher)

    def runs(self, row: GoldRow, scores: tuple[WordScore, ...]) -> Runs:
        """What each member marks in the row and all others vote."""
        self._watcher.seen, self._words.scores = None, scores
        material = Material(row.response, row.question, row.documents)
        self._bench.check(material, self._staff, Plan(max_turns=1), Stop())
        if self._watcher.seen is None:
            return ()
        work = rotate([*self._panel, self._words], self._watcher.seen, Stop(), lambda: 0.0)
        while True:
            try:
                next(work)
            except StopIteration as end:
                runs: Runs = end.value
                return runs


def panel_rows(
    marked: Sequence[MarkedRow],
    told: Sequence[Numbers],
    cache: Path,
    tell: Callable[[int], None],
) -> Iterator[PanelRow]:
    """The rows with their runs; `told` are each row's shares by readers that saw none of its fold.

    Raises:
        InputError: a row cannot be checked.
        ConfigError: a reader or the encoder cannot be loaded.
    """
    cache.mkdir(parents=True, exist_ok=True)
    path = cache / f"panel-{_version()}.jsonl"
    known = _known(path)
    with opened_bench(Settings()) as bench, path.open("ab") as kept:
        watching: _Watching | None = None
        for number, (row, shares) in enumerate(zip(marked, told, strict=True)):
            pairs = zip(row.places, shares.tolist(), strict=True)
            scores = tuple(WordScore(*place, round(p, 3)) for place, p in pairs)
            digest = _digest(row.row, scores)
            runs = known.get(digest)
            if runs is None:
                watching = watching or _Watching(bench)
                runs = watching.runs(row.row, scores)
                kept.write(msgspec.json.encode(_Line(digest, runs)) + b"\n")
                kept.flush()
            tell(number)
            yield PanelRow(row.row, row.fold, runs)


def _digest(row: GoldRow, scores: tuple[WordScore, ...]) -> str:
    words = msgspec.json.encode([(score.start, score.p) for score in scores])
    return digest_of(row) + hashlib.sha256(words).hexdigest()[:12]


def _known(path: Path) -> Mapping[str, Runs]:
    """The runs by the row's digest; a line cut off is worked out again."""
    found: dict[str, Runs] = {}
    for line in path.read_bytes().split(b"\n") if path.is_file() else ():
        try:
            told = LINES.decode(line)
        except msgspec.MsgspecError:
            continue
        found[told.row] = told.runs
    return found


def _version() -> str:
    """Changes when the same row could get other votes."""
    whole = hashlib.sha256(f"{load_multilingual_encoder().id} {load_reader().id}".encode())
    for place in DEPENDS_ON:
        root = PROJECT_ROOT / "core" / place
        for path in sorted(root.rglob("*.py")) if root.is_dir() else [root]:
            whole.update(path.relative_to(PROJECT_ROOT).as_posix().encode())
            whole.update(hashlib.sha256(path.read_bytes()).digest())
    return whole.hexdigest()[:12]
