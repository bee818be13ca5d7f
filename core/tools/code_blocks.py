"""Where a text holds fenced blocks of a program: code, to be read whole and never as sentences."""

from __future__ import annotations

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


def code_blocks(text: str) -> list[tuple[int, int]]:
    """Places of the blocks in order, fences included; one that is never closed ends the text."""
    return [match.span() for match in BLOCK.finditer(text)]


def is_code(text: str) -> bool:
    """True where the text is such a block and nothing else."""
    return BLOCK.fullmatch(text.strip()) is not None
