"""Agents D and E by a language model: one short turn of plain text (CEDA A.3.3)."""

from __future__ import annotations

from core.agents.ask import LlmAgent, case_fields, one_line
from core.agents.heard import quotes_in, reply_of, stance_of, whole_sentences, without_name
from core.agents.laid_out import conflict_lines, passage_lines
from core.concurrency import Stop
from core.records import Stance, Turn
from core.roles import DebateView, Speak


class LlmDebater(LlmAgent):
    """Debater with a language model; it sees its own share of the evidence alone."""

    prompts = ("debate",)

    def argue(self, view: DebateView, speak: Speak, stop: Stop) -> Turn:
        """One turn; what it quotes is verified by whoever runs the debate.

        Raises:
            ReplyError: it begins with neither AGREE nor DENY.
        """
        case, evidence = view.view.case, view.view.evidence
        asking = self._asking(
            "debate", case, stop, role=f"debater {view.debater}", slot=f"turn {view.number}"
        )
        conflicts = conflict_lines(view.conflicts, evidence, view.share)
        fields = {
            **case_fields(asking, case),
            "debater": one_line(view.debater),
            "last_message": asking.fenced("last message", view.last_message),
            "conflicts": asking.fenced("conflicts", conflicts),
        }
        lines = passage_lines(evidence, view.share)
        asking, messages, _ = asking.fitted(lines, fields, "evidence")
        said = asking.say(messages, speak=speak)
        text = without_name(said.text, view.debater)
        reply, rest = reply_of(text)
        last: Stance = view.turns[-1].stance if view.turns else "supported"
        is_cut = said.finish == "length"
        text = whole_sentences(text, case.language) if is_cut else text
        return Turn(
            debater=view.debater,
            agent=self.name,
            number=view.number,
            round=view.round,
            reply=reply,
            stance=stance_of(reply, rest, last),
            text=text,
            quotes=quotes_in(text),
            cut=is_cut,
        )
