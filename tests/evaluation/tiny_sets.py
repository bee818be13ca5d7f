"""Small data sets of our own writing, laid out as the public ones lie in their folders."""

from __future__ import annotations

import gzip
import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

# (evidence, a claim that it supports, a claim that it contradicts)
FACTS = [
    ("The Nordre lighthouse is 38 m high.", "It is 38 m high.", "The lighthouse is 48 m high."),
    ("The bridge was built in 1877.", "The bridge was built in 1877.", "It was built in 1897."),
    ("The island has two wells.", "The island has two wells.", "The island has three wells."),
    ("Seals breed in the north.", "Seals breed in the north.", "Seals breed in the south."),
    ("Olga Strand lived there until 1956.", "Olga Strand lived there.", "Maria Lund lived there."),
    ("The path is closed.", "The path is closed.", "The path is open."),
    ("The ferry takes 40 cars.", "The ferry takes 40 cars.", "The ferry takes 60 cars."),
    ("The school has nine rooms.", "The school has nine rooms.", "The school has seven rooms."),
]  # fmt: skip


def write_sets(folder: Path) -> None:
    """All four sets, one row for each claim."""
    for write in (_fever_symmetric, _fool_me_twice, _breaking_nli, _cad_nli):
        write(folder)


def _fever_symmetric(folder: Path) -> None:
    rows = [
        {"evidence": text, "claim": claim, "gold_label": label}
        for text, right, wrong in FACTS
        for claim, label in ((right, "SUPPORTS"), (wrong, "REFUTES"), (right, "NOT ENOUGH INFO"))
    ]
    write_lines(folder / "fever_symmetric" / "fever_symmetric_dev.jsonl.gz", rows)


def _fool_me_twice(folder: Path) -> None:
    rows = [
        {"text": claim, "label": label, "gold_evidence": [{"text": text}, {"text": "So it is."}]}
        for text, right, wrong in FACTS
        for claim, label in ((right, "SUPPORTS"), (wrong, "REFUTES"))
    ]
    write_lines(folder / "entailment_fm2" / "dev.jsonl.gz", rows)


def _breaking_nli(folder: Path) -> None:
    rows = [
        {"sentence1": text, "sentence2": claim, "gold_label": label}
        for text, right, wrong in FACTS
        for claim, label in ((right, "entailment"), (wrong, "contradiction"), (text, "neutral"))
    ]
    path = folder / "entailment_breaking_nli" / "breaking_nli_dataset.zip"
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data/dataset.jsonl", "\n".join(json.dumps(row) for row in rows))


def _cad_nli(folder: Path) -> None:
    lines = ["sentence1\tsentence2\tgold_label"]
    for text, right, wrong in FACTS:
        lines += [f"{text}\t{right}\tentailment", f'{text}\tSome say "{wrong}"\tcontradiction']
    path = folder / "entailment_cad_nli" / "dev.tsv"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines), encoding="utf-8")


def write_lines(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    """A gzipped file with one JSON object a line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress("\n".join(json.dumps(row) for row in rows).encode()))
