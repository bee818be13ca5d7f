"""Ways to argue side by side, as Markdown: what each comes to, and what its agents said (4.7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from core.evaluation.paired import BESIDE, COMPARED

NOT_THERE = "–"
TITLES = {
    "single": "a single judge",
}


def as_table(result: Mapping[str, Any]) -> str:
    """The result as Markdown: what was measured, and a row for each protocol in two tables."""
    what = " ".join(str(result[key]) for key in ("dataset", "task", "split") if result[key])
    baseline = str(result["baseline"])
    weighed = [one for one in result["protocols"] if one["weights"]]
    lines = [
        f"{what}: {result['rows']:,} rows in {result['groups']:,} groups, seed {result['seed']}; "
        f"roster {result['roster']}, {result['debaters']} debaters",
        "",
        *_verdicts(result, TITLES.get(baseline, baseline)),
        "",
        *_agents(result, TITLES.get(baseline, baseline)),
        *([""] if weighed else []),
        *(f"{one['protocol']}: weights of answers: {one['weights']}" for one in weighed),
    ]
    return "\n".join(lines) + "\n"


def _verdicts(result: Mapping[str, Any], baseline: str) -> list[str]:
    """What each comes to, and what it takes."""
    head = (
        "Protocol", "Balanced accuracy", "AUROC", "Answered", "Turns taken", "Calls at most",
        "Seconds", f"Against {baseline}", "Righted / wronged",
    )  # fmt: skip
    nothing = [_figure(result["always_hallucinated"].get(name)) for name in COMPARED]
    return [
        *_head(head),
        _line(["always hallucinated", *nothing, *[NOT_THERE] * 6]),
        *(_line(_cells(one)) for one in result["protocols"]),
    ]


def _agents(result: Mapping[str, Any], baseline: str) -> list[str]:
    """CAAR, FCR and HR (SC-MAKS 4.7), and by how much they differ from the baseline's (4.10)."""
    head = (
        "Protocol", "CAAR", "by chance", "all agree", "F1", "FCR", "HR",
        *(f"{name} less that of {baseline}" for name in ("F1", "FCR", "HR")),
    )  # fmt: skip
    golds, rows = result["golds"], result["rows"]
    shares = [f"{golds[label] / rows:.3f}" for label in ("supported", "hallucinated")]
    nothing = [_figure(result["always_hallucinated"].get(name)) for name in BESIDE]
    return [
        *_head(head),
        _line(["the set's labels", *[NOT_THERE] * 4, *shares, *[NOT_THERE] * 3]),
        _line(["always hallucinated", *[NOT_THERE] * 3, *nothing, *[NOT_THERE] * 3]),
        *(_line(_agent_cells(one)) for one in result["protocols"]),
    ]


def _cells(one: Mapping[str, Any]) -> list[str]:
    beside, calls = one["against"], one["calls"]
    shown = ["the baseline", NOT_THERE]
    if beside:
        figure = beside.get(COMPARED[0])
        by = f": {_figure(figure, signed=True)}" if figure else ""
        shown = [f"{beside['words']}{by}", f"{beside['righted']} / {beside['wronged']}"]
    return [
        str(one["protocol"]),
        *(_figure(one.get(name)) for name in COMPARED),
        f"{one['coverage']['value']:.0%}",
        f"{one['turns']:.1f}",
        f"{calls['total']} ({calls['chain']} in a row)",
        f"{one['seconds']:.2f}",
        *shown,
    ]


def _agent_cells(one: Mapping[str, Any]) -> list[str]:
    beside = one["against"] or {}
    return [
        str(one["protocol"]),
        *(_figure(one.get(name)) for name in ("caar", "caar_chance", "caar_all", *BESIDE)),
        *(_figure(beside.get(name), signed=True) for name in BESIDE),
    ]


def _figure(figure: Mapping[str, float] | None, *, signed: bool = False) -> str:
    """Value and interval; a dash where the rows cannot show it."""
    if figure is None:
        return NOT_THERE
    form = "{:+.3f}" if signed else "{:.3f}"
    value, low, high = (form.format(figure[key]) for key in ("value", "low", "high"))
    return f"{value} ({low} to {high})"


def _head(titles: Sequence[str]) -> list[str]:
    return [_line(titles), _line(["---"] * len(titles))]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
