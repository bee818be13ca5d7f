"""Claims and hypotheses against evidence, in texts and images: fact checking, inference, dialogue.

Most are tables or JSON of evidence, claim and label, whose columns `pairs.csv` names.
The others have a loader of their own.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from core.evaluation.files import (
    GoldRow,
    GoldSpan,
    Loader,
    answered,
    data_files,
    json_lines,
    meanings,
    read_member,
    records,
    row_id,
    rows_in,
)
from core.exchange.rows import Record, word
from core.schema.records import Label

KEYS = ("category", "subcategory", "set_id", "figure_id", "question_id")
QUESTIONS = ("HallusionBench.json*",)
IMAGE_ENDINGS = ("", ".jpg", ".jpeg", ".png", ".webp")
COMMENTS = "comments"  # lies in the names of tables of comments, which are no posts
YES_OR_NO = re.compile(r"\s*(yes|no)\b", re.IGNORECASE)
TRUE_IS_ONE: Mapping[str, Label] = {"1": "supported", "0": "hallucinated"}


def image_folders(folder: Path) -> tuple[Path, ...]:
    """The set's folder and those directly in it: images lie beside the table or in one of them."""
    inside = sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    return (folder, *inside)


def image_beside(folders: Sequence[Path], name: str) -> tuple[Path, ...]:
    """The image of this name or id in one of the folders; none where it is not there.

    A name comes from a row and may try to lead out of the set's folder, the first of them: such an
    image is not taken.
    """
    if not name.strip() or "\0" in name:
        return ()
    home = folders[0].resolve()
    for inside in folders:
        for ending in IMAGE_ENDINGS:
            path = (inside / f"{name}{ending}").resolve()
            if path.is_relative_to(home) and path.is_file():
                return (path,)
    return ()


def load_hallusionbench(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """Two rows a question, “Yes” and “No”; `text` takes those that need no image."""
    images = image_folders(folder)
    for own, record in rows_in(folder, QUESTIONS, split):
        if task == "all" or word(record.fields.get("visual_input")) == "0":
            right = _right_answer(record)
            for answer in ("Yes", "No"):
                yield _seen(record, images, f"{own}:{answer.lower()}", answer, answer == right)


def load_hallusionbench_recorded(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """What one model answered; an answer that begins with neither yes nor no is left out."""
    gold = {_key(record): _right_answer(record) for _, record in rows_in(folder, QUESTIONS)}
    images = image_folders(folder)
    for own, record in rows_in(folder, ("HallusionBench_result*.json*",), split):
        answer, right = record.spare("model_prediction"), gold.get(_key(record))
        said = YES_OR_NO.match(answer)
        if said and right:
            yield _seen(record, images, own, answer, said[1].title() == right)


def _key(record: Record) -> tuple[str, ...]:
    return tuple(word(record.fields.get(name)) for name in KEYS)


def _right_answer(record: Record) -> str:
    said = word(record.fields.get("gt_answer"))
    if said not in ("0", "1"):
        raise record.broken("gt_answer to be 1 (yes) or 0 (no)", said)
    return "Yes" if said == "1" else "No"


def _seen(record: Record, images: Sequence[Path], own: str, answer: str, is_right: bool) -> GoldRow:
    return GoldRow(
        own,
        record.place,
        answer,
        "supported" if is_right else "hallucinated",
        "/".join(_key(record)[:3]),
        question=record.text("question"),
        images=image_beside(images, record.spare("filename")),
    )


def load_bingo(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """A question on an image with its reference answer; nobody labelled an answer."""
    images = image_folders(folder)
    for own, record in rows_in(folder, ("annotation*.jsonl",), split):
        question, answer = record.text("question"), record.spare("ground truth")
        if answer:
            image = image_beside(images, record.text("image"))
            yield answered(own, record, question, answer, None, images=image)


def load_fakeddit(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """Titles of posts with their image: does the title say what the image shows?"""
    images = image_folders(folder)
    tables = data_files(folder, ("*.tsv",), split)
    for path in (one for one in tables if COMMENTS not in one.name):
        for record in records(path):
            title = record.spare("clean_title", "title")
            if title:
                own = f"{row_id(path, folder, record.line)}:{record.text('id')}"
                label = record.chosen(TRUE_IS_ONE, "2_way_label")
                image = image_beside(images, record.text("id"))
                yield GoldRow(own, record.place, title, label, title, images=image)


PICTURES: Mapping[str, Loader] = {
    "hallusionbench": load_hallusionbench,
    "hallusionbench/recorded": load_hallusionbench_recorded,
    "bingo": load_bingo,
    "fakeddit": load_fakeddit,
}


JSON, TABLES = ("*.json", "*.jsonl"), ("*.jsonl", "*.json", "*.tsv", "*.csv")
BRACKETS = {
    "-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}",
}  # fmt: skip
FEVER, AVERITEC, WICE = map(meanings, ("fever", "entailment_averitec", "entailment_wice"))
CLIMATE = meanings("entailment_climate_fever", "claims")
CROSSED = meanings("entailment_q2", "cross_annotation")


@dataclass(frozen=True)
class PairLoader:
    """One row a record of tables or JSON, as a line of `pairs.csv` has its set.

    Of several names of a field the first that a row has is read. `files` are patterns, `member` is
    the file to read inside each zip; rows that are `tied` share a group (see `tied`). `group` falls
    back to the evidence, and that to the claim where the set has none.
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
        """The set's rows; the task is not looked at, a loader stands for one."""
        paths = data_files(folder, self.files.split() or TABLES, split)
        rows = (row for path in paths for row in self._rows(path, folder))
        return tied(rows) if self.tied else rows

    def _rows(self, path: Path, folder: Path) -> Iterator[GoldRow]:
        labels, evidence = meanings(self.set), self.evidence.split()
        if path.suffix == ".zip":
            found = json_lines(read_member(path, self.member), f"{path}/{self.member}")
        else:
            found = records(path)
        for record in found:
            texts = (_evidence(record, *evidence),) if evidence else ()
            claim = _clean(record.text(*self.claim.split()))
            label = record.chosen(labels, *self.label.split())
            group = record.spare(*self.group.split()) or (texts or (claim,))[0]
            if label is not None:
                yield GoldRow(
                    row_id(path, folder, record.line), record.place, claim, label, group,
                    self.language, record.spare(*self.question.split()), texts,
                )  # fmt: skip


with (Path(__file__).parent / "pairs.csv").open(encoding="utf-8", newline="") as file:
    PAIRS = {line["set"]: PairLoader(**line) for line in csv.DictReader(file)}


def _evidence(record: Record, *names: str) -> str:
    """The evidence, a text or a list of sentences."""
    if any(isinstance(record.fields.get(name), list) for name in names):
        return _clean(" ".join(record.texts(*names)))
    return _clean(record.text(*names))


def _clean(text: str) -> str:
    """The text with the brackets that treebank tokens stand for, without space around it."""
    for token, bracket in BRACKETS.items():
        text = text.replace(token, bracket)
    return text.strip()


def tied(rows: Iterable[GoldRow]) -> Iterator[GoldRow]:
    """The rows with one group wherever they share evidence or claim, directly or by other rows.

    Minimal edits of one sentence pair would otherwise lie on both sides of a split. The group is
    the first in the alphabet of the texts that hang together.
    """
    above: dict[str, str] = {}

    def root(text: str) -> str:
        while (higher := above.setdefault(text, text)) != text:
            above[text] = above.get(higher, higher)
            text = higher
        return text

    kept = list(rows)
    for row in kept:
        one, other = sorted((root(row.group), root(row.response)))
        above[other] = one
    return (replace(row, group=root(row.group)) for row in kept)


def _averitec(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    for own, record in rows_in(folder, JSON, split):
        claim, label = _clean(record.text("claim")), record.chosen(AVERITEC, "label")
        texts = tuple(_answered(question) for question in record.records("questions"))
        yield GoldRow(own, record.place, claim, label, claim, documents=texts)


def _answered(question: Record) -> str:
    said = [question.text("question")]
    for answer in question.records("answers"):
        said += [answer.text("answer"), answer.spare("boolean_explanation")]
    return " ".join(part.strip() for part in said if part.strip())


def _climate(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    for own, record in rows_in(folder, ("*.jsonl",), split):
        claim, items = _clean(record.text("claim")), record.records("evidences")
        texts = tuple(_clean(item.text("evidence")) for item in items)
        if task == "claims":
            label = record.chosen(CLIMATE, "claim_label")
            yield GoldRow(own, record.place, claim, label, claim, documents=texts)
            continue
        for number, (item, text) in enumerate(zip(items, texts, strict=True)):
            label = item.chosen(FEVER, "evidence_label")
            one = f"{own}:{number}"
            yield GoldRow(one, record.place, claim, label, claim, documents=(text,))


def _fool_me_twice(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """`gold`: the sentences that decide, as one text; `retrieved`: what a search found."""
    for own, record in rows_in(folder, ("*.jsonl",), split):
        gold = _texts(record, "gold_evidence")
        texts = _texts(record, "retrieved_evidence") if task == "retrieved" else (" ".join(gold),)
        yield GoldRow(
            own,
            record.place,
            _clean(record.text("text", "claim")),
            record.chosen(FEVER, "label"),
            record.spare("wikipedia_page") or " ".join(gold),
            documents=tuple(text for text in texts if text),
        )


def _texts(record: Record, name: str) -> tuple[str, ...]:
    return tuple(_clean(item.text("text")) for item in record.records(name))


def _help(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    for row in PAIRS["entailment_help"](folder, task, split):
        texts = tuple(text.replace("~", " ") for text in row.documents)
        yield replace(row, response=row.response.replace("~", " "), documents=texts)


def _dialfact(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    for own, record in rows_in(folder, ("*.jsonl",), split):
        response, turns = _clean(record.text("response")), record.texts("context")
        yield GoldRow(
            own,
            record.place,
            response,
            record.chosen(FEVER, "response_label"),
            response,
            question=turns[-1].strip() if turns else "",
            documents=tuple(_titled(record)),
        )


def _titled(record: Record) -> Iterator[str]:
    for piece in record.items("evidence_list"):
        if not isinstance(piece, list) or len(piece) < 3 or not isinstance(piece[2], str):
            raise record.broken("evidence_list to hold lists of title, address, sentence", piece)
        if piece[2].strip():
            yield _clean(f"{piece[0]}: {piece[2]}")


def _q2(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    for own, record in rows_in(folder, ("*_consistent.csv", "*_inconsistent.csv"), split):
        label: Label = "hallucinated" if "_inconsistent" in own else "supported"
        yield _turn(record, own, "response", label)


def _q2_crossed(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    for own, record in rows_in(folder, ("cross_annotation*.csv",), split):
        for number, system in enumerate(("dodeca", "memnet")):
            label = record.chosen(CROSSED, f"{system}_label")
            yield _turn(record, f"{own}:{number}", f"{system}_response", label)


def _turn(record: Record, own: str, response: str, label: Label | None) -> GoldRow:
    said, known = _clean(record.text(response)), _clean(record.text("knowledge"))
    asked = record.spare("message")
    return GoldRow(own, record.place, said, label, known, question=asked, documents=(known,))


def _wice(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """`claims`: chunks with what decides in them, where they lie there; `pages`: whole pages.

    `tokens`: the words of a claim that its page does not carry.
    """
    pattern = "claim_*.jsonl"
    if task == "tokens":
        pattern = "non_supported_tokens_*.jsonl"
    elif task == "claims" and any(folder.glob("oracle_chunks_claim_*")):
        pattern = "oracle_chunks_claim_*.jsonl"
    for own, record in rows_in(folder, (pattern,), split):
        claim = record.text("claim")
        yield GoldRow(
            own,
            record.place,
            claim if task == "tokens" else _clean(claim),
            record.chosen(WICE, "label"),
            record.inner("meta").spare("claim_title") or _clean(claim),
            documents=("\n".join(record.texts("evidence")),),
            spans=_unsupported(record) if task == "tokens" else None,
        )


def _unsupported(record: Record) -> tuple[GoldSpan, ...]:
    """Where the marked tokens stand in the claim; marked neighbours make one span."""
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
            begins = spans.pop().start if was_marked else start
            spans.append(GoldSpan(begins, end))
        was_marked = bool(mark)
    return tuple(spans)


CLAIMS: Mapping[str, Loader] = {
    **PAIRS,
    "entailment_averitec": _averitec,
    "entailment_climate_fever": _climate,
    "entailment_fm2": _fool_me_twice,
    "entailment_help": _help,
    "entailment_dialfact": _dialfact,
    "entailment_q2/responses": _q2,
    "entailment_q2/cross_annotation": _q2_crossed,
    "entailment_wice": _wice,
}
