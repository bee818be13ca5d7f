"""A debate under way on the Run page: who speaks, under which heading, and signals as they come."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from core.schema.events import Event, TurnStarted
from core.schema.records import Plan
from core.store import open_store
from tests.learning.runs_told import events_of
from tests.pages.conftest import OpenApp
from tests.pages.test_check_pages import drawn
from tests.pages.test_debate_signals_page import surer_with_a_forged_quote
from tests.pages.test_replay_page import TOLD, asked, stored


def test_signals_headings_and_what_was_asked_are_there_while_it_is_spoken(
    app: OpenApp, home: Path
) -> None:
    now = time.time()
    with open_store(home) as store:
        case = asked(store)
        told = [surer_with_a_forged_quote(one) for one in events_of(replace(TOLD, at=now), case)]
        spoken: list[Event] = [e for e in told if e.kind in ("run_started", "turn_finished")]
        for number, (name, about) in enumerate((("Ada", "Ben"), ("Ben", "Ada")), start=3):
            spoken.append(TurnStarted(now, name, "m", number, 2, "advise", about))
        run_id = stored(store, case, Plan("sc_maks"), spoken, at=now)
    at = app("pages/check/run.py", run=run_id)
    assert at.button(key="run.stop")
    markup = drawn(at)
    assert ">Round 2</div>" in markup
    assert "advises: Ben’s answer" in markup
    assert "advises: Ada’s answer" in markup
    assert markup.count('cp-caret" dir') == 2
    assert "⚑ “measured twice by the mayor” stands in no source." in markup
    assert any("Signals of debate hacking so far" in caption.value for caption in at.caption)
