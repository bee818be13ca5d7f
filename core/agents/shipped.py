"""The rosters that are shipped: the paper's, its table 6 pairs, Ollama, any address, mixed ones.

Source: CEDA 4.1 (who plays), 5.2 (temperatures), table 6 (pairs of debaters); MSA 3.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from core.seats import BUILT_IN, LONGEST_NAME, PANEL_READERS, DebaterSeat, RosterSheet, Seat

TURN_TOKENS = 100
WRITING_TOKENS = 2000  # of JSON over many passages: cut off, it is of no use
COOL, WARM = 0.2, 0.6
SONNET = "bedrock/anthropic.claude-3-5-sonnet-20240620-v1:0"
HAIKU = "bedrock/anthropic.claude-3-5-haiku-20241022-v1:0"
MISTRAL = "bedrock/mistral.mistral-7b-instruct-v0:2"
TITAN = "bedrock/amazon.titan-embed-text-v1"
# The four of MSA 3.2; each marks words and votes on the others' marks.
GEMINI = "gemini/gemini-2.0-flash"  # not on litellm's list, so its window is told
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
# Ollama is told to read so much; by itself it reads less of a prompt and drops the rest unsaid.
OLLAMA_WINDOW = 8192
OLLAMA_SECONDS = 300  # a model is first loaded into memory
ANY_BASE = "http://127.0.0.1:8000/v1"
TO_FILL_IN = "openai/name-of-your-model"


def _pair(first: Seat, second: Seat) -> tuple[DebaterSeat, ...]:
    return (DebaterSeat("Ada", first), DebaterSeat("Ben", second))


def _speaking(sheet: RosterSheet, seat: Seat, *, seeing: Seat | None = None) -> RosterSheet:
    """Every speaking role to one model; the debaters are one cool and one warm (CEDA 5.2)."""
    cool = replace(seat, temperature=COOL, max_tokens=TURN_TOKENS)
    writing = replace(seat, max_tokens=WRITING_TOKENS)
    return replace(
        sheet,
        tool_picker=seat,
        reflector=writing,
        image_reader=seeing or seat,
        context_writer=writing,
        debaters=_pair(cool, replace(cool, temperature=WARM)),
        judge=seat,
        span_extractor=writing,
        span_adjudicator=seat,
    )


def one_model(model: str, api_base: str = "", key_name: str = "") -> RosterSheet:
    """Every speaking role to one model; retrieval and segmentation stay built in."""
    words = f"Every speaking role is {model}{f' at {api_base}' if api_base else ''}."
    name = model if len(model) <= LONGEST_NAME else f"{model[: LONGEST_NAME - 1]}…"
    return _speaking(RosterSheet(name, words), Seat(model, api_base, key_name))


def _ceda(name: str, words: str, first: str, second: str) -> RosterSheet:
    """The paper's set-up with the given debaters.

    The paper marks no spans. Sonnet does it here: the built-in extractor lives on points that
    built-in debaters raise, and plain turns carry none.
    """
    sheet = replace(_speaking(RosterSheet(name, words), Seat(SONNET)), retriever=Seat(TITAN))
    return replace(
        sheet,
        debaters=_pair(
            Seat(first, temperature=COOL, max_tokens=TURN_TOKENS),
            Seat(second, temperature=WARM, max_tokens=TURN_TOKENS),
        ),
    )


def _ollama(model: str) -> Seat:
    return Seat(
        model,
        OLLAMA_BASE,
        window=OLLAMA_WINDOW,
        seconds=OLLAMA_SECONDS,
    )


def _all_ollama() -> RosterSheet:
    words = (
        "All on your own machine: Ollama's llama3.1 and mistral debate, llama3.2-vision sees. "
        "No key; retrieval is built in. Get the models first with `ollama pull`; set the prices of "
        "a copy to 0 where nobody bills you."
    )
    sheet = _speaking(
        RosterSheet("ollama", words), _ollama(OLLAMA_TEXT), seeing=_ollama(OLLAMA_VISION)
    )
    ben = replace(_ollama(OLLAMA_SECOND), temperature=WARM, max_tokens=TURN_TOKENS)
    return sheet.with_seat("debater Ben", ben)


def _msa() -> RosterSheet:
    """The paper's panel on the built-in engine: it has no debate and no judge."""
    words = (
        "Gemini 2.0 Flash, Qwen 2.5 Max, GPT-4o and DeepSeek V3 mark wrong words in turn, and the "
        "other three vote on each mark, as the MSA paper has it: without evidence. The rest is "
        "built in. DeepSeek's address answers with its current model."
    )
    seats = tuple(replace(seat, max_tokens=WRITING_TOKENS) for seat in MSA_SEATS)
    return RosterSheet("msa", words, span_panel=seats, panel_sees_evidence=False)


def _built_in_panel() -> RosterSheet:
    words = (
        "Built-in engine whose four readers mark wrong words in turn and vote on each other's "
        "marks. No key, network or language model."
    )
    seats = tuple(Seat(reader=name) for name in PANEL_READERS)
    return RosterSheet("builtin-panel", words, span_panel=seats)


def _mixed(sheet: RosterSheet, ben: Seat) -> RosterSheet:
    """The value checker debates with a model, and the sheet's model judges.

    The built-in judge would not do: it weighs what it reads itself, not what a model argued.
    """
    warm = replace(ben, temperature=WARM, max_tokens=TURN_TOKENS)
    return replace(sheet, context_writer=Seat(), debaters=_pair(Seat(reader="rules"), warm))


def _shipped() -> tuple[RosterSheet, ...]:
    sonnet = "Claude 3.5 Sonnet sees, judges and marks the wrong words"
    bedrock = "All on Amazon Bedrock; Titan embeds."
    mixed = "The built-in value checker debates with {}; {}. Retrieval is built in."
    local = "it judges and marks the wrong words, llama3.2-vision sees"
    ollama = _all_ollama()
    address = replace(
        one_model(TO_FILL_IN, ANY_BASE),
        name="address",
        words="Every speaking role at one OpenAI-compatible address (vLLM, LM Studio, llama.cpp, a "
        "gateway): fill in the address and the model's name under Settings.",
    )
    return (
        RosterSheet(
            BUILT_IN,
            "Built-in engine: entailment, values, overlap, OCR. No key, network or language model.",
        ),
        _ceda(
            "ceda",
            f"As the paper has it: Mistral 7B and Claude 3.5 Haiku debate; {sonnet}. {bedrock}",
            MISTRAL,
            HAIKU,
        ),
        _ceda(
            "ceda-mistral",
            f"Table 6 of the paper: Mistral 7B debates with itself; {sonnet}. {bedrock}",
            MISTRAL,
            MISTRAL,
        ),
        _ceda(
            "ceda-haiku",
            f"Table 6 of the paper: Claude 3.5 Haiku debates with itself; {sonnet}. {bedrock}",
            HAIKU,
            HAIKU,
        ),
        ollama,
        address,
        _mixed(
            _speaking(RosterSheet("mixed", mixed.format("Claude 3.5 Haiku", sonnet)), Seat(SONNET)),
            Seat(HAIKU),
        ),
        _mixed(
            replace(ollama, name="mixed-ollama", words=mixed.format("Ollama's llama3.1", local)),
            _ollama(OLLAMA_TEXT),
        ),
        _built_in_panel(),
        _msa(),
    )


SHIPPED: Mapping[str, RosterSheet] = {sheet.name: sheet for sheet in _shipped()}
