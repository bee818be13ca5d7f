"""What stands between the turns of a debate: people's words, rounds in brief, samples, weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from components.markup import Html, element
from components.rounds import sides_told
from components.turn_words import said_words, stated_words, told_in_short
from components.words import LABEL_WORDS, QUOTE_WORDS, percent
from core.argued import ConsensusWeighed, JudgementSampled, PersonSpoke, RoundSummarised
from core.debate.signals import signals_of
from core.progress import Progress
from core.roles import LEARNED

METHOD_WORDS = {
    "uniform": "all alike",
    "record": "by how often each was right here",
    "logistic": "by how often each was right here, what they err in together counted once",
    "policy": "by how each answer fared in the debate",
}


def asides(progress: Progress) -> dict[int, list[Html]]:
    """By the number of the turn after which they stand; 0 is before the first."""
    placed: dict[int, list[Html]] = {0: [note_html(words) for words in progress.notes]}
    for said, place in zip(progress.remarks, progress.remark_places, strict=True):
        placed.setdefault(place, []).append(remark_html(said))
    last = max((turn.number for turn in progress.turns), default=0)
    for brief in progress.summaries:
        place = max((t.number for t in progress.turns if t.round <= brief.round), default=last)
        placed.setdefault(place, []).append(summary_html(brief))
    for number, sample in sorted(progress.samples.items()):
        placed.setdefault(progress.sample_places[number], []).append(sample_html(sample))
    if progress.weighed is not None:
        placed.setdefault(last, []).append(weights_html(progress.weighed))
    return placed


def after(placed: Mapping[int, Sequence[Html]], number: int, until: int | None) -> list[Html]:
    """Those that stand after that turn and before the turn `until`; None: to the end."""
    return [
        piece
        for place, pieces in sorted(placed.items())
        if number <= place and (until is None or place < until)
        for piece in pieces
    ]


def note_html(words: str) -> Html:
    """How the debate is held: a quiet line before the first turn."""
    return element("div", words, class_="cp-quiet", dir="auto")


def remark_html(said: PersonSpoke) -> Html:
    """What a person said in the middle of the debate."""
    head = element(
        "div",
        element("span", said.by or "Somebody", class_="cp-turn-head"),
        element("span", "  a person, to all debaters", class_="cp-quiet"),
    )
    words = element("div", said.text, class_="cp-turn-said", dir="auto")
    return element("div", head, words, class_="cp-turn cp-turn-person")


def summary_html(brief: RoundSummarised) -> Html:
    """A round in brief, folded: it repeats what stands above it."""
    return element(
        "details",
        element("summary", f"Round {brief.round} in brief, for the turns after it ({brief.agent})"),
        element("div", brief.text, class_="cp-turn-said", dir="auto"),
        class_="cp-quiet",
    )


def sample_html(sample: JudgementSampled) -> Html:
    """A judgement on the way, with what is different about it; the run's own follows from them."""
    judgement = sample.judgement
    head = element(
        "div",
        element("span", judgement.agent, class_="cp-turn-head"),
        element("span", f"  {sample.note} ", class_="cp-quiet"),
        element("span", LABEL_WORDS[judgement.label], class_=f"cp-tag cp-{judgement.label}"),
    )
    words = element("div", judgement.prose or judgement.text, class_="cp-turn-said", dir="auto")
    return element("div", head, words, class_="cp-turn cp-turn-person")


def weights_html(weighed: ConsensusWeighed) -> Html:
    """How much each agent's answer counts, and what they come to."""
    method, learned, number = weighed.method.partition(LEARNED)
    how = METHOD_WORDS.get(method, method) + (f" (weights {number})" if learned else "")
    who = " · ".join(f"{name} {percent(weight)}" for name, weight in weighed.weights)
    words = f"Weighed {how}: {who}. Together: {percent(weighed.p)} for hallucinated."
    return element("div", words, class_="cp-quiet", dir="auto")


def spoken_texts(progress: Progress) -> list[str]:
    """Turns, with their quotes as checked, and what people and judges said between them."""
    told = [(0, words) for words in progress.notes]
    signals, sides = signals_of(progress), sides_told(progress.turns)
    for turn in sorted(progress.turns, key=lambda turn: turn.number):
        quotes = [f"[{QUOTE_WORDS[q.status]}] {q.source}: {q.text}" for q in turn.quotes]
        above = [f"{sides[turn.number]}\n"] if turn.number in sides else []
        said = [*above, f"{told_in_short(turn)}:", said_words(turn), stated_words(turn)]
        said += [f"Look at this: {s.words}" for s in signals if s.turn == turn.number]
        told.append((turn.number, "\n".join([*(line for line in said if line), *quotes])))
    for remark, place in zip(progress.remarks, progress.remark_places, strict=True):
        told.append(
            (place, f"{remark.by or 'Somebody'}, a person, to all debaters:\n{remark.text}")
        )
    for number, sample in sorted(progress.samples.items()):
        judgement = sample.judgement
        head = f"{judgement.agent}, {sample.note}: {LABEL_WORDS[judgement.label].lower()}"
        place = progress.sample_places[number]
        told.append((place, f"{head}\n{judgement.prose or judgement.text}"))
    return [text for _, text in sorted(told, key=lambda item: item[0])]
