"""The outcome of a debate in which too few could be heard: stated, and never a label."""

from __future__ import annotations

from core.baseline.wording import capitalised
from core.debate.floor import Floor
from core.records import Judgement


def unheard(floor: Floor, words: str) -> Judgement:
    """Unclear, without asking the judge: there is no debate that it could read."""
    return Judgement(
        agent=floor.play.roster.judge.name,
        label="unclear",
        text=f"No verdict: {words}.",
        cause="unreadable_reply",
        cause_words=f"{capitalised(words)}.",
    )
