"""Gather a reader's training data: `python -m training.reader_pairs --shared DATA ...`.

It writes labelled pairs, pairs constructed from them and a sample of the dev parts into one file.
The `calibration` part of the shared sets is left out: the evidence model is fitted on it.
"""

from __future__ import annotations

import argparse
import gzip
import json
import lzma
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from core.evaluation.dataset_files import SplitPart, assign_part
from training.pair_maker import PairMaker, QuestionedParagraph
from training.pairs import (
    SUPPORTED,
    LabelledPair,
    load_collected_pairs,
    load_measured_claims,
    load_shared_pairs,
)

LARGE_SET_ROWS, SMALL_SET_ROWS = 10_000, 2_000
DEV_ROWS_PER_SET = 150


def load_labelled_pairs(
    shared: Path, collected: Path | None
) -> tuple[list[LabelledPair], list[LabelledPair], list[QuestionedParagraph]]:
    """Return training pairs, pairs of the dev parts, and paragraphs with questions."""
    seen, dev = list(load_shared_pairs(shared, ["train"])), list(load_shared_pairs(shared, ["dev"]))
    if collected is None:
        return seen, dev, []
    measured, data = load_measured_claims(shared), collected / "data"
    seen += load_collected_pairs(data, ["train", "calibration"], measured)
    dev += load_collected_pairs(data, ["dev"], measured)
    return weigh_pairs(seen), dev, load_paragraphs(collected / "qa", ["train", "calibration"])


def weigh_pairs(pairs: Sequence[LabelledPair]) -> list[LabelledPair]:
    """Return the pairs with `times` scaled, so that large sets do not dominate small ones."""
    count = Counter((pair.name, pair.language) for pair in pairs)

    def factor(pair: LabelledPair) -> float:
        size = count[pair.name, pair.language]
        if size > LARGE_SET_ROWS:
            return float((LARGE_SET_ROWS / size) ** 0.5)
        return 1.5 if size < SMALL_SET_ROWS else 1.0

    return [replace(pair, times=round(pair.times * factor(pair), 3)) for pair in pairs]


def load_paragraphs(folder: Path, parts: Sequence[SplitPart]) -> list[QuestionedParagraph]:
    """Load paragraphs with questions from those parts of the collected question-answering sets."""
    by_context: dict[tuple[str, str, str, str], list[tuple[str, tuple[str, ...]]]] = {}
    for path in sorted(folder.glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for row in map(json.loads, lines):
                key = (row["set"], row["language"], f"{row['set']}:{row['group']}", row["context"])
                answers = tuple(answer for answer in row["answers"] if answer.strip())
                if answers and assign_part(key[2]) in parts:
                    by_context.setdefault(key, []).append((row["question"], answers))
    return [
        QuestionedParagraph(name, language, group, " ".join(context.split()), tuple(questions))
        for (name, language, group, context), questions in by_context.items()
    ]


def sample_pairs(pairs: Sequence[LabelledPair], most: int, seed: int = 3) -> list[LabelledPair]:
    """Draw a seeded sample of at most `most` pairs from each set and language."""
    rng = random.Random(seed)
    by_set: dict[tuple[str, str], list[LabelledPair]] = defaultdict(list)
    for pair in pairs:
        by_set[pair.name, pair.language].append(pair)
    return [p for group in by_set.values() for p in rng.sample(group, min(most, len(group)))]


def write_pairs(path: Path, seen: Iterable[LabelledPair], dev: Iterable[LabelledPair]) -> None:
    """Write xz-compressed JSON lines; a text is a string at first and its number from then on."""
    numbers: dict[str, int] = {}

    def text_or_number(text: str) -> str | int:
        if text in numbers:
            return numbers[text]
        numbers[text] = len(numbers)
        return text

    with lzma.open(path, "wt", encoding="utf-8", preset=4) as out:
        for part, pairs in (("seen", seen), ("dev", dev)):
            for pair in pairs:
                wrong = () if pair.allowed == SUPPORTED and pair.wrong is None else pair.wrong
                evidence, claim = text_or_number(pair.evidence), text_or_number(pair.claim)
                origin = (pair.name, pair.language, pair.times)
                row = [part, evidence, claim, pair.allowed, wrong, *origin]
                out.write(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Load labelled pairs, construct others, and write them all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shared", type=Path, required=True, help="the folder of the shared sets")
    parser.add_argument("--collected", type=Path, help="a folder with data/ and qa/")
    parser.add_argument("--constructed", type=int, default=600_000, help="pairs to construct")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(arguments)
    labelled, dev, readings = load_labelled_pairs(options.shared, options.collected)
    constructed = list(PairMaker(labelled, readings, options.seed).make(options.constructed))
    sys.stderr.write(
        f"{len(labelled)} labelled, {len(constructed)} constructed, {len(readings)} readings\n"
    )
    write_pairs(options.out, [*labelled, *constructed], sample_pairs(dev, DEV_ROWS_PER_SET))
    return 0


if __name__ == "__main__":
    sys.exit(main())
