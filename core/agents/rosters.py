"""Rosters by name, shipped and kept ones, and living agents in the seats of a sheet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from core.agents.shipped import SHIPPED, TO_FILL_IN, one_model
from core.errors import InputError
from core.learned_marks import PanelRule, SpanThreshold
from core.roles import Debater, Roster, SpanPanelist
from core.seats import BUILT_IN, PANEL_READERS, READERS, RosterSheet, Seat
from core.store import Store

if TYPE_CHECKING:
    from core.agents.ask import Work
    from core.baseline.assessment import Assessor

__all__ = (
    "ROSTER_WORDS",
    "SHIPPED",
    "one_model",
    "require_filled_in",
    "roster_named",
    "seated",
    "sheet_named",
    "sheets_of",
)
Player = TypeVar("Player")
AS_SHIPPED = SpanThreshold()
ROSTER_WORDS: Mapping[str, str] = {name: sheet.words for name, sheet in SHIPPED.items()}


def sheets_of(store: Store) -> tuple[RosterSheet, ...]:
    """Shipped sheets first, then those that people keep."""
    kept = (row.sheet for row in store.rosters.all())
    return (*SHIPPED.values(), *(sheet for sheet in kept if sheet and sheet.name not in SHIPPED))


def sheet_named(name: str, store: Store) -> RosterSheet:
    """The sheet of that name: a shipped one, else the newest that was kept under it.

    Raises:
        InputError: there is none; the message lists those there are.
    """
    sheet = SHIPPED.get(name) or store.rosters.get(name)
    if sheet is None:
        known = ", ".join(sheet.name for sheet in sheets_of(store))
        raise InputError(f"Expected a roster of {known}; found “{name}”.")
    return sheet


def require_filled_in(sheet: RosterSheet) -> None:
    """Refuse a sheet in which a model's name is still to be filled in.

    Raises:
        InputError: it is; the message says where.
    """
    for role, seat in sheet.seats():
        if seat.model == TO_FILL_IN:
            raise InputError(
                f"Roster “{sheet.name}”, {role}: expected a model's name, found the placeholder "
                f"“{TO_FILL_IN}”; fill it in under Settings, or use --model and --api-base."
            )


def roster_named(
    name: str, threshold: SpanThreshold = AS_SHIPPED, assessor: Assessor | None = None
) -> Roster:
    """The built-in roster, which needs no desk and no key; it reads as the assessor does.

    Raises:
        InputError: another one is asked for.
    """
    if name != BUILT_IN:
        raise InputError(f"Expected a roster of {', '.join(ROSTER_WORDS)}; found “{name}”.")
    from core.baseline.context_writer import BuiltInContextWriter
    from core.baseline.debaters import KINDS, BuiltInDebater
    from core.baseline.image_reader import OcrImageReader
    from core.baseline.judge import BuiltInJudge
    from core.baseline.readers import shared_assessor
    from core.baseline.reflector import BuiltInReflector
    from core.baseline.segmenter import BuiltInSegmenter
    from core.baseline.spans import PointSpanExtractor, ThresholdSpanAdjudicator
    from core.baseline.tool_picker import BuiltInToolPicker

    assessor = assessor or shared_assessor()
    return Roster(
        name=BUILT_IN,
        segmenter=BuiltInSegmenter(),
        tool_picker=BuiltInToolPicker(),
        reflector=BuiltInReflector(assessor),
        image_reader=OcrImageReader(),
        context_writer=BuiltInContextWriter(assessor),
        debaters={
            name: BuiltInDebater(KINDS[kind], assessor)
            for name, kind in (("Ada", "rules"), ("Ben", "overlap"), ("Cleo", "entailment"))
        },
        judge=BuiltInJudge(assessor),
        span_extractor=PointSpanExtractor(assessor, threshold),
        span_adjudicator=ThresholdSpanAdjudicator(assessor, threshold),
    )


def seated(sheet: RosterSheet, work: Work) -> Roster:
    """An agent in every seat of the sheet; the built-in ones stand in for unusable replies.

    The retriever's seat is not an agent's: whoever starts the run makes its embedder.

    Raises:
        InputError: a model's name is still to be filled in.
    """
    require_filled_in(sheet)
    spare = roster_named(BUILT_IN, work.learned.threshold, work.assessor)
    panel, rule = _panel(sheet, work), _panel_rule(sheet, work)
    if sheet.is_built_in and sheet.debaters == SHIPPED[BUILT_IN].debaters:
        return replace(spare, name=sheet.name, span_panel=panel, panel_rule=rule)
    from core.agents.llm_context_writer import LlmContextWriter
    from core.agents.llm_image_reader import LlmImageReader
    from core.agents.llm_judge import LlmJudge
    from core.agents.llm_reflector import LlmReflector
    from core.agents.llm_segmenter import LlmSegmenter
    from core.agents.llm_spans import LlmSpanAdjudicator, LlmSpanExtractor
    from core.agents.llm_tool_picker import LlmToolPicker

    def player(seat: Seat, own: Player, make: Callable[[Seat, Work], Player]) -> Player:
        return own if seat.is_built_in else make(seat, work)

    return Roster(
        name=sheet.name,
        segmenter=player(sheet.segmenter, spare.segmenter, LlmSegmenter),
        tool_picker=player(sheet.tool_picker, spare.tool_picker, LlmToolPicker),
        reflector=player(sheet.reflector, spare.reflector, LlmReflector),
        image_reader=player(sheet.image_reader, spare.image_reader, LlmImageReader),
        context_writer=player(sheet.context_writer, spare.context_writer, LlmContextWriter),
        debaters=_debaters(sheet, work),
        judge=player(sheet.judge, spare.judge, LlmJudge),
        span_extractor=player(sheet.span_extractor, spare.span_extractor, LlmSpanExtractor),
        span_adjudicator=player(sheet.span_adjudicator, spare.span_adjudicator, LlmSpanAdjudicator),
        spare=spare,
        calls_made=work.desk.drain,
        span_panel=panel,
        panel_rule=rule,
    )


def _panel(sheet: RosterSheet, work: Work) -> tuple[SpanPanelist, ...]:
    """Readers and models that mark words by rotation; none where the sheet has no panel."""
    from core.agents.llm_panel import LlmPanelist

    return tuple(
        panel_reader(seat.reader, work.learned.threshold, work.assessor)
        if seat.is_built_in
        else LlmPanelist(seat, work, number, sees_evidence=sheet.panel_sees_evidence)
        for number, seat in enumerate(sheet.span_panel, 1)
    )


def _panel_rule(sheet: RosterSheet, work: Work) -> PanelRule:
    """The paper's rule; for the panel of all built-in readers, in any order, weights that ship.

    What people's marks taught comes first.
    """
    from core.baseline.panel import shipped_rule

    readers = sorted(seat.reader for seat in sheet.span_panel)
    is_weighted = sheet.span_panel and readers == sorted(PANEL_READERS)
    rule = shipped_rule() if is_weighted else PanelRule()
    learned = work.learned
    levels = learned.threshold.weighted if rule.weights else learned.threshold.panel
    levels = levels if levels.words else rule.levels
    return replace(rule, levels=levels, alone=learned.alone)


def panel_reader(
    name: str, threshold: SpanThreshold = AS_SHIPPED, assessor: Assessor | None = None
) -> SpanPanelist:
    """The built-in member of a panel of that name, one of `PANEL_READERS`."""
    from core.baseline.panel import panelist
    from core.baseline.readers import shared_assessor

    return panelist(name, assessor or shared_assessor(), threshold)


def _debaters(sheet: RosterSheet, work: Work) -> dict[str, Debater]:
    """Built-in readers take turns where the sheet does not say which it is."""
    from core.agents.llm_debater import LlmDebater

    debaters: dict[str, Debater] = {}
    for number, (name, seat) in enumerate((d.name, d.seat) for d in sheet.debaters):
        if seat.is_built_in:
            kind = seat.reader or READERS[number % len(READERS)]
            debaters[name] = _built_in(kind, work.assessor)
        else:
            debaters[name] = LlmDebater(seat, work)
    return debaters


def _built_in(kind: str, assessor: Assessor | None) -> Debater:
    """The built-in debater of that kind."""
    from core.baseline.debaters import KINDS, BuiltInDebater
    from core.baseline.readers import shared_assessor

    return BuiltInDebater(KINDS[kind], assessor or shared_assessor())
