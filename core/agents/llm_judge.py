"""The judge by a language model: prose whose last line is the verdict (CEDA A.3.4).

This is the boundary at which the paper's numbers become labels: 1 is correct, 0 is wrong.
"""

from __future__ import annotations

import re
from dataclasses import replace

from core.agents.ask import case_fields
from core.agents.heard import parted
from core.agents.laid_out import conflict_lines, fact_lines, passage_lines
from core.agents.llm_ranker import LlmRanker
from core.agents.told import fitted_debate, transcript
from core.baseline.plain_verdict import IN_WORDS as IN_WORDS
from core.baseline.plain_verdict import verdict_text as verdict_text
from core.baseline.wording import capitalised, listed
from core.concurrency import Stop
from core.manners import judge_prompt
from core.models.call import Completion
from core.models.prompting import FIELDS
from core.models.structured import Unusable, ask_readable
from core.records import Cause, Judgement, Label
from core.roles import JudgeView

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

    @property
    def _ruling(self) -> tuple[str, ...]:
        """Those that the run's protocol has it asked by."""
        return self._work.judging

    def decide(self, view: JudgeView, stop: Stop) -> Judgement:
        """The finding; unclear without a call where there is nothing that could carry one.

        Raises:
            ReplyError: twice no last line that is `Verdict: 1` or `Verdict: 0`.
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

    Raises:
        Unusable: that line is neither.
    """
    prose, last = parted(said.text)
    return ("unclear", prose) if GO_ON.fullmatch(last) else verdict_of(said)


def verdict_of(said: Completion) -> tuple[Label, str]:
    """The label of the last line that says anything, and the prose before it.

    Raises:
        Unusable: that line is no verdict; a verdict in an earlier line is not one.
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
