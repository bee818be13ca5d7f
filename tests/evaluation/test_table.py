"""The tables of README and docs/researchers.md say what the stored results say."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from core.evaluation.command_line import write_result
from core.evaluation.table import (
    BEGIN_MARKER,
    CONDITIONS,
    END_MARKER,
    PAGES,
    RESULTS_FOLDER,
    describe_conditions,
    format_summary,
    format_tables,
    load_results,
    main,
)
from core.runtime.config import PROJECT_ROOT
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
        "seconds": 2834.0,
        "roster": "builtin",
        **dict.fromkeys(CONDITIONS, "as then"),
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


def write_pages(folder: Path, text: str, readme: str | None = None) -> list[Path]:
    pages = [folder / name for name in PAGES]
    for page in pages:
        page.parent.mkdir(exist_ok=True)
        own = readme if readme is not None and page.name == "README.md" else text
        page.write_text(own, encoding="utf-8")
    return pages


def test_the_tables_take_their_places_in_the_pages(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pages = write_pages(tmp_path, f"# Title\n\n{BEGIN_MARKER}\nold\n{END_MARKER}\n\nRest.\n")
    arguments = ["--results", str(results), "--pages", str(tmp_path)]
    assert main(arguments) == 0
    printed = capsys.readouterr().out
    assert all("old" in page.read_text(encoding="utf-8") for page in pages)
    for _ in range(2):
        assert main([*arguments, "--write"]) == 0
        shown = []
        for page in pages:
            text = page.read_text(encoding="utf-8")
            shown.append(tables_in(text))
            assert text == f"# Title\n\n{BEGIN_MARKER}\n{shown[-1]}{END_MARKER}\n\nRest.\n"
        assert "\n".join(map(str, shown)) == printed


def test_the_summary_has_every_result_beside_a_constant_answer(results: Path) -> None:
    constant = {"always_hallucinated": figures(balanced_accuracy=0.5)}
    measured = figures(
        balanced_accuracy=0.1, forced_balanced_accuracy=0.9, coverage=0.7, selective_accuracy=0.95
    )
    write_result(results, result("bees", metrics=measured, trivial=constant))
    lines = format_summary(load_results(results)).splitlines()
    assert [line.split("|")[1].strip() for line in lines[2:]] == [
        "bees dev20", "ants dev20", "zebra stripes dev20 (sample)", "mushroom dev20",
    ], "the most accurate first; no figure last"  # fmt: skip
    assert lines[2] == "| bees dev20 | 1,417 | 0.900 (0.80–1.00) | 0.500 | 0.700 | 0.950 |"
    assert lines[3].startswith("| ants dev20 | 1,417 | 0.812 (0.71–0.91) |"), "nothing is forced"


def test_results_that_do_not_record_what_they_were_measured_under_say_so() -> None:
    old = result("bees", **dict.fromkeys(CONDITIONS))
    new = result("ants")
    for format_page in PAGES.values():
        assert not re.search("record no|the same", format_page([new]))
        text = format_page([old, new])
        assert "1 of 2 results record no hash of rows, engine, machine and packages: " in text
        text = format_page([new | {"machine": "other"}, new])
        assert "Not all results have the same machine and packages: " in text


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
def test_pages_without_a_place_for_them_are_left_alone(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    good = f"{BEGIN_MARKER}\n{END_MARKER}\n"
    page, readme = write_pages(tmp_path, good, readme=text)
    assert main(["--results", str(results), "--pages", str(tmp_path), "--write"]) == 2
    assert readme.read_text() == text
    assert page.read_text() == good, "none is written if one cannot be"
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


@pytest.mark.parametrize("page", PAGES)
def test_the_pages_show_the_stored_results(page: str) -> None:
    shown = tables_in((PROJECT_ROOT / page).read_text(encoding="utf-8"))
    stored = list(RESULTS_FOLDER.glob("*.json"))
    need(bool(stored) or shown is not None, "nothing has been measured yet: docs/measurements")
    assert shown is not None, f"the page lacks the lines {BEGIN_MARKER} and {END_MARKER}"
    assert shown == PAGES[page](load_results(RESULTS_FOLDER)), (
        "run `python -m core.evaluation.table --write`"
    )


def test_the_stored_results_record_what_they_were_measured_under() -> None:
    assert describe_conditions(load_results(RESULTS_FOLDER), CONDITIONS) == []


def test_the_stored_results_name_no_place_of_the_machine_that_measured() -> None:
    stored = list(RESULTS_FOLDER.glob("*.json"))
    need(bool(stored), "nothing has been measured yet: docs/measurements")
    for path in stored:
        assert not {"path", "home", "folder"} & set(json.loads(path.read_text(encoding="utf-8")))
