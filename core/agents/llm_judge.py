"""The judge by a language model: prose whose last line is the verdict (CEDA A.3.4).

This is the boundary at which the paper's numbers become labels: 1 is correct, 0 is wrong.

Picks the best of several revisions of a response by a language model. Source: SC-MAKS 2.1.4 and
table 2 (MAMM-REFINE: reranking).

Hears which words of the response a debater contests, and a text that it gives mended. A contested
place is a line of its own, “Words: “1926” -> “1931””, in English or Chinese; what is behind the
arrow should stand there instead. A mended text stands between <<<TEXT and TEXT>>>, so that
nothing that is said about it becomes part of it. Source: SC-MAKS 2.1.4 (MAMM-REFINE).
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from core.agents.agent_runner import AgentContext, LlmAgent, PromptCall, case_fields
from core.agents.reply_parser import WORDS_LINE, parted
from core.agents.transcript import (
    conflict_lines,
    fact_lines,
    fitted_debate,
    passage_lines,
    transcript,
)
from core.baseline.wording import IN_WORDS as IN_WORDS
from core.baseline.wording import capitalised, listed
from core.baseline.wording import verdict_text as verdict_text
from core.documents.quotes import placed
from core.llm.call import Completion, Message, Unusable, ask_readable
from core.llm.prompting import FIELDS
from core.runtime.concurrency import Stop
from core.runtime.errors import ModelError
from core.schema.records import Case, Category, Cause, Judgement, Label, Point, Statement
from core.schema.roles import JudgeView
from core.schema.rosters import Seat, judge_prompt

ARROW = re.compile(r"\s*(?:-+>|=+>|→|⇒|➔)\s*")
# Quoted words end at their own mark: the response's may hold an arrow themselves.
QUOTED = re.compile(
    r"[\s*_]*(?:“(?P<a>[^“”]*)”|„(?P<b>[^“”„]*)[“”]|«(?P<c>[^«»]*)»|「(?P<d>[^「」]*)」|"
    r"『(?P<e>[^『』]*)』|\"(?P<f>[^\"]*)\")[\s*_]*"
)
QUOTES = "“”„«»「」『』\"'‘’ \t*_`"
NOTHING = re.compile(
    r"\W*(?:nothing|none|(?:leave|left|take|taken) (?:it )?out|delete|remove|删除|删去|无)?\W*",
    re.I,
)
MARKED = re.compile(
    r"^[ \t]*<<<[ \t]*TEXT[ \t]*\n(?P<text>.*?)\n?[ \t]*TEXT[ \t]*>>>[ \t]*$",
    re.DOTALL | re.MULTILINE,
)
MARK = re.compile(r"<<<[ \t]*TEXT|TEXT[ \t]*>>>")
MOST_PLACES = 20
UNSTATED = 0.5  # the weight of what is contested without a stated confidence


@dataclass(frozen=True)
class Contested:
    """The places that were found in the response, and the words that stand nowhere in it."""

    points: tuple[Point, ...]
    nowhere: tuple[str, ...]


def contested_in(
    text: str, case: Case, statements: tuple[Statement, ...], confidence: float | None
) -> Contested:
    """What the turn's lines contest; offsets are in `case.response`, and equal places are one."""
    points: dict[tuple[int, int], Point] = {}
    nowhere: list[str] = []
    for line in list(WORDS_LINE.finditer(text))[:MOST_PLACES]:
        words, rest = _parted(line["value"])
        place = placed(words, case.response, tuple(points))
        if place is None:
            nowhere.append(words)
            continue
        instead = "" if NOTHING.fullmatch(rest) else rest
        there = case.response[place[0] : place[1]]
        if instead != there:  # what is to stay is not contested
            points[place] = _point(place, there, instead, statements, confidence)
    return Contested(tuple(points[place] for place in sorted(points)), tuple(nowhere))


def _parted(line: str) -> tuple[str, str]:
    quoted = QUOTED.match(line)
    arrow = ARROW.match(line, quoted.end()) if quoted else None
    if quoted and (arrow or quoted.end() == len(line)):
        words = next(part for part in quoted.groups() if part is not None)
        return words.strip(QUOTES), line[arrow.end() :].strip(QUOTES) if arrow else ""
    words, _, rest = ARROW.sub("\n", line, count=1).partition("\n")
    return words.strip(QUOTES), rest.strip(QUOTES)


def place_lines(points: Iterable[Point]) -> str:
    """These places, each once, with what should stand there where somebody said so."""
    lines = [
        f"“{point.text}” -> “{point.evidence}”" if point.evidence else f"“{point.text}”"
        for point in points
        if point.finding != "carried"
    ]
    return "\n".join(dict.fromkeys(lines))


def marked_in(text: str) -> str | None:
    """The text between the marks as it stands there; None where there is none, or no end of it.

    None, too, where more marks stand there than pairs: a response may hold such marks itself, and
    half of it would be offered as the whole.
    """
    found = list(MARKED.finditer(text))
    is_paired = len(MARK.findall(text)) == 2 * len(found)
    return found[-1]["text"] if found and is_paired and found[-1]["text"].strip() else None


def _point(
    place: tuple[int, int],
    words: str,
    instead: str,
    statements: tuple[Statement, ...],
    confidence: float | None,
) -> Point:
    within = [s.index for s in statements if s.start <= place[0] < s.end]
    both = all(any(sign.isdigit() for sign in one) for one in (words, instead))
    category: Category = "number_or_date" if both else "contradicted"
    return Point(
        within[0] if within else 0,
        "contradicted",
        *place,
        words,
        category,
        instead,
        f"the evidence says “{instead}”, not “{words}”" if instead else "it does not hold",
        UNSTATED if confidence is None else confidence,
    )


BEST = re.compile(
    r"[\W_]*(?:best|最佳|最好)[\W_]*[:：][\W_]*(?P<number>\d{1,3})[\W_]*", re.IGNORECASE
)
PROMPT = "judge_rerank"
LEAST = 2  # between fewer there is no choice


class LlmRanker(LlmAgent):
    """Ranker with a language model, in the judge's seat."""

    def best_of(
        self, view: JudgeView, points: Sequence[Point], revisions: Sequence[str], stop: Stop
    ) -> int:
        """The index of the best; `points` are the places that were to be mended.

        Of revisions that do not all fit, the last are left out; the first where no two do. Raises
        ReplyError: twice no last line that names one of them.
        """
        case = view.view.case
        asking = self._asking(PROMPT, case, stop, role="judge", slot=view.slot)
        known = case_fields(asking, case)
        fields = {
            "claim": known["claim"],
            "question": known["question"],
            "contested": asking.fenced("places", place_lines(points)),
        }
        lines = passage_lines(view.view.evidence)
        asking, messages, count = self._fitted(asking, fields, lines, revisions)
        if count < LEAST:
            return 0

        def read(said: Completion) -> int:
            return best_in(said, count)

        return ask_readable(asking.say, messages, read, asking.mend)

    def _fitted(
        self,
        asking: PromptCall,
        fields: Mapping[str, str],
        lines: Sequence[str],
        revisions: Sequence[str],
    ) -> tuple[PromptCall, tuple[Message, ...], int]:
        """(the asking, the messages over as many of the first revisions as fit, how many)."""
        for count in range(len(revisions), LEAST - 1, -1):
            shown = "\n".join(
                f"{number}.\n{asking.fenced('version', text)}"
                for number, text in enumerate(revisions[:count], 1)
            )
            with contextlib.suppress(ModelError):
                found, messages, kept = asking.fitted(
                    lines, {**fields, "revisions": shown}, "evidence"
                )
                if kept or not lines:
                    self._tell_of(len(revisions) - count, len(revisions))
                    return found, messages, count
        self._tell_of(len(revisions) - 1, len(revisions))
        return asking, (), 0

    def _tell_of(self, lost: int, count: int) -> None:
        if lost:
            self._work.notes.add(
                f"{lost} of {count} revisions did not fit the window of {self.name}: those that "
                "mend least, or change most, were left out of the choice."
            )


def best_in(said: Completion, count: int) -> int:
    """The index, from 0, that the last line names by its number, from 1.

    Raises Unusable: that line names none of so many.
    """
    _, last = parted(said.text)
    match = BEST.fullmatch(last)
    number = int(match["number"]) if match else 0
    if not 1 <= number <= count:
        raise Unusable(
            f"Expected a last line that reads “Best: N” with a number from 1 to {count}, found "
            f"“{' '.join(last.split())[-80:]}”."
        )
    return number - 1


VERDICT = re.compile(
    r"[\W_]*(?:(?:my )?final )?(?:verdict|裁决|裁決|结论|結論|判决|判決)"
    r"[\W_]*[:：][\W_]*(?P<number>[01])[\W_]*"
    r"(?P<word>correct|supported|正确|正確|wrong|incorrect|hallucinated|错误|錯誤)?[\W_]*",
    re.IGNORECASE,
)
GO_ON = re.compile(
    r"[\W_]*(?:verdict|裁决|裁決)[\W_]*[:：][\W_]*(?:go on|continue|继续|繼續)[\W_]*", re.IGNORECASE
)
LABELS: dict[str, Label] = {"1": "supported", "0": "hallucinated"}
RIGHT = frozenset({"correct", "supported", "正确", "正確"})
SAMPLED_AT = 0.7  # the temperature at which samples of one judge are drawn (self-consistency)


class LlmJudge(LlmRanker):
    """Judge with a language model, which ranks revisions too."""

    def __init__(self, seat: Seat, work: AgentContext) -> None:
        super().__init__(seat, work)
        self.prompts = work.judging

    def decide(self, view: JudgeView, stop: Stop) -> Judgement:
        """The finding; unclear without a call where there is nothing that could carry one.

        Raises ReplyError: twice no last line that is `Verdict: 1` or `Verdict: 0`.
        """
        if view.view.unreadable_images:
            words = f"{listed(view.view.unreadable_images)} could not be read here"
            return self._unclear("image_not_readable", words)
        if not view.view.evidence.passages and not view.turns:
            return self._unclear("no_evidence", "there is neither evidence nor a debate")
        case, evidence = view.view.case, view.view.evidence
        prompt = judge_prompt(view.manner)
        asking = self._asking(prompt, case, stop, role="judge", slot=view.slot)
        if view.is_sampled and asking.seat.temperature == 0:
            asking = replace(asking, seat=replace(asking.seat, temperature=SAMPLED_AT))
        fields = case_fields(asking, case) | {
            "facts": asking.fenced("facts", fact_lines(view.context, evidence)),
            "conflicts": asking.fenced(
                "conflicts", conflict_lines(view.context.conflicts, evidence)
            ),
        }
        fields = {name: text for name, text in fields.items() if name in FIELDS[prompt]}
        told = transcript(asking, view) if "transcript" in FIELDS[prompt] else None
        lines = passage_lines(evidence)
        asking, messages = fitted_debate(asking, told, fields, lines, "evidence")
        read = moderated if view.manner == "moderate" else verdict_of
        label, prose = ask_readable(asking.say, messages, read, asking.mend)
        if label == "unclear":
            return replace(self._unclear("not_settled", "the debate goes on"), prose=prose)
        text = verdict_text(label, prose)
        return Judgement(agent=self.name, label=label, text=text, prose=prose or IN_WORDS[label])

    def _unclear(self, cause: Cause, words: str) -> Judgement:
        text = f"No verdict: {words}."
        return Judgement(self.name, "unclear", text, cause=cause, cause_words=capitalised(words))


def moderated(said: Completion) -> tuple[Label, str]:
    """As `verdict_of`; unclear where that line has the debate go on.

    Raises Unusable: that line is neither.
    """
    prose, last = parted(said.text)
    return ("unclear", prose) if GO_ON.fullmatch(last) else verdict_of(said)


def verdict_of(said: Completion) -> tuple[Label, str]:
    """The label of the last line that says anything, and the prose before it.

    Raises Unusable: that line is no verdict; a verdict in an earlier line is not one.
    """
    prose, last = parted(said.text)
    match = VERDICT.fullmatch(last)
    contradicts = (
        match is not None
        and match["word"] is not None
        and (match["word"].casefold() in RIGHT) != (match["number"] == "1")
    )
    if match is None or contradicts:
        raise Unusable(
            "Expected a last line that reads “Verdict: 1” or “Verdict: 0” and nothing after it, "
            f"found “{' '.join(last.split())[-80:]}”."
        )
    return LABELS[match["number"]], prose
