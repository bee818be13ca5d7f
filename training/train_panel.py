"""Compare votes of built-in readers with single ones: `python -m training.train_panel --path DATA`.

It measures on Mu-SHROOM the paper's vote (most runs, 0.7), a fitted threshold, and a weighted vote
fitted on the other four folds. `--write` fits the last on all rows for the built-in panel.
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

from core.agents.rosters import make_panel_reader
from core.baseline.encoder import load_multilingual_encoder
from core.baseline.entailment import load_reader, load_shared_assessor
from core.baseline.span_features import SPAN_READER_DIR
from core.baseline.span_panel import PANEL_WEIGHTS_FILE, WordPanelist
from core.baseline.span_reader import load_span_reader
from core.evaluation.dataset_files import GoldRow, GoldSpan
from core.evaluation.datasets import load_dataset_rows
from core.evaluation.metrics import build_measures, estimate_figures
from core.evaluation.outcomes import Outcomes, Prediction, compute_row_digest, predict_all_marked
from core.learning.evidence_calibration import build_observed_agents, compute_folder_digest
from core.learning.metrics import FloatArray
from core.learning.span_threshold import choose_threshold, compute_iou_curve
from core.learning.span_tuning import build_scored_case
from core.pipeline.span_stage import (
    DEFAULT_VOTE_THRESHOLD,
    VotedRun,
    compute_soft_labels,
    find_hard_spans,
    rotate_panel,
)
from core.pipeline.temporary_home import CheckMaterial, TemporaryHome, open_temporary_home
from core.runtime.concurrency import StopSignal
from core.runtime.config import Settings
from core.schema.events import SoftLabel
from core.schema.records import Judgement, Plan, WordScore
from core.schema.roles import CaseView, JudgeView
from core.schema.rosters import PANEL_READERS
from training.train_span_reader import (
    FOLD_COUNT,
    MARKED_SETS,
    THRESHOLD_SET,
    MarkedRow,
    compute_marked_shares,
    iterate_marked_rows,
    log_every,
    predict_out_of_fold,
)

CACHE_DEPENDS_ON = ("baseline", "documents", "pipeline")
PanelRuns = tuple[VotedRun, ...]
VoterPairs = tuple[tuple[str, str], ...]
VoteWeights = tuple[tuple[str, str, float], ...]
Predictions = list[Prediction]
PREFERRED_THRESHOLD = (
    0.38  # of equally good thresholds the one nearest to the span reader's own is chosen
)
MAX_ROWS = 10**6
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PanelRow:
    """A row with its fold and the panel's runs over it."""

    row: GoldRow
    fold: int
    runs: PanelRuns


class _CachedRuns(msgspec.Struct, frozen=True):
    row: str
    runs: PanelRuns


CACHE_DECODER = msgspec.json.Decoder(_CachedRuns)


class _RecordingJudge:
    """A judge that records its view and decides nothing."""

    name = "Watcher"
    built_in = True
    rule = "Keeps what there is to see."

    def __init__(self) -> None:
        self.seen: CaseView | None = None

    def decide(self, view: JudgeView, stop: StopSignal) -> Judgement:
        """Record the view and leave the case undecided."""
        self.seen = view.case_view
        return Judgement(self.name, "unclear", "Watched.", cause="not_addressed")


class _UnseenWords(WordPanelist):
    """The span reader with scores from readers that were not trained on the row's fold."""

    def __init__(self) -> None:
        super().__init__(load_shared_assessor())
        self.scores: tuple[WordScore, ...] = ()

    def score_words(self, view: CaseView, stop: StopSignal) -> tuple[WordScore, ...]:
        """Return the scores set for the current row."""
        return self.scores


class _PanelRunner:
    """Runs a row through the pipeline and lets the panel vote on it."""

    def __init__(self, bench: TemporaryHome) -> None:
        self._watcher, self._words = _RecordingJudge(), _UnseenWords()
        self._panel = [make_panel_reader(name) for name in PANEL_READERS if name != "words"]
        self._bench, self._staff = bench, build_observed_agents(bench, self._watcher)

    def runs(self, row: GoldRow, scores: tuple[WordScore, ...]) -> PanelRuns:
        """Return the members' spans in the row with the votes of all others."""
        self._watcher.seen, self._words.scores = None, scores
        material = CheckMaterial(row.response, row.question, row.documents)
        self._bench.check(material, self._staff, Plan(max_turns=1), StopSignal())
        if self._watcher.seen is None:
            return ()
        rotation = rotate_panel(
            [*self._panel, self._words], self._watcher.seen, StopSignal(), lambda: 0.0
        )
        try:
            while True:
                next(rotation)
        except StopIteration as end:
            runs: PanelRuns = end.value
            return runs


def iterate_panel_rows(
    marked: Sequence[MarkedRow],
    told: Sequence[FloatArray],
    cache: Path,
    tell: Callable[[int], None],
) -> Iterator[PanelRow]:
    """Yield the rows with their runs; `told` are shares by readers not trained on its fold."""
    cache.mkdir(parents=True, exist_ok=True)
    # the name changes whenever the same row could get other votes
    readers = f"{load_multilingual_encoder().id} {load_reader().id}"
    version = hashlib.sha256(
        f"{readers} {compute_folder_digest(CACHE_DEPENDS_ON)}".encode()
    ).hexdigest()[:12]
    path = cache / f"panel-{version}.jsonl"
    cached = _load_cache(path)
    with open_temporary_home(Settings()) as bench, path.open("ab") as file:
        runner: _PanelRunner | None = None
        for number, (row, shares) in enumerate(zip(marked, told, strict=True)):
            pairs = zip(row.places, shares.tolist(), strict=True)
            scores = tuple(WordScore(*place, round(p, 3)) for place, p in pairs)
            words = msgspec.json.encode([(score.start, score.p) for score in scores])
            digest = compute_row_digest(row.row) + hashlib.sha256(words).hexdigest()[:12]
            runs = cached.get(digest)
            if runs is None:
                runner = runner or _PanelRunner(bench)
                runs = runner.runs(row.row, scores)
                file.write(msgspec.json.encode(_CachedRuns(digest, runs)) + b"\n")
                file.flush()
            tell(number)
            yield PanelRow(row.row, row.fold, runs)


def _load_cache(path: Path) -> Mapping[str, PanelRuns]:
    """Load the cached runs by the row's digest; a truncated line is ignored."""
    runs: dict[str, PanelRuns] = {}
    for line in path.read_bytes().split(b"\n") if path.is_file() else ():
        try:
            entry = CACHE_DECODER.decode(line)
        except msgspec.MsgspecError:
            continue
        runs[entry.row] = entry.runs
    return runs


@dataclass(frozen=True)
class FittedVote:
    """A weighted vote: the weight of each pair of extractor and adjudicator, and the threshold."""

    weights: VoteWeights
    threshold: float

    @property
    def body(self) -> dict[str, Any]:
        """Return the weights and the threshold as JSON values."""
        return {"weights": [list(one) for one in self.weights], "threshold": self.threshold}


def list_voter_pairs(rows: Sequence[PanelRow], *, is_adjudicated: bool) -> VoterPairs:
    """Return all pairs of extractor and adjudicator; without adjudication each with itself."""
    names = dict.fromkeys(run.extractor for row in rows for run in row.runs)
    return tuple((e, a) for e in names for a in names if is_adjudicated or e == a)


def fit_vote(rows: Sequence[PanelRow], pairs: VoterPairs) -> FittedVote:
    """Fit weights by least squares to the annotators' shares, then choose the best threshold."""
    from scipy.optimize import nnls

    sizes = Counter(row.row.language for row in rows)
    votes, shares = [], []
    for row in rows:
        lengths, values, gold = _split_pieces(row, pairs)
        scale = np.sqrt(lengths / max(1, len(row.row.response)) / sizes[row.row.language])
        votes.append(values * scale[:, None])
        shares.append(gold * scale)
    solution, _ = nnls(np.concatenate(votes), np.concatenate(shares))
    fitted = zip(pairs, solution.tolist(), strict=True)
    weights = tuple((e, a, round(w, 4)) for (e, a), w in fitted if round(w, 4) > 0)
    return FittedVote(weights, choose_vote_threshold(rows, weights))


def _split_pieces(row: PanelRow, pairs: VoterPairs) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return (lengths, votes by pair, mean annotator share) of pieces with constant votes."""
    parts = [(s.span.start, s.span.end) for run in row.runs for s in run.spans]
    parts += [(score.start, score.end) for run in row.runs for score in run.scores]
    length = len(row.row.response)
    cuts = sorted({0, length, *(cut for part in parts for cut in part)})
    by_name = {run.extractor: run for run in row.runs}
    shares = compute_marked_shares(row.row.soft, length)
    starts, ends = cuts[:-1], cuts[1:]
    votes = [
        [by_name[e].by(a, start) if e in by_name else 0.0 for e, a in pairs] for start in starts
    ]
    gold = [shares[start:end].mean() for start, end in zip(starts, ends, strict=True)]
    return np.diff(cuts).astype(float), np.array(votes).reshape(-1, len(pairs)), np.array(gold)


def choose_vote_threshold(rows: Sequence[PanelRow], weights: VoteWeights = ()) -> float:
    """Return the threshold with the greatest mean IoU, smoothed over its neighbours."""
    curves = []
    for row in rows:
        gold, labels = row.row, compute_soft_labels(row.runs, weights)
        levels = ((label.level, label.start, label.end) for label in labels)
        places = [(span.start, span.end) for span in gold.spans or ()]
        length = len(gold.response)
        curves.append(
            compute_iou_curve(
                build_scored_case(gold.id, gold.group, gold.language, levels, places, length)
            )
        )
    return choose_threshold(np.mean(curves, axis=0), PREFERRED_THRESHOLD)


def predict_row(row: PanelRow, labels: Sequence[SoftLabel], threshold: float) -> Prediction:
    """Return the row's wrong words and soft labels."""
    places = find_hard_spans(labels, threshold, row.row.response)
    spans = tuple(GoldSpan(start, end) for start, end in places)
    soft = tuple(GoldSpan(label.start, label.end, label.p) for label in labels)
    return Prediction("hallucinated", spans=spans, soft=soft)


def predict_alone(row: PanelRow, name: str) -> Prediction:
    """Return one member's own prediction: its spans, and its p of every character."""
    run = next((run for run in row.runs if run.extractor == name), VotedRun(name, ()))
    spans = tuple(GoldSpan(s.span.start, s.span.end, s.span.p) for s in run.spans)
    soft = tuple(GoldSpan(score.start, score.end, score.p) for score in run.scores) or spans
    return Prediction("hallucinated", spans=spans, soft=soft)


def predict_in_folds(
    rows: Sequence[PanelRow], rule: Callable[[Sequence[PanelRow]], FittedVote]
) -> tuple[Predictions, list[FittedVote]]:
    """Predict each row by a rule fitted without its fold; return predictions and rules."""
    rules = [rule([row for row in rows if row.fold != fold]) for fold in range(FOLD_COUNT)]
    predictions = [
        predict_row(row, compute_soft_labels(row.runs, vote.weights), vote.threshold)
        for row, vote in ((row, rules[row.fold]) for row in rows)
    ]
    return predictions, rules


def compare_systems(rows: Sequence[PanelRow]) -> dict[str, Any]:
    """Return every system's figures, and the weighted vote's gain over the best member."""
    gold = [row.row for row in rows]
    names = list(dict.fromkeys(run.extractor for row in rows for run in row.runs))
    majority = [
        predict_row(row, compute_soft_labels(row.runs), DEFAULT_VOTE_THRESHOLD) for row in rows
    ]
    systems: dict[str, Predictions] = {
        "mark all": list(predict_all_marked(gold).said),
        **{f"{name} alone": [predict_alone(row, name) for row in rows] for name in names},
        f"most runs, {DEFAULT_VOTE_THRESHOLD}": majority,
    }
    fitted, _ = predict_in_folds(rows, lambda others: FittedVote((), choose_vote_threshold(others)))
    single_pairs, all_pairs = (
        list_voter_pairs(rows, is_adjudicated=is_both) for is_both in (False, True)
    )
    systems["most runs, fitted threshold"] = fitted
    systems["weighted, nobody adjudicates"], _ = predict_in_folds(
        rows, lambda others: fit_vote(others, single_pairs)
    )
    systems["weighted vote"], rules = predict_in_folds(
        rows, lambda others: fit_vote(others, all_pairs)
    )
    outcomes = {name: Outcomes(gold, said) for name, said in systems.items()}
    table = {name: _figures(one) for name, one in outcomes.items()}
    ranked = sorted((f"{name} alone" for name in names), key=lambda n: -table[n]["iou"]["value"])
    weighted = outcomes["weighted vote"]
    return {
        "rows": len(rows),
        "systems": table,
        "gain": {
            f"weighted vote over {other}": _figures(weighted, outcomes[other])
            for other in dict.fromkeys((ranked[0], "weighted, nobody adjudicates"))
        },
        "thresholds_of_folds": [rule.threshold for rule in rules],
        "by_language": {
            name: _by_language(outcomes[name]) for name in (ranked[0], "weighted vote")
        },
    }


def _figures(one: Outcomes, less: Outcomes | None = None) -> dict[str, Any]:
    """Return IoU and correlation with intervals; with `less`, the paired differences."""
    own, subtracted = build_measures(one), build_measures(less) if less else None

    def difference(kind: str) -> Callable[[FloatArray], FloatArray]:
        if subtracted is None:
            return own[kind]
        return lambda weights: own[kind](weights) - subtracted[kind](weights)

    return dict(estimate_figures({k: difference(k) for k in ("iou", "correlation")}, one.groups, 0))


def _by_language(found: Outcomes) -> dict[str, Any]:
    figures_by_language = {}
    for language in sorted({row.language for row in found.rows}):
        indices = [i for i, row in enumerate(found.rows) if row.language == language]
        part = Outcomes([found.rows[i] for i in indices], [found.said[i] for i in indices])
        figures_by_language[language] = {"n": len(indices), **_figures(part)}
    return figures_by_language


def load_panel_rows(data: Path, cache: Path, limit: int) -> list[PanelRow]:
    """Load the set's rows with their runs; `limit` thins the rows evenly over the languages."""
    card = load_span_reader().card
    lists = json.loads((SPAN_READER_DIR / "common_terms.json").read_text(encoding="utf-8"))
    rows = [
        replace(row, is_chosen_on=name == THRESHOLD_SET)
        for name, task in MARKED_SETS
        for row in iterate_marked_rows(
            load_dataset_rows(name, data, task=task), lists, lambda _: None
        )
    ]
    columns = np.array([rows[0].names.index(name) for name in card["features"]])
    shares = predict_out_of_fold(rows, columns)
    indices = [i for i, row in enumerate(rows) if row.is_chosen_on]
    chosen = indices[:: max(1, len(indices) // limit)][:limit]
    tell = log_every(50, len(chosen))
    return list(
        iterate_panel_rows([rows[i] for i in chosen], [shares[i] for i in chosen], cache, tell)
    )


def main() -> None:
    """Parse the command line, measure and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--path", type=Path, required=True, help="the folder of the data sets")
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "span-voting")
    parser.add_argument("--rows", type=int, default=MAX_ROWS, help="only so many")
    parser.add_argument("--write", action="store_true", help="fit on all rows, and keep")
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    rows = load_panel_rows(options.path, options.cache, options.rows)
    figures_found = compare_systems(rows)
    if options.write:
        rule = fit_vote(rows, list_voter_pairs(rows, is_adjudicated=True))
        card = {**rule.body, "fitted_on": THRESHOLD_SET, **figures_found}
        text = json.dumps(card, indent=1, ensure_ascii=False)
        PANEL_WEIGHTS_FILE.write_text(text + "\n", encoding="utf-8")
    json.dump(figures_found, sys.stdout, indent=1, ensure_ascii=False)


if __name__ == "__main__":
    main()
