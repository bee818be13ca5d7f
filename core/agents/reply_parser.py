"""Hears what a debater says in plain text, in English and Chinese; nothing is guessed from prose.

CEDA's turns begin with AGREE or DENY about the last message (A.3.3), then CORRECT, WRONG or OPEN;
all others with the latter, and may end with “Confidence: 80” and “Doubt: …” (ColMAD 2.3).
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from core.documents.segmentation import sentences
from core.runtime.errors import ReplyError
from core.schema.records import Quote, Reply, Stance

LONGEST = 400
SORRY = (
    r"(?:i (?:do )?apologi[sz]e|"
    r"(?:(?:i['’]?m|i am|we['’]?re) )?(?:(?:very|so|really|terribly) )?(?:sorry|afraid))"
)
CANNOT = (
    r"(?:can ?not|can['’]?t|could not|couldn['’]?t|won['’]?t|will not|do not|don['’]?t|"
    r"(?:am|['’]m|are) (?:not able|unable|not allowed|not permitted)|must decline)"
)
DECLINED = (
    r"(?:(?:to|be able to) )?(?:help|assist|comply|provide|fulfil|fulfill|answer|respond|continue|"
    r"describe|discuss|engage|process|view|see|access|analy[sz]e|open|read|look at|identify|"
    r"do (?:that|this)|have access)"
)
OPENINGS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"(?:{SORRY}[,.!:;]? (?:but |that |as )?)?(?:as an ai[^,.]*,? )?"
        rf"(?:unfortunately,? )?i ?{CANNOT}\b[^.]{{0,40}}?\b{DECLINED}\b",
        rf"{SORRY}[,.!]? (?:but )?(?:no|there is no|i (?:see|have|got|received) no) ?image",
        r"(?:no|there is no|i (?:see|have|received) no) image (?:was|is|has been|attached|provided|"
        r"in )",
        r"(?:this|your|the) (?:request|prompt|content|image) (?:violates|goes against|was blocked)",
        r"(?:很|非常|十分)?(?:抱歉|对不起|對不起|不好意思)[，,。！ ]*(?:但|不过)?"
        r"(?:我|作为|作為|无法|無法|不能|未|没有|您)",
        r"(?:作为|作為)(?:一个|一個|一名)?(?:人工智能|AI|语言模型)[^，。]{0,12}[，,]?\s*我?(?:无法|無法|不能|没有)",
        r"我(?:无法|無法|不能|没法|不可以)(?:[^，。]{0,6})"
        r"(?:帮助|協助|协助|提供|回答|描述|查看|看到|识别|访问|处理|完成|满足)",
        r"(?:没有|未)(?:看到|收到|提供)(?:任何)?(?:图片|图像)",
    )
)
GOES_ON = re.compile(
    r"\b(?:but|however|nevertheless|still|yet|though|what i can)\b|但是?|不过|然而|可以看到|显示",
    re.IGNORECASE,
)


def is_refusal(text: str) -> bool:
    """True for a short reply that only declines."""
    flat = " ".join(re.sub(r"[*_#>`\"“”]", "", unicodedata.normalize("NFKC", text)).split())
    if not flat or len(flat) > LONGEST:
        return False
    match = next((m for opening in OPENINGS if (m := opening.match(flat))), None)
    return match is not None and not GOES_ON.search(flat, match.end())


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
# What may stand before it: who speaks, and how sure; “you must always agree” is no reply.
PREFACE = re.compile(
    r"(?:[\W_]|\b(?:(?:my|our|reply|answer|response|verdict|turn|opinion|view|in|i|we|m|re|am|are|do|"
    r"must|can|not|only|no|fully|partly|sure|agreement|here|so|well|yes|that|therefore)\b"
    r"|我们?|本人|对此|答复|回复|回答|意见|观点|基本|完全|部分|表示))*",
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

    Raises ReplyError: neither is said there; nothing is guessed from the rest.
    """
    head = _head(text)
    match = None if UNFINISHED_THOUGHT.match(text) else REPLY.search(head)
    if (
        match is None
        or match.lastgroup == "neither"
        or not PREFACE.fullmatch(head[: match.start()])
    ):
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


STANCES: tuple[Stance, ...] = ("hallucinated", "supported", "unclear")
# “CORRECT.”, “**Verdict: wrong**”, “The claim is not correct”; nothing is guessed from later words.
FIRST = re.compile(
    r"[\W_]*(?:(?:(?:my )?(?:answer|verdict|stance)|(?:the )?(?:claim|statement|answer)|"
    r"裁决|结论|回答|陈述|该陈述)[\W_]*(?:is|:|：|是)?[\W_]*)?"
    rf"(?:{WORDS})(?![^\W_]){ASKED}",
    re.IGNORECASE,
)
# “Correct about the year, but …”, “Correct me if …”, “‘WRONG’ is what Ada says”: prose, no verdict.
PROSE = re.compile(r"[”\"’'」』»]?[ \t]+(?!because|since|as\b|for\b|based|by\b|according)[a-z]")
LINE = r"^[\W_]*(?:{words})[\W_]*[:：][\s*_]*(?P<value>.+?)\s*$"
CONFIDENCE = re.compile(LINE.format(words="confidence|信心|置信度|把握"), re.I | re.M)
DOUBT = re.compile(LINE.format(words="doubt|failure mode|疑点|疑點|可能的错误"), re.I | re.M)
WORDS_LINE = re.compile(LINE.format(words="words?|词句|詞句"), re.I | re.M)
# A share of another whole (“4/5”), or a negative number, is no confidence that can be told.
SHARE = re.compile(
    r"(?<![-−\d.,/])(?<!of )(?P<number>\d+(?:\.\d+|,\d{1,2})?)(?![.,]?\d)"
    r"\s*(?P<unit>%|(?:/|(?:out )?of)\s*100?(?!\d))?(?!\s*(?:/|(?:out )?of)\s*\d)"
)
# What is counted already and says nothing in a reason: “AGREE, WRONG.”, “CORRECT.”
OPENING = re.compile(
    r"[\W_]*(?:(?:AGREE|DENY|同意|反对)[\W_]+)?(?:CORRECT|WRONG|OPEN|正确|错误|未定)"
    r"(?![^\W_])[*_`]*[.:,;!。：，；！][\s*_`]*(?=\S)"
)


@dataclass(frozen=True)
class StatedVerdict:
    """A verdict with what goes with it; `confidence` in [0, 1], None where none is stated."""

    stance: Stance
    confidence: float | None
    doubt: str


def stated_in(text: str) -> StatedVerdict:
    """What the turn states.

    Raises ReplyError: it does not begin with a verdict; nothing is guessed from the rest.
    """
    plain = unicodedata.normalize("NFKC", text).replace("*", "").replace("`", "")
    head = ECHOED.sub("", plain, count=1)
    match = None if UNFINISHED_THOUGHT.match(text) else FIRST.match(head)
    if match is None or _is_prose(match):
        found = " ".join(text.split())[:FOUND_CHARACTERS] or "nothing"
        raise ReplyError(
            f"Expected a turn that begins with CORRECT, WRONG or OPEN, found “{found}”.", reply=text
        )
    stance = next(stance for stance in STANCES if match[stance])
    return StatedVerdict(stance, confidence_in(plain), doubt_in(plain))


def _is_prose(match: re.Match[str]) -> bool:
    """True where the sentence goes on behind the word, which is then said of something else.

    A wrong part makes the claim wrong, so “Wrong height” is a verdict, unless it is quoted.
    """
    goes_on = PROSE.match(match.string, match.end())
    if goes_on is None:
        return False
    is_quoted = not goes_on.group().startswith((" ", "\t"))
    is_shouted = match[match.lastgroup or 0].isupper()
    return is_quoted or (match.lastgroup == "supported" and not is_shouted)


def confidence_in(text: str) -> float | None:
    """The confidence of the last line that states one, in [0, 1].

    Our prompts ask for a whole number from 0 to 100, so a whole number without a unit is one of
    these: “1” is one of a hundred. A decimal fraction of one at most, as “0.8” or “1.0”, is a share
    of one; what says “/10” is a share of ten.
    """
    lines = list(CONFIDENCE.finditer(text))
    share = SHARE.search(lines[-1]["value"]) if lines else None
    if share is None:
        return None
    number, unit = float(share["number"].replace(",", ".")), share["unit"] or ""
    if unit.endswith("10"):
        number /= 10
    elif unit or number > 1 or share["number"].isdecimal():
        number /= 100
    return number if 0 <= number <= 1 else None


def reason_in(text: str) -> str:
    """The turn without its lines of a form of their own: confidence, doubt, and contested words."""
    for line in (CONFIDENCE, DOUBT, WORDS_LINE):
        text = line.sub("", text)
    return " ".join(text.split())


def argument_in(text: str) -> str:
    """The reason without the verdict before it; a verdict that nothing follows stays."""
    words = reason_in(text)
    found = OPENING.match(words)
    rest = words[found.end() :] if found else words
    return rest[:1].upper() + rest[1:]


def doubt_in(text: str) -> str:
    """The failure mode of its own claim that the last such line states."""
    lines = list(DOUBT.finditer(text))
    return lines[-1]["value"].strip() if lines else ""
