"""What more agents can bring, with nothing measured and with sliders that begin at what was."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from components.measure.reliability import format_information
from core.learning.debate_worth import DebateInformation
from core.learning.metrics import MetricEstimate
from core.store import open_store
from tests.learning.recorded_runs import tell
from tests.learning.test_debate_worth import debates
from tests.pages.conftest import OpenApp
from tests.pages.driving import told

PAGE = "pages/learn/reliability.py"


def test_without_answers_the_equations_can_be_tried_out(app: OpenApp) -> None:
    at = app(PAGE)
    at.toggle(key="theory.shown").set_value(True).run()
    assert "Nothing is measured yet" in told(at)
    assert "Too few cases to say" in told(at)
    for correlation, worth in ((0.0, "5.0"), (1.0, "1.0")):
        at.slider(key="theory.correlation").set_value(correlation).run()
        assert f"5 such agents are worth {worth} independent ones" in told(at)
    assert len(at.get("plotly_chart")) == 2


def test_sliders_begin_at_what_was_measured(app: OpenApp, home: Path) -> None:
    with open_store(home) as store:
        tell(store, debates(80, 0.9))
    at = app(PAGE)
    at.toggle(key="theory.shown").set_value(True).run()
    assert "Measured over 80 decided cases" in told(at)
    assert 0.5 < float(str(at.slider(key="theory.accuracy").value)) < 0.7
    assert "**added information**" in told(at)
    assert "n=80" in told(at)
    figures = [json.loads(chart.proto.spec) for chart in at.get("plotly_chart")]
    assert "majorities of your agents" in [figure["data"][-1].get("name") for figure in figures]


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [(0.1, 0.3, "added information"), (-0.1, 0.3, "not shown"), (-0.3, -0.1, "no information")],
)
def test_the_finding_follows_the_interval(low: float, high: float, words: str) -> None:
    one = MetricEstimate((low + high) / 2, low, high)
    assert words in format_information(DebateInformation("", 50, 9, one, one, one, one, 0.5))
