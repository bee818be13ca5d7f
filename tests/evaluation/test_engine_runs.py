"""What is taken from a finished run, and what makes two engines two."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.evaluation import engine_runs
from core.evaluation.dataset_files import GoldSpan
from core.evaluation.engine_runs import build_engine, build_prediction, compute_engine_digest
from core.llm.keys import Keys
from core.runtime.config import PROJECT_ROOT
from core.schema.events import SpanAdjudicated, WordsScored
from core.schema.records import Case, Judgement, Label, Plan, Span, UnclearCause, Verdict, WordScore
from core.schema.run_state import RunState
from core.store import open_store

RESPONSE = "Twelve wolves sang there."


def finished(label: Label, p: float | None, own: float | None = None) -> RunState:
    progress = RunState()
    progress.judgement = Judgement("judge", label, "So it is.", p=own)
    cause: UnclearCause | None = "not_addressed" if label == "unclear" else None
    progress.verdict = Verdict(label, p, p, "So it is.", cause)
    return progress


def test_the_verdict_is_the_prediction_and_an_abstention_keeps_the_judges_own_p() -> None:
    said = build_prediction(finished("hallucinated", 0.8, 0.6), 1.5)
    assert (said.label, said.p, said.cause, said.seconds) == ("hallucinated", 0.8, "", 1.5)
    said = build_prediction(finished("unclear", None, 0.6))
    assert (said.label, said.p, said.cause) == ("unclear", 0.6, "not_addressed")
    assert build_prediction(finished("unclear", None)).p is None
    with pytest.raises(LookupError):
        build_prediction(RunState())


def test_kept_spans_are_marked_and_all_ruled_upon_say_how_likely() -> None:
    progress = finished("hallucinated", 0.8)
    for start, end, p, kept in ((7, 13, 0.3, False), (0, 6, 0.9, True)):
        span = Span(start, end, RESPONSE[start:end], p, "number_or_date", "rules")
        progress.add(SpanAdjudicated(0.0, span, kept, "so it is"))
    said = build_prediction(progress)
    assert said.spans == (GoldSpan(0, 6, 0.9),)
    assert set(said.soft) == {GoldSpan(0, 6, 0.9), GoldSpan(7, 13, 0.3)}


def test_words_that_were_scored_are_wrong_whatever_the_verdict_and_shown_as_it_says() -> None:
    progress = finished("supported", 0.2)
    progress.case = Case("1", "p", RESPONSE)
    scores = (WordScore(0, 6, 0.9), WordScore(7, 13, 0.4), WordScore(14, 18, 0.1))
    progress.words = WordsScored(1.0, "words", scores, 0.4)
    said = build_prediction(progress)
    assert said.shown == ()
    assert [(span.start, span.end) for span in said.spans] == [(0, 13)]
    assert said.soft[:3] == (GoldSpan(0, 6, 0.9), GoldSpan(6, 7, 0.4), GoldSpan(7, 13, 0.4))


def test_an_engine_is_that_of_its_home_and_known_by_its_code(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store(home) as store, store.writing():
        store.projects.save_setting("max_turns", 3)
    core = PROJECT_ROOT / "core"
    named = (*engine_runs.UNMEASURED_PATHS, *engine_runs.SHAPING_PATHS)
    assert all((core / name).exists() for name in named), "moved or renamed"
    engine = build_engine(home, Plan(), Keys({}))
    assert (engine.plan.max_turns, engine.plan.classifier) == (3, "seed")
    root = tmp_path / "root"
    (root / "core" / "evaluation").mkdir(parents=True)
    rules, measuring = root / "core" / "rules.json", root / "core" / "evaluation" / "metrics.py"
    shaping = root / "core" / "evaluation" / "engine_runs.py"
    for path in (rules, measuring, shaping, root / "requirements.txt"):
        path.write_text("one")
    monkeypatch.setattr(engine_runs, "PROJECT_ROOT", root)
    digest = compute_engine_digest.__wrapped__
    before = digest()
    measuring.write_text("two")
    assert digest() == before, "what measures is no part of what is measured"
    for path in (rules, shaping):
        path.write_text("two")
        assert digest() != before
        path.write_text("one")
