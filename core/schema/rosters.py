"""Who plays which role, and what can be chosen of a protocol: seats, roster sheets, options.

A sheet is what is stored with a run, edited in Settings and exchanged as a file; `Roster` in
`core/schema/roles.py` is the same with living agents in the seats. Source: CEDA 4.1, 5.2, table 6.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

# What a debater is asked for; core/schema/roles.py says of each what it sees and says.
Manner = Literal[
    "debate", "answer", "reconsider", "collaborate", "compete", "tit_for_tat",
    "detect", "critique", "revise", "advise", "attack",
]  # fmt: skip
# These answer somebody: AGREE or DENY first, then the stance. All others begin with the stance.
ANSWERING: frozenset[Manner] = frozenset({"debate", "tit_for_tat", "critique", "advise", "attack"})
# These name words of the response, in lines of a form of their own (MAMM-REFINE).
NAMING: frozenset[Manner] = frozenset({"detect", "critique"})
# How a judge is asked; core/schema/roles.py says what each of them reads.
JudgeManner = Literal[
    "debate", "plain", "thought", "examples", "collaborate", "compete", "moderate",
    "rerank",
]  # fmt: skip
# What a protocol can have chosen of it: `turns` is the plan's, the others are fields below.
Option = Literal["turns", "rounds", "samples", "style", "is_swapped", "seed", "then", "without"]
# What SC-MAKS can be held without, to see what it is worth (SC-MAKS 4.10).
Part = Literal["", "cooperation", "adversary", "weights"]
PARTS: tuple[Part, ...] = ("cooperation", "adversary", "weights")
STYLES: tuple[JudgeManner, ...] = ("plain", "thought", "examples")  # of a single judge
MOST_ROUNDS = 20  # and samples
LINES_TOKENS = 80  # for lines of their own after a turn
TEXT_SHARE = 1.5  # of the response's own tokens, for one that is given mended


@dataclass(frozen=True)
class ProtocolInfo:
    """A way to argue as people choose it: its name, what happens (`words`), and what it `fits`.

    `module` of `core/debate` holds its code, none an audit's, which is no debate. `for_readers`:
    built-in readers speak in it too, who say the same however they are asked, so that rounds,
    assigned sides and critiques would be acted out.
    """

    name: str
    module: str
    words: str
    fits: str
    for_readers: bool = False


# In the order in which they are offered. Kept here, so that a page or a trace loads no code.
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
NAMES = tuple(way.name for way in PROTOCOL_INFOS if way.module)
FOR_READERS = tuple(way.name for way in PROTOCOL_INFOS if way.for_readers)
# Those that an adaptive check can go on to.
DEBATE_NAMES = tuple(name for name in NAMES if name not in ("single", "adaptive"))


@dataclass(frozen=True)
class DebateOptions:
    """What can be chosen of a protocol; 0 and "" are its own defaults.

    `rounds` are those of debate after the first answers. `samples` judgements are drawn and the
    label of more than half is taken (self-consistency); a coin that is needed comes from `seed`.
    `style` is how a single judge is asked: plainly, for its chain of thought, or by examples.
    `is_swapped`: debaters change places; CopMAD's judge hears both orders. `then` is the protocol
    that an adaptive check goes on to. `without` leaves one part of SC-MAKS out: its cooperative
    phase, its adversarial one, or learned weights, so that all count alike.
    """

    rounds: int = 0
    samples: int = 0
    style: Literal["", "plain", "thought", "examples"] = ""
    is_swapped: bool = False
    seed: int = 0
    then: str = ""
    without: Part = ""

    @property
    def chosen(self) -> dict[str, Any]:
        """What was chosen, by name; what is left to the protocol is not among it."""
        of_each = ((field.name, getattr(self, field.name), field.default) for field in fields(self))
        return {name: own for name, own, usual in of_each if own != usual}


AS_IS = DebateOptions()


def judge_prompt(manner: JudgeManner) -> str:
    """The name of the prompt that asks a judge in that manner."""
    return "judge" if manner == "debate" else f"judge_{manner}"


def turn_tokens(manner: Manner, allowed: int, response: int) -> int:
    """The longest reply, in tokens, of a debater who is asked in that manner.

    What its seat allows is CEDA's turn (4.4); other manners want lines of their own after it:
    confidence, doubt, places. A mended text is as long as the `response`, in tokens.
    """
    if manner == "debate":
        return allowed
    longest = max(allowed, int(TEXT_SHARE * response)) if manner == "revise" else allowed
    return longest + LINES_TOKENS


BUILT_IN = "builtin"
READERS = ("rules", "overlap", "entailment")
PANEL_READERS = (*READERS, "words")
PANEL = "span panel "  # begins the name of a seat in the panel that marks words
DEFAULT_WINDOW = 8192
DEFAULT_SECONDS = 60
LONGEST_NAME = 80  # characters of a roster's


@dataclass(frozen=True)
class Seat:
    """One role's player: the built-in agent when `model` is empty, else a language model.

    `model` is litellm's name, `provider/model`; `api_base` an OpenAI-compatible address. `key_name`
    says under which name its key is looked for (empty: the provider's usual one), never the key.
    `window` is in tokens, 0 where litellm knows it. Prices are US dollars for a million tokens,
    None where litellm's list decides. `seconds` is the longest silence that is waited for.
    `reader` picks the built-in debater, one of `READERS`, or member of the panel that marks
    words, one of `PANEL_READERS`.
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
    reader: str = ""

    @property
    def is_built_in(self) -> bool:
        """True when no language model plays it."""
        return not self.model


@dataclass(frozen=True)
class DebaterSeat:
    """A debater's name in the debate, and who it is."""

    name: str
    seat: Seat


ROLES = (
    "retriever", "segmenter", "tool_picker", "reflector", "image_reader", "context_writer",
    "debaters", "judge", "span_extractor", "span_adjudicator",
)  # fmt: skip


@dataclass(frozen=True)
class RosterConfig:
    """A seat for every role; the defaults are the built-in engine.

    `retriever` embeds passages (CEDA's agent A); `prompts` is the digest of the prompts that the
    sheet was written for, empty for whichever are current. Two or more seats in `span_panel` mark
    words by rotation (MSA 3.3) in place of span extractor and adjudicator; `panel_sees_evidence`
    says whether its language models are shown the evidence (the paper's were not).
    """

    name: str
    words: str = ""
    retriever: Seat = field(default_factory=Seat)
    segmenter: Seat = field(default_factory=Seat)
    tool_picker: Seat = field(default_factory=Seat)
    reflector: Seat = field(default_factory=Seat)
    image_reader: Seat = field(default_factory=Seat)
    context_writer: Seat = field(default_factory=Seat)
    debaters: tuple[DebaterSeat, ...] = (
        DebaterSeat("Ada", Seat(reader="rules")),
        DebaterSeat("Ben", Seat(reader="overlap")),
        DebaterSeat("Cleo", Seat(reader="entailment")),
    )
    judge: Seat = field(default_factory=Seat)
    span_extractor: Seat = field(default_factory=Seat)
    span_adjudicator: Seat = field(default_factory=Seat)
    prompts: str = ""
    span_panel: tuple[Seat, ...] = ()
    panel_sees_evidence: bool = True

    def seats(self) -> Iterator[tuple[str, Seat]]:
        """Every role's name as people and traces see it, with its seat."""
        for role in ROLES:
            if role == "debaters":
                yield from ((f"debater {debater.name}", debater.seat) for debater in self.debaters)
            else:
                yield role.replace("_", " "), getattr(self, role)
        for number, seat in enumerate(self.span_panel, 1):
            yield f"{PANEL}{number}", seat

    def with_seat(self, role: str, seat: Seat) -> RosterConfig:
        """A copy with another seat for the role of that name, as `seats` names it."""
        if role.startswith("debater "):
            name = role.removeprefix("debater ")
            debaters = (DebaterSeat(d.name, seat) if d.name == name else d for d in self.debaters)
            return replace(self, debaters=tuple(debaters))
        if role.startswith(PANEL):
            seats = list(self.span_panel)
            seats[int(role.removeprefix(PANEL)) - 1] = seat
            return replace(self, span_panel=tuple(seats))
        changed: dict[str, Any] = {role.replace(" ", "_"): seat}
        return replace(self, **changed)

    def with_windows_of(self, other: RosterConfig) -> RosterConfig:
        """A copy with the windows that `other` says the same models at the same addresses have."""
        said, found = dict(other.seats()), self
        for role, seat in self.seats():
            now = said.get(role)
            if now and (now.model, now.api_base) == (seat.model, seat.api_base):
                found = found.with_seat(role, replace(seat, window=now.window))
        return found

    @property
    def is_built_in(self) -> bool:
        """True when no seat calls a model."""
        return all(seat.is_built_in for _, seat in self.seats())
