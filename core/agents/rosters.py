"""Rosters: the shipped ones, rosters by name or file, and the agents that fill a roster.

Source: CEDA 4.1 (the models), 5.2 (temperatures), table 6 (pairs of debaters); MSA 3.2.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from core.agents.roster_files import (
    MOST_BYTES,
    ReadRoster,
    check_address,
    check_roster,
    looks_like_a_key,
    read_roster,
)
from core.llm.call import provider_of
from core.llm.local_server import MODEL, PROVIDER, WINDOW, find_weights
from core.llm.servers import FoundServer, ServedModel, find_window
from core.runtime.errors import InputError
from core.schema.records import PanelRule, SpanThresholds
from core.schema.roles import Debater, Roster, SpanPanelist
from core.schema.rosters import (
    BUILT_IN_READERS,
    BUILT_IN_ROSTER,
    DEFAULT_SECONDS,
    MAX_ROSTER_NAME_CHARACTERS,
    PANEL_READERS,
    AgentConfig,
    DebaterConfig,
    RosterConfig,
)
from core.store import Store, open_store

if TYPE_CHECKING:
    from core.agents.agent_runner import AgentContext
    from core.baseline.assessment import Assessor

DEBATER_MAX_TOKENS = 100
WRITER_MAX_TOKENS = 2000  # JSON over many passages, which is useless if cut off
LOW_TEMPERATURE, HIGH_TEMPERATURE = 0.2, 0.6
SONNET_MODEL = "bedrock/anthropic.claude-3-5-sonnet-20240620-v1:0"
HAIKU_MODEL = "bedrock/anthropic.claude-3-5-haiku-20241022-v1:0"
MISTRAL_MODEL = "bedrock/mistral.mistral-7b-instruct-v0:2"
TITAN_MODEL = "bedrock/amazon.titan-embed-text-v1"
# The four of MSA 3.2; each marks words and votes on the others' marks.
GEMINI_MODEL = "gemini/gemini-2.0-flash"  # litellm does not list it, so its window is given
MSA_SEATS = (
    AgentConfig(GEMINI_MODEL, window=1_000_000),
    AgentConfig("dashscope/qwen-max"),
    AgentConfig("openai/gpt-4o"),
    AgentConfig("deepseek/deepseek-chat"),
)
OLLAMA_BASE = "http://127.0.0.1:11434"
OLLAMA_TEXT_MODEL = "ollama_chat/llama3.1"
OLLAMA_SECOND_MODEL = "ollama_chat/mistral"
OLLAMA_VISION_MODEL = "ollama_chat/llama3.2-vision"
# Set explicitly, as Ollama's default window is smaller and silently drops the rest of a prompt.
OLLAMA_WINDOW = 8192
OLLAMA_SECONDS = 300  # the first call loads the model into memory
TABLE_6_PREFIX = "Table 6 of the paper:"
PLACEHOLDER_ADDRESS = "http://127.0.0.1:8000/v1"
PLACEHOLDER_MODEL = "openai/name-of-your-model"
ROSTER_FILE_SUFFIX = ".json"
SHIPPED_THRESHOLD = SpanThresholds()
# The module and class that play each role on a language model; `_build_debaters` has the debaters.
MODEL_AGENTS: Mapping[str, tuple[str, str]] = {
    "segmenter": ("llm_audit", "LlmSegmenter"),
    "tool_picker": ("llm_audit", "LlmToolPicker"),
    "reflector": ("llm_audit", "LlmReflector"),
    "image_reader": ("llm_debater", "LlmImageReader"),
    "context_writer": ("llm_debater", "LlmContextWriter"),
    "judge": ("llm_judge", "LlmJudge"),
    "span_extractor": ("llm_panel", "LlmSpanExtractor"),
    "span_adjudicator": ("llm_panel", "LlmSpanAdjudicator"),
}


def _pair_debaters(first: AgentConfig, second: AgentConfig) -> tuple[DebaterConfig, ...]:
    """Return Ada, at a low temperature, and Ben, at a high one, both brief (CEDA 5.2)."""
    cool = (
        first
        if first.reader
        else replace(first, temperature=LOW_TEMPERATURE, max_tokens=DEBATER_MAX_TOKENS)
    )
    warm = replace(second, temperature=HIGH_TEMPERATURE, max_tokens=DEBATER_MAX_TOKENS)
    return (DebaterConfig("Ada", cool), DebaterConfig("Ben", warm))


def _fill_speaking_roles(name: str, words: str, agent: AgentConfig) -> RosterConfig:
    """Return a roster that gives every speaking role to one model."""
    writing = replace(agent, max_tokens=WRITER_MAX_TOKENS)
    return RosterConfig(
        name,
        words,
        tool_picker=agent,
        reflector=writing,
        image_reader=agent,
        context_writer=writing,
        debaters=_pair_debaters(agent, agent),
        judge=agent,
        span_extractor=writing,
        span_adjudicator=agent,
    )


def make_single_model_roster(
    model: str,
    api_base: str = "",
    key_name: str = "",
    *,
    window: int = 0,
    seconds: int = DEFAULT_SECONDS,
    concurrency: int = 0,
) -> RosterConfig:
    """Return a roster with one model in all speaking roles; the other roles stay built in."""
    words = f"Every speaking role is {model}{f' at {api_base}' if api_base else ''}."
    name = (
        model
        if len(model) <= MAX_ROSTER_NAME_CHARACTERS
        else f"{model[: MAX_ROSTER_NAME_CHARACTERS - 1]}…"
    )
    agent = AgentConfig(
        model, api_base, key_name, window=window, seconds=seconds, concurrency=concurrency
    )
    return _fill_speaking_roles(name, words, agent)


def served_roster(server: FoundServer, model: ServedModel) -> RosterConfig:
    """Return a roster with a local server's model in all speaking roles but the image reader's."""
    # Ollama reads so much only where its own API says so, and cuts the rest without a word.
    is_ollama = server.name == "Ollama"
    agent = AgentConfig(
        f"{'ollama_chat' if is_ollama else 'openai'}/{model.name}",
        server.address.removesuffix("/v1") if is_ollama else server.address,
        window=OLLAMA_WINDOW if is_ollama else model.window,
        price_in=0.0,
        price_out=0.0,
        seconds=OLLAMA_SECONDS,
    )
    name = f"{model.name} ({server.name})"[-MAX_ROSTER_NAME_CHARACTERS:]
    words = f"Every speaking role is {model.name} of {server.name} on this computer. No key."
    return replace(_fill_speaking_roles(name, words, agent), image_reader=AgentConfig())


def _build_shipped() -> Iterator[RosterConfig]:
    yield RosterConfig(
        BUILT_IN_ROSTER,
        "Built-in engine: entailment, values, overlap, OCR. No key, network or language model.",
    )
    # The paper marks no spans. Sonnet does it here, as the built-in extractor needs points, which
    # only built-in debaters raise.
    sonnet = "Claude 3.5 Sonnet sees, judges and marks the wrong words"
    for name, words, first, second in (
        (
            "ceda",
            "As the paper has it: Mistral 7B and Claude 3.5 Haiku debate",
            MISTRAL_MODEL,
            HAIKU_MODEL,
        ),
        (
            "ceda-mistral",
            f"{TABLE_6_PREFIX} Mistral 7B debates with itself",
            MISTRAL_MODEL,
            MISTRAL_MODEL,
        ),
        (
            "ceda-haiku",
            f"{TABLE_6_PREFIX} Claude 3.5 Haiku debates with itself",
            HAIKU_MODEL,
            HAIKU_MODEL,
        ),
    ):
        description = f"{words}; {sonnet}. All on Amazon Bedrock; Titan embeds."
        roster_config = replace(
            _fill_speaking_roles(name, description, AgentConfig(SONNET_MODEL)),
            retriever=AgentConfig(TITAN_MODEL),
        )
        yield replace(
            roster_config, debaters=_pair_debaters(AgentConfig(first), AgentConfig(second))
        )
    llama, mistral, seeing = (
        AgentConfig(model, OLLAMA_BASE, window=OLLAMA_WINDOW, seconds=OLLAMA_SECONDS)
        for model in (OLLAMA_TEXT_MODEL, OLLAMA_SECOND_MODEL, OLLAMA_VISION_MODEL)
    )
    words = (
        "All on your own machine: Ollama's llama3.1 and mistral debate, llama3.2-vision sees. "
        "No key; retrieval is built in. Get the models first with `ollama pull`; set the prices of "
        "a copy to 0 where nobody bills you."
    )
    ollama = replace(_fill_speaking_roles("ollama", words, llama), image_reader=seeing)
    yield replace(ollama, debaters=_pair_debaters(llama, mistral))
    words = (
        "Every speaking role at one OpenAI-compatible address (vLLM, LM Studio, llama.cpp, a "
        "gateway): fill in the address and the model's name under Settings."
    )
    yield _fill_speaking_roles(
        "address", words, AgentConfig(PLACEHOLDER_MODEL, PLACEHOLDER_ADDRESS)
    )
    # A built-in judge would not do here, as it ignores what a model argued.
    words = "The built-in value checker debates with {}; {}. Retrieval is built in."
    local = "it judges and marks the wrong words, llama3.2-vision sees"
    for name, roster_config, agent, names in (
        (
            "mixed",
            _fill_speaking_roles("", "", AgentConfig(SONNET_MODEL)),
            AgentConfig(HAIKU_MODEL),
            ("Claude 3.5 Haiku", sonnet),
        ),
        ("mixed-ollama", ollama, llama, ("Ollama's llama3.1", local)),
    ):
        debaters = _pair_debaters(AgentConfig(reader="rules"), agent)
        roster_config = replace(
            roster_config, name=name, words=words.format(*names), debaters=debaters
        )
        yield replace(roster_config, context_writer=AgentConfig())
    words = (
        "Built-in engine whose four readers mark wrong words in turn and vote on each other's "
        "marks. No key, network or language model."
    )
    readers = tuple(AgentConfig(reader=name) for name in PANEL_READERS)
    yield RosterConfig("builtin-panel", words, span_panel=readers)
    words = (
        "Gemini 2.0 Flash, Qwen 2.5 Max, GPT-4o and DeepSeek V3 mark wrong words in turn, and the "
        "other three vote on each mark, as the MSA paper has it: without evidence. The rest is "
        "built in. DeepSeek's address answers with its current model."
    )
    panel = tuple(replace(agent, max_tokens=WRITER_MAX_TOKENS) for agent in MSA_SEATS)
    yield RosterConfig("msa", words, span_panel=panel, panel_sees_evidence=False)
    if find_weights():
        words = (
            "SmolLM2-135M on this computer, started when it is needed: a real language model, but "
            "very small. It shows how models argue; what it says is often wrong. No key."
        )
        small = AgentConfig(
            f"{PROVIDER}/{MODEL}", window=WINDOW, price_in=0.0, price_out=0.0, seconds=300
        )
        yield replace(_fill_speaking_roles(PROVIDER, words, small), image_reader=AgentConfig())


SHIPPED_ROSTERS: Mapping[str, RosterConfig] = {
    roster_config.name: roster_config for roster_config in _build_shipped()
}
ROSTER_DESCRIPTIONS: Mapping[str, str] = {
    name: roster_config.words for name, roster_config in SHIPPED_ROSTERS.items()
}


def list_rosters(store: Store) -> tuple[RosterConfig, ...]:
    """Return the shipped rosters, then those that people keep."""
    stored = (row.sheet for row in store.rosters.all())
    return (
        *SHIPPED_ROSTERS.values(),
        *(
            roster_config
            for roster_config in stored
            if roster_config and roster_config.name not in SHIPPED_ROSTERS
        ),
    )


def find_roster(name: str, store: Store) -> RosterConfig:
    """Return the roster of that name: a shipped one, else the newest stored one.

    Raises InputError, which lists the known names, if there is none.
    """
    roster_config = SHIPPED_ROSTERS.get(name) or store.rosters.get(name)
    if roster_config is None:
        known = ", ".join(roster_config.name for roster_config in list_rosters(store))
        raise InputError(f"Expected a roster of {known}; found “{name}”.")
    return roster_config


def require_model_names(roster_config: RosterConfig) -> None:
    """Raise InputError, which says where, if a model's name is still a placeholder."""
    if places := [
        role for role, agent in roster_config.agents_by_role() if agent.model == PLACEHOLDER_MODEL
    ]:
        raise InputError(
            f"Roster “{roster_config.name}”, {places[0]}: expected a model's name, found the "
            f"placeholder “{PLACEHOLDER_MODEL}”; fill it in under Settings, or use --model and "
            "--api-base."
        )


def make_built_in_roster(
    name: str, threshold: SpanThresholds = SHIPPED_THRESHOLD, assessor: Assessor | None = None
) -> Roster:
    """Return the built-in roster, which needs no client and no key, reading with `assessor`.

    Raises InputError for any other name.
    """
    if name != BUILT_IN_ROSTER:
        raise InputError(f"Expected a roster of {', '.join(ROSTER_DESCRIPTIONS)}; found “{name}”.")
    from core.baseline.debaters import (
        DEBATER_KINDS,
        BuiltInContextWriter,
        BuiltInDebater,
        OcrImageReader,
    )
    from core.baseline.entailment import load_shared_assessor
    from core.baseline.judge import BuiltInJudge
    from core.baseline.reflector import BuiltInReflector
    from core.baseline.segmenter import BuiltInSegmenter
    from core.baseline.span_panel import PointSpanExtractor, ThresholdSpanAdjudicator
    from core.baseline.tool_picker import BuiltInToolPicker

    assessor = assessor or load_shared_assessor()
    return Roster(
        name=BUILT_IN_ROSTER,
        segmenter=BuiltInSegmenter(),
        tool_picker=BuiltInToolPicker(),
        reflector=BuiltInReflector(assessor),
        image_reader=OcrImageReader(),
        context_writer=BuiltInContextWriter(assessor),
        debaters={
            name: BuiltInDebater(DEBATER_KINDS[kind], assessor)
            for name, kind in (("Ada", "rules"), ("Ben", "overlap"), ("Cleo", "entailment"))
        },
        judge=BuiltInJudge(assessor),
        span_extractor=PointSpanExtractor(assessor, threshold),
        span_adjudicator=ThresholdSpanAdjudicator(assessor, threshold),
    )


def build_roster(roster_config: RosterConfig, context: AgentContext) -> Roster:
    """Return the roster's agents; built-in ones are the fallback for unusable replies.

    The retriever has no agent here: the caller that starts the run makes its embedder. Raises
    InputError if a model's name is still a placeholder.
    """
    from core.agents.llm_panel import LlmPanelist

    require_model_names(roster_config)
    spare = make_built_in_roster(BUILT_IN_ROSTER, context.learned.threshold, context.assessor)
    panel = tuple(
        make_panel_reader(agent.reader, context.learned.threshold, context.assessor)
        if agent.is_built_in
        else LlmPanelist(agent, context, number, sees_evidence=roster_config.panel_sees_evidence)
        for number, agent in enumerate(roster_config.span_panel, 1)
    )
    roster = replace(
        spare,
        name=roster_config.name,
        span_panel=panel,
        panel_rule=_choose_panel_rule(roster_config, context),
    )
    if (
        roster_config.is_built_in
        and roster_config.debaters == SHIPPED_ROSTERS[BUILT_IN_ROSTER].debaters
    ):
        return roster
    model_agents = {
        role: getattr(import_module(f"core.agents.{module}"), name)(
            getattr(roster_config, role), context
        )
        for role, (module, name) in MODEL_AGENTS.items()
        if not getattr(roster_config, role).is_built_in
    }
    debaters = _build_debaters(roster_config, context)
    return replace(
        roster, debaters=debaters, spare=spare, calls_made=context.client.drain, **model_agents
    )


def _choose_panel_rule(roster_config: RosterConfig, context: AgentContext) -> PanelRule:
    """Return the paper's rule, or the shipped weights for the panel of all built-in readers.

    Levels learned from people's marks take precedence.
    """
    from core.baseline.span_panel import load_shipped_rule

    readers = sorted(agent.reader for agent in roster_config.span_panel)
    rule = load_shipped_rule() if readers == sorted(PANEL_READERS) else PanelRule()
    threshold = context.learned.threshold
    levels = threshold.weighted if rule.weights else threshold.panel
    levels = levels if levels.words else rule.levels
    return replace(rule, levels=levels, alone=context.learned.alone)


def make_panel_reader(
    name: str, threshold: SpanThresholds = SHIPPED_THRESHOLD, assessor: Assessor | None = None
) -> SpanPanelist:
    """Return the built-in panel member of that name, one of `PANEL_READERS`."""
    from core.baseline.entailment import load_shared_assessor
    from core.baseline.span_panel import make_panelist

    return make_panelist(name, assessor or load_shared_assessor(), threshold)


def _build_debaters(roster_config: RosterConfig, context: AgentContext) -> dict[str, Debater]:
    """Return the debaters by name; built-in ones without a named reader get one by position."""
    from core.agents.llm_debater import LlmDebater
    from core.baseline.debaters import DEBATER_KINDS, BuiltInDebater
    from core.baseline.entailment import load_shared_assessor

    assessor = context.assessor or load_shared_assessor()
    return {
        debater.name: BuiltInDebater(
            DEBATER_KINDS[debater.seat.reader or BUILT_IN_READERS[number % len(BUILT_IN_READERS)]],
            assessor,
        )
        if debater.seat.is_built_in
        else LlmDebater(debater.seat, context)
        for number, debater in enumerate(roster_config.debaters)
    }


def load_chosen_roster(
    home: Path,
    roster: str,
    model: str = "",
    api_base: str = "",
    prompts: str = "",
    *,
    window: int = 0,
    seconds: int = 0,
    concurrency: int = 0,
) -> ReadRoster:
    """Return the roster, or one with `model` in every speaking role; nothing is stored.

    `roster` is a file if it ends in .json or has a slash, else a name. Without a `window` (tokens)
    the server at `api_base` is asked for the model's. `prompts` is the digest of the prompts in
    force; a notice reports a file written for others. Raises InputError if there is no such roster,
    or if it breaks a rule.
    """
    if model:
        if looks_like_a_key(model):
            raise InputError("--model: expected a model's name, found what looks like a key.")
        if api_base:
            check_address("--api-base", api_base)
            window = window or find_window(api_base, model)
        seconds = seconds or DEFAULT_SECONDS
        chosen = ReadRoster(
            make_single_model_roster(
                model, api_base, window=window, seconds=seconds, concurrency=concurrency
            )
        )
        check_roster(chosen.sheet)
    else:
        chosen = _load_roster(home, roster, prompts)
    require_model_names(chosen.sheet)
    for role, agent in chosen.sheet.agents_by_role():
        where = "--model" if model else f"Roster, {role}, model"
        if agent.model and provider_of(agent) is None:
            raise InputError(
                f"{where}: expected a model's name as provider/model, such as openai/gpt-4o-mini "
                f"or ollama_chat/llama3.1, found “{agent.model}”. A server of your own also needs "
                "its address (--api-base)."
            )
    return chosen


def _load_roster(home: Path, roster: str, prompts: str) -> ReadRoster:
    if roster in SHIPPED_ROSTERS:
        return ReadRoster(SHIPPED_ROSTERS[roster])
    if roster.endswith(ROSTER_FILE_SUFFIX) or os.sep in roster:
        loaded = read_roster(_read_file(Path(roster)), prompts)
        name = loaded.sheet.name
        if name not in SHIPPED_ROSTERS or loaded.sheet == SHIPPED_ROSTERS[name]:
            return loaded
        # A file under the name of a shipped roster would pass for it on every page.
        return replace(loaded, sheet=replace(loaded.sheet, name=f"{name} (file)"))
    if not home.is_dir():
        raise InputError(
            f"Expected a roster of {', '.join(SHIPPED_ROSTERS)}, or a file; found “{roster}”."
        )
    with open_store(home) as store:
        return ReadRoster(find_roster(roster, store))


def _read_file(path: Path) -> bytes:
    """Return at most `MOST_BYTES` + 1 bytes. Raises InputError if the file is unreadable."""
    try:
        if path.exists() and not path.is_file():
            raise InputError(f"Expected a roster's file at {path}, found a folder or a device.")
        with path.open("rb") as stream:
            return stream.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(f"Expected a roster's file at {path}, found: {why}.") from error
