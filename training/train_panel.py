"""Does a vote of built-in readers beat each alone? `python -m training.train_panel --path DATA`.

On Mu-SHROOM: the paper's vote (most runs, 0.7), a fitted threshold, and a weighted vote, fitted on
the other four folds. `--write` fits the last on all rows, where the built-in panel finds it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from core.agents.rosters import panel_reader
from core.baseline.entailment import load_reader, shared_assessor
from core.baseline.export import load_multilingual_encoder
from core.baseline.panel import WEIGHTS, WordPanelist
from core.baseline.span_features import FOLDER
from core.baseline.span_reader import load_span_reader
from core.evaluation.datasets import load
from core.evaluation.files import GoldRow, GoldSpan
from core.evaluation.metrics import figures, measures
from core.evaluation.outcomes import Outcomes, Prediction, digest_of, mark_all
from core.learning.bench import BenchHome, BenchMaterial, opened_bench
from core.learning.evidence_calibration import code_digest_of, observed_staff
from core.learning.metrics import Numbers
from core.learning.span_threshold import best, iou_at
from core.learning.span_tuning import cut
from core.pipeline.span_stage import KEPT_FROM, VotedRun, hard_places, rotate, soft_labels
from core.runtime.concurrency import Stop
from core.runtime.config import Settings
from core.schema.events import SoftLabel
from core.schema.records import Judgement, Plan, WordScore
from core.schema.roles import CaseView, JudgeView
from core.schema.rosters import PANEL_READERS
from training.train_span_reader import (
    CHOSEN_ON,
    FOLDS,
    SETS,
    MarkedRow,
    every,
    marked_rows,
    marked_shares,
    out_of_fold,
)

DEPENDS_ON = ("baseline", "documents", "pipeline")
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
        """Keep the view and decide nothing."""
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

    def __init__(self, bench: BenchHome) -> None:
        self._watcher, self._words = _Watcher(), _UnseenWords()
        self._panel = [panel_reader(name) for name in PANEL_READERS if name != "words"]
        self._bench, self._staff = bench, observed_staff(bench, self._watcher)

    def runs(self, row: GoldRow, scores: tuple[WordScore, ...]) -> Runs:
        """What each member marks in the row and all others vote."""
        self._watcher.seen, self._words.scores = None, scores
        material = BenchMaterial(row.response, row.question, row.documents)
        self._bench.check(material, self._staff, Plan(max_turns=1), Stop())
        if self._watcher.seen is None:
            return ()
        work = rotate([*self._panel, self._words], self._watcher.seen, Stop(), lambda: 0.0)
        try:
            while True:
                next(work)
        except StopIteration as end:
            runs: Runs = end.value
            return runs


def panel_rows(
    marked: Sequence[MarkedRow], told: Sequence[Numbers], cache: Path, tell: Callable[[int], None]
) -> Iterator[PanelRow]:
    """The rows with their runs; `told` are shares by readers that saw none of the row's fold."""
    cache.mkdir(parents=True, exist_ok=True)
    # another name where the same row could get other votes
    readers = f"{load_multilingual_encoder().id} {load_reader().id}"
    version = hashlib.sha256(f"{readers} {code_digest_of(DEPENDS_ON)}".encode()).hexdigest()[:12]
    path = cache / f"panel-{version}.jsonl"
    known = _known(path)
    with opened_bench(Settings()) as bench, path.open("ab") as kept:
        watching: _Watching | None = None
        for number, (row, shares) in enumerate(zip(marked, told, strict=True)):
            pairs = zip(row.places, shares.tolist(), strict=True)
            scores = tuple(WordScore(*place, round(p, 3)) for place, p in pairs)
            words = msgspec.json.encode([(score.start, score.p) for score in scores])
            digest = digest_of(row.row) + hashlib.sha256(words).hexdigest()[:12]
            runs = known.get(digest)
            if runs is None:
                watching = watching or _Watching(bench)
                runs = watching.runs(row.row, scores)
                kept.write(msgspec.json.encode(_Line(digest, runs)) + b"\n")
                kept.flush()
            tell(number)
            yield PanelRow(row.row, row.fold, runs)


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


Pairs = tuple[tuple[str, str], ...]
Weights = tuple[tuple[str, str, float], ...]
Said = list[Prediction]
NEAR = 0.38  # of equally good thresholds the one nearest to the span reader's own
MOST_ROWS = 10**6
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class FittedVote:
    """A weighted vote: how much each pair of extractor and adjudicator counts, and from which p."""

    weights: Weights
    threshold: float

    @property
    def body(self) -> dict[str, Any]:
        """The weights and the threshold as plain values, as they are written."""
        return {"weights": [list(one) for one in self.weights], "threshold": self.threshold}


def pairs_of(rows: Sequence[PanelRow], *, is_adjudicated: bool) -> Pairs:
    """Extractor and adjudicator of all votes; without adjudication each one's own p alone."""
    names = dict.fromkeys(run.extractor for row in rows for run in row.runs)
    return tuple((e, a) for e in names for a in names if is_adjudicated or e == a)


def fit(rows: Sequence[PanelRow], pairs: Pairs) -> FittedVote:
    """Weights of least squares against the shares of annotators, then the best threshold."""
    from scipy.optimize import nnls

    sizes = Counter(row.row.language for row in rows)
    votes, shares = [], []
    for row in rows:
        lengths, given, gold = _pieces(row, pairs)
        root = np.sqrt(lengths / max(1, len(row.row.response)) / sizes[row.row.language])
        votes.append(given * root[:, None])
        shares.append(gold * root)
    found, _ = nnls(np.concatenate(votes), np.concatenate(shares))
    told = zip(pairs, found.tolist(), strict=True)
    weights = tuple((e, a, round(w, 4)) for (e, a), w in told if round(w, 4) > 0)
    return FittedVote(weights, threshold_of(rows, weights))


def _pieces(row: PanelRow, pairs: Pairs) -> tuple[Numbers, Numbers, Numbers]:
    """(lengths, votes by pair, mean share of annotators) of the pieces in which no vote changes."""
    parts = [(s.span.start, s.span.end) for run in row.runs for s in run.spans]
    parts += [(score.start, score.end) for run in row.runs for score in run.scores]
    length = len(row.row.response)
    cuts = sorted({0, length, *(cut for part in parts for cut in part)})
    by_name = {run.extractor: run for run in row.runs}
    shares = marked_shares(row.row.soft, length)
    starts, ends = cuts[:-1], cuts[1:]
    given = [
        [by_name[e].by(a, start) if e in by_name else 0.0 for e, a in pairs] for start in starts
    ]
    gold = [shares[start:end].mean() for start, end in zip(starts, ends, strict=True)]
    return np.diff(cuts).astype(float), np.array(given).reshape(-1, len(pairs)), np.array(gold)


def threshold_of(rows: Sequence[PanelRow], weights: Weights = ()) -> float:
    """The threshold with the greatest mean IoU, smoothed over its neighbours."""
    curves = []
    for row in rows:
        gold, labels = row.row, soft_labels(row.runs, weights)
        levels = ((label.level, label.start, label.end) for label in labels)
        places = [(span.start, span.end) for span in gold.spans or ()]
        length = len(gold.response)
        curves.append(iou_at(cut(gold.id, gold.group, gold.language, levels, places, length)))
    return best(np.mean(curves, axis=0), NEAR)


def said_by(row: PanelRow, labels: Sequence[SoftLabel], threshold: float) -> Prediction:
    """The row's wrong words and soft labels."""
    places = hard_places(labels, threshold, row.row.response)
    spans = tuple(GoldSpan(start, end) for start, end in places)
    soft = tuple(GoldSpan(label.start, label.end, label.p) for label in labels)
    return Prediction("hallucinated", spans=spans, soft=soft)


def alone(row: PanelRow, name: str) -> Prediction:
    """What one member says by itself: its spans, and its own p of every character."""
    run = next((run for run in row.runs if run.extractor == name), VotedRun(name, ()))
    spans = tuple(GoldSpan(s.span.start, s.span.end, s.span.p) for s in run.spans)
    soft = tuple(GoldSpan(score.start, score.end, score.p) for score in run.scores) or spans
    return Prediction("hallucinated", spans=spans, soft=soft)


def in_folds(
    rows: Sequence[PanelRow], rule: Callable[[Sequence[PanelRow]], FittedVote]
) -> tuple[Said, list[FittedVote]]:
    """Each row as a rule says that was fitted without its fold, and the rules."""
    rules = [rule([row for row in rows if row.fold != fold]) for fold in range(FOLDS)]
    said = [
        said_by(row, soft_labels(row.runs, own.weights), own.threshold)
        for row, own in ((row, rules[row.fold]) for row in rows)
    ]
    return said, rules


def report(rows: Sequence[PanelRow]) -> dict[str, Any]:
    """Every system's figures, and what the weighted vote gains over the best member alone."""
    gold = [row.row for row in rows]
    names = list(dict.fromkeys(run.extractor for row in rows for run in row.runs))
    most = [said_by(row, soft_labels(row.runs), KEPT_FROM) for row in rows]
    systems: dict[str, Said] = {
        "mark all": list(mark_all(gold).said),
        **{f"{name} alone": [alone(row, name) for row in rows] for name in names},
        f"most runs, {KEPT_FROM}": most,
    }
    fitted, _ = in_folds(rows, lambda some: FittedVote((), threshold_of(some)))
    own, both = (pairs_of(rows, is_adjudicated=is_both) for is_both in (False, True))
    systems["most runs, fitted threshold"] = fitted
    systems["weighted, nobody adjudicates"], _ = in_folds(rows, lambda some: fit(some, own))
    systems["weighted vote"], rules = in_folds(rows, lambda some: fit(some, both))
    found = {name: Outcomes(gold, said) for name, said in systems.items()}
    table = {name: _figures(one) for name, one in found.items()}
    ranked = sorted((f"{name} alone" for name in names), key=lambda n: -table[n]["iou"]["value"])
    weighted = found["weighted vote"]
    return {
        "rows": len(rows),
        "systems": table,
        "gain": {
            f"weighted vote over {other}": _figures(weighted, found[other])
            for other in dict.fromkeys((ranked[0], "weighted, nobody adjudicates"))
        },
        "thresholds_of_folds": [rule.threshold for rule in rules],
        "by_language": {name: _by_language(found[name]) for name in (ranked[0], "weighted vote")},
    }


def _figures(one: Outcomes, less: Outcomes | None = None) -> dict[str, Any]:
    """IoU and correlation with intervals; of two sides the first less the second, drawn alike."""
    own, other = measures(one), measures(less) if less else None

    def difference(kind: str) -> Callable[[Numbers], Numbers]:
        if other is None:
            return own[kind]
        return lambda weights: own[kind](weights) - other[kind](weights)

    return dict(figures({k: difference(k) for k in ("iou", "correlation")}, one.groups, 0))


def _by_language(found: Outcomes) -> dict[str, Any]:
    told = {}
    for language in sorted({row.language for row in found.rows}):
        own = [i for i, row in enumerate(found.rows) if row.language == language]
        part = Outcomes([found.rows[i] for i in own], [found.said[i] for i in own])
        told[language] = {"n": len(own), **_figures(part)}
    return told


def rows_of(data: Path, cache: Path, limit: int) -> list[PanelRow]:
    """The set's rows with their runs; `limit` bounds the rows, evenly over the languages."""
    card = load_span_reader().card
    lists = json.loads((FOLDER / "common_terms.json").read_text(encoding="utf-8"))
    rows = [
        replace(row, is_chosen_on=name == CHOSEN_ON)
        for name, task in SETS
        for row in marked_rows(load(name, data, task=task), lists, lambda _: None)
    ]
    columns = np.array([rows[0].names.index(name) for name in card["features"]])
    told = out_of_fold(rows, columns)
    own = [i for i, row in enumerate(rows) if row.is_chosen_on]
    chosen = own[:: max(1, len(own) // limit)][:limit]
    tell = every(50, len(chosen))
    return list(panel_rows([rows[i] for i in chosen], [told[i] for i in chosen], cache, tell))


def main() -> None:
    """Read the command line, measure, print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--path", type=Path, required=True, help="the folder of the data sets")
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "span-voting")
    parser.add_argument("--rows", type=int, default=MOST_ROWS, help="only so many")
    parser.add_argument("--write", action="store_true", help="fit on all rows, and keep")
    chosen = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    rows = rows_of(chosen.path, chosen.cache, chosen.rows)
    found = report(rows)
    if chosen.write:
        rule = fit(rows, pairs_of(rows, is_adjudicated=True))
        card = {**rule.body, "fitted_on": CHOSEN_ON, **found}
        text = json.dumps(card, indent=1, ensure_ascii=False)
        WEIGHTS.write_text(text + "\n", encoding="utf-8")
    json.dump(found, sys.stdout, indent=1, ensure_ascii=False)


if __name__ == "__main__":
    main()
