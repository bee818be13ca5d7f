"""What a language model writes of a debate: a round in brief, and the response as it should read.

Source: SC-MAKS 3.4 (context summarisation), 3.2 (the output O*).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from core.agents.ask import LlmAgent, case_fields
from core.agents.contested import MARK
from core.agents.heard import whole_sentences
from core.agents.laid_out import passage_lines
from core.agents.told import fitted_debate, transcript
from core.concurrency import Stop
from core.errors import ReplyError
from core.models.call import Completion
from core.models.structured import Unusable, ask_readable
from core.records import Context, Judgement, Turn
from core.roles import CaseView, JudgeView

# The last closing mark counts: the text itself may hold one.
MARKED = re.compile(
    r"^[ \t]*<<<[ \t]*TEXT[ \t]*\n(?P<text>.*?)\n?[ \t]*TEXT[ \t]*>>>\s*\Z",
    re.DOTALL | re.MULTILINE,
)
NO_CONTEXT = Context((), (), "")


class LlmSummariser(LlmAgent):
    """Summariser with a language model."""

    def summarise(self, view: CaseView, turns: Sequence[Turn], before: str, stop: Stop) -> str:
        """The key points of these turns and of the summary `before` them.

        Where they do not fit the model's window, the earliest are left out.

        Raises:
            ReplyError: it says nothing.
        """
        number = max((turn.round for turn in turns), default=0)
        asking = self._asking(
            "summary", view.case, stop, role="context writer", slot=f"summary {number}"
        )
        case = case_fields(asking, view.case)
        heard = JudgeView(view, NO_CONTEXT, tuple(turns), False, summary=before)
        fields = {"claim": case["claim"], "question": case["question"]}
        asking, messages = fitted_debate(asking, transcript(asking, heard), fields)
        said = asking.say(messages)
        text = said.text.strip()
        if not text:
            raise ReplyError("Expected a summary, found nothing.", reply=said.text)
        return whole_sentences(text, view.case.language) if said.finish == "length" else text


class LlmReviser(LlmAgent):
    """Reviser with a language model."""

    def revise(self, view: JudgeView, judgement: Judgement, stop: Stop) -> str:
        """The whole response with what is wrong put right.

        Raises:
            ReplyError: twice no text between the marks.
        """
        case, evidence = view.view.case, view.view.evidence
        asking = self._asking("corrected", case, stop, role="context writer", slot="corrected")
        fields = {
            "response": asking.fenced("text", case.response),
            "question": asking.fenced("question", case.question),
            "finding": asking.fenced("finding", judgement.prose or judgement.text),
        }
        told = transcript(asking, view)
        lines = passage_lines(evidence)
        asking, messages = fitted_debate(asking, told, fields, lines, "evidence")

        def read(said: Completion) -> str:
            return revised_in(said, case.response)

        return ask_readable(asking.say, messages, read, asking.mend)


def revised_in(said: Completion, response: str) -> str:
    """The text between the marks, as it stands there.

    Raises:
        Unusable: there is none, the reply was cut off within it, or there are several, as a draft
            before the last one, and the `response` holds no such marks itself.
    """
    match = MARKED.search(said.text)
    if match is None or not match["text"].strip():
        cut = " The reply was cut off at its token limit." if said.finish == "length" else ""
        raise Unusable(
            "Expected a line “<<<TEXT”, the whole text, and a line “TEXT>>>” at the end; found "
            f"none.{cut}"
        )
    if MARK.search(match["text"]) and not MARK.search(response):
        raise Unusable("Expected one text between “<<<TEXT” and “TEXT>>>”, found several.")
    return match["text"]
