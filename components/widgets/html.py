"""The only HTML builder: it escapes all text and allows only these tags and attributes.

It also renders marks in a text, heat by agent (MSA 3.3) and differences between two texts, and
rewrites what agents write for machines (CEDA A.3.3) for people.
"""

from __future__ import annotations

import itertools
import re
from bisect import insort
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from html import escape
from typing import TypeVar

import streamlit as st

from components.widgets.wording import (
    break_long_words,
    clip_text,
    format_percent,
    isolate_right_to_left,
)
from core.agents.llm_judge import ARROW_PATTERN, DELETION_WORDS, QUOTE_CHARACTERS
from core.agents.reply_parser import CONFIDENCE_LINE, CONTESTED_LINE, DOUBT_LINE, strip_marks
from core.baseline.wording import capitalise, join_quoted
from core.documents.segmentation import is_ended
from core.schema.events import SoftLabel
from core.schema.records import Span, Stance, TurnReply, WordScore
from core.schema.reviews import format_category
from core.schema.run_state import RunState

STATEMENT_BREAK = re.compile(r"(?<=[.。]) (?=“[^”]{1,200}”: |\d+ statements? says? nothing )")
REPLY_PATTERN = re.compile(r"\s*(agree|deny)\s*(?:[.:;,!–—-]+\s*|$)", re.IGNORECASE)
STANCE_BY_KEYWORD: dict[str, Stance] = {
    "CORRECT": "supported", "WRONG": "hallucinated", "OPEN": "unclear",
    "正确": "supported", "错误": "hallucinated", "未定": "unclear",
}  # fmt: skip
STANCE_PATTERN = re.compile(
    rf"[\s*_`]*({'|'.join(STANCE_BY_KEYWORD)})[*_`]*\s*(?:[.:;,!。：；，！–—-]+\s*|$)",
    re.IGNORECASE,
)
VERDICT_PATTERN = re.compile(
    r"(?:^|\s)verdict:\s*(?:in)?correct\b[,:]?([^.]*)\.?\s*$", re.IGNORECASE
)
ALLOWED_TAGS = frozenset(
    """a article b bdi br code col colgroup dd del details div dl dt em figcaption figure h1 h2 h3
    h4 header html body head img ins li main mark meta ol p pre section small span strong style
    summary sup table tbody td th thead title tr ul""".split()
)
ALLOWED_ATTRIBUTES = frozenset(
    """class id title dir lang data-n data-say style alt src role aria-label charset colspan href
    open rel scope tabindex target""".split()
)
# An anchor on this page, or a web address that a person may choose to open.
HREF_PATTERN = re.compile(r"#[\w-]+|https?://[^\s\"'<>\\]+", re.ASCII | re.IGNORECASE)
VOID_TAGS = frozenset(["br", "col", "img", "meta"])
MAX_TITLES = 20
MEAN_LAYER = "Mean of the vote"
WORD_LAYER = "Every word by itself"
MIN_SHOWN_P = 0.1  # words below it stay uncoloured, or most of the text would be coloured
MAX_REASON_CHARS = 160
# A number with its separators, a word, or one character of a script written without spaces.
TOKEN_PATTERN = re.compile(r"\d+(?:[.,:]\d+)+|[^\W\u2e80-\U0010ffff]+|\s+|.", re.DOTALL)
MAX_LINE_DIFF_CHARS = 4000  # characters; comparing the words of longer lines takes too long
DIFF_SIGNS = {"removed": "−", "added": "+"}
MAX_INLINE_DIFF_CHARS = 6000  # characters of both texts; comparing longer ones takes seconds
MAX_CHANGE_CHARS = 300
REMOVED_PREFIX, ADDED_PREFIX = "taken out: ", "put in: "
TextChange = tuple[str, str]  # (removed words, added words); the same words in both if unchanged
Item = TypeVar("Item")
ITEMS_PER_PAGE = 20


def split_reply(text: str, *, under_way: bool = False) -> tuple[TurnReply | None, str]:
    """Return (the reply that the text begins with, the rest of the text).

    With `under_way` the text is still being written: the beginning of a reply is not shown yet.
    """
    text = strip_marks(text)
    if match := REPLY_PATTERN.match(text):
        reply: TurnReply = "agree" if match[1].lower() == "agree" else "deny"
        return reply, capitalise(text[match.end() :])
    start = text.strip()
    is_partial = under_way and start and any(word.startswith(start) for word in ("AGREE", "DENY"))
    return None, "" if is_partial else text


def split_stance(text: str, *, under_way: bool = False) -> tuple[Stance | None, str]:
    """Return (the stance that the text begins with, the rest without confidence and doubt).

    With `under_way` the beginning of a stance is not shown yet.
    """
    words = DOUBT_LINE.sub("", CONFIDENCE_LINE.sub("", strip_marks(text))).strip()
    if match := STANCE_PATTERN.match(words):
        return STANCE_BY_KEYWORD[match[1].upper()], capitalise(words[match.end() :])
    is_partial = under_way and words and any(word.startswith(words) for word in STANCE_BY_KEYWORD)
    return None, "" if is_partial else words


def strip_word_lines(text: str) -> str:
    """Return the text without its lines that name words of the response."""
    return CONTESTED_LINE.sub("", text).strip()


def describe_word_lines(text: str) -> list[str]:
    """Return those lines for people, each once: “512 m” should be “412 m”."""
    corrections = []
    for line in CONTESTED_LINE.finditer(text):
        words, *rest = (
            part.strip(QUOTE_CHARACTERS) for part in ARROW_PATTERN.split(line["value"], maxsplit=1)
        )
        if not rest:
            corrections.append(f"contests “{words}”")
        elif DELETION_WORDS.fullmatch(rest[0]):
            corrections.append(f"“{words}” should go")
        else:
            corrections.append(f"“{words}” should be “{rest[0]}”")
    return list(dict.fromkeys(corrections))


def strip_verdict_line(text: str) -> str:
    """Return the judge's text without its verdict line; the line in words if it is all there is."""
    match = VERDICT_PATTERN.search(text)
    if not match:
        return text
    rest = match[1].strip()
    return text[: match.start()].rstrip() or (f"{capitalise(rest)}." if rest else "")


def split_rationale(text: str) -> list[str]:
    """Split the rationale; an audit's has a line for each statement it mentions (“…”: why)."""
    return STATEMENT_BREAK.split(isolate_right_to_left(strip_verdict_line(text)))


class Html(str):
    """Markup that this builder made; any other string is text and gets escaped."""

    __slots__ = ()


def element(name: str, *children: str | Html, **attributes: str | None) -> Html:
    """Return an element; `class_` gives `class`, children that are not `Html` are escaped."""
    if name not in ALLOWED_TAGS:
        raise ValueError(f"<{name}> is not among our tags")
    parts = [f"<{name}"]
    for key, value in attributes.items():
        attribute = key.rstrip("_").replace("_", "-")
        if attribute not in ALLOWED_ATTRIBUTES:
            raise ValueError(f"{attribute} is not among our attributes")
        if attribute == "href" and not HREF_PATTERN.fullmatch(value or ""):
            raise ValueError(f"{value!r} is no address that a link of ours may lead to")
        if value is not None:
            parts.append(f' {attribute}="{escape(value, quote=True)}"')
    parts.append(">")
    if name not in VOID_TAGS:
        parts += [escape(c) if name == "title" else to_html(c) for c in children]
        parts.append(f"</{name}>")
    return Html("".join(parts))


def div(class_: str, *children: str | Html, **attributes: str | None) -> Html:
    """Return a `<div>` of that class."""
    return element("div", *children, class_=class_, **attributes)


def html_table(
    heads: Sequence[str], rows: Iterable[Sequence[str | Html]], class_: str | None = None
) -> Html:
    """Return a table; it has no head if all `heads` are empty."""
    names = element("tr", *(element("th", name, scope="col") for name in heads))
    lines = (element("tr", *(element("td", cell, dir="auto") for cell in row)) for row in rows)
    head = [element("thead", names)] if any(heads) else []
    return element("table", *head, element("tbody", *lines), class_=class_)


def external_link(address: str) -> Html:
    """Return a link marked as leading away; plain text if the address is no web address."""
    if not HREF_PATTERN.fullmatch(address) or address.startswith("#"):
        return to_html(address)
    attributes = {"rel": "noopener noreferrer nofollow", "target": "_blank"}
    words = "Opens a page outside Counterpoint"
    return element("a", address, " ↗", href=address, **attributes, title=words)


def to_html(value: str | Html) -> Html:
    """Return the value as markup: `Html` as it is, else escaped, with breaks in long names."""
    if isinstance(value, Html):
        return value
    return Html(break_long_words(escape(value, quote=False), "<wbr>"))


def join_html(pieces: Iterable[str | Html]) -> Html:
    """Join the pieces without a separator."""
    return Html("".join(to_html(piece) for piece in pieces))


@dataclass(frozen=True)
class HtmlMark:
    """`[start, end)` of the text in code points; `strength` in [0, 1] is its heat, None no heat."""

    start: int
    end: int
    number: str = ""
    title: str = ""
    kind: str = ""
    strength: float | None = None


MarkLayers = dict[str, list[HtmlMark]]


@dataclass(frozen=True)
class LinkTarget:
    """`[start, end)` of the text, a target for links to `#id`."""

    start: int
    end: int
    id: str


def number_spans(spans: Sequence[Span]) -> list[HtmlMark]:
    """Return the spans as marks numbered from 1."""
    return [HtmlMark(s.start, s.end, str(number)) for number, s in enumerate(spans, start=1)]


def render_marked_text(
    text: str, marks: Sequence[HtmlMark], parts: Sequence[LinkTarget] = ()
) -> Html:
    """Return the whole text with its marks; overlapping marks show all their numbers.

    The numbers are drawn by CSS, so that copying the text copies the text alone. Of overlapping
    parts the first one counts.
    """
    anchors = _drop_overlaps(parts, len(text))
    stretches: list[HtmlMark | LinkTarget] = [*marks, *anchors]
    ends = {end for stretch in stretches for end in (stretch.start, stretch.end)}
    cuts = sorted(cut for cut in {0, len(text), *ends} if 0 <= cut <= len(text))
    opening, closing = defaultdict[int, list[int]](list), defaultdict[int, list[int]](list)
    for place, mark in enumerate(marks):
        if max(mark.start, 0) < mark.end:
            opening[max(mark.start, 0)].append(place)
        closing[mark.end].append(place)
    cover = _MarkCover(marks, any(mark.strength is not None for mark in marks))
    remaining = iter(anchors)
    part = next(remaining, None)
    pieces: list[str | Html] = []
    whole: list[str | Html] = []
    for start, end in itertools.pairwise(cuts):
        if part and start == part.start:
            whole.extend(pieces)
            pieces = []
        cover.move(opening[start], closing[start])
        pieces.append(cover.render(text[start:end]))
        ending = [marks[place].number for place in closing[end] if marks[place].number]
        pieces += [element("sup", class_="cp-number", data_n=number) for number in ending]
        if part and end == part.end:
            whole.append(element("span", *pieces, class_="cp-part", id=part.id))
            part, pieces = next(remaining, None), []
    return div("cp-text", *whole, *pieces, dir="auto")


def _drop_overlaps(parts: Sequence[LinkTarget], length: int) -> list[LinkTarget]:
    """Return the parts in the order of the text, without those that overlap an earlier one."""
    kept: list[LinkTarget] = []
    for part in sorted(parts, key=lambda candidate: candidate.start):
        free_from = kept[-1].end if kept else 0
        if free_from <= part.start < part.end <= length:
            kept.append(part)
    return kept


@dataclass
class _MarkCover:
    """The marks over the current stretch of text, moved along from left to right."""

    marks: Sequence[HtmlMark]
    is_heat: bool
    places: set[int] = field(default_factory=set)
    kinds: Counter[str] = field(default_factory=Counter)
    titled: list[int] = field(default_factory=list)

    def move(self, opened: Sequence[int], closed: Sequence[int]) -> None:
        """Go on to the next stretch: `opened` marks begin here, `closed` ones have ended."""
        for place in opened:
            self.places.add(place)
            self.kinds[self.marks[place].kind] += 1
            if self.marks[place].title:
                insort(self.titled, place)
        for place in self.places.intersection(closed):
            self.places.remove(place)
            self.kinds[self.marks[place].kind] -= 1
            if self.marks[place].title:
                self.titled.remove(place)

    def render(self, words: str) -> str | Html:
        """Return the stretch's words, marked if any mark covers them."""
        if not self.places:
            return words
        kinds = sorted(kind for kind, count in self.kinds.items() if kind and count)
        classes = " ".join(["cp-mark", *(f"cp-mark-{kind}" for kind in kinds)])
        titles = [self.marks[place].title for place in self.titled[:MAX_TITLES]]
        if len(self.titled) > MAX_TITLES:
            titles.append("…")
        hint = "\n".join(titles) or None
        if not self.is_heat:
            return element("mark", words, class_=classes, title=hint)
        strongest = max(self.marks[place].strength or 0.0 for place in self.places)
        return element(
            "mark",
            words,
            class_=f"{classes} cp-heat",
            style=f"--cp-heat: {100 * strongest:.0f}%",
            tabindex="0",
            data_say=hint,
            aria_label=f"{words}: {hint}" if hint else None,
        )


def group_marks_by_agent(progress: RunState) -> MarkLayers:
    """Return the marks by agent in the order in which they spoke, the vote's mean first."""
    layers: MarkLayers = {}
    for name, mark in _marks_by_layer(progress):
        layers.setdefault(name, []).append(mark)
    return layers


def build_heat_marks(
    layers: MarkLayers, chosen: Iterable[str], progress: RunState
) -> list[HtmlMark]:
    """Return the marks of the chosen layers titled by agent, and the final spans outlined."""
    named_marks = ((name, mark) for name in chosen for mark in layers.get(name, []))
    marks = [replace(mark, title=f"{name}: {mark.title}") for name, mark in named_marks]
    final = [HtmlMark(s.start, s.end, kind="hard", strength=0.0) for s in progress.spans]
    return marks + final


def _marks_by_layer(progress: RunState) -> Iterable[tuple[str, HtmlMark]]:
    def heat_mark(scored: Span | SoftLabel | WordScore, title: str = "") -> HtmlMark:
        title = title or format_percent(scored.p)
        return HtmlMark(scored.start, scored.end, title=title, strength=scored.p)

    def format_reason(reason: str) -> str:
        return f" – {clip_text(reason, MAX_REASON_CHARS)}" if reason else ""

    soft_labels = progress.soft.labels if progress.soft else ()
    yield from ((MEAN_LAYER, heat_mark(label)) for label in soft_labels)
    for span in progress.proposed:
        instead = f", should say “{clip_text(span.instead, 80)}”" if span.instead else ""
        words = f"{format_percent(span.p)}, {format_category(span.category)}{instead}"
        # Agents who raised a span together have a layer each.
        yield from ((name, heat_mark(span, words)) for name in span.source.split(", "))
    for vote in progress.votes:
        if vote.p is not None:
            title = f"{format_percent(vote.p)}{format_reason(vote.reason)}"
            mark = HtmlMark(vote.span.start, vote.span.end, title=title, strength=vote.p)
            yield vote.adjudicator, mark
    adjudicator = next((r.agent for r in progress.roles if r.role == "span adjudicator"), "")
    for ruling in progress.rulings if adjudicator else ():
        decision = f"{'kept' if ruling.kept else 'dropped'}{format_reason(ruling.reason)}"
        yield adjudicator, heat_mark(ruling.span, f"{format_percent(ruling.span.p)}, {decision}")
    scores = progress.words.scores if progress.words else ()
    yield from ((WORD_LAYER, heat_mark(score)) for score in scores if score.p >= MIN_SHOWN_P)


def list_missing_votes(progress: RunState) -> Sequence[str]:
    """Say who gave no vote on how many spans; such votes count in no mean."""
    silent = [vote.adjudicator for vote in progress.votes if vote.p is None]
    return [f"{name} on {silent.count(name)}" for name in dict.fromkeys(silent)]


def count_changed_lines(before: str, after: str) -> tuple[int, int]:
    """Return (number of lines removed, number of lines added)."""
    codes = _match_lines(before, after).get_opcodes()
    changed = [code for code in codes if code[0] != "equal"]
    return sum(code[2] - code[1] for code in changed), sum(code[4] - code[3] for code in changed)


def render_line_diff(before: str, after: str, *, context: int = 1) -> Html:
    """Return a line diff, each change with `context` equal lines around it; empty if equal."""
    if before == after:
        return Html()
    old, new = before.split("\n"), after.split("\n")
    rows: list[Html] = []
    shown = 0
    for group in _match_lines(before, after).get_grouped_opcodes(context):
        rows += _gap_html(group[0][1] - shown)
        shown = group[-1][2]
        for kind, start, end, new_start, new_end in group:
            if kind == "equal":
                rows += [_diff_line("same", [line]) for line in old[start:end]]
            else:
                rows += _changed_lines_html(old[start:end], new[new_start:new_end])
    rows += _gap_html(len(old) - shown)
    return div("cp-diff", join_html(rows))


def _match_lines(before: str, after: str) -> SequenceMatcher[str]:
    return SequenceMatcher(None, before.split("\n"), after.split("\n"))


def _gap_html(lines: int) -> list[Html]:
    words = "1 line that is alike" if lines == 1 else f"{lines} lines that are alike"
    return [div("cp-diff-gap", f"… {words}")] if lines > 0 else []


def _changed_lines_html(old: Sequence[str], new: Sequence[str]) -> Iterator[Html]:
    """Yield removed lines, then added ones; equally many are compared word by word."""
    if len(old) != len(new):
        yield from (_diff_line("removed", [line]) for line in old)
        yield from (_diff_line("added", [line]) for line in new)
        return
    compared = [_diff_words(*pair) for pair in zip(old, new, strict=True)]
    yield from (_diff_line("removed", pieces) for pieces, _ in compared)
    yield from (_diff_line("added", pieces) for _, pieces in compared)


def _diff_words(old: str, new: str) -> tuple[list[str | Html], list[str | Html]]:
    if len(old) + len(new) > MAX_LINE_DIFF_CHARS:
        return [old], [new]
    a, b = TOKEN_PATTERN.findall(old), TOKEN_PATTERN.findall(new)
    removed: list[str | Html] = []
    added: list[str | Html] = []
    for kind, start, end, new_start, new_end in SequenceMatcher(None, a, b).get_opcodes():
        for pieces, words in ((removed, a[start:end]), (added, b[new_start:new_end])):
            piece = "".join(words)
            pieces.append(piece if kind == "equal" or not piece else element("strong", piece))
    return removed, added


def _diff_line(kind: str, pieces: Sequence[str | Html]) -> Html:
    label, role = (kind, "img") if kind in DIFF_SIGNS else (None, None)
    sign = element(
        "span", DIFF_SIGNS.get(kind, ""), class_="cp-diff-sign", role=role, aria_label=label
    )
    words = element("span", join_html(pieces), class_="cp-diff-words", dir="auto")
    return div(f"cp-diff-line cp-diff-{kind}", sign, words)


def iter_changes(before: str, after: str) -> Iterator[TextChange]:
    """Yield stretches of both texts in order; texts that are too long give one change."""
    if len(before) + len(after) > MAX_INLINE_DIFF_CHARS:
        yield from _cut_common_ends(before, after)
        return
    old, new = TOKEN_PATTERN.findall(before), TOKEN_PATTERN.findall(after)
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    for _, start, end, new_start, new_end in matcher.get_opcodes():
        yield "".join(old[start:end]), "".join(new[new_start:new_end])


def render_inline_diff(before: str, after: str) -> Html:
    """Return both texts as one with deletions and insertions, in its script's direction."""
    pieces: list[str | Html] = []
    for removed, added in iter_changes(before, after):
        if removed == added:
            pieces.append(removed)
            continue
        pieces += [element("del", removed, title=REMOVED_PREFIX + removed)] if removed else []
        pieces += [element("ins", added, title=ADDED_PREFIX + added)] if added else []
    return div("cp-text cp-within", join_html(pieces), dir="auto")


def describe_changes(before: str, after: str) -> list[str]:
    """Return a line for each change: “530” → “412”."""
    lines = []
    for removed, added in iter_changes(before, after):
        if removed == added:
            continue
        old, new = clip_text(removed, MAX_CHANGE_CHARS), clip_text(added, MAX_CHANGE_CHARS)
        if old and new:
            lines.append(f"“{old}” → “{new}”")
        elif old or new:
            lines.append(f"{REMOVED_PREFIX}“{old}”" if old else f"{ADDED_PREFIX}“{new}”")
        else:
            lines.append("other spaces")
    return lines


def describe_unchanged_spans(before: str, after: str, spans: Sequence[Span]) -> str:
    """Name the marked words that the new text still has; empty if there are none."""
    unchanged = [s.text for s in spans if is_unchanged(before, after, s.start, s.end)]
    return f"Unchanged, though contested: {join_quoted(unchanged)}." if unchanged else ""


def is_unchanged(before: str, after: str, start: int, end: int) -> bool:
    """Return True if nothing at `[start, end)` of `before` has changed.

    Words put in beside it change it too: “the largest” → “one of the largest”. A sentence does not.
    """
    place = 0
    first, last = len(before[:start].rstrip()), len(before) - len(before[end:].lstrip())
    for removed, added in iter_changes(before, after):
        overlaps = place < end and start < place + len(removed)
        is_beside = first <= place <= last and not (
            is_ended(added if place <= start else before[start:place])
        )
        if removed != added and (overlaps or (not removed and is_beside)):
            return False
        place += len(removed)
    return True


def _cut_common_ends(before: str, after: str) -> Iterator[TextChange]:
    most = min(len(before), len(after))
    head = next((n for n in range(most) if before[n] != after[n]), most)
    rest = range(1, most - head + 1)
    tail = next((n - 1 for n in rest if before[-n] != after[-n]), most - head)
    ends = len(before) - tail, len(after) - tail
    yield before[:head], after[:head]
    yield before[head : ends[0]], after[head : ends[1]]
    yield before[ends[0] :], after[ends[1] :]


def draw_html(markup: Html) -> None:
    """Draw the markup; nothing if it is empty."""
    if not isinstance(markup, Html):
        raise TypeError("only markup from components.widgets.html may be drawn")
    if markup:
        st.html(markup)


def draw_question(question: str) -> None:
    """Draw a case's question, if it has one; its own letters decide where its line begins."""
    if question:
        draw_html(div("cp-quiet", element("bdi", "Question"), f": {question}", dir="auto"))


def paginate(items: Sequence[Item], key: str) -> Sequence[Item]:
    """Return the open page of a list; a switch is drawn above it if there are several."""
    pages = -(-len(items) // ITEMS_PER_PAGE)
    if pages < 2:
        return items
    chosen = int(st.pagination(pages, key=f"{key}.page") or 1)
    st.caption(f"{len(items)} in all, {ITEMS_PER_PAGE} a page")
    return items[(chosen - 1) * ITEMS_PER_PAGE : chosen * ITEMS_PER_PAGE]
