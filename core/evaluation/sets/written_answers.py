"""Sets of sentences that were written for a reader: answers in a dialogue, claims of an article."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from core.evaluation.files import Record, data_files, records
from core.evaluation.gold import GoldRow, GoldSpan, Rule
from core.evaluation.sets.pairs import FEVER, Columns, PairLoader, clean, row_id
from core.records import Label

BEGIN: Mapping[str, Label | None] = {
    "fully attributable": "supported",
    "not fully attributable": "hallucinated",
    "generic": "unclear",
}
TURNS = Columns(("response",), ("knowledge",), ("begin_label",), ("message",))
Q2_FILES: Mapping[str, Label | None] = {
    "*_consistent": "supported",
    "*_inconsistent": "hallucinated",
}
Q2_LABELS: Mapping[str, Label | None] = {"0": "supported", "1": "hallucinated"}
WICE: Mapping[str, Label | None] = {
    "supported": "supported",
    "partially_supported": "hallucinated",
    "not_supported": "hallucinated",
}
CHUNKS, PAGES = ("oracle_chunks_claim_*.jsonl",), ("claim_*.jsonl",)
TOKENS = ("non_supported_tokens_*.jsonl",)


def _dialfact(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """Each evidence sentence is a document under its page's title."""
    for path in data_files(folder, ("*.jsonl",), split):
        for record in records(path):
            response, turns = clean(record.text("response")), record.texts("context")
            yield GoldRow(
                id=row_id(path, folder, record.line),
                place=record.place,
                response=response,
                label=record.chosen(FEVER, "response_label"),
                group=response,
                question=turns[-1].strip() if turns else "",
                documents=tuple(_titled(record)),
            )


def _titled(record: Record) -> Iterator[str]:
    """Title and sentence of each piece: [title, address, sentence, number]."""
    for piece in record.items("evidence_list"):
        if not isinstance(piece, list) or len(piece) < 3 or not isinstance(piece[2], str):
            raise record.broken("evidence_list to hold lists of title, address, sentence", piece)
        if piece[2].strip():
            yield clean(f"{piece[0]}: {piece[2]}")


def _q2(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """`responses`: the file's name is the label."""
    for path in data_files(folder, ("*_consistent.csv", "*_inconsistent.csv"), split):
        is_wrong = "_inconsistent" in path.name
        for record in records(path):
            own = row_id(path, folder, record.line)
            response = clean(record.text("response"))
            yield _turn(record, own, response, "hallucinated" if is_wrong else "supported")


def _q2_crossed(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """`cross_annotation`: two systems' responses a line, each with its own label."""
    for path in data_files(folder, ("cross_annotation*.csv",), split):
        for record in records(path):
            for number, system in enumerate(("dodeca", "memnet")):
                own = row_id(path, folder, record.line, number)
                response = clean(record.text(f"{system}_response"))
                yield _turn(record, own, response, record.chosen(Q2_LABELS, f"{system}_label"))


def _turn(record: Record, own: str, response: str, label: Label | None) -> GoldRow:
    known, asked = clean(record.text("knowledge")), record.spare("message")
    return GoldRow(own, record.place, response, label, known, question=asked, documents=(known,))


def _wice(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """`claims`: chunks with what decides in them, where they lie there; `pages`: whole pages."""
    has_chunks = any(folder.glob("oracle_chunks_claim_*"))
    for path in data_files(folder, CHUNKS if task == "claims" and has_chunks else PAGES, split):
        for record in records(path):
            own, claim = row_id(path, folder, record.line), clean(record.text("claim"))
            yield _cited(record, own, claim, None)


def _wice_tokens(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """`tokens`: the words of a claim that its page does not carry."""
    for path in data_files(folder, TOKENS, split):
        for record in records(path):
            claim = record.text("claim")
            yield _cited(record, row_id(path, folder, record.line), claim, _unsupported(record))


def _cited(record: Record, own: str, claim: str, spans: tuple[GoldSpan, ...] | None) -> GoldRow:
    meta = record.inner("meta")
    return GoldRow(
        id=own,
        place=record.place,
        response=claim,
        label=record.chosen(WICE, "label"),
        group=meta.spare("claim_title") or claim,
        documents=("\n".join(record.texts("evidence")),),
        spans=spans,
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


_q2_rule = partial(
    Rule,
    "entailment_q2",
    unit="an answer in a dialogue",
    group="knowledge",
    licence="MIT",
    permits="yes",
)
_wice_rule = partial(
    Rule,
    "entailment_wice",
    labels=WICE,
    group="article that the claim stands in",
    licence="see LICENSE.md upstream (Wikipedia text CC BY-SA; web text via Common Crawl terms)",
    permits="not stated",
)

WRITTEN_ANSWERS_RULES = (
    Rule(
        "entailment_begin",
        PairLoader(TURNS, BEGIN, ("*.tsv",)),
        labels=BEGIN,
        unit="an answer in a dialogue",
        group="knowledge",
        licence="CC BY 4.0 (wow, cmu), CDLA-Sharing 1.0 (tc)",
        permits="yes",
        note="not fully attributable: something is in no source; generic says nothing to check",
    ),
    Rule(
        "entailment_dialfact",
        _dialfact,
        labels=FEVER,
        unit="an answer in a dialogue",
        group="response",
        licence="BSD-3-Clause",
        permits="yes",
        note="question = the last turn before it; answers may share evidence: 26 of the 88 texts "
        "stand in more than one part of a split",
    ),
    _q2_rule(loader=_q2, task="responses", labels=Q2_FILES, note="the file's name is the label"),
    _q2_rule(
        loader=_q2_crossed,
        task="cross_annotation",
        labels=Q2_LABELS,
        note="two systems' answers a line; many are also in the other files",
    ),
    _wice_rule(
        loader=_wice,
        task="claims",
        unit="a claim with a chunk of its page",
        note="chunks hold the sentences that decide; partly supported: part is in no source",
    ),
    _wice_rule(loader=_wice, task="pages", unit="a claim with its whole page"),
    _wice_rule(
        loader=_wice_tokens,
        task="tokens",
        unit="a partly supported claim",
        note="spans: words that the page does not carry, joined where they touch",
    ),
)
