"""The built-in debaters, agent C and agent B: readers of one evidence who go by different things.

Each debater has a small model over its own features, fitted with the evidence model's; what they
say is drawn from what was measured. Agent C shares the evidence out so that they have something to
tell each other (CEDA 3.3), sums up rounds and corrects responses (SC-MAKS 3.4); B reads images.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from core.baseline.assessment import Assessment, Assessor, best_passage, points_of
from core.baseline.evidence import Window
from core.baseline.evidence_model import Part
from core.baseline.wording import (
    DOUBTS,
    RULES,
    SIDES,
    WORDS_OF_STANCE,
    cited,
    counted,
    edits_of,
    in_brief,
    listed,
    listed_plainly,
    quote_of,
    reply_to,
    shortened,
    with_edits,
)
from core.documents.segmentation import WORD, query_terms, terms
from core.runtime.concurrency import Stop
from core.schema.records import (
    Case,
    Context,
    Judgement,
    Passage,
    Point,
    Quote,
    Share,
    Source,
    Stance,
    Turn,
)
from core.schema.roles import CaseView, DebateView, JudgeView, Speak

LEAST_LETTERS = 3


class OcrImageReader:
    """Built-in image reader: text in images only."""

    name = "OCR image reader"
    built_in = True
    rule = RULES["image reader"]

    def describe(self, case: Case, image: Source, stop: Stop) -> str:
        """The lines that were read, or an empty text."""
        if sum(letter.isalnum() for letter in image.text) < LEAST_LETTERS:
            return ""
        lines = [line.strip() for line in image.text.splitlines() if line.strip()]
        return f"Written in {image.name}: " + "; ".join(lines) + "."


MOST_WORDS = 150  # of a summary
NO_QUOTE = "Nothing new was quoted from the sources."


class BuiltInContextWriter:
    """Built-in agent C."""

    name = "Context writer"
    built_in = True
    rule = RULES["context writer"]

    def __init__(self, assessor: Assessor) -> None:
        self._assessor = assessor

    def write(self, view: CaseView, debaters: Sequence[str], stop: Stop) -> Context:
        """Each debater's share, the judge's whole, and the conflicts between sources."""
        shares: dict[str, list[str]] = {name: [] for name in debaters}
        whole: list[str] = []
        for statement in view.statements:
            ids = view.evidence.by_statement.get(statement.index, ())
            whole.extend(ids)
            for place, passage_id in enumerate(ids):
                for number, name in enumerate(debaters):
                    if place < (len(ids) + 1) // 2 or place % len(debaters) == number:
                        shares[name].append(passage_id)
        distinct = tuple(dict.fromkeys(whole))
        sources = len({view.evidence.passages[i].source_id for i in distinct})
        summary = (
            f"{counted(len(distinct), 'passage')} from {counted(sources, 'source')} "
            f"for {counted(len(view.statements), 'statement')}."
        )
        return Context(
            tuple(Share(name, tuple(dict.fromkeys(ids))) for name, ids in shares.items()),
            distinct,
            summary,
            tuple(
                f"On “{item.statement.text}” {cited(item.conflict[0])} stands against "
                f"{cited(item.conflict[1])}."
                for item in (self._assessor.assess(view, stop) if sources > 1 else ())
                if item.conflict
            ),
        )

    def summarise(self, view: CaseView, turns: Sequence[Turn], before: str, stop: Stop) -> str:
        """What was newly quoted, by whom, for which stance."""
        stop.check()
        return round_summary(turns, before)

    def revise(self, view: JudgeView, judgement: Judgement, stop: Stop) -> str:
        """The response with the sources' values in the places of wrong ones."""
        stop.check()
        response = view.view.case.response
        said = [point for turn in view.turns for point in turn.points]
        return with_edits(response, edits_of([*judgement.points, *said], response))


def round_summary(turns: Sequence[Turn], before: str) -> str:
    """What stood `before`, and a line for every quote that is new, in the order of the turns.

    Only what our code found in the sources; the oldest lines go where they pass the limit.
    """
    quoting: dict[str, dict[Stance, dict[str, None]]] = {}
    sources: dict[str, str] = {}
    for turn in turns:
        for quote in turn.quotes:
            text = shortened(quote.text)
            if quote.status == "verified" and text not in before:
                sources.setdefault(text, f" ({quote.source})" if quote.source else "")
                quoting.setdefault(text, {}).setdefault(turn.stance, {})[turn.debater] = None
    lines = before.splitlines()
    for text, by_stance in quoting.items():
        who = "; ".join(
            f"{listed_plainly(list(names))} for “{WORDS_OF_STANCE[stance]}”"
            for stance, names in by_stance.items()
        )
        lines.append(f"“{text}”{sources[text]}: quoted by {who}.")
    lines = list(dict.fromkeys(lines if quoting else [*lines, NO_QUOTE]))
    while len(lines) > 1 and sum(len(line.split()) for line in lines) > MOST_WORDS:
        lines = lines[1:]
    return "\n".join(lines)


MOST_QUOTES = 2
MOST_SURE = 0.95  # that the sources have every word makes nothing certain
NOTHING_NEW = "I have nothing new"
QUOTED = re.compile(r"[“„«「『\"]([^“”„«»「」『』\"]{4,})[”»」』\"]")
VALUE = re.compile(r"\d+(?:[.,]\d+)*")
ENDING = re.compile(r"\.\w{1,5}$")
NAME_CHARACTERS = 40
LEAST_NAME = 4  # characters of a file's name that can be told from a word
NO_STATEMENT = "There is nothing in this text that sources could speak about."
NO_PASSAGE = "I was given no passage that speaks about this."
NOT_KNOWN = "I do not know the language of this text or of its sources."
ON_THE_WHOLE = "No single place decides it; I go by the whole."
SAID_FROM = 0.5  # from here on a passage is said to support or to contradict a statement


@dataclass(frozen=True)
class Opinion:
    """A debater's own view of one statement: its assessment by the debater's own model."""

    item: Assessment
    points: tuple[Point, ...]


Says = Callable[[Opinion], list[str]]


@dataclass(frozen=True)
class Kind:
    """What makes a debater one of its kind."""

    name: str
    part: Part
    says: Mapping[Stance, Says]


class BuiltInDebater:
    """A built-in debater of one kind; deterministic for one reader and one model."""

    built_in = True

    def __init__(self, kind: Kind, assessor: Assessor) -> None:
        self._kind, self._assessor = kind, assessor
        self.name, self.rule = kind.name, RULES[kind.name]

    def argue(self, view: DebateView, speak: Speak, stop: Stop) -> Turn:
        """One turn over all statements, the one that decides first."""
        quoted = {(quote.source_id, quote.start) for turn in view.turns for quote in turn.quotes}
        passages = view.view.evidence.passages.values()
        allowed = view.share.union(
            (p.id for p in passages if (p.source_id, p.start) in quoted),
            (passage.id for passage in pointed_at(view)),
        )
        opinions = [
            self._opinion(item, stop)
            for item in self._assessor.assess(view.view, stop, allowed=allowed)
        ]
        stance = overall([opinion.item.label for opinion in opinions])
        words, quotes, doubt = self._found(opinions, stance)
        confidence = None
        if view.manner == "answer":
            confidence = round(min(_strength(opinions, stance), MOST_SURE), 2) if doubt else None
        else:
            words, doubt = new_words(words, stance, quotes, view), ""
        reply = reply_to(stance, view.turns)
        opening = SIDES[stance] if view.manner == "answer" else reply.upper()
        lines = [in_brief([f"{opening}.", *answered(view), *words])]
        if confidence is not None:
            lines.append(f"Confidence: {round(100 * confidence)} %")
        if doubt:
            lines.append(f"Doubt: {doubt}")
        text = "\n".join(lines)
        speak(text)
        return Turn(
            debater=view.debater,
            agent=self.name,
            number=view.number,
            round=view.round,
            reply=reply,
            stance=stance,
            text=text,
            quotes=quotes,
            points=tuple(point for opinion in opinions for point in opinion.points),
            confidence=confidence,
            doubt=doubt,
        )

    def _opinion(self, item: Assessment, stop: Stop) -> Opinion:
        p = self._assessor.model.part(self._kind.part, item.measured)
        is_open = item.label == "unclear" and item.cause != "not_settled"
        stance = "unclear" if is_open else self._assessor.model.label(p)
        held = Assessment(item.measured, p, stance, None if stance != "unclear" else item.cause)
        return Opinion(held, points_of(held, self._assessor.reader, stop))

    def _found(
        self, opinions: Sequence[Opinion], stance: Stance
    ) -> tuple[list[str], tuple[Quote, ...], str]:
        """What speaks for its stance: sentences, the passages quoted in them, and its doubt.

        The doubt is the one way in which it would most likely be mistaken; "" where it cannot
        measure.
        """
        if not opinions:
            return [NO_STATEMENT], (), ""
        if all(opinion.item.cause == "language_not_known" for opinion in opinions):
            return [NOT_KNOWN], (), ""
        sign = {"hallucinated": -1, "supported": 1}.get(stance)  # the one that speaks for it most
        chosen = min(opinions, key=lambda o: sign * o.item.p if sign else abs(o.item.p - 0.5))
        words = self._kind.says[stance](chosen) or [ON_THE_WHOLE]
        if len(opinions) > 1:
            count = sum(opinion.item.label == stance for opinion in opinions)
            verb = "is" if count == 1 else "are"
            whole = counted(len(opinions), "statement")
            words = [f"In my view {count} of {whole} {verb} {VIEWS[stance]}.", *words]
        is_its_own = chosen.item.label == stance
        quotes = [point.quote for point in chosen.points if point.quote and is_its_own]
        if found := _passage(chosen, stance):
            quotes.append(quote_of(found[0]))
        quotes = list(dict.fromkeys(quotes))[:MOST_QUOTES]
        return words, tuple(quotes), DOUBTS[self._kind.name][stance]


VIEWS: Mapping[Stance, str] = {
    "supported": "right", "hallucinated": "wrong", "unclear": "not decided"
}  # fmt: skip


def _own_turns(view: DebateView) -> list[Turn]:
    return [turn for turn in view.turns if turn.debater == view.debater]


def new_words(
    sentences: Sequence[str], stance: Stance, quotes: Sequence[Quote], view: DebateView
) -> list[str]:
    """Those of the sentences for that stance that it has not said yet; without any, that it is so.

    Who came to an end of them before has none: turns from before that are not always shown.
    """
    own = _own_turns(view)
    if not own or own[-1].stance != stance:
        return list(sentences)
    is_over = has_come_to_an_end(quotes, stance, view)
    before = [turn.text.casefold() for turn in own]
    fresh = [one for one in sentences if not any(one.casefold() in text for text in before)]
    return [nothing_new(stance, quotes)] if is_over or not fresh else fresh


def has_come_to_an_end(quotes: Sequence[Quote], stance: Stance, view: DebateView) -> bool:
    """True where its last turn said that there was nothing new, and these are its quotes still."""
    return any(
        NOTHING_NEW in turn.text
        and turn.stance == stance
        and {quote.text for quote in quotes} <= {quote.text for quote in turn.quotes}
        for turn in _own_turns(view)[-1:]
    )


def nothing_new(stance: Stance, quotes: Sequence[Quote]) -> str:
    """In a few words: the stance that it holds to, and what it has quoted for it."""
    texts = list(dict.fromkeys(quote.text for quote in quotes))[:MOST_QUOTES]
    quoted = f"quoted {listed(texts)} and " if texts else ""
    return f"{NOTHING_NEW}: I {quoted}hold to “{WORDS_OF_STANCE[stance]}”."


def pointed_at(view: DebateView) -> tuple[Passage, ...]:
    """The passages that people's words quote, whose source they name, or that hold their values."""
    said = " ".join(words for _, words in view.remarks).casefold()
    quoted = [" ".join(found.split()) for found in QUOTED.findall(said)]
    values, found = set(VALUE.findall(said)), []
    for passage in view.view.evidence.passages.values():
        name = ENDING.sub("", passage.source.casefold())
        is_quoted = any(one in " ".join(passage.text.casefold().split()) for one in quoted)
        is_named = len(name) >= LEAST_NAME and name in said
        if is_named or is_quoted or values & set(VALUE.findall(passage.text)):
            found.append(passage)
    return tuple(found)


def answered(view: DebateView) -> list[str]:
    """What is said to people, in one sentence, where it was not said yet; nothing unless asked."""
    if not view.remarks:
        return []
    who = shortened(" ".join(view.remarks[-1][0].split()) or "somebody", NAME_CHARACTERS)
    words = f"What {who} says names nothing in the sources; I go by the evidence alone."
    if found := pointed_at(view):
        words = f"I have read what {who} points to: {cited(found[0])}."
    return [] if any(words in turn.text for turn in _own_turns(view)) else [words]


def overall(stances: Sequence[Stance]) -> Stance:
    """One wrong statement makes the response wrong; all must hold for it to be supported."""
    if "hallucinated" in stances:
        return "hallucinated"
    return "supported" if stances and set(stances) == {"supported"} else "unclear"


def _strength(opinions: Sequence[Opinion], side: Stance) -> float:
    """How far the debater is on that side by its own measure."""
    worst = max(opinion.item.p for opinion in opinions)
    if side == "unclear":
        return 1.0 - abs(2.0 * worst - 1.0)
    return worst if side == "hallucinated" else 1.0 - worst


def _passage(opinion: Opinion, side: Stance) -> tuple[Passage, Window] | None:
    """The passage that speaks for the side most, with its window."""
    reading = opinion.item.measured.reading
    window = reading.contradicting if side == "hallucinated" else reading.supporting
    return (best_passage(window, opinion.item), window) if window else None


def _by_meaning(side: Stance) -> Says:
    """What the closest passage means for the statement; nothing where it speaks against that."""

    def says(opinion: Opinion) -> list[str]:
        found = _passage(opinion, side)
        if found is None:
            return [NO_PASSAGE]
        passage, reading = found[0], found[1].reading
        if side == "hallucinated" and reading.contradicted >= SAID_FROM:
            return [f"{cited(passage)} cannot be true together with it."]
        if reading.supported >= SAID_FROM:
            return [f"{cited(passage)} says so."] if side == "supported" else []
        if side == "supported":
            return []
        return [f"{cited(passage)} comes closest; it neither says nor denies it."]

    return says


def _values_agree(opinion: Opinion) -> list[str]:
    same = [v.text for v in opinion.item.measured.values if v.status in ("same", "derived")]
    if same:
        return [f"The sources have {listed(same)} as the statement says."]
    return ["No number, date or name of the statement differs from the sources."]


def _values_differ(opinion: Opinion) -> list[str]:
    different = [v for v in opinion.item.measured.values if v.status == "different"]
    words = [f"The statement says “{v.text}”, the source “{v.instead}”." for v in different[:2]]
    unmatched = [v.text for v in opinion.item.measured.values if v.status == "unmatched"]
    missing = unmatched or _missing_words(opinion)[0]
    return words or ([f"No source has {listed(missing)}."] if missing else [])


def _no_values(opinion: Opinion) -> list[str]:
    values = opinion.item.measured.values
    if values and all(value.status in ("same", "derived") for value in values):
        return [f"The sources have {listed([v.text for v in values])}; whether of the same thing, "
                "I cannot tell."]  # fmt: skip
    if values:
        return ["I cannot tell whether the numbers and dates speak of the same thing."]
    return ["There is no number or date in it that I could compare."]


def _missing_words(opinion: Opinion) -> tuple[list[str], int]:
    """The statement's words that no passage has, and how many words it has."""
    reading = opinion.item.measured.reading
    own = reading.claim[reading.own_start :]
    held = {term for window in reading.windows for term in terms(window.text)}
    wanted = set(query_terms(own))
    by_word = {word: wanted & set(terms(word)) for word in WORD.findall(own)}
    telling = {word: found for word, found in by_word.items() if found}
    return [word for word, found in telling.items() if found.isdisjoint(held)], len(telling)


def _mostly_there(opinion: Opinion) -> list[str]:
    missing, count = _missing_words(opinion)
    there = count - len(missing)
    verb = "appears" if there == 1 else "appear"
    return [f"{there} of its {counted(count, 'word')} {verb} in the sources."]


def _mostly_missing(opinion: Opinion) -> list[str]:
    missing, count = _missing_words(opinion)
    verb = "appears" if len(missing) == 1 else "appear"
    if not missing:
        return []
    return [f"Of its {counted(count, 'word')} {listed(missing)} {verb} in none of my passages."]


ENTAILMENT = Kind("Entailment reader", "reading", {stance: _by_meaning(stance) for stance in VIEWS})
VALUES = Kind(
    "Value checker",
    "values",
    {"supported": _values_agree, "hallucinated": _values_differ, "unclear": _no_values},
)
OVERLAP = Kind(
    "Overlap reader",
    "coverage",
    {"supported": _mostly_there, "hallucinated": _mostly_missing, "unclear": _mostly_missing},
)
KINDS: Mapping[str, Kind] = {"entailment": ENTAILMENT, "rules": VALUES, "overlap": OVERLAP}
"""By the name under which rosters keep them."""
