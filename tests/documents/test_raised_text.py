"""Raised text never changes the number or word before it."""

from __future__ import annotations

import pytest

from core.documents.raised_text import RAISED_END, RAISED_START, write_raised


@pytest.mark.parametrize(
    ("line", "written"),
    [
        # footnote marks are left out
        ("120 people{3} live here.", "120 people live here."),
        ("1,250{5} pumps", "1,250 pumps"),
        ("In 2021{4}, 12.5{1} %{2}", "In 2021, 12.5 %"),
        ("It closed.{1,2} Later{[3]} (half){*} opened{b}.", "It closed. Later (half) opened."),
        ("Pumps {3} and valves", "Pumps  and valves"),
        # powers stay powers
        ("3 × 10{6} litres, 10{-3} g, 2{10}", "3 × 10⁶ litres, 10⁻³ g, 2¹⁰"),
        ("25 m{2}, 3 km{3}, m·s{−1}", "25 m², 3 km³, m·s⁻¹"),
        ("mol{-1}, x{2}, (a + b){2}, 5{1/2} inches", "mol⁻¹, x², (a + b)², 5 1/2 inches"),
        ("Ca{2+} and {14}C", "Ca²⁺ and ¹⁴C"),
        # at the start of a line they number a footnote
        ("{3} In 2021 only.", "³ In 2021 only."),
        # endings stay
        ("the 1{st}, le 2{e}, XX{e} siècle", "the 1st, le 2e, XXe siècle"),
        ("M{me} Roy, n{o} 7", "Mme Roy, no 7"),
        ("Aspirin{TM} sells, 1,250{a} pumps, Acme{®}", "Aspirin sells, 1,250 pumps, Acme®"),
        ("Price{incl. tax} of 5", "Price incl. tax of 5"),
        # parts belong together
        ("10{-}{6} m", "10⁻⁶ m"),
        ("nothing raised", "nothing raised"),
        # numerators stay numerators
        ("Use about {3}/4 of the flour, or {7}⁄10.", "Use about 3/4 of the flour, or 7⁄10."),
        ("{3}/4 cup, 1{1}/2 cups (or {5}/4), 1{3/}4", "3/4 cup, 1 1/2 cups (or 5/4), 1 3/4"),
        ("10{6}/ml, 10{3}/100 ml, 10{6}/2", "10⁶/ml, 10³/100 ml, 10⁶/2"),
        ("25 m{2}/3 people, 2021{4}/22, 25 pupils{1}/2", "25 m²/3 people, 2021/22, 25 pupils/2"),
    ],
)  # fmt: skip
def test_raised_text_is_written(line: str, written: str) -> None:
    marked = line.replace("{", RAISED_START).replace("}", RAISED_END)
    assert write_raised(marked) == written


def test_unbalanced_marks_are_dropped() -> None:
    assert write_raised(f"a{RAISED_END}b{RAISED_START}c") == "abc"
