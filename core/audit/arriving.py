"""Statements of a response that is still arriving, each as soon as it is whole.

Source: CEDA 6 (a response checked while it is being written).
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable, Iterator

from core.baseline.segmenter import places
from core.errors import InputError

CUT_OFF = (
    "Standard input ended in the middle of a character: its last bytes ({lost}) are left out, and "
    "all that came before is checked."
)


def whole_so_far(pieces: Iterable[str], language: str) -> Iterator[str]:
    """The text up to the end of its last whole statement, each time that there is one more.

    A statement is whole when the next one begins. The last text is all that came, as it came.
    """
    text, whole = "", 0
    for piece in pieces:
        text += piece
        found = list(places(text[whole:], language))  # what is whole is not cut again
        if len(found) > 1:
            whole += found[-2][1]
            yield text[:whole]
    yield text


def decoded(
    read: Callable[[], bytes], most: int, say: Callable[[str], None] = lambda _: None
) -> Iterator[str]:
    """Pieces of UTF-8 text as their bytes come; `read` gives what there is, nothing at the end.

    Where it ends within a character, that one is left out, which `say` hears.

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
            text = decoder.decode(data)
        except UnicodeDecodeError as error:
            raise InputError(
                "Expected UTF-8 text on standard input, found another encoding; send it as UTF-8."
            ) from error
        if text:
            yield text
        if not data:
            if lost := len(decoder.getstate()[0]):
                say(CUT_OFF.format(lost=lost))
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
