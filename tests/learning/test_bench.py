"""Cases on the bench: each is checked as if it were the first, and nothing of it stays."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from core.learning.bench import PREFIX, Bench, Material, opened_bench
from core.pipeline.review import Resources
from core.pipeline.run_factory import Staff
from core.runtime.concurrency import Stop
from core.runtime.config import Settings
from core.runtime.errors import InputError
from core.schema.progress import Progress
from core.schema.records import Plan
from core.store.versions import SEED_VERSION
from core.verdict.classifier import load_classifier
from tests.debates import built_in
from tests.fakes import FakeEmbedder

CATS = "Female cats tend to be right pawed. Male cats are more often left pawed."
TOWERS = "The tower is 412 m tall. It was opened in 1932. Many cats live in the tower."


def staff_of(bench: Bench) -> Staff:
    classifier = load_classifier(bench.home, SEED_VERSION)
    resources = Resources(bench.home, bench.settings, FakeEmbedder(), classifier, lambda: 0.0)
    return Staff(built_in(), resources)


def check(bench: Bench, *texts: str, response: str = "Female cats are left pawed.") -> Progress:
    return bench.check(Material(response, "", texts), staff_of(bench), Plan(), Stop())


def test_a_case_does_not_depend_on_those_before_it() -> None:
    with opened_bench(Settings()) as bench:
        first = check(bench, CATS, TOWERS)
        for number in range(3):
            check(bench, f"{TOWERS} The cats of house {number} are left pawed.", CATS)
        again = check(bench, CATS, TOWERS)
    assert first.verdict is not None
    assert first.verdict == again.verdict
    assert first.passages == again.passages


def test_only_the_sources_of_the_last_case_are_kept_and_in_the_end_none() -> None:
    with opened_bench(Settings()) as bench:
        home = bench.home
        check(bench, CATS)
        check(bench, CATS, TOWERS)
        kept = {path.name for path in (home / "documents").iterdir()}
        assert len(kept) == 2
        check(bench, TOWERS)
        left = {path.name for path in (home / "documents").iterdir()}
        assert len(left) == 1
        assert left < kept
        check(bench)
        assert not list((home / "documents").iterdir())
    assert not home.exists()


def test_what_a_killed_process_left_is_cleared_away() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    with opened_bench(Settings()) as bench:
        where = bench.home.parent
        left = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{ended.pid}-", dir=where))
        (left / "documents").mkdir()
        with opened_bench(Settings()) as other:
            assert other.home.parent == where
            assert not left.exists()
            assert bench.home.exists(), "its process is alive"


def test_a_document_of_nothing_is_left_out_and_the_others_are_used() -> None:
    with opened_bench(Settings()) as bench:
        found = check(bench, " \n", CATS)
        assert [event.characters for event in found.documents.values()] == [len(CATS)]


def test_a_response_of_nothing_and_an_image_that_is_not_there_are_refused(tmp_path: Path) -> None:
    with opened_bench(Settings()) as bench:
        with pytest.raises(InputError, match="Enter a text to check"):
            check(bench, CATS, response=" ")
        material = Material("A cat.", images=(tmp_path / "none.png",))
        with pytest.raises(InputError, match=r"none\.png"):
            bench.check(material, staff_of(bench), Plan(), Stop())
