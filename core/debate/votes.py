"""What several judgements or answers come to, where no judge decides.

The label is the one that more than half of all asked give. Who leaves it open, or whose reply is
lost, is still one of those asked: a label never comes of others' silence, nor of a fault. p is the
share of hallucinated among the answers that could be read, an open one counting half, so it lies on
the label's side of one half. Where too few could be heard there is no label. Several samples of one
question are counted alike (self-consistency); a built-in judge always says the same and is asked
once. Source: SC-MAKS 2.1.2, 2.1.3 and 4.4 (majority voting, low consensus abstains), table 1;
ColMAD 4.1 (two agree).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from core.agents.agent_runner import sampled
from core.agents.reply_parser import argument_in
from core.baseline.wording import capitalised, counted, listed, shortened, verdict_text
from core.debate.state import AT_ONCE, DebateState
from core.runtime.concurrency import merged
from core.schema.events import Event, ModelCalled, ProblemMet
from core.schema.progress import total_cost
from core.schema.records import Cause, Judgement, Label, Turn
from core.schema.roles import CaseView, JudgeView


def undecided(agent: str, cause: Cause, words: str, p: float | None = None) -> Judgement:
    """Unclear, and why in `words` that have no full stop."""
    text, why = f"No verdict: {words}.", f"{capitalised(words)}."
    return Judgement(agent, "unclear", text, cause=cause, cause_words=why, p=p)


@dataclass(frozen=True)
class VoteTally:
    """How many say which; `open` are answers that could be read, `lost` are none."""

    hallucinated: int
    supported: int
    open: int = 0
    lost: int = 0

    @property
    def cast(self) -> int:
        """The number of votes for a label."""
        return self.hallucinated + self.supported

    @property
    def asked(self) -> int:
        """The number of all who were asked."""
        return self.cast + self.open + self.lost

    @property
    def label(self) -> Label:
        """The one that more than half of all who were asked give; unclear where none is."""
        if 2 * self.hallucinated > self.asked:
            return "hallucinated"
        return "supported" if 2 * self.supported > self.asked else "unclear"

    @property
    def is_tie(self) -> bool:
        """True where everybody gave a label, and both are as frequent."""
        return self.hallucinated == self.supported and self.asked == self.cast > 0

    @property
    def p(self) -> float | None:
        """As the head of this file says; None where nobody gave a label."""
        answers = self.cast + self.open
        return (self.hallucinated + self.open / 2) / answers if self.cast else None

    def words(self, noun: str) -> str:
        """The vote in a sentence, as people read it; `noun` is what was counted."""
        verb = "says" if self.hallucinated == 1 else "say"
        said = f"{self.hallucinated} {verb} hallucinated, {self.supported} supported"
        silent = self.asked - self.cast
        rest = f", {silent} gave no label" if silent else ""
        return f"Of {counted(self.asked, noun)} {said}{rest}."


def tally(labels: Iterable[Label | None], whole: int = 0) -> VoteTally:
    """The votes of these; None is a lost one, and so are those that are missing of `whole`."""
    given = list(labels)
    read = [label for label in given if label is not None]
    hallucinated, supported = read.count("hallucinated"), read.count("supported")
    lost = max(whole, len(given)) - len(read)
    return VoteTally(hallucinated, supported, len(read) - hallucinated - supported, lost)


def without_majority(agent: str, votes: VoteTally, noun: str) -> Judgement:
    """Unclear, of votes for labels of which none has more than half."""
    words = f"{votes.words(noun)} Neither label has the majority"
    return undecided(agent, "not_settled", words, votes.p)


def barred(agent: str, view: CaseView) -> Judgement | None:
    """Unclear before anybody is asked: an image that cannot be read is not voted on."""
    if not view.unreadable_images:
        return None
    words = f"{listed(view.unreadable_images)} could not be read here"
    text, why = f"No verdict: {words}.", capitalised(words)
    return Judgement(agent, "unclear", text, cause="image_not_readable", cause_words=why)


def nobody_voted(agent: str, view: CaseView, answered: int) -> Judgement:
    """Unclear, of a vote in which no label was given; `answered` could be read and left it open."""
    if answered and not view.evidence.passages:
        return undecided(agent, "no_evidence", "There is no evidence to check it against")
    if answered:
        return undecided(agent, "not_settled", "Everybody who answered left it open")
    return undecided(agent, "unreadable_reply", "Nobody gave an answer that could be read")


MOST_SAID = 240  # characters of a reason


def last_answers(turns: Sequence[Turn]) -> tuple[Turn, ...]:
    """Each debater's last turn, in the order of their numbers."""
    last = {turn.debater: turn for turn in sorted(turns, key=lambda turn: turn.number)}
    return tuple(sorted(last.values(), key=lambda turn: turn.number))


def all_agree(answers: Sequence[Turn], debaters: int) -> bool:
    """True when every debater has answered, and all alike; one alone agrees with nobody."""
    return len(answers) == debaters > 1 and len({turn.stance for turn in answers}) == 1


def by_majority(agent: str, state: DebateState, answers: Sequence[Turn]) -> Judgement:
    """The judgement by these answers, one of each debater, with the surest one's reason."""
    votes = tally((turn.stance for turn in answers), len(state.debaters))
    if not votes.cast:
        return nobody_voted(agent, state.view, len(answers))
    label = votes.label
    if label == "unclear":
        return without_majority(agent, votes, "agent")
    own = [turn for turn in answers if turn.stance == label]
    surest = max(own, key=lambda turn: turn.confidence or 0.0)
    prose = f"{votes.words('agent')} {told(last_reason(state.progress.turns, surest))}"
    return Judgement(agent, label, verdict_text(label, prose), prose=prose, p=votes.p)


def last_reason(turns: Sequence[Turn], answer: Turn) -> Turn:
    """The debater's last turn that gives a reason for this answer, not for another's."""
    own = [
        turn
        for turn in turns
        if (turn.debater, turn.stance, turn.about) == (answer.debater, answer.stance, "")
        and turn.number <= answer.number
        and turn.manner != "revise"
    ]
    return max(own, key=lambda turn: turn.number, default=answer)


def told(turn: Turn) -> str:
    """Who says so and why, in one line; the vote that was counted has told the verdict."""
    return f"{turn.debater} ({turn.agent}): {shortened(argument_in(turn.text), MOST_SAID)}"


def drawn(state: DebateState, views: Sequence[JudgeView], note: str) -> Iterator[Event]:
    """The judgements on these views that are not there yet, all at once."""
    waiting = [seen for seen in views if seen.number not in state.progress.samples]
    streams = [partial(drawing, state, seen, note) for seen in waiting]
    yield from merged(streams, workers=AT_ONCE)


def drawing(state: DebateState, seen: JudgeView, note: str) -> Iterator[Event]:
    """One judgement's events; its cost is that of its own calls, whoever tells of them."""
    roster = replace(state.run.roster, calls_made=lambda: state.calls_made("")[0])
    for event in sampled(replace(state.run, roster=roster), seen, note):
        if event.kind == "judgement_sampled":
            calls, own = state.calls_made(seen.slot)
            yield from (ModelCalled(event.at, call) for call in calls)
            event = replace(event, cost=total_cost(own))
        yield event


def samples_of(state: DebateState, views: Sequence[JudgeView]) -> list[Judgement]:
    """What was concluded on these views, in their order."""
    samples = state.progress.samples
    return [samples[seen.number].judgement for seen in views if seen.number in samples]


def possible(state: DebateState, wanted: int) -> int:
    """How many of so many samples may differ: one of a judge that is built in."""
    return 1 if state.run.roster.judge.built_in else max(1, wanted)


def said_once(state: DebateState, wanted: int) -> Iterator[Event]:
    """That fewer samples are drawn than were asked for, where that is so."""
    if possible(state, wanted) < wanted and not state.progress.samples:
        words = (
            f"{state.run.roster.judge.name} always says the same about the same evidence, so it "
            f"was asked once instead of {wanted} times."
        )
        yield ProblemMet(state.run.now(), "judging", words)


def vote_of(samples: Sequence[Judgement]) -> Judgement:
    """The judgement that the samples come to: one of those of the label that most give."""
    votes = tally(None if s.cause == "unreadable_reply" else s.label for s in samples)
    if len(samples) == 1 or not votes.cast:
        return samples[0]
    if votes.label == "unclear":
        return without_majority(samples[0].agent, votes, "judgement")
    chosen = next(sample for sample in samples if sample.label == votes.label)
    words = votes.words("judgement")
    prose = f"{words} One of the {votes.label} ones: {chosen.prose or chosen.text}"
    return replace(chosen, p=votes.p, prose=prose)
