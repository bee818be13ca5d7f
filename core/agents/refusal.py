"""Recognises a refusal that poses as an answer, in English and Chinese.

Only short replies that open with it and then go on to nothing else count: “I can't tell who this
is, but the photograph shows …” is an answer.
"""

from __future__ import annotations

import re
import unicodedata

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
