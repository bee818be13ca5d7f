"""The expected time grows with the text, and comes from what was measured on this computer."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace

import pytest

from core.agents.llm_audit import describe_toolbox
from core.agents.qualification import Qualification, save_qualification
from core.llm.limits import estimate_tokens
from core.pipeline.cost_estimate import (
    PER_IMAGE_SECONDS,
    PER_MEGABYTE_SECONDS,
    CheckSize,
    ModelUsage,
    estimate_duration,
    estimate_seconds,
    estimate_usage,
    load_paces,
    load_standings,
    measure_checks,
    plan_calls,
)
from core.schema.events import DocumentRead, Event, RunFinished, RunResumed, RunStarted, StepsReused
from core.schema.records import LibraryEntry, Plan, Project, Run, Source, Verdict
from core.schema.rosters import AgentConfig, DebateOptions, RosterConfig
from core.store import Store
from core.store.cases import PassageVectors
from tests.fakes import make_case
from tests.store.test_ledger import DONE
from tests.waiting import PATIENCE_SECONDS

VERDICT = Verdict("supported", 0.1, 0.9, "It is right.")


@pytest.fixture
def shelf(store: Store) -> Store:
    """A store with a project."""
    store.projects.save(Project("project", "Ours", 1.0))
    return store


def add_run(
    store: Store,
    number: int,
    characters: int,
    seconds: float,
    *,
    reading: float = 0.0,
    extra: Event | None = None,
    origin: str = "here",
    roster: str = "builtin",
    protocol: str = "ceda",
) -> None:
    """A finished run over a text of that length; it waited and read before it began to search."""
    case = make_case("x" * characters, id=f"c{number}")
    store.cases.add(case, [])
    plan = Plan(protocol, roster)
    at = 100.0 * number
    run = Run(f"r{number}", case.id, "project", plan, "queued", at, origin=origin)  # type: ignore[arg-type]
    store.runs.add(run, "me", at)
    began = at + 10.0
    end = began + reading + seconds
    events: list[Event] = [
        RunStarted(began, case, plan, ()),
        DocumentRead(began + reading, "d", "facts.txt", (), 24, reading, False),
        *([extra] if extra else []),
        RunFinished(end, VERDICT, reading + seconds),
    ]
    with store.writing():
        store.runs.append(run.id, "me", events)


def entry(kind: str = "pdf", size: int = 2_000_000, status: str = "waiting") -> LibraryEntry:
    return LibraryEntry("d", "project", "d.pdf", kind, size, status, "Mira", 1.0)  # type: ignore[arg-type]


def test_a_longer_text_takes_longer(shelf: Store) -> None:
    short, long = (estimate_seconds(shelf, [], count) for count in (70, 60_000))
    assert short < 1.0
    assert 30.0 < long < 120.0


@pytest.mark.parametrize("pace", [0.25, 1.0, 4.0])
def test_the_pace_is_that_of_the_newest_runs_here(shelf: Store, pace: float) -> None:
    lengths = [70, 700, 7_000]
    before = [estimate_seconds(shelf, [], count) for count in lengths]
    for number, (count, usual) in enumerate(zip(lengths, before, strict=True), start=1):
        add_run(shelf, number, count, pace * usual)
    after = [estimate_seconds(shelf, [], count) for count in lengths]
    assert after == pytest.approx([pace * usual for usual in before])


def test_the_time_is_a_range_up_to_that_of_a_busy_computer(shelf: Store) -> None:
    usual, longest = estimate_duration(shelf, [], 700)
    assert longest > 3 * usual, "nothing was measured here yet"
    for number, pace in enumerate([1.0] * 8 + [3.0] * 2, start=1):
        add_run(shelf, number, 700, pace * usual)
    assert estimate_duration(shelf, [], 700) == pytest.approx((usual, 3 * usual))


def test_waiting_and_reading_are_not_the_texts_time(shelf: Store) -> None:
    usual = estimate_seconds(shelf, [], 700)
    add_run(shelf, 1, 700, usual, reading=60.0)
    assert estimate_seconds(shelf, [], 700) == pytest.approx(usual)


@pytest.mark.parametrize("extra", [StepsReused(1.0, "r0", "judgement"), RunResumed(1.0, "Mira")])
def test_runs_that_were_no_whole_checks_say_nothing(shelf: Store, extra: Event) -> None:
    usual = estimate_seconds(shelf, [], 700)
    add_run(shelf, 1, 700, 50.0, extra=extra)
    assert estimate_seconds(shelf, [], 700) == usual


def test_runs_of_elsewhere_or_of_another_roster_say_nothing(shelf: Store) -> None:
    usual = estimate_seconds(shelf, [], 700)
    add_run(shelf, 1, 700, 50.0, origin="imported")
    add_run(shelf, 2, 700, 50.0, roster="other")
    assert estimate_seconds(shelf, [], 700) == usual
    assert estimate_seconds(shelf, [], 700, "other") == pytest.approx(50.0)


def test_audits_are_paced_by_audits_and_debates_by_debates(shelf: Store) -> None:
    usual = estimate_seconds(shelf, [], 1_500)
    add_run(shelf, 1, 1_500, 4.0 * usual, protocol="audit")
    assert estimate_seconds(shelf, [], 1_500) == usual
    add_run(shelf, 2, 1_500, 2.0 * usual)
    assert estimate_seconds(shelf, [], 1_500) == pytest.approx(2.0 * usual)
    assert estimate_seconds(shelf, [], 1_500, protocol="audit") == pytest.approx(4.0 * usual)


def test_only_what_is_not_read_yet_is_added(shelf: Store) -> None:
    base = estimate_seconds(shelf, [], 70)
    assert estimate_seconds(shelf, [entry(status="ready")], 70) == base
    document = estimate_seconds(shelf, [entry()], 70, is_indexed_here=False) - base
    assert document == pytest.approx(2 * PER_MEGABYTE_SECONDS)
    image = estimate_seconds(shelf, [entry("image", status="reading")], 70) - base
    assert image == pytest.approx(PER_IMAGE_SECONDS)


def test_indexing_counts_by_the_length_of_the_text_until_it_is_done(shelf: Store) -> None:
    text = "One line of a long report.\n" * 20_000
    source = Source("d", "d.pdf", "pdf", text)
    shelf.readings.save(source, reader="test", seconds=7.0, now=1.0)
    long = replace(entry(status="ready"), characters=len(text))
    base, longest = estimate_duration(shelf, [], 70)
    usual, slow = estimate_duration(shelf, [long], 70)
    assert 60.0 < usual - base < 300.0
    assert slow - longest > 2 * (usual - base), "this computer may be busy"
    assert estimate_duration(shelf, [long], 70, is_indexed_here=False) == (base, longest)
    unread = replace(entry("text", len(text)), status="waiting")
    assert estimate_seconds(shelf, [unread], 70) > usual - base
    shelf.readings.save_index("d", "e", [], PassageVectors(0, 4, b"", b""))
    assert estimate_duration(shelf, [long], 70) == (base, longest)


def work_of(store: Store, work: Callable[[], object]) -> int:
    """How many hundreds of steps the database takes for that work."""
    count = itertools.count()
    store.db.conn.set_progress_handler(lambda: next(count) and None, 100)
    work()
    store.db.conn.set_progress_handler(None, 0)
    return next(count)


def test_it_stays_quick_with_many_runs(shelf: Store) -> None:
    """New check says it at every redraw: of a hundred times as many, few are looked into."""
    steps = {}
    for number in range(2_000):
        add_run(shelf, number, 70, 0.5)
        if number + 1 in (20, 2_000):
            steps[number + 1] = work_of(shelf, lambda: estimate_seconds(shelf, [], 70))
    assert steps[2_000] < 50 * steps[20]


SEAT = AgentConfig(model="openai/x", price_in=1.0, price_out=10.0, max_tokens=400, window=100_000)
UNPRICED = AgentConfig(model="ollama/y", max_tokens=400)


def sheet_of(seat: AgentConfig) -> RosterConfig:
    """Every speaking role to one model."""
    sheet = RosterConfig("ours")
    for role, _ in sheet.agents_by_role():
        sheet = sheet if role == "retriever" else sheet.with_seat(role, seat)
    return sheet


def test_the_built_in_engine_costs_nothing() -> None:
    expected = estimate_usage(RosterConfig("builtin"), CheckSize(60_000, images=9, sources=10**6))
    assert expected.likely == expected.most == ModelUsage()
    assert (expected.cost, expected.words) == (0.0, "no cost")


def test_calls_are_those_that_the_roles_make() -> None:
    expected = estimate_usage(sheet_of(SEAT), CheckSize(100, images=4, max_turns=5))
    # segment, 4 x 2 images, context, 3 turns, judge, spans, 1 vote
    assert expected.likely.calls == 1 + 8 + 1 + 3 + 1 + 1 + 1
    # every reply but a turn twice, as it may be cut off; 5 turns; two places in one statement
    assert expected.most.calls == 2 + 16 + 2 + 5 + 2 + 2 + 2 * 2


def test_an_audits_calls_are_those_of_its_picker_tools_and_reflector() -> None:
    size = CheckSize(240, max_turns=3, protocol="audit")  # two statements
    expected = estimate_usage(sheet_of(SEAT), size)
    # segment, 3 steps a statement, each compared once, reflection, spans, 1 vote; no debate
    assert expected.likely.calls == 1 + 2 * 3 + 2 + 1 + 1 + 1
    # 6 steps of 3 places and 2 questions of each step's tool, all twice; two reflections; context,
    # 3 turns, the judge on both statements together and on each alone; spans, 4 votes
    most = 2 + 3 * 6 * 2 + 3 * 6 * 2 * 2 + 2 * 2 + 2 + 3 + 3 * 2 + 2 + 2 * 4
    assert expected.most.calls == most
    debate = estimate_usage(sheet_of(SEAT), replace(size, protocol="ceda"))
    assert debate.most.cost < expected.most.cost


def of_debate(protocol: str, **options: object) -> tuple[int, int]:
    """The likely calls and the most of one statement's debate and judge; no other role is paid."""
    sheet = RosterConfig("ours")
    for role, _ in sheet.agents_by_role():
        if role.startswith("debater") or role in ("judge", "context writer"):
            sheet = sheet.with_seat(role, SEAT)
    chosen = DebateOptions(**options)  # type: ignore[arg-type]
    expected = estimate_usage(sheet, CheckSize(100, max_turns=5, protocol=protocol, options=chosen))
    return expected.likely.calls, expected.most.calls


def test_each_protocols_calls_are_its_own() -> None:
    debaters = len(RosterConfig("ours").debaters)
    assert of_debate("single") == (1, 2)
    assert of_debate("single", samples=5, style="thought") == (5, 10)
    assert of_debate("ensemble") == (debaters, debaters)
    # agent C twice, five turns, the judge twice; before that the single judge's samples
    assert of_debate("ceda") == (1 + 3 + 1, 2 + 5 + 2)
    assert of_debate("adaptive", samples=3, then="ceda") == (3, 3 * 2 + 2 + 5 + 2)


@pytest.mark.parametrize("protocol", ["mad", "copmad"])
def test_calls_are_those_of_the_debaters_who_are_seated(protocol: str) -> None:
    """Of a roster of three two speak, and each takes half of the turns."""
    names = [debater.name for debater in RosterConfig("ours").debaters]
    assert len(names) == 3
    unlike = [replace(SEAT, model=f"openai/{name}") for name in names]
    sheet = RosterConfig("ours")
    for name, seat in zip(names, unlike, strict=True):
        sheet = sheet.with_seat(f"debater {name}", seat)
    for is_swapped in (False, True):
        options = DebateOptions(rounds=3, is_swapped=is_swapped)
        size = CheckSize(100, protocol=protocol, options=options)
        for is_most in (False, True):
            asked = {s.agent.model: s.calls for s in plan_calls(sheet, size, is_most) if s.calls}
            asked = {model: asked.get(model, 0) for model in [seat.model for seat in unlike]}
            half = 3 * (1 + (is_swapped and protocol == "copmad"))
            assert list(asked.values())[1:] == [half, 0], "the first may be the judge too"


def test_thinking_aloud_costs_more_than_a_plain_answer() -> None:
    sheet = RosterConfig("ours", judge=SEAT)
    plain, thought = (
        estimate_usage(sheet, CheckSize(100, protocol="single", options=DebateOptions(style=style)))
        for style in ("plain", "thought")
    )
    assert plain.likely.cost < thought.likely.cost
    assert plain.likely.seconds < thought.likely.seconds


def test_what_a_seat_costs_that_a_check_never_asks_is_not_missing() -> None:
    sheet = RosterConfig("ours", tool_picker=UNPRICED)
    assert estimate_usage(sheet, CheckSize(100)).words == "no cost"
    assert estimate_usage(sheet, CheckSize(100, protocol="audit")).unpriced == ("ollama/y",)


def test_a_panel_extracts_once_each_and_votes_on_all_others() -> None:
    panel = RosterConfig("ours", span_panel=(SEAT, SEAT, SEAT, AgentConfig(reader="rules")))
    expected = estimate_usage(panel, CheckSize(100))
    assert expected.likely.calls == 3 + 3 * 3
    assert expected.most.calls == 2 * (3 + 3 * 3)
    unseen = estimate_usage(replace(panel, panel_sees_evidence=False), CheckSize(5_000))
    assert unseen.likely.tokens < estimate_usage(panel, CheckSize(5_000)).likely.tokens


def test_a_picker_is_expected_to_read_every_tool() -> None:
    tools = estimate_tokens("".join(describe_toolbox()))
    size = CheckSize(240, protocol="audit")
    picker = [s for s in plan_calls(RosterConfig("ours", tool_picker=SEAT), size, False) if s.calls]
    (picks, asked) = [step for step in picker if not step.agent.is_built_in]
    assert picks.calls == 3 * asked.calls
    assert tools < picks.prompt < 3 * tools
    assert asked.prompt < picks.prompt - tools / 2, "what is compared is no matter of tools"


def test_a_model_of_ones_own_that_costs_nothing_says_so() -> None:
    expected = estimate_usage(sheet_of(replace(SEAT, price_in=0.0, price_out=0.0)), CheckSize(100))
    assert expected.cost == 0.0
    assert expected.words.startswith("nothing to pay · about ")


OWN = replace(SEAT, model="openai/own", api_base="http://127.0.0.1:1/v1")


def test_a_local_model_takes_as_long_as_its_measured_pace_says(shelf: Store) -> None:
    sheet, size = sheet_of(OWN), CheckSize(500)
    assert not estimate_usage(sheet, size, load_paces(shelf, sheet)).is_timed, "none was measured"
    plan = Plan(sheet=sheet)
    case = make_case("x")
    shelf.cases.add(case, [])
    shelf.runs.add(Run("run", case.id, "project", plan, "queued", 1.0), "me", 1.0)
    call = replace(DONE, model=OWN.model, tokens_in=900, tokens_out=100, seconds=20.0)
    shelf.ledger.put(call)
    shelf.ledger.put(replace(call, id="b", at=call.at + 1, tokens_in=400, seconds=5.0))
    for number, other in enumerate(
        ({"reused_from": "a"}, {"status": "failed"}, {"model": "m"}, {"run_id": "?"})
    ):
        shelf.ledger.put(replace(call, id=str(number), seconds=9e9, **other))  # type: ignore[arg-type]
    paces = load_paces(shelf, sheet)
    assert paces == {(OWN.model, OWN.api_base): 1_500 / 25}
    likely = estimate_usage(sheet, size, paces).likely
    assert likely.seconds == pytest.approx(likely.tokens / 60)
    elsewhere = sheet_of(replace(OWN, api_base="http://127.0.0.1:2/v1"))
    assert load_paces(shelf, elsewhere) == {}
    assert estimate_usage(sheet_of(SEAT), size).is_timed, "a provider's pace is a guess"


def test_the_pace_is_read_quickly_from_many_calls(shelf: Store) -> None:
    case = make_case("x")
    shelf.cases.add(case, [])
    plan = Plan(sheet=sheet_of(OWN))
    steps = {}
    for number in range(2_000):
        run = Run(f"r{number}", case.id, "project", plan, "queued", 1.0)
        shelf.runs.add(run, "me", 1.0)
        shelf.ledger.put(replace(DONE, id=str(number), run_id=run.id, model=OWN.model, at=number))
        if number + 1 in (200, 2_000):
            steps[number + 1] = work_of(shelf, lambda: load_paces(shelf, sheet_of(OWN)))
    assert steps[2_000] < 2 * steps[200]


def test_only_seats_with_models_are_paid() -> None:
    judge_only = RosterConfig("ours", judge=SEAT)
    expected = estimate_usage(judge_only, CheckSize(100))
    assert (expected.likely.calls, expected.most.calls) == (1, 2)
    embedding = AgentConfig(model="openai/e", price_in=1.0, price_out=0.0)
    few, many = (
        estimate_usage(
            RosterConfig("ours", retriever=embedding), CheckSize(100, sources=length)
        ).cost
        for length in (0, 1_000_000)
    )
    assert few is not None
    assert many is not None
    assert many - few > 0.2
    assert (
        estimate_usage(RosterConfig("ours", retriever=embedding), CheckSize(9_000)).most.calls == 1
    )


def test_the_cost_is_that_of_its_tokens() -> None:
    expected = estimate_usage(sheet_of(SEAT), CheckSize(500))
    assert expected.cost is not None
    tokens = expected.likely.tokens
    assert tokens * 1e-6 < expected.cost < tokens * 1e-5
    assert expected.cost < expected.most.cost
    assert expected.likely.unpriced_tokens == 0
    assert expected.words.startswith("about US$0.")
    assert "at most US$0." in expected.words


def test_a_tiny_cost_is_not_shown_as_none() -> None:
    cheap = RosterConfig("ours", judge=replace(SEAT, price_in=1e-6, price_out=1e-6))
    assert "US$0.0000 " not in estimate_usage(cheap, CheckSize(100)).words
    assert "US$0.00000" in estimate_usage(cheap, CheckSize(100)).words


def test_an_unknown_price_is_told_with_a_number_of_tokens() -> None:
    mixed = sheet_of(SEAT).with_seat("judge", UNPRICED)
    expected = estimate_usage(mixed, CheckSize(500))
    assert (expected.cost, expected.unpriced) == (None, ("ollama/y",))
    assert 0 < expected.likely.unpriced_tokens < expected.likely.tokens
    assert expected.words.startswith("cost not known for ollama/y, besides about US$0.")
    alone = estimate_usage(sheet_of(UNPRICED), CheckSize(500))
    assert alone.words.startswith("cost not known for ollama/y · about ")
    assert alone.likely.unpriced_tokens == alone.likely.tokens


@pytest.mark.parametrize(
    ("small", "large"),
    [
        (CheckSize(100), CheckSize(2_000)),
        (CheckSize(100), CheckSize(100, images=3)),
        (CheckSize(100, passages=2), CheckSize(100, passages=9)),
        (CheckSize(100, max_turns=1), CheckSize(100, max_turns=3)),
        (CheckSize(100), CheckSize(100, question=900)),
        (CheckSize(100), CheckSize(100, examples=1200)),
        (CheckSize(5_000, language="en"), CheckSize(5_000, language="zh-Hant")),
    ],
)
def test_more_to_check_is_more_to_pay(small: CheckSize, large: CheckSize) -> None:
    less, more = (estimate_usage(sheet_of(SEAT), size) for size in (small, large))
    assert less.likely.cost < more.likely.cost
    assert less.most.cost < more.most.cost
    assert less.likely.tokens < more.likely.tokens
    for expected in (less, more):
        assert expected.likely.tokens < expected.most.tokens
        assert expected.likely.seconds < expected.most.seconds


def test_a_checks_size_tells_its_language_its_images_and_what_is_yet_to_be_embedded(
    shelf: Store,
) -> None:
    entries = [
        LibraryEntry(name, "project", name, kind, 1, "ready", "Mira", 1.0, characters=length)
        for name, kind, length in (("a", "text", 900), ("b", "text", 70), ("c", "image", 5))
    ]
    embedding = AgentConfig(model="openai/e", api_base="http://127.0.0.1:9/v1")
    shelf.readings.save(Source("a", "a", "text", ""), reader="x", seconds=0.1, now=1.0)
    shelf.readings.save_index(
        "a", f"{embedding.model}@{embedding.api_base}", [], PassageVectors(0, 1, b"", b"")
    )
    asked = [("这座大桥于一九二六年开放。", "何时？"), ("它很长。", "")]
    plan = Plan(sheet=RosterConfig("ours", retriever=embedding), max_turns=3, passages=4)
    first, second = measure_checks(shelf, entries, asked, plan)
    assert first == CheckSize(13, 3, 1, 3, 4, sources=75, language="zh")
    assert second == CheckSize(4, 0, 1, 3, 4, sources=0, language="zh")
    built_in = replace(plan, sheet=RosterConfig("ours"))
    assert measure_checks(shelf, entries, asked, built_in)[0].sources == 0


def test_the_judge_test_of_the_model_in_the_box_counts_for_its_first_check(shelf: Store) -> None:
    box = AgentConfig(model="local/tiny", max_tokens=400, price_in=0.0, price_out=0.0)
    plan = Plan("single", sheet=sheet_of(box))

    def calls(sheet: RosterConfig, plan: Plan) -> list[tuple[int, int]]:
        standings = load_standings(shelf, "project", plan)
        sizes = measure_checks(shelf, [], [("It is.", ""), ("It was.", "")], plan, standings)
        uses = [estimate_usage(sheet, size) for size in sizes]
        return [(use.likely.calls, use.most.calls) for use in uses]

    first, second = calls(sheet_of(box), plan)
    assert first == (second[0] + 12, second[1] + 24), "each reply may be asked for twice"
    other = sheet_of(SEAT)
    assert len(set(calls(other, replace(plan, sheet=other)))) == 1, "others are tested in Settings"
    with shelf.writing():
        save_qualification(shelf, box, Qualification(box.model, 5, 0, 12, 1.0))
    assert calls(sheet_of(box), plan) == [second, second]


def test_no_prompt_is_expected_beyond_a_models_window() -> None:
    narrow = replace(SEAT, window=2_000)
    expected = estimate_usage(sheet_of(narrow), CheckSize(60_000))
    assert expected.most.tokens <= expected.most.calls * 2_000


def test_images_are_asked_about_side_by_side() -> None:
    one, eight = (estimate_usage(sheet_of(SEAT), CheckSize(100, images=count)) for count in (1, 8))
    assert eight.likely.seconds < one.likely.seconds + 2.0


def test_it_loads_no_model_library() -> None:
    code = (
        "import sys; from core.pipeline.cost_estimate import CheckSize, estimate_usage; "
        "from core.schema.rosters import RosterConfig, AgentConfig; "
        "picker = AgentConfig(model='openai/gpt-4o'); "
        "estimate_usage(RosterConfig('x', judge=picker), CheckSize(100)); "
        "assert not {'litellm', 'openai', 'onnxruntime', 'babel'} & set(sys.modules); "
        "assert not {'core.baseline.entailment', 'core.baseline.judge'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=PATIENCE_SECONDS)
