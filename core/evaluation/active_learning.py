"""Measures what to ask people first: `python -m core.evaluation.active_learning --path DATA`.

Rows whose labels are known play the people. From ten labels on, ten more are asked for at a time,
by each strategy from the same split and the same start; the area under each learning curve stands
beside that of asking at random, with a 95 % bootstrap interval of the paired difference over the
seeds. The review queue's mix was chosen with `--choose`, on seeds of its own: of those that lose
less than 0.003 of AUROC to random, over the sets as they lie, the one that finds the most wrong
verdicts (`mistaken`: rows on which the head was wrong when they were asked about). The rows are the
same in both, so what is told of the mix is about these sets.

Rounds of active learning over rows whose labels are known: ask ten, train, measure, ask again.
What is asked comes from `core.store.active_learning`, as in the review queue; the learner is a
logistic head over frozen sentence vectors, as a retrained classifier's is.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from core.config import ENCODER_DIR
from core.errors import InputError, ReviewError
from core.evaluation.datasets import load
from core.evaluation.gold import GoldRow
from core.evaluation.sets.realmistake import load_reasonings
from core.llm.encoder import Embedder, load_encoder
from core.store.active_learning import SHARES, Shares, spread, unsureness, vote_entropy

Array = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Places = npt.NDArray[np.int64]
START = 10
BATCH = 10
MOST = 200
TEST_SHARE = 0.4
NEIGHBOURS = 5


@dataclass(frozen=True)
class Strategy:
    """What is asked first: mixed by `shares`, and at random for a share of each batch.

    `copies_wait`: as in the queue, near copies of what was asked come last.
    """

    shares: Shares
    random_share: float = 0.0
    copies_wait: bool = False


RANDOM = Strategy(Shares(0.0, 0.0, 0.0), 1.0)


@dataclass(frozen=True)
class Material:
    """Rows to ask about: unit vectors (n, width), `wrong` (n,), the number of each one's group.

    `judged` (n,) are the log odds of the judge's own verdict, which the head reads beside the text.
    `apart` (n,) is how far other agents were apart on a row; without it a committee of heads is
    trained each round.
    """

    name: str
    vectors: npt.NDArray[np.float32]
    wrong: Flags
    groups: Places
    judged: Array | None = None
    apart: Array | None = None

    def features(self, rows: Places | Sequence[int]) -> Array:
        """What the head reads of these rows."""
        own = [] if self.judged is None else [self.judged[rows]]
        return np.column_stack([self.vectors[rows], *own])


@dataclass(frozen=True)
class Curve:
    """Figures on the test rows by number of labels: START, START + BATCH, up to MOST.

    `mistaken` is the share of the rows asked about on which the head of that time was wrong.
    """

    auroc: Array
    balanced: Array
    mistaken: float


def curves(material: Material, strategies: Mapping[str, Strategy], seed: int) -> dict[str, Curve]:
    """The learning curve of each strategy, all from the same split and the same first rows."""
    random = np.random.default_rng(seed)
    pool, test = _split(material.groups, random)
    start = _start(material.wrong, pool, random)
    return {
        name: _curve(material, pool, test, start, strategy, np.random.default_rng([seed, 1]))
        for name, strategy in strategies.items()
    }


def counts() -> list[int]:
    """How many labels each point of a curve stands for."""
    return list(range(START, MOST + 1, BATCH))


def _split(groups: Places, random: np.random.Generator) -> tuple[Places, Places]:
    """(pool, test): no group lies in both."""
    names = random.permutation(int(groups.max()) + 1)
    tested = np.isin(groups, names[: round(TEST_SHARE * len(names))])
    return np.flatnonzero(~tested), np.flatnonzero(tested)


def _start(wrong: Flags, pool: Places, random: np.random.Generator) -> list[int]:
    """The first rows, at random; both labels are among them, or nothing could be trained."""
    drawn = random.permutation(pool)
    first = drawn[:START]
    if wrong[first].all() or not wrong[first].any():
        other = drawn[wrong[drawn] != wrong[first[0]]][0]
        first = np.append(first[:-1], other)
    return [int(row) for row in first]


def _curve(
    material: Material,
    pool: Places,
    test: Places,
    start: Sequence[int],
    strategy: Strategy,
    random: np.random.Generator,
) -> Curve:
    from sklearn.metrics import balanced_accuracy_score, roc_auc_score

    known = list(start)
    truth, read = material.wrong[test], material.features(test)
    points: list[tuple[float, float]] = []
    mistaken = 0
    for _ in counts():
        head = _head(material, known)
        p = head.predict_proba(read)[:, 1]
        points.append((roc_auc_score(truth, p), balanced_accuracy_score(truth, p >= 0.5)))
        if len(known) < MOST:
            asked = _asked(material, known, np.setdiff1d(pool, known), strategy, head, random)
            mistaken += int((head.predict(material.features(asked)) != material.wrong[asked]).sum())
            known += asked
    auroc, balanced = np.array(points).T
    return Curve(auroc, balanced, mistaken / (MOST - START))


def _head(material: Material, known: Sequence[int]) -> Any:
    from sklearn.linear_model import LogisticRegression

    head = LogisticRegression(class_weight="balanced", max_iter=1000)
    return head.fit(material.features(known), material.wrong[known])


def _asked(
    material: Material,
    known: Sequence[int],
    waiting: Places,
    strategy: Strategy,
    head: Any,
    random: np.random.Generator,
) -> list[int]:
    """The next rows to ask about."""
    drawn = [int(row) for row in random.permutation(waiting)]
    lots = drawn[: round(BATCH * strategy.random_share)]
    if len(lots) == BATCH:
        return lots
    others = np.array(drawn[len(lots) :])  # in random order: what is worth the same is drawn
    shares, worths = strategy.shares, np.zeros(len(others))
    if shares.unsure:
        p = head.predict_proba(material.features(others))[:, 1]
        worths += shares.unsure * np.array([unsureness(float(one)) for one in p])
    if shares.apart:
        worths += shares.apart * _apart(material, known, others)
    vectors, before = material.vectors[others], material.vectors[[*known, *lots]]
    order, _ = spread(
        worths,
        vectors,
        before,
        shares.unlike,
        most=BATCH - len(lots),
        copies_wait=strategy.copies_wait,
    )
    return lots + [int(others[place]) for place in order]


def _apart(material: Material, known: Sequence[int], rows: Places) -> Array:
    """How far a committee is apart: that of the set, or heads of three kinds on what is known."""
    if material.apart is not None:
        return material.apart[rows]
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import KNeighborsClassifier

    heads = (LogisticRegression(max_iter=1000), GaussianNB(), KNeighborsClassifier(NEIGHBOURS))
    read, wrong, asked = material.features(known), material.wrong[known], material.features(rows)
    votes = np.stack([head.fit(read, wrong).predict(asked) for head in heads], axis=1)
    return np.array([vote_entropy([str(vote) for vote in row]) for row in votes])


DETECTOR, PROMPT = "gpt-4-0125-preview", "baseline_errordetection_prompt_2"
SAID = {"hallucinated": 2.2, "supported": -2.2}  # log odds of a verdict that gives no probability
QUESTIONS = 500  # of halueval
SAMPLE_SEED = 5
CHOOSING = 1000  # where the seeds of --choose begin
RANDOM_SHARE = 0.2  # as a project has it from the start
COPIES = 3
ENOUGH = 150  # labels at which random sets the quality that the others are to reach
DRAWS = 2000
STRATEGIES = {
    "random": RANDOM,
    "uncertainty": Strategy(Shares(1.0, 0.0, 0.0)),
    "disagreement": Strategy(Shares(0.0, 1.0, 0.0)),
    "diversity": Strategy(Shares(0.0, 0.0, 1.0)),
    "mixed": Strategy(SHARES),
    "copies wait": Strategy(SHARES, copies_wait=True),
    "as the queue": Strategy(SHARES, RANDOM_SHARE, copies_wait=True),
}
MIXES = (
    (0.5, 0.5, 0.0), (0.5, 0.0, 0.5), (0.0, 0.5, 0.5), (0.45, 0.45, 0.1), (0.4, 0.4, 0.2),
    (0.4, 0.3, 0.3), (0.25, 0.25, 0.5), (0.3, 0.6, 0.1), (0.2, 0.8, 0.0), (0.1, 0.8, 0.1),
    (0.0, 0.9, 0.1), (0.8, 0.1, 0.1),
)  # fmt: skip
Tell = Callable[[str], object]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 2 for data that will not do."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--path", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--choose", action="store_true", help="try mixes, on other seeds")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args(arguments)
    try:
        if given.seeds < 1:
            raise InputError(f"Expected at least one seed, found {given.seeds}; give --seeds 20.")
        materials = _materials(given.path)
    except ReviewError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    strategies = mixes() if given.choose else STRATEGIES
    first = CHOOSING if given.choose else 0
    seeds = range(first, first + given.seeds)
    told = [measured(material, strategies, seeds, sys.stderr.write) for material in materials]
    if given.json:
        sys.stdout.write(json.dumps({"seeds": given.seeds, "sets": told}, indent=1) + "\n")
    else:
        sys.stdout.write("\n".join(as_table(one) for one in told))
    return 0


def mixes() -> dict[str, Strategy]:
    """What could be the queue's mix, each with the random share that a queue has."""
    named = {"/".join(map(str, mix)): Strategy(Shares(*mix), RANDOM_SHARE, True) for mix in MIXES}
    return {"random": RANDOM} | named


def _materials(folder: Path) -> list[Material]:
    encoder = load_encoder(ENCODER_DIR)
    recorded = realmistake(folder, encoder)
    return [recorded, repeated(recorded), halueval(folder, encoder)]


def repeated(material: Material) -> Material:
    """Each row three times, on one side of every split: as a queue holds what is checked again."""
    vectors, judged, apart = material.vectors, material.judged, material.apart
    return Material(
        f"{material.name}, each {COPIES} times",
        np.tile(vectors, (COPIES, 1)),
        np.tile(material.wrong, COPIES),
        np.tile(material.groups, COPIES),
        None if judged is None else np.tile(judged, COPIES),
        None if apart is None else np.tile(apart, COPIES),
    )


def realmistake(folder: Path, encoder: Embedder) -> Material:
    """What one detector wrote of each answer; the others' verdicts are the committee.

    Raises:
        InputError: the files are not there.
    """
    votes: dict[str, dict[str, GoldRow]] = defaultdict(dict)
    for row in load("realmistake", folder, task="recorded", split=PROMPT):
        detector = row.recorded_by.split("/")[-2]
        votes[row.id.split(".jsonl:")[-1]][detector] = row
    written = dict(load_reasonings(folder / "realmistake", f"{DETECTOR}/{PROMPT}"))
    ids = sorted(written)
    own = [votes[one][DETECTOR] for one in ids]
    apart = [
        vote_entropy([str(row.recorded) for name, row in votes[one].items() if name != DETECTOR])
        for one in ids
    ]
    return _material(
        f"realmistake, {DETECTOR}", own, [written[one] for one in ids], encoder,
        judged=np.array([SAID.get(str(row.recorded), 0.0) for row in own]),
        apart=np.array(apart),
    )  # fmt: skip


def halueval(folder: Path, encoder: Embedder) -> Material:
    """Question with right and made-up answer; the committee are heads trained on the way.

    The knowledge is left out of the text: with it, a vector says what the row is about, and no head
    learns anything from 200 of them (AUROC 0.51).

    Raises:
        InputError: the files are not there.
    """
    rows = list(load("halueval", folder, task="qa"))
    groups = list(dict.fromkeys(row.group for row in rows))
    drawn = np.random.default_rng(SAMPLE_SEED).permutation(len(groups))[:QUESTIONS]
    kept = {groups[place] for place in drawn}
    rows = [row for row in rows if row.group in kept]
    return _material(
        "halueval, qa", rows, [f"{row.question} {row.response}" for row in rows], encoder
    )


def _material(
    name: str,
    rows: Sequence[GoldRow],
    texts: Sequence[str],
    encoder: Embedder,
    *,
    judged: Array | None = None,
    apart: Array | None = None,
) -> Material:
    numbers: dict[str, int] = {}
    groups = [numbers.setdefault(row.group, len(numbers)) for row in rows]
    wrong = np.array([row.label == "hallucinated" for row in rows])
    # One by one, as the classifier reads them: a text's vector depends on its neighbours.
    vectors = np.concatenate([encoder.encode([text]) for text in texts])
    return Material(name, vectors, wrong, np.array(groups), judged, apart)


def measured(
    material: Material, strategies: Mapping[str, Strategy], seeds: Sequence[int], tell: Tell
) -> dict[str, Any]:
    """What each strategy comes to on one set, beside random."""
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    began = time.time()
    found: dict[str, list[Curve]] = defaultdict(list)
    for number, seed in enumerate(seeds, 1):
        with threadpool_limits(1):  # small heads: threads that wait for each other only spin
            own = curves(material, strategies, seed)
        for name, curve in own.items():
            found[name].append(curve)
        tell(f"{material.name}: seed {number} of {len(seeds)}\n")
    return {
        "set": material.name,
        "rows": len(material.wrong),
        "groups": int(material.groups.max()) + 1,
        "hallucinated": round(float(material.wrong.mean()), 4),
        "labels": [counts()[0], counts()[-1]],
        "strategies": {name: _told(them, found["random"]) for name, them in found.items()},
        "seconds": round(time.time() - began, 1),
    }


def _told(own: Sequence[Curve], random: Sequence[Curve]) -> dict[str, Any]:
    """Figures of a strategy: areas with their difference to random, labels to a quality."""
    told: dict[str, Any] = {}
    for name in ("auroc", "balanced"):
        ours = np.array([getattr(curve, name) for curve in own])
        base = np.array([getattr(curve, name) for curve in random])
        told[name] = {
            "area": round(float(ours.mean()), 4),
            "with_all_labels": round(float(ours[:, -1].mean()), 4),
            "above_random": interval(ours.mean(axis=1) - base.mean(axis=1)),
            "labels_needed": labels_needed(ours.mean(axis=0), base.mean(axis=0)),
        }
    mistaken = np.array([curve.mistaken for curve in own])
    told["mistaken"] = {
        "share": round(float(mistaken.mean()), 4),
        "above_random": interval(mistaken - np.array([curve.mistaken for curve in random])),
    }
    return told


def interval(differences: Array) -> dict[str, float]:
    """The mean with its 95 % percentile bootstrap interval over seeds."""
    random = np.random.default_rng(0)
    drawn = random.choice(differences, (DRAWS, len(differences))).mean(axis=1)
    low, high = np.percentile(drawn, (2.5, 97.5))
    named = {"value": differences.mean(), "low": low, "high": high}
    return {name: round(float(value), 4) for name, value in named.items()}


def labels_needed(ours: Array, random: Array) -> int | None:
    """Labels until a mean curve is where random is with `ENOUGH`; None: it never gets there."""
    wanted = random[counts().index(ENOUGH)]
    return next((n for n, value in zip(counts(), ours, strict=True) if value >= wanted), None)


def as_table(told: Mapping[str, Any]) -> str:
    """One set as lines of text, with a plain word on whether anything was gained."""
    lines = [
        f"{told['set']}: {told['rows']} rows of {told['groups']} groups, "
        f"{told['hallucinated']:.0%} hallucinated, {told['labels'][0]} to {told['labels'][1]} "
        f"labels, {told['seconds']:.0f} s",
        f"{'asked first':16s} {'AUROC':>6s} {'above random':>26s} {'labels':>6s} "
        f"{'bal.':>6s} {'above random':>26s} {'labels':>6s} {'mistaken':>8s} "
        f"{'above random':>26s}",
    ]
    for name, own in told["strategies"].items():
        parts = [f"{name:16s}"]
        for measure in ("auroc", "balanced"):
            one = own[measure]
            needed = one["labels_needed"] or "never"
            parts.append(f"{one['area']:6.3f} {_words(one['above_random']):>26s} {needed!s:>6s}")
        mistaken = own["mistaken"]
        parts.append(f"{mistaken['share']:8.1%} {_words(mistaken['above_random']):>26s}")
        lines.append(" ".join(parts))
    return "\n".join([*lines, _verdict(told["strategies"]), ""])


def _words(one: Mapping[str, float]) -> str:
    return f"{one['value']:+.4f} ({one['low']:+.4f}, {one['high']:+.4f})"


def _verdict(strategies: Mapping[str, Any]) -> str:
    def above(figure: Callable[[Mapping[str, Any]], Mapping[str, float]]) -> str:
        found = [name for name, one in strategies.items() if figure(one)["low"] > 0.0]
        return ", ".join(found) or "none"

    learns = above(lambda one: one["auroc"]["above_random"])
    finds = above(lambda one: one["mistaken"]["above_random"])
    return (
        f"Learns faster than asking at random (AUROC): {learns}.\n"
        f"Finds more wrong verdicts than at random: {finds}."
    )


if __name__ == "__main__":
    sys.exit(main())
