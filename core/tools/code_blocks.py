"""Where a text holds a program, fenced or all of it: to be read whole and never as sentences."""

from __future__ import annotations

import ast
import warnings

import regex

LANGUAGES = (
    r"python[\d.]*|py|java|kotlin|scala|swift|go|rust|rs|ruby|rb|php|perl|lua|julia|r|dart|haskell"
    r"|javascript|js|jsx|typescript|ts|tsx|c|cpp|c\+\+|c#|csharp|cs|sql|bash|sh|shell|zsh|powershell"
)
# A fence without a language holds code where it opens like Python.
OPENED = (
    rf"[ \t]*(?:(?:{LANGUAGES})[ \t]*\r?\n"
    r"|\r?\n(?=\s*(?:def \w+\(|class \w+|import \w+|from \w[\w.]* import )))"
)
BLOCK = regex.compile(
    rf"^[ \t]*(?P<fence>```|~~~){OPENED}.*?(?:^[ \t]*(?P=fence)[ \t]*$|\Z)",
    regex.MULTILINE | regex.DOTALL | regex.IGNORECASE,
)


LONGEST = 50_000  # characters that are tried as a program
DEFINES = regex.compile(r"^(?:async def|def|class) \w+", regex.MULTILINE)


def code_blocks(text: str) -> list[tuple[int, int]]:
    """Places of the programs in order, fences included; one that is never closed ends the text.

    A text that is Python as it stands and defines something is one program.
    """
    blocks = [match.span() for match in BLOCK.finditer(text)]
    if not blocks and _is_program(bare := text.strip()):
        start = text.index(bare)
        return [(start, start + len(bare))]
    return blocks


def is_code(text: str) -> bool:
    """True where the text is such a program and nothing else."""
    bare = text.strip()
    return BLOCK.fullmatch(bare) is not None or _is_program(bare)


def _is_program(text: str) -> bool:
    if len(text) > LONGEST or not DEFINES.search(text):
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # odd escapes in somebody's code are not ours
            ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
