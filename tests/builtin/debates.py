"""Runs the built-in debate over texts in memory: every sentence of the texts is evidence."""

from __future__ import annotations

from dataclasses import dataclass, replace

from core.agents.rosters import roster_named
from core.concurrency import Stop
from core.config import ENCODER_DIR
from core.debate.ceda import debate, reached_consensus
from core.evidence.retrieve import heading_of
from core.evidence.segment import sentences
from core.models.encoder import load_encoder
from core.records import Judgement, Passage, Plan, Source, SourceKind, Span, Turn
from core.roles import CaseView, Evidence, JudgeView
from tests.debates import arguing
from tests.debates import turns as turns_of
from tests.fakes import make_case

MOST_PASSAGES = 5


@dataclass(frozen=True)
class Outcome:
    """What the built-in roster made of a case."""

    judgement: Judgement
    turns: tuple[Turn, ...]
    spans: tuple[Span, ...]

    @property
    def wrong(self) -> list[str]:
        """The words that were marked."""
        return [span.text for span in self.spans]

    @property
    def instead(self) -> list[str]:
        """What the evidence says in their place."""
        return [span.instead for span in self.spans]


def check(
    claim: str,
    *texts: str,
    question: str = "",
    language: str = "en",
    kind: SourceKind = "text",
    turns: int = 5,
) -> Outcome:
    """The outcome of a debate over the claim with the texts as sources."""
    roster = roster_named("builtin", load_encoder(ENCODER_DIR))
    sources = [
        Source(id=f"s{n}", name=f"source {n}", kind=kind, text=text, language=language)
        for n, text in enumerate(texts)
    ]
    view = _view(claim, question, language, sources)
    context = roster.context_writer.write(view, list(roster.debaters), Stop())
    debating = arguing(debate, view, roster, plan=Plan(max_turns=turns), context=context)
    said = turns_of(list(debating.events()))
    seen = JudgeView(view, context, tuple(said), reached_consensus(said, len(roster.debaters)))
    judgement = roster.judge.decide(seen, Stop())
    rulings = [
        roster.span_adjudicator.adjudicate(seen, span, judgement.label, Stop())
        for span in roster.span_extractor.propose(seen, judgement, Stop())
    ]
    return Outcome(judgement, tuple(said), tuple(r.span for r in rulings if r.kept))


def _view(claim: str, question: str, language: str, sources: list[Source]) -> CaseView:
    encoder = load_encoder(ENCODER_DIR)
    case = make_case(claim, question=question, language=language)
    roster = roster_named("builtin", encoder)
    passages = [passage for source in sources for passage in _passages(source, language)]
    vectors = encoder.encode([p.text for p in passages]) if passages else None
    chosen: dict[int, tuple[str, ...]] = {}
    known: dict[str, Passage] = {}
    statements = roster.segmenter.segment(case, Stop())
    for statement in statements:
        if vectors is None:
            chosen[statement.index] = ()
            continue
        cosines = vectors @ encoder.encode([f"{question} {statement.rewrite}".strip()])[0]
        best = sorted(range(len(passages)), key=lambda i: -cosines[i])[:MOST_PASSAGES]
        found = [replace(passages[i], similarity=float(cosines[i])) for i in best]
        known |= {p.id: known.get(p.id, p) for p in found}
        chosen[statement.index] = tuple(p.id for p in found)
    texts = {source.id: source.text for source in sources}
    return CaseView(case, statements, Evidence(known, chosen), texts)


def _passages(source: Source, language: str) -> list[Passage]:
    by_line = source.kind in ("table", "image")
    found = sentences(source.text, language, by_line=by_line)
    texts = [source.text[item.start : item.end] for item in found]
    return [
        Passage(
            id=f"{source.id}:{number}",
            source_id=source.id,
            source=source.name,
            is_image=source.is_image,
            page=None,
            start=item.start,
            end=item.end,
            text=texts[number],
            score=1.0,
            before=texts[number - 1] if number else "",
            after=texts[number + 1] if number + 1 < len(texts) else "",
            heading=heading_of(source),
        )
        for number, item in enumerate(found)
    ]
