"""A debate cut into rounds, as text and as HTML: live, stored, in a replay, in a report."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from components.widgets.html import (
    Html,
    describe_word_lines,
    div,
    element,
    join_html,
    split_reply,
    split_stance,
    strip_word_lines,
)
from components.widgets.wording import (
    LABEL_WORDS,
    QUOTE_SIGNS,
    QUOTE_WORDS,
    format_count,
    format_percent,
    format_source,
)
from core.baseline.wording import join_names, shorten
from core.debate.signals import DebateSignal, SignalKind, count_signals, find_signals
from core.schema.events import ConsensusWeighed, TurnStarted
from core.schema.records import Quote, Stance, Turn, TurnReply
from core.schema.roles import LEARNED_WEIGHTS_MARKER
from core.schema.rosters import ANSWERING_MODES, SPAN_NAMING_MODES, TurnMode
from core.schema.run_state import RunState

STANCE_LABELS: dict[Stance, str] = {label: word.lower() for label, word in LABEL_WORDS.items()}
REPLY_WORDS: dict[TurnReply, str] = {"agree": "agrees", "deny": "disagrees"}
MANNER_WORDS: Mapping[TurnMode, str] = {
    "debate": "",
    "answer": "answers alone",
    "reconsider": "reconsiders",
    "collaborate": "adds to what was said",
    "compete": "argues a side",
    "tit_for_tat": "argues tit for tat",
    "detect": "names wrong words",
    "critique": "examines the named words",
    "revise": "writes the response anew",
    "advise": "advises",
    "attack": "challenges",
}
SIGNAL_WORDS: Mapping[SignalKind, str] = {
    "quote_not_found": "not found in the sources",
    "overconfident": "surer than warranted",
    "task_misread": "off the task",
    "unmoved": "insisting",
}
SIGNALS_HELP = (
    "Looked for in every turn by our code, after ColMAD 2.2: quotes that appear in no source, a "
    "tone surer than the debater’s record or quotes allow, turns off the point, and insisting "
    "without a new quote. A signal is a reason to look at the turn; the verdict does not depend "
    "on it."
)
MAX_UNFOLDED_TURNS = 15  # turns; a longer debate folds its rounds, as nobody finds one by scrolling
PHASE_WORDS: Mapping[TurnMode, str] = {
    "advise": "advice", "attack": "challenges", "reconsider": "answers again",
}  # fmt: skip
ORDINALS = ("First", "Second", "Third")
METHOD_WORDS = {
    "uniform": "all alike",
    "record": "by how often each was right here",
    "logistic": "by how often each was right here, what they err in together counted once",
    "policy": "by how each answer fared in the debate",
}
# A finished turn, or the start of one under way.
AnyTurn = Turn | TurnStarted
# Turns that are asked for confidence and for one doubt about their own claim (ColMAD 2.3).
SELF_AUDITED_MODES: frozenset[TurnMode] = frozenset({"answer", "reconsider", "collaborate"})


def round_heading(turn: AnyTurn) -> str:
    """Return the heading of the turn's round."""
    is_first = turn.round == 0 or (turn.manner == "answer" and turn.round == 1)
    return "First answers" if is_first else f"Round {turn.round}"


def summarize_round(heading: str, turns: Sequence[Turn]) -> str:
    """Return the heading of a folded round: its number of turns, and each debater's last stance."""
    last = {turn.debater: turn for turn in turns if turn.assigned is None}
    stances = ", ".join(f"{name} {STANCE_LABELS[turn.stance]}" for name, turn in last.items())
    parts = [heading, format_count(len(turns), "turn"), stances]
    return " · ".join(part for part in parts if part)


def _manner_words(turn: AnyTurn) -> str:
    """Say what was asked of the debater, about whose answer; empty in CEDA's debate."""
    about = f"{turn.about}’s answer" if turn.about else ""
    # An assigned side is named beside the stance instead.
    words = MANNER_WORDS.get(turn.manner, "") if turn.assigned is None else ""
    if not about:
        return words
    return f"{words}: {about}" if words else f"on {about}"


def visible_turn_text(turn: Turn) -> str:
    """Return the turn's text without what is shown beside it; all of it if the record differs."""
    is_debate = turn.manner == "debate"
    is_answer = is_debate or turn.manner in ANSWERING_MODES
    reply, words = split_reply(turn.text) if is_answer else (None, turn.text)
    if reply is not None and reply != turn.reply:
        return turn.text
    if is_debate:
        return words
    stance, remainder = split_stance(words)
    if stance is not None and stance != turn.stance:
        return words
    return strip_word_lines(remainder) if turn.manner in SPAN_NAMING_MODES else remainder


def describe_self_audit(turn: Turn) -> str:
    """Return named words, confidence and doubt, or that the last two were asked for in vain."""
    is_asked = turn.manner in SELF_AUDITED_MODES
    parts = describe_word_lines(turn.text) if turn.manner in SPAN_NAMING_MODES else []
    if turn.confidence is not None:
        parts.append(f"{format_percent(turn.confidence)} sure")
    elif is_asked:
        parts.append("states no confidence")
    if turn.doubt:
        parts.append(f"may be mistaken: {turn.doubt}")
    elif is_asked:
        parts.append("names no doubt")
    return " · ".join(parts)


def _stance_words(turn: AnyTurn, stance: Stance) -> tuple[str, str]:
    """Return (words before the stance, words after it); empty for a turn that only revises."""
    if turn.manner == "revise":  # its stance is not about the text that it writes
        return "", ""
    if turn.assigned is None:
        return "calls it", ""
    if turn.assigned == stance:
        return "argues, as assigned, that it is", ""
    return "calls it", f"although assigned {STANCE_LABELS[turn.assigned]}"


def summarize_signals(
    signals: Sequence[DebateSignal], debaters: Sequence[str], *, so_far: bool = False
) -> str:
    """Count each debater's signals of debate hacking by kind."""
    counts = count_signals(signals)
    name = "Signals of debate hacking" + (" so far" if so_far else "")
    parts = []
    for debater in debaters if counts else ():
        kinds = counts.get(debater, Counter())
        details = ", ".join(f"{number} {SIGNAL_WORDS[kind]}" for kind, number in kinds.items())
        parts.append(f"{debater} {kinds.total()} ({details})" if details else f"{debater} none")
    return f"{name}: {'; '.join(parts) or 'none'}."


def summarize_turn(turn: Turn) -> str:
    """Return round, debater, what was asked and the stance on one line of plain text."""
    before_stance, after_stance = _stance_words(turn, turn.stance)
    reply = REPLY_WORDS[turn.reply] if turn.manner in ANSWERING_MODES else ""
    parts = [
        _manner_words(turn),
        reply,
        f"{before_stance} {turn.stance}" if before_stance else "",
        after_stance,
    ]
    speaker = f"{round_heading(turn)}: {turn.debater} ({turn.agent})"
    return ", ".join([speaker, *(part for part in parts if part)])


@dataclass(frozen=True)
class OpenTurn:
    """A turn under way: its start event, and its words so far."""

    asked: TurnStarted
    words: str


RoundTurn = Turn | OpenTurn


@dataclass(frozen=True)
class DebateRound:
    """A round's turns from turn `number` on.

    `sides` says who argues what, if the sides change later.
    """

    number: int
    heading: str
    sides: str
    parts: tuple[RoundTurn, ...]

    @property
    def turns(self) -> list[Turn]:
        """The finished turns."""
        return [part for part in self.parts if isinstance(part, Turn)]

    @property
    def is_over(self) -> bool:
        """True if nobody speaks in it any more."""
        return len(self.turns) == len(self.parts)


def _request_of(part: RoundTurn) -> AnyTurn:
    return part.asked if isinstance(part, OpenTurn) else part


def split_rounds(
    turns: Sequence[Turn], speaking: Mapping[int, OpenTurn] | None = None
) -> list[DebateRound]:
    """Return all rounds in order, cut at phases in which all have one task (SC-MAKS)."""
    finished = {turn.number for turn in turns}
    under_way = [turn for number, turn in (speaking or {}).items() if number not in finished]
    # An imported trace may give two turns the same number: both are shown.
    parts: list[RoundTurn] = sorted([*turns, *under_way], key=lambda part: _request_of(part).number)
    debates, sides = _split_debates([_request_of(part) for part in parts])
    rounds: list[DebateRound] = []
    pairs = zip(parts, debates, strict=True)
    for (debate, heading), group in groupby(
        pairs, lambda p: (p[1], round_heading(_request_of(p[0])))
    ):
        for words, phase in _split_phases(heading, [part for part, _ in group]):
            number = _request_of(phase[0]).number
            rounds.append(DebateRound(number, words, sides.pop(debate, ""), tuple(phase)))
    return rounds


def _split_phases(heading: str, parts: Sequence[RoundTurn]) -> list[tuple[str, list[RoundTurn]]]:
    """Return the whole round, or a part for each manner if manners do not alternate."""
    phases = [
        (m, list(group)) for m, group in groupby(parts, key=lambda part: _request_of(part).manner)
    ]
    manners = [manner for manner, _ in phases]
    if len(phases) < 2 or len(set(manners)) < len(phases):
        return [(heading, list(parts))]
    return [(f"{heading}, {PHASE_WORDS.get(m, MANNER_WORDS[m])}", group) for m, group in phases]


def _split_debates(turns: Sequence[AnyTurn]) -> tuple[list[int], dict[int, str]]:
    """Return (each turn's debate, who argues what by debate).

    Another debate begins where debaters swap sides; of a single debate no sides are told.
    """
    debate, numbers = 1, []
    sides_by_debate: dict[int, dict[str, Stance]] = {}
    for turn in turns:
        if turn.assigned is not None:
            sides = sides_by_debate.setdefault(debate, {})
            others = {side for name, side in sides.items() if name != turn.debater}
            if sides.get(turn.debater, turn.assigned) != turn.assigned or turn.assigned in others:
                debate += 1
            sides_by_debate.setdefault(debate, {})[turn.debater] = turn.assigned
        numbers.append(debate)
    if len(sides_by_debate) < 2:
        return numbers, {}
    return numbers, {n: _sides_words(n, sides) for n, sides in sides_by_debate.items()}


def _sides_words(debate: int, sides: Mapping[str, Stance]) -> str:
    name = f"{ORDINALS[debate - 1]} debate" if debate <= len(ORDINALS) else f"Debate {debate}"
    change = ", the sides change hands" if debate > 1 else ""
    clauses = [f"{who} argues that it is {STANCE_LABELS[side]}" for who, side in sides.items()]
    return f"{name}{change}: {join_names(clauses)}."


def collect_asides(progress: RunState) -> dict[int, list[Html]]:
    """Return what stands between turns: notes, remarks, summaries, samples and weights.

    The key is the number of the turn that they follow; 0 is before the first.
    """
    notes = [div("cp-quiet", note, dir="auto") for note in progress.notes]
    placed = defaultdict[int, list[Html]](list, {0: notes})
    for remark, place in zip(progress.remarks, progress.remark_places, strict=True):
        head = _head_html(remark.by or "Somebody", "  a person, to all debaters")
        placed[place].append(_remark_html(head, remark.text))
    last = max((turn.number for turn in progress.turns), default=0)
    for brief in progress.summaries:  # folded, because it repeats what stands above it
        place = max((t.number for t in progress.turns if t.round <= brief.round), default=last)
        words = f"Round {brief.round} in brief, for the turns after it ({brief.agent})"
        text = div("cp-turn-said", brief.text, dir="auto")
        folded = element("details", element("summary", words), text, class_="cp-quiet")
        placed[place].append(folded)
    for number, sample in sorted(progress.samples.items()):
        judgement, place = sample.judgement, progress.sample_places[number]
        head = _head_html(judgement.agent, f"  {sample.note} ")
        label = LABEL_WORDS[judgement.label]
        head.append(element("span", label, class_=f"cp-tag cp-{judgement.label}"))
        placed[place].append(_remark_html(head, judgement.prose or judgement.text))
    if progress.weighed is not None:
        placed[last].append(render_weights(progress.weighed))
    return dict(placed)


def _head_html(name: str, about: str) -> list[Html]:
    return [element("span", name, class_="cp-turn-head"), element("span", about, class_="cp-quiet")]


def _remark_html(head: Sequence[Html], words: str) -> Html:
    text = div("cp-turn-said", words, dir="auto")
    return div("cp-turn cp-turn-person", element("div", *head), text)


def select_asides(
    placed: Mapping[int, Sequence[Html]], number: int, until: int | None
) -> list[Html]:
    """Return the asides after turn `number` and before turn `until`; None: to the end."""
    return [
        piece
        for place, pieces in sorted(placed.items())
        if number <= place and (until is None or place < until)
        for piece in pieces
    ]


def render_weights(weighed: ConsensusWeighed) -> Html:
    """Render how much each agent's answer counts, and their common probability."""
    method, learned, number = weighed.method.partition(LEARNED_WEIGHTS_MARKER)
    how = METHOD_WORDS.get(method, method) + (f" (weights {number})" if learned else "")
    weights = " · ".join(f"{name} {format_percent(weight)}" for name, weight in weighed.weights)
    words = f"Weighed {how}: {weights}. Together: {format_percent(weighed.p)} for hallucinated."
    return div("cp-quiet", words, dir="auto")


def list_spoken_texts(progress: RunState) -> list[str]:
    """Return as texts the turns with checked quotes, and what people and judges said between."""
    texts = [(0, words) for words in progress.notes]
    signals = find_signals(progress)
    sides = {one.number: one.sides for one in split_rounds(progress.turns) if one.sides}
    for turn in sorted(progress.turns, key=lambda turn: turn.number):
        quotes = [f"[{QUOTE_WORDS[q.status]}] {q.source}: {q.text}" for q in turn.quotes]
        above = [f"{sides[turn.number]}\n"] if turn.number in sides else []
        lines = [
            *above,
            f"{summarize_turn(turn)}:",
            visible_turn_text(turn),
            describe_self_audit(turn),
        ]
        lines += [f"Look at this: {s.words}" for s in signals if s.turn == turn.number]
        texts.append((turn.number, "\n".join([*filter(None, lines), *quotes])))
    for remark, place in zip(progress.remarks, progress.remark_places, strict=True):
        words = f"{remark.by or 'Somebody'}, a person, to all debaters:\n{remark.text}"
        texts.append((place, words))
    for number, sample in sorted(progress.samples.items()):
        judgement = sample.judgement
        head = f"{judgement.agent}, {sample.note}: {LABEL_WORDS[judgement.label].lower()}"
        place = progress.sample_places[number]
        texts.append((place, f"{head}\n{judgement.prose or judgement.text}"))
    return [text for _, text in sorted(texts, key=lambda item: item[0])]


def render_rounds(
    rounds: Sequence[DebateRound],
    signals: Sequence[DebateSignal] = (),
    placed: Mapping[int, Sequence[Html]] | None = None,
) -> list[Html]:
    """Render what precedes all turns, then each round; `placed` holds asides by turn number."""
    requests = [_request_of(part) for one in rounds for part in one.parts]
    debaters = list(dict.fromkeys(one.debater for one in requests))
    numbers = [one.number for one in requests]
    following = iter([*numbers[1:], None])
    before = select_asides(placed or {}, 0, numbers[0] if numbers else None)
    pieces = [join_html(before)] if before else []
    is_long = len(requests) > MAX_UNFOLDED_TURNS
    for one in rounds:
        parts: list[Html] = []
        for part in one.parts:
            number, place = _request_of(part).number, debaters.index(_request_of(part).debater) + 1
            if isinstance(part, OpenTurn):
                parts.append(_speaking_html(part, place))
            else:
                turn_signals = [signal.words for signal in signals if signal.turn == number]
                parts.append(render_turn(part, place, signals=turn_signals))
            parts += select_asides(placed or {}, number, next(following))
        pieces.append(
            _round_html(one, parts, folded=is_long and one is not rounds[-1] and one.is_over)
        )
    return pieces


def round_anchor(round_: DebateRound) -> str:
    """Return the id of a round's element, for links that lead there."""
    return f"cp-round-{round_.number}"


def _round_html(round_: DebateRound, parts: Sequence[Html], *, folded: bool) -> Html:
    sides = [div("cp-sides", round_.sides, dir="auto")] if round_.sides else []
    if not folded:
        return join_html([*sides, div("cp-quiet", round_.heading, id=round_anchor(round_)), *parts])
    # The id is inside, so that a link to it unfolds the round.
    details = div("cp-round-open", *parts, id=round_anchor(round_))
    summary = element("summary", summarize_round(round_.heading, round_.turns), dir="auto")
    return join_html([*sides, element("details", summary, details, class_="cp-round")])


def render_turn(
    turn: Turn, place: int, *, with_quotes: bool = True, signals: Sequence[str] = ()
) -> Html:
    """Render a finished turn: speaker, what was asked, stance, words, checked quotes."""
    words, statements = visible_turn_text(turn), describe_self_audit(turn)
    badge = [_reply_badge(turn.reply, turn.number)] if turn.manner in ANSWERING_MODES else []
    return div(
        f"cp-turn cp-turn-{place}",
        element("div", *_speaker_html(turn), *badge, *_stance_html(turn, turn.stance)),
        *([div("cp-turn-said", words, dir="auto")] if words else []),
        *([div("cp-quiet", statements, dir="auto")] if statements else []),
        *(map(render_quote, turn.quotes) if with_quotes else []),
        *([element("span", "cut at its length limit", class_="cp-quiet")] if turn.cut else []),
        *(div("cp-signal", f"⚑ {signal}", dir="auto") for signal in signals),
    )


def _speaker_html(turn: AnyTurn) -> list[Html]:
    parts = _head_html(turn.debater, f"  {turn.agent} ")
    manner = _manner_words(turn)
    return [*parts, element("span", f"{manner} ", class_="cp-manner")] if manner else parts


def _stance_html(turn: AnyTurn, stance: Stance) -> list[Html]:
    before_stance, after_stance = _stance_words(turn, stance)
    parts: list[Html] = []
    if before_stance:
        parts.append(element("span", f" {before_stance} ", class_="cp-quiet"))
        parts.append(element("span", STANCE_LABELS[stance], class_=f"cp-tag cp-{stance}"))
    if after_stance:
        parts.append(element("span", f" {after_stance}", class_="cp-quiet"))
    return parts


def _reply_badge(reply: TurnReply, number: int) -> Html:
    """Render a reply; the first turn replies to the statement itself."""
    words = REPLY_WORDS[reply] + (" with the statement" if number == 1 else "")
    return element("span", words, class_=f"cp-reply cp-reply-{reply}")


def render_quote(quote: Quote) -> Html:
    """Render a quote with its place and the result of checking it, as text, not as a button."""
    score = f", {quote.score:.0f} of 100" if quote.status == "fuzzy" else ""
    how = f"{QUOTE_SIGNS[quote.status]} {QUOTE_WORDS[quote.status]}{score}: "
    return div(
        f"cp-cited cp-cited-{quote.status}",
        element("span", how, class_="cp-cited-how"),
        f"“{shorten(quote.text, 120)}” ",
        element("span", format_source(quote), class_="cp-quiet"),
        dir="auto",
    )


def _speaking_html(under_way: OpenTurn, place: int) -> Html:
    start = under_way.asked
    reply, remainder = split_reply(under_way.words, under_way=True)
    stance, words = split_stance(remainder, under_way=True)
    badge = [_reply_badge(reply, start.number)] if reply else []
    side = stance or start.assigned
    badge += _stance_html(start, side) if side else []
    text = div("cp-turn-said cp-caret", words, dir="auto")
    return div(f"cp-turn cp-turn-{place}", element("div", *_speaker_html(start), *badge), text)
