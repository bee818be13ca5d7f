"""Tools that read words: `split_text`, `match`, `translate` and `get_answer`.

`match` compares with a language model if there is one, else with the built-in readers, which do not
judge relevance; `translate` needs a model. Source: HaluAgent 2.2, 2.3, A.2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Annotated, Literal

import msgspec

from core.documents.segmentation import fold, sentences
from core.runtime.errors import InputError
from core.schema.records import Case, Label, Passage, Statement
from core.tools.registry import Answer, Asker, Bench, Tool, read_examples
from core.tools.vocabulary import read_words

Share = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]


MOST_CHARACTERS = 60_000
PRONOUNS = frozenset(
    "it he she they this these that those his her its their him them er sie es ihr ihre sein seine"
    " diese dieser dieses il elle ils elles ce cela cette ces ella ellos ellas esto eso".split()
)
CHINESE_PRONOUNS = ("它", "他", "她", "这", "這", "那", "该", "該", "其", "此")
Finding = Literal[
    "holds", "contradicted", "unsupported", "irrelevant", "self_contradictory", "open"
]
CATEGORIES: dict[Finding, str] = {
    "contradicted": "contradicted",
    "unsupported": "not_in_source",
    "irrelevant": "instruction_not_followed",
    "self_contradictory": "self_contradiction",
}
LABELS: dict[Finding, Label] = {
    "holds": "supported", "open": "unclear", **dict.fromkeys(CATEGORIES, "hallucinated")
}  # fmt: skip
MOST_PASSAGES = 5
MOST_BESIDE = 4_000  # characters of the rest of a response that go along with a statement
# The readers often take a change of subject within one text for a contradiction: a limit of one
# half accuses every tenth sentence of some news articles (docs/search-and-match.md).
SELF_FROM = 0.9
OWN, GIVEN = "the response itself", "what it was given"
OWN_WORDS = "It is read against the other statements of its own response."
NO_READER = "The tool match needs a language model or the built-in readers; here is neither."
Matcher = Callable[[str, Sequence[Passage]], Answer]
NO_MODEL = (
    "The tool translate needs a language model; the built-in readers do not translate. Choose a "
    "roster with one."
)


def _locate_words(words: str, text: str) -> tuple[int | None, int | None]:
    """Return where the words that a model calls wrong stand in the text, else (None, None)."""
    start = text.find(words) if words.strip() else -1
    return (start, start + len(words)) if start >= 0 else (None, None)


class SplitText(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A text to cut, and its language as a tag such as en or zh where it is known."""

    text: str
    language: str = "und"


def _split_text(given: SplitText, bench: Bench) -> Answer:
    if len(given.text) > MOST_CHARACTERS:
        raise InputError(
            f"Expected a text of at most {MOST_CHARACTERS:,} characters, found "
            f"{len(given.text):,}; cut it in parts."
        )
    bench.stop.check()
    rows: list[dict[str, object]] = []
    before = ""
    for item in sentences(given.text, given.language):
        text = given.text[item.start : item.end]
        unquoted = text.lstrip("\"'“‘«「（([*_ ")
        first = fold(next(iter(unquoted.split()), "")).split("'")[0].strip(",.:;")
        points_back = first in PRONOUNS or unquoted.startswith(CHINESE_PRONOUNS)
        refers_to = before if points_back else ""
        rows.append({"start": item.start, "end": item.end, "text": text, "refers_to": refers_to})
        before = text
    if not rows:
        return Answer("unclear", "The text holds no sentence.", has_something=False)
    count = "1 sentence" if len(rows) == 1 else f"{len(rows)} sentences"
    return Answer("unclear", f"The text has {count}.", {"sentences": rows})


SPLIT_TEXT = Tool(
    name="split_text",
    description=read_words("descriptions")["split_text"],
    takes=SplitText,
    work=_split_text,
    examples=read_examples("split_text", SplitText),
    is_system=True,
)


class Match(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A statement and what it is compared with.

    statement: the words to check, exactly as they stand in the response.
    context: evidence, e.g. what a search found; empty: the project's library is searched.
    question: the question that the whole response answers, for relevance.
    before: other statements of the same response, for self-contradiction.
    """

    statement: str
    context: str = ""
    question: str = ""
    before: str = ""


class MatchReply(msgspec.Struct, frozen=True):
    """What a language model says; `words` are the statement's own that are wrong."""

    reason: str
    finding: Finding
    words: str
    instead: str
    p: Share


def passages_of(text: str, source: str) -> tuple[Passage, ...]:
    """Return the sentences of a text as passages of the named source, each with its neighbours.

    Offsets are half-open and count code points of `text`.
    """
    spans = [(s.start, s.end) for s in sentences(text, "und")]
    texts = ["", *(text[start:end] for start, end in spans), ""]
    return tuple(
        Passage(
            id=f"{source}:{n}",
            source_id=source,
            source=source,
            is_image=False,
            page=None,
            start=start,
            end=end,
            text=texts[n + 1],
            score=1.0,
            before=texts[n],
            after=texts[n + 2],
        )
        for n, (start, end) in enumerate(spans)
    )


def _match_statement(given: Match, bench: Bench) -> Answer:
    if not given.statement.strip():
        raise InputError("Expected a statement to compare, found none; give its words.")
    evidence: Sequence[Passage] = ()
    if given.context.strip():
        evidence = passages_of(given.context, GIVEN)
    elif bench.library is not None:
        evidence = bench.library(f"{given.question} {given.statement}".strip(), MOST_PASSAGES)
    if not (evidence or given.before.strip() or given.question.strip()):
        words = "There is nothing to compare the statement with."
        return Answer("unclear", words, has_something=False)
    if bench.ask is not None:
        return _match_with_model(given, evidence, bench.ask)
    if bench.match is not None:
        return _match_with_readers(given, evidence, bench.match)
    raise InputError(NO_READER)


def _match_with_model(given: Match, evidence: Sequence[Passage], ask: Asker) -> Answer:
    context = given.context or "\n".join(f"{p.source}: {p.text}" for p in evidence)
    fields = {
        "question": given.question,
        "statement": given.statement,
        "before": given.before,
        "context": context,
    }
    reply = ask("match", fields, MatchReply)
    label = LABELS[reply.finding]
    is_wrong = label == "hallucinated"
    # A probability that contradicts the finding says nothing.
    is_meant = label != "unclear" and (reply.p >= 0.5) == is_wrong
    start, end = _locate_words(reply.words, given.statement) if is_wrong else (None, None)
    return Answer(
        label,
        reply.reason.strip() or "The model gave no reason.",
        {"finding": reply.finding, "by": "language model", "sources": _list_sources(evidence)},
        reply.p if is_meant else None,
        start,
        end,
        reply.instead.strip() if is_wrong else "",
        CATEGORIES.get(reply.finding, ""),
    )


def _match_with_readers(given: Match, evidence: Sequence[Passage], match: Matcher) -> Answer:
    """Compare with the response's own statements first: contradicting them settles the matter."""
    own_passages = passages_of(given.before, OWN)
    if own_passages:
        answer = match(given.statement, own_passages)
        if answer.gave["finding"] == "contradicted" and (answer.p or 0.0) >= SELF_FROM:
            return _with_finding(answer, "self_contradictory", own_passages)
    if not evidence:
        limitation = "; whether it answers the question takes a language model"
        words = "No other statement of the response contradicts it"
        return Answer(
            "unclear",
            f"{words}{limitation if given.question else ''}.",
            {"finding": "open", "by": "built-in readers", "sources": []},
            has_something=bool(own_passages),
        )
    answer = match(given.statement, evidence)
    return _with_finding(answer, answer.gave["finding"], evidence)


def _with_finding(answer: Answer, finding: Finding, read: Sequence[Passage]) -> Answer:
    gave = {
        **answer.gave,
        "finding": finding,
        "by": "built-in readers",
        "sources": _list_sources(read),
    }
    is_self_contradiction = finding == "self_contradictory"
    category = "" if is_self_contradiction else answer.category
    words = f"{OWN_WORDS} {answer.words}" if is_self_contradiction else answer.words
    return replace(answer, words=words, gave=gave, category=category or CATEGORIES.get(finding, ""))


def _list_sources(passages: Sequence[Passage]) -> list[dict[str, str]]:
    return [{"title": p.source, "text": p.text} for p in passages[:MOST_PASSAGES]]


def _read_statement(statement: Statement | None, case: Case) -> Match | None:
    if statement is None:
        return None
    rest = f"{case.response[: statement.start].strip()} {case.response[statement.end :].strip()}"
    return Match(statement.text, "", case.question, rest.strip()[:MOST_BESIDE])


MATCH = Tool(
    name="match",
    description=read_words("descriptions")["match"],
    takes=Match,
    work=_match_statement,
    examples=read_examples("match", Match),
    reads=_read_statement,
    why_off=lambda bench: NO_READER if bench.ask is None and bench.match is None else "",
    about="statement",
)


class Translate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A claimed translation and the text that it stands for.

    text: the text that was translated.
    claimed: the translation to check, exactly as it stands in the response.
    source_language: the language of the text, by name or tag.
    target_language: the language that the translation should be in.
    """

    text: str
    claimed: str
    source_language: str
    target_language: str


class Back(msgspec.Struct, frozen=True):
    """A translation of the claimed translation into the text's language."""

    translation: str


class TranslationVerdict(msgspec.Struct, frozen=True):
    """What the model says; `words` are the claimed translation's own that are wrong."""

    reason: str
    same_meaning: bool
    words: str
    instead: str
    p: Share


def _check_translation(given: Translate, bench: Bench) -> Answer:
    """Translate the claim back with a model that does not see the text, then compare."""
    if bench.ask is None:
        raise InputError(NO_MODEL)
    for name in given.__struct_fields__:
        if not str(getattr(given, name)).strip():
            raise InputError(f"Expected {name} for the tool translate, found nothing; give it.")
    source, target = given.source_language, given.target_language
    back_fields = {"from_language": target, "into_language": source, "text": given.claimed}
    back = bench.ask("back_translation", back_fields, Back).translation
    fields = {
        "text_language": source,
        "text": given.text,
        "claimed_language": target,
        "claimed": given.claimed,
        "back": back,
    }
    reply = bench.ask("translation", fields, TranslationVerdict)
    is_wrong = not reply.same_meaning
    start, end = _locate_words(reply.words, given.claimed) if is_wrong else (None, None)
    return Answer(
        "hallucinated" if is_wrong else "supported",
        reply.reason.strip() or "The model gave no reason.",
        {"text": given.text, "claimed": given.claimed, "back": back},
        # A probability that contradicts the verdict says nothing.
        reply.p if (reply.p >= 0.5) == is_wrong else None,
        start,
        end,
        reply.instead.strip() if is_wrong else "",
        "contradicted" if is_wrong else "",
    )


TRANSLATE = Tool(
    name="translate",
    description=read_words("descriptions")["translate"],
    takes=Translate,
    work=_check_translation,
    examples=read_examples("translate", Translate),
    why_off=lambda bench: NO_MODEL if bench.ask is None else "",
    about="claimed",
)


class Checked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A statement with its label and the evidence for it."""

    statement: str
    label: Label
    evidence: str


class GetAnswer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All statements of a response as they stand after reflection."""

    checked: list[Checked]


def _combine_labels(given: GetAnswer, bench: Bench) -> Answer:
    """Combine labels: one wrong statement makes the response wrong, all must be supported."""
    if not given.checked:
        raise InputError("Expected at least one checked statement, found none; check one first.")
    for item in given.checked:
        if item.label == "hallucinated" and not item.evidence.strip():
            raise InputError(
                f"Expected evidence against “{item.statement}”, found none; say what shows that it "
                "is hallucinated, or leave it unclear."
            )
    labels = [item.label for item in given.checked]
    wrong, left_open = (
        [item for item in given.checked if item.label == name]
        for name in ("hallucinated", "unclear")
    )
    label: Label = "hallucinated" if wrong else "unclear" if left_open else "supported"
    counts = {name: labels.count(name) for name in ("supported", "hallucinated", "unclear")}
    gave = {
        "counts": counts,
        "wrong": msgspec.to_builtins(wrong),
        "unclear": msgspec.to_builtins(left_open),
    }
    return Answer(label, _describe_answer(len(labels), wrong, left_open), gave)


def _describe_answer(total: int, wrong: Sequence[Checked], left_open: Sequence[Checked]) -> str:
    statements = "1 statement" if total == 1 else f"{total} statements"
    verb = "is" if len(wrong or left_open) == 1 else "are"
    if wrong:
        listed = " ".join(f"“{item.statement}”: {item.evidence}" for item in wrong)
        return f"{len(wrong)} of {statements} {verb} hallucinated. {listed}"
    if left_open:
        return f"None of {statements} is shown to be wrong; {len(left_open)} {verb} unclear."
    return "The statement is supported." if total == 1 else f"All {statements} are supported."


GET_ANSWER = Tool(
    name="get_answer",
    description=read_words("descriptions")["get_answer"],
    takes=GetAnswer,
    work=_combine_labels,
    examples=read_examples("get_answer", GetAnswer),
    is_system=True,
)
