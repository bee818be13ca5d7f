"""What an evaluation keeps of each row, and what a killed process leaves."""

from __future__ import annotations

import contextlib
import queue
import threading
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest

from core.evaluation.dataset_files import GoldRow, GoldSpan
from core.evaluation.engine_runs import RowTask
from core.evaluation.outcomes import Prediction, PredictionCache, compute_row_digest
from core.evaluation.runner import RowRunner
from core.runtime.errors import ConfigError, InputError, ModelError
from tests.waiting import PATIENCE_SECONDS

ROW = GoldRow("1", "a file, line 1", "It is so.", "supported", "group", documents=("It is.",))
SAID = Prediction("hallucinated", 0.7, (GoldSpan(0, 2, 0.6),), (GoldSpan(3, 5, 0.2),), "", 0.5)


def kept(home: Path, *identity: str) -> contextlib.closing[PredictionCache]:
    return contextlib.closing(PredictionCache(home, "set-all", identity))


def test_predictions_outlive_their_process_and_are_those_of_one_engine(home: Path) -> None:
    with kept(home, "engine 1") as first:
        first.add("a", SAID)
        first.add("b", Prediction("unclear", None, cause="no_evidence"))
    with kept(home, "engine 1") as again:
        assert again.get("a") == SAID
        assert again.get("b") == Prediction("unclear", None, cause="no_evidence")
        assert again.get("c") is None
    with kept(home, "engine 2") as other:
        assert other.get("a") is None


@pytest.mark.parametrize(
    "left",
    [
        '{"row": "b", "label": "suppo',
        "[]",
        '{"row": "b", "label": "maybe", "p": 1, "cause": "", "seconds": 1}',
        '{"row": "b", "label": "supported", "p": "x", "cause": "", "seconds": 1}',
        '{"row": "b"}',
        "[" * 100_000,
        "\udcff",
    ],
)
def test_half_a_line_costs_only_its_row(home: Path, left: str) -> None:
    with kept(home) as first:
        first.add("a", SAID)
    with first.path.open("ab") as stream:
        stream.write(left.encode("utf-8", "surrogateescape"))
    with kept(home) as second:
        assert second.get("b") is None
        second.add("c", SAID)
    with kept(home) as third:
        assert (third.get("a"), third.get("c")) == (SAID, SAID)


def test_a_cause_with_any_line_end_stays_one_line(home: Path) -> None:
    said = Prediction("unclear", cause="refused: a\u2028b\x85c\nd\re")
    with kept(home) as first:
        first.add("a", said)
        first.add("b", SAID)
    with kept(home) as again:
        assert (again.get("a"), again.get("b")) == (said, SAID)


def test_a_row_is_known_by_what_is_shown_of_it(tmp_path: Path) -> None:
    picture = tmp_path / "chart.png"
    picture.write_bytes(b"one")
    shown = replace(ROW, images=(picture,))
    digest = compute_row_digest(shown)
    assert digest == compute_row_digest(replace(shown, label="hallucinated", place="elsewhere"))
    others = [
        replace(shown, response="It is not."),
        replace(shown, question="Is it?"),
        replace(shown, documents=()),
        replace(shown, documents=("It is.", "")),
        replace(shown, id="2"),
        replace(shown, images=()),
    ]
    assert digest not in {compute_row_digest(other) for other in others}
    picture.write_bytes(b"two")
    assert digest != compute_row_digest(shown)
    picture.unlink()
    with pytest.raises(InputError, match=r"a file, line 1: expected an image at .*chart\.png"):
        compute_row_digest(shown)


def test_a_second_run_waits_and_knows_what_the_first_did(home: Path) -> None:
    told: queue.SimpleQueue[str] = queue.SimpleQueue()
    known: list[Prediction | None] = []

    def run_again() -> None:
        with contextlib.closing(PredictionCache(home, "set-all", (), told.put)) as second:
            known.append(second.get("a"))

    with kept(home) as first:
        thread = threading.Thread(target=run_again)
        thread.start()
        assert "Another run checks the same rows" in told.get(timeout=PATIENCE_SECONDS)
        first.add("a", SAID)
        assert not known
    thread.join(timeout=PATIENCE_SECONDS)
    assert known == [SAID]


def test_a_home_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "evaluations").write_text("a file")
    with pytest.raises(ConfigError, match="Expected a folder that can be written at"):
        kept(tmp_path)


def test_an_evaluation_stops_once_each_of_its_workers_could_have_failed_three_times(
    home: Path,
) -> None:
    failed = Prediction("unclear", cause="failed: the service is away")
    for capacity in (1, 4):
        rows = [replace(ROW, id=str(n)) for n in range(3 * capacity)]
        tasks = [RowTask(0, n, compute_row_digest(row), row) for n, row in enumerate(rows)]
        workers = Mock(capacity=capacity)
        for count, stops in ((len(rows) - 1, False), (len(rows), True)):
            workers.take.side_effect = [(task, failed) for task in tasks]
            with kept(home, str(capacity), str(count)) as cache:
                runner = RowRunner(workers, cache, lambda _: None)
                expected = pytest.raises(ModelError) if stops else contextlib.nullcontext()
                with expected:
                    runner.predictions(rows[:count], "rows")
