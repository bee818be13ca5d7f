"""What the built-in tool picker thinks at each step: what it does next and why.

In Chinese for a response in Chinese, else in English. People read it above each tool, and models
that learn from trajectories read it as the thought (HaluAgent 2.4.1).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core.models.prompting import prompt_language


@dataclass(frozen=True)
class Thoughts:
    """The sentences of one language; `{tool}` is a tool's name.

    `meant` tells of each tool that works something out what it saw there, `other` of any tool that
    is not named. `whole_done` ends the response as a whole, the others after them a statement.
    """

    meant: Mapping[str, str]
    other: str
    whole_done: str
    refuted: str
    right: str
    search: str
    search_rest: str
    compare: str
    compare_rest: str
    not_denied: str
    denied: str
    rest_unknown: str
    nothing_found: str
    done: str

    def for_tool(self, tool: str) -> str:
        """Why a tool is called that works something out."""
        return self.meant.get(tool, self.other.format(tool=tool))


ENGLISH = Thoughts(
    meant={
        "calculator": "It states a calculation, so I work it out again instead of believing it.",
        "calendar": "It depends on dates that are stated in full, so I work it out on a calendar.",
        "code": "It holds program code, so I see what running it shows.",
        "conditions": "The question says how the answer must be, so I count whether it is so.",
        "units": "It turns a value into another unit, so I convert it again.",
    },
    other="It states what the tool {tool} can work out, so I have it worked out.",
    whole_done="Nothing else about the response as a whole can be worked out.",
    refuted="The tool {tool} shows that it is wrong; nothing more is needed.",
    right="It was worked out to be right and names nothing that a source would have to know.",
    search="Nothing in it can be worked out, so I look for sources that speak of it.",
    search_rest="What can be worked out holds, but it names something too that only sources know, "
    "so I look for some.",
    compare="There are passages that may speak of it, so I compare it with what they say.",
    compare_rest="What was worked out holds; there are passages that may speak of the rest, so I "
    "compare that with what they say.",
    not_denied="The sources have no other value for what was worked out, so it stands.",
    denied="The sources say otherwise; nothing more is needed.",
    rest_unknown="What it says beside the part that was worked out is found nowhere, so it stays "
    "open.",
    nothing_found="No source that speaks of it was found, so there is nothing to compare it with.",
    done="Everything that can be worked out or looked up has been; what came of it decides.",
)
CHINESE = Thoughts(
    meant={
        "calculator": "这里给出了一个算式，不能直接相信，先重新计算。",
        "calendar": "这里的说法取决于完整给出的日期，先用日历推算。",
        "code": "这里有程序代码，先看看运行结果。",
        "conditions": "问题对回答的形式提出了要求，先数一数是否满足。",
        "units": "这里把一个数值换算成另一种单位，先重新换算。",
    },
    other="这里的内容可以用工具 {tool} 推算，先推算看看。",
    whole_done="整段回复没有其他可以推算的内容了。",
    refuted="工具 {tool} 表明它是错的，不必再查。",
    right="推算结果表明它是对的，也没有提到需要来源证实的内容。",
    search="其中没有可以推算的内容，因此查找谈到它的来源。",
    search_rest="可以推算的部分成立，但它还提到了只有来源才能证实的内容，因此再去查找。",
    compare="有段落可能谈到它，因此把它与这些段落的说法比较。",
    compare_rest="推算的部分成立；有段落可能谈到其余的内容，因此把其余内容与这些段落的说法比较。",
    not_denied="来源中没有与推算结果不同的数值，因此它成立。",
    denied="来源的说法与它不符，不必再查。",
    rest_unknown="推算之外的内容在任何地方都没有找到，因此不能下结论。",
    nothing_found="没有找到谈到它的来源，无从比较。",
    done="能推算和能查找的都已完成，以所得结果为准。",
)


def thoughts_in(language: str) -> Thoughts:
    """Those for a response in that language (a BCP 47 tag or `und`)."""
    return CHINESE if prompt_language(language) == "zh" else ENGLISH
