"""What a public set's rows mean: label rule, unit, group key and licence, beside the loader."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from core.evaluation.gold import GoldRow
from core.records import Label

# May the stated licence's terms be met by weights trained on the set and shipped for any use?
# "copyleft": perhaps only if the whole were shipped under the same licence, which ours is not.
Permits = Literal["yes", "not stated", "non-commercial", "copyleft"]
# (the set's own folder, task, split of files or None for all) -> rows, lazily.
Loader = Callable[[Path, str, str | None], Iterator[GoldRow]]


@dataclass(frozen=True)
class Rule:
    """One task of one set. `task` is "" where the set has only one.

    `labels` maps the set's own words to ours; None there means that such rows are left out.
    `group` names the text that ties rows together. `note` says what else had to be decided.
    `is_recorded`: its rows are the verdicts of another detector, which are measured themselves.
    """

    name: str
    loader: Loader
    unit: str
    group: str
    licence: str
    permits: Permits
    task: str = ""
    labels: Mapping[str, Label | None] = field(default_factory=dict)
    note: str = ""
    is_recorded: bool = False


COLUMNS = ("set", "task", "unit", "labels", "group", "licence", "may be shipped", "note")


def as_table(rules: Iterable[Rule]) -> str:
    """The rules as one Markdown table, sorted by set; the first task is the one by default."""
    lines = [_line(COLUMNS), _line("---" for _ in COLUMNS)]
    for rule in sorted(rules, key=lambda rule: rule.name):
        words = ", ".join(f"{word} → {label or 'left out'}" for word, label in rule.labels.items())
        cells = (rule.name, rule.task, rule.unit, words, rule.group, rule.licence)
        lines.append(_line((*cells, rule.permits, rule.note)))
    return "\n".join(lines) + "\n"


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
