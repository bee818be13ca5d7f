"""Load claims with textual or visual evidence: fact checking, inference, dialogue.

Most sets are tables or JSON of evidence, claim and label, with columns named in `pairs.csv`; the
others have a loader of their own.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from core.evaluation.dataset_files import (
    GoldRow,
    GoldSpan,
    Loader,
    build_answer_row,
    build_row_id,
    find_data_files,
    iter_rows,
    load_label_meanings,
    parse_json_lines,
    read_records,
    read_zip_member,
)
from core.exchange.rows import FileRecord, normalize_word
from core.schema.records import Label

QUESTION_KEY_FIELDS = ("category", "subcategory", "set_id", "figure_id", "question_id")
QUESTION_FILES = ("HallusionBench.json*",)
IMAGE_ENDINGS = ("", ".jpg", ".jpeg", ".png", ".webp")
COMMENTS_MARKER = "comments"  # in the names of tables of comments, which are not posts
YES_OR_NO_PATTERN = re.compile(r"\s*(yes|no)\b", re.IGNORECASE)
LABEL_BY_TRUE_FLAG: Mapping[str, Label] = {"1": "supported", "0": "hallucinated"}
JSON_FILES, TABLE_FILES = ("*.json", "*.jsonl"), ("*.jsonl", "*.json", "*.tsv", "*.csv")
TREEBANK_BRACKETS = {
    "-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}",
}  # fmt: skip
FEVER_LABELS, AVERITEC_LABELS, WICE_LABELS = map(
    load_label_meanings, ("fever", "entailment_averitec", "entailment_wice")
)
CLIMATE_FEVER_LABELS = load_label_meanings("entailment_climate_fever", "claims")
CROSS_ANNOTATION_LABELS = load_label_meanings("entailment_q2", "cross_annotation")


def list_image_folders(folder: Path) -> tuple[Path, ...]:
    """Return the set's folder and its subfolders, which may hold the images."""
    inside = sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    return (folder, *inside)


def find_image(folders: Sequence[Path], name: str) -> tuple[Path, ...]:
    """Return the image of this name or id in one of the folders, or ().

    The name comes from a row, so an image outside of the set's folder, the first one, is refused.
    """
    if not name.strip() or "\0" in name:
        return ()
    root = folders[0].resolve()
    for inside in folders:
        for ending in IMAGE_ENDINGS:
            path = (inside / f"{name}{ending}").resolve()
            if path.is_relative_to(root) and path.is_file():
                return (path,)
    return ()


def load_hallusionbench(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """Yield “Yes” and “No” per question; the task `text` has those that need no image."""
    images = list_image_folders(folder)
    for key, record in iter_rows(folder, QUESTION_FILES, split):
        if task == "all" or normalize_word(record.fields.get("visual_input")) == "0":
            right = _get_right_answer(record)
            for answer in ("Yes", "No"):
                row_key = f"{key}:{answer.lower()}"
                yield _build_image_row(record, images, row_key, answer, answer == right)


def load_hallusionbench_recorded(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """Yield one model's answers; an answer that begins with neither yes nor no is left out."""
    gold = {
        _get_key(record): _get_right_answer(record)
        for _, record in iter_rows(folder, QUESTION_FILES)
    }
    images = list_image_folders(folder)
    for key, record in iter_rows(folder, ("HallusionBench_result*.json*",), split):
        answer, right = record.spare("model_prediction"), gold.get(_get_key(record))
        match = YES_OR_NO_PATTERN.match(answer)
        if match and right:
            yield _build_image_row(record, images, key, answer, match[1].title() == right)


def _get_key(record: FileRecord) -> tuple[str, ...]:
    return tuple(normalize_word(record.fields.get(name)) for name in QUESTION_KEY_FIELDS)


def _get_right_answer(record: FileRecord) -> str:
    value = normalize_word(record.fields.get("gt_answer"))
    if value not in ("0", "1"):
        raise record.broken("gt_answer to be 1 (yes) or 0 (no)", value)
    return "Yes" if value == "1" else "No"


def _build_image_row(
    record: FileRecord, images: Sequence[Path], key: str, answer: str, is_right: bool
) -> GoldRow:
    return GoldRow(
        key,
        record.place,
        answer,
        "supported" if is_right else "hallucinated",
        "/".join(_get_key(record)[:3]),
        question=record.text("question"),
        images=find_image(images, record.spare("filename")),
    )


def load_bingo(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """Yield a question on an image with its reference answer, without a label."""
    images = list_image_folders(folder)
    for key, record in iter_rows(folder, ("annotation*.jsonl",), split):
        question, answer = record.text("question"), record.spare("ground truth")
        if answer:
            image = find_image(images, record.text("image"))
            yield build_answer_row(key, record, question, answer, None, images=image)


def load_fakeddit(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """Yield titles of posts with their image: does the title say what the image shows?"""
    images = list_image_folders(folder)
    tables = find_data_files(folder, ("*.tsv",), split)
    for path in (one for one in tables if COMMENTS_MARKER not in one.name):
        for record in read_records(path):
            title = record.spare("clean_title", "title")
            if title:
                key = f"{build_row_id(path, folder, record.line)}:{record.text('id')}"
                label = record.chosen(LABEL_BY_TRUE_FLAG, "2_way_label")
                image = find_image(images, record.text("id"))
                yield GoldRow(key, record.place, title, label, title, images=image)


PICTURE_LOADERS: Mapping[str, Loader] = {
    "hallusionbench": load_hallusionbench,
    "hallusionbench/recorded": load_hallusionbench_recorded,
    "bingo": load_bingo,
    "fakeddit": load_fakeddit,
}


@dataclass(frozen=True)
class PairLoader:
    """A loader of one row per record of tables or JSON, as a line of `pairs.csv` describes its set.

    If a field has several names, the first that a row has is read. `files` are patterns, `member`
    is the file to read inside each zip; rows that are `tied` share a group (see `tied`). `group`
    falls back to the evidence, or to the claim if the set has none.
    """

    set: str
    claim: str
    evidence: str
    label: str
    question: str
    group: str
    files: str
    language: str
    member: str
    tied: str

    def __call__(self, folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
        """Return the set's rows; the task is ignored, since each loader is for one task."""
        paths = find_data_files(folder, self.files.split() or TABLE_FILES, split)
        rows = (row for path in paths for row in self._load_rows(path, folder))
        return tie_groups(rows) if self.tied else rows

    def _load_rows(self, path: Path, folder: Path) -> Iterator[GoldRow]:
        labels, evidence = load_label_meanings(self.set), self.evidence.split()
        question_names = self.question.split()
        if path.suffix == ".zip":
            found_records = parse_json_lines(
                read_zip_member(path, self.member), f"{path}/{self.member}"
            )
        else:
            found_records = read_records(path)
        for record in found_records:
            texts = (_get_evidence(record, *evidence),) if evidence else ()
            claim = _clean_text(record.text(*self.claim.split()))
            label = record.chosen(labels, *self.label.split())
            group = record.spare(*self.group.split()) or (texts or (claim,))[0]
            if label is not None:
                key, question = (
                    build_row_id(path, folder, record.line),
                    record.spare(*question_names),
                )
                yield GoldRow(
                    key, record.place, claim, label, group, self.language, question, texts
                )


with (Path(__file__).parent / "pairs.csv").open(encoding="utf-8", newline="") as file:
    PAIR_LOADERS = {line["set"]: PairLoader(**line) for line in csv.DictReader(file)}


def _get_evidence(record: FileRecord, *names: str) -> str:
    """Return the evidence, which is a text or a list of sentences."""
    if any(isinstance(record.fields.get(name), list) for name in names):
        return _clean_text(" ".join(record.texts(*names)))
    return _clean_text(record.text(*names))


def _clean_text(text: str) -> str:
    """Return the text stripped, with treebank tokens replaced by brackets."""
    for token, bracket in TREEBANK_BRACKETS.items():
        text = text.replace(token, bracket)
    return text.strip()


def tie_groups(rows: Iterable[GoldRow]) -> Iterator[GoldRow]:
    """Give rows the same group if they share evidence or claim, directly or through other rows.

    Otherwise minimal edits of one sentence pair could be on both sides of a split. The group is the
    alphabetically first of the connected texts.
    """
    parents: dict[str, str] = {}

    def root(text: str) -> str:
        while (parent := parents.setdefault(text, text)) != text:
            parents[text] = parents.get(parent, parent)
            text = parent
        return text

    all_rows = list(rows)
    for row in all_rows:
        first, second = sorted((root(row.group), root(row.response)))
        parents[second] = first
    return (replace(row, group=root(row.group)) for row in all_rows)


def _load_averitec(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    for key, record in iter_rows(folder, JSON_FILES, split):
        claim, label = _clean_text(record.text("claim")), record.chosen(AVERITEC_LABELS, "label")
        texts = tuple(_join_question(question) for question in record.records("questions"))
        yield GoldRow(key, record.place, claim, label, claim, documents=texts)


def _join_question(question: FileRecord) -> str:
    parts = [question.text("question")]
    for answer in question.records("answers"):
        parts += [answer.text("answer"), answer.spare("boolean_explanation")]
    return " ".join(part.strip() for part in parts if part.strip())


def _load_climate_fever(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    for key, record in iter_rows(folder, ("*.jsonl",), split):
        claim, items = _clean_text(record.text("claim")), record.records("evidences")
        texts = tuple(_clean_text(item.text("evidence")) for item in items)
        if task == "claims":
            label = record.chosen(CLIMATE_FEVER_LABELS, "claim_label")
            yield GoldRow(key, record.place, claim, label, claim, documents=texts)
            continue
        for number, (item, text) in enumerate(zip(items, texts, strict=True)):
            label = item.chosen(FEVER_LABELS, "evidence_label")
            item_key = f"{key}:{number}"
            yield GoldRow(item_key, record.place, claim, label, claim, documents=(text,))


def _load_fool_me_twice(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """Yield claims with the deciding sentences (`gold`, one text) or with search results."""
    for key, record in iter_rows(folder, ("*.jsonl",), split):
        gold = _get_texts(record, "gold_evidence")
        is_retrieved = task == "retrieved"
        texts = _get_texts(record, "retrieved_evidence") if is_retrieved else (" ".join(gold),)
        yield GoldRow(
            key,
            record.place,
            _clean_text(record.text("text", "claim")),
            record.chosen(FEVER_LABELS, "label"),
            record.spare("wikipedia_page") or " ".join(gold),
            documents=tuple(text for text in texts if text),
        )


def _get_texts(record: FileRecord, name: str) -> tuple[str, ...]:
    return tuple(_clean_text(item.text("text")) for item in record.records(name))


def _load_help(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    for row in PAIR_LOADERS["entailment_help"](folder, task, split):
        texts = tuple(text.replace("~", " ") for text in row.documents)
        yield replace(row, response=row.response.replace("~", " "), documents=texts)


def _load_dialfact(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    for key, record in iter_rows(folder, ("*.jsonl",), split):
        response, turns = _clean_text(record.text("response")), record.texts("context")
        yield GoldRow(
            key,
            record.place,
            response,
            record.chosen(FEVER_LABELS, "response_label"),
            response,
            question=turns[-1].strip() if turns else "",
            documents=tuple(_iter_titled_evidence(record)),
        )


def _iter_titled_evidence(record: FileRecord) -> Iterator[str]:
    for piece in record.items("evidence_list"):
        if not isinstance(piece, list) or len(piece) < 3 or not isinstance(piece[2], str):
            raise record.broken("evidence_list to hold lists of title, address, sentence", piece)
        if piece[2].strip():
            yield _clean_text(f"{piece[0]}: {piece[2]}")


def _load_q2(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    for key, record in iter_rows(folder, ("*_consistent.csv", "*_inconsistent.csv"), split):
        label: Label = "hallucinated" if "_inconsistent" in key else "supported"
        yield _build_dialogue_row(record, key, "response", label)


def _load_q2_cross_annotation(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    for key, record in iter_rows(folder, ("cross_annotation*.csv",), split):
        for number, system in enumerate(("dodeca", "memnet")):
            label = record.chosen(CROSS_ANNOTATION_LABELS, f"{system}_label")
            yield _build_dialogue_row(record, f"{key}:{number}", f"{system}_response", label)


def _build_dialogue_row(
    record: FileRecord, key: str, response: str, label: Label | None
) -> GoldRow:
    text, knowledge = _clean_text(record.text(response)), _clean_text(record.text("knowledge"))
    question = record.spare("message")
    return GoldRow(
        key, record.place, text, label, knowledge, question=question, documents=(knowledge,)
    )


def _load_wice(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """Yield claims with oracle chunks, if present (`claims`), or with whole pages (`pages`).

    `tokens` marks the words of a claim that its page does not support.
    """
    pattern = "claim_*.jsonl"
    if task == "tokens":
        pattern = "non_supported_tokens_*.jsonl"
    elif task == "claims" and any(folder.glob("oracle_chunks_claim_*")):
        pattern = "oracle_chunks_claim_*.jsonl"
    for key, record in iter_rows(folder, (pattern,), split):
        claim = record.text("claim")
        yield GoldRow(
            key,
            record.place,
            claim if task == "tokens" else _clean_text(claim),
            record.chosen(WICE_LABELS, "label"),
            record.inner("meta").spare("claim_title") or _clean_text(claim),
            documents=("\n".join(record.texts("evidence")),),
            spans=_find_unsupported_spans(record) if task == "tokens" else None,
        )


def _find_unsupported_spans(record: FileRecord) -> tuple[GoldSpan, ...]:
    """Return the spans of the marked tokens in the claim; adjacent ones are joined."""
    claim, tokens = record.text("claim"), record.texts("claim_tokens")
    marks = record.items("non_supported_spans")
    if len(marks) != len(tokens) or not all(isinstance(mark, bool) for mark in marks):
        raise record.broken("non_supported_spans with one true or false for each token")
    spans: list[GoldSpan] = []
    end, was_marked = 0, False
    for token, mark in zip(tokens, marks, strict=True):
        start = claim.find(token, end)
        if start < 0 or claim[end:start].strip():
            raise record.broken("claim_tokens to follow each other in the claim", token)
        end = start + len(token)
        if mark:
            span_start = spans.pop().start if was_marked else start
            spans.append(GoldSpan(span_start, end))
        was_marked = bool(mark)
    return tuple(spans)


CLAIM_LOADERS: Mapping[str, Loader] = {
    **PAIR_LOADERS,
    "entailment_averitec": _load_averitec,
    "entailment_climate_fever": _load_climate_fever,
    "entailment_fm2": _load_fool_me_twice,
    "entailment_help": _load_help,
    "entailment_dialfact": _load_dialfact,
    "entailment_q2/responses": _load_q2,
    "entailment_q2/cross_annotation": _load_q2_cross_annotation,
    "entailment_wice": _load_wice,
}
