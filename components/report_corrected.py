"""The corrected text in a report: what goes and what comes within the response, and by whom."""

from __future__ import annotations

from components.corrected import by_words, proposed
from components.difference_within import change_words, contested_still, within_html
from components.markup import Html, element
from core.progress import Progress
from core.records import Case

HEADING = "As it should read"


def corrected_parts(case: Case, progress: Progress) -> list[Html]:
    """Its section of the HTML report; none where nothing is proposed."""
    text, by = proposed(case, progress)
    if not text:
        return []
    left = contested_still(case.response, text, progress.spans)
    return [
        element("h2", HEADING),
        element("p", by_words(by), class_="cp-quiet"),
        within_html(case.response, text),
        *([element("p", left, class_="cp-quiet", dir="auto")] if left else []),
    ]


def corrected_texts(case: Case, progress: Progress) -> list[str]:
    """Who proposes it, the text, and each change, for the Markdown report; none without one."""
    text, by = proposed(case, progress)
    if not text:
        return []
    left = contested_still(case.response, text, progress.spans)
    told = "\n".join(change_words(case.response, text))
    return [by_words(by), text, told, *([left] if left else [])]
