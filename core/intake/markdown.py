"""Markdown as its reader sees it: without its marks, tables row by row under their headers."""

from __future__ import annotations

from markdown_it import MarkdownIt

from core.intake.draft import Draft
from core.intake.request import ReadRequest
from core.intake.text import decoded
from core.intake.webpage import BETWEEN, blocks_of
from core.records import Source

DEEPEST = 100  # quotes and lists within each other; what lies deeper is not read


def read_markdown(request: ReadRequest) -> Source:
    """Markdown files (CommonMark with tables and struck-out words).

    Raises:
        InputError: the file is not UTF-8 (or UTF-16 with a BOM), or too long.
    """
    draft = Draft(request)
    marked = decoded(request.name, request.data)
    parser = MarkdownIt("commonmark", {"maxNesting": DEEPEST}).enable(["table", "strikethrough"])
    blocks = blocks_of(parser.render(marked))
    draft.add_blocks(blocks, BETWEEN)
    if not blocks:
        draft.note("There is no text to be seen in this file.")
    return draft.finish()
