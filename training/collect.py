"""Collect further public sets: `python -m training.collect --mirror FOLDER --out MORE`.

The mirror holds git repositories as `OWNER+NAME/repo`. The output is gzipped JSON lines: pairs in
`data/`, paragraphs with questions in `qa/`, and origins and licences as JSON in `sources.d/`.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import hashlib
import html
import io
import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sentencex

CollectedRow = dict[str, Any]
FileTexts = dict[str, str]
"""File path to text."""
LABELS_BY_WORD = {
    "e": "supported", "entailment": "supported", "supports": "supported", "yes": "supported",
    "c": "contradicted", "contradiction": "contradicted", "refutes": "contradicted",
    "n": "neutral", "neutral": "neutral", "not enough info": "neutral", "no": "not_supported",
}  # fmt: skip
T0_FOLDER = "data/finetuning/t0_train_50k/data_per_template/"
MAX_TABLE_ROWS = 8
MIN_FILES_HASHED_TOGETHER = 40


def make_row(label: str, evidence: str, claim: str, group: str, **more: str) -> CollectedRow:
    """Return a pair as a row; related pairs share a `group`."""
    return {"label": label, "evidence": evidence, "claim": claim, "group": group, **more}


def read_delimited(text: str, delimiter: str = "\t") -> Iterator[dict[str, str]]:
    """Yield the rows of a delimited file with a header."""
    if delimiter == ",":
        yield from csv.DictReader(io.StringIO(text))
    else:
        yield from csv.DictReader(io.StringIO(text), delimiter=delimiter, quoting=csv.QUOTE_NONE)


def group_by_text(text: str) -> str:
    """Return a group that is the same in all sets for the same evidence."""
    return "t:" + re.sub(r"\W+", "", text).lower()[:200]


def split_long_sentences(text: str, language: str = "en") -> list[str]:
    """Return the text's sentences of more than 20 characters."""
    parts = [part.strip() for part in sentencex.segment(language, text.replace("\n", " "))]
    return [part for part in parts if len(part) > 20]


def read_infotabs(texts: FileTexts) -> Iterator[CollectedRow]:
    """Yield claims over infoboxes of Wikipedia articles, a line an entry."""
    tables = {Path(p).stem: json.loads(t) for p, t in texts.items() if p.endswith(".json")}
    for text in (t for p, t in texts.items() if p.endswith(".tsv")):
        for item in read_delimited(text):
            table = dict(tables.get(item["table_id"], {}))
            title = "; ".join(table.pop("title", []))
            lines = [f"{title}, {key}: {'; '.join(values)}." for key, values in table.items()]
            if lines:
                label = LABELS_BY_WORD[item["label"].lower()]
                yield make_row(label, " ".join(lines), item["hypothesis"], item["table_id"])


def read_tabfact(texts: FileTexts) -> Iterator[CollectedRow]:
    """Yield claims over tables; the set has a claim's words as lemmas."""
    for path in [p for p in texts if p.endswith("examples.json")]:
        for name, (claims, labels, caption) in json.loads(texts[path]).items():
            table = texts.get(f"data/all_csv/{name}")
            if table is None:
                continue
            head, *rows = [line.split("#") for line in table.strip().split("\n")]
            if len(rows) > MAX_TABLE_ROWS:
                continue
            evidence = f"{caption}. " + " ".join(
                f"{line}." for line in format_table_lines(head, rows)
            )
            for claim, label in zip(claims, labels, strict=True):
                yield make_row("supported" if label else "contradicted", evidence, claim, name)


def format_table_lines(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return each row as a line: its first cell, then the others with their headers."""
    return [
        f"{cells[0]}, " + "; ".join(f"{h}: {v}" for h, v in zip(head[1:], cells[1:], strict=False))
        for cells in rows
    ]


def read_scitab(texts: FileTexts) -> Iterator[CollectedRow]:
    """Yield claims over tables of papers."""
    for item in json.loads(next(iter(texts.values()))):
        lines = format_table_lines(item["table_column_names"], item["table_content_values"])
        label = {"supports": "supported", "refutes": "contradicted"}.get(item["label"], "neutral")
        evidence = re.sub(r"\[\w+\] ?", "", f"{item['table_caption']} {'. '.join(lines)}.")
        yield make_row(label, evidence, item["claim"], item["paper_id"])


def read_snli(texts: FileTexts) -> Iterator[CollectedRow]:
    """Yield captions and statements that may follow from them."""
    for part in ("dev", "test"):
        columns = [texts[f"dataset/eSNLI/{name}.{part}"] for name in ("s1", "s2", "labels")]
        for premise, claim, label in zip(*(c.strip().split("\n") for c in columns), strict=True):
            yield make_row(
                LABELS_BY_WORD[label.strip()],
                premise.strip(),
                claim.strip(),
                group_by_text(premise),
            )


def read_scone(texts: FileTexts) -> Iterator[CollectedRow]:
    """Yield negations, inside and outside of their scope."""
    for text in texts.values():
        for item in read_delimited(text, ","):
            end = "_edited" if "sentence1_edited" in item else ""
            label = (
                item.get(f"gold_label{end}") or item.get("gold_label") or item["gold_label_edited"]
            )
            premise = item[f"sentence1{end}"]
            yield make_row(
                LABELS_BY_WORD[label], premise, item[f"sentence2{end}"], group_by_text(premise)
            )


def read_dream(texts: FileTexts) -> Iterator[CollectedRow]:
    """Yield dialogues with questions, each with the right answer and two wrong ones."""
    for text in texts.values():
        for turns, questions, name in json.loads(text):
            for item in questions:
                for choice in item["choice"]:
                    label = "supported" if choice == item["answer"] else "not_supported"
                    yield make_row(label, " ".join(turns), choice, name, question=item["question"])


def read_mctest(texts: FileTexts) -> Iterator[CollectedRow]:
    """Yield stories with questions, each with the right answer and three wrong ones."""
    for path in [p for p in texts if p.endswith(".tsv")]:
        answers = texts.get(path.replace(".tsv", ".ans"), "").strip().split("\n")
        for line, letters in zip(texts[path].strip().split("\n"), answers, strict=False):
            cells = line.split("\t")
            story = cells[2].replace("\\newline", " ").replace("\\tab", " ")
            for index, letter in enumerate(letters.split("\t")):
                question, *choices = cells[3 + 5 * index : 8 + 5 * index]
                for name, choice in zip("ABCD", choices, strict=False):
                    label = "supported" if name == letter.strip() else "not_supported"
                    yield make_row(
                        label, story, choice, cells[0], question=question.split(": ", 1)[-1]
                    )


def read_summedits(texts: FileTexts) -> Iterator[CollectedRow]:
    """Yield original and edited summaries, and each sentence of the originals."""
    for path, text in texts.items():
        name = re.sub(r"summedits_|\.json", "", Path(path).name)
        talks = {"samsum", "sales_call", "podcast", "qmsumm"}
        title = "summedits talks" if name in talks else "summedits texts"
        for item in json.loads(text):
            label = "supported" if item["label"] else "not_supported"
            group = re.sub(r"_(og|\d+)$", "", item["id"])
            yield make_row(label, item["doc"], item["summary"], group, set=title)
            parts = split_long_sentences(item["summary"])
            if item["label"] and len(parts) > 1 and item["id"].endswith("_og"):
                for part in parts:
                    yield make_row(label, item["doc"], part, group, set=title)


def read_summaries(texts: FileTexts) -> Iterator[CollectedRow]:
    """Yield sentences of human summaries, which their sources support."""
    for path, text in texts.items():
        for item in map(json.loads, text.strip().split("\n")):
            separator = ": " if "samsum" in path else "\n"
            source = item["prompt"].split(separator, 1)[-1]
            for part in split_long_sentences(item["completion"].split("<|endoftext|>")[0]):
                if "..." not in source[-60:] and part not in source:
                    yield make_row("supported", source, part, group_by_text(source))


def read_ctkfacts(texts: FileTexts) -> Iterator[CollectedRow]:
    """Yield Czech claims over news."""
    for item in map(json.loads, next(iter(texts.values())).strip().split("\n")):
        for evidence in item["evidence"] or [[]]:
            if evidence:
                group = str(item.get("source") or item["id"])
                yield make_row(
                    LABELS_BY_WORD[item["label"].lower()], " ".join(evidence), item["claim"], group
                )


def read_rte3_xml(texts: FileTexts) -> Iterator[CollectedRow]:
    """Yield entailment of news sentences, in German and Italian."""
    for path, text in texts.items():
        language = "de" if "_DE_" in path else "it"
        part = "dev" if "-dev-" in path else "test"
        pattern = r'<pair id="(\d+)" \w+="(\w+)".*?<t>(.*?)</t>\s*<h>(.*?)</h>'
        for number, word, evidence, claim in re.findall(pattern, text, re.DOTALL):
            label = LABELS_BY_WORD.get(word.lower(), "not_supported")
            evidence, claim = html.unescape(evidence), html.unescape(claim)
            yield make_row(label, evidence, claim, f"{part} {number}", language=language)


def read_rte3_fr(texts: FileTexts) -> Iterator[CollectedRow]:
    """Yield entailment of news sentences, in French."""
    for path, text in texts.items():
        part = "dev" if "-dev-" in path else "test"
        for number, item in enumerate(read_delimited(text), 1):
            group = f"{part} {item.get('id') or number}"
            yield make_row(
                LABELS_BY_WORD[item["label_text"]], item["premise"], item["hypothesis"], group
            )


def read_squad(texts: FileTexts) -> Iterator[CollectedRow]:
    """Yield paragraphs with questions from files in SQuAD's format."""
    for path, text in texts.items():
        match = re.search(r"[.-](\w\w)[.-](?:json|dev|train|question)", path)
        for article in json.loads(text)["data"]:
            for paragraph in article["paragraphs"]:
                for qa in paragraph["qas"]:
                    answers = list(dict.fromkeys(a["text"] for a in qa["answers"]))
                    yield {
                        "context": paragraph["context"],
                        "question": qa["question"],
                        "answers": answers,
                        "language": match[1] if match else "en",
                        "group": group_by_text(paragraph["context"]),
                    }


def read_adversarial_qa(texts: FileTexts) -> Iterator[CollectedRow]:
    """Yield questions that were written to mislead a model."""
    for text in texts.values():
        for item in map(json.loads, text.strip().split("\n")):
            match = re.search(
                r'Question: "(.*?)"\s+Context: "(.*?)"\s+Answer', item["prompt"], re.S
            )
            if match:
                yield {
                    "context": match[2],
                    "question": match[1],
                    "group": group_by_text(match[2]),
                    "answers": [item["completion"].split("<|endoftext|>")[0]],
                }


@dataclass(frozen=True)
class DataSource:
    """A set: the files of a repository, and the function that reads them."""

    name: str
    repository: str
    licence: str
    paths: str
    """A regular expression that matches the files' paths."""
    read: Callable[[FileTexts], Iterator[CollectedRow]]
    language: str = "en"
    kind: str = "data"


SOURCES = (
    DataSource("infotabs", "infotabs/infotabs", "Apache-2.0",
           r"data/(maindata/.*\.tsv|tables/json/.*\.json)", read_infotabs),
    DataSource("tabfact", "wenhuchen/Table-Fact-Checking", "CC BY 4.0 (MIT code)",
           r"tokenized_data/(val|test)_examples\.json|data/all_csv/.*", read_tabfact),
    DataSource("scitab", "XinyuanLu00/SciTab", "MIT", r"dataset/sci_tab\.json", read_scitab),
    DataSource("snli", "OanaMariaCamburu/e-SNLI", "MIT (SNLI: CC BY-SA 4.0)",
           r"dataset/eSNLI/(s1|s2|labels)\.(dev|test)", read_snli),
    DataSource("scone", "selenashe/ScoNe", "MIT", r"scone_nli/.*\.csv", read_scone),
    DataSource("dream", "nlpdata/dream", "non-commercial research only",
           r"data/\w+\.json", read_dream),
    DataSource("mctest", "mcobzarenco/mctest", "not stated (Microsoft Research)",
           r"data/MCTest/mc\d+\.(train|dev)\.(tsv|ans)", read_mctest),
    DataSource("summedits", "salesforce/factualNLG", "Apache-2.0",
           r"data/summedits/\w+\.json", read_summedits),
    DataSource("summaries", "yizhongw/self-instruct",
           "Apache-2.0 (news: not stated; SAMSum: CC BY-NC-ND 4.0)",
           T0_FOLDER + r"(multi_news_distill|cnn_dailymail_3_0_0_news_summary|samsum_Summarize_this"
           r"_dialogue_)\.jsonl", read_summaries),
    DataSource("ctkfacts", "aic-factcheck/ctkfacts", "not stated", r"export-snapshots/.*\.jsonl",
           read_ctkfacts, "cs"),
    DataSource("rte3", "GitOffice/RTEFormatWork", "CC BY 3.0", r"RTE3-(DE|IT)data-original.*\.xml",
           read_rte3_xml),
    DataSource("rte3", "mskandalis/rte3-french", "BSD-2-Clause (LICENSE)",
           r"RTE3-FR-(dev-set|test-gold)-3class\.tsv", read_rte3_fr, "fr"),
    DataSource("xquad", "deepmind/xquad", "CC BY-SA 4.0",
           r"xquad\.en\.json", read_squad, kind="qa"),
    DataSource("mlqa", "GautamGupta17/MESH", "CC BY-SA 3.0", r".*/dev-context-en-question-en\.json",
           read_squad, kind="qa"),
    DataSource("tydiqa", "GautamGupta17/MESH", "Apache-2.0", r".*/tydiqa\.goldp\.en\.\w+\.json",
           read_squad, kind="qa"),
    DataSource("adversarial_qa", "yizhongw/self-instruct", "CC BY-SA 3.0",
           T0_FOLDER + r"adversarial_qa_\w+_question_context_answer\.jsonl",
           read_adversarial_qa, kind="qa"),
)  # fmt: skip


def _run_git(repository: Path, *arguments: str, stdin: bytes = b"") -> bytes:
    command = ["git", "--git-dir", str(repository), *arguments]
    return subprocess.run(command, input=stdin, check=True, capture_output=True).stdout


def read_repository_files(source: DataSource, mirror: Path) -> tuple[str, FileTexts]:
    """Return the commit, and the texts of the set's files in the mirror."""
    repository = mirror / source.repository.replace("/", "+") / "repo"
    if (repository / ".git").is_dir():
        repository /= ".git"
    commit = _run_git(repository, "rev-parse", "HEAD").decode().strip()
    listing = _run_git(repository, "ls-tree", "-r", "-l", "HEAD").decode().splitlines()
    rows = [line.split("\t", 1) for line in listing]
    paths = [p for head, p in rows if re.fullmatch(source.paths, p) and head.split()[-1].isdigit()]
    request = "".join(f"HEAD:{path}\n" for path in paths).encode()
    out = _run_git(repository, "cat-file", "--batch", stdin=request)
    texts, at = {}, 0
    for path in paths:
        end = out.index(b"\n", at)
        size = int(out[at:end].split()[-1])
        at = end + 1
        texts[path] = out[at : at + size].decode("utf-8", "replace")
        at += size + 1
    return commit, texts


def hash_files(texts: FileTexts) -> dict[str, str]:
    """Return the sha256 of each file, or one for a whole folder of many files."""
    folders = defaultdict(list)
    for path in sorted(texts):
        folders[str(Path(path).parent)].append(path)
    by_name = {}
    for folder, paths in folders.items():
        for group in (
            [[path] for path in paths] if len(paths) < MIN_FILES_HASHED_TOGETHER else [paths]
        ):
            content = "".join(texts[path] for path in group).encode()
            name = group[0] if len(group) == 1 else f"{folder}/*"
            by_name[name] = hashlib.sha256(content).hexdigest()
    return by_name


def main(arguments: Sequence[str] | None = None) -> int:
    """Read every set from the mirror and write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mirror", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(arguments)
    for number, source in enumerate(SOURCES):
        commit, texts = read_repository_files(source, options.mirror)
        defaults = {"set": source.name, "language": source.language}
        rows = [{**defaults, **item} for item in source.read(texts)]
        title = f"{number:02d}-{source.name}"
        for folder in (source.kind, "sources.d"):
            (options.out / folder).mkdir(parents=True, exist_ok=True)
        path = options.out / source.kind / f"{title}.jsonl.gz"
        with gzip.open(path, "wt", encoding="utf-8", compresslevel=3) as lines:
            lines.writelines(json.dumps(item, ensure_ascii=False) + "\n" for item in rows)
        card = {
            "set": source.name,
            "repository": source.repository,
            "commit": commit,
            "licence": source.licence,
            "rows": len(rows),
            "files": hash_files(texts),
        }
        (options.out / "sources.d" / f"{title}.json").write_text(json.dumps(card, indent=1) + "\n")
        sys.stderr.write(f"{source.name}: {len(rows)} rows of {len(texts)} files\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
