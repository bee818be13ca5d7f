"""Cuts a text into the pieces of sums: numbers, signs, names, units, and words between them.

Nothing but what is listed here is ever a piece of a sum; all else is a word or a break. Digits of
other scripts, names with dots, quotes and the like are breaks, so they cannot be worked out.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from core.tools.measures import measure_at
from core.tools.spoken_numbers import HAN as HAN_NUMERALS
from core.tools.spoken_numbers import english_number, han_number
from core.tools.sum_numbers import Kind, Token, number_at
from core.tools.sum_words import CHINESE, ENGLISH, ENGLISH_SIGNS, NOT_SIGNS

# Full-width signs stand for the usual ones; each is one character, so that places stay.
WIDE = {c: c - 0xFEE0 for c in range(0xFF01, 0xFF5F)} | {
    ord("\u00a0"): " ", ord("\u3000"): " ", ord("\u202f"): " ", ord("\u2009"): " ",
    ord("−"): "-", ord("–"): "-", ord("﹣"): "-", ord("`"): " ", ord("‘"): "'", ord("’"): "'",
}  # fmt: skip
BOLD = re.compile(
    r"(?<![\w)*])\*\*(?=[^\s*])((?:[^*\n]|(?<!\*)\*(?!\*)){1,400}?)(?<=[^\s*])\*\*(?![\w(*])"
)
SIGNS = {"×": "*", "·": "*", "⋅": "*", "∙": "*", "✕": "*", "✖": "*", "÷": "/", "**": "^",
         "∶": ":", "∕": "/"}  # fmt: skip
LATEX = {"times": "*", "cdot": "*", "div": "/", "ast": "*"}
LATEX_BLANK = frozenset("left right displaystyle quad qquad mathrm text textbf mathbf boxed big Big"
                        " bigl bigr".split())  # fmt: skip
LATEX_EQUAL = {"approx": "≈", "simeq": "≈", "thickapprox": "≈"}
FUNCTIONS = frozenset("sqrt cbrt abs exp ln log lg sin cos tan".split())

DIGITS = frozenset("0123456789")
RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
PIECES = re.compile(
    r"(?P<blank>[ \t]+|[$€£₹]|US\$|\\[()\[\],;:! ]|\\\$|\\%?(?=%))"
    r"|(?P<bullet>(?m:^)[ \t]*(?:[-+*•]|[0-9]{1,3}[.)])[ \t]+)"
    r"|(?P<line>\\\\|[\n\r]+)"
    r"|(?P<latex>\\[A-Za-z]{1,20})"
    r"|(?P<number>\.?[0-9])"
    r"|(?P<dots>\.{3,6}|…{1,2}|⋯{1,2})"
    r"|(?P<compare>[=!<>:+*/-]=+|=+[=>]+|[<>≤≥≠≡⇒→])"
    r"|(?P<relation>[=≈≒≅≃])"
    r"|(?P<bang>!+)"
    r"|(?P<percent>%|percent(?![a-z])|per cent(?![a-z])|pct(?![a-z]))"
    r"|(?P<sign>\*\*|[-+*/^×÷·⋅∙✕✖∕])"
    r"|(?P<open>[(\[{])|(?P<close>[)\]}])"
    r"|(?P<pi>π|pi(?![A-Za-z]))"
    r"|(?P<root>[√∛])"
    r"|(?P<raised>⁻?[⁰¹²³⁴⁵⁶⁷⁸⁹]{1,4})"
    r"|(?P<degree>°)"
    r"|(?P<vulgar>[½⅓⅔¼¾⅕⅖⅗⅘⅙⅛⅜⅝⅞])"
    r"|(?P<latin>[A-Za-zÀ-ɏ]+(?:'[a-z]{0,2})?)"
    r"|(?P<han>[\u4e00-\u9fff〇])"
    r"|(?P<other>.)",
    re.DOTALL,
)


def tokens_of(text: str) -> list[Token]:
    """The text's pieces, in order; blanks, currency signs and mark-up for looks are left out."""
    plain = BOLD.sub(lambda bold: f"  {bold[1]}  ", text.translate(WIDE))
    found: list[Token] = []
    place, is_far = 0, False
    while place < len(plain):
        piece = PIECES.match(plain, place)
        if piece is None:  # never: the last way takes any character
            break
        kind = str(piece.lastgroup)
        if kind == "blank":
            place, is_far = piece.end(), True
            continue
        token = READERS[kind](plain, piece, found)
        if token is not None:
            found.append(replace(token, is_far=is_far))
        place, is_far = (token.end if token else piece.end()), False
    return found


def _kept(kind: Kind) -> Callable[[str, re.Match[str], list[Token]], Token]:
    return lambda text, piece, before: Token(kind, *piece.span(), piece.group())


def _sign(text: str, piece: re.Match[str], before: list[Token]) -> Token:
    return Token("operator", *piece.span(), SIGNS.get(piece.group(), piece.group()))


def _raised(text: str, piece: re.Match[str], before: list[Token]) -> Token:
    power = piece.group().translate(RAISED)
    if "-" in power[1:] or power in ("", "-"):
        return Token("unreadable", *piece.span())
    return Token("raise", *piece.span(), value=Fraction(int(power)))


def _latex(text: str, piece: re.Match[str], before: list[Token]) -> Token | None:
    name, span = piece.group()[1:], piece.span()
    if name in LATEX_BLANK:
        return None
    if name in LATEX:
        return Token("operator", *span, LATEX[name])
    if name in LATEX_EQUAL:
        return Token("relation", *span, LATEX_EQUAL[name])
    if name in ("frac", "dfrac", "tfrac"):
        return Token("frac", *span)
    if name in FUNCTIONS:
        return Token("function", *span, name)
    named: dict[str, Kind] = {"pi": "pi", "circ": "word", "ldots": "dots", "cdots": "dots"}
    return Token(named.get(name, "break"), *span)


def _latin(text: str, piece: re.Match[str], before: list[Token]) -> Token:
    """A word: of a sum, of a number, a unit, an unknown of one letter, or just a word."""
    start, word = piece.start(), piece.group()
    if found := _english(text, start):
        return found
    if word == "of" or (spoken := english_number(text, start)) is None:
        return _unit_or_name(text, start, piece.end(), before)
    return Token("number", start, spoken.end, value=spoken.value, is_part=spoken.is_part)


def _english(text: str, start: int) -> Token | None:
    """The word of a sum that stands here as a whole word."""
    match = ENGLISH.match(text, start)
    if match is None or text[match.end() : match.end() + 1].isalnum():
        return None
    kind, span = str(match.lastgroup), match.span()
    if kind in ENGLISH_SIGNS:
        return Token("operator", *span, ENGLISH_SIGNS[kind])
    if kind in ("squared", "cubed"):
        return Token("raise", *span, value=Fraction(2 if kind == "squared" else 3))
    if kind in ("root", "cuberoot"):
        return Token("function", *span, "sqrt" if kind == "root" else "cbrt")
    if kind in ("equals", "is"):
        return Token("relation", *span, "=" if kind == "equals" else "is")
    return Token("of" if kind == "of" else "about", *span, match.group().lower())


def _unit_or_name(text: str, start: int, end: int, before: list[Token]) -> Token:
    word = text[start:end]
    if word in ("x", "X") and _is_times(text, end, before):
        return Token("operator", start, end, "*")
    last = before[-1] if before else None
    is_after_amount = last is not None and last.kind in ("number", "close", "unit", "operator")
    if is_after_amount and (found := measure_at(text, start)):
        measure, stop = found
        return Token("unit", start, stop, text[start:stop], measure=measure)
    if word.lower() in FUNCTIONS:
        return Token("function", start, end, word.lower())
    if len(word) == 1 and word.isascii() and text[end : end + 1] not in DIGITS:
        return Token("name", start, end, word)
    return Token("word", start, end, word)


def _is_times(text: str, end: int, before: list[Token]) -> bool:
    """Whether an x between two amounts is the sign for times."""
    if not before or before[-1].kind not in ("number", "close", "unit", "word", "percent"):
        return False
    rest = text[end : end + 12]
    if before[-1].end == end - 1 and before[-1].value == 0:
        return False  # 0x10 is no product
    if rest[:1] in DIGITS or re.match(r"\s+[$€£]?[0-9(.]", rest):
        return True
    return bool(re.match(r"\s*[\u4e00-\u9fff]{1,4}[0-9]", rest))


def _han(text: str, piece: re.Match[str], before: list[Token]) -> Token:
    start = piece.start()
    if match := NOT_SIGNS.match(text, start):
        return Token("word", *match.span(), match.group())
    if found := _chinese(text, start, before):
        return found
    last = before[-1] if before else None
    is_after_amount = last is not None and last.kind in ("number", "close", "unit", "operator")
    if is_after_amount and (measured := measure_at(text, start)):
        measure, end = measured
        return Token("unit", start, end, text[start:end], measure=measure)
    if text[start] in HAN_NUMERALS and (spoken := han_number(text, start)):
        return Token("number", start, spoken.end, value=spoken.value, is_part=spoken.is_part)
    return Token("word", start, start + 1, text[start])


def _chinese(text: str, start: int, before: list[Token]) -> Token | None:
    match = CHINESE.match(text, start)
    if match is None:
        return None
    kind, span = str(match.lastgroup), match.span()
    if kind == "nth":
        return Token("word", *span)
    if kind in ENGLISH_SIGNS:
        return Token("operator", *span, ENGLISH_SIGNS[kind])
    if kind in ("squared", "cubed"):
        return Token("raise", *span, value=Fraction(2 if kind == "squared" else 3))
    if kind == "root":
        return Token("function", *span, "sqrt")
    if kind == "about":
        return Token("relation", *span, "≈") if _is_amount(before) else Token("about", *span)
    if kind == "equals":
        return Token("relation", *span, "=" if "等于" in match.group() else "is")
    return Token("of", *span)


def _is_amount(before: list[Token]) -> bool:
    return bool(before) and before[-1].kind in ("number", "close", "unit", "percent", "word")


def _digits(text: str, piece: re.Match[str], before: list[Token]) -> Token:
    return number_at(text, piece.start())


def _relation(text: str, piece: re.Match[str], before: list[Token]) -> Token:
    return Token("relation", *piece.span(), "=" if piece.group() == "=" else "≈")


def _root(text: str, piece: re.Match[str], before: list[Token]) -> Token:
    return Token("function", *piece.span(), "sqrt" if piece.group() == "√" else "cbrt")


# One reader for each group of PIECES: (text, the piece, the tokens before it).
READERS: dict[str, Callable[[str, re.Match[str], list[Token]], Token | None]] = {
    "bullet": _kept("break"), "line": _kept("break"), "latex": _latex, "number": _digits,
    "dots": _kept("dots"), "compare": _kept("break"), "relation": _relation,
    "bang": _kept("bang"), "percent": _kept("percent"), "sign": _sign, "open": _kept("open"),
    "close": _kept("close"), "pi": _kept("pi"), "root": _root, "raised": _raised,
    "degree": _kept("word"), "vulgar": _digits, "latin": _latin, "han": _han,
    "other": _kept("break"),
}  # fmt: skip
