"""The prompts in force: shipped as files, edited per project, filled with the facts of a case.

One Markdown file per role and step under `prompts/<language>/`: a comment that names the paper's
section, then a system and a user part with `string.Template` fields. Untrusted fields arrive
already fenced (`core/llm/injection.py`). Source: CEDA 3.3, A.3.1 to A.3.4, HaluAgent A.2.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from string import Template

from core.errors import ConfigError, InputError, ReviewError
from core.llm.call import Message
from core.store.projects import LONGEST_PROMPT

LANGUAGES = ("en", "zh")
NAMES = tuple(
    (
        "image_question image_reading context debate answer collaborate compete reconsider "
        "tit_for_tat detect critique revise advise attack summary corrected judge judge_moderate "
        "judge_rerank judge_plain judge_thought judge_examples judge_collaborate judge_compete "
        "segment spans span_examples span_vote match back_translation translation pick_tool "
        "reflect panel_spans panel_votes alignment mend trajectory"
    ).split()
)
WITHOUT_SYSTEM = frozenset({"mend", "span_examples"})

_FOLDER = Path(__file__).parent / "prompts"
_COMMENT = re.compile(r"\A\s*<!--.*?-->\s*", re.DOTALL)
_PART = re.compile(r"^## (System|User)[ \t\r]*$", re.MULTILINE)


def _text(name: str, language: str) -> str:
    return (_FOLDER / language / f"{name}.md").read_text(encoding="utf-8")


FIELDS = {name: tuple(Template(_text(name, "en")).get_identifiers()) for name in NAMES}
"""By prompt, the fields that it has."""


@dataclass(frozen=True)
class Prompt:
    """A prompt's whole text with its fields unfilled; `is_edited` when it is not ours."""

    name: str
    language: str
    text: str
    is_edited: bool = False

    @property
    def hash(self) -> str:
        """The version: the text's first twelve hex digits of sha256."""
        return _hash(self.text)


@dataclass(frozen=True)
class PromptBook:
    """Our prompts with a project's edits, by name and language, laid over them."""

    edits: Mapping[tuple[str, str], str] = field(default_factory=dict)

    def prompt(self, name: str, language: str) -> Prompt:
        """The prompt in force for a case in that language."""
        ours = shipped(name, prompt_language(language))
        text = self.edits.get((name, ours.language), ours.text)
        return ours if text == ours.text else Prompt(name, ours.language, text, is_edited=True)

    def digest(self) -> str:
        """Twelve hex digits that change whenever any prompt in force does."""
        every = [self.prompt(name, language) for name in NAMES for language in LANGUAGES]
        return _hash("\n".join(f"{p.name} {p.language} {_sha(p.text)}" for p in every))


def prompt_language(language: str) -> str:
    """The language of the prompts for a case in `language` (a BCP 47 tag or `und`)."""
    return "zh" if language.strip().casefold().startswith("zh") else "en"


@cache
def shipped(name: str, language: str) -> Prompt:
    """The prompt as we ship it; its file is read once."""
    if name not in FIELDS or language not in LANGUAGES:
        raise ConfigError(
            f"Expected a prompt named {', '.join(NAMES)} in {' or '.join(LANGUAGES)}, found "
            f"“{name}” in “{language}”. Use one of these."
        )
    return Prompt(name, language, _text(name, language))


def filled(prompt: Prompt, fields: Mapping[str, str]) -> tuple[Message, ...]:
    """The messages to send: a system and a user one (`mend`: only the user's).

    Values are put in as they are: what looks like a field in them stays text.

    Raises:
        ConfigError: a field has no value, or a value no field; the message names it.
    """
    parts, used = _read(prompt, ConfigError)
    where = f"The prompt {_title(prompt)}"
    if missing := used - fields.keys():
        raise ConfigError(f"{where} needs a value for {_named(missing)}, which was not given.")
    if unused := fields.keys() - used:
        raise ConfigError(
            f"{where} has no place for {_named(unused)}. Put the field into its text, or take ours."
        )
    messages = []
    if "System" in parts:
        messages.append(Message("system", Template(parts["System"]).substitute(fields)))
    return (*messages, Message("user", Template(parts["User"]).substitute(fields)))


def check_edit(name: str, language: str, text: str) -> None:
    """Checks that a person's version of a prompt can be filled, before it is saved.

    Raises:
        InputError: a part or a field is missing or unknown; the message says which.
    """
    if name not in FIELDS or language not in LANGUAGES:
        raise InputError(f"There is no prompt “{name}” in “{language}”; reload the page.")
    if len(text) > LONGEST_PROMPT:
        raise InputError(
            f"A prompt may have {LONGEST_PROMPT:,} characters, this one has {len(text):,}. "
            "Shorten it."
        )
    prompt = Prompt(name, language, text, is_edited=True)
    _, used = _read(prompt, InputError)
    needed = set(FIELDS[prompt.name])
    if missing := needed - used:
        raise InputError(
            f"The prompt {_title(prompt)} must contain {_named(missing)}; put it where the text "
            "belongs."
        )
    if unknown := used - needed:
        raise InputError(
            f"The prompt {_title(prompt)} contains {_named(unknown)}, which is never filled. "
            f"Its fields are {_named(needed)}; take out the others."
        )


@lru_cache(maxsize=128)  # a prompt is filled for every call of its role
def _read(prompt: Prompt, error: type[ReviewError]) -> tuple[Mapping[str, str], frozenset[str]]:
    """The texts of a prompt's parts, and the names of the fields in them."""
    parts = _parts(prompt, error)
    return parts, frozenset(
        name for text in parts.values() for name in _fields(prompt, text, error)
    )


def _parts(prompt: Prompt, error: type[ReviewError]) -> dict[str, str]:
    """The texts under `## System` and `## User`; the comment before them is not sent."""
    text = _COMMENT.sub("", prompt.text, count=1)
    before, *rest = _PART.split(text)
    names = rest[::2]
    expected = ["User"] if prompt.name in WITHOUT_SYSTEM else ["System", "User"]
    if names != expected:
        raise error(
            f"The prompt {_title(prompt)} must have the lines "
            f"{' and '.join(f'“## {name}”' for name in expected)}, once each and in this order; "
            f"found {', '.join(f'“## {name}”' for name in names) or 'none'}."
        )
    if before.strip():
        raise error(
            f"The prompt {_title(prompt)} has text before its first heading, which nobody would "
            f"see. Move it below “## {expected[0]}”."
        )
    parts = {name: body.strip() for name, body in zip(names, rest[1::2], strict=True)}
    if empty := [name for name, body in parts.items() if not body]:
        raise error(f"The prompt {_title(prompt)} has nothing below “## {empty[0]}”; write it.")
    return parts


def _fields(prompt: Prompt, text: str, error: type[ReviewError]) -> list[str]:
    template = Template(text)
    if not template.is_valid():
        raise error(
            f"The prompt {_title(prompt)} has a dollar sign that begins no field. "
            "Write $$ for the sign itself."
        )
    return template.get_identifiers()


def _title(prompt: Prompt) -> str:
    return f"“{prompt.name}” ({prompt.language})"


def _named(fields: Iterable[str]) -> str:
    return ", ".join(f"${{{name}}}" for name in sorted(fields))


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _hash(text: str) -> str:
    return _sha(text)[:12]
