"""Figures are read in both themes, and never by colour alone."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from components.charts import confusion_figure, shift_figure

CONFIG = Path(__file__).resolve().parent.parent.parent / ".streamlit" / "config.toml"
THEME = tomllib.loads(CONFIG.read_text(encoding="utf-8"))["theme"]
COUNTS = {
    "true_hallucinated": 2, "missed_hallucinated": 0, "false_alarms": 1, "true_supported": 1,
}  # fmt: skip
ROWS = [
    {"claim": "a", "label": "supported", "before": 0.6, "after": 0.2},
    {"claim": "b", "label": "hallucinated", "before": 0.6, "after": 0.9},
]
LEAST_CONTRAST = 3.0  # WCAG 2.1, 1.4.11: graphics


def luminance(colour: str) -> float:
    """Relative luminance of #rrggbb."""
    shares = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def colours(figure: Any) -> set[str]:
    """Every colour that a figure sets itself."""
    found: set[str] = set()

    def look(value: Any) -> None:
        if isinstance(value, dict):
            for name, inner in value.items():
                if name == "color" and isinstance(inner, str):
                    found.add(inner)
                look(inner)
        elif isinstance(value, list | tuple):
            for inner in value:
                look(inner)

    made = figure.to_dict()
    look(made["data"])
    look(made["layout"].get("shapes", ()))
    return found


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("figure", [confusion_figure(COUNTS, COUNTS), shift_figure(ROWS)])
def test_a_figures_colours_stand_out_in_both_themes(theme: str, figure: Any) -> None:
    background = THEME[theme]["backgroundColor"]
    assert colours(figure)
    for colour in colours(figure):
        assert contrast(colour, background) >= LEAST_CONTRAST, colour


def test_a_claim_is_no_markup_when_it_is_pointed_at() -> None:
    claim = '<a href="http://evil.example">a</a> & 1 < 2'
    points = shift_figure([ROWS[0] | {"claim": claim}]).to_dict()["data"]
    (shown,) = [text for point in points for text in point["text"]]
    assert shown == '&lt;a href="http://evil.example"&gt;a&lt;/a&gt; &amp; 1 &lt; 2'


def test_colour_is_never_the_only_sign() -> None:
    bars = confusion_figure(COUNTS, COUNTS).to_dict()["data"]
    assert len({bar["marker"]["pattern"]["shape"] for bar in bars}) == len(bars)
    points = shift_figure(ROWS).to_dict()["data"]
    assert len({point["marker"]["symbol"] for point in points}) == len(points)
