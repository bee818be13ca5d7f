"""Collects further public sets: `python -m training.collect --mirror FOLDER --out MORE`.

The mirror holds git repositories as `OWNER+NAME/repo`. Written are gzipped JSON lines of one shape:
pairs in `data/`, paragraphs with questions in `qa/`, origins and licences in `sources.d/`.
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

Row = dict[str, Any]
Texts = dict[str, str]
"""Of each file its text."""
BY_WORD = {
    "e": "supported", "entailment": "supported", "supports": "supported", "yes": "supported",
    "c": "contradicted", "contradiction": "contradicted", "refutes": "contradicted",
    "n": "neutral", "neutral": "neutral", "not enough info": "neutral", "no": "not_supported",
}  # fmt: skip
T0 = "data/finetuning/t0_train_50k/data_per_template/"
ROWS_OF_A_TABLE = 8
MANY = 40


def row(label: str, evidence: str, claim: str, group: str, **more: str) -> Row:
    """A pair; `group` is what related pairs share."""
    return {"label": label, "evidence": evidence, "claim": claim, "group": group, **more}


def tabular(text: str, delimiter: str = "\t") -> Iterator[dict[str, str]]:
    """The rows of a file with a header."""
    if delimiter == ",":
        yield from csv.DictReader(io.StringIO(text))
    else:
        yield from csv.DictReader(io.StringIO(text), delimiter=delimiter, quoting=csv.QUOTE_NONE)


def text_group(text: str) -> str:
    """The same in all sets for the same evidence."""
    return "t:" + re.sub(r"\W+", "", text).lower()[:200]


def sentences(text: str, language: str = "en") -> list[str]:
    """The text's sentences, of some length."""
    found = [part.strip() for part in sentencex.segment(language, text.replace("\n", " "))]
    return [part for part in found if len(part) > 20]


def infotabs(texts: Texts) -> Iterator[Row]:
    """Claims over the boxes of Wikipedia articles, a line an entry."""
    tables = {Path(p).stem: json.loads(t) for p, t in texts.items() if p.endswith(".json")}
    for text in (t for p, t in texts.items() if p.endswith(".tsv")):
        for one in tabular(text):
            table = dict(tables.get(one["table_id"], {}))
            title = "; ".join(table.pop("title", []))
            lines = [f"{title}, {key}: {'; '.join(values)}." for key, values in table.items()]
            if lines:
                yield row(BY_WORD[one["label"].lower()], " ".join(lines), one["hypothesis"],
                          one["table_id"])  # fmt: skip


def tabfact(texts: Texts) -> Iterator[Row]:
    """Claims over tables; a claim's words are lemmas as the set has them."""
    for path in [p for p in texts if p.endswith("examples.json")]:
        for name, (claims, labels, caption) in json.loads(texts[path]).items():
            table = texts.get(f"data/all_csv/{name}")
            if table is None:
                continue
            head, *rows = [line.split("#") for line in table.strip().split("\n")]
            if len(rows) > ROWS_OF_A_TABLE:
                continue
            evidence = f"{caption}. " + " ".join(f"{line}." for line in table_lines(head, rows))
            for claim, label in zip(claims, labels, strict=True):
                yield row("supported" if label else "contradicted", evidence, claim, name)


def table_lines(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Each row by its first cell, the others with their headers."""
    return [
        f"{own[0]}, " + "; ".join(f"{h}: {v}" for h, v in zip(head[1:], own[1:], strict=False))
        for own in rows
    ]


def scitab(texts: Texts) -> Iterator[Row]:
    """Claims over tables of papers."""
    for one in json.loads(next(iter(texts.values()))):
        lines = table_lines(one["table_column_names"], one["table_content_values"])
        label = {"supports": "supported", "refutes": "contradicted"}.get(one["label"], "neutral")
        evidence = re.sub(r"\[\w+\] ?", "", f"{one['table_caption']} {'. '.join(lines)}.")
        yield row(label, evidence, one["claim"], one["paper_id"])


def snli(texts: Texts) -> Iterator[Row]:
    """Captions and what follows from them."""
    for part in ("dev", "test"):
        columns = [texts[f"dataset/eSNLI/{name}.{part}"] for name in ("s1", "s2", "labels")]
        for premise, claim, label in zip(*(c.strip().split("\n") for c in columns), strict=True):
            yield row(BY_WORD[label.strip()], premise.strip(), claim.strip(), text_group(premise))


def scone(texts: Texts) -> Iterator[Row]:
    """Denials, within and outside of what they reach."""
    for text in texts.values():
        for one in tabular(text, ","):
            end = "_edited" if "sentence1_edited" in one else ""
            label = one.get(f"gold_label{end}") or one.get("gold_label") or one["gold_label_edited"]
            premise = one[f"sentence1{end}"]
            yield row(BY_WORD[label], premise, one[f"sentence2{end}"], text_group(premise))


def dream(texts: Texts) -> Iterator[Row]:
    """Dialogues with questions, the right answer and two wrong ones."""
    for text in texts.values():
        for turns, questions, name in json.loads(text):
            for one in questions:
                for choice in one["choice"]:
                    label = "supported" if choice == one["answer"] else "not_supported"
                    yield row(label, " ".join(turns), choice, name, question=one["question"])


def mctest(texts: Texts) -> Iterator[Row]:
    """Stories with questions, the right answer and three wrong ones."""
    for path in [p for p in texts if p.endswith(".tsv")]:
        answers = texts.get(path.replace(".tsv", ".ans"), "").strip().split("\n")
        for line, letters in zip(texts[path].strip().split("\n"), answers, strict=False):
            cells = line.split("\t")
            story = cells[2].replace("\\newline", " ").replace("\\tab", " ")
            for place, letter in enumerate(letters.split("\t")):
                question, *choices = cells[3 + 5 * place : 8 + 5 * place]
                for name, choice in zip("ABCD", choices, strict=False):
                    label = "supported" if name == letter.strip() else "not_supported"
                    yield row(label, story, choice, cells[0], question=question.split(": ", 1)[-1])


def summedits(texts: Texts) -> Iterator[Row]:
    """Summaries, as they were and with one thing changed; each sentence of the right ones too."""
    for path, text in texts.items():
        name = re.sub(r"summedits_|\.json", "", Path(path).name)
        talks = {"samsum", "sales_call", "podcast", "qmsumm"}
        title = "summedits talks" if name in talks else "summedits texts"
        for one in json.loads(text):
            label = "supported" if one["label"] else "not_supported"
            group = re.sub(r"_(og|\d+)$", "", one["id"])
            yield row(label, one["doc"], one["summary"], group, set=title)
            parts = sentences(one["summary"])
            if one["label"] and len(parts) > 1 and one["id"].endswith("_og"):
                for part in parts:
                    yield row(label, one["doc"], part, group, set=title)


def summaries(texts: Texts) -> Iterator[Row]:
    """Sentences of summaries that people wrote, which their sources support."""
    for path, text in texts.items():
        for one in map(json.loads, text.strip().split("\n")):
            source = one["prompt"].split("\n", 1)[-1] if "samsum" not in path else (
                one["prompt"].split(": ", 1)[-1])  # fmt: skip
            for part in sentences(one["completion"].split("<|endoftext|>")[0]):
                if "..." not in source[-60:] and part not in source:
                    yield row("supported", source, part, text_group(source))


def ctkfacts(texts: Texts) -> Iterator[Row]:
    """Czech claims over news."""
    for one in map(json.loads, next(iter(texts.values())).strip().split("\n")):
        for evidence in one["evidence"] or [[]]:
            if evidence:
                yield row(BY_WORD[one["label"].lower()], " ".join(evidence), one["claim"],
                          str(one.get("source") or one["id"]))  # fmt: skip


def rte3_xml(texts: Texts) -> Iterator[Row]:
    """Entailment of news sentences, in German and Italian."""
    for path, text in texts.items():
        language = "de" if "_DE_" in path else "it"
        part = "dev" if "-dev-" in path else "test"
        pattern = r'<pair id="(\d+)" \w+="(\w+)".*?<t>(.*?)</t>\s*<h>(.*?)</h>'
        for number, word, evidence, claim in re.findall(pattern, text, re.DOTALL):
            label = BY_WORD.get(word.lower(), "not_supported")
            yield row(label, html.unescape(evidence), html.unescape(claim),
                      f"{part} {number}", language=language)  # fmt: skip


def rte3_fr(texts: Texts) -> Iterator[Row]:
    """Entailment of news sentences, in French."""
    for path, text in texts.items():
        part = "dev" if "-dev-" in path else "test"
        for number, one in enumerate(tabular(text), 1):
            yield row(BY_WORD[one["label_text"]], one["premise"], one["hypothesis"],
                      f"{part} {one.get('id') or number}")  # fmt: skip


def squad(texts: Texts) -> Iterator[Row]:
    """Paragraphs with questions in the form of SQuAD."""
    for path, text in texts.items():
        found = re.search(r"[.-](\w\w)[.-](?:json|dev|train|question)", path)
        for article in json.loads(text)["data"]:
            for paragraph in article["paragraphs"]:
                for one in paragraph["qas"]:
                    answers = list(dict.fromkeys(a["text"] for a in one["answers"]))
                    yield {"context": paragraph["context"], "question": one["question"],
                           "answers": answers, "language": found[1] if found else "en",
                           "group": text_group(paragraph["context"])}  # fmt: skip


def adversarial_qa(texts: Texts) -> Iterator[Row]:
    """Questions that were written to mislead a model."""
    for text in texts.values():
        for one in map(json.loads, text.strip().split("\n")):
            found = re.search(r'Question: "(.*?)"\s+Context: "(.*?)"\s+Answer', one["prompt"], re.S)
            if found:
                yield {"context": found[2], "question": found[1], "group": text_group(found[2]),
                       "answers": [one["completion"].split("<|endoftext|>")[0]]}  # fmt: skip


@dataclass(frozen=True)
class DataSource:
    """A set: which files of which repository, and how they are read."""

    name: str
    repository: str
    licence: str
    paths: str
    """A regular expression that the files' paths match."""
    read: Callable[[Texts], Iterator[Row]]
    language: str = "en"
    kind: str = "data"


SOURCES = (
    DataSource("infotabs", "infotabs/infotabs", "Apache-2.0",
           r"data/(maindata/.*\.tsv|tables/json/.*\.json)", infotabs),
    DataSource("tabfact", "wenhuchen/Table-Fact-Checking", "CC BY 4.0 (MIT code)",
           r"tokenized_data/(val|test)_examples\.json|data/all_csv/.*", tabfact),
    DataSource("scitab", "XinyuanLu00/SciTab", "MIT", r"dataset/sci_tab\.json", scitab),
    DataSource("snli", "OanaMariaCamburu/e-SNLI", "MIT (SNLI: CC BY-SA 4.0)",
           r"dataset/eSNLI/(s1|s2|labels)\.(dev|test)", snli),
    DataSource("scone", "selenashe/ScoNe", "MIT", r"scone_nli/.*\.csv", scone),
    DataSource("dream", "nlpdata/dream", "non-commercial research only", r"data/\w+\.json", dream),
    DataSource("mctest", "mcobzarenco/mctest", "not stated (Microsoft Research)",
           r"data/MCTest/mc\d+\.(train|dev)\.(tsv|ans)", mctest),
    DataSource("summedits", "salesforce/factualNLG", "Apache-2.0",
           r"data/summedits/\w+\.json", summedits),
    DataSource("summaries", "yizhongw/self-instruct",
           "Apache-2.0 (news: not stated; SAMSum: CC BY-NC-ND 4.0)",
           T0 + r"(multi_news_distill|cnn_dailymail_3_0_0_news_summary|samsum_Summarize_this"
           r"_dialogue_)\.jsonl", summaries),
    DataSource("ctkfacts", "aic-factcheck/ctkfacts", "not stated", r"export-snapshots/.*\.jsonl",
           ctkfacts, "cs"),
    DataSource("rte3", "GitOffice/RTEFormatWork", "CC BY 3.0", r"RTE3-(DE|IT)data-original.*\.xml",
           rte3_xml),
    DataSource("rte3", "mskandalis/rte3-french", "BSD-2-Clause (LICENSE)",
           r"RTE3-FR-(dev-set|test-gold)-3class\.tsv", rte3_fr, "fr"),
    DataSource("xquad", "deepmind/xquad", "CC BY-SA 4.0", r"xquad\.en\.json", squad, kind="qa"),
    DataSource("mlqa", "GautamGupta17/MESH", "CC BY-SA 3.0", r".*/dev-context-en-question-en\.json",
           squad, kind="qa"),
    DataSource("tydiqa", "GautamGupta17/MESH", "Apache-2.0", r".*/tydiqa\.goldp\.en\.\w+\.json",
           squad, kind="qa"),
    DataSource("adversarial_qa", "yizhongw/self-instruct", "CC BY-SA 3.0",
           T0 + r"adversarial_qa_\w+_question_context_answer\.jsonl", adversarial_qa, kind="qa"),
)  # fmt: skip


def _git(repository: Path, *words: str, asked: bytes = b"") -> bytes:
    command = ["git", "--git-dir", str(repository), *words]
    return subprocess.run(command, input=asked, check=True, capture_output=True).stdout


def files_of(source: DataSource, mirror: Path) -> tuple[str, Texts]:
    """The commit, and the texts of the set's files that the mirror holds."""
    repository = mirror / source.repository.replace("/", "+") / "repo"
    if (repository / ".git").is_dir():
        repository /= ".git"
    commit = _git(repository, "rev-parse", "HEAD").decode().strip()
    listing = _git(repository, "ls-tree", "-r", "-l", "HEAD").decode().splitlines()
    told = [line.split("\t", 1) for line in listing]
    paths = [p for head, p in told if re.fullmatch(source.paths, p) and head.split()[-1].isdigit()]
    asked = "".join(f"HEAD:{path}\n" for path in paths).encode()
    out = _git(repository, "cat-file", "--batch", asked=asked)
    texts, at = {}, 0
    for path in paths:
        head, at = out[at : out.index(b"\n", at)], out.index(b"\n", at) + 1
        size = int(head.split()[-1])
        texts[path] = out[at : at + size].decode("utf-8", "replace")
        at += size + 1
    return commit, texts


def digests(texts: Texts) -> dict[str, str]:
    """Of each file its sha256; of the many small ones of a folder one together."""
    folders = defaultdict(list)
    for path in sorted(texts):
        folders[str(Path(path).parent)].append(path)
    found = {}
    for folder, paths in folders.items():
        for own in [[path] for path in paths] if len(paths) < MANY else [paths]:
            whole = "".join(texts[path] for path in own).encode()
            name = own[0] if len(own) == 1 else f"{folder}/*"
            found[name] = hashlib.sha256(whole).hexdigest()
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Read every set that the mirror holds, and write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mirror", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args(arguments)
    for number, source in enumerate(SOURCES):
        commit, texts = files_of(source, given.mirror)
        rows = [{"set": source.name, "language": source.language, **one}
                for one in source.read(texts)]  # fmt: skip
        title = f"{number:02d}-{source.name}"
        for folder in (source.kind, "sources.d"):
            (given.out / folder).mkdir(parents=True, exist_ok=True)
        path = given.out / source.kind / f"{title}.jsonl.gz"
        with gzip.open(path, "wt", encoding="utf-8", compresslevel=3) as lines:
            lines.writelines(json.dumps(one, ensure_ascii=False) + "\n" for one in rows)
        told = {"set": source.name, "repository": source.repository, "commit": commit,
                "licence": source.licence, "rows": len(rows), "files": digests(texts)}  # fmt: skip
        (given.out / "sources.d" / f"{title}.json").write_text(json.dumps(told, indent=1) + "\n")
        sys.stderr.write(f"{source.name}: {len(rows)} rows of {len(texts)} files\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
