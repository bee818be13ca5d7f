"""The papers' tables as grids: what they declare exists; they run and say what did not run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from core.__main__ import main
from core.agents.rosters import SHIPPED_ROSTERS
from core.debate.protocols import PROTOCOLS
from core.evaluation.dataset_files import GoldRow, GoldSpan, assign_part
from core.evaluation.evaluate import get_way
from core.evaluation.grid_commands import keep_grid_run, load_grid_run
from core.evaluation.grids import (
    GRID_CONDITIONS,
    NOT_AVERAGED,
    GridCell,
    GridRun,
    MeasuredCell,
    OutcomesKeeper,
    find_cell,
    format_grid,
    list_columns,
    load_grids,
    plan_grid_cells,
    run_grid,
)
from core.evaluation.metrics import build_measures
from core.evaluation.outcomes import Outcomes, Prediction, predict_constant
from core.runtime.errors import InputError
from core.schema.records import Label
from tests.evaluation.tiny_sets import write_lines
from tests.llm.cast import Cast, role_of
from tests.llm.loopback import Reply, loopback

BUILT_IN = {"": "builtin"}
GRIDS = [
    *(f"ceda-{n}" for n in range(1, 7)), "colmad-1", "colmad-2", "colmad-figure-3",
    "colmad-figure-5", "colmad-figure-6", "haluagent-3", "haluagent-4", "haluagent-figure-2",
    *(f"msa-{n}" for n in range(1, 6)), "sc-maks-3", "sc-maks-4", "sc-maks-expected",
]  # fmt: skip


def known_metrics() -> set[str]:
    """All figures that some rows give."""
    span = (GoldSpan(0, 1, 0.5),)
    labels: tuple[Label, ...] = ("supported", "hallucinated")
    rows = [
        GoldRow(label, "", "ab", label, label, documents=("d",), spans=span, soft=span)
        for label in labels
    ]
    said = Prediction("supported", 0.1, openings=("supported",) * 2, statements=("supported",))
    return {*build_measures(Outcomes(rows, [said] * 2)), "seconds"}


def test_every_table_of_the_papers_is_declared() -> None:
    assert list(load_grids()) == GRIDS


@pytest.mark.parametrize("name", GRIDS)
def test_what_a_grid_declares_exists(name: str) -> None:
    grid, columns = load_grids()[name], list_columns(load_grids()[name])
    systems = [row.system for row in grid.rows]
    assert len(set(systems)) == len(systems)
    assert grid.baseline in ("", *systems)
    assert grid.differs
    assert {column.metric for column in columns} <= {*known_metrics(), ""}
    for row in grid.rows:
        assert len(row.figures) <= len(columns), row.system
        assert all(re.search(r"\d", figure) for figure in row.figures), row.system
        assert row.roster in ("", *SHIPPED_ROSTERS)
        for column in columns:
            cell = find_cell(grid, row, column.part, {"": "builtin", row.system: "builtin"})
            if isinstance(cell, GridCell):
                assert get_way(cell.way).protocol in (*PROTOCOLS, "audit")
                assert column.metric or row.why or column.part.why
            else:
                assert cell, f"{row.system}: it says why nothing can be measured"


def test_colmads_printed_averages_are_the_means_of_its_tasks() -> None:
    for name in ("colmad-1", "colmad-2"):
        for row in load_grids()[name].rows:
            figures = [float(figure) for figure in row.figures]
            means = [sum(figures[start:6:2]) / 3 for start in (0, 1)]
            if (name, row.system) == ("colmad-1", "Human"):  # the paper has them the wrong way
                means.reverse()
            assert figures[6:] == pytest.approx(means, abs=0.011), row.system


def test_msas_best_figures_are_those_of_the_extractor_that_it_names() -> None:
    numbered = [load_grids()[f"msa-{number}"] for number in range(1, 5)]
    tables = {grid.models.split(" ")[0]: grid for grid in numbered}
    for row in load_grids()["msa-5"].rows:
        language, extractor = row.system.rstrip(")").split(" (")
        own = next(one for one in tables[extractor].rows if one.system == language)
        assert own.figures == row.figures[:2]
        assert own.dataset == row.dataset


def test_rows_of_one_way_share_a_cell_unless_one_has_a_roster() -> None:
    grid = load_grids()["ceda-1"]
    ways = [cell.way for cell in plan_grid_cells(grid, BUILT_IN)]
    assert ways == ["single", "mad", "ceda"]
    cells = plan_grid_cells(grid, {**BUILT_IN, "Qwen": "ollama"})
    assert [cell.roster for cell in cells if cell.way == "single"] == ["builtin", "ollama"]
    paper = plan_grid_cells(load_grids()["ceda-6"], {"": "paper"})
    assert {cell.roster for cell in paper} == {"ceda", "ceda-mistral", "ceda-haiku"}
    assert {cell.turns for cell in paper} == {2, 4, 6, 8}


def result(cell: GridCell, **figures: float) -> dict[str, Any]:
    """As `evaluate --json` prints it."""
    return {
        "dataset": cell.dataset, "task": cell.task, "split": cell.part, "rows": 4, "seconds": 2.0,
        "answered": 3, "failed": 0, "seed": 0, "trivial": {"mark_all": {}, "always_supported": {}},
        "metrics": {
            name: {"value": value, "low": value - 0.1, "high": value + 0.1}
            for name, value in figures.items()
        },
    }  # fmt: skip


def lines_by_system(table: str, part: str) -> Mapping[str, list[str]]:
    """The cells of a part's lines by system."""
    section = table.split(f"## {part}")[1].split("\n## ")[0]
    lines = [line.strip("| ").split(" | ") for line in section.splitlines() if "|" in line]
    return {cells[1]: cells for cells in lines}


def test_changes_are_laid_beside_the_baseline() -> None:
    grid = load_grids()["sc-maks-expected"]
    figures = {"single": (0.5, 0.4), "sc_maks": (0.56, 0.3)}
    cells = [
        MeasuredCell(cell, result(cell, f1=figures[cell.way][0], hr=figures[cell.way][1]))
        for cell in plan_grid_cells(grid, BUILT_IN)
        if cell.dataset == "fever_symmetric" and cell.way in figures
    ]
    table = format_grid(grid, GridRun("sc-maks-expected", BUILT_IN, tuple(cells)))
    gained = lines_by_system(table, "F1 gained")
    assert gained["SC-MAKS"][3:] == ["at least 4 F1 points", "+6.0"]
    assert lines_by_system(table, "HR, times")["SC-MAKS"][4] == "0.750"
    assert lines_by_system(table, "latency")["SC-MAKS"][3:] == ["below 2.5×", "1.00"]
    assert "not measured: not run yet" in table
    assert "these rows give no caar" in table


def fact_rows(part: str, count: int, wrong: int) -> list[GoldRow]:
    """Rows of which the first `wrong` are hallucinated."""
    return [
        GoldRow(name, "", "ab", "hallucinated" if n < wrong else "supported", name)
        for n, name in enumerate(f"{part} {n}" for n in range(count))
    ]


@pytest.mark.parametrize(
    ("name", "part", "average", "place"),
    [("colmad-1", "Average", "mean", 4), ("haluagent-3", "Overall, out-of-domain", "pooled", 6)],
)
def test_averages_are_those_of_the_paper_where_all_parts_were_measured(
    name: str, part: str, average: str, place: int, home: Path
) -> None:
    grid = load_grids()[name]
    own = next(one for one in grid.parts if one.name == part)
    first = find_cell(grid, grid.rows[1], own, BUILT_IN)
    assert isinstance(first, GridCell)
    # Everything is called hallucinated: F1 is 2w / (w + n) of w hallucinated rows among n.
    sizes = [(10, 1), (20, 10), (30, 27)][: len(first.parts)]
    rows = {
        cell: fact_rows(cell.part, *size) for cell, size in zip(first.parts, sizes, strict=True)
    }

    def measure(cell: GridCell, keep: OutcomesKeeper) -> dict[str, Any]:
        if cell not in rows:
            raise InputError("no such set")
        keep(predict_constant("hallucinated", rows[cell]))
        return result(cell, accuracy=0.5, f1=0.5) | {"rows": len(rows[cell])}

    run = run_grid(name, BUILT_IN, measure, lambda _: None)
    table = format_grid(grid, run)
    scores = [200 * w / (w + n) for n, w in sizes]
    count, wrong = (sum(numbers) for numbers in zip(*sizes, strict=True))
    mean = sum(scores) / len(scores) if average == "mean" else 200 * wrong / (wrong + count)
    line = lines_by_system(table, part)[grid.rows[1].system]
    assert re.match(rf"{mean:.1f} \(\d+\.\d to \d+\.\d\)", line[place])
    assert f"{average} of {', '.join(own.average_of)})" in table.replace("rows pooled", "pooled")
    assert re.search(rf"## {part}.*: {count} rows", table)
    del rows[first.parts[0]]
    for one in (run, run_grid(name, BUILT_IN, measure, lambda _: None)):
        keep_grid_run(home, one)
    table = format_grid(grid, load_grid_run(home, name))
    assert not lines_by_system(table, own.average_of[0])[grid.rows[1].system][4].startswith("not")
    assert lines_by_system(table, part)[grid.rows[1].system][4].startswith("not measured")
    assert f"not measured: {NOT_AVERAGED}" in table


def test_a_table_names_what_was_not_measured_alike() -> None:
    grid = load_grids()["ceda-1"]
    record = dict.fromkeys(GRID_CONDITIONS, "as then")
    cells = plan_grid_cells(grid, BUILT_IN)
    same = [MeasuredCell(cell, result(cell) | record) for cell in cells]
    assert "results" not in format_grid(grid, GridRun("ceda-1", BUILT_IN, tuple(same)))
    for name, (words, _) in GRID_CONDITIONS.items():
        other = MeasuredCell(cells[0], {**result(cells[0]), **record, name: "since"})
        table = format_grid(grid, GridRun("ceda-1", BUILT_IN, (other, *same[1:])))
        assert f"Not all results have the same {words}:" in table
    bare = MeasuredCell(cells[0], result(cells[0]))
    table = format_grid(grid, GridRun("ceda-1", BUILT_IN, (bare, *same[1:])))
    assert "1 of 3 results record no hash of rows, engine, machine and packages, code" in table


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Claims of the part that readers never learned from, with evidence."""
    towns = [f"Town {n}" for n in range(200)]
    facts = [(f"{town} has {n + 3} wells.", n) for n, town in enumerate(towns)]
    rows = [
        {"evidence": text, "claim": claim, "gold_label": label}
        for text, n in facts
        for claim, label in ((text, "SUPPORTS"), (f"Town {n} has {n + 9} wells.", "REFUTES"))
        if assign_part(text) == "dev"
    ]
    write_lines(tmp_path / "data/fever_symmetric/fever_symmetric_dev.jsonl.gz", rows)
    return tmp_path / "data"


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """(exit code, standard output, standard error) of a command on grids."""
    code = main(["grid", *words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_a_grid_runs_prints_and_goes_on(
    capsys: pytest.CaptureFixture[str], data: Path, home: Path
) -> None:
    words = ("run", "ceda-4", "--path", str(data), "--limit", "16", "--workers", "2")
    code, table, progress = run(capsys, *words)
    assert code == 0
    part = lines_by_system(table, "FEVER")
    system, way, paper, ours, paper_seconds, seconds = part["CEDA"][1:]
    assert (system, way, paper, paper_seconds) == (
        "CEDA", "ceda (5 turns), builtin", "85.00", "8.85",
    )  # fmt: skip
    assert re.fullmatch(r"\d+\.\d \(\d+\.\d to \d+\.\d\)", ours)
    assert re.fullmatch(r"\d+\.\d\d", seconds)
    assert part["FacTool"][3:5] == ["70.21", "not measured [1]"]
    assert "[1] not measured: others' system" in table
    assert "all supported" in part
    assert "record no" not in table
    assert "Not all results have the same" not in table
    assert "## Compared on the same rows" in table
    assert "| ceda (5 turns), builtin | single, builtin | f1_supported |" in table
    assert "cell 1 of 3" in progress
    code, again, progress = run(capsys, *words)
    assert (code, again) == (0, table), "what is done is kept"
    assert "16 of 16 rows are known already" in progress
    assert run(capsys, "show", "ceda-4")[1] == table
    states = [line.split()[:3] for line in run(capsys, "list")[1].splitlines()]
    assert ["ceda-4", "run", "here"] in states
    assert ["ceda-5", "not", "run"] in states
    elsewhere = ("run", "ceda-4", "--path", str(data / "none"))
    for changed, failed in (
        ((*words, "--roster", "nope"), 2),
        ((*words, "--row", "CEDA=nope"), 2),
        (elsewhere, 1),
    ):
        assert run(capsys, *changed)[0] == failed
        assert run(capsys, "show", "ceda-4")[1] == table, "figures are not replaced by nothing"
    (kept,) = home.glob("evaluations/grid-*.json")
    kept.write_text("{}")
    assert run(capsys, "show", "ceda-4")[0] == 2


def test_what_cannot_run_says_why_and_the_rest_runs(
    capsys: pytest.CaptureFixture[str], data: Path
) -> None:
    code, table, _ = run(capsys, "run", "sc-maks-3", "--path", str(data), "--limit", "8")
    assert code == 0
    fever, others = lines_by_system(table, "FEVER"), lines_by_system(table, "Fakeddit")
    assert fever["single agent"][4] != "not measured [1]"
    assert fever["SC-MAKS"][4].startswith("not measured")
    assert others["single agent"][4].startswith("not measured")
    assert "built-in readers say the same in every round" in table
    assert f"Expected a data folder at {data / 'fakeddit'}" in table
    code, table, _ = run(capsys, "run", "ceda-1", "--path", str(data))
    assert code == 1, "nothing could be measured"
    assert "not measured" in table


@pytest.mark.slow
def test_a_model_plays_every_way(
    capsys: pytest.CaptureFixture[str],
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COUNTERPOINT_API_KEY", "test-key-0123456789")
    monkeypatch.setattr("core.__main__.PROJECT_ROOT", tmp_path)
    words = ("run", "ceda-4", "--path", str(data), "--limit", "4", "--row", "GPT-4=builtin")
    with loopback(Cast()) as server:
        asked = ("--model", "openai/loopback", "--api-base", server.base, "--token-cap", "900000")
        rated = ("--rate", "127.0.0.1=900/s")
        code, table, _ = run(capsys, *words, *asked, *rated)
        spoken = [role_of(one) for one in server.asked]
    part = lines_by_system(table, "FEVER")
    assert code == 0
    assert part["CEDA"][2] == "ceda (5 turns), openai/loopback"
    assert part["GPT-4"][2] == "single, builtin"
    assert not part["CEDA"][4].startswith("not measured")
    assert spoken.count("debate") >= 8, "two debaters a row"
    assert "| single:style=thought, openai/loopback | single, builtin |" in table
    with loopback(Cast({"judge": Reply(status=500)})) as server:
        asked = ("--model", "openai/other", "--api-base", server.base, "--token-cap", "900000")
        code, table, _ = run(capsys, *words, *asked)
    assert code == 0, "the row of the built-in engine was measured"
    assert lines_by_system(table, "FEVER")["CEDA"][4].startswith("not measured")
    assert "agent_failed" in table


def test_bad_input_takes_one_line(capsys: pytest.CaptureFixture[str], data: Path) -> None:
    for words in (
        ("show", "ceda-9"),
        ("run", "ceda-4", "--path", str(data), "--row", "Nobody=builtin"),
        ("run", "ceda-4", "--path", str(data), "--limit", "0"),
        ("run", "ceda-4", "--path", str(data), "--roster", "nope"),
        ("run", "ceda-4", "--path", str(data), "--rate", "openai=5/s"),
        ("run", "ceda-4", "--path", str(data), "--address", "10.0.0.1:6379"),
    ):
        code, table, said = run(capsys, *words)
        assert (code, table, said.count("\n")) == (2, "", 1), said


def test_grids_are_listed_and_shown_before_anything_ran(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, listed, _ = run(capsys, "list")
    assert code == 0
    assert [line.split()[0] for line in listed.splitlines()] == GRIDS
    for name in GRIDS:
        code, table, _ = run(capsys, "show", name)
        assert code == 0
        printed = sum(len(row.figures) for row in load_grids()[name].rows)
        assert table.count("not measured") > 0
        assert table.count(" | ") >= printed
