"""Load labelled rows from folders of public data in their published layout.

`sets/rules.csv` describes each set: its unit, labels, groups and licence; `python -m
core.evaluation.datasets` prints it as a table. A set's name is its folder's name. Only the loaders
map label words to `supported`, `hallucinated` or `unclear`. The project holds no rows; callers give
the folder.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from core.evaluation.dataset_files import (
    PARTS_BY_SPLIT,
    GoldRow,
    Loader,
    assign_part,
    load_rule_lines,
)
from core.evaluation.sets.answers import ANSWER_LOADERS, HALUAGENT_LOADERS
from core.evaluation.sets.claims import CLAIM_LOADERS, PICTURE_LOADERS
from core.evaluation.sets.marked_texts import MARKED_TEXT_LOADERS, REALMISTAKE_LOADERS
from core.evaluation.table import format_line, start_table
from core.runtime.errors import InputError

LOADERS: Mapping[str, Loader] = {  # by set, or by set/task
    **CLAIM_LOADERS,
    **ANSWER_LOADERS,
    **HALUAGENT_LOADERS,
    **MARKED_TEXT_LOADERS,
    **PICTURE_LOADERS,
    **REALMISTAKE_LOADERS,
}
RULE_TABLE_COLUMNS = ("set", "task", "unit", "labels", "group", "licence", "may be shipped", "note")


@dataclass(frozen=True)
class TaskRule:
    """One task of one set. `task` is "" if the set has only one.

    `labels` gives the meaning of the set's own words. `group` names the text that ties rows
    together. `permits` says if weights trained on the set may be shipped for any use; "copyleft"
    means perhaps only under the same licence, which ours is not. `is_recorded` rows are verdicts of
    another detector, which are measured themselves.
    """

    name: str
    task: str
    loader: Loader
    unit: str
    labels: str
    group: str
    licence: str
    permits: str
    note: str
    is_recorded: bool


def _iter_rules() -> Iterator[TaskRule]:
    """Yield a rule for each task of each line; semicolons separate the tasks of a line."""
    for line in load_rule_lines():
        cells = dict(line)
        name, recorded = cells.pop("set"), cells.pop("recorded")
        for task in cells.pop("task").split(";"):
            loader = LOADERS.get(f"{name}/{task}") or LOADERS[name]
            yield TaskRule(name, task, loader, is_recorded=bool(recorded), **cells)


# A set's first task is its default.
TASK_RULES: tuple[TaskRule, ...] = tuple(_iter_rules())
DATASET_NAMES: tuple[str, ...] = tuple(sorted({rule.name for rule in TASK_RULES}))


def load_dataset_rows(
    name: str, folder: Path, *, task: str | None = None, split: str | None = None
) -> Iterator[GoldRow]:
    """Return the rows of a set lazily; `folder` is the one that holds the sets' folders.

    `split` is dev20, train80, train70 or calibration10 (by hash of the group), a split that files
    are named after, or a file's name; without it every file of the set is read. Raises InputError
    if set or task is unknown, files are missing, or (while reading) a row is invalid.
    """
    rule = get_task_rule(name, task)
    if not folder.is_dir():
        raise InputError(
            f"Expected a folder that holds the data sets' folders at {folder}, found none."
        )
    parts = PARTS_BY_SPLIT.get(split or "")
    if parts is None:
        return rule.loader(folder / name, rule.task, split)
    rows = rule.loader(folder / name, rule.task, None)
    return (row for row in rows if assign_part(row.group) in parts)


def list_tasks(name: str) -> tuple[str, ...]:
    """Return the tasks of a set, the default first; ("",) if there is only one.

    Raises InputError if the set is unknown.
    """
    tasks = tuple(rule.task for rule in TASK_RULES if rule.name == name)
    if not tasks:
        raise InputError(f"Expected a data set of {', '.join(DATASET_NAMES)}; found “{name}”.")
    return tasks


def get_task_rule(name: str, task: str | None = None) -> TaskRule:
    """Return the rule of a set and a task. Raises InputError if there is no such set or task."""
    tasks = list_tasks(name)
    wanted = tasks[0] if task is None else task
    for rule in TASK_RULES:
        if (rule.name, rule.task) == (name, wanted):
            return rule
    known = ", ".join(one for one in tasks if one) or "none: leave the task out"
    raise InputError(f"Expected a task of {name} ({known}); found “{task}”.")


def format_rules_table(rules: Iterable[TaskRule]) -> str:
    """Return the rules as a Markdown table, sorted by set; a set's first task is the default."""
    lines = start_table(RULE_TABLE_COLUMNS)
    for rule in sorted(rules, key=lambda rule: rule.name):
        cells = (rule.name, rule.task, rule.unit, rule.labels, rule.group, rule.licence)
        lines.append(format_line((*cells, rule.permits, rule.note)))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(format_rules_table(TASK_RULES))
