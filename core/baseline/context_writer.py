"""Agent C, built in: shares the evidence out so that debaters have something to tell each other.

Its seat also sums up the rounds of long debates and puts the sources' values into a response.

Source: CEDA 3.3 (debaters receive partly conflicting subsets, the judge the whole with conflicts
marked), SC-MAKS 3.4 (round summaries). Every debater gets the closer half of each statement's
passages; the others alternate.

Agent B, built in: says what stands written in an image; what it cannot read it says so.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.baseline.assessment import Assessor
from core.baseline.wording import (
    WORDS_OF_STANCE,
    cited,
    counted,
    edits_of,
    listed_plainly,
    shortened,
    with_edits,
)
from core.concurrency import Stop
from core.records import Case, Context, Judgement, Quote, Share, Source, Stance, Turn
from core.roles import CaseView, JudgeView

LEAST_LETTERS = 3
IMAGE_RULE = """\
Reads the text in the image by OCR (RapidOCR), pairs the values of charts and tables
with their labels by their places, and reports the lines as one paragraph. It sees no objects,
colours or shapes: an image without readable text is not judged."""


class OcrImageReader:
    """Built-in image reader: text in images only."""

    name = "OCR image reader"
    built_in = True
    rule = IMAGE_RULE

    def describe(self, case: Case, image: Source, stop: Stop) -> str:
        """The lines that were read, or an empty text."""
        if sum(letter.isalnum() for letter in image.text) < LEAST_LETTERS:
            return ""
        lines = [line.strip() for line in image.text.splitlines() if line.strip()]
        return f"Written in {image.name}: " + "; ".join(lines) + "."


MOST_WORDS = 150
"""Of a summary."""
RULE = """The closer half of each statement's passages goes to every debater, the others to the
debaters in turn, so that each knows something the other does not until it is quoted. The judge
gets all. Where one source supports a statement that another contradicts, the conflict is written
down. Of a round of debate it notes what was newly quoted, by whom and for which side. In a response
that is wrong it puts the sources' own value in the place of a wrong one, where one fits."""


class BuiltInContextWriter:
    """Built-in agent C."""

    name = "Context writer"
    built_in = True
    rule = RULE

    def __init__(self, assessor: Assessor) -> None:
        self._assessor = assessor

    def write(self, view: CaseView, debaters: Sequence[str], stop: Stop) -> Context:
        """Each debater's share, the judge's whole, and the conflicts between sources."""
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
        return Context(
            tuple(Share(name, tuple(dict.fromkeys(ids))) for name, ids in shares.items()),
            distinct,
            summary,
            tuple(self._conflicts(view, stop)) if sources > 1 else (),
        )

    def _conflicts(self, view: CaseView, stop: Stop) -> list[str]:
        """Statements that one source supports and another contradicts."""
        told = []
        for item in self._assessor.assess(view, stop):
            if conflict := item.conflict:
                one, other = (cited(passage) for passage in conflict)
                told.append(f"On “{item.statement.text}” {one} stands against {other}.")
        return told

    def summarise(self, view: CaseView, turns: Sequence[Turn], before: str, stop: Stop) -> str:
        """What was newly quoted, by whom, for which stance."""
        stop.check()
        return round_summary(turns, before)

    def revise(self, view: JudgeView, judgement: Judgement, stop: Stop) -> str:
        """The response with the sources' values in the places of wrong ones."""
        stop.check()
        response = view.view.case.response
        said = [point for turn in view.turns for point in turn.points]
        return with_edits(response, edits_of([*judgement.points, *said], response))


def round_summary(turns: Sequence[Turn], before: str) -> str:
    """What stood `before`, and a line for every quote that is new, in the order of the turns.

    Only what our code found in the sources; the oldest lines go where they pass the limit.
    """
    quoting: dict[str, list[Turn]] = {}
    first: dict[str, Quote] = {}
    for turn in turns:
        for quote in turn.quotes:
            text = shortened(quote.text)
            if quote.status == "verified" and text not in before:
                first.setdefault(text, quote)
                quoting.setdefault(text, []).append(turn)
    lines = [*before.splitlines(), *(_line(text, first[text], quoting[text]) for text in first)]
    if not first:
        lines.append("Nothing new was quoted from the sources.")
    return "\n".join(_newest(list(dict.fromkeys(lines))))


def _line(text: str, quote: Quote, turns: Sequence[Turn]) -> str:
    where = f" ({quote.source})" if quote.source else ""
    by_stance: dict[Stance, dict[str, None]] = {}
    for turn in turns:
        by_stance.setdefault(turn.stance, {})[turn.debater] = None
    who = "; ".join(
        f"{listed_plainly(list(names))} for “{WORDS_OF_STANCE[stance]}”"
        for stance, names in by_stance.items()
    )
    return f"“{text}”{where}: quoted by {who}."


def _newest(lines: list[str]) -> list[str]:
    """The last lines that keep within the limit, at least one."""
    while len(lines) > 1 and sum(len(line.split()) for line in lines) > MOST_WORDS:
        lines = lines[1:]
    return lines
