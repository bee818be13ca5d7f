"""Hears a debater's turn: reply, stance and quotes in plain text, in English and Chinese.

CEDA's turns begin with AGREE or DENY about the last message (A.3.3); ours say next whether the
claim is CORRECT, WRONG or OPEN, because whoever agrees with a refutation does not agree with the
claim. Where that second word is missing, the stance follows from the last message's.
"""

from __future__ import annotations

import re
import unicodedata

from core.documents.segmentation import sentences
from core.errors import ReplyError
from core.records import Quote, Reply, Stance

HEAD_WORDS = 12
HEAD_CHARACTERS = 160
HAN_HEAD = 30
LEAST_WORDS = 3
LEAST_HAN = 6  # figures count too: 塔高412米
LEAST_SIGNS = 3  # of which so many are no figures
FOUND_CHARACTERS = 80
OPPOSITE: dict[Stance, Stance] = {
    "supported": "hallucinated",
    "hallucinated": "supported",
    "unclear": "unclear",
}
NOT = r"(?<![a-z])(?:not(?! only)|don['’]?t|cannot|can['’]?t|won['’]?t|never)(?: \w+){0,3}"
ECHOED = re.compile(
    r"^\W*(?:agree|同意)\s*(?:/|\||or|或)\s*(?:deny|反对)\W*"
    r"|(?:correct|正确)\s*(?:[/|,、，]|or\b|或)\s*(?:wrong|错误)"
    r"(?:\s*,?\s*(?:[/|、，]|or\b|或)\s*(?:open|未定))\W*"
    r"|(?:correct|正确)\s*[/|]\s*(?:wrong|错误)\W*",
    re.IGNORECASE,
)
UNFINISHED_THOUGHT = re.compile(r"\s*<(?:think|thinking|reasoning)>", re.IGNORECASE)
# Letters are bounded by letters: in “我AGREE” there is no \b.
REPLY = re.compile(
    rf"(?P<neither>(?<![a-z])neither agree|{NOT} deny(?![a-z])|既不同意|不反对|不否认|不反對)"
    rf"|(?P<deny>{NOT} agree|(?<![a-z])disagree|(?<![a-z])den(?:y|ies|ied)(?![a-z])"
    r"|(?:不|难以|難以|无法|無法)[^，。,.]{0,3}?(?:同意|赞同|贊同)|反对|反對|否认|否認)"
    r"|(?P<agree>(?<![a-z])agree(?:s|d|ing)?(?![a-z])|同意|赞同|贊同)",
    re.IGNORECASE,
)
WORDS = (
    r"(?P<hallucinated>in ?correct|not correct|wrong|不正确|不正確|错误|錯誤)"
    r"|(?P<supported>correct|not wrong|正确|正確)"
    r"|(?P<unclear>open|未定|待定|无法确定|無法確定)"
)
ASKED = r"(?![^\w\n]*[?？])"  # “CORRECT? No”: a verdict that is asked for is none
NOT_IT = r"(?i:not|isn['’]t|不是?)\s"
SHOUTED = re.compile(
    rf"(?<![A-Za-z])(?:(?P<hallucinated>INCORRECT|{NOT_IT}CORRECT|WRONG)"
    rf"|(?P<supported>CORRECT|{NOT_IT}WRONG)|(?P<unclear>OPEN))(?![A-Za-z]){ASKED}"
)
# Right behind the reply: “agree, wrong.”, “I agree that the claim is correct.”; not “agree: the
# correct figure is …”, which is prose.
ADJACENT = re.compile(
    r"^[\W_]*(?:(?:and|that|with (?:the|this|that) \w+|以及|并且)[\W_]+)?"
    r"(?:(?:the|this|original)\s+)*(?:(?:claim|statement|answer|陈述|原陈述)\s*)?(?:is|:|：|是)?[\W_]*"
    rf"(?:{WORDS})(?![^\W_]|\s+(?!because|since|as\b|for\b|based|by\b)[a-z]){ASKED}",
    re.IGNORECASE,
)
HAN = re.compile(r"[\u3400-\u9fff\u3040-\u30ff\uac00-\ud7af]")
QUOTED = re.compile(
    r"“([^“”]+)”|„([^“”„]+)[“”]|«([^«»]+)»|「([^「」]+)」|『([^『』]+)』|\"([^\"\n]+)\""
)
SAYS_SOMETHING = re.compile(r"[^\W_]")
TICKS = re.compile("[✓✔☑✅✗✘❌☒]\ufe0f?")
ENDED = re.compile(r"""[.!?。！？।؟…][)"'”’」』»\]*_]*\s*$""")


def reply_of(text: str) -> tuple[Reply, str]:
    """AGREE or DENY at the beginning of a turn, and the rest of its head.

    Raises:
        ReplyError: neither is said there; nothing is guessed from the rest.
    """
    head = _head(text)
    match = None if UNFINISHED_THOUGHT.match(text) else REPLY.search(head)
    if match is None or match.lastgroup == "neither":
        found = " ".join(text.split())[:FOUND_CHARACTERS] or "nothing"
        raise ReplyError(
            f"Expected a turn that begins with AGREE or DENY, found “{found}”.", reply=text
        )
    reply: Reply = "agree" if match.lastgroup == "agree" else "deny"
    return reply, head[match.end() :]


def stance_of(reply: Reply, rest: str, last: Stance) -> Stance:
    """What the turn says about the claim; `last` is the last message's stance."""
    return _said_of_claim(rest) or (last if reply == "agree" else OPPOSITE[last])


def is_stance_said(text: str) -> bool:
    """True where the turn says itself what it calls the claim, so that nothing was inferred."""
    try:
        _, rest = reply_of(text)
    except ReplyError:
        return False
    return _said_of_claim(rest) is not None


def _said_of_claim(rest: str) -> Stance | None:
    """The one stance that is said in capitals, or else the one right behind the reply.

    Whoever names another's verdict beside its own (“DENY: Ada says CORRECT, but it is WRONG”) is
    not guessed at.
    """
    shouted = {match.lastgroup for match in SHOUTED.finditer(rest)}
    match = SHOUTED.search(rest) if len(shouted) == 1 else ADJACENT.match(rest)
    return next((s for s in OPPOSITE if match and match.lastgroup == s), None)


def quotes_in(text: str) -> tuple[Quote, ...]:
    """What stands in quotation marks and is long enough to be a citation; not checked yet."""
    found = dict.fromkeys(
        _trimmed(next(part for part in match.groups() if part is not None))
        for match in QUOTED.finditer(text)
    )
    return tuple(Quote(words, "not_found", 0.0) for words in found if _is_citation(words))


def parted(text: str) -> tuple[str, str]:
    """(the prose of a reply, its last line that says anything, in NFKC); both may be empty."""
    *before, last = ["", *(line for line in text.splitlines() if SAYS_SOMETHING.search(line))]
    return "\n".join(before).strip(), unicodedata.normalize("NFKC", last)


def without_marks(text: str) -> str:
    """The text without signs that look like ours, which only code may put behind a quotation."""
    return TICKS.sub("", text)


def without_name(text: str, name: str) -> str:
    """The turn without the speaker's own name before it, as some models write it."""
    own = r"\s+".join(re.escape(part) for part in name.split())
    return re.sub(rf"^[\W_]*{own}[*_\])]*\s*[:：][*_]*\s*", "", text.strip(), flags=re.IGNORECASE)


def whole_sentences(text: str, language: str) -> str:
    """A text that its token limit cut, up to its last full sentence; as it is if it has none."""
    found = sentences(text, language)
    while found and not ENDED.search(text[found[-1].start : found[-1].end]):
        found.pop()
    is_bare = found and len(text[: found[-1].end].split()) < LEAST_WORDS and not HAN.search(text)
    if not found or is_bare:
        return text
    return text[: found[-1].end]


def _head(text: str) -> str:
    """The first words, without markdown and without an echo of the choice itself."""
    plain = unicodedata.normalize("NFKC", text).replace("*", "").replace("`", "").strip()
    plain = ECHOED.sub("", plain)
    words = " ".join(plain.split()[:HEAD_WORDS])[:HEAD_CHARACTERS]
    return words[:HAN_HEAD] if HAN.search(words[:HAN_HEAD]) else words


def _trimmed(words: str) -> str:
    return words.strip().rstrip(",;:，；：").strip()


def _is_citation(words: str) -> bool:
    signs = len(HAN.findall(words))
    figures = sum(sign.isdigit() for sign in words)
    is_long = signs >= LEAST_SIGNS and signs + figures >= LEAST_HAN
    return len(words.split()) >= LEAST_WORDS or is_long
