"""Answers and single facts that people judged true or false.

Questions with listed answers (TruthfulQA, HalluQA, PubMedQA, NQ-open), facts of a text (HELM/MIND,
FActScore, HaluEval 2.0, RefChecker), claims with the evidence found for them (Factcheck-GPT), and
answers of models judged right or wrong (HaluAgent, FacTool, HaluEval). Also sets that nobody
labelled for hallucination: recorded debates, code and word problems.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from core.evaluation.files import (
    GoldRow,
    Loader,
    answered,
    data_files,
    json_object,
    keyed,
    meanings,
    records,
    rows_in,
)
from core.exchange.packed import tarred
from core.exchange.rows import FACT_IS_TRUE, WRONG_IS_TRUE, Record, found_spans, label_of, word
from core.schema.records import Label

CLAIM_FILES = {
    "sentence_math": "sentence/math*.jsonl",
    "sentence_science": "sentence/scientific*.jsonl",
    "sentence_kbqa": "sentence/knowledge_qa*.jsonl",
}
PAPER = ("paper_title", "paper_author(s)", "paper_pub_year")
COMPARED = "chinese_compared"
QA_FILES = ("qa_cleaned*.json*", "qa_data*.json*", "final_english*.json*")
YES_IS_WRONG = meanings("halueval", "general")
HALUAGENT_ANSWERS: Mapping[str, Label] = {"right": "supported", "hallucinated": "hallucinated"}
JUDGE = "Llama-2-7B, fine-tuned (recorded)"
TRANSLATE = "翻译"  # the word for "translate": the file holds these questions and those on dates
# task -> (pattern of the file, language, field whose text is the evidence)
FILES: dict[str, tuple[str, str, str]] = {
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


def load_answers(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """One row an answer; `judge` 1 says that it is hallucinated."""
    pattern, language, evidence = FILES[task]
    for own, record in rows_in(folder, (pattern,), split):
        if _is_of(task, record):
            # `<e>` parts the answers that were found on the web.
            texts = (record.text(evidence).replace("<e>", "\n\n"),) if evidence else ()
            yield answered(
                own,
                record,
                record.text("question"),
                record.text("answer"),
                label_of(record, record.fields.get("judge"), WRONG_IS_TRUE),
                language=language,
                documents=texts,
            )


def _is_of(task: str, record: Record) -> bool:
    if task not in ("date", "translation"):
        return True
    return (TRANSLATE in record.text("question")) == (task == "translation")


def load_code(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """One row a generated function: does it pass the tests of its problem?"""
    for own, record in rows_in(folder, ("code*.jsonl",), split):
        label = label_of(record, record.fields.get("label"), FACT_IS_TRUE)
        yield answered(own, record, record.text("prompt"), record.text("response"), label)


def load_chinese(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """One row an answer of each of seven models; what nobody annotated is left out.

    For the task that compares them, what the other models answered to the same prompt is the
    evidence, annotated or not.
    """
    for own, record in rows_in(folder, ("dataset_chinese*.jsonl",), split):
        answers = list(record.records("responses_and_factuality"))
        for number, answer in enumerate(answers, start=1):
            if answer.fields.get("factuality") is not None:
                others = [one for one in answers if one is not answer]
                yield answered(
                    f"{own}:{number}",
                    record,
                    record.text("prompt"),
                    _response(answer),
                    label_of(answer, answer.fields.get("factuality"), FACT_IS_TRUE),
                    language="zh",
                    documents=_texts(others) if task == COMPARED else (),
                )


def _texts(answers: Sequence[Record]) -> tuple[str, ...]:
    return tuple(_response(one) for one in answers if one.fields.get("response") not in (None, ""))


def _response(answer: Record) -> str:
    said = answer.fields.get("response")
    return str(said) if isinstance(said, int | float) else answer.text("response")


def load_claims(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """One row a claim; those labelled “null” are left out."""
    for own, record in rows_in(folder, (CLAIM_FILES[task],), split):
        for number, claim in enumerate(record.records("claims"), start=1):
            if claim.fields.get("label") not in (None, "null"):
                label = label_of(claim, claim.fields.get("label"), FACT_IS_TRUE)
                said, prompt = _statement(claim), record.text("prompt")
                yield answered(f"{own}:{number}", record, prompt, said, label)


def _statement(claim: Record) -> str:
    if all(name in claim.fields for name in PAPER):
        title, authors, year = (claim.spare(name) for name in PAPER)
        return f"“{title}”, {authors}, {year}"
    if isinstance(claim.fields.get("claim"), str):
        return claim.text("claim")
    sum_ = claim.inner("claim")
    answer = sum_.plain("calculated_answer")
    # An equation's solution is one itself: “2x = 10, so x = 5”.
    sign = ", so " if "=" in answer else " = "
    return f"{sum_.text('math_calculation')}{sign}{answer}"


def load_chinese_checked(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """One row an answer whose label FacTool's own data holds, with what was found on the web.

    The file itself has no gold label, of claims or answers: what it says is FacTool's output and
    becomes `recorded`. Answers that FacTool's data does not hold or annotate are left out.
    """
    annotated = load_chinese(folder.parent / "factool", "chinese", None)
    gold = {(row.question, row.response): row.label for row in annotated if row.label}
    for own, record in rows_in(folder, ("sentence/chinese*.jsonl",), split):
        prompt, response = record.text("prompt"), _response(record)
        label = gold.get((prompt, response))
        if label:
            told = record.fields.get("response_level_factuality")
            yield answered(
                own,
                record,
                prompt,
                response,
                label,
                language="zh",
                documents=_found(record),
                recorded=label_of(record, told, FACT_IS_TRUE),
                recorded_by="FacTool",
            )


def _found(record: Record) -> tuple[str, ...]:
    """What was found on the web for each claim, each piece once; nothing where it is not kept."""
    if not isinstance(record.fields.get("evidences"), list):
        return ()
    pieces: dict[str, None] = {}
    for one in record.items("evidences"):
        found = one.get("evidence") if isinstance(one, dict) else None
        for piece in found if isinstance(found, list) else []:
            if isinstance(piece, str) and piece.strip():
                pieces[piece.strip()] = None
    return tuple(pieces)


def load_qa(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """Two rows a question: the right answer and the one that was made to be wrong."""
    for own, record in rows_in(folder, QA_FILES, split):
        for kind, label in HALUAGENT_ANSWERS.items():
            question, answer = record.text("question"), record.text(f"{kind}_answer")
            texts = (record.text("knowledge"),)
            yield answered(f"{own}:{kind}", record, question, answer, label, documents=texts)


def load_general(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """Chat answers without evidence; marked pieces are found in the answer by their text."""
    for own, record in rows_in(folder, ("general_data*.json*",), split):
        query, response = record.text("user_query"), record.text("chatgpt_response")
        label = label_of(record, record.fields.get("hallucination"), YES_IS_WRONG)
        spans = found_spans(response, record.texts("hallucination_spans"))
        # A wrong answer none of whose pieces stands in it: nobody knows which words.
        known = spans if spans or label == "supported" else None
        yield answered(own, record, query, response, label, spans=known)


def load_judged(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """Answers with what one small model said of them; an answer it did not give is `unclear`."""
    for own, record in rows_in(folder, ("qa_judgements*.json*",), split):
        yield answered(
            own,
            record,
            record.text("question"),
            record.text("answer"),
            label_of(record, record.fields.get("ground_truth"), YES_IS_WRONG),
            documents=(record.text("knowledge"),),
            recorded=YES_IS_WRONG.get(word(record.fields.get("judgement")), "unclear"),
            recorded_by=JUDGE,
        )


def load_debates(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """One row a recorded debate: the translation that it ended with."""
    for path in data_files(folder, ("*.tar", "*.tar.gz", "*.tgz"), split):
        for name, data in tarred(str(path), path.read_bytes()):
            if name.endswith(".json"):
                record = json_object(data, f"{path}/{name}")
                said, source = record.text("debate translation"), record.text("source")
                yield answered(name, record, source, said, None)


def load_human_eval(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """One row a code problem with its reference solution."""
    for _, record in rows_in(folder, ("HumanEval*.jsonl",), split):
        solution = record.text("canonical_solution")
        yield answered(record.text("task_id"), record, record.text("prompt"), solution, None)


def load_ape(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """One row a word problem with its gold value."""
    for own, record in rows_in(folder, ("*ape*.json", "*ape*.jsonl"), split):
        question, value = record.text("original_text"), record.text("ans")
        yield answered(own, record, question, value, None, language="zh")


HALUAGENT: Mapping[str, Loader] = {
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


JUDGED_ANSWER = re.compile(r"Q: (?P<question>.*?)\nA: (?P<answer>.*)\nTrue:\s*", re.DOTALL)
CHOICE = re.compile(r"\s([A-Z]):")
LISTS: Mapping[str, Label] = {"Incorrect Answers": "hallucinated", "Correct Answers": "supported"}
KINDS: Mapping[str, Label] = {"Best Answer": "supported", "Wrong_Answer": "hallucinated"}
YES_IS_TRUE = meanings("truthfulqa", "finetune")
DECISIONS = ("yes", "no", "maybe")
ATOMIC, TRIPLETS = meanings("factscore"), meanings("refchecker", "triplets")
WORST: tuple[Label, ...] = ("hallucinated", "unclear", "supported")
SETTINGS = ("accurate_context/*.json", "noisy_context/*.json", "zero_context/*.json", "*.json")
OPEN_FACTS: Mapping[str, Label] = {**FACT_IS_TRUE, "na": "unclear", "unknown": "unclear"}
STANCES = meanings("factcheck_gpt", "subtask3")
VERDICTS = meanings("factcheck_gpt", "subtask4")
FACTBENCH = ("Factbench*.jsonl",)
STANCE_FILES = "subtasks/subtask3*.jsonl"


def load_truthfulqa(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """One row for each listed answer, true or false; there is no evidence."""
    for own, record in rows_in(folder, ("TruthfulQA*.csv",), split):
        question = record.text("Question")
        parted = {field: record.text(field).split(";") for field in LISTS}
        listed = {one.strip(): label for field, label in LISTS.items() for one in parted[field]}
        listed.pop("", None)
        for number, (answer, label) in enumerate(listed.items(), start=1):
            yield answered(f"{own}:{number}", record, question, answer, label)


def load_truthfulqa_finetune(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """Answers of models and people to the same questions, judged true or false."""
    for own, record in rows_in(folder, ("finetune_truth*.jsonl",), split):
        found = JUDGED_ANSWER.fullmatch(record.text("prompt"))
        if not found:
            raise record.broken("a prompt “Q: …, A: …, True:”", record.text("prompt"))
        label = record.chosen(YES_IS_TRUE, "completion")
        if found["answer"].strip():
            yield answered(own, record, found["question"], found["answer"], label)


def load_halluqa(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """One row for each best and each wrong answer, in Chinese."""
    for own, record in rows_in(folder, ("HalluQA.json*",), split):
        question = record.text("Question")
        found = [
            (record.spare(field), label)
            for start, label in KINDS.items()
            for field in record.fields
            if field.startswith(start) and record.spare(field)
        ]
        for number, (answer, label) in enumerate(found, start=1):
            yield answered(f"{own}:{number}", record, question, answer, label, language="zh")


def load_halluqa_choices(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """One row for each choice of a question; one choice is right."""
    for own, record in rows_in(folder, ("HalluQA_mc*.json*",), split):
        question, *rest = CHOICE.split(record.text("question"))
        letters, texts = rest[::2], [text.strip() for text in rest[1::2]]
        right = record.text("answer").removeprefix("Answer:").strip()
        if right not in letters or not all(texts):
            raise record.broken(f"an answer among {', '.join(letters)}", right)
        asked = question.removeprefix("Question:").strip()
        for letter, text in zip(letters, texts, strict=True):
            label: Label = "supported" if letter == right else "hallucinated"
            yield answered(f"{own}:{letter}", record, asked, text, label, language="zh")


def load_pubmedqa(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """Two rows a question, “Yes” and “No”; the abstract without its conclusion is the document."""
    for path in data_files(folder, ("*pqa*.json",), split):
        for key, record in keyed(path):
            decision = record.plain("final_decision").strip().lower()
            if decision not in DECISIONS:
                raise record.broken("final_decision to be yes, no or maybe", decision)
            texts = ("\n\n".join(record.texts("CONTEXTS")),)
            for answer in ("Yes", "No"):
                told: Label = "supported" if answer.lower() == decision else "hallucinated"
                yield answered(
                    f"{key}:{answer.lower()}",
                    record,
                    record.text("QUESTION"),
                    answer,
                    "unclear" if decision == "maybe" else told,
                    documents=texts,
                )


def load_nq_open(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """The first accepted answer to each question; there is neither evidence nor a wrong answer."""
    for own, record in rows_in(folder, ("NQ-open*.jsonl",), split):
        answers = [one.strip() for one in record.texts("answer") if one.strip()]
        if not answers:
            raise record.broken("at least one accepted answer")
        yield answered(own, record, record.text("question"), answers[0], "supported")


def load_helm(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """One row a sentence with which a model went on writing an article; there is no evidence."""
    for path in data_files(folder, ("helm/*.json", "*.json"), split):
        for key, record in keyed(path):
            for number, one in enumerate(record.records("sentences"), start=1):
                own = f"{path.name.removesuffix('.gz')}:{key}:{number}"
                label = label_of(one, one.fields.get("label"), WRONG_IS_TRUE)
                yield answered(own, record, record.text("prompt"), one.text("sentence"), label)


def load_factscore(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """One row an atomic fact of a biography; irrelevant facts and abstentions are left out."""
    for own, record in rows_in(folder, ("*.jsonl",), split):
        parts = _parts(record, "annotations")
        facts = [fact for part in parts for fact in _parts(part, "human-atomic-facts")]
        for number, fact in enumerate(facts, start=1):
            label = fact.chosen(ATOMIC, "label")
            if label:
                question, said = record.text("input"), fact.text("text")
                yield answered(f"{own}:{number}", record, question, said, label)


def _parts(record: Record, name: str) -> list[Record]:
    return [] if record.fields.get(name) is None else record.records(name)


def load_halueval2(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """One row a fact of an answer, with what another model had judged where that is recorded."""
    judged: dict[str, dict[str, tuple[str, ...]]] = {}
    for own, record in rows_in(folder, ("human_annotation/*.json",), split):
        name = own.rpartition(":")[0].rpartition("/")[2]
        if name not in judged:
            judged[name] = _judged(folder / "model_prediction", name)
        others = judged[name].get(_key(record), ())
        facts, labels = record.texts("chatgpt_fact"), record.items("human_judge")
        if labels and len(labels) != len(facts):
            raise record.broken(f"{len(facts)} labels in human_judge", len(labels))
        for number, (fact, said) in enumerate(zip(facts, labels, strict=False)):
            other = others[number] if number < len(others) else ""
            yield answered(
                f"{own}:{number + 1}",
                record,
                record.text("user_query"),
                fact,
                label_of(record, said, FACT_IS_TRUE),
                recorded=_first_word(other),
                recorded_by="ChatGPT (recorded)" if other else "",
            )


def _judged(folder: Path, name: str) -> dict[str, tuple[str, ...]]:
    """What the model said of each fact of each answer; nothing where the file is not there."""
    there = [path for path in (folder / f"{name}.gz", folder / name) if path.is_file()]
    found = (one for path in there[:1] for one in records(path))
    return {_key(one): tuple(map(word, one.items("chatgpt_judge"))) for one in found}


def _key(record: Record) -> str:
    return record.text("user_query") + record.text("chatgpt_response")


def _first_word(said: str) -> Label | None:
    known = (label for start, label in FACT_IS_TRUE.items() if said.startswith(start))
    return next(known, "unclear") if said else None


def load_triplets(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """`triplets`: a claim triplet of an answer as one statement; `responses`: the whole answer.

    The worst triplet is the answer's label; answers that say nothing have none.
    """
    for own, record in rows_in(folder, SETTINGS, split):
        triplets = record.records("claude2_response_kg")
        labels = [triplet.chosen(TRIPLETS, "human_label") for triplet in triplets]
        group = record.text("id")
        if task == "responses":
            if labels:
                worst = next(label for label in WORST if label in labels)
                yield GoldRow(own, record.place, record.text("response"), worst, group)
            continue
        for number, (triplet, label) in enumerate(zip(triplets, labels, strict=True), start=1):
            said = " ".join(triplet.texts("triplet"))
            yield GoldRow(f"{own}:{number}", record.place, said, label, group)


def load_factbench(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """One row an answer of a model; there is no evidence."""
    for own, record in rows_in(folder, FACTBENCH, split):
        label = label_of(record, record.fields.get("response_label"), OPEN_FACTS)
        yield answered(own, record, record.text("prompt"), record.text("response"), label)


def load_factbench_claims(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """One row a claim of an answer; there is no evidence."""
    for own, record in rows_in(folder, FACTBENCH, split):
        claims, labels = record.texts("claims"), record.items("claim_labels")
        if len(claims) != len(labels):
            raise record.broken(f"{len(claims)} labels in claim_labels", len(labels))
        for number, (claim, said) in enumerate(zip(claims, labels, strict=True), start=1):
            label = label_of(record, said, OPEN_FACTS)
            yield answered(f"{own}:{number}", record, record.text("prompt"), claim, label)


def load_stances(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """One row a claim with one piece of evidence: does this piece carry it?"""
    prompts = _prompts(folder)
    for own, record in rows_in(folder, (STANCE_FILES,), split):
        claim, label = record.text("claim"), record.chosen(STANCES, "stance")
        group, texts = prompts.get(claim, claim), (record.text("evidence"),)
        yield GoldRow(own, record.place, claim, label, group, documents=texts)


def load_verdicts(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """One row a claim; every piece of evidence that subtask 3 holds for it is a document."""
    prompts, evidence = _prompts(folder), _evidence(folder)
    for own, record in rows_in(folder, ("subtasks/subtask4*.jsonl",), split):
        claim = record.text("claim")
        label = label_of(record, record.fields.get("label"), VERDICTS)
        group, texts = prompts.get(claim, claim), tuple(dict.fromkeys(evidence.get(claim, ())))
        yield GoldRow(own, record.place, claim, label, group, documents=texts)


def _prompts(folder: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for path in sorted(folder.glob("factcheck-GPT-benchmark.jsonl*")):
        for record in records(path):
            sentences = record.inner("sentences")
            for name in sentences.fields:
                for claim in sentences.inner(name).texts("claims"):
                    found.setdefault(claim, record.text("prompt"))
    return found


def _evidence(folder: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for path in sorted(folder.glob(f"{STANCE_FILES}*")):
        for record in records(path):
            found.setdefault(record.text("claim"), []).append(record.text("evidence"))
    return found


ANSWERS: Mapping[str, Loader] = {
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
