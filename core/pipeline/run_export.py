"""A run as one JSON object: what the command line prints and tables export."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from core.progress import Progress, total_cost
from core.records import ModelCall, Passage, Quote, Run, Span, Turn

NANO_DIGITS = 9  # of a US dollar: the ledger's own


def outcome(run: Run, progress: Progress) -> dict[str, Any]:
    """The object of `python -m core check --json`.

    Offsets of statements and spans count code points of the response, those of evidence and
    quotes of the source's text. A run that did not finish has `label: null`. `cost` is in US
    dollars, null where a part of it is not known; built-in agents call nothing and cost nothing.
    What stands in a span's `instead` was read in a source where `in_evidence` is true, and worked
    out otherwise. `options` are those that were chosen of the protocol. `models` has an entry for
    each language model that was called.
    """
    verdict = progress.verdict if run.status == "finished" else None
    return {
        "run_id": run.id,
        "status": run.status,
        "label": verdict.label if verdict else None,
        "cause": verdict.cause if verdict else None,
        "cause_words": verdict.cause_words if verdict else _ending_words(progress),
        "p_hallucinated": verdict.p_hallucinated if verdict else None,
        "confidence": verdict.confidence if verdict else None,
        "rationale": verdict.rationale if verdict else "",
        "statements": _statements(progress),
        "spans": [_span(span) for span in progress.spans],
        "evidence": [_passage(passage) for passage in progress.evidence.values()],
        "turns": [_turn(turn) for turn in sorted(progress.turns, key=lambda t: t.number)],
        "remarks": [{"by": said.by, "text": said.text} for said in progress.remarks],
        "corrected": progress.revised.text if progress.revised else None,
        "notes": list(progress.notes),
        "problems": [problem.message for problem in progress.problems],
        "classifier": verdict.classifier if verdict else run.plan.classifier,
        "roster": run.plan.roster,
        "protocol": run.plan.protocol,
        "options": run.plan.options.chosen,
        "debate": _decided(progress),
        "consensus": _weighed(progress),
        "seconds": round(progress.seconds(), 3),
        "cost": None if progress.cost is None else round(progress.cost, NANO_DIGITS),
        "models": _models(progress),
    }


def _decided(progress: Progress) -> dict[str, Any] | None:
    """Whether an adaptive check held a debate, and why; None of all others."""
    found = progress.decided
    return {"is_held": found.is_needed, "then": found.then, "why": found.why} if found else None


def _weighed(progress: Progress) -> dict[str, Any] | None:
    """How much each debater's answer counted, by which weights; None where nobody weighed them."""
    found = progress.weighed
    return {"method": found.method, "weights": dict(found.weights), "p": found.p} if found else None


def _models(progress: Progress) -> dict[str, dict[str, Any]]:
    """What each model did for this run; replies taken from other runs were paid for there."""
    by_model: dict[str, list[ModelCall]] = {}
    for call in progress.calls.values():
        by_model.setdefault(call.model, []).append(call)
    return {model: calls_used(calls) for model, calls in sorted(by_model.items())}


def calls_used(calls: Sequence[ModelCall]) -> dict[str, Any]:
    """What calls came to; those that another run had paid for cost nothing."""
    sent = [call for call in calls if call.origin != "reused"]
    cost = total_cost(sent)
    return {
        "calls": len(sent),
        "reused": len(calls) - len(sent),
        "tokens_in": sum(call.tokens_in for call in sent),
        "tokens_out": sum(call.tokens_out for call in sent),
        "cost": None if cost is None else round(cost, NANO_DIGITS),
    }


def _ending_words(progress: Progress) -> str:
    ending = progress.ending
    return ending.message if ending is not None and ending.kind == "run_failed" else ""


def _statements(progress: Progress) -> list[dict[str, Any]]:
    labels = progress.judgement.statement_labels if progress.judgement else ()
    return [
        {
            "start": item.start,
            "end": item.end,
            "text": item.text,
            "rewrite": item.rewrite,
            "label": labels[index] if index < len(labels) else None,
        }
        for index, item in sorted(progress.statements.items())
    ]


def _span(span: Span) -> dict[str, Any]:
    return {
        "start": span.start,
        "end": span.end,
        "text": span.text,
        "p": span.p,
        "category": span.category,
        "source": span.source,
        "instead": span.instead,
        "in_evidence": span.in_evidence,
    }


def _passage(passage: Passage) -> dict[str, Any]:
    return {
        "source": passage.source,
        "page": passage.page,
        "start": passage.start,
        "end": passage.end,
        "text": passage.text,
        "score": round(passage.score, 5),
        "similarity": None if passage.similarity is None else round(passage.similarity, 4),
    }


def _turn(turn: Turn) -> dict[str, Any]:
    return {
        "number": turn.number,
        "debater": turn.debater,
        "agent": turn.agent,
        "round": turn.round,
        "manner": turn.manner,
        "about": turn.about,
        "assigned": turn.assigned,
        "reply": turn.reply,
        "stance": turn.stance,
        "confidence": turn.confidence,
        "doubt": turn.doubt,
        "text": turn.text,
        "quotes": [_quote(quote) for quote in turn.quotes],
    }


def _quote(quote: Quote) -> dict[str, Any]:
    return {
        "text": quote.text,
        "status": quote.status,
        "score": quote.score,
        "source": quote.source,
        "page": quote.page,
        "start": quote.start,
        "end": quote.end,
    }
