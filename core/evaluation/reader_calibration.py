"""Finds what the evidence model's scores are worth with a reader that people brought.

On labelled rows of public sets, or on what people of this home decided of their own cases.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from core.baseline.assessment import Assessor
from core.baseline.onnx_reader import OnnxReader
from core.baseline.readers import CALIBRATION, require_reader
from core.errors import InputError
from core.evaluation.datasets import load
from core.evaluation.evaluate import sampled
from core.evaluation.gold import part_of
from core.learning.evidence_calibration import (
    HALLUCINATED_ERROR,
    SUPPORTED_ERROR,
    answered_unseen,
    calibrations,
    cross_calibrated,
    figures,
    figures_by_material,
    limits,
    reliability_by_material,
    scored_statements,
)
from core.learning.measured_rows import EvidenceRow, MeasuredRow, measured_rows
from core.learning.overview import taught
from core.store import Store

FEWEST_ROWS, FEWEST_OF_LABEL = 60, 20
TELL_EVERY = 50
Say = Callable[[str], None]


def rows_of_sets(names: Sequence[str], folder: Path, limit: int) -> list[EvidenceRow]:
    """At most so many labelled rows with documents of each set; a name may be SET or SET:TASK.

    None of the part `dev20`, on which the reader can then be measured.

    Raises:
        InputError: there is no such set, or its files are missing.
    """
    found = []
    for name in names:
        dataset, _, task = name.partition(":")
        rows = [
            row
            for row in load(dataset, folder, task=task or None)
            if row.label and row.documents and part_of(row.group) != "dev"
        ]
        found += [
            EvidenceRow(
                name, row.group, row.language, row.response, row.question, row.documents,
                row.label != "supported",
            )
            for row in sampled(rows, limit, 0)
        ]  # fmt: skip
    return found


def rows_decided_here(store: Store) -> Iterator[EvidenceRow]:
    """The cases of this home that people decided, with the text of their sources."""
    for one in taught(store):
        case = store.cases.get(one.case_id)
        if case is None or one.row.label == "unclear":
            continue
        sources = (store.readings.get(i, "") for i in (*case.documents, *case.images))
        texts = tuple(source.text for source in sources if source and source.text.strip())
        if texts:
            yield EvidenceRow(
                "decided here", case.id, case.language, case.response, case.question, texts,
                one.row.label == "hallucinated",
            )  # fmt: skip


def calibrate_reader(
    home: Path, name: str, rows: Sequence[EvidenceRow], say: Say
) -> dict[str, Any]:
    """Measure the rows with the reader, fit, and keep the calibration in the reader's folder.

    Raises:
        InputError: it is the reader that ships, or there are too few rows.
        ConfigError: the reader cannot be loaded.
    """
    folder = require_reader(home, name)
    if folder is None:
        raise InputError("Expected an imported reader, found the one that ships: it is calibrated.")
    _require_enough([row.wrong for row in rows])
    assessor = Assessor(OnnxReader(folder))
    measured: list[MeasuredRow] = []
    for one in measured_rows(rows, assessor, home / "readers" / name):
        measured.append(one)
        if len(measured) % TELL_EVERY == 0:
            say(f"{len(measured):,} of {len(rows):,} rows read")
    scored = scored_statements(measured, assessor.model)
    _require_enough(scored.wrong.tolist())
    told = calibrations(scored)
    p = cross_calibrated(scored, scored)
    low, high = limits(scored.wrong, p)
    found = {
        "calibration": told,
        "limits": {
            "supported_below": low,
            "hallucinated_from": high,
            "supported_error": SUPPORTED_ERROR,
            "hallucinated_error": HALLUCINATED_ERROR,
        },
        "rows": dict(Counter(row.name for row in rows)),
        "measured": {
            "all": figures(scored.wrong, p),
            "answered": answered_unseen(scored, p),
            "by_material": figures_by_material(scored, p),
            "reliability": reliability_by_material(scored, p, low, high),
        },
    }
    text = json.dumps(found, indent=1, ensure_ascii=False) + "\n"
    (folder / CALIBRATION).write_text(text, encoding="utf-8")
    return found


def _require_enough(rows: Sequence[bool]) -> None:
    """`rows`: of each whether it is wrong; wrong responses of several statements tell nothing."""
    wrong = sum(rows)
    if len(rows) < FEWEST_ROWS or min(wrong, len(rows) - wrong) < FEWEST_OF_LABEL:
        raise InputError(
            f"Expected at least {FEWEST_ROWS} labelled rows with documents, {FEWEST_OF_LABEL} of "
            f"each label; found {wrong} hallucinated and {len(rows) - wrong} supported. Give "
            "--dataset and --path, or decide more cases."
        )
