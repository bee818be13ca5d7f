"""The words of sums in English and Chinese: signs, relations, powers, and words that are none."""

from __future__ import annotations

import re

ENGLISH = re.compile(
    r"(?P<plus>plus)|(?P<minus>minus)|(?P<times>times(?! as)|multiplied by)|(?P<over>divided by)"
    r"|(?P<power>(?:raised )?to the power(?: of)?)|(?P<squared>squared)|(?P<cubed>cubed)"
    r"|(?P<of>of)|(?P<root>(?:the )?square root(?: of)?)|(?P<cuberoot>(?:the )?cube root(?: of)?)"
    r"|(?P<equals>equals|is equal to|are equal to|equal to|is exactly)"
    r"|(?P<is>is|are|was|makes?|gives?|leaves?|totals?)"
    r"|(?P<about>about|approximately|roughly|around|nearly|almost|just under|just over|exactly)",
    re.IGNORECASE,
)
# A word's group to the sign that it stands for.
ENGLISH_SIGNS = {"plus": "+", "minus": "-", "times": "*", "over": "/", "power": "^"}
NOT_SIGNS = re.compile(
    r"增加|参加|加工|加入|加班|加油|更加|追加|减少|减轻|减速|乘客|乘坐|乘车|除了|删除|扣除|免除|除夕"
    r"|相加|相减|相乘|相除|加权|加速|加法|减法|乘法|除法|乘数|除数|因为|认为|作为|成为|分为|设为|记为"
    r"|是否|但是|于是|总是|还是|不是|若是|要是|不等于|得分|获得|取得|值得|目的|平均"
)
CHINESE = re.compile(
    r"(?P<about>约等于|大约是|约是|约为|大约|约|近似于|近似为)"
    r"|(?P<equals>等于|(?:的[和差积商])(?:就?是|等于|为|得)|得到|[就共]是|得|是|为)"
    r"|(?P<plus>加上|加)|(?P<minus>减去|减)|(?P<times>乘以|乘上|乘)|(?P<over>除以)"
    r"|(?P<power>的(?=[0-9一二两三四五六七八九十]{1,3}次方))|(?P<nth>次方)"
    r"|(?P<squared>的平方)(?!根)|(?P<cubed>的立方)(?!根)|(?P<root>根号)"
    r"|(?P<of>的)"
)
