"""A run as a report that a colleague can read without the app: self-contained HTML, Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from components.asides import spoken_texts
from components.calls import cost_words
from components.correction_asked import plain_words
from components.debate_calls import silence_words
from components.highlight import Mark, marked_text
from components.markup import Html, element, joined
from components.plain import rationale_words
from components.readers import readers_words
from components.report_audit import audit_parts, audit_texts
from components.report_corrected import HEADING, corrected_parts, corrected_texts
from components.report_debate import debate_parts
from components.state_panel import state_html
from components.verdict import NO_PAST, Past, difference_words, verdict_html, worth_words
from components.words import (
    LABEL_WORDS,
    percent,
    protocol_words,
    roster_words,
    when,
)
from core.baseline.wording import shortened
from core.progress import Progress
from core.records import Case, Passage, Run, Span
from core.reviews import Correction, category_words, instead_words

STYLES = Path(__file__).parent / "assets" / "app.css"
# A longer span is read in the response; thousands of them would each repeat half of it.
LONGEST_SPAN = 600
PAGE_STYLES = """
body { font: 16px/1.55 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
  color-scheme: light dark; background: light-dark(#fff, #12171d);
  color: light-dark(#1c2530, #e6eaee); }
h1 { font-size: 1.6rem; }
h2 { font-size: 1.2rem; margin-top: 2rem; }
table { border-collapse: collapse; }
.cp-rounds { display: flex; flex-wrap: wrap; gap: 2px 16px; }
/* On paper nobody can unfold anything. */
@media print { details::details-content { content-visibility: visible; display: block; } }
td, th { border: 1px solid #8886; padding: 4px 8px; text-align: start; }
"""


def html_report(
    run: Run,
    case: Case,
    progress: Progress,
    corrections: Sequence[Correction],
    card: dict[str, Any] | None,
    past: Past = NO_PAST,
) -> str:
    """The whole report as one HTML file without anything to fetch."""
    spans = progress.spans
    marks = [Mark(s.start, s.end, str(n)) for n, s in enumerate(spans, start=1)]
    parts: list[str | Html] = [
        element("h1", "Counterpoint report"),
        element("p", _line(run, progress), class_="cp-quiet"),
    ]
    if progress.verdict is not None:
        parts.append(verdict_html(progress, card, past))
    if case.question:
        parts += [element("h2", "Question"), element("p", case.question, dir="auto")]
    parts += [element("h2", "Response"), marked_text(case.response, marks)]
    if spans:
        parts.append(span_table(spans))
    parts += corrected_parts(case, progress)
    parts += audit_parts(progress)
    if corrections:
        parts.append(element("h2", "What people said"))
        parts += [element("p", said_words(correction), dir="auto") for correction in corrections]
    parts.append(element("h2", "Evidence"))
    parts += [_passage(passage) for passage in progress.evidence.values()]
    parts += [element("h2", "Debate"), *debate_parts(progress)]
    parts += [element("h2", "How it was checked"), state_html(run, case, progress)]
    parts += [element("p", words) for words in _problems(progress)]
    return str(page_html("Counterpoint report", joined(parts)))


def page_html(title: str, body: Html) -> Html:
    """The document around the body; the styles are our own files, never a person's text."""
    styles = STYLES.read_text(encoding="utf-8") + PAGE_STYLES
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("title", title),
        element("style", Html(styles)),
    )
    return joined(
        [Html("<!doctype html>"), element("html", head, element("body", body), lang="en")]
    )


def _line(run: Run, progress: Progress) -> str:
    cost = f" · {cost_words(progress.cost)}" if progress.calls else ""
    return (
        f"{when(run.started_at)} · {roster_words(run.plan.roster, short=True)} · "
        f"{protocol_words(run.plan.protocol, short=True)} · "
        f"classifier {progress.classifier or run.plan.classifier}{cost} · run {run.id}"
    )


def span_table(spans: Sequence[Span]) -> Html:
    """The marked words, what is wrong with them, and what they should say."""
    rows = [
        element(
            "tr",
            element("td", str(number)),
            element("td", _words_of(span), dir="auto"),
            element("td", category_words(span.category)),
            element("td", span.instead or "–", dir="auto"),
            element("td", percent(span.p)),
        )
        for number, span in enumerate(spans, start=1)
    ]
    names = ("", "Words", "What is wrong", "It should say", "p")
    head = element("tr", *(element("th", name) for name in names))
    return element("table", element("thead", head), element("tbody", *rows))


def _words_of(span: Span) -> str:
    """The span's words; of a very long one the beginning."""
    return span.text if len(span.text) <= LONGEST_SPAN else shortened(span.text, LONGEST_SPAN)


def _instead(span: Span) -> str:
    """A line of what its words should say; empty where nobody said."""
    leads = instead_words(in_evidence=span.in_evidence)
    return f"\n{leads}: {span.instead}" if span.instead else ""


def said_words(correction: Correction) -> str:
    """What a person said, in one line."""
    said = plain_words(correction, LONGEST_SPAN)
    return f"{correction.author}, {when(correction.at)}: {said}"


def _passage(passage: Passage) -> Html:
    place = passage.source + (f", p. {passage.page}" if passage.page else "")
    return element(
        "div",
        element("div", place, class_="cp-quiet"),
        element("div", passage.text, class_="cp-quote", dir="auto"),
    )


def _problems(progress: Progress) -> list[str]:
    """What else went wrong; the verdict's own cause stands with it."""
    told = progress.verdict.cause_words if progress.verdict else ""
    return [p.message for p in progress.problems if p.message != told]


def markdown_report(
    run: Run,
    case: Case,
    progress: Progress,
    corrections: Sequence[Correction],
    card: dict[str, Any] | None,
    past: Past = NO_PAST,
) -> str:
    """The report as Markdown; people's texts stand in fenced blocks, so they stay texts."""
    lines = ["# Counterpoint report", "", *_fenced(_line(run, progress)), ""]
    verdict = progress.verdict
    if verdict is not None:
        lines += [f"**{LABEL_WORDS[verdict.label]}**"]
        if verdict.p_hallucinated is not None:
            p = verdict.p_hallucinated
            lines[-1] += (
                f", p(hallucinated) = {p:.2f}. {worth_words(verdict, card, progress, past)}"
            )
            lines += ["", *_fenced(past.for_people)] if past.for_people else []
        differs = difference_words(progress)
        lines += ["", differs] if differs else []
        judgement = progress.judgement
        if judgement is not None and judgement.readers:
            lines += ["", *_fenced(readers_words(judgement))]
        lines += ["", *_fenced(verdict.cause_words or rationale_words(verdict.rationale))]
    if case.question:
        lines += ["", "## Question", "", *_fenced(case.question)]
    lines += ["", "## Response", "", *_fenced(case.response)]
    sources = progress.source_names.values()
    problems = _problems(progress)
    given = [*(f"read: {name}" for name in sources), *(f"problem: {words}" for words in problems)]
    lines += ["", "## Sources", "", *_fenced("\n".join(given) or "none")]
    for number, span in enumerate(progress.spans, start=1):
        lines += ["", f"{number}. {category_words(span.category)}, {percent(span.p)}", ""]
        lines += _fenced(_words_of(span) + _instead(span))
    corrected = corrected_texts(case, progress)
    lines += ["", f"## {HEADING}"] if corrected else []
    lines += [line for told in corrected for line in ("", *_fenced(told))]
    audit = audit_texts(progress)
    lines += ["", "## Statement by statement"] if audit else []
    lines += [line for told in audit for line in ("", *_fenced(told))]
    if corrections:
        lines += ["", "## What people said", "", *_fenced("\n".join(map(said_words, corrections)))]
    lines += ["", "## Evidence"]
    for passage in progress.evidence.values():
        place = passage.source + (f", p. {passage.page}" if passage.page else "")
        lines += ["", *_fenced(f"{place}\n{passage.text}")]
    lines += ["", "## Debate", *([] if progress.turns else ["", *_fenced(silence_words(progress))])]
    for told in spoken_texts(progress):
        lines += ["", *_fenced(told)]
    return "\n".join(lines) + "\n"


def _fenced(text: str) -> list[str]:
    """The text in a block that is fenced by more backticks than it holds in a row."""
    longest, here = 0, 0
    for letter in text:
        here = here + 1 if letter == "`" else 0
        longest = max(longest, here)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}text", *text.splitlines(), fence]
