"""Count judgements or answers where no judge decides.

The label is the one that more than half of all agents asked give. An agent that leaves it open, or
whose reply is lost, still counts as asked: a label never comes from others' silence or from a
fault. p is the share of `hallucinated` among the readable answers, an open one counting half, so
that it lies on the label's side of one half. Where too few answers can be read there is no label.
Several samples of one question are counted alike (self-consistency); a built-in judge always says
the same and is asked once. Source: SC-MAKS 2.1.2, 2.1.3 and 4.4 (majority voting, low consensus
abstains), table 1; ColMAD 4.1 (two agree).
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

MOST_SAID = 240  # characters of a reason


def undecided(agent: str, cause: Cause, words: str, p: float | None = None) -> Judgement:
    """Return an `unclear` judgement for the reason in `words`, which has no full stop."""
    text, why = f"No verdict: {words}.", f"{capitalised(words)}."
    return Judgement(agent, "unclear", text, cause=cause, cause_words=why, p=p)


@dataclass(frozen=True)
class VoteTally:
    """Counts by label; `open` answers were readable but gave none, `lost` ones were unreadable."""

    hallucinated: int
    supported: int
    open: int = 0
    lost: int = 0

    @property
    def cast(self) -> int:
        """The number of votes for either label."""
        return self.hallucinated + self.supported

    @property
    def asked(self) -> int:
        """The number of agents asked."""
        return self.cast + self.open + self.lost

    @property
    def label(self) -> Label:
        """The label given by more than half of the agents asked, else `unclear`."""
        if 2 * self.hallucinated > self.asked:
            return "hallucinated"
        return "supported" if 2 * self.supported > self.asked else "unclear"

    @property
    def is_tie(self) -> bool:
        """Return True if everybody gave a label and both are equally frequent."""
        return self.hallucinated == self.supported and self.asked == self.cast > 0

    @property
    def p(self) -> float | None:
        """The p of the module docstring; None if nobody gave a label."""
        answers = self.cast + self.open
        return (self.hallucinated + self.open / 2) / answers if self.cast else None

    def words(self, noun: str) -> str:
        """Return the vote as a sentence for people; `noun` is what was counted."""
        verb = "says" if self.hallucinated == 1 else "say"
        votes = f"{self.hallucinated} {verb} hallucinated, {self.supported} supported"
        silent = self.asked - self.cast
        rest = f", {silent} gave no label" if silent else ""
        return f"Of {counted(self.asked, noun)} {votes}{rest}."


def tally(labels: Iterable[Label | None], whole: int = 0) -> VoteTally:
    """Count the labels; None is a lost vote, and so is each one missing from `whole`."""
    votes = list(labels)
    read = [label for label in votes if label is not None]
    hallucinated, supported = read.count("hallucinated"), read.count("supported")
    lost = max(whole, len(votes)) - len(read)
    return VoteTally(hallucinated, supported, len(read) - hallucinated - supported, lost)


def without_majority(agent: str, votes: VoteTally, noun: str) -> Judgement:
    """Return an `unclear` judgement for votes in which no label has more than half."""
    words = f"{votes.words(noun)} Neither label has the majority"
    return undecided(agent, "not_settled", words, votes.p)


def barred(agent: str, view: CaseView) -> Judgement | None:
    """Return an `unclear` judgement if an image is unreadable; nobody votes on that."""
    if not view.unreadable_images:
        return None
    words = f"{listed(view.unreadable_images)} could not be read here"
    text, why = f"No verdict: {words}.", capitalised(words)
    return Judgement(agent, "unclear", text, cause="image_not_readable", cause_words=why)


def nobody_voted(agent: str, view: CaseView, answered: int) -> Judgement:
    """Return an `unclear` judgement for no votes; `answered` counts readable open answers."""
    if answered and not view.evidence.passages:
        return undecided(agent, "no_evidence", "There is no evidence to check it against")
    if answered:
        return undecided(agent, "not_settled", "Everybody who answered left it open")
    return undecided(agent, "unreadable_reply", "Nobody gave an answer that could be read")


def last_answers(turns: Sequence[Turn]) -> tuple[Turn, ...]:
    """Return each debater's last turn, ordered by number."""
    last = {turn.debater: turn for turn in sorted(turns, key=lambda turn: turn.number)}
    return tuple(sorted(last.values(), key=lambda turn: turn.number))


def all_agree(answers: Sequence[Turn], debaters: int) -> bool:
    """Return True if every one of at least two debaters has answered, and all alike."""
    return len(answers) == debaters > 1 and len({turn.stance for turn in answers}) == 1


def by_majority(agent: str, state: DebateState, answers: Sequence[Turn]) -> Judgement:
    """Return the majority judgement of these answers, one per debater.

    It quotes the reason of the most confident one.
    """
    votes = tally((turn.stance for turn in answers), len(state.debaters))
    if not votes.cast:
        return nobody_voted(agent, state.view, len(answers))
    label = votes.label
    if label == "unclear":
        return without_majority(agent, votes, "agent")
    supporters = [turn for turn in answers if turn.stance == label]
    surest = max(supporters, key=lambda turn: turn.confidence or 0.0)
    prose = f"{votes.words('agent')} {told(last_reason(state.progress.turns, surest))}"
    return Judgement(agent, label, verdict_text(label, prose), prose=prose, p=votes.p)


def last_reason(turns: Sequence[Turn], answer: Turn) -> Turn:
    """Return the debater's last turn that gives a reason for this answer of its own."""
    reasons = [
        turn
        for turn in turns
        if (turn.debater, turn.stance, turn.about) == (answer.debater, answer.stance, "")
        and turn.number <= answer.number
        and turn.manner != "revise"
    ]
    return max(reasons, key=lambda turn: turn.number, default=answer)


def told(turn: Turn) -> str:
    """Return who says so and why, in one line without the verdict."""
    return f"{turn.debater} ({turn.agent}): {shortened(argument_in(turn.text), MOST_SAID)}"


def drawn(state: DebateState, views: Sequence[JudgeView], note: str) -> Iterator[Event]:
    """Ask for the judgements on these views that are still missing, in parallel."""
    pending = [seen for seen in views if seen.number not in state.progress.samples]
    streams = [partial(drawing, state, seen, note) for seen in pending]
    yield from merged(streams, workers=AT_ONCE)


def drawing(state: DebateState, seen: JudgeView, note: str) -> Iterator[Event]:
    """Yield one judgement's events; its cost is that of its own calls, whoever reports them."""
    roster = replace(state.run.roster, calls_made=lambda: state.calls_made("")[0])
    for event in sampled(replace(state.run, roster=roster), seen, note):
        if event.kind == "judgement_sampled":
            new_calls, judgement_calls = state.calls_made(seen.slot)
            yield from (ModelCalled(event.at, call) for call in new_calls)
            event = replace(event, cost=total_cost(judgement_calls))
        yield event


def samples_of(state: DebateState, views: Sequence[JudgeView]) -> list[Judgement]:
    """Return the judgements on these views, in the order of the views."""
    samples = state.progress.samples
    return [samples[seen.number].judgement for seen in views if seen.number in samples]


def possible(state: DebateState, wanted: int) -> int:
    """Return how many samples to draw: one if the judge is built in, as they cannot differ."""
    return 1 if state.run.roster.judge.built_in else max(1, wanted)


def said_once(state: DebateState, wanted: int) -> Iterator[Event]:
    """Report that fewer samples are drawn than were requested, if so."""
    if possible(state, wanted) < wanted and not state.progress.samples:
        message = (
            f"{state.run.roster.judge.name} always says the same about the same evidence, so it "
            f"was asked once instead of {wanted} times."
        )
        yield ProblemMet(state.run.now(), "judging", message)


def vote_of(samples: Sequence[Judgement]) -> Judgement:
    """Return a sample with the majority label, its prose led by the vote."""
    votes = tally(None if s.cause == "unreadable_reply" else s.label for s in samples)
    if len(samples) == 1 or not votes.cast:
        return samples[0]
    if votes.label == "unclear":
        return without_majority(samples[0].agent, votes, "judgement")
    chosen = next(sample for sample in samples if sample.label == votes.label)
    words = votes.words("judgement")
    prose = f"{words} One of the {votes.label} ones: {chosen.prose or chosen.text}"
    return replace(chosen, p=votes.p, prose=prose)
