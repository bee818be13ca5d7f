"""The judge on a language model; the paper's 1 and 0 become labels here (CEDA A.3.4).

It also picks the best of several revisions. The module reads, too, which words of the response a
debater contests, in lines such as “Words: “1926” -> “1931”” (SC-MAKS 2.1.4, table 2: MAMM-REFINE).
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from core.agents.agent_runner import AgentContext, LlmAgent, case_fields
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
from core.llm.call import Completion, Unusable, ask_readable
from core.llm.prompting import FIELDS
from core.runtime.concurrency import Stop
from core.runtime.errors import ModelError
from core.schema.records import Case, Cause, Judgement, Label, Point, Statement
from core.schema.roles import JudgeView
from core.schema.rosters import Seat, judge_prompt

ARROW = re.compile(r"\s*(?:-+>|=+>|→|⇒|➔)\s*")
# Quoted words end at their closing mark, as words of the response may hold an arrow.
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
UNSTATED = 0.5  # the weight of contested words without a stated confidence
BEST = re.compile(
    r"[\W_]*(?:best|最佳|最好)[\W_]*[:：][\W_]*(?P<number>\d{1,3})[\W_]*", re.IGNORECASE
)
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
SAMPLED_AT = 0.7  # the temperature for several samples of one judge (self-consistency)


@dataclass(frozen=True)
class Contested:
    """Contested places in the response, and contested words that are not in it."""

    points: tuple[Point, ...]
    nowhere: tuple[str, ...]


def contested_in(
    text: str, case: Case, statements: tuple[Statement, ...], confidence: float | None
) -> Contested:
    """Return what the turn's lines contest, each place once, with offsets in `case.response`."""
    points: dict[tuple[int, int], Point] = {}
    nowhere: list[str] = []
    for line in list(WORDS_LINE.finditer(text))[:MOST_PLACES]:
        words, rest = _split_words_line(line["value"])
        place = placed(words, case.response, tuple(points))
        if place is None:
            nowhere.append(words)
            continue
        correction = "" if NOTHING.fullmatch(rest) else rest
        original = case.response[slice(*place)]
        if correction == original:  # an unchanged text is not contested
            continue
        are_figures = all(any(sign.isdigit() for sign in text) for text in (original, correction))
        points[place] = Point(
            next((s.index for s in statements if s.start <= place[0] < s.end), 0),
            "contradicted",
            *place,
            original,
            "number_or_date" if are_figures else "contradicted",
            correction,
            f"the evidence says “{correction}”, not “{original}”"
            if correction
            else "it does not hold",
            UNSTATED if confidence is None else confidence,
        )
    return Contested(tuple(points[place] for place in sorted(points)), tuple(nowhere))


def _split_words_line(line: str) -> tuple[str, str]:
    """Return (the contested words, what should stand there)."""
    quoted = QUOTED.match(line)
    arrow = ARROW.match(line, quoted.end()) if quoted else None
    if quoted and (arrow or quoted.end() == len(line)):
        words = next(part for part in quoted.groups() if part is not None)
        return words.strip(QUOTES), line[arrow.end() :].strip(QUOTES) if arrow else ""
    words, _, rest = ARROW.sub("\n", line, count=1).partition("\n")
    return words.strip(QUOTES), rest.strip(QUOTES)


def place_lines(points: Iterable[Point]) -> str:
    """Return a line for each place, once, with the correction if somebody proposed one."""
    lines = [
        f"“{point.text}” -> “{point.evidence}”" if point.evidence else f"“{point.text}”"
        for point in points
        if point.finding != "carried"
    ]
    return "\n".join(dict.fromkeys(lines))


def marked_in(text: str) -> str | None:
    """Return the text between the marks, unchanged; None if it is missing or has no end.

    None, too, if the marks are not in pairs: a response may hold such marks itself, and half of it
    would pass for the whole.
    """
    matches = list(MARKED.finditer(text))
    if not matches or len(MARK.findall(text)) != 2 * len(matches):
        return None
    return matches[-1]["text"] if matches[-1]["text"].strip() else None


def best_in(reply: Completion, count: int) -> int:
    """Return the index, from 0, of the version that the last line names, from 1.

    Raises Unusable if that line names none of `count` versions.
    """
    _, last = parted(reply.text)
    match = BEST.fullmatch(last)
    number = int(match["number"]) if match else 0
    if not 1 <= number <= count:
        raise Unusable(
            f"Expected a last line that reads “Best: N” with a number from 1 to {count}, found "
            f"“{' '.join(last.split())[-80:]}”."
        )
    return number - 1


class LlmJudge(LlmAgent):
    """Judge on a language model, which also picks the best of several revisions."""

    def __init__(self, seat: Seat, work: AgentContext) -> None:
        super().__init__(seat, work)
        self.prompts = work.judging

    def decide(self, view: JudgeView, stop: Stop) -> Judgement:
        """Return the judgement; `unclear` without a call if there is nothing to judge by.

        Raises ReplyError if two replies lack a last line `Verdict: 1` or `Verdict: 0`.
        """
        if view.view.unreadable_images:
            words = f"{listed(view.view.unreadable_images)} could not be read here"
            return self._unclear("image_not_readable", words)
        if not view.view.evidence.passages and not view.turns:
            return self._unclear("no_evidence", "there is neither evidence nor a debate")
        case, evidence = view.view.case, view.view.evidence
        prompt = judge_prompt(view.manner)
        call = self._asking(prompt, case, stop, role="judge", slot=view.slot)
        if view.is_sampled and call.seat.temperature == 0:
            call = replace(call, seat=replace(call.seat, temperature=SAMPLED_AT))
        fields = case_fields(call, case) | call.fields(
            facts=fact_lines(view.context, evidence),
            conflicts=conflict_lines(view.context.conflicts, evidence),
        )
        fields = {name: text for name, text in fields.items() if name in FIELDS[prompt]}
        debate = transcript(call, view) if "transcript" in FIELDS[prompt] else None
        lines = passage_lines(evidence)
        call, messages = fitted_debate(call, debate, fields, lines, "evidence")
        read = moderated if view.manner == "moderate" else verdict_of
        label, prose = ask_readable(call.say, messages, read, call.mend)
        if label == "unclear":
            return replace(self._unclear("not_settled", "the debate goes on"), prose=prose)
        text = verdict_text(label, prose)
        return Judgement(agent=self.name, label=label, text=text, prose=prose or IN_WORDS[label])

    def _unclear(self, cause: Cause, reason: str) -> Judgement:
        text = f"No verdict: {reason}."
        return Judgement(self.name, "unclear", text, cause=cause, cause_words=capitalised(reason))

    def best_of(
        self, view: JudgeView, points: Sequence[Point], revisions: Sequence[str], stop: Stop
    ) -> int:
        """Return the index of the best revision; `points` are the places to correct.

        If not all revisions fit the window, the last are left out; if not even two fit, the first
        is the best. Raises ReplyError if two replies lack a last line that names one of them.
        """
        case, lines = view.view.case, passage_lines(view.view.evidence)
        call = self._asking("judge_rerank", case, stop, role="judge", slot=view.slot)
        fields = call.fields(claim=case.response, question=case.question)
        fields["contested"] = call.fenced("places", place_lines(points))
        versions = [
            f"{number}.\n{call.fenced('version', text)}" for number, text in enumerate(revisions, 1)
        ]
        for count in range(len(revisions), 1, -1):
            fields["revisions"] = "\n".join(versions[:count])
            with contextlib.suppress(ModelError):
                fitted_call, messages, kept = call.fitted(lines, fields, "evidence")
                if kept or not lines:
                    break
        else:  # not even two fit, so there is no choice
            count = 1
        if lost := len(revisions) - count:
            self._work.notes.add(
                f"{lost} of {len(revisions)} revisions did not fit the window of {self.name}: "
                "those that mend least, or change most, were left out of the choice."
            )
        if count < 2:
            return 0

        def read(reply: Completion) -> int:
            return best_in(reply, count)

        return ask_readable(fitted_call.say, messages, read, fitted_call.mend)


def moderated(reply: Completion) -> tuple[Label, str]:
    """Return the same as `verdict_of`, but `unclear` if the last line lets the debate go on.

    Raises Unusable if the line says neither.
    """
    prose, last = parted(reply.text)
    return ("unclear", prose) if GO_ON.fullmatch(last) else verdict_of(reply)


def verdict_of(reply: Completion) -> tuple[Label, str]:
    """Return the label in the last line that holds text, and the prose before it.

    Raises Unusable if that line is no verdict; a verdict in an earlier line does not count.
    """
    prose, last = parted(reply.text)
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
