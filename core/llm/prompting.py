"""The prompts in force, and the fence around every untrusted text on its way into one.

Source: CEDA 3.3, A.3.1 to A.3.4, HaluAgent A.2. What passes `Fence.around` can neither end it nor
pose as anyone else. Patterns look at a `text_skeleton` of the text, to which no offset ever refers.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from string import Template

from core.llm.call import Message
from core.runtime.errors import ConfigError, InputError, ReviewError
from core.schema.records import get_base_language
from core.store.projects import MAX_PROMPT_CHARACTERS

# Zero-width and filler characters, direction marks and overrides, which carry no words; the tags
# at U+E0000 spell invisible ASCII.
_UNSEEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b\u200e\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e007f]"
)
# Joiners shape Indic and Persian words and emoji; next to ASCII they only hide something.
_JOINER = re.compile(
    "(?<![^\x00-\x7f\u200c\u200d])[\u200c\u200d]+|[\u200c\u200d]+(?=[\x00-\x7f]|$)"
    "|(?<=[\u200c\u200d])[\u200c\u200d]+"
)
# One selector after a character picks its form; after a letter or in a row they spell bytes.
_SELECTOR = re.compile(
    "(?<=[\ufe00-\ufe0f\U000e0100-\U000e01ef])[\ufe00-\ufe0f\U000e0100-\U000e01ef]+"
    "|(?<![^A-Za-z\\s])[\ufe00-\ufe0f\U000e0100-\U000e01ef]+"
)
_LINE_END = re.compile("\r\n|[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_CONTROL = {code: 0x2400 + code for code in range(0x20) if code not in (9, 10)} | {0x7F: 0x2421}
_SURROGATE = re.compile("[\ud800-\udfff]")
_TAG_LETTERS = {0xE0000 + code: code for code in range(0x20, 0x7F)}
# The letters of other scripts that pass for Latin ones.
_LOOKALIKES = dict(
    zip(
        "аеорсухіјѕԁһԛԝвнкмтгпзαορνικτυχеɑɡıʟᴀᴇɪᴏʀѵո",
        "aeopcyxijsdhqwbhkmtrn3aopviktuxeagilaeiorvn",
        strict=True,
    )
)


def visible_text(text: str) -> str:
    """Return the text without invisible characters; control characters become their symbols."""
    text = _SURROGATE.sub("\ufffd", text)
    text = _LINE_END.sub("\n", text).translate(_CONTROL)
    while (seen := _SELECTOR.sub("", _JOINER.sub("", _UNSEEN.sub("", text)))) != text:
        text = seen
    return text


def text_skeleton(text: str) -> str:
    """Return the text's look-alike in lower-case Latin letters, of the same length.

    A character stays what it is where its plain form has another length than one.
    """
    return text.translate(_SKELETON)


class _Skeleton(dict[int, str]):
    def __missing__(self, code: int) -> str:
        character = chr(code)
        plain = unicodedata.normalize("NFKC", character).casefold()
        # Accented letters lose their accent; the mark itself is a character that stays.
        base = unicodedata.normalize("NFD", plain)[:1] if len(plain) == 1 else character
        found = base if len(plain) == 1 and base.isascii() else plain
        found = _LOOKALIKES.get(found, found)
        self[code] = found if len(found) == 1 else character
        return self[code]


_SKELETON = _Skeleton()


_SALT = "counterpoint fence 1:"
_KIND = re.compile(r"[\w.-]+(?: [\w.-]+)*")
_ROUNDS = 8

# Ours are ⟦ and ⟧; the others look like them.
_BRACKETS = str.maketrans(dict.fromkeys("⟦〚⟬⦋⦍⦏⦗⁅⟅", "[") | dict.fromkeys("⟧〛⟭⦌⦎⦐⦘⁆⟆", "]"))
_OPENING, _CLOSING = r"[\[<{(【〔《«‹「]", r"[\]>})】〕》»›」]"

# All patterns below are matched on the skeleton: small letters, plain forms.
_FENCE_LIKE = re.compile(
    rf"{_OPENING}{{1,3}}\s*[/\\]?[\w .:#-]{{0,40}}?[ :#]?(?<![0-9a-z])[0-9a-f]{{12,64}}\s*"
    rf"[/\\]?\s*{_CLOSING}{{1,3}}"
)
_ROLES = (
    "system|developer|user|human|assistant|ai|bot|model|tool|function|judge|debater|moderator|"
    "instructions?|prompt|系统|用户|助手|裁判|法官|systeme?|sistema|usuario|asistente|juez|richter|juge"
)
_CHAT_MARKUP = re.compile(
    r"<\s?\|[^|<>\n]{1,40}\|\s?>"
    r"|<{1,2}\s?[/\\]?\s?sys\s?>{1,2}|\[\s?[/\\]?\s?inst\s?\]|</?s>|</?(?:start|end)_of_turn>"
    rf"|[<\[]\s?[/\\]?\s?(?:{_ROLES}|im_start|im_end|think|thinking|verdict|evidence|claim|"
    rf"document|"
    r"documents|transcript|context|conversation|facts|conflicts|material|tool_calls?|"
    r"function_calls?|untrusted)\b[^<>\[\]\n]{0,80}[>\]]"
)
_PLAIN_MARKUP = str.maketrans(
    {"<": "‹", ">": "›", "|": "¦", "[": "(", "]": ")", "＜": "‹", "＞": "›", "｜": "¦"}
    | {"［": "(", "］": ")", "﹤": "‹", "﹥": "›"}
)
_LEAD = r"(?m:^)[ \t>*_#\-|\"'“(\[`]*"
_POSING_LINE = re.compile(
    rf"{_LEAD}(?:"
    rf"(?:{_ROLES})(?: (?:prompt|message|note|override))?[ \t*_\]]*[:：]"
    r"|(?:final |the )?(?:verdict|裁决|判决|裁定|veredicto|urteil)"
    r"[ \t*_\"']*[:：=]?[ \t*_\"'(]*[01](?![0-9])"
    r")"
    rf"|(?m:^)[ \t>]*#{{1,6}}[ \t]*(?:{_ROLES}|response|task|role|verdict|output|任务|指令|角色|"
    rf"回答)"
    r"(?![a-z])"
    r"|(?m:^)[ \t]*[-=*#_~+]{3,}[ \t]*(?:begin|end|start|stop|结束|开始|fin|ende)(?![a-z])"
)
_TICKS = "✓✔☑✅√≈✗✘❌☒"
_VERIFIED = (
    r"(?:(?:quotes?|quotation|citation|source|status|fact|引文|引用|原文)[ :-]*)?"
    r"(?:(?:is |are )?(?:verified|confirmed by code|code-verified|verifie|verificad[oa]|"
    r"verifiziert|"
    r"gepruft|проверено|已核实|已验证|已证实|已核验|经核实|確認済み|検証済み|확인됨))"
    r"(?:[ :-]*(?:quotes?|quotation|citation|source|fact|by [a-z ]{1,30}|100 ?%?|引文|引用|原文))?"
)
_GAP, _TICK = r"[ \t]{0,3}", rf"[{_TICKS}]{{1,9}}"
_FORGED = re.compile(
    rf"{_GAP}{_TICK}{_GAP}{_VERIFIED}(?![a-z]){_GAP}[{_TICKS}]{{0,9}}"
    rf"|{_GAP}(?<![a-z]){_VERIFIED}{_GAP}{_TICK}"
    rf"|{_GAP}{_OPENING}{{1,3}}{_GAP}[/\\]?[{_TICKS}]{{0,9}}{_GAP}{_VERIFIED}"
    rf"{_GAP}[{_TICKS}]{{0,9}}{_GAP}{_CLOSING}{{1,3}}"
    rf"|(?<=[\"”’'»」』›]){_GAP}{_OPENING}?{_TICK}\ufe0f?{_CLOSING}?"
)
_ANY_MARK = re.compile(rf"{_VERIFIED}|[{_TICKS}]")
_POSED = "· "


@dataclass(frozen=True)
class Fence:
    """Random delimiters around untrusted text; one token for all prompts of a run."""

    token: str

    @classmethod
    def of_run(cls, run_id: str) -> Fence:
        """Return a run's fence: no document's author knew the run's id."""
        return cls(hashlib.sha256(f"{_SALT}{run_id}".encode()).hexdigest()[:16])

    def around(self, kind: str, text: str) -> str:
        """Return the text, made harmless, between delimiters that name its kind."""
        return self.enclosed(kind, self.harmless(text))

    def enclosed(self, kind: str, text: str) -> str:
        """Put the delimiters around a text made of harmless pieces.

        For the transcript: each turn is made harmless, then our own ✓ ≈ ✗ are put behind its
        quotes; `around` would strip them as forged.
        """
        if not _KIND.fullmatch(kind):
            raise ValueError(f"a fence's kind is made of plain words of our own, found {kind!r}")
        return f"⟦{kind} {self.token}⟧\n{text}\n⟦/{kind} {self.token}⟧"

    def harmless(self, text: str) -> str:
        """Return the text without anything that could pass for a fence, role or mark of ours."""
        return _harmless(self.token, text)


# A run's prompts show the same evidence and response again and again.
@lru_cache(maxsize=64)
def _harmless(token: str, text: str) -> str:
    for _ in range(_ROUNDS):
        before, text = text, _once(token, text)
        if text == before:
            return text
    # Marks within marks within marks are no honest text: not one of their words is kept.
    return _once(token, _changed(text, _ANY_MARK, lambda _: "…"))


def _once(token: str, text: str) -> str:
    text = visible_text(text).translate(_BRACKETS)
    text = _changed(text, _FORGED, lambda _: "")
    text = _changed(text, re.compile(re.escape(token.casefold())), lambda _: "…")
    text = _changed(text, _FENCE_LIKE, _in_parentheses)
    text = _changed(text, _CHAT_MARKUP, lambda found: found.translate(_PLAIN_MARKUP))
    return _changed(text, _POSING_LINE, lambda found: _POSED + found)


def _changed(text: str, pattern: re.Pattern[str], change: Callable[[str], str]) -> str:
    pieces, end = [], 0
    for match in pattern.finditer(text_skeleton(text)):
        pieces += [text[end : match.start()], change(text[match.start() : match.end()])]
        end = match.end()
    return "".join([*pieces, text[end:]])


def _in_parentheses(found: str) -> str:
    words = re.sub(r"[^\w .:#-]", "", found).strip()
    return f"({words.lstrip()})" if found[0] != "(" or words != found[1:-1] else found


_ORDER = re.compile(
    r"(?:\A|[.!?:;,|\n\"“(]\s?|\bplease )(?:ignore|disregard|forget|override) "
    r"(?:(?:all|any|the|of|your|these) ){0,4}(?:previous|prior|above|earlier|preceding) "
    r"(?:instructions?|prompts?|rules?|directions?|orders?)\b[^.!?\n|]{0,60}"
)
# Three or more in a row spell something, but for those behind the flag of a region.
_TAGS = "\U000e0020-\U000e007e"
_HIDDEN = re.compile(f"(?<![\U0001f3f4{_TAGS}])[{_TAGS}]{{3,}}")
_LONGEST = 160


def find_injection(text: str) -> str | None:
    """Return the words with which a text addresses a model instead of its reader, or None.

    These are words in letters that nobody sees, the markup of a chat or of a prompt, and the order
    to ignore instructions. All other wordings pass unnoticed; the fence holds them just the same.
    """
    if hidden := _HIDDEN.search(text):
        return _shortened(hidden.group().translate(_TAG_LETTERS))
    seen = visible_text(text)
    plain = text_skeleton(seen)
    for pattern in (_ORDER, _CHAT_MARKUP):
        if found := pattern.search(plain):
            return _shortened(seen[found.start() : found.end()])
    return None


def _shortened(found: str) -> str:
    words = " ".join(found.split()).strip(' .!?:;,|"“(')
    return words if len(words) <= _LONGEST else words[: _LONGEST - 1] + "…"


# All prompts, in the order in which they are offered, with the titles that people read.
TITLES = {
    "image_question": "Image: what to look for",
    "image_reading": "Image: reading it",
    "context": "Evidence in order",
    "debate": "Debater’s turn",
    "answer": "Debater’s own answer",
    "collaborate": "Debater’s turn together with others (ColMAD)",
    "compete": "Debater’s turn for an assigned side (CopMAD)",
    "reconsider": "Debater’s answer, reconsidered",
    "tit_for_tat": "Debater’s turn in tit for tat",
    "detect": "Debater names wrong words",
    "critique": "Debater on the words that others name",
    "revise": "Debater’s corrected text",
    "advise": "Debater’s advice on another’s answer",
    "attack": "Debater’s attack on another’s answer",
    "summary": "Summary of a round",
    "corrected": "Corrected response",
    "judge": "Judge’s verdict",
    "judge_moderate": "Judge after a round: does the debate go on?",
    "judge_rerank": "Judge picks the best of the corrected texts",
    "judge_plain": "Single judge, asked plainly",
    "judge_thought": "Single judge, thinking aloud",
    "judge_examples": "Single judge, with examples",
    "judge_collaborate": "Judge’s verdict on what was found together (ColMAD)",
    "judge_compete": "Judge’s verdict on assigned sides (CopMAD)",
    "segment": "Response into statements",
    "spans": "Wrong words",
    "span_examples": "Wrong words: examples from corrections",
    "span_vote": "Vote on wrong words",
    "match": "Tool: a statement against its evidence",
    "back_translation": "Tool: a translation translated back",
    "translation": "Tool: a claimed translation",
    "pick_tool": "Audit: the next tool for a statement",
    "reflect": "Audit: looking over all statements",
    "panel_spans": "Wrong words: by a member of the panel",
    "panel_votes": "Wrong words: votes of the panel",
    "alignment": "Measuring: an explanation beside a person’s reason",
    "mend": "Asking again for a usable reply",
    "trajectory": "Trajectories: what the agent is told first",
}
NAMES = tuple(TITLES)
WITHOUT_SYSTEM = frozenset({"mend", "span_examples"})

_FOLDER = Path(__file__).parent / "prompts"
LANGUAGES = tuple(sorted(folder.name for folder in _FOLDER.iterdir() if folder.is_dir()))
_COMMENT = re.compile(r"\A\s*<!--.*?-->\s*", re.DOTALL)
_PART = re.compile(r"^## (System|User)[ \t\r]*$", re.MULTILINE)


def _text(name: str, language: str) -> str:
    path = _FOLDER / language / f"{name}.md"
    return (path if path.exists() else _FOLDER / "en" / path.name).read_text(encoding="utf-8")


FIELDS = {name: tuple(Template(_text(name, "en")).get_identifiers()) for name in NAMES}
"""By prompt, the fields that it has."""


@dataclass(frozen=True)
class Prompt:
    """A prompt's text with its fields unfilled; `is_edited` if a person changed it."""

    name: str
    language: str
    text: str
    is_edited: bool = False

    @property
    def hash(self) -> str:
        """The version: the first twelve hex digits of the text's sha256."""
        return _hash(self.text)


@dataclass(frozen=True)
class PromptBook:
    """The shipped prompts with a project's edits, by name and language, over them."""

    edits: Mapping[tuple[str, str], str] = field(default_factory=dict)

    def prompt(self, name: str, language: str) -> Prompt:
        """Return the prompt in force for a case in that language."""
        ours = load_shipped_prompt(name, prompt_language(language))
        text = self.edits.get((name, ours.language), ours.text)
        return ours if text == ours.text else Prompt(name, ours.language, text, is_edited=True)

    def digest(self) -> str:
        """Return twelve hex digits that change with any prompt in force."""
        every = [self.prompt(name, language) for name in NAMES for language in LANGUAGES]
        return _hash("\n".join(f"{p.name} {p.language} {_sha(p.text)}" for p in every))


def prompt_language(language: str) -> str:
    """Return the prompts' language for a case in `language` (a BCP 47 tag or `und`)."""
    return get_base_language(language) if get_base_language(language) in LANGUAGES else "en"


@cache
def load_shipped_prompt(name: str, language: str) -> Prompt:
    """Return the shipped prompt; its file is read once."""
    if name not in FIELDS or language not in LANGUAGES:
        raise ConfigError(
            f"Expected a prompt named {', '.join(NAMES)} in {' or '.join(LANGUAGES)}, found "
            f"“{name}” in “{language}”. Use one of these."
        )
    return Prompt(name, language, _text(name, language))


def fill_prompt(prompt: Prompt, fields: Mapping[str, str]) -> tuple[Message, ...]:
    """Return the messages to send: system and user (`mend`: only user).

    Values are put in as they are: what looks like a field in them stays text. Raises ConfigError: a
    field has no value, or a value no field; the message names it.
    """
    parts, used = _read(prompt, ConfigError)
    where = f"The prompt {_title(prompt)}"
    if missing := used - fields.keys():
        raise ConfigError(f"{where} needs a value for {_named(missing)}, which was not given.")
    if unused := fields.keys() - used:
        raise ConfigError(
            f"{where} has no place for {_named(unused)}. Put the field into its text, or restore "
            "the default."
        )
    return tuple(
        Message("system" if name == "System" else "user", Template(text).substitute(fields))
        for name, text in parts.items()
    )


def check_edit(name: str, language: str, text: str) -> None:
    """Check that an edited prompt can be filled, before it is saved.

    Raises InputError: a part or a field is missing or unknown; the message says which.
    """
    if name not in FIELDS or language not in LANGUAGES:
        raise InputError(f"There is no prompt “{name}” in “{language}”; reload the page.")
    if len(text) > MAX_PROMPT_CHARACTERS:
        raise InputError(
            f"A prompt may have {MAX_PROMPT_CHARACTERS:,} characters, this one has {len(text):,}. "
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
    """Return the texts under `## System` and `## User` and the names of their fields.

    The comment before them is not sent.
    """
    title = f"The prompt {_title(prompt)}"
    before, *rest = _PART.split(_COMMENT.sub("", prompt.text, count=1))
    names = rest[::2]
    expected = ["User"] if prompt.name in WITHOUT_SYSTEM else ["System", "User"]
    if names != expected:
        raise error(
            f"{title} must have the lines {' and '.join(f'“## {name}”' for name in expected)}, "
            f"once each and in this order; found "
            f"{', '.join(f'“## {name}”' for name in names) or 'none'}."
        )
    if before.strip():
        raise error(
            f"{title} has text before its first heading, which nobody would see. Move it below "
            f"“## {expected[0]}”."
        )
    parts = {name: body.strip() for name, body in zip(names, rest[1::2], strict=True)}
    if empty := [name for name, body in parts.items() if not body]:
        raise error(f"{title} has nothing below “## {empty[0]}”; write it.")
    templates = [Template(body) for body in parts.values()]
    if not all(template.is_valid() for template in templates):
        raise error(
            f"{title} has a dollar sign that begins no field. Write $$ for the sign itself."
        )
    return parts, frozenset(name for each in templates for name in each.get_identifiers())


def _title(prompt: Prompt) -> str:
    return f"“{prompt.name}” ({prompt.language})"


def _named(fields: Iterable[str]) -> str:
    return ", ".join(f"${{{name}}}" for name in sorted(fields))


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _hash(text: str) -> str:
    return _sha(text)[:12]
