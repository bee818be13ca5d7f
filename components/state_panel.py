"""The state of a run as CEDA draws it (fig. 2): what went in, what was built up, what came out."""

from __future__ import annotations

from components.audit_rows import has_audit
from components.debate_calls import debate_words, expected_words, plan_words
from components.markup import Html, element
from components.readers import readers_words
from components.words import LABEL_WORDS, counted, percent
from core.baseline.wording import shortened
from core.progress import Progress
from core.records import Case, Context, Judgement, Run

LONGEST = 300


def state_html(run: Run, case: Case, progress: Progress) -> Html:
    """Three boxes: initial, intermediate and output state."""
    return element(
        "div",
        _box("Initial state", _initial(run, case, progress)),
        _box("Intermediate state", _intermediate(progress)),
        _box("Output state", _output(progress)),
        class_="cp-state",
    )


def _box(title: str, entries: list[tuple[str, str]]) -> Html:
    pairs: list[Html] = []
    for name, value in entries:
        pairs += [element("dt", name), element("dd", shortened(value, LONGEST), dir="auto")]
    return element("div", element("h4", title), element("dl", *pairs), class_="cp-state-box")


def _initial(run: Run, case: Case, progress: Progress) -> list[tuple[str, str]]:
    documents = [
        f"{d.name} ({len(d.pages)} pages, {d.characters:,} characters)" if d.pages else d.name
        for d in progress.documents.values()
    ]
    images = [event.name for event in progress.images.values()]
    return [
        ("Input text", case.response),
        *([("Question", case.question)] if case.question else []),
        ("Documents", "; ".join(documents) or "none"),
        ("Images", "; ".join(images) or "none"),
        ("Role", case.role or "none"),
        ("Instruction", case.instruction or "none"),
        (
            "Plan",
            f"{plan_words(run.plan)}, {run.plan.passages} passages a statement",
        ),
        *([("Debate, at most", words)] if (words := expected_words(progress)) else []),
    ]


def _intermediate(progress: Progress) -> list[tuple[str, str]]:
    context = progress.context
    described = [event.text or "not readable here" for event in progress.images.values()]
    images = [("Information from images", " ".join(described))] if described else []
    if has_audit(progress):
        return [
            ("Statements", str(len(progress.statements))),
            ("Passages", f"{len(progress.evidence)} found"),
            *images,
            ("Debated", contested_words(progress)),
            *(_argued(progress, context, "Passages of the debate") if context else []),
        ]
    passages, *argued = _argued(progress, context, "Passages")
    return [("Statements", str(len(progress.statements))), passages, *images, *argued]


def contested_words(progress: Progress) -> str:
    """Which statements of an audit were argued about."""
    if progress.context is None:
        return "nothing, for nothing stayed contested" if progress.judgement else "nothing so far"
    numbers = ", ".join(str(index + 1) for index in progress.contested)
    noun = "statement" if len(progress.contested) == 1 else "statements"
    return f"only what stayed contested: {noun} {numbers}" if numbers else "what stayed contested"


def _argued(progress: Progress, context: Context | None, passages: str) -> list[tuple[str, str]]:
    """What the debate had before it and how it went; `passages` names what it read."""
    shares = (
        "; ".join(f"{s.debater}: {counted(len(s.passages), 'passage')}" for s in context.shares)
        if context
        else "none yet"
    )
    return [
        (passages, context.summary if context else f"{len(progress.evidence)} found"),
        ("Shares", shares),
        ("Conflicts", " ".join(context.conflicts) if context and context.conflicts else "none"),
        ("Debate", debate_words(progress)),
        *([("Why", progress.decided.why)] if progress.decided else []),
    ]


def _contested(judgement: Judgement, progress: Progress) -> list[tuple[str, str]]:
    """What readers and debaters contested; neither a language model nor an audit lists words."""
    judge = next((used for used in progress.roles if used.role == "judge"), None)
    if judge is not None and not judge.built_in:
        return []
    readers = [("Readers", readers_words(judgement))] if judgement.readers else []
    if has_audit(progress):
        return readers
    return [
        *readers,
        ("Contested by several", ", ".join(judgement.agreed) or "nothing"),
        ("Contested by one", ", ".join(judgement.disputed) or "nothing"),
    ]


def _output(progress: Progress) -> list[tuple[str, str]]:
    judgement, verdict = progress.judgement, progress.verdict
    entries: list[tuple[str, str]] = []
    if judgement:
        entries += [
            ("Judge", f"{judgement.agent}: {LABEL_WORDS[judgement.label].lower()}"),
            ("Judge's text, which the classifier reads", judgement.text),
        ]
        entries += _contested(judgement, progress)
    if verdict:
        entries.append(("Label", LABEL_WORDS[verdict.label].lower()))
        if verdict.p_hallucinated is not None and verdict.confidence is not None:
            entries += [
                ("p(hallucinated)", f"{verdict.p_hallucinated:.3f}"),
                ("Confidence, max(p, 1 − p)", percent(verdict.confidence)),
            ]
        entries.append(("Classifier", verdict.classifier))
    return entries or [("Nothing yet", "The run has not come to its output.")]
