"""What an annotator of a blind project can find out about an item before they answer it: nothing.

Two homes differ in nothing but what would tell: the machine's verdict, what its agents said, what
others answered, and the right answers. A page or a file that is not the same in both gives it away.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
import streamlit as st
from google.protobuf.json_format import MessageToDict  # type: ignore[import-untyped]
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Dataframe

from components.app.frame import DEFAULT_PAGE, HISTORY_PAGE, MENU
from components.setup.import_export import Exporter, build_export
from core.evaluation.benchmark_rows import RowSource
from core.evaluation.benchmarks import BenchmarkCell, BenchmarkSpec
from core.evaluation.dataset_files import GoldRow
from core.evaluation.outcomes import Prediction, encode_prediction
from core.exchange.registry import WRITABLE_FORMATS
from core.review.adjudication import record_correction, record_gold
from core.review.queue_ranking import fill_queue
from core.runtime.config import HOME_VARIABLE
from core.runtime.errors import NotAllowed
from core.schema.events import Event, MemoryEntry, MemoryUpdated, PassagesFound, StatementFound
from core.schema.records import (
    Case,
    Label,
    Member,
    Plan,
    Project,
    Run,
    Span,
    Stance,
    Statement,
)
from core.schema.reviews import Correction, GoldAnswer, Suggestion
from core.store import Store, open_store
from core.store.benchmarks import Benchmark, BenchmarkResult
from core.store.cases import Batch, BatchRow
from tests.fakes import make_passage
from tests.learning.recorded_runs import Told, events_of
from tests.pages.conftest import ROOT, TIMEOUT

PROJECT, BATCH, BENCHMARK = "p" * 32, "b" * 32, "m" * 32
CLAIMS = {
    "open": "The Halden bridge is 512 m long.",
    "similar": "The Halden bridge is 512 m long, they say.",
    "gold": "The Brevik lighthouse was built in 1834.",
    "settled": "The Torsnes ferry carries 90 cars.",
    "unsure": "The Lindal tunnel opened in May.",
}
PAGES = [(path, title) for entries in MENU.values() for path, title, _ in entries]
NORA = "Nora"


@dataclass(frozen=True)
class Side:
    """One of two opposite stories about the same cases; its words are nowhere else in the app."""

    label: Label
    p: float
    unsure: float
    people: tuple[str, str]
    agents: tuple[str, str, str]
    mark: slice
    reason: str

    @property
    def opposite(self) -> Label:
        return "supported" if self.label == "hallucinated" else "hallucinated"

    @property
    def words(self) -> list[str]:
        return [*self.people, *self.agents, self.reason]


SIDES = (
    Side("hallucinated", 0.83, 0.58, ("Ysolde", "Wenzel"), ("Quokka", "Bandicoot", "Potoroo"),
         slice(0, 3), "zeppelin"),
    Side("supported", 0.12, 0.21, ("Torbjorn", "Quillan"), ("Axolotl", "Salamander", "Olm"),
         slice(4, 9), "marzipan"),
)  # fmt: skip


def tell(home: Path, side: Side) -> None:
    """A blind project of two leads and Nora, whose cases were all checked and mostly answered."""
    with open_store(home) as store, store.writing():
        project = Project(PROJECT, "Bridges", 1.0, people_each=3, is_blind=True, error_rate=0.2)
        store.projects.save(project)
        for person, role in (("Lena", "admin"), (NORA, "annotator")):
            store.projects.set_member(Member(PROJECT, person, role, 1.0))  # type: ignore[arg-type]
        rows = []
        for number, (name, claim) in enumerate(CLAIMS.items(), start=1):
            case = _check(store, side, name, claim, number)
            rows.append(BatchRow(BATCH, number, claim, (), case.id, f"run-{name}"))
        store.batches.add(Batch(BATCH, PROJECT, "table.csv", "Lena", 900.0, Plan()), rows)
        fill_queue(store, PROJECT, 2000.0)
        for name in CLAIMS:
            _answer(store, side, name)
        _measure(store, side)


def _measure(store: Store, side: Side) -> None:
    """A benchmark over the cases, which the machine got wrong."""
    cell = BenchmarkCell("builtin", "single", Plan("single"))
    spec = BenchmarkSpec(RowSource("project", "Bridges", sampled_from=len(CLAIMS)), (cell,))
    rows = [GoldRow(f"case-{name}", f"case {name}", claim, side.opposite, name)
            for name, claim in CLAIMS.items()]  # fmt: skip
    stored = [(row.id, msgspec.json.encode(row).decode()) for row in rows]
    text = msgspec.json.encode(spec).decode()
    store.benchmarks.add(Benchmark(BENCHMARK, PROJECT, "Facts", "Lena", 900.0, text, {}), stored)
    store.benchmarks.take(BENCHMARK, "told", 901.0, 60.0)
    said = json.dumps(encode_prediction(Prediction(side.label, side.p, reason=side.agents[0])))
    for n in range(len(rows)):
        result = BenchmarkResult(0, n, 902.0, 0, 0, 0, 0.0, 1.0, said)
        store.benchmarks.put_result(BENCHMARK, result)
    store.benchmarks.end(BENCHMARK, "told", "finished", 903.0)


def _check(store: Store, side: Side, name: str, claim: str, number: int) -> Case:
    case = Case(f"case-{name}", PROJECT, claim, author="Lena", created_at=1000.0 * number)
    store.cases.add(case, claim.lower().split())
    stances: dict[Label, Stance] = {"hallucinated": "hallucinated", "supported": "supported"}
    said = [stances[side.label], stances[side.label if name == "open" else side.opposite]]
    for run_id, at in ((f"run-{name}", 1000.0 * number), (f"again-{name}", 1000.0 * number + 500)):
        turns = list(zip(side.agents, said, strict=False))
        p = side.unsure if name == "unsure" else side.p
        told = Told(turns, side.label, side.opposite, claim, p=p, at=at)
        run = Run(run_id, case.id, PROJECT, Plan(), "queued", at)
        store.runs.add(run, "told", at)
        events = events_of(told, case)
        events[2:2] = _audit(side, claim, at)
        store.runs.append(run.id, "told", events)
    return case


def _audit(side: Side, claim: str, at: float) -> list[Event]:
    """What an audit said of two statements, and the evidence that it found for them."""
    found = (make_passage("The Halden bridge is 412 m long.", source="facts.txt"),)
    return [
        StatementFound(at, Statement(1, 0, 10, claim[:10], claim[:10])),
        *(PassagesFound(at, number, found) for number in (0, 1)),
        *(
            MemoryUpdated(at, MemoryEntry(number, label, side.p, side.reason))
            for number, label in enumerate((side.opposite, side.label))
        ),
    ]


def _answer(store: Store, side: Side, name: str) -> None:
    case = store.cases.get(f"case-{name}")
    assert case is not None
    mark = Span(
        side.mark.start, side.mark.stop, case.response[side.mark], 1.0, "number_or_date", "x"
    )
    for place, person in enumerate(side.people):
        label = (side.label, side.opposite)[place] if name == "open" else side.opposite
        said = Correction(
            f"{name}-{place}", f"run-{name}", case.id, person, 9000.0 + place, label,
            (mark,) if label == "hallucinated" else (), side.reason, is_blind=True,
            machine_label=side.label,
        )  # fmt: skip
        record_correction(store, said, case)
        store.queue.end(case.id, person, "submitted", 9000.0)
    agent = Suggestion(f"{name}-said", case.id, side.agents[2], 8000.0, side.label, side.p, (mark,))
    store.golds.suggest(agent, case)
    gold = GoldAnswer(
        f"{name}-gold", case.id, side.people[0], 8500.0, "imported", side.label, reason=side.reason
    )
    if name == "gold":
        store.golds.add(gold, case.response)
    if name == "settled":
        record_gold(store, replace(gold, origin="adjudicated"), case)


# Walking


class Visitor:
    """Somebody who opens every page of a home and takes away every file that it offers."""

    def __init__(self, person: str) -> None:
        self.person = person
        self.files: dict[str, Any] = {}

    def open(self, page: str, **query: str) -> AppTest:
        at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=TIMEOUT)
        at.session_state["person"] = self.person
        at.run()
        at.switch_page(page)
        return self.settled(at, **query)

    def settled(self, at: AppTest, **query: str) -> AppTest:
        for name, value in query.items():
            at.query_params[name] = value
        at.run()
        assert not at.exception, at.exception[0].message
        return at

    def walk(self, page: str) -> Iterator[tuple[str, str]]:
        """Each thing that the page shows in each of its states, under a name of that state."""
        at = self.open(page)
        if page == DEFAULT_PAGE:  # an address that names a run leads on to that run
            at.text_area(key="new.response").set_value(CLAIMS["similar"])
            yield from self.shown(self.settled(at), page)
            return
        for name in CLAIMS:
            ids = {"case": f"case-{name}", "run": f"run-{name}", "batch": BATCH}
            ids["benchmark"] = BENCHMARK
            yield from self.shown(self.settled(at, **ids), f"{page} {name}")
        if page.startswith("pages/review") or page == HISTORY_PAGE:
            yield from self.choices(at, page)
        others = [{"before": "run-open", "after": "again-open"}, {"people": "corrected"}]
        others += [{"label": "hallucinated"}, {"label": "supported"}, {"show": "settled"}]
        for query in others if page.endswith(("compare.py", "history.py", "pending.py")) else ():
            yield from self.shown(self.open(page, **query), f"{page} {query}")

    def choices(self, at: AppTest, page: str) -> Iterator[tuple[str, str]]:
        """What the page shows under each of its own choices."""
        for kind in ("segmented_control", "selectbox"):
            for place in range(len(getattr(at, kind))):
                before = getattr(at, kind)[place].value
                if getattr(at, kind)[place].disabled:
                    continue
                for option in list(getattr(at, kind)[place].options):
                    field = getattr(at, kind)[place]
                    if kind == "selectbox":
                        field.select_index(field.options.index(option))
                    else:
                        field.set_value(re.sub(r" \(\d+\)$", "", option))
                    yield from self.shown(self.settled(at), f"{page} {option}")
                getattr(at, kind)[place].set_value(before)
                self.settled(at)

    def shown(self, at: AppTest, where: str) -> Iterator[tuple[str, str]]:
        """All that is drawn and offered, under the name of where it is."""
        lines = [*self.drawn(at)]
        lines += [f"{name}: {line}" for name, make in self.files.items() for line in taken(make)]
        self.files.clear()
        return ((where, line) for line in lines)

    def drawn(self, at: AppTest) -> Iterator[str]:
        """Words, attributes, markup, tables, chart data and addresses."""
        yield json.dumps(dict(at.query_params), default=str)
        for element in _elements(at._tree):
            plain = MessageToDict(element.proto)
            plain.pop("deferredFileId", None)  # drawn by lot
            if isinstance(element, Dataframe):
                yield from element.value.to_csv().splitlines()
                plain = {k: v for k, v in plain.items() if k not in ("arrowData", "id")}
            line = json.dumps(plain, ensure_ascii=False)
            yield re.sub(r'(\\?"seconds\\?": )[\d.e-]+', r"\1", line)  # a clock


def taken(make: Any) -> Iterator[str]:
    """The lines of a downloaded file, or of the files in it."""
    try:
        data = make() if callable(make) else make
    except NotAllowed:
        return
    raw = data.encode() if isinstance(data, str) else data
    if raw.startswith(b"PK"):
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            for name in archive.namelist():
                text = archive.read(name).decode(errors="replace")
                yield from (f"{name} {line}" for line in text.splitlines())
        return
    yield from raw.decode(errors="replace").splitlines()


def _elements(block: Any) -> Iterator[Any]:
    if getattr(block, "children", None) is not None:
        for child in block.children.values():
            yield from _elements(child)
    if getattr(block, "proto", None) is not None:
        yield block


Compare = Callable[[str, str], list[str]]


@pytest.fixture
def telling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Compare:
    """Walks a page of both homes as a person; what tells one home from the other."""
    real = st.download_button
    visiting: list[Visitor] = []
    home = tmp_path / "home"  # the same address for both, as pages show it
    for number, side in enumerate(SIDES):
        tell(home, side)
        home.rename(tmp_path / f"home{number}")
    monkeypatch.setenv(HOME_VARIABLE, str(home))

    def record(label: str, data: Any, *args: Any, **options: Any) -> bool:
        visiting[-1].files[label] = data
        return real(label, data, *args, **options)

    monkeypatch.setattr(st, "download_button", record)

    def compare(page: str, person: str) -> list[str]:
        seen = []
        for number in range(len(SIDES)):
            (tmp_path / f"home{number}").rename(home)
            st.cache_resource.clear()
            st.cache_data.clear()
            visiting.append(Visitor(person))
            seen.append(list(visiting[-1].walk(page)))
            home.rename(tmp_path / f"home{number}")
        told = set(seen[0]).symmetric_difference(seen[1])
        words = [word for side in SIDES for word in side.words]
        told |= {each for lines in seen for each in lines if any(w in each[1] for w in words)}
        return [f"{where}: {line[:300]}" for where, line in sorted(told)]

    return compare


@pytest.mark.parametrize(("page", "title"), PAGES)
def test_no_page_or_file_tells_an_annotator_what_to_answer(
    telling: Compare, page: str, title: str
) -> None:
    found = telling(page, NORA)
    assert not found, f"{title} tells: " + "\n".join(found[:12])


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [
        "pages/check/run.py",
        HISTORY_PAGE,
        "pages/review/adjudicate_case.py",
        "pages/measure/benchmark.py",
    ],
)
def test_the_same_walk_finds_what_a_lead_is_shown(telling: Compare, page: str) -> None:
    found = "\n".join(telling(page, "Lena"))
    assert "hallucinated" in found.lower()
    if page != HISTORY_PAGE:
        assert "Quokka" in found or "Ysolde" in found


def test_an_answer_opens_its_own_case_and_no_other(tmp_path: Path) -> None:
    tell(tmp_path / "home", SIDES[0])
    with open_store(tmp_path / "home") as store, store.writing():
        case = store.cases.get("case-open")
        assert case is not None
        answer = Correction("own", "run-open", case.id, NORA, 9500.0, "supported", is_blind=True)
        record_correction(store, answer, case)
    visitor = Visitor(NORA)
    seen = {
        name: "\n".join(line for _, line in visitor.shown(
            visitor.open("pages/check/run.py", run=f"run-{name}"), name))
        for name in ("open", "gold")
    }  # fmt: skip
    assert "83% likely" in seen["open"]
    assert "Quokka" in seen["open"]
    assert "Ysolde" not in seen["open"], "others are seen once the case is settled"
    assert "83% likely" not in seen["gold"]
    own = "\n".join(visitor.drawn(visitor.open("pages/review/agreement.py")))
    assert NORA in own
    assert "Ysolde" not in own
    assert "only its leads see figures from everybody's answers" in own
    assert "of two people" not in own, "others may have answered the same cases"


@pytest.mark.parametrize("name", [*WRITABLE_FORMATS, "archive", "trajectories"])
def test_a_page_that_was_drawn_for_a_lead_gives_an_annotator_no_file(
    tmp_path: Path, name: str
) -> None:
    tell(tmp_path / "home", SIDES[0])
    assert build_export(Exporter(tmp_path / "home", PROJECT, "Lena"), name, "all")
    with pytest.raises(NotAllowed):
        build_export(Exporter(tmp_path / "home", PROJECT, NORA), name, "all")
