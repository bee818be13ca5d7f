"""Bounds how deep a page's elements nest, as browsers do, before the page is parsed.

For each opening tag an HTML parser looks through the elements that are open, so a page that
opens a hundred thousand of them and closes none would take minutes. No page that shows anything
nests so deep: tags beyond the bound are left out and their text stays, block by block.
Inline elements that the parser need not remember, such as <span>, are not counted.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

# Chromium and WebKit stop at 512. The count here is rougher than theirs, so it is more generous.
DEEPEST = 2000
# Parsers open these again in each block until they are closed; they do not change what is read.
MOST_FORMATS = 64
FORMATS = frozenset("a b big code em font i nobr s small strike strong tt u".split())
NESTING = frozenset(
    "address article aside blockquote center details dir div dl fieldset figcaption figure footer "
    "h1 h2 h3 h4 h5 h6 header hgroup legend main menu nav ol pre section summary table ul".split()
)
CELLS = frozenset("caption tbody td tfoot th thead tr".split())
SELF_CLOSING = frozenset("dd dt form li p".split())
# What stands in these is text, tags and all.
RAW = {
    name: re.compile(rf"</{name}(?=[\s/>])", re.I)
    for name in "iframe noembed noframes script style textarea title xmp".split()
}
TAG = re.compile(
    r"""<(?:!--|(/?)([a-z][^\s/>]*)"""
    r"""(?:=\s*+(?:"[^"]*+(?:"|\Z)|'[^']*+(?:'|\Z))|[^>])*+(?:>|\Z))""",
    re.I,
)
COMMENT_END = "-->"
# Ends the block before it and begins another, without any nesting.
BOUNDARY = "<hr>"


def flattened(page: str) -> str:
    """The page without the tags that nest too deep; nearly every page comes back as it is."""
    nesting = _Nesting()
    parts: list[str] = []
    copied, position = 0, 0
    while tag := TAG.search(page, position):
        name = (tag[2] or "").lower()
        instead = nesting.take(name, is_end=bool(tag[1]))
        if instead is not None:
            parts += (page[copied : tag.start()], instead)
            copied = tag.end()
        position = _after(page, tag, name)
    return "".join((*parts, page[copied:])) if parts else page


def _after(page: str, tag: re.Match[str], name: str) -> int:
    """Where the next tag may begin: after a comment, and after text that only looks like tags."""
    if not name:
        end = page.find(COMMENT_END, tag.start() + 2)
        return end + len(COMMENT_END) if end >= 0 else len(page)
    if name in RAW and not tag[1]:
        close = RAW[name].search(page, tag.end())
        return close.start() if close else len(page)
    return tag.end()


@dataclass
class _Nesting:
    """The elements that are open, as nearly as can be told without parsing."""

    path: list[str] = field(default_factory=list)
    opened: Counter[str] = field(default_factory=Counter)
    formats: int = 0

    def take(self, name: str, *, is_end: bool) -> str | None:
        """Count the tag; what to put in its place, or None when it may stay."""
        if name in FORMATS:
            return self._take_format(is_end=is_end)
        is_over = len(self.path) > DEEPEST
        if name in NESTING:
            if not is_end:
                self.path.append(name)
                self.opened[name] += 1
            elif self.opened[name]:
                self._close(name)
        elif name in CELLS:
            self._close_cell()
        elif name not in SELF_CLOSING:
            return None
        return BOUNDARY if is_over or len(self.path) > DEEPEST else None

    def _take_format(self, *, is_end: bool) -> str | None:
        is_over = self.formats >= MOST_FORMATS + is_end
        self.formats = max(0, self.formats - 1) if is_end else self.formats + 1
        return "" if is_over else None

    def _close(self, name: str) -> None:
        """Close the innermost element of that name and all within it."""
        last = ""
        while last != name:
            last = self.path.pop()
            self.opened[last] -= 1

    def _close_cell(self) -> None:
        """A cell's tag closes whatever an earlier cell of the same table left open."""
        while self.opened["table"] and self.path[-1] != "table":
            self.opened[self.path.pop()] -= 1
