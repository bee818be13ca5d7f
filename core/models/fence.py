"""Fences untrusted text in prompts, so that it can neither end its fence nor pose as anyone else.

Every piece of a case, a source, a file's name or a model's reply goes through `Fence.around` on its
way into a prompt. The text stays readable: only what imitates our fences, chat markup, a role, a
last line of the judge or our own marks on quotes is changed.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from core.models.disguise import skeleton, visible
from core.models.steering import steering

__all__ = ["Fence", "steering"]

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
_MARKUP = re.compile(
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
    """The random delimiters of one run; the token is the same in all its prompts."""

    token: str

    @classmethod
    def of_run(cls, run_id: str) -> Fence:
        """The fence of a run: whoever wrote a document did not know the run's id."""
        return cls(hashlib.sha256(f"{_SALT}{run_id}".encode()).hexdigest()[:16])

    def around(self, kind: str, text: str) -> str:
        """The text, made harmless, between delimiters that say of which kind it is."""
        return self.enclosed(kind, self.harmless(text))

    def enclosed(self, kind: str, text: str) -> str:
        """The delimiters around a text that was put together from harmless pieces.

        For the transcript: each turn is made harmless, then our own ✓ ≈ ✗ are put behind its
        quotes; `around` would strip them as forged.
        """
        if not _KIND.fullmatch(kind):
            raise ValueError(f"a fence's kind is made of plain words of our own, found {kind!r}")
        return f"⟦{kind} {self.token}⟧\n{text}\n⟦/{kind} {self.token}⟧"

    def harmless(self, text: str) -> str:
        """The text without anything that could be taken for a fence, a role or a mark of ours."""
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
    text = visible(text).translate(_BRACKETS)
    text = _changed(text, _FORGED, lambda _: "")
    text = _changed(text, re.compile(re.escape(token.casefold())), lambda _: "…")
    text = _changed(text, _FENCE_LIKE, _in_parentheses)
    text = _changed(text, _MARKUP, lambda found: found.translate(_PLAIN_MARKUP))
    return _changed(text, _POSING_LINE, lambda found: _POSED + found)


def _changed(text: str, pattern: re.Pattern[str], change: Callable[[str], str]) -> str:
    """The text with every place changed at which its skeleton matches."""
    pieces, end = [], 0
    for match in pattern.finditer(skeleton(text)):
        pieces += [text[end : match.start()], change(text[match.start() : match.end()])]
        end = match.end()
    return "".join([*pieces, text[end:]])


def _in_parentheses(found: str) -> str:
    """A mark that imitates ours, with its words in parentheses and no closing stroke."""
    words = re.sub(r"[^\w .:#-]", "", found).strip()
    return f"({words.lstrip()})" if found[0] != "(" or words != found[1:-1] else found
