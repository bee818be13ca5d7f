"""Sets of premise and hypothesis: entailment as linguists ask it, mostly of one sentence each.

Reads files that hold one JSON object: rows by their keys, each with the line it begins at.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from core.errors import InputError
from core.evaluation.files import read_text
from core.evaluation.gold import GoldRow, Rule
from core.evaluation.sets.pairs import LETTERS, TABLES, THREE, Columns, PairLoader
from core.exchange.rows import Record
from core.records import Label

DECODER = json.JSONDecoder()


def keyed(path: Path) -> Iterator[tuple[str, Record]]:
    """(key, object) of `{"key": {…}, …}`.

    Raises:
        InputError: it is no such file, or it is cut off.
    """
    text = read_text(path)
    return _scanned(text, path, _after(text, 0, "{", path, 1), "}")


def listed_under(path: Path, name: str) -> Iterator[Record]:
    """The objects of the list in `{"name": […]}`.

    Raises:
        InputError: it is no such file, or it is cut off.
    """
    text = read_text(path)
    key, end = _value(text, _after(text, 0, "{", path, 1), path, 1)
    start = _after(text, end, ":", path, 1)
    if key != name or text[start : start + 1] != "[":
        raise InputError(f"{path}, line 1: expected a JSON list called {name}, found {key!r}.")
    first = _space(text, start + 1)
    return (record for _, record in _scanned(text, path, first, "]"))


def _scanned(text: str, path: Path, here: int, close: str) -> Iterator[tuple[str, Record]]:
    """The objects up to the closing bracket; with their keys where it closes an object."""
    line, seen, key = 1, 0, ""
    while text[here : here + 1] != close:
        line, seen = line + text.count("\n", seen, here), here
        if close == "}":
            name, end = _value(text, here, path, line)
            key, here = str(name), _after(text, end, ":", path, line)
        value, end = _value(text, here, path, line)
        if not isinstance(value, dict):
            raise InputError(f"{path}, line {line}: expected a JSON object, found another kind.")
        yield key, Record(value, str(path), line)
        here = _space(text, end)
        if text[here : here + 1] != close:
            here = _after(text, here, ",", path, line)


def _after(text: str, place: int, sign: str, path: Path, line: int) -> int:
    """The place of what follows the sign, which must come next."""
    place = _space(text, place)
    if text[place : place + 1] != sign:
        found = text[place : place + 20] or "the end of the file"
        raise InputError(f"{path}, line {line}: expected “{sign}”, found: {found!r}.")
    return _space(text, place + 1)


def _space(text: str, place: int) -> int:
    while text[place : place + 1].isspace():
        place += 1
    return place


def _value(text: str, place: int, path: Path, line: int) -> tuple[object, int]:
    try:
        return DECODER.raw_decode(text, place)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}, line {line}: expected JSON, found: {error}.") from error


SENTENCES = Columns(("sentence2",), ("sentence1",), ("gold_label", "label"))
PREMISES = Columns(("hypothesis", "Hypothesis"), ("premise", "Premise"), ("label", "Label"))
LAST = Columns(("sentence2", "Sentence2"), ("sentence1",), ("label", "entailment"))
ANLI = Columns(("statement", "hypothesis"), ("context", "premise"), ("gold_label", "label"))
SICK = Columns(
    ("sentence_B",),
    ("sentence_A",),
    ("entailment_label", "entailment_judgment"),
    group=("sentence_A_original",),
)
HELP = Columns(("new_sentence",), ("ori_sentence",), ("gold_label",), group=("filename",))
TWO: Mapping[str, Label | None] = {"entailment": "supported", "not_entailment": "unclear"}
NOT_ENTAILED: Mapping[str, Label | None] = {"entailment": "supported", "neutral": "unclear"}
OCNLI: Mapping[str, Label | None] = {**THREE, "-": None}
INSIDE = ("*/*.jsonl",)
SWAPS = "data/dataset.jsonl"


def _help(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """The tokens of its treebank join words with a tilde."""
    for row in PairLoader(HELP, NOT_ENTAILED)(folder, task, split):
        texts = tuple(text.replace("~", " ") for text in row.documents)
        yield replace(row, response=row.response.replace("~", " "), documents=texts)


_pair = partial(Rule, unit="a sentence pair", group="premise")
_tied = partial(Rule, unit="a sentence pair", group="pairs that share a sentence")

SENTENCE_PAIRS_RULES = (
    _pair(
        "entailment_anli",
        PairLoader(ANLI, LETTERS),
        labels=LETTERS,
        licence="CC BY-NC 4.0",
        permits="non-commercial",
        note="all three rounds; a split names one file, such as ANLI_analysis_r1_dev",
    ),
    _pair(
        "entailment_breaking_nli",
        PairLoader(SENTENCES, THREE, ("*.zip", "*.jsonl"), member=SWAPS),
        labels=THREE,
        licence="CC BY-SA 4.0",
        permits="yes",
        note="read inside its zip",
    ),
    _tied(
        "entailment_cad_nli",
        PairLoader(SENTENCES, THREE, is_tied=True),
        labels=THREE,
        licence="Apache-2.0",
        permits="yes",
        note="people edited premise or hypothesis of one pair, so both tie",
    ),
    _pair(
        "entailment_conjnli",
        PairLoader(PREMISES, THREE),
        labels=THREE,
        licence="MIT",
        permits="yes",
        note="labels of the training file are automatic",
    ),
    _pair(
        "entailment_control",
        PairLoader(PREMISES, LETTERS),
        labels=LETTERS,
        licence="not stated",
        permits="not stated",
        note="26 of the 736 hypotheses stand in more than one part of a split",
    ),
    _pair(
        "entailment_help",
        _help,
        labels=NOT_ENTAILED,
        licence="CC BY-SA 4.0",
        permits="yes",
        group="file of the treebank, which holds a pair in both directions",
        note="neutral covers all that is not entailed: the evidence does not decide",
    ),
    _pair(
        "entailment_lingnli",
        PairLoader(PREMISES, THREE, INSIDE),
        labels=THREE,
        licence="not stated",
        permits="not stated",
        note="gold label only; train_* is the split train, val_* the split val",
    ),
    _tied(
        "entailment_med",
        PairLoader(SENTENCES, NOT_ENTAILED, is_tied=True),
        labels=NOT_ENTAILED,
        licence="CC BY-SA 4.0",
        permits="yes",
        note="neutral covers all that is not entailed: the evidence does not decide",
    ),
    _pair(
        "entailment_ocnli",
        PairLoader(SENTENCES, OCNLI, TABLES, "zh"),
        labels=OCNLI,
        licence="CC BY-NC 2.0",
        permits="non-commercial",
        note="“-”, no agreement, is left out",
    ),
    _pair(
        "entailment_rte",
        PairLoader(LAST, TWO),
        labels=TWO,
        licence="not stated",
        permits="not stated",
        note="not_entailment mixes contradicted and undecided: the evidence does not decide; "
        "133 of the 2,339 hypotheses stand in more than one part of a split",
    ),
    _pair(
        "entailment_sanli",
        PairLoader(PREMISES, LETTERS, INSIDE),
        labels=LETTERS,
        licence="not stated (premises: CC BY-SA 3.0)",
        permits="not stated",
    ),
    _pair(
        "entailment_sick",
        PairLoader(SICK, THREE),
        labels=THREE,
        licence="not stated (SICK: CC BY-NC-SA)",
        permits="non-commercial",
        group="sentence that the premise was made from",
    ),
)
