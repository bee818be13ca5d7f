"""Loads labelled rows from folders of public data as they lie; `RULES` says what each set means.

`python -m core.evaluation.datasets` prints the rules as one table. A set's name is its folder's
name. Label words become `supported`, `hallucinated` or `unclear` in the loaders and nowhere else.
No row is kept in the project: the folder is given.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from core.errors import InputError
from core.evaluation.gold import PARTS, GoldRow, Rule, as_table, part_of
from core.evaluation.sets.answers import ANSWERS_RULES
from core.evaluation.sets.claims import CLAIMS_RULES
from core.evaluation.sets.factcheck import FACTCHECK_RULES
from core.evaluation.sets.facts import FACTS_RULES
from core.evaluation.sets.haluagent import HALUAGENT_RULES, HALUEVAL_RULES, UNLABELLED_RULES
from core.evaluation.sets.marked_answers import MARKED_ANSWERS_RULES, MUSHROOM_RULES
from core.evaluation.sets.realmistake import REALMISTAKE_RULES
from core.evaluation.sets.sentence_pairs import SENTENCE_PAIRS_RULES
from core.evaluation.sets.summaries import PICTURES_RULES, SUMMARIES_RULES
from core.evaluation.sets.written_answers import WRITTEN_ANSWERS_RULES

# One line for each task of each set; a set's first task is the one taken where none is named.
RULES: tuple[Rule, ...] = (
    *CLAIMS_RULES,
    *SENTENCE_PAIRS_RULES,
    *WRITTEN_ANSWERS_RULES,
    *MUSHROOM_RULES,
    *HALUEVAL_RULES,
    *SUMMARIES_RULES,
    *PICTURES_RULES,
    *ANSWERS_RULES,
    *FACTS_RULES,
    *FACTCHECK_RULES,
    *HALUAGENT_RULES,
    *REALMISTAKE_RULES,
    *MARKED_ANSWERS_RULES,
    *UNLABELLED_RULES,
)
NAMES: tuple[str, ...] = tuple(sorted({rule.name for rule in RULES}))


def load(
    name: str, folder: Path, *, task: str | None = None, split: str | None = None
) -> Iterator[GoldRow]:
    """The rows of a set, lazily; `folder` is the one that holds the sets' folders.

    `split` is dev20, train80, train70 or calibration10 (by hash of the group), a split that files
    are named after, or a file's name; without it every file of the set is read.

    Raises:
        InputError: set or task is unknown, files are missing, or (while reading) a row is broken.
    """
    rule = rule_of(name, task)
    if not folder.is_dir():
        raise InputError(
            f"Expected a folder that holds the data sets' folders at {folder}, found none."
        )
    parts = PARTS.get(split or "")
    if parts is None:
        return rule.loader(folder / name, rule.task, split)
    rows = rule.loader(folder / name, rule.task, None)
    return (row for row in rows if part_of(row.group) in parts)


def tasks_of(name: str) -> tuple[str, ...]:
    """The tasks of a set, the one taken by default first; ("",) where there is nothing to choose.

    Raises:
        InputError: the set is unknown.
    """
    tasks = tuple(rule.task for rule in RULES if rule.name == name)
    if not tasks:
        raise InputError(f"Expected a data set of {', '.join(NAMES)}; found “{name}”.")
    return tasks


def rule_of(name: str, task: str | None = None) -> Rule:
    """The rule of a set and a task.

    Raises:
        InputError: there is no such set, or it has no such task.
    """
    tasks = tasks_of(name)
    wanted = tasks[0] if task is None else task
    for rule in RULES:
        if (rule.name, rule.task) == (name, wanted):
            return rule
    known = ", ".join(one for one in tasks if one) or "none: leave the task out"
    raise InputError(f"Expected a task of {name} ({known}); found “{task}”.")


if __name__ == "__main__":
    sys.stdout.write(as_table(RULES))
