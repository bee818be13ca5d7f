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

from core.evaluation.files import Part, part_of
from training.constructed import PairMaker, Reading
from training.pairs import SUPPORTED, Pair, collected_pairs, measured_claims, shared_pairs

LARGE_SET, SMALL_SET = 10_000, 2_000
SHOWN_OF_A_SET = 150


def labelled_pairs(
    shared: Path, collected: Path | None
) -> tuple[list[Pair], list[Pair], list[Reading]]:
    """Return training pairs, pairs of the dev parts, and paragraphs with questions."""
    seen, dev = list(shared_pairs(shared, ["train"])), list(shared_pairs(shared, ["dev"]))
    if collected is None:
        return seen, dev, []
    measured, data = measured_claims(shared), collected / "data"
    seen += collected_pairs(data, ["train", "calibration"], measured)
    dev += collected_pairs(data, ["dev"], measured)
    return weighed(seen), dev, readings_of(collected / "qa", ["train", "calibration"])


def weighed(pairs: Sequence[Pair]) -> list[Pair]:
    """Return the pairs with `times` scaled, so that large sets do not dominate small ones."""
    count = Counter((pair.name, pair.language) for pair in pairs)

    def factor(pair: Pair) -> float:
        size = count[pair.name, pair.language]
        if size > LARGE_SET:
            return float((LARGE_SET / size) ** 0.5)
        return 1.5 if size < SMALL_SET else 1.0

    return [replace(pair, times=round(pair.times * factor(pair), 3)) for pair in pairs]


def readings_of(folder: Path, parts: Sequence[Part]) -> list[Reading]:
    """Load paragraphs with questions from those parts of the collected question-answering sets."""
    by_context: dict[tuple[str, str, str, str], list[tuple[str, tuple[str, ...]]]] = {}
    for path in sorted(folder.glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for row in map(json.loads, lines):
                key = (row["set"], row["language"], f"{row['set']}:{row['group']}", row["context"])
                answers = tuple(answer for answer in row["answers"] if answer.strip())
                if answers and part_of(key[2]) in parts:
                    by_context.setdefault(key, []).append((row["question"], answers))
    return [
        Reading(name, language, group, " ".join(context.split()), tuple(questions))
        for (name, language, group, context), questions in by_context.items()
    ]


def sample_of(pairs: Sequence[Pair], most: int, seed: int = 3) -> list[Pair]:
    """Draw a seeded sample of at most `most` pairs from each set and language."""
    rng = random.Random(seed)
    by_set: dict[tuple[str, str], list[Pair]] = defaultdict(list)
    for pair in pairs:
        by_set[pair.name, pair.language].append(pair)
    return [p for group in by_set.values() for p in rng.sample(group, min(most, len(group)))]


def write_pairs(path: Path, seen: Iterable[Pair], dev: Iterable[Pair]) -> None:
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
    labelled, dev, readings = labelled_pairs(options.shared, options.collected)
    constructed = list(PairMaker(labelled, readings, options.seed).make(options.constructed))
    sys.stderr.write(
        f"{len(labelled)} labelled, {len(constructed)} constructed, {len(readings)} readings\n"
    )
    write_pairs(options.out, [*labelled, *constructed], sample_of(dev, SHOWN_OF_A_SET))
    return 0


if __name__ == "__main__":
    sys.exit(main())
