"""A verdict in the words that the classifier knows, around whatever a judge or a vote says freely.

They are those of the built-in judge, on whose verdicts the seed head was trained.
"""

from __future__ import annotations

from core.records import Label

IN_WORDS: dict[Label, str] = {
    "supported": "The judge agrees that the statement is correct. "
    "Verdict: CORRECT, the statement is supported.",
    "hallucinated": "The judge agrees that the statement is wrong. "
    "Verdict: INCORRECT, the statement is hallucinated.",
}
MOST_PROSE = 300  # characters


def verdict_text(label: Label, prose: str) -> str:
    """What the classifier judges by (CEDA 3.4): the prose between verdicts in words that it knows.

    The seed head learned from the built-in judge's short texts: prose that weighs objections looks
    like blame to it, and long prose drowns the verdict. So the verdict stands around the prose's
    beginning and end. A head that people's corrections of such runs have taught weighs the prose
    itself.
    """
    words = IN_WORDS[label]
    return " ".join([words, words, _shortened(prose), words, words]) if prose else words


def _shortened(prose: str) -> str:
    """The beginning and the end, cut at words, of prose that is longer than the head takes in."""
    if len(prose) <= MOST_PROSE:
        return prose
    half = MOST_PROSE // 2
    return f"{prose[:half].rsplit(' ', 1)[0]} … {prose[-half:].split(' ', 1)[-1]}"
