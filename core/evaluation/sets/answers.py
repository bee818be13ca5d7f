"""Load answers and single facts that people judged true or false.

Questions with listed answers (TruthfulQA, HalluQA, PubMedQA, NQ-open), facts of a text (HELM/MIND,
FActScore, HaluEval 2.0, RefChecker), claims with the evidence found for them (Factcheck-GPT), and
answers of models judged right or wrong (HaluAgent, FacTool, HaluEval). Also sets without
labels for hallucination: recorded debates, code and word problems.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from core.evaluation.dataset_files import (
    GoldRow,
    Loader,
    build_answer_row,
    find_data_files,
    iter_rows,
    load_label_meanings,
    parse_json_object,
    read_keyed_objects,
    read_records,
)
from core.exchange.file_decoding import read_tar_files
from core.exchange.rows import (
    LABEL_BY_ERROR_FLAG,
    LABEL_BY_TRUTH_VALUE,
    FileRecord,
    find_spans,
    normalize_word,
    parse_set_label,
)
from core.schema.records import Label
from core.schema.reviews import LABELS_BY_GRAVITY

CLAIM_FILES = {
    "sentence_math": "sentence/math*.jsonl",
    "sentence_science": "sentence/scientific*.jsonl",
    "sentence_kbqa": "sentence/knowledge_qa*.jsonl",
}
PAPER_FIELDS = ("paper_title", "paper_author(s)", "paper_pub_year")
COMPARED_TASK = "chinese_compared"
QA_FILES = ("qa_cleaned*.json*", "qa_data*.json*", "final_english*.json*")
LABEL_BY_HALLUCINATED_ANSWER = load_label_meanings("halueval", "general")
HALUAGENT_ANSWERS: Mapping[str, Label] = {"right": "supported", "hallucinated": "hallucinated"}
JUDGE_NAME = "Llama-2-7B, fine-tuned (recorded)"
TRANSLATE_WORD = "翻译"  # "translate": the file holds these questions and those on dates
# task -> (file pattern, language, field with the evidence)
ANSWER_FILES: dict[str, tuple[str, str, str]] = {
    "word_count": ("word_cnt*.json", "zh", ""),
    "date": ("translation*date*.json", "zh", ""),
    "translation": ("translation*date*.json", "zh", ""),
    "code": ("*humaneval*.json", "zh", ""),
    "ape": ("ape_*.json", "zh", ""),
    "halueval_qa": ("halueval_qa*.json", "en", "knowledge"),
    "webqa": ("webqa*.json", "zh", "output"),
    "halluqa": ("halluqa*.json", "zh", ""),
    "halueval2": ("halueval2.0*.json", "en", ""),
}
JUDGED_ANSWER_PATTERN = re.compile(r"Q: (?P<question>.*?)\nA: (?P<answer>.*)\nTrue:\s*", re.DOTALL)
CHOICE_PATTERN = re.compile(r"\s([A-Z]):")
LABEL_BY_ANSWER_LIST: Mapping[str, Label] = {
    "Incorrect Answers": "hallucinated",
    "Correct Answers": "supported",
}
LABEL_BY_ANSWER_FIELD: Mapping[str, Label] = {
    "Best Answer": "supported",
    "Wrong_Answer": "hallucinated",
}
LABEL_BY_TRUE_ANSWER = load_label_meanings("truthfulqa", "finetune")
DECISIONS = ("yes", "no", "maybe")
FACTSCORE_LABELS, TRIPLET_LABELS = (
    load_label_meanings("factscore"),
    load_label_meanings("refchecker", "triplets"),
)
REFCHECKER_FILES = (
    "accurate_context/*.json",
    "noisy_context/*.json",
    "zero_context/*.json",
    "*.json",
)
LABEL_BY_OPEN_FACT: Mapping[str, Label] = {
    **LABEL_BY_TRUTH_VALUE,
    "na": "unclear",
    "unknown": "unclear",
}
STANCE_LABELS = load_label_meanings("factcheck_gpt", "subtask3")
VERDICT_LABELS = load_label_meanings("factcheck_gpt", "subtask4")
FACTBENCH_FILES = ("Factbench*.jsonl",)
STANCE_FILES = "subtasks/subtask3*.jsonl"


def load_answers(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """Yield one row per answer; `judge` 1 means hallucinated."""
    pattern, language, evidence = ANSWER_FILES[task]
    for key, record in iter_rows(folder, (pattern,), split):
        if _is_in_task(task, record):
            # `<e>` separates the answers that were found on the web.
            texts = (record.text(evidence).replace("<e>", "\n\n"),) if evidence else ()
            yield build_answer_row(
                key,
                record,
                record.text("question"),
                record.text("answer"),
                parse_set_label(record, record.fields.get("judge"), LABEL_BY_ERROR_FLAG),
                language=language,
                documents=texts,
            )


def _is_in_task(task: str, record: FileRecord) -> bool:
    if task not in ("date", "translation"):
        return True
    return (TRANSLATE_WORD in record.text("question")) == (task == "translation")


def load_code(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """Yield one row per generated function: does it pass the tests of its problem?"""
    for key, record in iter_rows(folder, ("code*.jsonl",), split):
        label = parse_set_label(record, record.fields.get("label"), LABEL_BY_TRUTH_VALUE)
        yield build_answer_row(key, record, record.text("prompt"), record.text("response"), label)


def load_chinese(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """Yield one row per answer of each of seven models; unannotated answers are left out.

    For the task that compares them, the other models' answers to the same prompt are the evidence,
    annotated or not.
    """
    for key, record in iter_rows(folder, ("dataset_chinese*.jsonl",), split):
        answers = list(record.records("responses_and_factuality"))
        for number, answer in enumerate(answers, start=1):
            if answer.fields.get("factuality") is not None:
                others = [one for one in answers if one is not answer]
                yield build_answer_row(
                    f"{key}:{number}",
                    record,
                    record.text("prompt"),
                    _get_response(answer),
                    parse_set_label(answer, answer.fields.get("factuality"), LABEL_BY_TRUTH_VALUE),
                    language="zh",
                    documents=_get_texts(others) if task == COMPARED_TASK else (),
                )


def _get_texts(answers: Sequence[FileRecord]) -> tuple[str, ...]:
    given = (answer for answer in answers if answer.fields.get("response") not in (None, ""))
    return tuple(map(_get_response, given))


def _get_response(answer: FileRecord) -> str:
    response = answer.fields.get("response")
    return str(response) if isinstance(response, int | float) else answer.text("response")


def load_claims(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """Yield one row per claim; those labelled “null” are left out."""
    for key, record in iter_rows(folder, (CLAIM_FILES[task],), split):
        for number, claim in enumerate(record.records("claims"), start=1):
            if claim.fields.get("label") not in (None, "null"):
                label = parse_set_label(claim, claim.fields.get("label"), LABEL_BY_TRUTH_VALUE)
                statement, prompt = _get_statement(claim), record.text("prompt")
                yield build_answer_row(f"{key}:{number}", record, prompt, statement, label)


def _get_statement(claim: FileRecord) -> str:
    if all(name in claim.fields for name in PAPER_FIELDS):
        title, authors, year = (claim.spare(name) for name in PAPER_FIELDS)
        return f"“{title}”, {authors}, {year}"
    if isinstance(claim.fields.get("claim"), str):
        return claim.text("claim")
    calculation = claim.inner("claim")
    answer = calculation.plain("calculated_answer")
    # The solution of an equation is an equation: “2x = 10, so x = 5”.
    sign = ", so " if "=" in answer else " = "
    return f"{calculation.text('math_calculation')}{sign}{answer}"


def load_chinese_checked(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """Yield one row per answer labelled in FacTool's own data, with what was found on the web.

    The file itself has no gold labels of claims or answers: its labels are FacTool's output and
    become `recorded`. Answers without a label in FacTool's data are left out.
    """
    annotated = load_chinese(folder.parent / "factool", "chinese", None)
    gold = {(row.question, row.response): row.label for row in annotated if row.label}
    for key, record in iter_rows(folder, ("sentence/chinese*.jsonl",), split):
        prompt, response = record.text("prompt"), _get_response(record)
        label = gold.get((prompt, response))
        if label:
            factuality = record.fields.get("response_level_factuality")
            yield build_answer_row(
                key,
                record,
                prompt,
                response,
                label,
                language="zh",
                documents=_collect_evidence(record),
                recorded=parse_set_label(record, factuality, LABEL_BY_TRUTH_VALUE),
                recorded_by="FacTool",
            )


def _collect_evidence(record: FileRecord) -> tuple[str, ...]:
    """Return the pieces found on the web for all claims, each once; () if none were kept."""
    if not isinstance(record.fields.get("evidences"), list):
        return ()
    pieces: dict[str, None] = {}
    for result in record.items("evidences"):
        evidence = result.get("evidence") if isinstance(result, dict) else None
        for piece in evidence if isinstance(evidence, list) else []:
            if isinstance(piece, str) and piece.strip():
                pieces[piece.strip()] = None
    return tuple(pieces)


def load_qa(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """Yield two rows per question: the right answer and a deliberately wrong one."""
    for key, record in iter_rows(folder, QA_FILES, split):
        for kind, label in HALUAGENT_ANSWERS.items():
            question, answer = record.text("question"), record.text(f"{kind}_answer")
            texts = (record.text("knowledge"),)
            yield build_answer_row(
                f"{key}:{kind}", record, question, answer, label, documents=texts
            )


def load_general(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """Yield chat answers without evidence; marked pieces are located by their text."""
    for key, record in iter_rows(folder, ("general_data*.json*",), split):
        query, response = record.text("user_query"), record.text("chatgpt_response")
        label = parse_set_label(
            record, record.fields.get("hallucination"), LABEL_BY_HALLUCINATED_ANSWER
        )
        spans = find_spans(response, record.texts("hallucination_spans"))
        # If no piece of a wrong answer is in it, the wrong words are unknown.
        marked = spans if spans or label == "supported" else None
        yield build_answer_row(key, record, query, response, label, spans=marked)


def load_judged(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """Yield answers with one small model's verdict; a missing verdict is `unclear`."""
    for key, record in iter_rows(folder, ("qa_judgements*.json*",), split):
        yield build_answer_row(
            key,
            record,
            record.text("question"),
            record.text("answer"),
            parse_set_label(
                record, record.fields.get("ground_truth"), LABEL_BY_HALLUCINATED_ANSWER
            ),
            documents=(record.text("knowledge"),),
            recorded=LABEL_BY_HALLUCINATED_ANSWER.get(
                normalize_word(record.fields.get("judgement")), "unclear"
            ),
            recorded_by=JUDGE_NAME,
        )


def load_debates(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """Yield one row per recorded debate: its final translation."""
    for path in find_data_files(folder, ("*.tar", "*.tar.gz", "*.tgz"), split):
        for name, data in read_tar_files(str(path), path.read_bytes()):
            if name.endswith(".json"):
                record = parse_json_object(data, f"{path}/{name}")
                translation, source = record.text("debate translation"), record.text("source")
                yield build_answer_row(name, record, source, translation, None)


def load_human_eval(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """Yield one row per code problem with its reference solution."""
    for _, record in iter_rows(folder, ("HumanEval*.jsonl",), split):
        solution = record.text("canonical_solution")
        yield build_answer_row(
            record.text("task_id"), record, record.text("prompt"), solution, None
        )


def load_ape(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """Yield one row per word problem with its gold value."""
    for key, record in iter_rows(folder, ("*ape*.json", "*ape*.jsonl"), split):
        question, value = record.text("original_text"), record.text("ans")
        yield build_answer_row(key, record, question, value, None, language="zh")


HALUAGENT_LOADERS: Mapping[str, Loader] = {
    "haluagent": load_answers,
    **{f"haluagent/{task}": load_claims for task in CLAIM_FILES},
    "haluagent/sentence_chinese": load_chinese_checked,
    "factool/code": load_code,
    "factool": load_chinese,
    "halueval/qa": load_qa,
    "halueval/general": load_general,
    "halueval/qa_judgements": load_judged,
    "mad_debates": load_debates,
    "human_eval": load_human_eval,
    "ape210k": load_ape,
}


def load_truthfulqa(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """Yield one row per listed answer, true or false; there is no evidence."""
    for key, record in iter_rows(folder, ("TruthfulQA*.csv",), split):
        question = record.text("Question")
        listed = {name: record.text(name).split(";") for name in LABEL_BY_ANSWER_LIST}
        labels = {
            a.strip(): label for name, label in LABEL_BY_ANSWER_LIST.items() for a in listed[name]
        }
        labels.pop("", None)
        for number, (answer, label) in enumerate(labels.items(), start=1):
            yield build_answer_row(f"{key}:{number}", record, question, answer, label)


def load_truthfulqa_finetune(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """Yield answers of models and people to the same questions, judged true or false."""
    for key, record in iter_rows(folder, ("finetune_truth*.jsonl",), split):
        match = JUDGED_ANSWER_PATTERN.fullmatch(record.text("prompt"))
        if not match:
            raise record.broken("a prompt “Q: …, A: …, True:”", record.text("prompt"))
        label = record.chosen(LABEL_BY_TRUE_ANSWER, "completion")
        if match["answer"].strip():
            yield build_answer_row(key, record, match["question"], match["answer"], label)


def load_halluqa(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """Yield one row per best and wrong answer, in Chinese."""
    for key, record in iter_rows(folder, ("HalluQA.json*",), split):
        question = record.text("Question")
        answers = [
            (record.spare(field), label)
            for start, label in LABEL_BY_ANSWER_FIELD.items()
            for field in record.fields
            if field.startswith(start) and record.spare(field)
        ]
        for number, (answer, label) in enumerate(answers, start=1):
            yield build_answer_row(
                f"{key}:{number}", record, question, answer, label, language="zh"
            )


def load_halluqa_choices(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """Yield one row per choice of a question; one choice is right."""
    for key, record in iter_rows(folder, ("HalluQA_mc*.json*",), split):
        question, *rest = CHOICE_PATTERN.split(record.text("question"))
        letters, texts = rest[::2], [text.strip() for text in rest[1::2]]
        right = record.text("answer").removeprefix("Answer:").strip()
        if right not in letters or not all(texts):
            raise record.broken(f"an answer among {', '.join(letters)}", right)
        prompt = question.removeprefix("Question:").strip()
        for letter, text in zip(letters, texts, strict=True):
            label: Label = "supported" if letter == right else "hallucinated"
            yield build_answer_row(f"{key}:{letter}", record, prompt, text, label, language="zh")


def load_pubmedqa(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """Yield “Yes” and “No” per question; the document is the abstract without its conclusion."""
    for path in find_data_files(folder, ("*pqa*.json",), split):
        for key, record in read_keyed_objects(path):
            decision = record.plain("final_decision").strip().lower()
            if decision not in DECISIONS:
                raise record.broken("final_decision to be yes, no or maybe", decision)
            texts = ("\n\n".join(record.texts("CONTEXTS")),)
            for answer in ("Yes", "No"):
                decided: Label = "supported" if answer.lower() == decision else "hallucinated"
                yield build_answer_row(
                    f"{key}:{answer.lower()}",
                    record,
                    record.text("QUESTION"),
                    answer,
                    "unclear" if decision == "maybe" else decided,
                    documents=texts,
                )


def load_nq_open(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """Yield the first accepted answer per question, without evidence or wrong answers."""
    for key, record in iter_rows(folder, ("NQ-open*.jsonl",), split):
        answers = [one.strip() for one in record.texts("answer") if one.strip()]
        if not answers:
            raise record.broken("at least one accepted answer")
        yield build_answer_row(key, record, record.text("question"), answers[0], "supported")


def load_helm(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """Yield one row per sentence of a model's continuation of an article, without evidence."""
    for path in find_data_files(folder, ("helm/*.json", "*.json"), split):
        for key, record in read_keyed_objects(path):
            for number, sentence in enumerate(record.records("sentences"), start=1):
                row_key = f"{path.name.removesuffix('.gz')}:{key}:{number}"
                label = parse_set_label(sentence, sentence.fields.get("label"), LABEL_BY_ERROR_FLAG)
                text, prompt = sentence.text("sentence"), record.text("prompt")
                yield build_answer_row(row_key, record, prompt, text, label)


def load_factscore(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """Yield one row per atomic fact of a biography, without irrelevant facts and abstentions."""
    for key, record in iter_rows(folder, ("*.jsonl",), split):
        parts = _get_parts(record, "annotations")
        facts = [fact for part in parts for fact in _get_parts(part, "human-atomic-facts")]
        for number, fact in enumerate(facts, start=1):
            label = fact.chosen(FACTSCORE_LABELS, "label")
            if label:
                question, statement = record.text("input"), fact.text("text")
                yield build_answer_row(f"{key}:{number}", record, question, statement, label)


def _get_parts(record: FileRecord, name: str) -> list[FileRecord]:
    return [] if record.fields.get(name) is None else record.records(name)


def load_halueval2(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """Yield one row per fact of an answer, with another model's verdict if it is recorded."""
    verdicts_by_file: dict[str, dict[str, tuple[str, ...]]] = {}
    for key, record in iter_rows(folder, ("human_annotation/*.json",), split):
        name = key.rpartition(":")[0].rpartition("/")[2]
        if name not in verdicts_by_file:
            verdicts_by_file[name] = _load_verdicts_by_answer(folder / "model_prediction", name)
        verdicts = verdicts_by_file[name].get(_build_key(record), ())
        facts, labels = record.texts("chatgpt_fact"), record.items("human_judge")
        if labels and len(labels) != len(facts):
            raise record.broken(f"{len(facts)} labels in human_judge", len(labels))
        for number, (fact, value) in enumerate(zip(facts, labels, strict=False)):
            verdict = verdicts[number] if number < len(verdicts) else ""
            yield build_answer_row(
                f"{key}:{number + 1}",
                record,
                record.text("user_query"),
                fact,
                parse_set_label(record, value, LABEL_BY_TRUTH_VALUE),
                recorded=_parse_first_word(verdict),
                recorded_by="ChatGPT (recorded)" if verdict else "",
            )


def _load_verdicts_by_answer(folder: Path, name: str) -> dict[str, tuple[str, ...]]:
    """Return the model's verdicts on the facts of each answer; {} if the file is missing."""
    paths = [path for path in (folder / f"{name}.gz", folder / name) if path.is_file()]
    judged_records = (one for path in paths[:1] for one in read_records(path))
    return {
        _build_key(one): tuple(map(normalize_word, one.items("chatgpt_judge")))
        for one in judged_records
    }


def _build_key(record: FileRecord) -> str:
    return record.text("user_query") + record.text("chatgpt_response")


def _parse_first_word(verdict: str) -> Label | None:
    known = (label for start, label in LABEL_BY_TRUTH_VALUE.items() if verdict.startswith(start))
    return next(known, "unclear") if verdict else None


def load_triplets(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """Yield each claim triplet of an answer (`triplets`) or the whole answer (`responses`).

    The worst triplet gives the answer's label; answers without triplets are left out.
    """
    for key, record in iter_rows(folder, REFCHECKER_FILES, split):
        triplets = record.records("claude2_response_kg")
        labels = [triplet.chosen(TRIPLET_LABELS, "human_label") for triplet in triplets]
        group = record.text("id")
        if task == "responses":
            if labels:
                worst = next(label for label in LABELS_BY_GRAVITY if label in labels)
                yield GoldRow(key, record.place, record.text("response"), worst, group)
            continue
        for number, (triplet, label) in enumerate(zip(triplets, labels, strict=True), start=1):
            statement = " ".join(triplet.texts("triplet"))
            yield GoldRow(f"{key}:{number}", record.place, statement, label, group)


def load_factbench(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """Yield one row per answer of a model; there is no evidence."""
    for key, record in iter_rows(folder, FACTBENCH_FILES, split):
        label = parse_set_label(record, record.fields.get("response_label"), LABEL_BY_OPEN_FACT)
        yield build_answer_row(key, record, record.text("prompt"), record.text("response"), label)


def load_factbench_claims(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """Yield one row per claim of an answer; there is no evidence."""
    for key, record in iter_rows(folder, FACTBENCH_FILES, split):
        claims, labels = record.texts("claims"), record.items("claim_labels")
        if len(claims) != len(labels):
            raise record.broken(f"{len(claims)} labels in claim_labels", len(labels))
        for number, (claim, value) in enumerate(zip(claims, labels, strict=True), start=1):
            label = parse_set_label(record, value, LABEL_BY_OPEN_FACT)
            yield build_answer_row(f"{key}:{number}", record, record.text("prompt"), claim, label)


def load_stances(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """Yield one row per claim and piece of evidence: does the piece support it?"""
    prompts = _load_prompts(folder)
    for key, record in iter_rows(folder, (STANCE_FILES,), split):
        claim, label = record.text("claim"), record.chosen(STANCE_LABELS, "stance")
        group, texts = prompts.get(claim, claim), (record.text("evidence"),)
        yield GoldRow(key, record.place, claim, label, group, documents=texts)


def load_verdicts(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """Yield one row per claim; its documents are all its pieces of evidence from subtask 3."""
    prompts, evidence = _load_prompts(folder), _load_evidence(folder)
    for key, record in iter_rows(folder, ("subtasks/subtask4*.jsonl",), split):
        claim = record.text("claim")
        label = parse_set_label(record, record.fields.get("label"), VERDICT_LABELS)
        group, texts = prompts.get(claim, claim), tuple(dict.fromkeys(evidence.get(claim, ())))
        yield GoldRow(key, record.place, claim, label, group, documents=texts)


def _load_prompts(folder: Path) -> dict[str, str]:
    prompts: dict[str, str] = {}
    for path in sorted(folder.glob("factcheck-GPT-benchmark.jsonl*")):
        for record in read_records(path):
            sentences = record.inner("sentences")
            for name in sentences.fields:
                for claim in sentences.inner(name).texts("claims"):
                    prompts.setdefault(claim, record.text("prompt"))
    return prompts


def _load_evidence(folder: Path) -> dict[str, list[str]]:
    evidence: dict[str, list[str]] = {}
    for path in sorted(folder.glob(f"{STANCE_FILES}*")):
        for record in read_records(path):
            evidence.setdefault(record.text("claim"), []).append(record.text("evidence"))
    return evidence


ANSWER_LOADERS: Mapping[str, Loader] = {
    "truthfulqa/pairs": load_truthfulqa,
    "truthfulqa/finetune": load_truthfulqa_finetune,
    "halluqa/answers": load_halluqa,
    "halluqa/mc": load_halluqa_choices,
    "pubmedqa": load_pubmedqa,
    "nq_open": load_nq_open,
    "helm_mind": load_helm,
    "factscore": load_factscore,
    "halueval2": load_halueval2,
    "refchecker": load_triplets,
    "factcheck_gpt/factbench": load_factbench,
    "factcheck_gpt/factbench_claims": load_factbench_claims,
    "factcheck_gpt/subtask3": load_stances,
    "factcheck_gpt/subtask4": load_verdicts,
}
