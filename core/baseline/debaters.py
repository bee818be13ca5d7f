"""The built-in debaters, the context writer (agent C) and the image reader (agent B).

Each debater has a small model over its own family of features, fitted with the evidence model's,
and its words follow from those measurements. Agent C divides the evidence so that debaters have
something to tell each other (CEDA 3.3), summarises rounds and corrects responses (SC-MAKS 3.4).
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
MOST_WORDS = 150  # of a summary
NO_QUOTE = "Nothing new was quoted from the sources."
MOST_QUOTES = 2
MOST_SURE = 0.95  # even if the sources have every word, nothing is certain
NOTHING_NEW = "I have nothing new"
QUOTED = re.compile(r"[“„«「『\"]([^“”„«»「」『』\"]{4,})[”»」』\"]")
VALUE = re.compile(r"\d+(?:[.,]\d+)*")
ENDING = re.compile(r"\.\w{1,5}$")
NAME_CHARACTERS = 40
LEAST_NAME = 4  # characters from which a file's name differs from a common word
NO_STATEMENT = "There is nothing in this text that sources could speak about."
NO_PASSAGE = "I was given no passage that speaks about this."
NOT_KNOWN = "I do not know the language of this text or of its sources."
ON_THE_WHOLE = "No single place decides it; I go by the whole."
SAID_FROM = 0.5  # probability from which a passage supports or contradicts a statement
VIEWS: Mapping[Stance, str] = {
    "supported": "right", "hallucinated": "wrong", "unclear": "not decided"
}  # fmt: skip


class OcrImageReader:
    """The built-in image reader: it reads text in images and nothing else."""

    name = "OCR image reader"
    built_in = True
    rule = RULES["image reader"]

    def describe(self, case: Case, image: Source, stop: Stop) -> str:
        """Return the lines that OCR found in the image, or an empty text."""
        if sum(letter.isalnum() for letter in image.text) < LEAST_LETTERS:
            return ""
        lines = [line.strip() for line in image.text.splitlines() if line.strip()]
        return f"Written in {image.name}: " + "; ".join(lines) + "."


class BuiltInContextWriter:
    """The built-in agent C."""

    name = "Context writer"
    built_in = True
    rule = RULES["context writer"]

    def __init__(self, assessor: Assessor) -> None:
        self._assessor = assessor

    def write(self, view: CaseView, debaters: Sequence[str], stop: Stop) -> Context:
        """Return each share, all passages for the judge, and the conflicts between sources."""
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
        conflicts = tuple(
            f"On “{item.statement.text}” {cited(item.conflict[0])} stands against "
            f"{cited(item.conflict[1])}."
            for item in (self._assessor.assess(view, stop) if sources > 1 else ())
            if item.conflict
        )
        parts = (Share(name, tuple(dict.fromkeys(ids))) for name, ids in shares.items())
        return Context(tuple(parts), distinct, summary, conflicts)

    def summarise(self, view: CaseView, turns: Sequence[Turn], before: str, stop: Stop) -> str:
        """Return the new quotes of a round, each with who quoted it for which stance."""
        stop.check()
        return round_summary(turns, before)

    def revise(self, view: JudgeView, judgement: Judgement, stop: Stop) -> str:
        """Return the response with wrong values replaced by the sources' values."""
        stop.check()
        response = view.view.case.response
        debated = [point for turn in view.turns for point in turn.points]
        return with_edits(response, edits_of([*judgement.points, *debated], response))


def round_summary(turns: Sequence[Turn], before: str) -> str:
    """Return the summary `before` plus a line for each new verified quote, in order of the turns.

    The oldest lines are dropped if the summary exceeds the word limit.
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
        quoters = "; ".join(
            f"{listed_plainly(list(names))} for “{WORDS_OF_STANCE[stance]}”"
            for stance, names in by_stance.items()
        )
        lines.append(f"“{text}”{sources[text]}: quoted by {quoters}.")
    lines = list(dict.fromkeys(lines if quoting else [*lines, NO_QUOTE]))
    while len(lines) > 1 and sum(len(line.split()) for line in lines) > MOST_WORDS:
        lines = lines[1:]
    return "\n".join(lines)


@dataclass(frozen=True)
class Opinion:
    """A debater's view of one statement: the assessment by its own model, and its points."""

    item: Assessment
    points: tuple[Point, ...]


Says = Callable[[Opinion], list[str]]


@dataclass(frozen=True)
class Kind:
    """A kind of debater: its name, the features it goes by and the wording of each stance."""

    name: str
    part: Part
    says: Mapping[Stance, Says]


class BuiltInDebater:
    """A built-in debater of one kind; deterministic for a given reader and model."""

    built_in = True

    def __init__(self, kind: Kind, assessor: Assessor) -> None:
        self._kind, self._assessor = kind, assessor
        self.name, self.rule = kind.name, RULES[kind.name]

    def argue(self, view: DebateView, speak: Speak, stop: Stop) -> Turn:
        """Return one turn over all statements, led by the decisive one."""
        quoted = {(quote.source_id, quote.start) for turn in view.turns for quote in turn.quotes}
        passages = view.view.evidence.passages.values()
        allowed = view.share.union(
            (p.id for p in passages if (p.source_id, p.start) in quoted),
            (passage.id for passage in pointed_at(view)),
        )
        opinions = [
            self._form_opinion(item, stop)
            for item in self._assessor.assess(view.view, stop, allowed=allowed)
        ]
        stance = overall([opinion.item.label for opinion in opinions])
        words, quotes, doubt = self._argue_stance(opinions, stance)
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

    def _form_opinion(self, item: Assessment, stop: Stop) -> Opinion:
        p = self._assessor.model.part(self._kind.part, item.measured)
        is_undecided = item.label == "unclear" and item.cause != "not_settled"
        stance = "unclear" if is_undecided else self._assessor.model.label(p)
        cause = item.cause if stance == "unclear" else None
        assessment = Assessment(item.measured, p, stance, cause)
        return Opinion(assessment, points_of(assessment, self._assessor.reader, stop))

    def _argue_stance(
        self, opinions: Sequence[Opinion], stance: Stance
    ) -> tuple[list[str], tuple[Quote, ...], str]:
        """Return the sentences and quotes for its stance, and its doubt.

        The doubt is the way in which it is most likely mistaken; "" if it cannot measure any.
        """
        if not opinions:
            return [NO_STATEMENT], (), ""
        if all(opinion.item.cause == "language_not_known" for opinion in opinions):
            return [NOT_KNOWN], (), ""
        # The statement that speaks for the stance most is discussed.
        sign = {"hallucinated": -1, "supported": 1}.get(stance)
        chosen = min(opinions, key=lambda o: sign * o.item.p if sign else abs(o.item.p - 0.5))
        words = self._kind.says[stance](chosen) or [ON_THE_WHOLE]
        if len(opinions) > 1:
            count = sum(opinion.item.label == stance for opinion in opinions)
            verb = "is" if count == 1 else "are"
            total = counted(len(opinions), "statement")
            words = [f"In my view {count} of {total} {verb} {VIEWS[stance]}.", *words]
        is_its_own = chosen.item.label == stance
        quotes = [point.quote for point in chosen.points if point.quote and is_its_own]
        if best := _best_passage(chosen, stance):
            quotes.append(quote_of(best[0]))
        quotes = list(dict.fromkeys(quotes))[:MOST_QUOTES]
        return words, tuple(quotes), DOUBTS[self._kind.name][stance]


def _own_turns(view: DebateView) -> list[Turn]:
    return [turn for turn in view.turns if turn.debater == view.debater]


def new_words(
    sentences: Sequence[str], stance: Stance, quotes: Sequence[Quote], view: DebateView
) -> list[str]:
    """Return the sentences that the debater has not said yet, or one that it has nothing new.

    A debater that has once run out stays out: its earlier turns are not always in the view.
    """
    turns = _own_turns(view)
    if not turns or turns[-1].stance != stance:
        return list(sentences)
    has_ended = has_come_to_an_end(quotes, stance, view)
    before = [turn.text.casefold() for turn in turns]
    new = [one for one in sentences if not any(one.casefold() in text for text in before)]
    return [nothing_new(stance, quotes)] if has_ended or not new else new


def has_come_to_an_end(quotes: Sequence[Quote], stance: Stance, view: DebateView) -> bool:
    """Return True if its last turn said it had nothing new, with the same stance and quotes."""
    return any(
        NOTHING_NEW in turn.text
        and turn.stance == stance
        and {quote.text for quote in quotes} <= {quote.text for quote in turn.quotes}
        for turn in _own_turns(view)[-1:]
    )


def nothing_new(stance: Stance, quotes: Sequence[Quote]) -> str:
    """Return a sentence with the stance that the debater keeps and its quotes for it."""
    texts = list(dict.fromkeys(quote.text for quote in quotes))[:MOST_QUOTES]
    quoted = f"quoted {listed(texts)} and " if texts else ""
    return f"{NOTHING_NEW}: I {quoted}hold to “{WORDS_OF_STANCE[stance]}”."


def pointed_at(view: DebateView) -> tuple[Passage, ...]:
    """Return the passages that people's remarks quote, name by source, or share values with."""
    remarks = " ".join(words for _, words in view.remarks).casefold()
    quoted = [" ".join(quote.split()) for quote in QUOTED.findall(remarks)]
    values, pointed = set(VALUE.findall(remarks)), []
    for passage in view.view.evidence.passages.values():
        name = ENDING.sub("", passage.source.casefold())
        is_quoted = any(one in " ".join(passage.text.casefold().split()) for one in quoted)
        is_named = len(name) >= LEAST_NAME and name in remarks
        if is_named or is_quoted or values & set(VALUE.findall(passage.text)):
            pointed.append(passage)
    return tuple(pointed)


def answered(view: DebateView) -> list[str]:
    """Return the reply to people's last remark, if there is one and it was not given yet."""
    if not view.remarks:
        return []
    who = shortened(" ".join(view.remarks[-1][0].split()) or "somebody", NAME_CHARACTERS)
    words = f"What {who} says names nothing in the sources; I go by the evidence alone."
    if passages := pointed_at(view):
        words = f"I have read what {who} points to: {cited(passages[0])}."
    return [] if any(words in turn.text for turn in _own_turns(view)) else [words]


def overall(stances: Sequence[Stance]) -> Stance:
    """Return the stance on the response: wrong if any statement is, supported only if all are."""
    if "hallucinated" in stances:
        return "hallucinated"
    return "supported" if stances and set(stances) == {"supported"} else "unclear"


def _strength(opinions: Sequence[Opinion], side: Stance) -> float:
    """Return how strongly the debater's own probabilities favour that side, in [0, 1]."""
    worst = max(opinion.item.p for opinion in opinions)
    if side == "unclear":
        return 1.0 - abs(2.0 * worst - 1.0)
    return worst if side == "hallucinated" else 1.0 - worst


def _best_passage(opinion: Opinion, side: Stance) -> tuple[Passage, Window] | None:
    """Return the passage that speaks for the side most, with its window."""
    reading = opinion.item.measured.reading
    window = reading.contradicting if side == "hallucinated" else reading.supporting
    return (best_passage(window, opinion.item), window) if window else None


def _word_meaning(side: Stance) -> Says:
    """Make the wording of what the closest passage means; none if it speaks for the other side."""

    def says(opinion: Opinion) -> list[str]:
        best = _best_passage(opinion, side)
        if best is None:
            return [NO_PASSAGE]
        passage, reading = best[0], best[1].reading
        if side == "hallucinated" and reading.contradicted >= SAID_FROM:
            return [f"{cited(passage)} cannot be true together with it."]
        if reading.supported >= SAID_FROM:
            return [f"{cited(passage)} says so."] if side == "supported" else []
        if side == "supported":
            return []
        return [f"{cited(passage)} comes closest; it neither says nor denies it."]

    return says


def _word_same_values(opinion: Opinion) -> list[str]:
    same = [v.text for v in opinion.item.measured.values if v.status in ("same", "derived")]
    if same:
        return [f"The sources have {listed(same)} as the statement says."]
    return ["No number, date or name of the statement differs from the sources."]


def _word_different_values(opinion: Opinion) -> list[str]:
    different = [v for v in opinion.item.measured.values if v.status == "different"]
    words = [f"The statement says “{v.text}”, the source “{v.instead}”." for v in different[:2]]
    unmatched = [v.text for v in opinion.item.measured.values if v.status == "unmatched"]
    missing = unmatched or _find_missing_words(opinion)[0]
    return words or ([f"No source has {listed(missing)}."] if missing else [])


def _word_undecided_values(opinion: Opinion) -> list[str]:
    values = opinion.item.measured.values
    if values and all(value.status in ("same", "derived") for value in values):
        texts = listed([value.text for value in values])
        return [f"The sources have {texts}; whether of the same thing, I cannot tell."]
    if values:
        return ["I cannot tell whether the numbers and dates speak of the same thing."]
    return ["There is no number or date in it that I could compare."]


def _find_missing_words(opinion: Opinion) -> tuple[list[str], int]:
    """Return the statement's content words that no passage has, and how many it has in all."""
    reading = opinion.item.measured.reading
    words = reading.claim[reading.own_start :]
    source_terms = {term for window in reading.windows for term in terms(window.text)}
    claim_terms = set(query_terms(words))
    by_word = {word: claim_terms & set(terms(word)) for word in WORD.findall(words)}
    content = {word: found for word, found in by_word.items() if found}
    return [word for word in content if content[word].isdisjoint(source_terms)], len(content)


def _word_coverage(opinion: Opinion) -> list[str]:
    missing, count = _find_missing_words(opinion)
    present = count - len(missing)
    verb = "appears" if present == 1 else "appear"
    return [f"{present} of its {counted(count, 'word')} {verb} in the sources."]


def _word_missing(opinion: Opinion) -> list[str]:
    missing, count = _find_missing_words(opinion)
    verb = "appears" if len(missing) == 1 else "appear"
    if not missing:
        return []
    return [f"Of its {counted(count, 'word')} {listed(missing)} {verb} in none of my passages."]


ENTAILMENT = Kind(
    "Entailment reader", "reading", {stance: _word_meaning(stance) for stance in VIEWS}
)
VALUES = Kind(
    "Value checker",
    "values",
    {
        "supported": _word_same_values,
        "hallucinated": _word_different_values,
        "unclear": _word_undecided_values,
    },
)
OVERLAP = Kind(
    "Overlap reader",
    "coverage",
    {"supported": _word_coverage, "hallucinated": _word_missing, "unclear": _word_missing},
)
KINDS: Mapping[str, Kind] = {"entailment": ENTAILMENT, "rules": VALUES, "overlap": OVERLAP}
"""The kinds of debaters by the names that rosters use."""
