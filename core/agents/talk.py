"""As much of what was said in a debate as a number of tokens takes, laid out line by line.

The oldest turns are left out first, and a line says how many. A summary, what people said and of
each debater the last turn (of critics the last critique, too) stay; where even these are too long,
the words of each are shortened to the same length. Source: SC-MAKS 3.4 (prompts in their limit).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from core.agents.heard import whole_sentences
from core.baseline.wording import counted
from core.models.limits import beginning, estimated_tokens

LEAST_TOKENS = 32  # of words that are shortened; a turn begins with its stance
NEARLY = 0.9  # of a length that did not fit: marks take some room too
CLOSING = r"[\s,.;:!?，。；：！？]*[”\"»」』“]"
# What our own code writes among what was said, by the language of the prompt.
LEFT_OUT = {"en": "({} left out)", "zh": "（此前的 {} 次发言已省略）"}
BEFORE = {"en": "Before, in brief: ", "zh": "此前摘要："}
PERSON = {"en": "{} (a person): ", "zh": "{}（真人）："}
ABOUT = {"en": " on {}’s answer", "zh": " 谈 {} 的回答"}
ASSIGNED = {"en": " (assigned {})", "zh": "（指定立场 {}）"}
SHORTENED = {"en": " … (shortened)", "zh": "……（有删节）"}


@dataclass(frozen=True)
class Line:
    """One thing that was said: a head of ours, the words, and (quotation, mark) for each in them.

    What does not `stay` may be left out.
    """

    head: str
    words: str
    marks: tuple[tuple[str, str], ...] = ()
    stays: bool = True
    is_turn: bool = True

    @cached_property
    def whole(self) -> str:
        """All of it."""
        words = self.words
        for quote, mark in self.marks:
            words = _with_mark(words, quote, mark)
        return self.head + words

    def within(self, room: int, language: str) -> str:
        """All of it, or the head and the beginning of the words, in so many tokens.

        A quotation of which something is gone has no mark any more.
        """
        if estimated_tokens(self.words) <= room:
            return self.whole
        words = _rounded(beginning(self.words, room), language)
        marks = tuple((quote, mark) for quote, mark in self.marks if quote in words)
        return Line(self.head, words, marks).whole + SHORTENED[language]


@dataclass(frozen=True)
class Shown:
    """What is shown of a debate of so many `turns`; some may be left out, others shortened."""

    text: str
    turns: int
    left_out: int = 0
    shortened: int = 0

    def cut(self, window: int) -> str:
        """What did not fit the model's window; empty where all did."""
        lost = [f"{self.left_out} of {counted(self.turns, 'turn')}"] if self.left_out else []
        lost += [f"the end of {counted(self.shortened, 'contribution')}"] if self.shortened else []
        return f"{' and '.join(lost)} did not fit the model's {window:,} tokens." if lost else ""


@dataclass(frozen=True)
class Talk:
    """What was said so far, in order; `language` is that of the prompt, en or zh."""

    lines: tuple[Line, ...]
    language: str

    @property
    def whole(self) -> Shown:
        """All of it."""
        return self._shown([line.whole for line in self.lines], 0)

    @property
    def least(self) -> int:
        """Tokens of its shortest form."""
        return _tokens(self._texts(self._staying, LEAST_TOKENS))

    def within(self, room: int) -> Shown:
        """As much of it as so many tokens take; its shortest form where they do not take that."""
        costs = [_tokens([line.whole]) for line in self.lines]
        if sum(costs) <= room:
            return self.whole
        kept = self._latest(room, costs)
        gone = len(self.lines) - len(kept)
        texts, length = self._texts(kept), self._even(room, kept, costs)
        while _tokens(texts) > room:
            texts = self._texts(kept, length)
            if length == LEAST_TOKENS:
                break
            length = max(LEAST_TOKENS, int(length * NEARLY))
        return self._shown(texts, gone)

    def _even(self, room: int, kept: Sequence[int], costs: Sequence[int]) -> int:
        """About how many tokens of words each kept line may have, all together in that room."""
        free = room - _tokens([self._left_out(len(self.lines))])
        heads = [_tokens([self.lines[i].head + SHORTENED[self.language]]) for i in kept]
        bare = sorted(costs[i] - head for i, head in zip(kept, heads, strict=True))
        free -= sum(heads)
        for number, cost in enumerate(bare):
            even = free // (len(bare) - number)
            if cost > even:
                return max(LEAST_TOKENS, even)
            free -= cost
        return max(LEAST_TOKENS, free)

    @cached_property
    def _staying(self) -> tuple[int, ...]:
        return tuple(i for i, line in enumerate(self.lines) if line.stays)

    def _latest(self, room: int, costs: Sequence[int]) -> tuple[int, ...]:
        """Places of the lines that stay, and of the newest others that fit beside them."""
        kept = set(self._staying)
        free = room - sum(costs[i] for i in kept) - _tokens([self._left_out(len(self.lines))])
        for i in reversed(range(len(self.lines))):
            if i not in kept:
                free -= costs[i]
                if free < 0:
                    break
                kept.add(i)
        return tuple(sorted(kept))

    def _texts(self, kept: Sequence[int], room: int | None = None) -> list[str]:
        """The kept lines, the words of each in so many tokens; before them how many are gone."""
        chosen = [self.lines[i] for i in kept]
        texts = [
            line.whole if room is None else line.within(room, self.language) for line in chosen
        ]
        if gone := len(self.lines) - len(kept):
            before = next((i for i, line in enumerate(chosen) if line.is_turn), 0)
            texts.insert(before, self._left_out(gone))
        return texts

    def _left_out(self, number: int) -> str:
        words = counted(number, "earlier turn") if self.language == "en" else str(number)
        return LEFT_OUT[self.language].format(words)

    def _shown(self, texts: Sequence[str], gone: int) -> Shown:
        shortened = sum(text.endswith(SHORTENED[self.language]) for text in texts)
        turns = sum(line.is_turn for line in self.lines)
        return Shown("\n".join(texts), turns, gone, shortened)


def _tokens(texts: Sequence[str]) -> int:
    """What these lines take, one below the other; never less than together."""
    return sum(estimated_tokens(text) + 1 for text in texts)


def _with_mark(text: str, quote: str, mark: str) -> str:
    """The mark behind the quotation, or behind the turn where its words were changed since."""
    match = re.search(re.escape(quote) + CLOSING, text)
    if match is None:
        return f"{text} “{quote}” {mark}"
    return f"{text[: match.end()]} {mark}{text[match.end() :]}"


def _rounded(words: str, language: str) -> str:
    """Words that were cut, up to their last sentence or word; no figure is left with half of it."""
    ended = whole_sentences(words, language)
    if len(words) > len(ended) >= len(words) / 2:
        return ended
    blank = words.rfind(" ")
    return words[:blank] if blank >= len(words) / 2 else words.rstrip("0123456789.,")
