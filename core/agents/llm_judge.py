"""The judge on a language model; the paper's 1 and 0 become labels here (CEDA A.3.4).

It also picks the best of several revisions. The module reads, too, which words of the response a
debater contests, in lines such as “Words: “1926” -> “1931”” (SC-MAKS 2.1.4, table 2: MAMM-REFINE).
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from core.agents.agent_runner import AgentContext, LlmAgent, case_fields
from core.agents.reply_parser import CONTESTED_LINE, split_last_line
from core.agents.transcript import (
    build_judge_transcript,
    fit_debate,
    format_conflicts,
    format_facts,
    format_passages,
)
from core.baseline.wording import SEED_VERDICTS, capitalise, frame_verdict, join_quoted
from core.documents.quotes import locate_quote
from core.llm.call import Completion, UnusableReply, ask_readable
from core.llm.prompting import FIELDS
from core.llm.reply_forms import ReplyForm
from core.runtime.concurrency import StopSignal
from core.runtime.errors import ModelError
from core.schema.records import Case, DebatePoint, Judgement, Label, Statement, UnclearCause
from core.schema.roles import JudgeView
from core.schema.rosters import AgentConfig, get_judge_prompt_name

ARROW_PATTERN = re.compile(r"\s*(?:-+>|=+>|→|⇒|➔)\s*")
# Quoted words end at their closing mark, as words of the response may hold an arrow.
QUOTED_PATTERN = re.compile(
    r"[\s*_]*(?:“(?P<a>[^“”]*)”|„(?P<b>[^“”„]*)[“”]|«(?P<c>[^«»]*)»|「(?P<d>[^「」]*)」|"
    r"『(?P<e>[^『』]*)』|\"(?P<f>[^\"]*)\")[\s*_]*"
)
QUOTE_CHARACTERS = "“”„«»「」『』\"'‘’ \t*_`"
DELETION_WORDS = re.compile(
    r"\W*(?:nothing|none|(?:leave|left|take|taken) (?:it )?out|delete|remove|删除|删去|无)?\W*",
    re.I,
)
TEXT_BLOCK = re.compile(
    r"^[ \t]*<<<[ \t]*TEXT[ \t]*\n(?P<text>.*?)\n?[ \t]*TEXT[ \t]*>>>[ \t]*$",
    re.DOTALL | re.MULTILINE,
)
TEXT_BLOCK_MARK = re.compile(r"<<<[ \t]*TEXT|TEXT[ \t]*>>>")
MAX_CONTESTED_PLACES = 20
DEFAULT_WEIGHT = 0.5  # the weight of contested words without a stated confidence
BEST_LINE = re.compile(
    r"[\W_]*(?:best|最佳|最好)[\W_]*[:：][\W_]*(?P<number>\d{1,3})[\W_]*", re.IGNORECASE
)
VERDICT_LINE = re.compile(
    r"[\W_]*(?:(?:my )?final )?(?:verdict|裁决|裁決|结论|結論|判决|判決)"
    r"[\W_]*[:：][\W_]*(?P<number>[01])[\W_]*"
    r"(?P<word>correct|supported|正确|正確|wrong|incorrect|hallucinated|错误|錯誤)?[\W_]*",
    re.IGNORECASE,
)
CONTINUE_LINE = re.compile(
    r"[\W_]*(?:verdict|裁决|裁決)[\W_]*[:：][\W_]*(?:go on|continue|继续|繼續)[\W_]*", re.IGNORECASE
)
VERDICT_LABELS: dict[str, Label] = {"1": "supported", "0": "hallucinated"}
CORRECT_WORDS = frozenset({"correct", "supported", "正确", "正確"})
SAMPLING_TEMPERATURE = 0.7  # the temperature for several samples of one judge (self-consistency)


@dataclass(frozen=True)
class ContestedWords:
    """Contested places in the response, and contested words that are not in it."""

    points: tuple[DebatePoint, ...]
    nowhere: tuple[str, ...]


def parse_contested(
    text: str, case: Case, statements: tuple[Statement, ...], confidence: float | None
) -> ContestedWords:
    """Return what the turn's lines contest, each place once, with offsets in `case.response`."""
    points: dict[tuple[int, int], DebatePoint] = {}
    nowhere: list[str] = []
    for line in list(CONTESTED_LINE.finditer(text))[:MAX_CONTESTED_PLACES]:
        words, rest = _split_words_line(line["value"])
        place = locate_quote(words, case.response, tuple(points))
        if place is None:
            nowhere.append(words)
            continue
        correction = "" if DELETION_WORDS.fullmatch(rest) else rest
        original = case.response[slice(*place)]
        if correction == original:  # an unchanged text is not contested
            continue
        are_figures = all(any(sign.isdigit() for sign in text) for text in (original, correction))
        points[place] = DebatePoint(
            next((s.index for s in statements if s.start <= place[0] < s.end), 0),
            "contradicted",
            *place,
            original,
            "number_or_date" if are_figures else "contradicted",
            correction,
            f"the evidence says “{correction}”, not “{original}”"
            if correction
            else "it does not hold",
            DEFAULT_WEIGHT if confidence is None else confidence,
        )
    return ContestedWords(tuple(points[place] for place in sorted(points)), tuple(nowhere))


def _split_words_line(line: str) -> tuple[str, str]:
    """Return (the contested words, what should stand there)."""
    quoted = QUOTED_PATTERN.match(line)
    arrow = ARROW_PATTERN.match(line, quoted.end()) if quoted else None
    if quoted and (arrow or quoted.end() == len(line)):
        words = next(part for part in quoted.groups() if part is not None)
        return words.strip(QUOTE_CHARACTERS), line[arrow.end() :].strip(
            QUOTE_CHARACTERS
        ) if arrow else ""
    words, _, rest = ARROW_PATTERN.sub("\n", line, count=1).partition("\n")
    return words.strip(QUOTE_CHARACTERS), rest.strip(QUOTE_CHARACTERS)


def format_places(points: Iterable[DebatePoint]) -> str:
    """Return a line for each place, once, with the correction if somebody proposed one."""
    lines = [
        f"“{point.text}” -> “{point.evidence}”" if point.evidence else f"“{point.text}”"
        for point in points
        if point.finding != "carried"
    ]
    return "\n".join(dict.fromkeys(lines))


def parse_text_block(text: str) -> str | None:
    """Return the text between the marks, unchanged; None if it is missing or has no end.

    None, too, if the marks are not in pairs: a response may hold such marks itself, and half of it
    would pass for the whole.
    """
    matches = list(TEXT_BLOCK.finditer(text))
    if not matches or len(TEXT_BLOCK_MARK.findall(text)) != 2 * len(matches):
        return None
    return matches[-1]["text"] if matches[-1]["text"].strip() else None


def parse_best(reply: Completion, count: int) -> int:
    """Return the index, from 0, of the version that the last line names, from 1.

    Raises UnusableReply if that line names none of `count` versions.
    """
    _, last = split_last_line(reply.text)
    match = BEST_LINE.fullmatch(last)
    number = int(match["number"]) if match else 0
    if not 1 <= number <= count:
        raise UnusableReply(
            f"Expected a last line that reads “Best: N” with a number from 1 to {count}, found "
            f"“{' '.join(last.split())[-80:]}”."
        )
    return number - 1


class LlmJudge(LlmAgent):
    """Judge on a language model, which also picks the best of several revisions."""

    def __init__(self, config: AgentConfig, context: AgentContext) -> None:
        super().__init__(config, context)
        self.prompts = context.judge_prompts

    def decide(self, view: JudgeView, stop: StopSignal) -> Judgement:
        """Return the judgement; `unclear` without a call if there is nothing to judge by.

        Raises ReplyError if two replies lack a last line `Verdict: 1` or `Verdict: 0`.
        """
        if view.case_view.unreadable_images:
            words = f"{join_quoted(view.case_view.unreadable_images)} could not be read here"
            return self._unclear("image_not_readable", words)
        if not view.case_view.evidence.passages and not view.turns:
            return self._unclear("no_evidence", "there is neither evidence nor a debate")
        case, evidence = view.case_view.case, view.case_view.evidence
        prompt = get_judge_prompt_name(view.mode)
        call = self._asking(prompt, case, stop, role="judge", slot=view.slot)
        if view.is_sampled and call.agent.temperature == 0:
            call = replace(call, agent=replace(call.agent, temperature=SAMPLING_TEMPERATURE))
        fields = case_fields(call, case) | call.fields(
            facts=format_facts(view.context, evidence),
            conflicts=format_conflicts(view.context.conflicts, evidence),
        )
        fields = {name: text for name, text in fields.items() if name in FIELDS[prompt]}
        debate = build_judge_transcript(call, view) if "transcript" in FIELDS[prompt] else None
        lines = format_passages(evidence)
        call, messages = fit_debate(call, debate, fields, lines, "evidence")
        parse = parse_moderation if view.mode == "moderate" else parse_verdict
        label, prose = ask_readable(call.say, messages, partial(parse, form=call.form), call.mend)
        if label == "unclear":
            return replace(self._unclear("not_settled", "the debate goes on"), prose=prose)
        text = frame_verdict(label, prose)
        return Judgement(
            agent=self.name, label=label, text=text, prose=prose or SEED_VERDICTS[label]
        )

    def _unclear(self, cause: UnclearCause, reason: str) -> Judgement:
        text = f"No verdict: {reason}."
        return Judgement(self.name, "unclear", text, cause=cause, cause_words=capitalise(reason))

    def best_of(
        self,
        view: JudgeView,
        points: Sequence[DebatePoint],
        revisions: Sequence[str],
        stop: StopSignal,
    ) -> int:
        """Return the index of the best revision; `points` are the places to correct.

        If not all revisions fit the window, the last are left out; if not even two fit, the first
        is the best. Raises ReplyError if two replies lack a last line that names one of them.
        """
        case, lines = view.case_view.case, format_passages(view.case_view.evidence)
        call = self._asking("judge_rerank", case, stop, role="judge", slot=view.slot)
        fields = call.fields(claim=case.response, question=case.question)
        fields["contested"] = call.fenced("places", format_places(points))
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
            self._context.notes.add(
                f"{lost} of {len(revisions)} revisions did not fit the window of {self.name}: "
                "those that mend least, or change most, were left out of the choice."
            )
        if count < 2:
            return 0

        def read(reply: Completion) -> int:
            return parse_best(reply, count)

        return ask_readable(fitted_call.say, messages, read, fitted_call.mend)


def parse_moderation(reply: Completion, form: ReplyForm | None = None) -> tuple[Label, str]:
    """Return the same as `parse_verdict`, but `unclear` if the last line lets the debate go on.

    Raises UnusableReply if the line says neither.
    """
    prose, last = split_last_line(reply.text)
    return ("unclear", prose) if CONTINUE_LINE.fullmatch(last) else parse_verdict(reply, form)


def parse_verdict(reply: Completion, form: ReplyForm | None = None) -> tuple[Label, str]:
    """Return the label in the last line that holds text, and the prose before it.

    Raises UnusableReply if that line is no verdict; a verdict in an earlier line does not count.
    The error names the `form` that was asked for, if any.
    """
    prose, last = split_last_line(reply.text)
    match = VERDICT_LINE.fullmatch(last)
    contradicts = (
        match is not None
        and match["word"] is not None
        and (match["word"].casefold() in CORRECT_WORDS) != (match["number"] == "1")
    )
    if match is None or contradicts:
        line = "a last line that reads “Verdict: 1” or “Verdict: 0” and nothing after it"
        raise UnusableReply(
            f"Expected {form.description if form else line}, "
            f"found “{' '.join(last.split())[-80:]}”."
        )
    return VERDICT_LABELS[match["number"]], prose
