"""Tools that read words: `split_text`, `match`, `translate` and `get_answer`.

`match` compares with a language model if there is one, else with the built-in readers, which do not
judge relevance; `translate` needs a model. Source: HaluAgent 2.2, 2.3, A.2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Annotated, Literal

import msgspec

from core.documents.segmentation import fold_word, split_sentences
from core.runtime.errors import InputError
from core.schema.records import Case, Label, Passage, Statement
from core.tools.registry import PromptRunner, Tool, ToolAnswer, ToolContext, load_examples
from core.tools.vocabulary import load_words

Probability = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]


MAX_TEXT_CHARS = 60_000
PRONOUNS = frozenset(
    "it he she they this these that those his her its their him them er sie es ihr ihre sein seine"
    " diese dieser dieses il elle ils elles ce cela cette ces ella ellos ellas esto eso".split()
)
CHINESE_PRONOUNS = ("它", "他", "她", "这", "這", "那", "该", "該", "其", "此")
MatchOutcome = Literal[
    "holds", "contradicted", "unsupported", "irrelevant", "self_contradictory", "open"
]
FINDING_CATEGORIES: dict[MatchOutcome, str] = {
    "contradicted": "contradicted",
    "unsupported": "not_in_source",
    "irrelevant": "instruction_not_followed",
    "self_contradictory": "self_contradiction",
}
FINDING_LABELS: dict[MatchOutcome, Label] = {
    "holds": "supported", "open": "unclear", **dict.fromkeys(FINDING_CATEGORIES, "hallucinated")
}  # fmt: skip
MAX_PASSAGES = 5
MAX_CONTEXT_CHARS = 4_000  # characters of the rest of a response that go along with a statement
# The readers often take a change of subject within one text for a contradiction: a limit of one
# half accuses every tenth sentence of some news articles (docs/search-and-match.md).
MIN_SELF_CONTRADICTION_P = 0.9
RESPONSE_SOURCE, CONTEXT_SOURCE = "the response itself", "what it was given"
SELF_COMPARISON_NOTE = "It is read against the other statements of its own response."
NO_MATCHER_MESSAGE = (
    "The tool match needs a language model or the built-in readers; here is neither."
)
StatementMatcher = Callable[[str, Sequence[Passage]], ToolAnswer]
NO_MODEL_MESSAGE = (
    "The tool translate needs a language model; the built-in readers do not translate. Choose a "
    "roster with one."
)


def _locate_words(words: str, text: str) -> tuple[int | None, int | None]:
    """Return where the words that a model calls wrong stand in the text, else (None, None)."""
    start = text.find(words) if words.strip() else -1
    return (start, start + len(words)) if start >= 0 else (None, None)


class SplitTextInput(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A text to cut, and its language as a tag such as en or zh where it is known."""

    text: str
    language: str = "und"


def _split_text(given: SplitTextInput, tool_context: ToolContext) -> ToolAnswer:
    if len(given.text) > MAX_TEXT_CHARS:
        raise InputError(
            f"Expected a text of at most {MAX_TEXT_CHARS:,} characters, found "
            f"{len(given.text):,}; cut it in parts."
        )
    tool_context.stop.check()
    rows: list[dict[str, object]] = []
    before = ""
    for item in split_sentences(given.text, given.language):
        text = given.text[item.start : item.end]
        unquoted = text.lstrip("\"'“‘«「（([*_ ")
        first = fold_word(next(iter(unquoted.split()), "")).split("'")[0].strip(",.:;")
        points_back = first in PRONOUNS or unquoted.startswith(CHINESE_PRONOUNS)
        refers_to = before if points_back else ""
        rows.append({"start": item.start, "end": item.end, "text": text, "refers_to": refers_to})
        before = text
    if not rows:
        return ToolAnswer("unclear", "The text holds no sentence.", has_something=False)
    count = "1 sentence" if len(rows) == 1 else f"{len(rows)} sentences"
    return ToolAnswer("unclear", f"The text has {count}.", {"sentences": rows})


SPLIT_TEXT = Tool(
    name="split_text",
    description=load_words("descriptions")["split_text"],
    takes=SplitTextInput,
    work=_split_text,
    examples=load_examples("split_text", SplitTextInput),
    is_system=True,
)


class MatchInput(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
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
    finding: MatchOutcome
    words: str
    instead: str
    p: Probability


def split_into_passages(text: str, source: str) -> tuple[Passage, ...]:
    """Return the sentences of a text as passages of the named source, each with its neighbours.

    Offsets are half-open and count code points of `text`.
    """
    spans = [(s.start, s.end) for s in split_sentences(text, "und")]
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


def _match_statement(given: MatchInput, tool_context: ToolContext) -> ToolAnswer:
    if not given.statement.strip():
        raise InputError("Expected a statement to compare, found none; give its words.")
    evidence: Sequence[Passage] = ()
    if given.context.strip():
        evidence = split_into_passages(given.context, CONTEXT_SOURCE)
    elif tool_context.library is not None:
        evidence = tool_context.library(f"{given.question} {given.statement}".strip(), MAX_PASSAGES)
    if not (evidence or given.before.strip() or given.question.strip()):
        words = "There is nothing to compare the statement with."
        return ToolAnswer("unclear", words, has_something=False)
    if tool_context.ask is not None:
        return _match_with_model(given, evidence, tool_context.ask)
    if tool_context.match is not None:
        return _match_with_readers(given, evidence, tool_context.match)
    raise InputError(NO_MATCHER_MESSAGE)


def _match_with_model(
    given: MatchInput, evidence: Sequence[Passage], ask: PromptRunner
) -> ToolAnswer:
    context = given.context or "\n".join(f"{p.source}: {p.text}" for p in evidence)
    fields = {
        "question": given.question,
        "statement": given.statement,
        "before": given.before,
        "context": context,
    }
    reply = ask("match", fields, MatchReply)
    label = FINDING_LABELS[reply.finding]
    is_wrong = label == "hallucinated"
    # A probability that contradicts the finding says nothing.
    is_meant = label != "unclear" and (reply.p >= 0.5) == is_wrong
    start, end = _locate_words(reply.words, given.statement) if is_wrong else (None, None)
    return ToolAnswer(
        label,
        reply.reason.strip() or "The model gave no reason.",
        {"finding": reply.finding, "by": "language model", "sources": _list_sources(evidence)},
        reply.p if is_meant else None,
        start,
        end,
        reply.instead.strip() if is_wrong else "",
        FINDING_CATEGORIES.get(reply.finding, ""),
    )


def _match_with_readers(
    given: MatchInput, evidence: Sequence[Passage], match: StatementMatcher
) -> ToolAnswer:
    """Compare with the response's own statements first: contradicting them settles the matter."""
    own_passages = split_into_passages(given.before, RESPONSE_SOURCE)
    if own_passages:
        answer = match(given.statement, own_passages)
        if (
            answer.gave["finding"] == "contradicted"
            and (answer.p or 0.0) >= MIN_SELF_CONTRADICTION_P
        ):
            return _with_finding(answer, "self_contradictory", own_passages)
    if not evidence:
        limitation = "; whether it answers the question takes a language model"
        words = "No other statement of the response contradicts it"
        return ToolAnswer(
            "unclear",
            f"{words}{limitation if given.question else ''}.",
            {"finding": "open", "by": "built-in readers", "sources": []},
            has_something=bool(own_passages),
        )
    answer = match(given.statement, evidence)
    return _with_finding(answer, answer.gave["finding"], evidence)


def _with_finding(answer: ToolAnswer, finding: MatchOutcome, read: Sequence[Passage]) -> ToolAnswer:
    gave = {
        **answer.gave,
        "finding": finding,
        "by": "built-in readers",
        "sources": _list_sources(read),
    }
    is_self_contradiction = finding == "self_contradictory"
    category = "" if is_self_contradiction else answer.category
    words = f"{SELF_COMPARISON_NOTE} {answer.words}" if is_self_contradiction else answer.words
    return replace(
        answer, words=words, gave=gave, category=category or FINDING_CATEGORIES.get(finding, "")
    )


def _list_sources(passages: Sequence[Passage]) -> list[dict[str, str]]:
    return [{"title": p.source, "text": p.text} for p in passages[:MAX_PASSAGES]]


def _read_statement(statement: Statement | None, case: Case) -> MatchInput | None:
    if statement is None:
        return None
    rest = f"{case.response[: statement.start].strip()} {case.response[statement.end :].strip()}"
    return MatchInput(statement.text, "", case.question, rest.strip()[:MAX_CONTEXT_CHARS])


MATCH = Tool(
    name="match",
    description=load_words("descriptions")["match"],
    takes=MatchInput,
    work=_match_statement,
    examples=load_examples("match", MatchInput),
    reads=_read_statement,
    why_off=lambda tool_context: (
        NO_MATCHER_MESSAGE if tool_context.ask is None and tool_context.match is None else ""
    ),
    about="statement",
)


class TranslationInput(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
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


class BackTranslation(msgspec.Struct, frozen=True):
    """A translation of the claimed translation into the text's language."""

    translation: str


class TranslationVerdict(msgspec.Struct, frozen=True):
    """What the model says; `words` are the claimed translation's own that are wrong."""

    reason: str
    same_meaning: bool
    words: str
    instead: str
    p: Probability


def _check_translation(given: TranslationInput, tool_context: ToolContext) -> ToolAnswer:
    """Translate the claim back with a model that does not see the text, then compare."""
    if tool_context.ask is None:
        raise InputError(NO_MODEL_MESSAGE)
    for name in given.__struct_fields__:
        if not str(getattr(given, name)).strip():
            raise InputError(f"Expected {name} for the tool translate, found nothing; give it.")
    source, target = given.source_language, given.target_language
    back_fields = {"from_language": target, "into_language": source, "text": given.claimed}
    back = tool_context.ask("back_translation", back_fields, BackTranslation).translation
    fields = {
        "text_language": source,
        "text": given.text,
        "claimed_language": target,
        "claimed": given.claimed,
        "back": back,
    }
    reply = tool_context.ask("translation", fields, TranslationVerdict)
    is_wrong = not reply.same_meaning
    start, end = _locate_words(reply.words, given.claimed) if is_wrong else (None, None)
    return ToolAnswer(
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
    description=load_words("descriptions")["translate"],
    takes=TranslationInput,
    work=_check_translation,
    examples=load_examples("translate", TranslationInput),
    why_off=lambda tool_context: NO_MODEL_MESSAGE if tool_context.ask is None else "",
    about="claimed",
)


class CheckedStatement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A statement with its label and the evidence for it."""

    statement: str
    label: Label
    evidence: str


class GetAnswerInput(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All statements of a response as they stand after reflection."""

    checked: list[CheckedStatement]


def _combine_labels(given: GetAnswerInput, tool_context: ToolContext) -> ToolAnswer:
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
    return ToolAnswer(label, _describe_answer(len(labels), wrong, left_open), gave)


def _describe_answer(
    total: int, wrong: Sequence[CheckedStatement], left_open: Sequence[CheckedStatement]
) -> str:
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
    description=load_words("descriptions")["get_answer"],
    takes=GetAnswerInput,
    work=_combine_labels,
    examples=load_examples("get_answer", GetAnswerInput),
    is_system=True,
)
