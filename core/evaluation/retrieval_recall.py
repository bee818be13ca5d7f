"""How often retrieval finds the decisive sentence: `python -m core.evaluation.retrieval_recall`.

Each set gives statements, the documents that are searched for them and the sentences that decide
them, as people marked them. The product's own index and retrieval run over the documents, and a
sentence is found at k when one of the first k passages overlaps it. Where people named several
groups of sentences that decide, the group that is found best counts.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path

import numpy as np
import numpy.typing as npt

from core.baseline.encoder import load_multilingual_encoder
from core.concurrency import Stop
from core.documents.retrieval import Retriever, ensure_index
from core.documents.segmentation import sentences
from core.errors import ReviewError
from core.evaluation.files import Record, data_files, read_text, records
from core.evaluation.metrics import Figure, figures
from core.llm.encoder import Embedder
from core.records import Block, BlockKind, Passage, Source
from core.store import Store, open_store

CUTS = (1, 3, 5, 8)
BETWEEN = "\n\n"
HASHES = re.compile(r"(#{1,6}) \S")
TITLE = "(meta data) TITLE: "
TOGETHER = 20  # abstracts that are searched as one library
SEED = 0

Numbers = npt.NDArray[np.float64]
Place = tuple[str, int]  # a document and the number of its sentence


@dataclass(frozen=True)
class Question:
    """A statement, the documents that are searched for it, and what decides it.

    Each group of `gold` holds sentences that decide it together. Questions of one `topic` are
    drawn together for the interval.
    """

    query: str
    documents: tuple[str, ...]
    gold: tuple[frozenset[Place], ...]
    topic: str
    language: str = "en"


@dataclass(frozen=True)
class Document:
    """Sentences in order, with the document's title and the heading that each stands under."""

    sentences: Sequence[str]
    title: str = ""
    headings: Sequence[str] = ()

    def source(self, name: str) -> tuple[Source, list[tuple[int, int]]]:
        """The document as the product would have read it, and where each sentence lies in it."""
        text, blocks, spans = "", [], []
        heading = ""

        def add(kind: BlockKind, words: str, level: int = 0) -> tuple[int, int]:
            nonlocal text
            start = len(text) + (len(BETWEEN) if text else 0)
            text = f"{text}{BETWEEN}{words}" if text else words
            blocks.append(Block(kind, start, len(text), level))
            return start, len(text)

        if self.title:
            add("heading", self.title)
        for number, sentence in enumerate(self.sentences):
            own = self.headings[number] if self.headings else ""
            if own != heading and own:
                add("heading", own, 1)
            heading = own
            hashes = HASHES.match(sentence)
            if sentence.startswith(TITLE):
                spans.append(add("heading", sentence.removeprefix(TITLE)))
            elif hashes:
                spans.append(add("heading", sentence, len(hashes[1])))
            else:
                spans.append(add("paragraph", sentence))
        digest = sha256(f"{name}{text}".encode()).hexdigest()
        return Source(digest, name, "text", text, language="en", blocks=tuple(blocks)), spans


@dataclass(frozen=True)
class RecallSet:
    """Documents, and questions about them."""

    documents: Mapping[str, Document]
    questions: Sequence[Question]


@dataclass(frozen=True)
class Recall:
    """(questions, cuts): whether any decisive sentence was found, and what share of them.

    `around` is as `any` with the neighbours that a passage is handed over with.
    """

    any: Numbers
    share: Numbers
    around: Numbers
    topics: npt.NDArray[np.int64]

    def figures(self) -> dict[str, Figure]:
        """Each measure at each cut, with its interval by topic."""
        columns = {
            f"{name}@{cut}": values[:, number]
            for name, values in (("any", self.any), ("share", self.share), ("around", self.around))
            for number, cut in enumerate(CUTS)
        }
        return figures({name: _mean(column) for name, column in columns.items()}, self.topics, SEED)


def _mean(column: Numbers) -> Callable[[Numbers], Numbers]:
    return lambda weights: (weights @ column) / np.maximum(1e-9, weights.sum(axis=1))


def measure_recall(given: RecallSet, store: Store, encoder: Embedder) -> Recall:
    """Index the documents, search for every question and look what was found."""
    sources, places = {}, {}
    for name, document in given.documents.items():
        sources[name], spans = document.source(name)
        places[sources[name].id] = _Places(name, document.sentences, spans)
        store.readings.save(sources[name], reader="recall", seconds=0.0, now=0.0)
        ensure_index(store, sources[name], encoder, Stop(), lambda done, total: None)
    rows = []
    for question in given.questions:
        retriever = Retriever(store, encoder, [sources[name] for name in question.documents])
        passages = retriever.retrieve(question.query, question.language, max(CUTS))
        hits = [places[p.source_id].hit_by(p) for p in passages]
        near = [places[p.source_id].around(p, hit) for p, hit in zip(passages, hits, strict=True)]
        found, wider = _shares(hits, question.gold), _shares(near, question.gold)
        rows.append(([float(s > 0) for s in found], found, [float(s > 0) for s in wider]))
    topics = {topic: n for n, topic in enumerate(dict.fromkeys(q.topic for q in given.questions))}
    groups = np.array([topics[question.topic] for question in given.questions])
    anywhere, shares, around = (np.array(part) for part in zip(*rows, strict=True))
    return Recall(anywhere, shares, around, groups)


@dataclass(frozen=True)
class _Places:
    """Where a document's sentences lie in its source."""

    name: str
    sentences: Sequence[str]
    spans: Sequence[tuple[int, int]]

    def hit_by(self, passage: Passage) -> set[Place]:
        """The sentences that the passage overlaps, or is handed over under as its headings."""
        found = {n for n, (a, b) in enumerate(self.spans) if a < passage.end and passage.start < b}
        found |= {
            n
            for n, sentence in enumerate(self.sentences)
            if (HASHES.match(sentence) or sentence.startswith(TITLE))
            and sentence.removeprefix(TITLE).strip("# ") in passage.heading
        }
        return {(self.name, n) for n in found}

    def around(self, passage: Passage, hit: set[Place]) -> set[Place]:
        """Also those before and after it, where the passage is handed over with them."""
        near = [(-1, passage.before), (1, passage.after)]
        return hit | {
            (self.name, number + step)
            for _, number in hit
            for step, text in near
            if text
            and 0 <= number + step < len(self.sentences)
            and text in self.sentences[number + step]
        }


def _shares(hits: Sequence[set[Place]], gold: Sequence[frozenset[Place]]) -> list[float]:
    """At each cut, the share of the best group that the passages up to it hold."""
    found = [set().union(*hits[:cut]) for cut in CUTS]
    return [max(len(group & seen) / len(group) for group in gold) for seen in found]


Loader = Callable[[Path], RecallSet]


def _lines(folder: Path, *patterns: str) -> Iterator[Record]:
    for path in data_files(folder, patterns):
        yield from records(path)


def _wice(folder: Path) -> RecallSet:
    """Claims of Wikipedia and the web pages that they cite; gold: sets of supporting sentences."""
    documents: dict[str, Document] = {}
    questions = []
    for record in _lines(folder / "entailment_wice", "claim_dev.jsonl"):
        name = f"page {len(documents)}"
        groups = [group for group in record.items("supporting_sentences") if group]
        if not groups:
            continue
        documents[name] = Document(record.texts("evidence"))
        gold = tuple(
            frozenset((name, n) for n in group if isinstance(n, int))
            for group in groups
            if isinstance(group, list)
        )
        questions.append(Question(record.text("claim"), (name,), gold, name))
    return RecallSet(documents, questions)


def _fm2(folder: Path) -> RecallSet:
    """Claims of a game and sentences of a Wikipedia page, the gold ones among them."""
    documents: dict[str, Document] = {}
    questions = []
    for record in _lines(folder / "entailment_fm2", "dev.jsonl"):
        name = f"page {len(documents)}"
        sections = {
            e.text("text"): e.spare("section_header") for e in record.records("retrieved_evidence")
        }
        said = list(sections)
        gold = {e.text("text") for e in record.records("gold_evidence")}
        documents[name] = Document(said, record.text("wikipedia_page"), list(sections.values()))
        group = frozenset((name, n) for n, sentence in enumerate(said) if sentence in gold)
        questions.append(
            Question(record.text("text"), (name,), (group,), record.text("wikipedia_page"))
        )
    return RecallSet(documents, questions)


def _pooled(rows: Sequence[tuple[str, str, str, bool, str]]) -> RecallSet:
    """(query, document, sentence, whether it decides, topic): a question searches its documents.

    Each deciding sentence is a group of its own: one is enough.
    """
    documents: dict[str, dict[str, int]] = {}
    searched: dict[str, dict[str, None]] = {}
    gold: dict[str, set[frozenset[Place]]] = {}
    topics: dict[str, str] = {}
    for query, document, sentence, decides, topic in rows:
        said = documents.setdefault(document, {})
        number = said.setdefault(sentence, len(said))
        searched.setdefault(query, {})[document] = None
        topics[query] = topic
        if decides:
            gold.setdefault(query, set()).add(frozenset({(document, number)}))
    questions = [
        Question(query, tuple(searched[query]), tuple(groups), topics[query])
        for query, groups in gold.items()
    ]
    return RecallSet({name: Document(list(said)) for name, said in documents.items()}, questions)


def _climate(folder: Path) -> RecallSet:
    """Claims about the climate; all sentences of the five articles that anybody was shown."""
    rows = [
        (record.text("claim"), e.text("article"), e.text("evidence"),
         e.text("evidence_label") in ("SUPPORTS", "REFUTES"), record.text("claim"))
        for record in _lines(folder / "entailment_climate_fever", "climate-fever.jsonl")
        for e in record.records("evidences")
    ]  # fmt: skip
    return _pooled(rows)


def _healthver(folder: Path) -> RecallSet:
    """Claims about an illness; the sentences of papers that were shown for any claim."""
    rows = [
        (
            r.text("claim"),
            "papers",
            r.text("evidence"),
            r.text("label") != "Neutral",
            r.text("question"),
        )
        for r in _lines(folder / "entailment_healthver", "healthver_dev.csv")
    ]
    return _pooled(rows)


def _factcheck(folder: Path) -> RecallSet:
    """Claims of chat models; web snippets for any of them, most of several sentences."""
    rows = [
        (
            r.text("claim"),
            "snippets",
            r.text("evidence"),
            r.text("stance") != "irrelevant",
            r.text("claim"),
        )
        for r in _lines(folder / "factcheck_gpt", "subtasks/subtask3_claim_evidence_stance.jsonl")
    ]
    return _pooled(rows)


def _dialfact(folder: Path) -> RecallSet:
    """Answers in dialogues; the Wikipedia sentences that were chosen for any of them."""
    rows = [
        (r.text("response"), "sentences", str(e[2]), True, r.text("response"))  # type: ignore[index]
        for r in _lines(folder / "entailment_dialfact", "testsmall.jsonl")
        if r.text("response_label") != "NOT ENOUGH INFO"
        for e in r.items("evidence_list")
    ]
    return _pooled(rows)


def _faithbench(folder: Path) -> RecallSet:
    """Sentences of summaries with wrong words; gold: the source's words that people set beside."""
    documents: dict[str, Document] = {}
    questions = []
    for path in data_files(folder / "faithbench", ["*.json"]):
        whole = Record(json.loads(read_text(path)), str(path), 1)
        for sample in whole.records("samples"):
            source, summary = sample.text("source"), sample.text("summary")
            cut = sentences(source, "en")
            name = sha256(source.encode()).hexdigest()[:12]
            documents[name] = Document([source[s.start : s.end] for s in cut])
            for said in sentences(summary, "en"):
                gold = {
                    (name, n)
                    for a in sample.records("annotations")
                    if isinstance(a.fields.get("source_start"), int)
                    and said.start <= int(a.number("summary_start")) < said.end
                    for n, s in enumerate(cut)
                    if s.start < a.number("source_end") and a.number("source_start") < s.end
                }
                if gold:
                    query = summary[said.start : said.end]
                    groups = tuple(frozenset({place}) for place in sorted(gold))
                    questions.append(Question(query, (name,), groups, name))
    return RecallSet(documents, questions)


def _pubmedqa(folder: Path) -> RecallSet:
    """Questions of papers; twenty abstracts together, gold: any sentence of the own results."""
    (path,) = data_files(folder / "pubmedqa", ["ori_pqal.json"])
    rows = list(json.loads(read_text(path)).values())
    random.Random(SEED).shuffle(rows)
    documents: dict[str, Document] = {}
    questions = []
    for number, row in enumerate(rows):
        record = Record(row, str(path), 1)
        name = f"abstract {number}"
        said: list[str] = []
        gold = set()
        for text, label in zip(record.texts("CONTEXTS"), record.texts("LABELS"), strict=True):
            cut = [text[s.start : s.end] for s in sentences(text, "en")]
            if "RESULT" in label or "FINDING" in label:
                gold |= {(name, len(said) + n) for n in range(len(cut))}
            said += cut
        documents[name] = Document(said)
        first = number - number % TOGETHER
        others = tuple(f"abstract {n}" for n in range(first, min(first + TOGETHER, len(rows))))
        if gold:
            groups = tuple(frozenset({place}) for place in sorted(gold))
            questions.append(Question(record.text("QUESTION"), others, groups, name))
    return RecallSet(documents, questions)


def _marked(path: Path) -> RecallSet:
    """A file of {"query", "sentences", "gold"}: gold are numbers of sentences, or the sentences."""
    documents: dict[str, Document] = {}
    questions = []
    for record in records(path):
        said = record.texts("sentences")
        name = sha256(BETWEEN.join(said).encode()).hexdigest()
        documents[name] = Document(said)
        numbers = [said.index(g) if isinstance(g, str) else int(g) for g in record.items("gold")]  # type: ignore[call-overload]
        gold = frozenset((name, n) for n in numbers)
        if gold:
            language = record.spare("language") or "en"
            questions.append(Question(record.text("query"), (name,), (gold,), name, language))
    return RecallSet(documents, questions)


SETS: Mapping[str, Loader] = {
    "wice": _wice,
    "fm2": _fm2,
    "climate_fever": _climate,
    "healthver": _healthver,
    "factcheck_gpt": _factcheck,
    "dialfact": _dialfact,
    "faithbench": _faithbench,
    "pubmedqa": _pubmedqa,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the figures; 2 for a folder that will not do."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--path", type=Path, required=True, help="the folder of public sets")
    parser.add_argument("--more", type=Path, help="a folder of further *.jsonl(.gz) with gold")
    parser.add_argument("--set", action="append", choices=list(SETS), help="only these")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    encoder = load_multilingual_encoder()
    report = {}
    try:
        for name, load in _chosen(given.path, given.more, given.set):
            with open_store(None) as store:
                found = measure_recall(load(), store, encoder)
            report[name] = {"n": len(found.any), **found.figures()}
            if not given.json:
                sys.stdout.write(_shown(name, report[name]) + "\n")
                sys.stdout.flush()
    except ReviewError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    if given.json:
        sys.stdout.write(json.dumps(report, indent=1) + "\n")
    return 0


def _chosen(
    path: Path, more: Path | None, only: Sequence[str] | None
) -> Iterator[tuple[str, Callable[[], RecallSet]]]:
    for name in only or SETS:
        yield name, partial(SETS[name], path)
    for file in data_files(more, ["*.jsonl"]) if more else ():
        yield file.name.split(".")[0], partial(_marked, file)


def _shown(name: str, figures: Mapping[str, object]) -> str:
    """One line: n, then each measure at the cuts."""
    parts = [f"{name}: n = {figures['n']}"]
    for measure in ("any", "share", "around"):
        told = [figures[f"{measure}@{cut}"] for cut in CUTS]
        words = [f"{f['value']:.3f} ({f['low']:.3f}-{f['high']:.3f})" for f in told]  # type: ignore[index]
        parts.append(
            f"  {measure:6} " + "  ".join(f"@{c} {w}" for c, w in zip(CUTS, words, strict=True))
        )
    return "\n".join(parts)


if __name__ == "__main__":
    sys.exit(main())
