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

from core.agents.agent_runner import sample_judgement
from core.agents.reply_parser import parse_argument
from core.baseline.wording import capitalise, format_count, frame_verdict, join_quoted, shorten
from core.debate.state import MAX_PARALLEL_TURNS, DebateState
from core.runtime.concurrency import merge_streams
from core.schema.events import Event, ModelCalled, ProblemMet
from core.schema.records import Judgement, Label, Turn, UnclearCause
from core.schema.roles import CaseView, JudgeView
from core.schema.run_state import sum_costs

MAX_REASON_CHARS = 240  # characters of a reason


def make_undecided(
    agent: str, cause: UnclearCause, words: str, p: float | None = None
) -> Judgement:
    """Return an `unclear` judgement for the reason in `words`, which has no full stop."""
    text, why = f"No verdict: {words}.", f"{capitalise(words)}."
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
        return f"Of {format_count(self.asked, noun)} {votes}{rest}."


def count_votes(labels: Iterable[Label | None], whole: int = 0) -> VoteTally:
    """Count the labels; None is a lost vote, and so is each one missing from `whole`."""
    votes = list(labels)
    read = [label for label in votes if label is not None]
    hallucinated, supported = read.count("hallucinated"), read.count("supported")
    lost = max(whole, len(votes)) - len(read)
    return VoteTally(hallucinated, supported, len(read) - hallucinated - supported, lost)


def make_no_majority(agent: str, votes: VoteTally, noun: str) -> Judgement:
    """Return an `unclear` judgement for votes in which no label has more than half."""
    words = f"{votes.words(noun)} Neither label has the majority"
    return make_undecided(agent, "not_settled", words, votes.p)


def check_unreadable_images(agent: str, view: CaseView) -> Judgement | None:
    """Return an `unclear` judgement if an image is unreadable; nobody votes on that."""
    if not view.unreadable_images:
        return None
    words = f"{join_quoted(view.unreadable_images)} could not be read here"
    text, why = f"No verdict: {words}.", capitalise(words)
    return Judgement(agent, "unclear", text, cause="image_not_readable", cause_words=why)


def make_no_votes(agent: str, view: CaseView, answered: int) -> Judgement:
    """Return an `unclear` judgement for no votes; `answered` counts readable open answers."""
    if answered and not view.evidence.passages:
        return make_undecided(agent, "no_evidence", "There is no evidence to check it against")
    if answered:
        return make_undecided(agent, "not_settled", "Everybody who answered left it open")
    return make_undecided(agent, "unreadable_reply", "Nobody gave an answer that could be read")


def list_last_answers(turns: Sequence[Turn]) -> tuple[Turn, ...]:
    """Return each debater's last turn, ordered by number."""
    last = {turn.debater: turn for turn in sorted(turns, key=lambda turn: turn.number)}
    return tuple(sorted(last.values(), key=lambda turn: turn.number))


def is_unanimous(answers: Sequence[Turn], debaters: int) -> bool:
    """Return True if every one of at least two debaters has answered, and all alike."""
    return len(answers) == debaters > 1 and len({turn.stance for turn in answers}) == 1


def decide_by_majority(agent: str, state: DebateState, answers: Sequence[Turn]) -> Judgement:
    """Return the majority judgement of these answers, one per debater.

    It quotes the reason of the most confident one.
    """
    votes = count_votes((turn.stance for turn in answers), len(state.debaters))
    if not votes.cast:
        return make_no_votes(agent, state.view, len(answers))
    label = votes.label
    if label == "unclear":
        return make_no_majority(agent, votes, "agent")
    supporters = [turn for turn in answers if turn.stance == label]
    surest = max(supporters, key=lambda turn: turn.confidence or 0.0)
    prose = (
        f"{votes.words('agent')} {format_reason(find_last_reason(state.progress.turns, surest))}"
    )
    return Judgement(agent, label, frame_verdict(label, prose), prose=prose, p=votes.p)


def find_last_reason(turns: Sequence[Turn], answer: Turn) -> Turn:
    """Return the debater's last turn that gives a reason for this answer of its own."""
    reasons = [
        turn
        for turn in turns
        if (turn.debater, turn.stance, turn.about) == (answer.debater, answer.stance, "")
        and turn.number <= answer.number
        and turn.manner != "revise"
    ]
    return max(reasons, key=lambda turn: turn.number, default=answer)


def format_reason(turn: Turn) -> str:
    """Return who says so and why, in one line without the verdict."""
    return f"{turn.debater} ({turn.agent}): {shorten(parse_argument(turn.text), MAX_REASON_CHARS)}"


def draw_samples(state: DebateState, views: Sequence[JudgeView], note: str) -> Iterator[Event]:
    """Ask for the judgements on these views that are still missing, in parallel."""
    pending = [seen for seen in views if seen.number not in state.progress.samples]
    streams = [partial(draw_sample, state, seen, note) for seen in pending]
    yield from merge_streams(streams, workers=MAX_PARALLEL_TURNS)


def draw_sample(state: DebateState, seen: JudgeView, note: str) -> Iterator[Event]:
    """Yield one judgement's events; its cost is that of its own calls, whoever reports them."""
    roster = replace(state.run.roster, calls_made=lambda: state.calls_made("")[0])
    for event in sample_judgement(replace(state.run, roster=roster), seen, note):
        if event.kind == "judgement_sampled":
            new_calls, judgement_calls = state.calls_made(seen.slot)
            yield from (ModelCalled(event.at, call) for call in new_calls)
            event = replace(event, cost=sum_costs(judgement_calls))
        yield event


def list_samples(state: DebateState, views: Sequence[JudgeView]) -> list[Judgement]:
    """Return the judgements on these views, in the order of the views."""
    samples = state.progress.samples
    return [samples[seen.number].judgement for seen in views if seen.number in samples]


def count_useful_samples(state: DebateState, wanted: int) -> int:
    """Return how many samples to draw: one if the judge is built in, as they cannot differ."""
    return 1 if state.run.roster.judge.built_in else max(1, wanted)


def report_fewer_samples(state: DebateState, wanted: int) -> Iterator[Event]:
    """Report that fewer samples are drawn than were requested, if so."""
    if count_useful_samples(state, wanted) < wanted and not state.progress.samples:
        message = (
            f"{state.run.roster.judge.name} always says the same about the same evidence, so it "
            f"was asked once instead of {wanted} times."
        )
        yield ProblemMet(state.run.now(), "judging", message)


def decide_by_samples(samples: Sequence[Judgement]) -> Judgement:
    """Return a sample with the majority label, its prose led by the vote."""
    votes = count_votes(None if s.cause == "unreadable_reply" else s.label for s in samples)
    if len(samples) == 1 or not votes.cast:
        return samples[0]
    if votes.label == "unclear":
        return make_no_majority(samples[0].agent, votes, "judgement")
    chosen = next(sample for sample in samples if sample.label == votes.label)
    words = votes.words("judgement")
    prose = f"{words} One of the {votes.label} ones: {chosen.prose or chosen.text}"
    return replace(chosen, p=votes.p, prose=prose)
