"""What a trajectory says between its facts, in English and Chinese."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core.audited import ToolOutcome
from core.models.prompting import prompt_language


@dataclass(frozen=True)
class Words:
    """The texts of one language; `{}` fields are filled by `core/exchange/trajectory.py`."""

    thought: str
    action: str
    observation: str
    divide: str
    whole: str
    statement: str
    by_rule: str
    unchecked: str
    concluded: str
    looked_back: str
    stands: str
    changed: str
    final: str
    follows: str
    no_label: str
    did: Mapping[ToolOutcome, str]
    wrong: str
    nothing_wrong: str
    nothing_decided: str


ENGLISH = Words(
    thought="THOUGHT",
    action="ACTION",
    observation="OBSERVATION",
    divide="The response is divided into statements, so that each can be checked by itself.",
    whole="First the response as a whole.",
    statement="Now statement {number}: “{text}”.",
    by_rule="By the rules of {agent}, {tool} is meant for this.",
    unchecked="Statement {number} (“{text}”) was looked at without a tool.",
    concluded="Statement {number}: label = {label}. {evidence}",
    looked_back="Looking back over all statements:",
    stands="nothing has to be changed.",
    changed="statement {number} goes from {before} to {after}: {reason}",
    final="For the response label = {label}.",
    follows="label = {label}",
    no_label="No label follows.",
    did={
        "off": "The tool is off here: ",
        "failed": "The tool failed: ",
        "nothing": "",
        "found": "",
    },
    wrong="hallucinated. Wrong are:",
    nothing_wrong="supported. Nothing wrong was found.",
    nothing_decided="unclear. It could not be found out.",
)
CHINESE = Words(
    thought="思考",
    action="行为",
    observation="观察",
    divide="先把回复切分成语句，以便逐条检查。",
    whole="先检查整段回复。",
    statement="现在检查第 {number} 条语句：“{text}”。",
    by_rule="按照 {agent} 的规则，这里应使用 {tool}。",
    unchecked="第 {number} 条语句（“{text}”）未使用工具。",
    concluded="第 {number} 条语句：label = {label}。{evidence}",
    looked_back="回顾全部语句：",
    stands="没有需要修改的。",
    changed="第 {number} 条语句由 {before} 改为 {after}：{reason}",
    final="整段回复 label = {label}。",
    follows="label = {label}",
    no_label="得不出标签。",
    did={"off": "该工具在此不可用：", "failed": "该工具失败："},
    wrong="hallucinated。有误的是：",
    nothing_wrong="supported。没有发现错误。",
    nothing_decided="unclear。无法查明。",
)


def words_of(language: str) -> Words:
    """The words for a case in that language (a BCP 47 tag or `und`): Chinese, else English."""
    return CHINESE if prompt_language(language) == "zh" else ENGLISH
