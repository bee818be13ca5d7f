"""Rosters by name: the paper's models, the short way, mixed seats, and names that nobody has."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.agents.agent_runner import AgentContext
from core.agents.rosters import (
    GEMINI_MODEL,
    HAIKU_MODEL,
    MISTRAL_MODEL,
    OLLAMA_VISION_MODEL,
    PLACEHOLDER_MODEL,
    ROSTER_DESCRIPTIONS,
    SHIPPED_ROSTERS,
    SONNET_MODEL,
    TITAN_MODEL,
    build_roster,
    find_roster,
    list_rosters,
    make_built_in_roster,
    make_single_model_roster,
    require_model_names,
)
from core.llm.local_server import MODEL, PROVIDER
from core.llm.prompting import Fence, PromptBook
from core.runtime.errors import InputError
from core.schema.rosters import BUILT_IN_READERS, AgentConfig, DebaterConfig, RosterConfig
from core.store import Store
from tests.fakes import FakeDesk, ScriptedModel
from tests.readers import word_assessor

SPEAKING = (
    "tool picker", "reflector", "image reader", "context writer", "debater Ada", "debater Ben",
    "judge", "span extractor", "span adjudicator",
)  # fmt: skip


def price_list() -> dict[str, Any]:
    """Litellm's own list of models, read as data."""
    found = importlib.util.find_spec("litellm")
    assert found is not None
    assert found.submodule_search_locations
    folder = Path(found.submodule_search_locations[0])
    text = (folder / "model_prices_and_context_window_backup.json").read_text(encoding="utf-8")
    return dict(json.loads(text))


SMALL = f"{PROVIDER}/{MODEL}"  # of the local model, where it is installed


def test_every_shipped_model_is_on_litellms_list() -> None:
    listed = price_list()
    for sheet in SHIPPED_ROSTERS.values():
        for role, seat in sheet.agents_by_role():
            if seat.is_built_in or seat.model in (
                PLACEHOLDER_MODEL,
                OLLAMA_VISION_MODEL,
                GEMINI_MODEL,
                SMALL,
            ):
                continue
            provider, _, name = seat.model.partition("/")
            key = (
                name
                if provider in ("bedrock", "openai")
                else f"{provider.removesuffix('_chat')}/{name}"
            )
            assert key in listed, f"{sheet.name}, {role}: {seat.model}"
            assert listed[key]["litellm_provider"] == provider.removesuffix("_chat")
            if role == "retriever":
                assert listed[key]["mode"] == "embedding"
            if role == "image reader":
                assert listed[key]["supports_vision"] is True


def test_the_papers_roster_is_the_papers() -> None:
    ceda = dict(SHIPPED_ROSTERS["ceda"].agents_by_role())
    assert ceda["retriever"].model == TITAN_MODEL
    for role in ("image reader", "context writer", "judge", "span extractor", "span adjudicator"):
        assert (ceda[role].model, ceda[role].temperature) == (SONNET_MODEL, 0.0), role
    ada, ben = ceda["debater Ada"], ceda["debater Ben"]
    assert (ada.model, ada.temperature, ada.max_tokens) == (MISTRAL_MODEL, 0.2, 100)
    assert (ben.model, ben.temperature, ben.max_tokens) == (HAIKU_MODEL, 0.6, 100)
    assert ceda["segmenter"].is_built_in


@pytest.mark.parametrize(
    ("name", "model"), [("ceda-mistral", MISTRAL_MODEL), ("ceda-haiku", HAIKU_MODEL)]
)
def test_table_6_pairs_differ_from_the_papers_roster_in_the_debaters_alone(
    name: str, model: str
) -> None:
    sheet, ceda = SHIPPED_ROSTERS[name], SHIPPED_ROSTERS["ceda"]
    assert [d.seat.model for d in sheet.debaters] == [model, model]
    assert [d.seat.temperature for d in sheet.debaters] == [0.2, 0.6]
    same = replace(sheet, name=ceda.name, words=ceda.words, debaters=ceda.debaters)
    assert same == ceda


def test_ollama_needs_no_key_and_never_counts_as_free() -> None:
    for role, seat in SHIPPED_ROSTERS["ollama"].agents_by_role():
        if role in SPEAKING:
            assert seat.api_base == "http://127.0.0.1:11434"
            assert (seat.price_in, seat.price_out) == (None, None)
            assert 0 < seat.window <= 8192
        else:
            assert seat.is_built_in, role


def test_one_model_plays_every_speaking_role() -> None:
    sheet = make_single_model_roster("openai/x", "http://127.0.0.1:9/v1", "MY_KEY")
    assert sheet.name == "openai/x"
    seats = dict(sheet.agents_by_role())
    assert [role for role, seat in seats.items() if not seat.is_built_in] == list(SPEAKING)
    for role in SPEAKING:
        seat = seats[role]
        assert (seat.model, seat.api_base, seat.key_name) == (
            "openai/x", "http://127.0.0.1:9/v1", "MY_KEY",
        )  # fmt: skip
    temperatures = {role: seats[role].temperature for role in SPEAKING}
    assert temperatures.pop("debater Ada") == 0.2
    assert temperatures.pop("debater Ben") == 0.6
    assert set(temperatures.values()) == {0.0}
    assert [d.seat.max_tokens for d in sheet.debaters] == [100, 100]


def test_mixed_rosters_have_a_built_in_debater_and_a_judge_that_reads_what_models_say() -> None:
    for name in ("mixed", "mixed-ollama"):
        seats = dict(SHIPPED_ROSTERS[name].agents_by_role())
        assert seats["debater Ada"].reader in BUILT_IN_READERS
        assert seats["debater Ada"].is_built_in
        assert not seats["debater Ben"].is_built_in
        assert not seats["judge"].is_built_in


def test_names_are_told_in_words_for_every_shipped_sheet() -> None:
    assert list(ROSTER_DESCRIPTIONS) == list(SHIPPED_ROSTERS)
    assert next(iter(ROSTER_DESCRIPTIONS)) == "builtin"
    for name, sheet in SHIPPED_ROSTERS.items():
        assert sheet.name == name
        assert ROSTER_DESCRIPTIONS[name].endswith(".")


def test_a_custom_sheet_is_found_and_never_hides_a_shipped_one(store: Store) -> None:
    mine = make_single_model_roster("openai/x")
    store.rosters.save(mine, "Mira", 1.0)
    store.rosters.save(replace(mine, name="ceda"), "Mira", 2.0)
    assert find_roster("openai/x", store) == mine
    assert find_roster("ceda", store) == SHIPPED_ROSTERS["ceda"]
    assert [sheet.name for sheet in list_rosters(store)] == [*SHIPPED_ROSTERS, "openai/x"]
    store.rosters.remove("openai/x", "Mira", 3.0)
    assert [sheet.name for sheet in list_rosters(store)] == [*SHIPPED_ROSTERS]
    with pytest.raises(InputError, match="openai/x"):
        find_roster("openai/x", store)


def test_an_unknown_name_is_told_which_there_are(store: Store) -> None:
    store.rosters.save(replace(make_single_model_roster("openai/x"), name="mine"), "Mira", 1.0)
    with pytest.raises(InputError, match=r"builtin, ceda.*, mine; found “titans”") as raised:
        find_roster("titans", store)
    assert "\n" not in str(raised.value)


def test_the_placeholder_is_not_taken_for_a_model() -> None:
    with pytest.raises(InputError, match="tool picker: expected a model's name"):
        require_model_names(SHIPPED_ROSTERS["address"])
    for name in SHIPPED_ROSTERS:
        if name != "address":
            require_model_names(SHIPPED_ROSTERS[name])


def test_the_built_in_roster_is_had_by_name_alone() -> None:
    roster = make_built_in_roster("builtin")
    assert roster.is_deterministic
    assert roster.spare is None
    assert {name: agent.name for name, agent in roster.debaters.items()} == {
        "Ada": "Value checker", "Ben": "Overlap reader", "Cleo": "Entailment reader",
    }  # fmt: skip
    with pytest.raises(InputError, match="titans"):
        make_built_in_roster("titans")


def test_a_sheets_copy_with_another_seat_keeps_the_rest() -> None:
    sheet = SHIPPED_ROSTERS["builtin"].with_seat("debater Ben", AgentConfig("openai/x"))
    assert sheet.debaters == (
        DebaterConfig("Ada", AgentConfig(reader="rules")),
        DebaterConfig("Ben", AgentConfig("openai/x")),
        DebaterConfig("Cleo", AgentConfig(reader="entailment")),
    )
    assert sheet.judge.is_built_in


def work_of(home: Path) -> AgentContext:
    """What seated agents work with; none of them is asked here."""
    desk, fence = FakeDesk(ScriptedModel([])), Fence.of_run("run")
    return AgentContext(desk, PromptBook(), fence, home, assessor=word_assessor())


@pytest.mark.parametrize("name", [name for name in SHIPPED_ROSTERS if name != "address"])
def test_every_shipped_sheet_can_be_seated(name: str, home: Path) -> None:
    sheet = SHIPPED_ROSTERS[name]
    roster = build_roster(sheet, work_of(home))
    assert roster.name == name
    seats = dict(sheet.agents_by_role())
    for used in roster.roles_used(len_of):
        assert used.built_in == seats[used.role].is_built_in, used.role
        assert used.rule
    assert list(roster.debaters) == [debater.name for debater in sheet.debaters]
    assert len(roster.span_panel) == len(sheet.span_panel)
    if name in ("builtin", "builtin-panel"):
        assert roster.spare is None
        assert roster.is_deterministic
    else:
        assert roster.spare is not None
        assert roster.spare.is_deterministic
        assert not roster.is_deterministic
        assert roster.calls_made() == ()


def len_of(text: str) -> str:
    return str(len(text))


def test_built_in_debaters_are_those_that_the_sheet_says(home: Path) -> None:
    both = RosterConfig(
        "two readers",
        debaters=(
            DebaterConfig("Una", AgentConfig(reader="overlap")),
            DebaterConfig("Duo", AgentConfig()),
        ),
    )
    roster = build_roster(both, work_of(home))
    assert [a.name for a in roster.debaters.values()] == ["Overlap reader", "Overlap reader"]
    swapped = replace(both, debaters=tuple(reversed(both.debaters)))
    roster = build_roster(swapped, work_of(home))
    assert [a.name for a in roster.debaters.values()] == ["Value checker", "Overlap reader"]
    assert roster.is_deterministic


def test_a_placeholder_is_never_seated(home: Path) -> None:
    with pytest.raises(InputError, match="name-of-your-model"):
        build_roster(SHIPPED_ROSTERS["address"], work_of(home))
