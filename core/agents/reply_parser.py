"""Parse what debaters say in plain text, in English and Chinese; never guess from prose.

CEDA's turns begin with AGREE or DENY about the last message (A.3.3), then CORRECT, WRONG or OPEN;
turns of other protocols begin with the latter. A turn may end with “Confidence: 80” and
“Doubt: …” (ColMAD 2.3).
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from core.documents.segmentation import split_sentences
from core.llm.call import UNFINISHED_THOUGHT
from core.runtime.errors import ReplyError
from core.schema.records import Quote, Stance, TurnReply

MAX_REFUSAL_CHARS = 400  # characters of a refusal
APOLOGY_PATTERN = (
    r"(?:i (?:do )?apologi[sz]e|"
    r"(?:(?:i['’]?m|i am|we['’]?re) )?(?:(?:very|so|really|terribly) )?(?:sorry|afraid))"
)
INABILITY_PATTERN = (
    r"(?:can ?not|can['’]?t|could not|couldn['’]?t|won['’]?t|will not|do not|don['’]?t|"
    r"(?:am|['’]m|are) (?:not able|unable|not allowed|not permitted)|must decline)"
)
DECLINED_ACTION_PATTERN = (
    r"(?:(?:to|be able to) )?(?:help|assist|comply|provide|fulfil|fulfill|answer|respond|continue|"
    r"describe|discuss|engage|process|view|see|access|analy[sz]e|open|read|look at|identify|"
    r"do (?:that|this)|have access)"
)
REFUSAL_OPENINGS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"(?:{APOLOGY_PATTERN}[,.!:;]? (?:but |that |as )?)?(?:as an ai[^,.]*,? )?"
        rf"(?:unfortunately,? )?i ?{INABILITY_PATTERN}\b[^.]{{0,40}}?\b{DECLINED_ACTION_PATTERN}\b",
        rf"{APOLOGY_PATTERN}[,.!]? (?:but )?(?:no|there is no|i (?:see|have|got|received) no) "
        rf"?image",
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
CONTINUATION_WORDS = re.compile(
    r"\b(?:but|however|nevertheless|still|yet|though|what i can)\b|但是?|不过|然而|可以看到|显示",
    re.IGNORECASE,
)
HEAD_WORDS = 12
HEAD_CHARACTERS = 160
HEAD_HAN_CHARACTERS = 30
MIN_CITATION_WORDS = 3
MIN_CITATION_HAN = 6  # figures count too: 塔高412米
MIN_CITATION_HAN_LETTERS = 3  # of which at least so many are not digits
MAX_ERROR_CHARS = 80
OPPOSITE_STANCE: dict[Stance, Stance] = {
    "supported": "hallucinated",
    "hallucinated": "supported",
    "unclear": "unclear",
}
NEGATION_PATTERN = (
    r"(?<![a-z])(?:not(?! only)|don['’]?t|cannot|can['’]?t|won['’]?t|never)(?: \w+){0,3}"
)
ECHOED_INSTRUCTION = re.compile(
    r"^\W*(?:agree|同意)\s*(?:/|\||or|或)\s*(?:deny|反对)\W*"
    r"|(?:correct|正确)\s*(?:[/|,、，]|or\b|或)\s*(?:wrong|错误)"
    r"(?:\s*,?\s*(?:[/|、，]|or\b|或)\s*(?:open|未定))\W*"
    r"|(?:correct|正确)\s*[/|]\s*(?:wrong|错误)\W*",
    re.IGNORECASE,
)
# Bounded by Latin letters rather than \b, which “我AGREE” does not have.
REPLY_PATTERN = re.compile(
    rf"(?P<neither>(?<![a-z])neither agree|{NEGATION_PATTERN} deny(?![a-z])|"
    r"既不同意|不反对|不否认|不反對)"
    rf"|(?P<deny>{NEGATION_PATTERN} agree|(?<![a-z])disagree|(?<![a-z])den(?:y|ies|ied)(?![a-z])"
    r"|(?:不|难以|難以|无法|無法)[^，。,.]{0,3}?(?:同意|赞同|贊同)|反对|反對|否认|否認)"
    r"|(?P<agree>(?<![a-z])agree(?:s|d|ing)?(?![a-z])|同意|赞同|贊同)",
    re.IGNORECASE,
)
# May stand before the reply: the speaker and a degree; “you must always agree” is no reply.
REPLY_PREFACE = re.compile(
    r"(?:[\W_]|\b(?:(?:my|our|reply|answer|response|verdict|turn|opinion|view|in|i|we|m|re|am|are|do|"
    r"must|can|not|only|no|fully|partly|sure|agreement|here|so|well|yes|that|therefore)\b"
    r"|我们?|本人|对此|答复|回复|回答|意见|观点|基本|完全|部分|表示))*",
    re.IGNORECASE,
)
STANCE_WORDS_PATTERN = (
    r"(?P<hallucinated>in ?correct|not correct|wrong|不正确|不正確|错误|錯誤)"
    r"|(?P<supported>correct|not wrong|正确|正確)"
    r"|(?P<unclear>open|未定|待定|无法确定|無法確定)"
)
NOT_A_QUESTION = r"(?![^\w\n]*[?？])"  # “CORRECT? No”: a question is no verdict
NEGATED_STANCE = r"(?i:not|isn['’]t|不是?)\s"
CAPITAL_STANCE = re.compile(
    rf"(?<![A-Za-z])(?:(?P<hallucinated>INCORRECT|{NEGATED_STANCE}CORRECT|WRONG)"
    rf"|(?P<supported>CORRECT|{NEGATED_STANCE}WRONG)|(?P<unclear>OPEN))(?![A-Za-z]){NOT_A_QUESTION}"
)
# Directly after the reply: “agree, wrong.”, “I agree that the claim is correct.”; not “agree: the
# correct figure is …”, which is prose.
ADJACENT_STANCE = re.compile(
    r"^[\W_]*(?:(?:and|that|with (?:the|this|that) \w+|以及|并且)[\W_]+)?"
    r"(?:(?:the|this|original)\s+)*(?:(?:claim|statement|answer|陈述|原陈述)\s*)?(?:is|:|：|是)?[\W_]*"
    rf"(?:{STANCE_WORDS_PATTERN})(?![^\W_]|\s+(?!because|since|as\b|for\b|based|by\b)[a-z]){NOT_A_QUESTION}",
    re.IGNORECASE,
)
CJK_LETTER = re.compile(r"[\u3400-\u9fff\u3040-\u30ff\uac00-\ud7af]")
QUOTED_TEXT = re.compile(
    r"“([^“”]+)”|„([^“”„]+)[“”]|«([^«»]+)»|「([^「」]+)」|『([^『』]+)』|\"([^\"\n]+)\""
)
ANY_LETTER = re.compile(r"[^\W_]")
TICK_MARKS = re.compile("[✓✔☑✅✗✘❌☒]\ufe0f?")
SENTENCE_END = re.compile(r"""[.!?。！？।؟…][)"'”’」』»\]*_]*\s*$""")
STANCE_NAMES: tuple[Stance, ...] = ("hallucinated", "supported", "unclear")
# “CORRECT.”, “**Verdict: wrong**”, “The claim is not correct”; nothing is guessed from later words.
FIRST_STANCE = re.compile(
    r"[\W_]*(?:(?:(?:my )?(?:answer|verdict|stance)|(?:the )?(?:claim|statement|answer)|"
    r"裁决|结论|回答|陈述|该陈述)[\W_]*(?:is|:|：|是)?[\W_]*)?"
    rf"(?:{STANCE_WORDS_PATTERN})(?![^\W_]){NOT_A_QUESTION}",
    re.IGNORECASE,
)
# Prose, no verdict: “Correct about the year, but …”, “Correct me if …”, “‘WRONG’ is what Ada says”.
PROSE_CONTINUATION = re.compile(
    r"[”\"’'」』»]?[ \t]+(?!because|since|as\b|for\b|based|by\b|according)[a-z]"
)
FIELD_LINE = r"^[\W_]*(?:{words})[\W_]*[:：][\s*_]*(?P<value>.+?)\s*$"
CONFIDENCE_LINE = re.compile(FIELD_LINE.format(words="confidence|信心|置信度|把握"), re.I | re.M)
DOUBT_LINE = re.compile(
    FIELD_LINE.format(words="doubt|failure mode|疑点|疑點|可能的错误"), re.I | re.M
)
CONTESTED_LINE = re.compile(FIELD_LINE.format(words="words?|词句|詞句"), re.I | re.M)
# “4/5”, a share of another whole, or a negative number is no confidence.
CONFIDENCE_VALUE = re.compile(
    r"(?<![-−\d.,/])(?<!of )(?P<number>\d+(?:\.\d+|,\d{1,2})?)(?![.,]?\d)"
    r"\s*(?P<unit>%|(?:/|(?:out )?of)\s*100?(?!\d))?(?!\s*(?:/|(?:out )?of)\s*\d)"
)
# The verdict before a reason: “AGREE, WRONG.”, “CORRECT.”
VERDICT_OPENING = re.compile(
    r"[\W_]*(?:(?:AGREE|DENY|同意|反对)[\W_]+)?(?:CORRECT|WRONG|OPEN|正确|错误|未定)"
    r"(?![^\W_])[*_`]*[.:,;!。：，；！][\s*_`]*(?=\S)"
)


def is_refusal(text: str) -> bool:
    """Return True for a short reply that only declines."""
    flat = " ".join(re.sub(r"[*_#>`\"“”]", "", unicodedata.normalize("NFKC", text)).split())
    if not flat or len(flat) > MAX_REFUSAL_CHARS:
        return False
    match = next((m for opening in REFUSAL_OPENINGS if (m := opening.match(flat))), None)
    return match is not None and not CONTINUATION_WORDS.search(flat, match.end())


def parse_reply(text: str) -> tuple[TurnReply, str]:
    """Return the AGREE or DENY that begins a turn, and the rest of its head.

    Raises ReplyError if neither stands there; nothing is guessed from the rest.
    """
    head = _take_head(text)
    match = None if UNFINISHED_THOUGHT.match(text) else REPLY_PATTERN.search(head)
    if (
        match is None
        or match.lastgroup == "neither"
        or not REPLY_PREFACE.fullmatch(head[: match.start()])
    ):
        found = " ".join(text.split())[:MAX_ERROR_CHARS] or "nothing"
        raise ReplyError(
            f"Expected a turn that begins with AGREE or DENY, found “{found}”.", reply=text
        )
    reply: TurnReply = "agree" if match.lastgroup == "agree" else "deny"
    return reply, head[match.end() :]


def infer_stance(reply: TurnReply, rest: str, last: Stance) -> Stance:
    """Return the turn's stance on the claim; `last` is the stance of the last message."""
    return _parse_stance(rest) or (last if reply == "agree" else OPPOSITE_STANCE[last])


def has_stated_stance(text: str) -> bool:
    """Return True if the turn states its stance on the claim, so that none was inferred."""
    try:
        _, rest = parse_reply(text)
    except ReplyError:
        return False
    return _parse_stance(rest) is not None


def _parse_stance(rest: str) -> Stance | None:
    """Return the only stance in capitals, or else the one directly after the reply, if any.

    A turn that names another's verdict beside its own (“DENY: Ada says CORRECT, but it is WRONG”)
    is not guessed at.
    """
    shouted = {match.lastgroup for match in CAPITAL_STANCE.finditer(rest)}
    match = CAPITAL_STANCE.search(rest) if len(shouted) == 1 else ADJACENT_STANCE.match(rest)
    return next((s for s in OPPOSITE_STANCE if match and match.lastgroup == s), None)


def parse_quotes(text: str) -> tuple[Quote, ...]:
    """Return texts in quotation marks long enough for a citation; their status is unchecked."""
    texts = dict.fromkeys(
        _trim(next(part for part in match.groups() if part is not None))
        for match in QUOTED_TEXT.finditer(text)
    )
    return tuple(Quote(text, "not_found", 0.0) for text in texts if _is_citation(text))


def split_last_line(text: str) -> tuple[str, str]:
    """Return (a reply's prose, its last line with text, in NFKC); both may be empty."""
    *before, last = ["", *(line for line in text.splitlines() if ANY_LETTER.search(line))]
    return "\n".join(before).strip(), unicodedata.normalize("NFKC", last)


def strip_marks(text: str) -> str:
    """Remove signs that look like our verification marks, which only code may set."""
    return TICK_MARKS.sub("", text)


def strip_speaker_name(text: str, name: str) -> str:
    """Remove the speaker's name, which some models write before the turn."""
    pattern = r"\s+".join(re.escape(part) for part in name.split())
    return re.sub(
        rf"^[\W_]*{pattern}[*_\])]*\s*[:：][*_]*\s*", "", text.strip(), flags=re.IGNORECASE
    )


def cut_to_sentences(text: str, language: str) -> str:
    """Cut a truncated text after its last full sentence; leave it if it has none."""
    remaining = split_sentences(text, language)
    while remaining and not SENTENCE_END.search(text[remaining[-1].start : remaining[-1].end]):
        remaining.pop()
    is_bare = (
        remaining
        and len(text[: remaining[-1].end].split()) < MIN_CITATION_WORDS
        and not CJK_LETTER.search(text)
    )
    if not remaining or is_bare:
        return text
    return text[: remaining[-1].end]


def _take_head(text: str) -> str:
    """Return the turn's first words, in NFKC and without Markdown, that may hold its reply."""
    plain = unicodedata.normalize("NFKC", text).replace("*", "").replace("`", "").strip()
    plain = ECHOED_INSTRUCTION.sub("", plain)
    words = " ".join(plain.split()[:HEAD_WORDS])[:HEAD_CHARACTERS]
    return words[:HEAD_HAN_CHARACTERS] if CJK_LETTER.search(words[:HEAD_HAN_CHARACTERS]) else words


def _trim(words: str) -> str:
    return words.strip().rstrip(",;:，；：").strip()


def _is_citation(words: str) -> bool:
    signs = len(CJK_LETTER.findall(words))
    figures = sum(sign.isdigit() for sign in words)
    is_long = signs >= MIN_CITATION_HAN_LETTERS and signs + figures >= MIN_CITATION_HAN
    return len(words.split()) >= MIN_CITATION_WORDS or is_long


@dataclass(frozen=True)
class StatedVerdict:
    """A verdict with its confidence in [0, 1], or None if none is stated, and its doubt."""

    stance: Stance
    confidence: float | None
    doubt: str


def parse_stated_verdict(text: str) -> StatedVerdict:
    """Return the verdict, confidence and doubt that the turn states.

    Raises ReplyError if it does not begin with a verdict; nothing is guessed from the rest.
    """
    plain = unicodedata.normalize("NFKC", text).replace("*", "").replace("`", "")
    head = ECHOED_INSTRUCTION.sub("", plain, count=1)
    match = None if UNFINISHED_THOUGHT.match(text) else FIRST_STANCE.match(head)
    if match is None or _is_prose(match):
        found = " ".join(text.split())[:MAX_ERROR_CHARS] or "nothing"
        raise ReplyError(
            f"Expected a turn that begins with CORRECT, WRONG or OPEN, found “{found}”.", reply=text
        )
    stance = next(stance for stance in STANCE_NAMES if match[stance])
    return StatedVerdict(stance, parse_confidence(plain), parse_doubt(plain))


def _is_prose(match: re.Match[str]) -> bool:
    """Return True if the sentence goes on after the verdict word and is about something else.

    A wrong part makes the claim wrong, so “Wrong height” is a verdict, unless it is quoted.
    """
    continuation = PROSE_CONTINUATION.match(match.string, match.end())
    if continuation is None:
        return False
    is_quoted = not continuation.group().startswith((" ", "\t"))
    is_shouted = match[match.lastgroup or 0].isupper()
    return is_quoted or (match.lastgroup == "supported" and not is_shouted)


def parse_confidence(text: str) -> float | None:
    """Return the confidence that the last such line states, in [0, 1], or None.

    Our prompts ask for a whole number from 0 to 100, so a whole number without a unit is a percent
    value: “1” is one percent. A decimal fraction up to one, such as “0.8” or “1.0”, is a share of
    one; with “/10” it is a share of ten.
    """
    lines = list(CONFIDENCE_LINE.finditer(text))
    share = CONFIDENCE_VALUE.search(lines[-1]["value"]) if lines else None
    if share is None:
        return None
    number, unit = float(share["number"].replace(",", ".")), share["unit"] or ""
    if unit.endswith("10"):
        number /= 10
    elif unit or number > 1 or share["number"].isdecimal():
        number /= 100
    return number if 0 <= number <= 1 else None


def parse_reason(text: str) -> str:
    """Return the turn without its lines on confidence, doubt and contested words."""
    for line in (CONFIDENCE_LINE, DOUBT_LINE, CONTESTED_LINE):
        text = line.sub("", text)
    return " ".join(text.split())


def parse_argument(text: str) -> str:
    """Return the reason without the verdict before it; a verdict alone stays."""
    reason = parse_reason(text)
    opening = VERDICT_OPENING.match(reason)
    rest = reason[opening.end() :] if opening else reason
    return rest[:1].upper() + rest[1:]


def parse_doubt(text: str) -> str:
    """Return the failure mode that the last “Doubt” line states, or an empty text."""
    lines = list(DOUBT_LINE.finditer(text))
    return lines[-1]["value"].strip() if lines else ""
