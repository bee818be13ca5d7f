"""Roster configurations and protocol options: which agent plays each role, and how they argue.

A configuration is stored with a run, edited in Settings and exchanged as a file; `Roster` in
`core/schema/roles.py` holds the corresponding live agents. Source: CEDA 4.1, 5.2, table 6.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

# What a debater is asked to do; `DebateView` in core/schema/roles.py describes each.
TurnMode = Literal[
    "debate", "answer", "reconsider", "collaborate", "compete", "tit_for_tat",
    "detect", "critique", "revise", "advise", "attack",
]  # fmt: skip
# These answer somebody: AGREE or DENY first, then the stance. Others begin with the stance.
ANSWERING_MODES: frozenset[TurnMode] = frozenset(
    {"debate", "tit_for_tat", "critique", "advise", "attack"}
)
# These name words of the response, on lines with a format of their own (MAMM-REFINE).
SPAN_NAMING_MODES: frozenset[TurnMode] = frozenset({"detect", "critique"})
# How a judge is asked; `JudgeView` in core/schema/roles.py says what each reads.
JudgeMode = Literal[
    "debate", "plain", "thought", "examples", "collaborate", "compete", "moderate",
    "rerank",
]  # fmt: skip
# The options of protocols: `turns` is a field of the plan, the others of `DebateOptions`.
ProtocolOption = Literal[
    "turns", "rounds", "samples", "style", "is_swapped", "seed", "then", "without"
]
# The parts that SC-MAKS can run without, for ablations (SC-MAKS 4.10).
AblationPart = Literal["", "cooperation", "adversary", "weights"]
ABLATION_PARTS: tuple[AblationPart, ...] = ("cooperation", "adversary", "weights")
JUDGE_STYLES: tuple[JudgeMode, ...] = ("plain", "thought", "examples")  # of a single judge
MAX_ROUNDS = 20  # the limit of samples too
EXTRA_LINES_TOKENS = 80  # for the extra lines after a turn
CORRECTED_TEXT_RATIO = 1.5  # times the response's own tokens, for a corrected response

BUILT_IN_ROSTER = "builtin"
BUILT_IN_READERS = ("rules", "overlap", "entailment")
PANEL_READERS = (*BUILT_IN_READERS, "words")
PANEL_ROLE_PREFIX = (
    "span panel "  # prefix of the role name of a member of the panel that marks words
)
DEFAULT_WINDOW_TOKENS = 8192  # tokens
DEFAULT_SECONDS = 60
MAX_CONCURRENCY = 64  # calls that a server is asked at once
MAX_ROSTER_NAME_CHARACTERS = 80  # characters of a roster's name
ROLE_FIELDS = (
    "retriever", "segmenter", "tool_picker", "reflector", "image_reader", "context_writer",
    "debaters", "judge", "span_extractor", "span_adjudicator",
)  # fmt: skip


@dataclass(frozen=True)
class ProtocolInfo:
    """A debate protocol as people choose it: name, what happens (`words`), and when it `fits`.

    `module` of `core/debate` holds its code, empty for an audit, which is no debate. `for_readers`:
    built-in readers offer it too. They give the same answer however they are asked, so that with
    them rounds, assigned sides and critiques would be an act.
    """

    name: str
    module: str
    words: str
    fits: str
    for_readers: bool = False


# In the order in which they are offered. Here, so that pages and traces load no protocol code.
PROTOCOL_INFOS = (
    ProtocolInfo("ceda", "sequential",
        "Debate in turn (CEDA): two unlike debaters answer each other in turn, then a judge "
        "decides.",
        "It fits a single claim or a short answer that rests on your documents.", for_readers=True),
    ProtocolInfo("single", "independent",
        "Single judge: one judge reads the evidence, and nobody argues.",
        "It is the quickest way, and the baseline of every debate.", for_readers=True),
    ProtocolInfo("ensemble", "independent",
        "Ensemble: debaters answer alone, most decide, and a coin where they cancel out.",
        "It shows what many heads come to without arguing; a coin that decided is told of.",
        for_readers=True),
    ProtocolInfo("colmad", "colmad",
        "Shared goal (ColMAD): all answer alone, then complete each other’s answers; a judge "
        "concludes.",
        "It fits what is hard to see: debaters work towards one goal, say how sure they are and "
        "where they may be mistaken."),
    ProtocolInfo("copmad", "colmad",
        "Assigned sides (CopMAD): two debaters are given opposing sides and argue to win; a "
        "judge decides.",
        "It shows the best case for either side. Who argues better may win: it is here to be "
        "compared with."),
    ProtocolInfo("society", "sequential",
        "Society of minds: all answer, then reconsider having read the others; most decide.",
        "It fits questions that several can think through alone and then learn from each other; "
        "no judge decides."),
    ProtocolInfo("mad", "sequential",
        "Tit for tat (MAD): one debater opposes the other until a judge finds the answer clear.",
        "It fits claims that look right at once: somebody has to speak against the first view."),
    ProtocolInfo("mamm_refine", "mamm_refine",
        "Corrected text (MAMM-REFINE): agents find wrong words, criticise each other’s finds, "
        "and mend the text.",
        "It fits a text that you want to put right: you take the better text or leave it."),
    ProtocolInfo("sc_maks", "sc_maks",
        "Advice and attack (SC-MAKS): agents help and attack each other’s answers in rounds, "
        "then their weights decide.",
        "It is the most thorough and the costliest, and what is wrong is written anew."),
    ProtocolInfo("adaptive", "independent",
        "Adaptive: a single judge first; a debate only where it is not sure enough.",
        "It saves calls: the debate is held only where the judge is unsure or the built-in "
        "readers contradict it."),
    ProtocolInfo("audit", "",
        "Audit: each statement is checked with the tool that fits it; debate on what stays "
        "contested.",
        "It fits a long response, and one with sums, dates, code or a length asked for."),
)  # fmt: skip
PROTOCOL_NAMES = tuple(info.name for info in PROTOCOL_INFOS if info.module)
READER_PROTOCOLS = tuple(info.name for info in PROTOCOL_INFOS if info.for_readers)
# The protocols that an adaptive check can go on to.
DEBATE_PROTOCOL_NAMES = tuple(name for name in PROTOCOL_NAMES if name not in ("single", "adaptive"))


@dataclass(frozen=True)
class DebateOptions:
    """The options of a protocol; 0 and "" are its own defaults.

    `rounds` are those of debate after the first answers. `samples` judgements are drawn and the
    label of more than half is taken (self-consistency); if a coin is needed, it comes from `seed`.
    `style` is how a single judge is asked: plainly, for its chain of thought, or by examples.
    `is_swapped`: debaters change places; CopMAD's judge hears both orders. `then` is the protocol
    that an adaptive check goes on to. `without` leaves out one part of SC-MAKS: its cooperative
    phase, its adversarial phase, or learned weights, so that all count alike.
    """

    rounds: int = 0
    samples: int = 0
    style: Literal["", "plain", "thought", "examples"] = ""
    is_swapped: bool = False
    seed: int = 0
    then: str = ""
    without: AblationPart = ""

    @property
    def chosen(self) -> dict[str, Any]:
        """The options that differ from the defaults, by name."""
        return {o.name: v for o in fields(self) if (v := getattr(self, o.name)) != o.default}


DEFAULT_OPTIONS = DebateOptions()


def get_judge_prompt_name(mode: JudgeMode) -> str:
    """Return the name of the prompt that asks a judge in that mode."""
    return "judge" if mode == "debate" else f"judge_{mode}"


def limit_turn_tokens(mode: TurnMode, allowed: int, response: int) -> int:
    """Return the longest reply, in tokens, of a debater who is asked in that mode.

    `allowed` is the agent's limit for a CEDA turn (4.4); other modes need extra lines after it:
    confidence, doubt, places. A corrected text is about as long as the `response`, in tokens.
    """
    if mode == "debate":
        return allowed
    longest = max(allowed, int(CORRECTED_TEXT_RATIO * response)) if mode == "revise" else allowed
    return longest + EXTRA_LINES_TOKENS


@dataclass(frozen=True)
class AgentConfig:
    """The agent of one role: the built-in one when `model` is empty, else a language model.

    `model` is litellm's name, `provider/model`; `api_base` an OpenAI-compatible address. `key_name`
    is the name under which its key is looked up (empty: the provider's usual one), never the key
    itself. `window` is in tokens, 0 where litellm knows it. Prices are US dollars for a million
    tokens, None where litellm's list decides. `seconds` is the longest silence to wait for;
    `concurrency` how many calls its server answers at once, 0 as the server tells.
    `reader` picks the built-in debater, one of `BUILT_IN_READERS`, or the member of the panel that
    marks words, one of `PANEL_READERS`.
    """

    model: str = ""
    api_base: str = ""
    key_name: str = ""
    temperature: float = 0.0
    max_tokens: int = 800
    window: int = 0
    price_in: float | None = None
    price_out: float | None = None
    seconds: int = DEFAULT_SECONDS
    concurrency: int = 0
    reader: str = ""

    @property
    def is_built_in(self) -> bool:
        """True if no language model plays the role."""
        return not self.model


@dataclass(frozen=True)
class DebaterConfig:
    """A debater's name in the debate, and its agent."""

    name: str
    seat: AgentConfig


@dataclass(frozen=True)
class RosterConfig:
    """An agent configuration for every role; the defaults are the built-in engine.

    `retriever` embeds passages (CEDA's agent A); `prompts` is the digest of the prompts that the
    roster was written for, empty for whichever are current. Two or more members of `span_panel`
    mark words by rotation (MSA 3.3) in place of span extractor and adjudicator;
    `panel_sees_evidence` says whether its language models are shown the evidence (the paper's were
    not).
    """

    name: str
    words: str = ""
    retriever: AgentConfig = field(default_factory=AgentConfig)
    segmenter: AgentConfig = field(default_factory=AgentConfig)
    tool_picker: AgentConfig = field(default_factory=AgentConfig)
    reflector: AgentConfig = field(default_factory=AgentConfig)
    image_reader: AgentConfig = field(default_factory=AgentConfig)
    context_writer: AgentConfig = field(default_factory=AgentConfig)
    debaters: tuple[DebaterConfig, ...] = (
        DebaterConfig("Ada", AgentConfig(reader="rules")),
        DebaterConfig("Ben", AgentConfig(reader="overlap")),
        DebaterConfig("Cleo", AgentConfig(reader="entailment")),
    )
    judge: AgentConfig = field(default_factory=AgentConfig)
    span_extractor: AgentConfig = field(default_factory=AgentConfig)
    span_adjudicator: AgentConfig = field(default_factory=AgentConfig)
    prompts: str = ""
    span_panel: tuple[AgentConfig, ...] = ()
    panel_sees_evidence: bool = True

    def agents_by_role(self) -> Iterator[tuple[str, AgentConfig]]:
        """Yield every role's name, as people and traces see it, with its configuration."""
        for role in ROLE_FIELDS:
            if role == "debaters":
                yield from ((f"debater {debater.name}", debater.seat) for debater in self.debaters)
            else:
                yield role.replace("_", " "), getattr(self, role)
        for number, agent in enumerate(self.span_panel, 1):
            yield f"{PANEL_ROLE_PREFIX}{number}", agent

    def with_seat(self, role: str, agent: AgentConfig) -> RosterConfig:
        """Return a copy with another configuration for a role, named as in `agents_by_role`."""
        if role.startswith("debater "):
            name = role.removeprefix("debater ")
            debaters = (
                DebaterConfig(d.name, agent) if d.name == name else d for d in self.debaters
            )
            return replace(self, debaters=tuple(debaters))
        if role.startswith(PANEL_ROLE_PREFIX):
            seats = list(self.span_panel)
            seats[int(role.removeprefix(PANEL_ROLE_PREFIX)) - 1] = agent
            return replace(self, span_panel=tuple(seats))
        changed: dict[str, Any] = {role.replace(" ", "_"): agent}
        return replace(self, **changed)

    def with_windows_of(self, other: RosterConfig) -> RosterConfig:
        """Return a copy with the context windows that `other` has for the same models."""
        others, updated = dict(other.agents_by_role()), self
        for role, agent in self.agents_by_role():
            known = others.get(role)
            if known and (known.model, known.api_base) == (agent.model, agent.api_base):
                updated = updated.with_seat(role, replace(agent, window=known.window))
        return updated

    @property
    def is_built_in(self) -> bool:
        """True if no role calls a model."""
        return all(agent.is_built_in for _, agent in self.agents_by_role())
