"""The verdict, first and large: label, probability, and in words what that is worth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from components.markup import Html, element
from components.plain import rationale_lines
from components.readers import readers_html
from components.show import show
from components.words import (
    CAUSE_ADVICE,
    CAUSE_WORDS,
    LABEL_SIGNS,
    LABEL_WORDS,
    percent,
)
from core.progress import Progress
from core.records import Verdict
from core.store.versions import SEED_VERSION

TOO_FEW = "Too few verdicts with a confidence like this were measured to say how often it is right."


MATERIAL_WORDS = {
    "claim": "a short passage",
    "answer": "a passage, as answers to a question,",
    "document": "a long document",
    "table": "a table",
}


@dataclass(frozen=True)
class Past:
    """What past verdicts of the project say of this one, in words; `how` says how it was counted.

    `is_known`: they were enough for a share. `for_people` says why people must decide, if they
    must.
    """

    words: str = ""
    how: str = ""
    is_known: bool = False
    for_people: str = ""


NO_PAST = Past()


def draw_verdict(progress: Progress, card: dict[str, Any] | None, past: Past = NO_PAST) -> None:
    """The verdict's card; `card` is the classifier's, for what its probabilities were worth."""
    show(verdict_html(progress, card, past))


def verdict_html(progress: Progress, card: dict[str, Any] | None, past: Past = NO_PAST) -> Html:
    """The verdict's card as markup; empty while there is no verdict."""
    verdict = progress.verdict
    if verdict is None:
        return Html("")
    sign, word = LABEL_SIGNS[verdict.label], LABEL_WORDS[verdict.label]
    parts: list[str | Html] = [
        element("div", f"{sign} {word}", class_="cp-verdict-label"),
    ]
    if verdict.p_hallucinated is None:
        parts += _cause(verdict)
    else:
        parts += _probability(verdict)
        parts.append(_worth(worth_words(verdict, card, progress, past), past.how))
        if past.for_people:
            parts.append(element("div", f"⚑ {past.for_people}", class_="cp-verdict-people"))
    if verdict.p_hallucinated is not None:
        why = (element("div", line, dir="auto") for line in rationale_lines(verdict.rationale))
        parts.append(element("div", *why, class_="cp-verdict-why"))
    parts.append(readers_html(progress))
    again = again_words(progress)
    if again:
        parts.append(element("div", f"↻ {again}", class_="cp-verdict-worth"))
    differs = difference_words(progress)
    if differs:
        parts.append(element("div", f"⚖ {differs}", class_="cp-verdict-differs"))
    if progress.roles and all(role.built_in for role in progress.roles):
        parts.append(
            element(
                "div",
                "By the built-in engine: no language model was asked.",
                class_="cp-verdict-worth",
            )
        )
    return element("div", *parts, class_=f"cp-verdict cp-{verdict.label}")


def again_words(progress: Progress) -> str:
    """That the verdict is a new score of an old run, and what the run had ended with."""
    first, verdict = progress.first_verdict, progress.verdict
    if first is None or verdict is None:
        return ""
    p = first.p_hallucinated
    sure = "" if p is None else f", {percent(max(p, 1.0 - p))} likely"
    return (
        f"Scored again by classifier {verdict.classifier}. The run had ended with "
        f"{LABEL_WORDS[first.label].lower()}{sure}, by {first.classifier}."
    )


def difference_words(progress: Progress) -> str:
    """For old runs, in which the classifier's label counted though the judge said another."""
    judgement, verdict = progress.judgement, progress.verdict
    if judgement is None or verdict is None or verdict.label in (judgement.label, "unclear"):
        return ""
    return (
        f"The judge itself calls it {LABEL_WORDS[judgement.label].lower()}; the classifier, which "
        f"reads the judge's text, calls it {LABEL_WORDS[verdict.label].lower()}, and its label "
        "counts. Look at the debate before you rely on either."
    )


def _cause(verdict: Verdict) -> list[str | Html]:
    cause = verdict.cause
    words = verdict.cause_words or (CAUSE_WORDS[cause] if cause else "")
    parts: list[str | Html] = [element("div", words, class_="cp-verdict-p")]
    if cause:
        parts.append(element("div", CAUSE_ADVICE[cause], class_="cp-verdict-worth"))
    return parts


def worth_words(
    verdict: Verdict, card: dict[str, Any] | None, progress: Progress, past: Past
) -> str:
    """What the probability is worth: by the project's own past where it tells, else as measured."""
    if past.is_known:
        return past.words
    measured = worth_of(verdict, card, progress)
    if not past.words:
        return measured
    return past.words if measured == TOO_FEW else f"{measured} {past.words}"


def _worth(words: str, how: str) -> Html:
    sign = element("span", " ⓘ", title=how, role="img", aria_label=how) if how else Html("")
    return element("div", words, sign, class_="cp-verdict-worth")


def _probability(verdict: Verdict) -> list[str | Html]:
    p = verdict.p_hallucinated or 0.0
    side = p if verdict.label == "hallucinated" else 1.0 - p
    words = f"{percent(side)} likely to be {verdict.label}"
    return [
        element("div", words, class_="cp-verdict-p"),
        element(
            "div",
            element("div", class_="cp-bar-dot", style=f"left: calc({100 * p:.1f}% - 2px)"),
            class_="cp-bar",
            role="img",
            aria_label=f"probability of being hallucinated: {percent(p)}",
        ),
        element(
            "div",
            element("span", "supported"),
            element("span", "hallucinated"),
            class_="cp-bar-ends",
        ),
    ]


def worth_of(verdict: Verdict, card: dict[str, Any] | None, progress: Progress) -> str:
    """How often verdicts of this confidence were right, where that was measured."""
    judge = next((used for used in progress.roles if used.role == "judge"), None)
    if verdict.classifier == SEED_VERSION and judge is not None and not judge.built_in:
        return (
            "What this probability is worth is not known: the seed classifier was measured on the "
            "built-in judge's verdicts, not on this model's. Corrections on Retrain teach it."
        )
    if progress.judgement is not None and progress.judgement.by_tool:
        return (
            f"A tool decided this ({progress.judgement.by_tool.lower()}): how often the readers' "
            "verdicts were right says nothing about it."
        )
    measured = progress.judgement.measured if progress.judgement is not None else None
    if verdict.classifier == SEED_VERSION and measured is not None and measured.n:
        return (
            f"Of {measured.n} statements checked against {MATERIAL_WORDS[measured.material]} "
            f"with a probability like this, {100 * measured.right / measured.n:.0f}% were right "
            "(labelled statements, each judged by a model fitted without it)."
        )
    confidence = verdict.confidence or 0.0
    bins = (card or {}).get("reliability") or []
    for entry in bins:
        if entry["low"] <= confidence <= entry["high"] and entry["n"] >= 20:
            share = 100.0 * entry["right"] / entry["n"]
            return (
                f"Of {entry['n']} held-out verdicts with a confidence like this, "
                f"{share:.0f} % were right."
            )
    return TOO_FEW
