"""What a public set's rows mean: label rule, unit, group key and licence, beside the loader."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from core.evaluation.gold import GoldRow
from core.records import Label

# May the stated licence's terms be met by weights trained on the set and shipped for any use?
Permits = Literal["yes", "not stated", "non-commercial"]
# (the set's own folder, task, split of files or None for all) -> rows, lazily.
Loader = Callable[[Path, str, str | None], Iterator[GoldRow]]


@dataclass(frozen=True)
class Rule:
    """One task of one set. `task` is "" where the set has only one.

    `labels` maps the set's own words to ours; None there means that such rows are left out.
    `group` names the text that ties rows together. `note` says what else had to be decided.
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
