"""The tables of docs/researchers.md say what the stored results say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.evaluation.command_line import write_result
from core.evaluation.table import (
    BEGIN_MARKER,
    END_MARKER,
    RESULTS_FOLDER,
    RESULTS_PAGE,
    format_tables,
    load_results,
    main,
)
from tests.needs import need


def tables_in(text: str) -> str | None:
    """What stands between the page's markers; None where they are not there."""
    if BEGIN_MARKER not in text or END_MARKER not in text:
        return None
    return text.partition(BEGIN_MARKER)[2].partition(END_MARKER)[0].lstrip("\n")


def figures(**values: float) -> dict[str, dict[str, float]]:
    return {n: {"value": v, "low": v - 0.1, "high": v + 0.1} for n, v in values.items()}


def result(dataset: str, **more: Any) -> dict[str, Any]:
    plain = {
        "dataset": dataset,
        "task": None,
        "split": "dev20",
        "limit": None,
        "rows": 1417,
        "roster": "builtin",
        "metrics": figures(balanced_accuracy=0.8125, auroc=0.9, ece=0.04, ece_null=0.02, f1=0.8),
        "trivial": {
            "claim_only": figures(balanced_accuracy=0.0, auroc=0.5),
            "always_hallucinated": figures(f1=0.667),
        },
    }
    return plain | more


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A folder with three results."""
    folder = tmp_path / "measurements"
    write_result(folder, result("zebra", task="stripes", limit=1417))
    write_result(folder, result("ants"))
    marked = {
        "metrics": figures(iou=0.56, correlation=0.5, char_f1=0.6),
        "trivial": {"mark_all": figures(iou=0.33)},
    }
    write_result(folder, result("mushroom", **marked))
    return folder


def test_every_result_has_a_line_under_the_figures_names(results: Path) -> None:
    lines = format_tables(load_results(results)).splitlines()
    names = [name.strip() for name in lines[0].strip("|").split("|")]
    cells = dict(zip(names, [c.strip() for c in lines[2].strip("|").split("|")], strict=True))
    assert cells["set"] == "ants dev20"
    assert cells["rows"] == "1,417"
    assert cells["balanced accuracy"] == "0.812 (0.71–0.91)"
    assert cells["ECE / by chance"] == "0.040 / 0.020"
    assert cells["F1 / always hallucinated"] == "0.800 / 0.667"
    assert cells["three-way / no evidence"] == "–"
    assert cells["no evidence: balanced / AUROC"] == "0.000 / 0.500"
    assert lines[3].startswith("| zebra stripes dev20 (sample) |")
    assert lines[7].startswith("| mushroom dev20 | 1,417 | 0.560 (0.46–0.66) |")
    assert "| 0.330 |" in lines[7]
    assert len(lines) == 8


def test_the_tables_take_their_place_in_the_readme(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(f"# Title\n\n{BEGIN_MARKER}\nold\n{END_MARKER}\n\nRest.\n", encoding="utf-8")
    arguments = ["--results", str(results), "--page", str(readme)]
    assert main(arguments) == 0
    printed = capsys.readouterr().out
    assert "old" in readme.read_text(encoding="utf-8")
    for _ in range(2):
        assert main([*arguments, "--write"]) == 0
        text = readme.read_text(encoding="utf-8")
        assert text == f"# Title\n\n{BEGIN_MARKER}\n{printed}{END_MARKER}\n\nRest.\n"
        assert tables_in(text) == printed


def test_three_labels_stand_beside_what_the_claims_alone_come_to() -> None:
    both = {
        "metrics": figures(balanced_accuracy=0.8, auroc=0.9, accuracy3=0.7),
        "trivial": {"claim_only": figures(accuracy3=0.25)},
    }
    head, _, line = format_tables([result("ants", **both)]).splitlines()
    cells = dict(zip(head.split("|"), line.split("|"), strict=True))
    assert cells[" three-way / no evidence "] == " 0.700 / 0.250 "


@pytest.mark.parametrize(
    "text",
    [
        "nothing",
        f"{END_MARKER} {BEGIN_MARKER}",
        f"{BEGIN_MARKER} {BEGIN_MARKER} {END_MARKER}",
        BEGIN_MARKER,
    ],
)
def test_a_readme_without_a_place_for_them_is_left_alone(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(text)
    assert main(["--results", str(results), "--page", str(readme), "--write"]) == 2
    assert readme.read_text() == text
    assert BEGIN_MARKER in capsys.readouterr().err


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"metrics": {}}', "3"])
def test_a_file_that_is_no_result_is_named(
    results: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    (results / "broken.json").write_text(text)
    assert main(["--results", str(results)]) == 2
    err = capsys.readouterr().err
    assert "broken.json" in err
    assert err.count("\n") == 1


def test_the_readme_shows_the_stored_results() -> None:
    shown = tables_in(RESULTS_PAGE.read_text(encoding="utf-8"))
    stored = list(RESULTS_FOLDER.glob("*.json"))
    need(bool(stored) or shown is not None, "nothing has been measured yet: docs/measurements")
    assert shown is not None, f"the page lacks the lines {BEGIN_MARKER} and {END_MARKER}"
    assert shown == format_tables(load_results(RESULTS_FOLDER)), (
        "run `python -m core.evaluation.table --write`"
    )


def test_the_stored_results_name_no_place_of_the_machine_that_measured() -> None:
    stored = list(RESULTS_FOLDER.glob("*.json"))
    need(bool(stored), "nothing has been measured yet: docs/measurements")
    for path in stored:
        assert not {"path", "home", "folder"} & set(json.loads(path.read_text(encoding="utf-8")))
