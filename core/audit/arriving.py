"""Statements of a response that is still arriving, each as soon as it is whole.

Source: CEDA 6 (a response checked while it is being written).
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable, Iterator

from core.errors import InputError
from core.evidence.segment import sentences


def whole_so_far(pieces: Iterable[str], language: str) -> Iterator[str]:
    """The text up to the end of its last whole sentence, each time that there is one more.

    A sentence is whole when the next one begins. The last text is all that came, as it came.
    """
    text, known = "", 0
    for piece in pieces:
        text += piece
        found = sentences(text, language)
        if len(found) - 1 > known:
            known = len(found) - 1
            yield text[: found[-2].end]
    yield text


def decoded(read: Callable[[], bytes], most: int) -> Iterator[str]:
    """Pieces of UTF-8 text as their bytes come; `read` gives what there is, nothing at the end.

    Raises:
        InputError: it is no UTF-8, or more than `most` bytes.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    count = 0
    while True:
        data = read()
        count += len(data)
        if count > most:
            raise InputError(f"Expected at most {most:,} bytes to check, found more; send less.")
        try:
            text = decoder.decode(data, final=not data)
        except UnicodeDecodeError as error:
            raise InputError(
                "Expected UTF-8 text on standard input, found another encoding; send it as UTF-8."
            ) from error
        if text:
            yield text
        if not data:
            return


def no_longer(pieces: Iterable[str], most: int) -> Iterator[str]:
    """The pieces, as long as they come to no more than `most` characters.

    Raises:
        InputError: more came. What came before was passed on, and nothing is asked about the rest.
    """
    count = 0
    for piece in pieces:
        count += len(piece)
        if count > most:
            raise InputError(
                f"Expected at most {most:,} characters to check, found more; check a part of it, "
                "or raise the limit on Settings."
            )
        yield piece
