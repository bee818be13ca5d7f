"""Rosters: the shipped ones, rosters by name or file, and the agents that fill a roster's seats.

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
    check_sheet,
    looks_like_a_key,
    read_roster,
)
from core.llm.call import provider_of
from core.llm.local_server import MODEL, PROVIDER, WINDOW, weights
from core.llm.servers import FoundServer, ServedModel, find_window
from core.runtime.errors import InputError
from core.schema.records import PanelRule, SpanThreshold
from core.schema.roles import Debater, Roster, SpanPanelist
from core.schema.rosters import (
    BUILT_IN,
    DEFAULT_SECONDS,
    LONGEST_NAME,
    PANEL_READERS,
    READERS,
    DebaterSeat,
    RosterConfig,
    Seat,
)
from core.store import Store, open_store

if TYPE_CHECKING:
    from core.agents.agent_runner import AgentContext
    from core.baseline.assessment import Assessor

TURN_TOKENS = 100
WRITING_TOKENS = 2000  # JSON over many passages, which is useless if cut off
COOL, WARM = 0.2, 0.6
SONNET = "bedrock/anthropic.claude-3-5-sonnet-20240620-v1:0"
HAIKU = "bedrock/anthropic.claude-3-5-haiku-20241022-v1:0"
MISTRAL = "bedrock/mistral.mistral-7b-instruct-v0:2"
TITAN = "bedrock/amazon.titan-embed-text-v1"
# The four of MSA 3.2; each marks words and votes on the others' marks.
GEMINI = "gemini/gemini-2.0-flash"  # litellm does not list it, so its window is given
MSA_SEATS = (
    Seat(GEMINI, window=1_000_000),
    Seat("dashscope/qwen-max"),
    Seat("openai/gpt-4o"),
    Seat("deepseek/deepseek-chat"),
)
OLLAMA_BASE = "http://127.0.0.1:11434"
OLLAMA_TEXT = "ollama_chat/llama3.1"
OLLAMA_SECOND = "ollama_chat/mistral"
OLLAMA_VISION = "ollama_chat/llama3.2-vision"
# Set explicitly, as Ollama's default window is smaller and silently drops the rest of a prompt.
OLLAMA_WINDOW = 8192
OLLAMA_SECONDS = 300  # the first call loads the model into memory
TABLE_6 = "Table 6 of the paper:"
ANY_BASE = "http://127.0.0.1:8000/v1"
TO_FILL_IN = "openai/name-of-your-model"
FILE_SUFFIX = ".json"
AS_SHIPPED = SpanThreshold()
# The module and class that play each role on a language model; `_build_debaters` has the debaters.
PLAYERS: Mapping[str, tuple[str, str]] = {
    "segmenter": ("llm_audit", "LlmSegmenter"),
    "tool_picker": ("llm_audit", "LlmToolPicker"),
    "reflector": ("llm_audit", "LlmReflector"),
    "image_reader": ("llm_debater", "LlmImageReader"),
    "context_writer": ("llm_debater", "LlmContextWriter"),
    "judge": ("llm_judge", "LlmJudge"),
    "span_extractor": ("llm_panel", "LlmSpanExtractor"),
    "span_adjudicator": ("llm_panel", "LlmSpanAdjudicator"),
}


def _pair_debaters(first: Seat, second: Seat) -> tuple[DebaterSeat, ...]:
    """Return Ada, at a low temperature, and Ben, at a high one, both brief (CEDA 5.2)."""
    cool = first if first.reader else replace(first, temperature=COOL, max_tokens=TURN_TOKENS)
    warm = replace(second, temperature=WARM, max_tokens=TURN_TOKENS)
    return (DebaterSeat("Ada", cool), DebaterSeat("Ben", warm))


def _fill_speaking_roles(name: str, words: str, seat: Seat) -> RosterConfig:
    """Return a roster that gives every speaking role to one model."""
    writing = replace(seat, max_tokens=WRITING_TOKENS)
    return RosterConfig(
        name,
        words,
        tool_picker=seat,
        reflector=writing,
        image_reader=seat,
        context_writer=writing,
        debaters=_pair_debaters(seat, seat),
        judge=seat,
        span_extractor=writing,
        span_adjudicator=seat,
    )


def one_model(
    model: str,
    api_base: str = "",
    key_name: str = "",
    *,
    window: int = 0,
    seconds: int = DEFAULT_SECONDS,
) -> RosterConfig:
    """Return a roster with one model in all speaking roles; the other roles stay built in."""
    words = f"Every speaking role is {model}{f' at {api_base}' if api_base else ''}."
    name = model if len(model) <= LONGEST_NAME else f"{model[: LONGEST_NAME - 1]}…"
    return _fill_speaking_roles(
        name, words, Seat(model, api_base, key_name, window=window, seconds=seconds)
    )


def served_roster(server: FoundServer, model: ServedModel) -> RosterConfig:
    """Return a roster with a local server's model in all speaking roles but the image reader's."""
    # Ollama reads so much only where its own API says so, and cuts the rest without a word.
    is_ollama = server.name == "Ollama"
    seat = Seat(
        f"{'ollama_chat' if is_ollama else 'openai'}/{model.name}",
        server.address.removesuffix("/v1") if is_ollama else server.address,
        window=OLLAMA_WINDOW if is_ollama else model.window,
        price_in=0.0,
        price_out=0.0,
        seconds=OLLAMA_SECONDS,
    )
    name = f"{model.name} ({server.name})"[-LONGEST_NAME:]
    words = f"Every speaking role is {model.name} of {server.name} on this computer. No key."
    return replace(_fill_speaking_roles(name, words, seat), image_reader=Seat())


def _build_shipped() -> Iterator[RosterConfig]:
    yield RosterConfig(
        BUILT_IN,
        "Built-in engine: entailment, values, overlap, OCR. No key, network or language model.",
    )
    # The paper marks no spans. Sonnet does it here, as the built-in extractor needs points, which
    # only built-in debaters raise.
    sonnet = "Claude 3.5 Sonnet sees, judges and marks the wrong words"
    for name, words, first, second in (
        ("ceda", "As the paper has it: Mistral 7B and Claude 3.5 Haiku debate", MISTRAL, HAIKU),
        ("ceda-mistral", f"{TABLE_6} Mistral 7B debates with itself", MISTRAL, MISTRAL),
        ("ceda-haiku", f"{TABLE_6} Claude 3.5 Haiku debates with itself", HAIKU, HAIKU),
    ):
        description = f"{words}; {sonnet}. All on Amazon Bedrock; Titan embeds."
        sheet = replace(
            _fill_speaking_roles(name, description, Seat(SONNET)), retriever=Seat(TITAN)
        )
        yield replace(sheet, debaters=_pair_debaters(Seat(first), Seat(second)))
    llama, mistral, seeing = (
        Seat(model, OLLAMA_BASE, window=OLLAMA_WINDOW, seconds=OLLAMA_SECONDS)
        for model in (OLLAMA_TEXT, OLLAMA_SECOND, OLLAMA_VISION)
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
    yield _fill_speaking_roles("address", words, Seat(TO_FILL_IN, ANY_BASE))
    # A built-in judge would not do here, as it ignores what a model argued.
    words = "The built-in value checker debates with {}; {}. Retrieval is built in."
    local = "it judges and marks the wrong words, llama3.2-vision sees"
    for name, sheet, seat, names in (
        (
            "mixed",
            _fill_speaking_roles("", "", Seat(SONNET)),
            Seat(HAIKU),
            ("Claude 3.5 Haiku", sonnet),
        ),
        ("mixed-ollama", ollama, llama, ("Ollama's llama3.1", local)),
    ):
        debaters = _pair_debaters(Seat(reader="rules"), seat)
        sheet = replace(sheet, name=name, words=words.format(*names), debaters=debaters)
        yield replace(sheet, context_writer=Seat())
    words = (
        "Built-in engine whose four readers mark wrong words in turn and vote on each other's "
        "marks. No key, network or language model."
    )
    readers = tuple(Seat(reader=name) for name in PANEL_READERS)
    yield RosterConfig("builtin-panel", words, span_panel=readers)
    words = (
        "Gemini 2.0 Flash, Qwen 2.5 Max, GPT-4o and DeepSeek V3 mark wrong words in turn, and the "
        "other three vote on each mark, as the MSA paper has it: without evidence. The rest is "
        "built in. DeepSeek's address answers with its current model."
    )
    panel = tuple(replace(seat, max_tokens=WRITING_TOKENS) for seat in MSA_SEATS)
    yield RosterConfig("msa", words, span_panel=panel, panel_sees_evidence=False)
    if weights():
        words = (
            "SmolLM2-135M on this computer, started when it is needed: a real language model, but "
            "very small. It shows how models argue; what it says is often wrong. No key."
        )
        small = Seat(f"{PROVIDER}/{MODEL}", window=WINDOW, price_in=0.0, price_out=0.0, seconds=300)
        yield replace(_fill_speaking_roles(PROVIDER, words, small), image_reader=Seat())


SHIPPED: Mapping[str, RosterConfig] = {sheet.name: sheet for sheet in _build_shipped()}
ROSTER_WORDS: Mapping[str, str] = {name: sheet.words for name, sheet in SHIPPED.items()}


def sheets_of(store: Store) -> tuple[RosterConfig, ...]:
    """Return the shipped rosters, then those that people keep."""
    stored = (row.sheet for row in store.rosters.all())
    return (*SHIPPED.values(), *(sheet for sheet in stored if sheet and sheet.name not in SHIPPED))


def sheet_named(name: str, store: Store) -> RosterConfig:
    """Return the roster of that name: a shipped one, else the newest stored one.

    Raises InputError, which lists the known names, if there is none.
    """
    sheet = SHIPPED.get(name) or store.rosters.get(name)
    if sheet is None:
        known = ", ".join(sheet.name for sheet in sheets_of(store))
        raise InputError(f"Expected a roster of {known}; found “{name}”.")
    return sheet


def require_filled_in(sheet: RosterConfig) -> None:
    """Raise InputError, which says where, if a model's name is still a placeholder."""
    if places := [role for role, seat in sheet.seats() if seat.model == TO_FILL_IN]:
        raise InputError(
            f"Roster “{sheet.name}”, {places[0]}: expected a model's name, found the placeholder "
            f"“{TO_FILL_IN}”; fill it in under Settings, or use --model and --api-base."
        )


def roster_named(
    name: str, threshold: SpanThreshold = AS_SHIPPED, assessor: Assessor | None = None
) -> Roster:
    """Return the built-in roster, which needs no client and no key, reading with `assessor`.

    Raises InputError for any other name.
    """
    if name != BUILT_IN:
        raise InputError(f"Expected a roster of {', '.join(ROSTER_WORDS)}; found “{name}”.")
    from core.baseline.audit_agents import BuiltInSegmenter
    from core.baseline.debaters import KINDS, BuiltInContextWriter, BuiltInDebater, OcrImageReader
    from core.baseline.entailment import shared_assessor
    from core.baseline.judge import BuiltInJudge
    from core.baseline.panel import PointSpanExtractor, ThresholdSpanAdjudicator
    from core.baseline.reflector import BuiltInReflector
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


def seated(sheet: RosterConfig, work: AgentContext) -> Roster:
    """Return the roster's agents; built-in ones are the fallback for unusable replies.

    The retriever's seat has no agent: the caller that starts the run makes its embedder. Raises
    InputError if a model's name is still a placeholder.
    """
    from core.agents.llm_panel import LlmPanelist

    require_filled_in(sheet)
    spare = roster_named(BUILT_IN, work.learned.threshold, work.assessor)
    panel = tuple(
        panel_reader(seat.reader, work.learned.threshold, work.assessor)
        if seat.is_built_in
        else LlmPanelist(seat, work, number, sees_evidence=sheet.panel_sees_evidence)
        for number, seat in enumerate(sheet.span_panel, 1)
    )
    roster = replace(
        spare, name=sheet.name, span_panel=panel, panel_rule=_choose_panel_rule(sheet, work)
    )
    if sheet.is_built_in and sheet.debaters == SHIPPED[BUILT_IN].debaters:
        return roster
    model_agents = {
        role: getattr(import_module(f"core.agents.{module}"), name)(getattr(sheet, role), work)
        for role, (module, name) in PLAYERS.items()
        if not getattr(sheet, role).is_built_in
    }
    debaters = _build_debaters(sheet, work)
    return replace(
        roster, debaters=debaters, spare=spare, calls_made=work.desk.drain, **model_agents
    )


def _choose_panel_rule(sheet: RosterConfig, work: AgentContext) -> PanelRule:
    """Return the paper's rule, or the shipped weights for the panel of all built-in readers.

    Levels learned from people's marks take precedence.
    """
    from core.baseline.panel import shipped_rule

    readers = sorted(seat.reader for seat in sheet.span_panel)
    rule = shipped_rule() if readers == sorted(PANEL_READERS) else PanelRule()
    threshold = work.learned.threshold
    levels = threshold.weighted if rule.weights else threshold.panel
    levels = levels if levels.words else rule.levels
    return replace(rule, levels=levels, alone=work.learned.alone)


def panel_reader(
    name: str, threshold: SpanThreshold = AS_SHIPPED, assessor: Assessor | None = None
) -> SpanPanelist:
    """Return the built-in panel member of that name, one of `PANEL_READERS`."""
    from core.baseline.entailment import shared_assessor
    from core.baseline.panel import panelist

    return panelist(name, assessor or shared_assessor(), threshold)


def _build_debaters(sheet: RosterConfig, work: AgentContext) -> dict[str, Debater]:
    """Return the debaters by name; built-in ones without a named reader get one by position."""
    from core.agents.llm_debater import LlmDebater
    from core.baseline.debaters import KINDS, BuiltInDebater
    from core.baseline.entailment import shared_assessor

    assessor = work.assessor or shared_assessor()
    return {
        debater.name: BuiltInDebater(
            KINDS[debater.seat.reader or READERS[number % len(READERS)]], assessor
        )
        if debater.seat.is_built_in
        else LlmDebater(debater.seat, work)
        for number, debater in enumerate(sheet.debaters)
    }


def chosen_roster(
    home: Path,
    roster: str,
    model: str = "",
    api_base: str = "",
    prompts: str = "",
    window: int = 0,
    seconds: int = 0,
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
        chosen = ReadRoster(one_model(model, api_base, window=window, seconds=seconds))
        check_sheet(chosen.sheet)
    else:
        chosen = _load_roster(home, roster, prompts)
    require_filled_in(chosen.sheet)
    for role, seat in chosen.sheet.seats():
        where = "--model" if model else f"Roster, {role}, model"
        if seat.model and provider_of(seat) is None:
            raise InputError(
                f"{where}: expected a model's name as provider/model, such as openai/gpt-4o-mini "
                f"or ollama_chat/llama3.1, found “{seat.model}”. A server of your own also needs "
                "its address (--api-base)."
            )
    return chosen


def _load_roster(home: Path, roster: str, prompts: str) -> ReadRoster:
    if roster in SHIPPED:
        return ReadRoster(SHIPPED[roster])
    if roster.endswith(FILE_SUFFIX) or os.sep in roster:
        loaded = read_roster(_read_file(Path(roster)), prompts)
        name = loaded.sheet.name
        if name not in SHIPPED or loaded.sheet == SHIPPED[name]:
            return loaded
        # A file under the name of a shipped roster would pass for it on every page.
        return replace(loaded, sheet=replace(loaded.sheet, name=f"{name} (file)"))
    if not home.is_dir():
        raise InputError(f"Expected a roster of {', '.join(SHIPPED)}, or a file; found “{roster}”.")
    with open_store(home) as store:
        return ReadRoster(sheet_named(roster, store))


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
