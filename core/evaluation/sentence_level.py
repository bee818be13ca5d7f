"""Claims of an answer audited as one text: `python -m core.evaluation.sentence_level`.

As HaluAgent has it (3.1, table 4): every claim of FacTool counts as a sentence, all claims of an
answer are put together as the response, and each gets the label that the audit holds of it in the
end. A claim left `unclear` is right nowhere (`core/evaluation/metrics.py`). Beside it stand the
answers that need nothing read. The built-in engine audits; nothing is asked of the web.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from core.concurrency import Stop
from core.config import home_from
from core.errors import ReviewError
from core.evaluation.command_line import plainly
from core.evaluation.datasets import load
from core.evaluation.engine_runs import Engine, Tell, engine_of
from core.evaluation.evaluate import Measured, answers, counted_rows, figures_of
from core.evaluation.gold import GoldRow
from core.evaluation.outcomes import FAILED, Outcomes, Prediction
from core.evaluation.sets.factcheck import CLAIM_FILES
from core.events import AUDIT
from core.learning.bench import BY, Material, opened_bench
from core.llm.keys import Keys
from core.pipeline.jobs import warm_up
from core.pipeline.run_factory import Payer, staffed
from core.progress import Progress
from core.records import Label, Plan, Run
from core.store import open_store

DATASET = "haluagent"
MARKS = "mark_all"  # a trivial answer to which words are wrong, which is not asked here
BREAK = "\n"  # between claims, which seldom end like sentences
Place = tuple[int, int]


def measured(rows: Sequence[GoldRow], engine: Engine, tell: Tell) -> Measured:
    """The audit's labels of all rows, answer by answer, and what is said without reading."""
    said: dict[str, Prediction] = {}
    by_answer: dict[str, list[GoldRow]] = defaultdict(list)
    for row in rows:
        by_answer[row.place].append(row)
    warm_up(engine.home)
    with open_store(engine.home) as store, opened_bench(store.projects.settings()) as bench:
        run = Run(AUDIT, AUDIT, bench.project.id, engine.plan, "running", 0.0)
        payer = Payer(BY, engine.keys)
        staff = staffed(store, engine.home, run, payer, None, sources=bench.home)
        for done, own in enumerate(by_answer.values(), start=1):
            text, places = joined([row.response for row in own])
            material = Material(text, own[0].question, own[0].documents)
            progress = bench.check(material, staff, engine.plan, Stop())
            found = predictions(progress, places)
            said |= {row.id: one for row, one in zip(own, found, strict=True)}
            if done % 10 == 0 or done == len(by_answer):
                tell(f"{done} of {len(by_answer)} answers")
    trivial = {name: one for name, one in answers(rows).items() if name != MARKS}
    failed = sum(one.is_failure for one in said.values())
    return Measured(Outcomes(rows, [said[row.id] for row in rows]), trivial, failed)


def joined(claims: Sequence[str]) -> tuple[str, list[Place]]:
    """(the claims as one text, `[start, end)` of each in it)."""
    ends = accumulate(len(claim) + len(BREAK) for claim in claims)
    places = [
        (end - len(BREAK) - len(claim), end - len(BREAK))
        for claim, end in zip(claims, ends, strict=True)
    ]
    return BREAK.join(claims), places


def predictions(progress: Progress, places: Iterable[Place]) -> list[Prediction]:
    """What an audit holds of the words at each place in the end.

    Hallucinated where any statement there is, supported where all are; `p` is the highest there is.
    Nothing is known of them where the run did not come to its verdict.
    """
    if progress.verdict is None:
        return [Prediction("unclear", cause=FAILED) for _ in places]
    return [_predicted(progress, place) for place in places]


def _predicted(progress: Progress, place: Place) -> Prediction:
    start, end = place
    held = [
        progress.memory[number]
        for number, one in progress.statements.items()
        if one.start < end and start < one.end and number in progress.memory
    ]
    labels = {entry.label for entry in held}
    label: Label = "unclear"
    if "hallucinated" in labels:
        label = "hallucinated"
    elif labels == {"supported"}:
        label = "supported"
    p = max((entry.p for entry in held if entry.p is not None), default=None)
    return Prediction(label, p, cause="not_found_out" if label == "unclear" else "")


def result_of(task: str, path: Path, engine: Engine, seed: int, tell: Tell) -> dict[str, Any]:
    """The figures of one task, as `evaluate --json` has them.

    Raises:
        InputError: the set is missing or broken.
    """
    rows = [row for row in load(DATASET, path, task=task) if row.label is not None]
    found = measured(rows, engine, tell)
    return {
        "dataset": DATASET,
        "task": task,
        "split": None,
        "seed": seed,
        "protocol": AUDIT,
        **counted_rows(found),
        "metrics": figures_of(found.found, seed),
        "trivial": {name: figures_of(one, seed) for name, one in found.trivial.items()},
        "trivial_rows": {name: len(one.rows) for name, one in found.trivial.items()},
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the figures of each task; 0, or 2 for a folder that will not do."""
    parser = argparse.ArgumentParser(
        prog="python -m core.evaluation.sentence_level", description=__doc__
    )
    parser.add_argument("--path", type=Path, required=True, help="holds the sets' folders")
    parser.add_argument("--task", action="append", choices=tuple(CLAIM_FILES))
    parser.add_argument("--home", help="whose settings and classifier are used")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="one JSON object a task")
    given = parser.parse_args(arguments)

    def tell(words: str) -> None:
        sys.stderr.write(f"{words}\n")

    try:
        engine = engine_of(home_from(os.environ, given.home), Plan(protocol=AUDIT), Keys({}))
        for task in given.task or CLAIM_FILES:
            result = result_of(task, given.path, engine, given.seed, tell)
            words = json.dumps(result, ensure_ascii=False) + "\n" if given.json else plainly(result)
            sys.stdout.write(words)
            sys.stdout.flush()
    except ReviewError as error:
        tell(str(error))
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
