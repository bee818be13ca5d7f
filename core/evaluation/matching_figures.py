"""How far the built-in readers behind `match` go: `python -m core.evaluation.matching_figures`.

How often they accuse a sentence of a newspaper article of contradicting the others, which is a
false alarm each time; and how well likeness tells a question's own answer from another question's.
Never accusing anybody has no false alarm; guessing has an AUROC of one half.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from core.concurrency import Stop
from core.config import ENCODER_DIR
from core.errors import ReviewError
from core.evaluation.bootstrap import Figure, figures
from core.evaluation.datasets import load
from core.models.encoder import Embedder, load_encoder
from core.records import Passage
from core.tools.box.match import OWN, SELF_FROM, passages_of
from core.tools.toolbox import Answer

Matcher = Callable[[str, Sequence[Passage]], Answer]
FIRST_SENTENCES = 8
OF_EACH = 2
HALF = 0.5


@dataclass(frozen=True)
class Alarms:
    """For each sentence tried: p where it was called contradicted, else 0; its article's number."""

    p: npt.NDArray[np.float64]
    groups: npt.NDArray[np.int64]

    def share(self, least: float) -> Figure:
        """The share of sentences accused with that p or more, with its interval by article."""
        accused = (self.p >= least).astype(np.float64)
        return figures(
            {"share": lambda weights: (weights @ accused) / np.maximum(1e-9, weights.sum(axis=1))},
            self.groups,
            seed=0,
        )["share"]


def false_alarms(articles: Sequence[str], match: Matcher, seed: int = 0) -> Alarms:
    """Some of the first sentences of each article, each against the others of these."""
    rng = random.Random(seed)
    found: list[float] = []
    groups: list[int] = []
    for number, article in enumerate(articles):
        texts = [p.text for p in passages_of(article, OWN)][:FIRST_SENTENCES]
        for place in rng.sample(range(len(texts)), min(OF_EACH, len(texts))):
            rest = passages_of(" ".join([*texts[:place], *texts[place + 1 :]]), OWN)
            if not rest:
                continue
            answer = match(texts[place], rest)
            is_accused = answer.gave["finding"] == "contradicted"
            found.append(float(answer.p or 0.0) if is_accused else 0.0)
            groups.append(number)
    return Alarms(np.array(found), np.array(groups, np.int64))


def likeness(pairs: Sequence[tuple[str, str]], encoder: Embedder) -> tuple[float, float]:
    """(AUROC of cosine, own answers lost at the level that finds half of the others').

    An other answer is the next question's.
    """
    questions = encoder.encode([question for question, _ in pairs])
    answers = encoder.encode([answer for _, answer in pairs])
    own = np.sum(questions * answers, axis=1)
    other = np.sum(questions * np.roll(answers, 1, axis=0), axis=1)
    better = (own[:, None] > other[None, :]).mean() + HALF * (own[:, None] == other[None, :]).mean()
    return float(better), float((own < np.median(other)).mean())


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the figures; 2 for a folder that will not do."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--path", type=Path, required=True)
    parser.add_argument("--articles", type=int, default=60)
    parser.add_argument("--questions", type=int, default=400)
    parser.add_argument("--split", default="mturk_xsum.jsonl", help="file of the set qags")
    given = parser.parse_args(arguments)
    try:
        articles = _articles(given.path, given.split, given.articles)
        pairs = _pairs(given.path, given.questions)
    except ReviewError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    for line in _lines(articles, pairs):
        sys.stdout.write(f"{line}\n")
    return 0


def _lines(articles: Sequence[str], pairs: Sequence[tuple[str, str]]) -> list[str]:
    from core.builtin.judge import BuiltInJudge
    from core.builtin.matching import BuiltInMatcher
    from core.models.reader import load_reader

    encoder = load_encoder(ENCODER_DIR)
    judge = BuiltInJudge(encoder, load_reader())
    alarms = false_alarms(articles, BuiltInMatcher(judge, "en", Stop()))
    lines = [
        f"false alarms from p = {least}: {_shown(alarms, least)}, n = {len(alarms.p)} "
        f"sentences of {len(articles)} articles (never accusing: 0)"
        for least in (HALF, SELF_FROM)
    ]
    area, lost = likeness(pairs, encoder)
    lines.append(
        f"likeness of question and answer: AUROC {area:.3f} (guessing: 0.5), n = {len(pairs)}; to "
        f"find half of the others' answers loses {lost:.1%} of the own"
    )
    return lines


def _shown(alarms: Alarms, least: float) -> str:
    """The share with its interval; drawing again from no alarm at all would only give none."""
    figure = alarms.share(least)
    if not (alarms.p >= least).any():
        return f"0 (95 %: at most {3 / max(1, len(alarms.p)):.3f} if sentences were independent)"
    return f"{figure['value']:.3f} ({figure['low']:.3f} to {figure['high']:.3f})"


def _articles(path: Path, split: str, most: int) -> list[str]:
    rows = load("qags", path, split=split)
    texts = list(dict.fromkeys(text for row in rows for text in row.documents))
    random.Random(0).shuffle(texts)
    return texts[:most]


def _pairs(path: Path, most: int) -> list[tuple[str, str]]:
    rows = load("halueval", path, task="qa", split="dev20")
    right = {row.question: row.response for row in rows if row.label == "supported"}
    pairs = list(right.items())
    random.Random(0).shuffle(pairs)
    return pairs[:most]


if __name__ == "__main__":
    sys.exit(main())
