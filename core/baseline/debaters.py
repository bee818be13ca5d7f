"""The built-in debaters, the context writer (agent C) and the image reader (agent B).

Each debater has a small model over its own family of features, fitted with the evidence model's,
and its words follow from those measurements. Agent C divides the evidence so that debaters have
something to tell each other (CEDA 3.3), summarises rounds and corrects responses (SC-MAKS 3.4).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from core.baseline.assessment import Assessment, Assessor, choose_best_passage, explain_assessment
from core.baseline.evidence_model import FeatureFamily
from core.baseline.evidence_windows import EvidenceWindow
from core.baseline.wording import (
    AGENT_RULES,
    DEBATER_DOUBTS,
    SIDE_NAMES,
    STANCE_WORDS,
    apply_edits,
    choose_reply,
    cite_passage,
    find_edits,
    format_count,
    join_briefly,
    join_names,
    join_quoted,
    quote_passage,
    shorten,
)
from core.documents.segmentation import WORD_TOKEN, extract_query_terms, extract_terms
from core.runtime.concurrency import StopSignal
from core.schema.records import (
    Case,
    DebatePoint,
    EvidenceContext,
    EvidenceShare,
    Judgement,
    Passage,
    Quote,
    Source,
    Stance,
    Turn,
)
from core.schema.roles import CaseView, DebateView, JudgeView, SpeakCallback

MIN_IMAGE_CHARS = 3
MAX_SUMMARY_WORDS = 150  # of a summary
NO_QUOTE = "Nothing new was quoted from the sources."
MAX_QUOTES = 2
MAX_CONFIDENCE = 0.95  # even if the sources have every word, nothing is certain
NOTHING_NEW = "I have nothing new"
QUOTED_TEXT = re.compile(r"[“„«「『\"]([^“”„«»「」『』\"]{4,})[”»」』\"]")
NUMBER_PATTERN = re.compile(r"\d+(?:[.,]\d+)*")
FILE_EXTENSION = re.compile(r"\.\w{1,5}$")
MAX_NAME_CHARS = 40
MIN_FILE_NAME_CHARS = 4  # characters from which a file's name differs from a common word
NO_STATEMENT = "There is nothing in this text that sources could speak about."
NO_PASSAGE = "I was given no passage that speaks about this."
LANGUAGE_NOT_KNOWN = "I do not know the language of this text or of its sources."
NO_DECISIVE_PLACE = "No single place decides it; I go by the whole."
READING_DECIDES_FROM = 0.5  # probability from which a passage supports or contradicts a statement
STANCE_ADJECTIVES: Mapping[Stance, str] = {
    "supported": "right", "hallucinated": "wrong", "unclear": "not decided"
}  # fmt: skip


class OcrImageReader:
    """The built-in image reader: it reads text in images and nothing else."""

    name = "OCR image reader"
    built_in = True
    rule = AGENT_RULES["image reader"]

    def describe(self, case: Case, image: Source, stop: StopSignal) -> str:
        """Return the lines that OCR found in the image, or an empty text."""
        if sum(letter.isalnum() for letter in image.text) < MIN_IMAGE_CHARS:
            return ""
        lines = [line.strip() for line in image.text.splitlines() if line.strip()]
        return f"Written in {image.name}: " + "; ".join(lines) + "."


class BuiltInContextWriter:
    """The built-in agent C."""

    name = "Context writer"
    built_in = True
    rule = AGENT_RULES["context writer"]

    def __init__(self, assessor: Assessor) -> None:
        self._assessor = assessor

    def write(self, view: CaseView, debaters: Sequence[str], stop: StopSignal) -> EvidenceContext:
        """Return each share, all passages for the judge, and the conflicts in the sources."""
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
            f"{format_count(len(distinct), 'passage')} from {format_count(sources, 'source')} "
            f"for {format_count(len(view.statements), 'statement')}."
        )
        conflicts = tuple(
            f"On “{item.statement.text}” {cite_passage(item.conflict[0])} contradicts "
            f"{cite_passage(item.conflict[1])}."
            for item in self._assessor.assess(view, stop)
            if item.conflict
        )
        parts = (EvidenceShare(name, tuple(dict.fromkeys(ids))) for name, ids in shares.items())
        return EvidenceContext(tuple(parts), distinct, summary, conflicts)

    def summarise(
        self, view: CaseView, turns: Sequence[Turn], before: str, stop: StopSignal
    ) -> str:
        """Return the new quotes of a round, each with who quoted it for which stance."""
        stop.check()
        return summarise_round(turns, before)

    def revise(self, view: JudgeView, judgement: Judgement, stop: StopSignal) -> str:
        """Return the response with wrong values replaced by the sources' values."""
        stop.check()
        response = view.case_view.case.response
        debated = [point for turn in view.turns for point in turn.points]
        return apply_edits(response, find_edits([*judgement.points, *debated], response))


def summarise_round(turns: Sequence[Turn], before: str) -> str:
    """Return the summary `before` plus a line for each new verified quote, in order of the turns.

    The oldest lines are dropped if the summary exceeds the word limit.
    """
    quoting: dict[str, dict[Stance, dict[str, None]]] = {}
    sources: dict[str, str] = {}
    for turn in turns:
        for quote in turn.quotes:
            text = shorten(quote.text)
            if quote.status == "verified" and text not in before:
                sources.setdefault(text, f" ({quote.source})" if quote.source else "")
                quoting.setdefault(text, {}).setdefault(turn.stance, {})[turn.debater] = None
    lines = before.splitlines()
    for text, by_stance in quoting.items():
        quoters = "; ".join(
            f"{join_names(list(names))} for “{STANCE_WORDS[stance]}”"
            for stance, names in by_stance.items()
        )
        lines.append(f"“{text}”{sources[text]}: quoted by {quoters}.")
    lines = list(dict.fromkeys(lines if quoting else [*lines, NO_QUOTE]))
    while len(lines) > 1 and sum(len(line.split()) for line in lines) > MAX_SUMMARY_WORDS:
        lines = lines[1:]
    return "\n".join(lines)


@dataclass(frozen=True)
class DebaterOpinion:
    """A debater's view of one statement: the assessment by its own model, and its points."""

    assessment: Assessment
    points: tuple[DebatePoint, ...]


OpinionWording = Callable[[DebaterOpinion], list[str]]


@dataclass(frozen=True)
class DebaterKind:
    """A kind of debater: its name, the features it goes by and the wording of each stance."""

    name: str
    part: FeatureFamily
    says: Mapping[Stance, OpinionWording]


class BuiltInDebater:
    """A built-in debater of one kind; deterministic for a given reader and model."""

    built_in = True

    def __init__(self, kind: DebaterKind, assessor: Assessor) -> None:
        self._kind, self._assessor = kind, assessor
        self.name, self.rule = kind.name, AGENT_RULES[kind.name]

    def argue(self, view: DebateView, speak: SpeakCallback, stop: StopSignal) -> Turn:
        """Return one turn over all statements, led by the decisive one."""
        quoted = {(quote.source_id, quote.start) for turn in view.turns for quote in turn.quotes}
        passages = view.case_view.evidence.passages.values()
        allowed = view.share.union(
            (p.id for p in passages if (p.source_id, p.start) in quoted),
            (passage.id for passage in find_remarked_passages(view)),
        )
        opinions = [
            self._form_opinion(item, stop)
            for item in self._assessor.assess(view.case_view, stop, allowed=allowed)
        ]
        stance = combine_stances([opinion.assessment.label for opinion in opinions])
        words, quotes, doubt = self._argue_stance(opinions, stance)
        confidence = None
        if view.manner == "answer":
            confidence = (
                round(min(_strength(opinions, stance), MAX_CONFIDENCE), 2) if doubt else None
            )
        else:
            words, doubt = select_new_sentences(words, stance, quotes, view), ""
        reply = choose_reply(stance, view.turns)
        opening = SIDE_NAMES[stance] if view.manner == "answer" else reply.upper()
        lines = [join_briefly([f"{opening}.", *answer_remark(view), *words])]
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

    def _form_opinion(self, item: Assessment, stop: StopSignal) -> DebaterOpinion:
        p = self._assessor.model.part(self._kind.part, item.measured)
        is_undecided = item.label == "unclear" and item.cause != "not_settled"
        stance = "unclear" if is_undecided else self._assessor.model.label(p)
        cause = item.cause if stance == "unclear" else None
        assessment = Assessment(item.measured, p, stance, cause)
        return DebaterOpinion(
            assessment, explain_assessment(assessment, self._assessor.reader, stop)
        )

    def _argue_stance(
        self, opinions: Sequence[DebaterOpinion], stance: Stance
    ) -> tuple[list[str], tuple[Quote, ...], str]:
        """Return the sentences and quotes for its stance, and its doubt.

        The doubt is the way in which it is most likely mistaken; "" if it cannot measure any.
        """
        if not opinions:
            return [NO_STATEMENT], (), ""
        if all(opinion.assessment.cause == "language_not_known" for opinion in opinions):
            return [LANGUAGE_NOT_KNOWN], (), ""
        # The statement that speaks for the stance most is discussed.
        sign = {"hallucinated": -1, "supported": 1}.get(stance)
        chosen = min(
            opinions, key=lambda o: sign * o.assessment.p if sign else abs(o.assessment.p - 0.5)
        )
        words = self._kind.says[stance](chosen) or [NO_DECISIVE_PLACE]
        if len(opinions) > 1:
            count = sum(opinion.assessment.label == stance for opinion in opinions)
            verb = "is" if count == 1 else "are"
            total = format_count(len(opinions), "statement")
            words = [f"In my view {count} of {total} {verb} {STANCE_ADJECTIVES[stance]}.", *words]
        is_its_own = chosen.assessment.label == stance
        quotes = [point.quote for point in chosen.points if point.quote and is_its_own]
        if best := _best_passage(chosen, stance):
            quotes.append(quote_passage(best[0]))
        quotes = list(dict.fromkeys(quotes))[:MAX_QUOTES]
        return words, tuple(quotes), DEBATER_DOUBTS[self._kind.name][stance]


def _own_turns(view: DebateView) -> list[Turn]:
    return [turn for turn in view.turns if turn.debater == view.debater]


def select_new_sentences(
    sentences: Sequence[str], stance: Stance, quotes: Sequence[Quote], view: DebateView
) -> list[str]:
    """Return the sentences that the debater has not said yet, or one that it has nothing new.

    A debater that has once run out stays out: its earlier turns are not always in the view.
    """
    turns = _own_turns(view)
    if not turns or turns[-1].stance != stance:
        return list(sentences)
    has_ended = has_nothing_new(quotes, stance, view)
    before = [turn.text.casefold() for turn in turns]
    new = [one for one in sentences if not any(one.casefold() in text for text in before)]
    return [phrase_nothing_new(stance, quotes)] if has_ended or not new else new


def has_nothing_new(quotes: Sequence[Quote], stance: Stance, view: DebateView) -> bool:
    """Return True if its last turn said it had nothing new, with the same stance and quotes."""
    return any(
        NOTHING_NEW in turn.text
        and turn.stance == stance
        and {quote.text for quote in quotes} <= {quote.text for quote in turn.quotes}
        for turn in _own_turns(view)[-1:]
    )


def phrase_nothing_new(stance: Stance, quotes: Sequence[Quote]) -> str:
    """Return a sentence with the stance that the debater keeps and its quotes for it."""
    texts = list(dict.fromkeys(quote.text for quote in quotes))[:MAX_QUOTES]
    quoted = f"quoted {join_quoted(texts)} and " if texts else ""
    return f"{NOTHING_NEW}: I {quoted}hold to “{STANCE_WORDS[stance]}”."


def find_remarked_passages(view: DebateView) -> tuple[Passage, ...]:
    """Return the passages that people's remarks quote, name by source, or share values with."""
    remarks = " ".join(words for _, words in view.remarks).casefold()
    quoted = [" ".join(quote.split()) for quote in QUOTED_TEXT.findall(remarks)]
    values, pointed = set(NUMBER_PATTERN.findall(remarks)), []
    for passage in view.case_view.evidence.passages.values():
        name = FILE_EXTENSION.sub("", passage.source.casefold())
        is_quoted = any(one in " ".join(passage.text.casefold().split()) for one in quoted)
        is_named = len(name) >= MIN_FILE_NAME_CHARS and name in remarks
        if is_named or is_quoted or values & set(NUMBER_PATTERN.findall(passage.text)):
            pointed.append(passage)
    return tuple(pointed)


def answer_remark(view: DebateView) -> list[str]:
    """Return the reply to people's last remark, if there is one and it was not given yet."""
    if not view.remarks:
        return []
    who = shorten(" ".join(view.remarks[-1][0].split()) or "somebody", MAX_NAME_CHARS)
    words = f"What {who} says names nothing in the sources; I go by the evidence alone."
    if passages := find_remarked_passages(view):
        words = f"I have read what {who} points to: {cite_passage(passages[0])}."
    return [] if any(words in turn.text for turn in _own_turns(view)) else [words]


def combine_stances(stances: Sequence[Stance]) -> Stance:
    """Return the stance on the response: wrong if any statement is, supported only if all are."""
    if "hallucinated" in stances:
        return "hallucinated"
    return "supported" if stances and set(stances) == {"supported"} else "unclear"


def _strength(opinions: Sequence[DebaterOpinion], side: Stance) -> float:
    """Return how strongly the debater's own probabilities favour that side, in [0, 1]."""
    worst = max(opinion.assessment.p for opinion in opinions)
    if side == "unclear":
        return 1.0 - abs(2.0 * worst - 1.0)
    return worst if side == "hallucinated" else 1.0 - worst


def _best_passage(opinion: DebaterOpinion, side: Stance) -> tuple[Passage, EvidenceWindow] | None:
    """Return the passage that speaks for the side most, with its window."""
    reading = opinion.assessment.measured.reading
    window = reading.contradicting if side == "hallucinated" else reading.supporting
    return (choose_best_passage(window, opinion.assessment), window) if window else None


def _phrase_meaning(side: Stance) -> OpinionWording:
    """Make the wording of what the closest passage means; none if it speaks for the other side."""

    def says(opinion: DebaterOpinion) -> list[str]:
        best = _best_passage(opinion, side)
        if best is None:
            return [NO_PASSAGE]
        passage, reading = best[0], best[1].reading
        if side == "hallucinated" and reading.contradicted >= READING_DECIDES_FROM:
            return [f"{cite_passage(passage)} cannot be true together with it."]
        if reading.supported >= READING_DECIDES_FROM:
            return [f"{cite_passage(passage)} says so."] if side == "supported" else []
        if side == "supported":
            return []
        return [f"{cite_passage(passage)} comes closest; it neither says nor denies it."]

    return says


def _phrase_same_values(opinion: DebaterOpinion) -> list[str]:
    same = [v.text for v in opinion.assessment.measured.values if v.status in ("same", "derived")]
    if same:
        return [f"The sources have {join_quoted(same)} as the statement says."]
    return ["No number, date or name of the statement differs from the sources."]


def _word_different_values(opinion: DebaterOpinion) -> list[str]:
    different = [v for v in opinion.assessment.measured.values if v.status == "different"]
    words = [f"The statement says “{v.text}”, the source “{v.instead}”." for v in different[:2]]
    unmatched = [v.text for v in opinion.assessment.measured.values if v.status == "unmatched"]
    missing = unmatched or _find_missing_words(opinion)[0]
    return words or ([f"No source has {join_quoted(missing)}."] if missing else [])


def _word_undecided_values(opinion: DebaterOpinion) -> list[str]:
    values = opinion.assessment.measured.values
    if values and all(value.status in ("same", "derived") for value in values):
        texts = join_quoted([value.text for value in values])
        return [f"The sources have {texts}; whether of the same thing, I cannot tell."]
    if values:
        return ["I cannot tell whether the numbers and dates speak of the same thing."]
    return ["There is no number or date in it that I could compare."]


def _find_missing_words(opinion: DebaterOpinion) -> tuple[list[str], int]:
    """Return the statement's content words that no passage has, and how many it has in all."""
    reading = opinion.assessment.measured.reading
    words = reading.claim[reading.own_start :]
    source_terms = {term for window in reading.windows for term in extract_terms(window.text)}
    claim_terms = set(extract_query_terms(words))
    by_word = {word: claim_terms & set(extract_terms(word)) for word in WORD_TOKEN.findall(words)}
    content = {word: found for word, found in by_word.items() if found}
    return [word for word in content if content[word].isdisjoint(source_terms)], len(content)


def _word_coverage(opinion: DebaterOpinion) -> list[str]:
    missing, count = _find_missing_words(opinion)
    present = count - len(missing)
    verb = "appears" if present == 1 else "appear"
    return [f"{present} of its {format_count(count, 'word')} {verb} in the sources."]


def _word_missing(opinion: DebaterOpinion) -> list[str]:
    missing, count = _find_missing_words(opinion)
    verb = "appears" if len(missing) == 1 else "appear"
    if not missing:
        return []
    return [
        f"Of its {format_count(count, 'word')} {join_quoted(missing)} {verb} in none of my "
        f"passages."
    ]


ENTAILMENT_READER = DebaterKind(
    "Entailment reader",
    "reading",
    {stance: _phrase_meaning(stance) for stance in STANCE_ADJECTIVES},
)
VALUE_CHECKER = DebaterKind(
    "Value checker",
    "values",
    {
        "supported": _phrase_same_values,
        "hallucinated": _word_different_values,
        "unclear": _word_undecided_values,
    },
)
OVERLAP_READER = DebaterKind(
    "Overlap reader",
    "coverage",
    {"supported": _word_coverage, "hallucinated": _word_missing, "unclear": _word_missing},
)
DEBATER_KINDS: Mapping[str, DebaterKind] = {
    "entailment": ENTAILMENT_READER,
    "rules": VALUE_CHECKER,
    "overlap": OVERLAP_READER,
}
"""The kinds of debaters by the names that rosters use."""
