"""The one builder of HTML: every text is escaped, only these tags and attributes exist.

With it: marks in a text, heat by agent (MSA 3.3), differences of two texts, and what agents say
for machines (CEDA A.3.3) put as people read it.
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

from components.widgets.wording import clipped, percent
from core.agents.llm_judge import ARROW, NOTHING, QUOTES
from core.agents.reply_parser import CONFIDENCE, DOUBT, WORDS_LINE, without_marks
from core.baseline.wording import listed
from core.schema.events import SoftLabel
from core.schema.progress import Progress
from core.schema.records import Reply, Span, Stance, WordScore
from core.schema.reviews import category_words

TOLD = re.compile(r"(?<=[.。]) (?=“[^”]{1,200}”: |\d+ statements? says? nothing )")
REPLY = re.compile(r"\s*(agree|deny)\s*(?:[.:;,!–—-]+\s*|$)", re.IGNORECASE)
STANCES: dict[str, Stance] = {
    "CORRECT": "supported", "WRONG": "hallucinated", "OPEN": "unclear",
    "正确": "supported", "错误": "hallucinated", "未定": "unclear",
}  # fmt: skip
STANCE = re.compile(
    rf"[\s*_`]*({'|'.join(STANCES)})[*_`]*\s*(?:[.:;,!。：；，！–—-]+\s*|$)", re.IGNORECASE
)
VERDICT = re.compile(r"(?:^|\s)verdict:\s*(?:in)?correct\b[,:]?([^.]*)\.?\s*$", re.IGNORECASE)


def spoken(text: str, *, under_way: bool = False) -> tuple[Reply | None, str]:
    """(the reply that the text begins with, the words after it); `under_way` while it is said."""
    text = without_marks(text)
    if found := REPLY.match(text):
        reply: Reply = "agree" if found[1].lower() == "agree" else "deny"
        return reply, _capitalised(text[found.end() :])
    begun = text.strip()
    is_begun = under_way and begun and any(word.startswith(begun) for word in ("AGREE", "DENY"))
    return None, "" if is_begun else text


def stated(text: str, *, under_way: bool = False) -> tuple[Stance | None, str]:
    """(the stance that the text begins with, the words after it without confidence and doubt)."""
    words = DOUBT.sub("", CONFIDENCE.sub("", without_marks(text))).strip()
    if found := STANCE.match(words):
        return STANCES[found[1].upper()], _capitalised(words[found.end() :])
    is_begun = under_way and words and any(word.startswith(words) for word in STANCES)
    return None, "" if is_begun else words


def without_places(text: str) -> str:
    """The text without its lines that name words of the response."""
    return WORDS_LINE.sub("", text).strip()


def places_told(text: str) -> list[str]:
    """Those lines as people read them: “512 m” should be “412 m”; each is told once."""
    told = []
    for line in WORDS_LINE.finditer(text):
        words, *rest = (part.strip(QUOTES) for part in ARROW.split(line["value"], maxsplit=1))
        if not rest:
            told.append(f"contests “{words}”")
        elif NOTHING.fullmatch(rest[0]):
            told.append(f"“{words}” should go")
        else:
            told.append(f"“{words}” should be “{rest[0]}”")
    return list(dict.fromkeys(told))


def rationale_words(text: str) -> str:
    """The judge's text without the verdict line at its end; that line in words if it is all."""
    found = VERDICT.search(text)
    if not found:
        return text
    rest = found[1].strip()
    return text[: found.start()].rstrip() or (f"{_capitalised(rest)}." if rest else "")


def rationale_lines(text: str) -> list[str]:
    """The same in lines: of an audit one for each statement that it tells of (“…”: why)."""
    return TOLD.split(rationale_words(text))


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]


TAGS = frozenset(
    """a article b br code dd del details div dl dt em figcaption figure h1 h2 h3 h4 header html
    body head img ins li main mark meta ol p pre section small span strong style summary sup
    table tbody td th thead title tr ul""".split()
)
ATTRIBUTES = frozenset(
    """class id title dir lang data-n data-say style alt src role aria-label charset colspan href
    open rel scope tabindex target""".split()
)
# A place on this page, or an address that a person may choose to open.
HREF = re.compile(r"#[\w-]+|https?://[^\s\"'<>\\]+", re.ASCII | re.IGNORECASE)
VOID = frozenset(["br", "img", "meta"])


class Html(str):
    """Markup that this builder made; anything else is text."""

    __slots__ = ()


def element(name: str, *children: str | Html, **attributes: str | None) -> Html:
    """An element; `class_` gives `class`, children that are not `Html` are escaped."""
    if name not in TAGS:
        raise ValueError(f"<{name}> is not among our tags")
    parts = [f"<{name}"]
    for key, value in attributes.items():
        attribute = key.rstrip("_").replace("_", "-")
        if attribute not in ATTRIBUTES:
            raise ValueError(f"{attribute} is not among our attributes")
        if attribute == "href" and not HREF.fullmatch(value or ""):
            raise ValueError(f"{value!r} is no address that a link of ours may lead to")
        if value is not None:
            parts.append(f' {attribute}="{escape(value, quote=True)}"')
    parts.append(">")
    if name not in VOID:
        parts += [text(child) for child in children]
        parts.append(f"</{name}>")
    return Html("".join(parts))


def div(class_: str, *children: str | Html, **attributes: str | None) -> Html:
    """A `<div>` of that class."""
    return element("div", *children, class_=class_, **attributes)


def html_table(
    heads: Sequence[str], rows: Iterable[Sequence[str | Html]], class_: str | None = None
) -> Html:
    """A table; without any name in `heads` it has no head."""
    names = element("tr", *(element("th", name, scope="col") for name in heads))
    lines = (element("tr", *(element("td", cell, dir="auto") for cell in row)) for row in rows)
    head = [element("thead", names)] if any(heads) else []
    return element("table", *head, element("tbody", *lines), class_=class_)


def outward(address: str) -> Html:
    """An address as a link that says it leads away; as plain text where it is no web address."""
    if not HREF.fullmatch(address) or address.startswith("#"):
        return text(address)
    attributes = {"rel": "noopener noreferrer nofollow", "target": "_blank"}
    words = "Opens a page outside Counterpoint"
    return element("a", address, " ↗", href=address, **attributes, title=words)


def text(value: str | Html) -> Html:
    """The value as markup: `Html` as it is, all else escaped."""
    return value if isinstance(value, Html) else Html(escape(value, quote=False))


def joined(pieces: Iterable[str | Html]) -> Html:
    """The pieces joined, one after the other."""
    return Html("".join(text(piece) for piece in pieces))


MOST_TITLES = 20


@dataclass(frozen=True)
class HtmlMark:
    """`[start, end)` in the text; `strength` in [0, 1] colours it, None marks plainly."""

    start: int
    end: int
    number: str = ""
    title: str = ""
    kind: str = ""
    strength: float | None = None


@dataclass(frozen=True)
class Part:
    """`[start, end)` of the text that a link can lead to by its `id`."""

    start: int
    end: int
    id: str


def numbered(spans: Sequence[Span]) -> list[HtmlMark]:
    """The spans as marks with their numbers."""
    return [HtmlMark(s.start, s.end, str(number)) for number, s in enumerate(spans, start=1)]


def marked_text(text: str, marks: Sequence[HtmlMark], parts: Sequence[Part] = ()) -> Html:
    """The whole text with its marks; where marks overlap each stretch shows all its numbers.

    The numbers are drawn by CSS, so that copying the text copies the text alone. Of parts that
    overlap the first one counts.
    """
    apart = _apart(parts, len(text))
    stretches: list[HtmlMark | Part] = [*marks, *apart]
    ends = {end for stretch in stretches for end in (stretch.start, stretch.end)}
    cuts = sorted(cut for cut in {0, len(text), *ends} if 0 <= cut <= len(text))
    opening, closing = defaultdict[int, list[int]](list), defaultdict[int, list[int]](list)
    for place, mark in enumerate(marks):
        if max(mark.start, 0) < mark.end:
            opening[max(mark.start, 0)].append(place)
        closing[mark.end].append(place)
    cover = _Cover(marks, any(mark.strength is not None for mark in marks))
    inside = iter(apart)
    part = next(inside, None)
    pieces: list[str | Html] = []
    whole: list[str | Html] = []
    for start, end in itertools.pairwise(cuts):
        if part and start == part.start:
            whole.extend(pieces)
            pieces = []
        cover.move(opening[start], closing[start])
        pieces.append(cover.drawn(text[start:end]))
        ending = [marks[place].number for place in closing[end] if marks[place].number]
        pieces += [element("sup", class_="cp-number", data_n=number) for number in ending]
        if part and end == part.end:
            whole.append(element("span", *pieces, class_="cp-part", id=part.id))
            part, pieces = next(inside, None), []
    return div("cp-text", *whole, *pieces, dir="auto")


def _apart(parts: Sequence[Part], length: int) -> list[Part]:
    """The parts in the order of the text, without those that overlap an earlier one."""
    found: list[Part] = []
    for part in sorted(parts, key=lambda own: own.start):
        free_from = found[-1].end if found else 0
        if free_from <= part.start < part.end <= length:
            found.append(part)
    return found


@dataclass
class _Cover:
    """The marks over one stretch, as the stretches are gone through from left to right."""

    marks: Sequence[HtmlMark]
    is_heat: bool
    places: set[int] = field(default_factory=set)
    kinds: Counter[str] = field(default_factory=Counter)
    titled: list[int] = field(default_factory=list)

    def move(self, opened: Sequence[int], closed: Sequence[int]) -> None:
        """Go on to the next stretch: some marks begin here, others ended."""
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

    def drawn(self, words: str) -> str | Html:
        """The stretch's words, marked if any mark lies over them."""
        if not self.places:
            return words
        kinds = sorted(kind for kind, count in self.kinds.items() if kind and count)
        classes = " ".join(["cp-mark", *(f"cp-mark-{kind}" for kind in kinds)])
        titles = [self.marks[place].title for place in self.titled[:MOST_TITLES]]
        if len(self.titled) > MOST_TITLES:
            titles.append("…")
        said = "\n".join(titles) or None
        if not self.is_heat:
            return element("mark", words, class_=classes, title=said)
        strongest = max(self.marks[place].strength or 0.0 for place in self.places)
        return element(
            "mark",
            words,
            class_=f"{classes} cp-heat",
            style=f"--cp-heat: {100 * strongest:.0f}%",
            tabindex="0",
            data_say=said,
            aria_label=f"{words}: {said}" if said else None,
        )


MEAN = "Mean of the vote"
EACH_WORD = "Every word by itself"
LEAST_SHOWN = 0.1  # colder words are not coloured: they would be most of the text
LONGEST_REASON = 160
Layers = dict[str, list[HtmlMark]]


def layers_of(progress: Progress) -> Layers:
    """What each agent says, by its name in the order in which they spoke; the vote's mean first."""
    layers: Layers = {}
    for name, mark in _told(progress):
        layers.setdefault(name, []).append(mark)
    return layers


def heated(layers: Layers, chosen: Iterable[str], progress: Progress) -> list[HtmlMark]:
    """The marks of the chosen layers, with who said it; what counts in the end is outlined."""
    own = ((name, mark) for name in chosen for mark in layers.get(name, []))
    marks = [replace(mark, title=f"{name}: {mark.title}") for name, mark in own]
    return marks + [HtmlMark(s.start, s.end, "", "", "hard", 0.0) for s in progress.spans]


def _told(progress: Progress) -> Iterable[tuple[str, HtmlMark]]:
    def warm(own: Span | SoftLabel | WordScore, words: str = "") -> HtmlMark:
        return HtmlMark(own.start, own.end, "", words or percent(own.p), "", own.p)

    def because(reason: str) -> str:
        return f" – {clipped(reason, LONGEST_REASON)}" if reason else ""

    yield from ((MEAN, warm(label)) for label in (progress.soft.labels if progress.soft else ()))
    for span in progress.proposed:
        instead = f", should say “{clipped(span.instead, 80)}”" if span.instead else ""
        words = f"{percent(span.p)}, {category_words(span.category)}{instead}"
        # Who raised it together has a layer each.
        yield from ((name, warm(span, words)) for name in span.source.split(", "))
    for vote in progress.votes:
        if vote.p is not None:
            span, why = vote.span, f"{percent(vote.p)}{because(vote.reason)}"
            yield vote.adjudicator, HtmlMark(span.start, span.end, "", why, "", vote.p)
    adjudicator = next((u.agent for u in progress.roles if u.role == "span adjudicator"), "")
    for ruling in progress.rulings if adjudicator else ():
        kept = f"{'kept' if ruling.kept else 'dropped'}{because(ruling.reason)}"
        yield adjudicator, warm(ruling.span, f"{percent(ruling.span.p)}, {kept}")
    scores = progress.words.scores if progress.words else ()
    yield from ((EACH_WORD, warm(score)) for score in scores if score.p >= LEAST_SHOWN)


def missing_votes(progress: Progress) -> Sequence[str]:
    """Who gave no vote, and on how many spans: absent from every mean, and said to be."""
    silent = [vote.adjudicator for vote in progress.votes if vote.p is None]
    return [f"{name} on {silent.count(name)}" for name in dict.fromkeys(silent)]


# A number with its separators, a word, or one character of a script that is written without spaces.
PIECE = re.compile(r"\d+(?:[.,:]\d+)+|[^\W\u2e80-\U0010ffff]+|\s+|.", re.DOTALL)
LONGEST_COMPARED = 4000  # characters; beyond it comparing the words of a line takes too long
SIGNS = {"removed": "−", "added": "+"}


def changed_lines(before: str, after: str) -> tuple[int, int]:
    """How many lines go and how many come."""
    codes = _matcher(before, after).get_opcodes()
    changed = [code for code in codes if code[0] != "equal"]
    return sum(code[2] - code[1] for code in changed), sum(code[4] - code[3] for code in changed)


def difference_html(before: str, after: str, *, context: int = 1) -> Html:
    """Lines that go and come, each with `context` equal lines around it; empty for equal texts."""
    if before == after:
        return Html()
    old, new = before.split("\n"), after.split("\n")
    rows: list[Html] = []
    shown = 0
    for group in _matcher(before, after).get_grouped_opcodes(context):
        rows += _left_out(group[0][1] - shown)
        shown = group[-1][2]
        for kind, start, end, new_start, new_end in group:
            if kind == "equal":
                rows += [_row("same", [line]) for line in old[start:end]]
            else:
                rows += _changed(old[start:end], new[new_start:new_end])
    rows += _left_out(len(old) - shown)
    return div("cp-diff", joined(rows))


def _matcher(before: str, after: str) -> SequenceMatcher[str]:
    return SequenceMatcher(None, before.split("\n"), after.split("\n"))


def _left_out(lines: int) -> list[Html]:
    words = "1 line that is alike" if lines == 1 else f"{lines} lines that are alike"
    return [div("cp-diff-gap", f"… {words}")] if lines > 0 else []


def _changed(old: Sequence[str], new: Sequence[str]) -> Iterator[Html]:
    """The lines that go, then those that come; as many of both are compared word by word."""
    if len(old) != len(new):
        yield from (_row("removed", [line]) for line in old)
        yield from (_row("added", [line]) for line in new)
        return
    compared = [_words(*pair) for pair in zip(old, new, strict=True)]
    yield from (_row("removed", pieces) for pieces, _ in compared)
    yield from (_row("added", pieces) for _, pieces in compared)


def _words(old: str, new: str) -> tuple[list[str | Html], list[str | Html]]:
    if len(old) + len(new) > LONGEST_COMPARED:
        return [old], [new]
    a, b = PIECE.findall(old), PIECE.findall(new)
    gone: list[str | Html] = []
    come: list[str | Html] = []
    for kind, start, end, new_start, new_end in SequenceMatcher(None, a, b).get_opcodes():
        for pieces, words in ((gone, a[start:end]), (come, b[new_start:new_end])):
            told = "".join(words)
            pieces.append(told if kind == "equal" or not told else element("strong", told))
    return gone, come


def _row(kind: str, pieces: Sequence[str | Html]) -> Html:
    label, role = (kind, "img") if kind in SIGNS else (None, None)
    sign = element("span", SIGNS.get(kind, ""), class_="cp-diff-sign", role=role, aria_label=label)
    words = element("span", joined(pieces), class_="cp-diff-words", dir="auto")
    return div(f"cp-diff-line cp-diff-{kind}", sign, words)


LONGEST_WITHIN = 6000  # characters of both; comparing longer ones takes seconds
LONGEST_CHANGE = 300
GONE, COME = "taken out: ", "put in: "
Change = tuple[str, str]  # (the words that go, the words that come); equal words stand in both


def changes(before: str, after: str) -> Iterator[Change]:
    """Stretches of both texts, in order; those of a text that is too long are one."""
    if len(before) + len(after) > LONGEST_WITHIN:
        yield from _around(before, after)
        return
    old, new = PIECE.findall(before), PIECE.findall(after)
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    for _, start, end, new_start, new_end in matcher.get_opcodes():
        yield "".join(old[start:end]), "".join(new[new_start:new_end])


def within_html(before: str, after: str) -> Html:
    """Both as one text, in the direction of its own script."""
    pieces: list[str | Html] = []
    for gone, come in changes(before, after):
        if gone == come:
            pieces.append(gone)
            continue
        pieces += [element("del", gone, title=GONE + gone)] if gone else []
        pieces += [element("ins", come, title=COME + come)] if come else []
    return div("cp-text cp-within", joined(pieces), dir="auto")


def change_words(before: str, after: str) -> list[str]:
    """Each change on a line of its own: “530” → “412”."""
    told = []
    for gone, come in changes(before, after):
        old, new = (clipped(words, LONGEST_CHANGE) for words in (gone, come))
        if gone == come:
            continue
        if old and new:
            told.append(f"“{old}” → “{new}”")
        elif old or new:
            told.append(f"{GONE}“{old}”" if old else f"{COME}“{new}”")
        else:
            told.append("other spaces")
    return told


def contested_still(before: str, after: str, spans: Sequence[Span]) -> str:
    """Which marked words the text after still has; empty where it has none."""
    left = [s.text for s in spans if is_unchanged(before, after, s.start, s.end)]
    return f"Unchanged, though contested: {listed(left)}." if left else ""


def is_unchanged(before: str, after: str, start: int, end: int) -> bool:
    """True where nothing at `[start, end)` of the text before has changed."""
    place = 0
    for gone, come in changes(before, after):
        overlaps = place < end and start < place + len(gone)
        put_in = not gone and start < place < end
        if gone != come and (overlaps or put_in):
            return False
        place += len(gone)
    return True


def _around(before: str, after: str) -> Iterator[Change]:
    most = min(len(before), len(after))
    head = next((n for n in range(most) if before[n] != after[n]), most)
    rest = range(1, most - head + 1)
    tail = next((n - 1 for n in rest if before[-n] != after[-n]), most - head)
    ends = len(before) - tail, len(after) - tail
    yield before[:head], after[:head]
    yield before[head : ends[0]], after[head : ends[1]]
    yield before[ends[0] :], after[ends[1] :]


Item = TypeVar("Item")
A_PAGE = 20


def show(markup: Html) -> None:
    """Draw the markup; nothing for none."""
    if not isinstance(markup, Html):
        raise TypeError("only markup from components.widgets.html may be drawn")
    if markup:
        st.html(markup)


def paged(items: Sequence[Item], key: str) -> Sequence[Item]:
    """The page of a list that is open; a switch appears above it when there are several."""
    pages = -(-len(items) // A_PAGE)
    if pages < 2:
        return items
    chosen = int(st.pagination(pages, key=f"{key}.page") or 1)
    st.caption(f"{len(items)} in all, {A_PAGE} a page")
    return items[(chosen - 1) * A_PAGE : chosen * A_PAGE]
