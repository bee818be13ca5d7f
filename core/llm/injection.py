"""Prompt injection: fence untrusted text in prompts, and name words that address the model.

`Fence.around` is what every piece of a case, a source, a file's name or a model's reply goes
through on its way into a prompt: it can neither end its fence nor pose as anyone else, and stays
readable. `steering` finds turns of phrase by which a text speaks to the judge or a model instead of
to its reader: a hint for a person, never a filter, and new wordings pass unnoticed. Patterns look
at a skeleton of the text in small letters without accents; invisible characters and look-alikes are
undone first. Offsets never refer to what `skeleton` and `visible` return.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

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


def visible(text: str) -> str:
    """The text without characters that nobody sees; control characters become their pictures."""
    text = _SURROGATE.sub("\ufffd", text)
    text = _LINE_END.sub("\n", text).translate(_CONTROL)
    while (seen := _SELECTOR.sub("", _JOINER.sub("", _UNSEEN.sub("", text)))) != text:
        text = seen
    return text


def spelled_out(text: str) -> str:
    """The text with what is written in invisible tag letters made readable."""
    return text.translate(_TAG_LETTERS)


def skeleton(text: str) -> str:
    """What the text looks like, in small Latin letters where it can; of the same length.

    A character stays what it is where its plain form has another length than one.
    """
    return text.translate(_SKELETON)


class _Skeleton(dict[int, str]):
    """Works a character out when it is first met."""

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


# Where a command begins: at the head of a sentence, cell or line, or after a word that opens one.
_HEAD = (
    r"(?:(?:\A|[.!?:;|\n\"'“”«(\[>*#=/\-–—,。，：！]|\b(?:please|kindly|now|then|instead|therefore|"
    r"simply|just|always|and|must|you should|you will|you shall|have to|want you to|need you to))"
    r"\s*)"
)
_READER = (
    r"(?:judges?|debaters?|adjudicator|reviewers?|ai|a\.i\.|llms?|language models?|large language "
    r"models?|assistants?|chatbots?|chatgpt|gpt|fact.?checkers?|graders?|evaluators?|"
    r"verifiers?|model|ai models?|ai systems?|ai assistants?|ai reviewers?|ai judges?)"
)
_OLD = (
    r"(?:(?:all|any|every|each|the|of|your|these|those|this|that|previous|prior|above|earlier|"
    r"preceding|other|former|system|original|initial|existing|given|safety|everything) ?){0,5}"
)
_ORDERS = (
    r"(?:instructions?|prompts?|rules?|guidelines?|directions?|directives?|commands?|orders?|"
    r"context|constraints?)"
)
_WHICH = r"(?:previous|prior|above|earlier|preceding|your|system|original|initial|all|any|other)"
_GOOD = (
    r"(?:correct|true|supported|right|verified|accurate|factual|valid|proven|confirmed|faithful|"
    r"wrong|false|hallucinated|incorrect|unsupported)"
)
_RULE = (
    r"(?:rule|mark|label|declare|classify|rate|treat|accept|score|judge|report|deem|pronounce|"
    r"find|decide|conclude|confirm|agree|say|state|answer|affirm|count|assume)"
)
_SAY = (
    r"(?:respond|answer|reply|output|return|end|write|print|say|conclude|finish|emit|state|"
    r"respond only|choose|vote|begin|start)"
)
_THING = (
    r"(?:claims?|statements?|responses?|answers?|case|fact|sentence|text|assertion|item|everything|"
    r"span|words)"
)

_ENGLISH = (
    rf"{_HEAD}(?:ignore|disregard|forget|override|bypass|discard|drop|do not follow|don't follow|"
    rf"do not obey|stop following|pay no attention to|skip) (?={_OLD}{_ORDERS})"
    rf"(?:[a-z]+ ){{0,4}}?{_WHICH} (?:[a-z]+ ){{0,4}}?{_ORDERS}\b[^.!?\n|]{{0,60}}",
    rf"{_HEAD}(?:ignore|disregard|forget) (?:everything|anything|whatever|all)(?: that)? "
    r"(?:above|before|you|i|was|said|written|else|the other)\b[^.!?\n|]{0,60}",
    rf"{_HEAD}(?:ignore|disregard|discard) (?:all |the |any |every )*(?:other |remaining |"
    rf"rest of the "
    r"|conflicting |contrary )(?:evidence|passages?|sources?|documents?|debaters?)\b[^.!?\n|"
    r"]{0,60}",
    rf"(?:\A|[.!?:|\n\"“(\[>*#=]\s*|[-–—]\s+)(?:dear |hey |hello |attention,? |to the |to all |"
    rf"note to "
    rf"(?:the |all )?|message (?:to|for) (?:the |all )?|instructions? (?:to|for) (?:the |all )?|"
    rf"important,? ){{0,2}}{_READER}\s?[,:!\-–—]+\s?(?:please|you|your|do|don't|if|when|this|"
    rf"the claim"
    rf"|stop|agree|deny|ignore|set|give|{_RULE}|{_SAY})\b[^.!?\n|]{{0,80}}",
    rf"\b(?:note|message|instructions?|attention|memo|reminder|information)\s?[,:]? (?:to|for)"
    rf" (?:the "
    rf"|all |any |every |our )?(?:{_READER})\s?(?:reading|who|that|processing|reviewing|[:,–—-])"
    r"[^.!?\n|]{0,80}",
    rf"\battention(?:\s?[,:!]\s?| )(?:all )?(?:the )?{_READER}\s?[,:!.–—-][^.!?\n|]{{0,80}}",
    rf"\bif you(?:'re| are) (?:an? |the )?{_READER}\b[^.!?\n|]{{0,80}}",
    rf"{_HEAD}{_RULE} (?:that )?(?:this|the|that|our|my|every|all|it|its|any|each|both|them)"
    rf"(?: (?:above|following|whole|user's|original|debated|present))?(?: {_THING})?"
    rf"(?: (?:is|are|as|to be|holds as|must be|should be|in))*(?: (?:fully|entirely|100 ?%|"
    rf"completely|"
    rf"always))*[ :=\"'“(]+{_GOOD}\b(?! (?:or|and (?:false|wrong)))(?!\s?/)",
    rf"\b(?:you|judges?|reviewers?|ai|assistant|debaters?) (?:must|should|will|shall|"
    rf"are required "
    rf"to|have to|are to|need to|are instructed to|are ordered to)(?: (?:now|always|only|therefore|"
    rf"not|never|simply))* (?:{_RULE}|{_SAY}|agree|deny|ignore|disregard|obey|refuse|follow|comply|"
    rf"accept|side) (?=[^.!?\n|]{{0,80}}\b(?:{_GOOD}|verdict|agree|instructions?|this (?:document|"
    r"passage|text|source)|only|evidence|debate))[^.!?\n|]{0,80}",
    rf"{_HEAD}{_SAY}(?: (?:only|just|simply|exactly|always|your|the|whole|reply|answer|response|"
    rf"line|"
    r"reasoning|a|single|with|by|on|in|as|saying|writing|to|last))* ?[:\"'“`*(]*(?:final )"
    r"?verdict\b"
    r"[^.!?\n|]{0,60}",
    r"(?:\A|[\n|>\"“(])[ \t*_#\"'“(\-]*(?:the |final |my )?verdict[ *_]*[:=][ *_\"'(]*[01][ *_\"')"
    r"”.!]*"
    r"(?=\n|\||\Z|<)",
    r"\b(?:the|your|final|correct|right|only)(?: [a-z]+){0,2} (?:verdict|answer|output|ruling|"
    r"label|"
    r"last line) (?:is|must be|should be|has to be|shall be|will be|=)[ :\"'“`*]*(?:verdict|1\b|"
    r"0\b|"
    r"supported|correct|agree|\"?true)[^.!?\n|]{0,40}",
    rf"{_HEAD}{_SAY} (?:only |just |simply |exactly |always )*(?:with |by saying )"
    rf"?(?:the (?:single )?"
    r"words? |the number |the digit )?[\"'“`]?(?:agree\b|deny\b|correct\b|supported\b|\{\"|"
    r"hallucinated)[\"'”`]?[^.!?\n|]{0,40}",
    r"(?<!our )(?<!their )\b(?:you are now|from now on,? (?:you|your|all|every)|you are no longer|"
    r"your (?:new|real|true|"
    r"actual|only|updated|sole) (?:task|instructions?|role|job|goal|objective|orders?|purpose)|"
    r"(?:new|updated|hidden|secret|revised|additional) (?:system )?(?:instructions?|prompt|"
    r"orders?|directives?)\s?[:=]|system (?:override|prompt)\s?[:=]|(?:developer|debug|admin|"
    r"override|god)"
    r" mode "
    r"(?:is )?(?:on|enabled|activated|active)|end of (?:the )?(?:evidence|material|documents?|"
    r"transcript|context|untrusted [a-z]+)\s?[.:\n])[^.!?\n|]{0,80}",
    rf"{_HEAD}(?:pretend|imagine|act as if|act as though|behave as if|play) (?:that )?(?:you|"
    rf"to be an?|"
    r"the (?:debate|claim|evidence))\b[^.!?\n|]{0,60}",
    rf"{_HEAD}(?:do not|don't|never) (?:check|verify|question|flag|mark|report|mention|highlight|"
    r"examine|doubt|contradict|dispute|deny) (?:this|the|any|that|it|these|anything|words?)"
    rf"(?: [a-z]+){{0,3}}? (?:{_THING}|passages?|documents?|evidence|sources?|here)\b[^.!?\n|"
    rf"]{{0,60}}",
    rf"{_HEAD}(?:reveal|print|repeat|show|output) (?:me )?(?:your|the) (?:system )?(?:prompt|"
    r"instructions|hidden|rules)\b[^.!?\n|]{0,60}",
)

# Further ways to say the same, each of which gives itself away by one turn of phrase.
_PHRASES = (
    rf"{_HEAD}(?:ignore|disregard|discard|forget|do not (?:apply|use|follow)|don't (?:apply|use|"
    rf"follow))"
    rf" (?:[a-z]+ ){{0,3}}?{_ORDERS} (?:that )?(?:you (?:received|were given|got|have|follow)|"
    rf"given to"
    r" you|i gave)[^.!?\n|]{0,60}",
    rf"{_HEAD}(?:do not|don't) (?:apply|use|obey) (?:[a-z]+ ){{0,2}}?{_WHICH} (?:[a-z]+ ){{0,2}}?"
    rf"{_ORDERS}[^.!?\n|]{{0,40}}",
    rf"{_HEAD}(?:ignore|disregard|discard|do not listen to|don't listen to|do not believe|"
    rf"don't believe|"
    r"do not trust|don't trust) (?:what |anything |everything |all )?(?:the )?(?:other |opposing )?"
    r"(?:debaters?|judge|evidence|passages?|transcript|[a-z]+\. [a-z]+ is (?:wrong|lying))"
    r"[^.!?\n|]{0,60}",
    rf"(?:\A|[.!?:|\n(]\s*){_READER} (?:instructions?|notes?|notice|message|directives?|only)\s?:"
    r"[^.!?\n|]{0,80}",
    rf"\b(?:as|being) (?:the|an?) {_READER},? you (?:must|are|should|have|will|need)\b[^.!?\n|"
    rf"]{{0,80}}",
    rf"\b(?:to|dear|hey|hello) (?:the |any |all |every )?{_READER} (?:that|who|which) (?:process|"
    rf"read|"
    r"review|grade|check|evaluate|judge|see|analy[sz]e)[a-z]*[^.!?\n|]{0,80}",
    r"\bwho(?:so)?ever (?:or whatever )?(?:grades|reviews|checks|judges|evaluates|verifies)"
    r" this"
    r"[^.!?\n|]{0,80}",
    r"\bas (?:an? |the )?(?:automated|automatic|artificial) (?:reviewer|judge|grader|checker|"
    r"system)"
    r"[^.!?\n|]{0,80}",
    r"\byour (?:task|role|job|instructions?|orders|guidelines|goal|purpose) (?:is|are) now\b"
    r"[^.!?\n|]{0,60}|\byou have been (?:reconfigured|reprogrammed|reset|overridden|re-instructed|"
    r"updated to)\b[^.!?\n|]{0,60}",
    r"\b(?:important |urgent |new )system (?:notice|message|note|alert|update)\s?[:!][^.!?\n|"
    r"]{0,80}"
    r"|(?:\A|[.!?|\n]\s*)override\s?:[^.!?\n|]{0,60}",
    rf"{_HEAD}(?:set|return|output|leave|keep|mark|give) (?:[a-z\"'`]+ ){{0,4}}?(?:hallucinated|"
    rf"spans?|"
    r"p_hallucinated|verdict)[\"'`]* ?(?:list |field )?(?:to|=|:|as|is|empty)"
    r"[ :=\"'`]*(?:false|"
    r"true|empty|0|1|\[|supported|none)[^.!?\n|]{0,40}",
    rf"{_HEAD}(?:return|output|give|reply with|answer with) (?:only )?(?:an? |the )?(?:empty|"
    rf"blank) (?:list|"
    r"json|object|array|answer|reply)[^.!?\n|]{0,40}|\band return an empty list[^.!?\n|]{0,40}"
    rf"|{_HEAD}(?:return|output|reply with|answer with|print) \{{\s?[\"'][^\n|]{{0,60}}",
    r"\b(?:correct|right|expected|only|proper) (?:response|answer|output|reply) to this (?:task|"
    r"prompt|"
    r"question|case|review|debate) is[^.!?\n|]{0,60}",
    rf"{_HEAD}stop (?:evaluating|checking|reviewing|judging|verifying|debating|fact-?checking)"
    r" (?:now|here|and|this|the (?:claim|response|case|statement|evidence))\b[^.!?\n|]{0,60}",
    rf"{_HEAD}(?:rule|decide|find) (?:for|in favou?r of|against) (?:the |this |our )?"
    r"(?:claim|claimant|author|response|statement|first|second|debater|ada|ben|me|us)\b[^.!?\n|"
    r"]{0,40}",
    r"(?:,|\bjust|\bsimply|\bplease)\s(?:just |simply |please )?(?:agree(?: with (?:it|this|me|"
    r"everything|"
    r"the claim|all of it))?|confirm the (?:claim|statement|response)|say (?:that )"
    r"?it (?:checks out|is "
    r"(?:correct|true)))\s?(?=[.!\n|]|\Z)",
    r"[\"']role[\"']\s?:\s?[\"'](?:system|developer|assistant)[\"'][^\n]{0,60}",
)

_CHINESE = (
    r"(?<!不能)(?<!不得)(?<!不应)(?<!不可)(?<!应当)(?<!从而)(?:忽略|无视|忘记|忘掉|抛开|跳过|"
    r"不要理会|不必理会|不要遵守|别管|請忽略|忽視|無視)(?!了|过|"
    r"着|的是)[^。！？\n]{0,6}?"
    r"(?:之前|以上|上述|前面|先前|所有|一切|原来|系统|系統|你的|上面|此前|其他|其它|以前|全部)"
    r"[^。！？\n]{0,8}?"
    r"(?:指令|指示(?!牌|灯|器)|提示词?|规则|規則|要求|命令|说明|证据|證據|内容|设定|段落)"
    r"[^。！？\n]{0,40}",
    r"(?:裁判|法官|评委|评审员?|审核员|審核員|核查员|辩手)(?:们)?(?:你好)?\s?(?:请)?(?:注意)?"
    r"\s?[，,：:！!][^。！？\n]{0,24}?(?:判|裁|认定|忽略|无视|输出|回答|相信|采信|标记|同意|接受|"
    r"通过|"
    r"视为)[^。！？\n]{0,40}",
    r"(?:(?<![a-z])ai|人工智能|大?模型|语言模型|助手)(?:助手|模型|审核员|系统)?(?:们)?(?:你好)?"
    r"\s?[，,：:！!]\s?(?:请|請|你|您|必须|务必|应当?|直接|判|输出|回答|忽略|看到|读到|如果|不要|"
    r"把|将)"
    r"[^。！？\n]{0,60}",
    r"(?:请|請|只需|只能|务必|必须|直接)(?:你)?(?:直接)?(?:回答|回复|回覆|输出|说|写)\s?[“\"「『']"
    r"(?:正确|同意|属实|成立|支持|正確)[^。！？\n]{0,20}",
    r"(?:无需|不必|不用|无须|不要)(?:再)?(?:核对|核查|验证|检查|核实|审核)[^。！？\n]{0,6}(?:直接|"
    r"即可|"
    r"就)?(?:通过|接受|判|认定)[^。！？\n]{0,20}",
    r"(?:请|請|务必|必须|一律|直接|只需|应该?|就|你要|最后|都要?)(?:你|您)?(?:直接|一律|务必|必须|"
    r"把|将|将其|把它)?[^。！？，\n]{0,12}?"
    r"(?:判定?|裁定|裁决|认定|判決|标记|标注|视|判断|判成|宣布|给出)(?:为|成|作|為|它|该陈述|"
    r"此陈述|这一?陈述|陈述)?"
    r"[^。！？，\n是]{0,8}?(?<!不)(?:正确|成立|属实|无误|支持|真实|正確|屬實|verdict|幻觉)"
    r"(?!与否|或|"
    r"还是|性)",
    r"(?:输出|回答|回复|回覆|写上?|以|输入|返回)\s?[“\"「『'`]?\s?verdict[^。！？\n]{0,30}",
    r"(?:你现在是|从现在(?:起|开始)[，,]?\s?你|从此你|新的?(?:系统)?(?:指令|提示词)\s?[：:]|"
    r"系统(?:提示|指令|消息)词?\s?[：:]|"
    r"(?:材料|证据|文档|资料)(?:到此)?结束[。：:，])[^。！？\n]{0,60}",
    r"(?:致|给|告)(?:本案)?(?:裁判|审核员|(?<![a-z])ai|人工智能|大?模型|语言模型|读到本文的)"
    r"[^。！？\n]{0,12}[：:，][^。！？\n]{0,40}",
)

# The same commands in further languages, without accents (the skeleton has none).
_FURTHER = (
    r"\b(?:ignora|ignore|ignoren|olvida|olvide|descarta|descarte|omite|haz caso omiso de)"
    r"\b(?: [a-z]+)"
    r"{0,4} (?:instrucciones|indicaciones|reglas|ordenes)\b[^.!?\n|]{0,60}",
    r"(?:\A|[.!?:|\n\"“(¡,]\s*)(?:querid[oa] |senor )?(?:juez|jueza|asistente|modelo|ia)\s?[,:] ?"
    r"(?:[a-z]+ ){0,3}?(?:declar|dictamin|respond|fall|marc|consider|acept|conclu|decid|ignor|"
    r"debe)[a-z]*"
    r"\b[^.!?\n|]{0,60}",
    r"\b(?:responde|responda|contesta|conteste|declara|declare|dictamina|marca|marque|escribe|"
    r"escriba|"
    r"repond[sz]?|repondez|ecris|ecrivez|concluez|conclus|declarez|antworte|antworten sie|"
    r"schreibe?|"
    r"schreiben sie|gib|geben sie|rispondi|responda|scrivi|escreva)\b[^.!?\n|]{0,50}\bverdict\b"
    r"[^.!?\n|]{0,20}",
    r"\b(?:ignoriere?|ignorieren sie|vergiss|vergessen sie|missachte|missachten sie|beachte|"
    r"befolge)\b"
    r"(?: [a-z]+){0,4} (?:anweisung(?:en)?|regeln|befehle|vorgaben|instruktionen|anordnungen)\b"
    r"[^.!?\n|]{0,60}",
    r"(?:\A|[.!?:|\n\"“(,]\s*)(?:liebe[rs]? |sehr geehrte[rs]? )?(?:richter(?:in)?|assistent|"
    r"modell|ki|"
    r"gutachter)\s?[,:!] ?(?:[a-z]+ ){0,3}?(?:entscheide|urteile|werte|erklare|bewerte|antworte|"
    r"stufe|"
    r"ignoriere|sie mussen|du musst|stimme|stimmen sie)[a-z]*\b[^.!?\n|]{0,60}",
    r"(?<!il )(?<!elle )(?<!on )(?<!qui )\b(?:ignorez|ignore|oubliez|oublie|ne tiens pas compte|"
    r"ne tenez pas compte|"
    r"faites abstraction)"
    r"(?: de)? (?:toutes?|tous|les|des|ces|vos|tes|tout)\b(?: [a-z']+){0,3} (?:instructions|"
    r"consignes|regles|ordres|"
    r"directives)\b[^.!?\n|]{0,60}",
    r"(?:\A|[.!?:|\n\"“(,]\s*)(?:cher |chere |monsieur le |madame la )?(?:juge|assistant|modele|ia)"
    r"\s?[,:!] ?(?:[a-z]+ ){0,3}?(?:declare|conclu|jug|repond|considere|valid|accept|vous devez|"
    r"tu dois|"
    r"tranche|ignore)[a-z]*\b[^.!?\n|]{0,60}",
    r"\b(?:ignora|ignori|dimentica|ignore|esqueca|desconsidere)\b(?: [a-z]+){0,4} (?:istruzioni|"
    r"regole|"
    r"instrucoes|regras|ordens)\b[^.!?\n|]{0,60}",
    r"(?:前の|以前の|これまでの|上記の|すべての|全ての)[^。\n]{0,8}(?:指示|命令|ルール|プロンプト)"
    r"[^。\n]{0,4}(?:無視|忘れ|破棄)"
    r"(?:して|し、|せよ|ろ|なさい|てください)[^。\n]{0,40}",
    r"(?:이전|위의|앞의|모든)[^.\n]{0,8}(?:지시|명령|규칙|지침|프롬프트)[^.\n]{0,4}(?:무시|잊)"
    r"(?:하고|하세요|하십시오|해|어)[^.\n]{0,40}",
    r"(?:игнорируй(?:те)?|забудь(?:те)?|не обращай(?:те)? внимания на)[^.!?\n]{0,30}(?:инструкци|"
    r"указани|"
    r"правил|команд)[^.!?\n]{0,60}",
    r"(?:تجاهل|تجاهلوا|انس|لا تتبع)(?: [\u0600-\u06ff]+){0,2} (?:التعليمات|الأوامر|القواعد|"
    r"الإرشادات|تعليمات)"
    r"[^.!؟\n]{0,60}",
    r"(?:पिछले|पहले के|सभी|ऊपर के)[^।\n]{0,20}(?:निर्देशों|निर्देश|आदेशों|नियमों)"
    r"[^।\n]{0,8}(?:अनदेखा|नज़रअंदाज़|भूल|उपेक्षा)"
    r"[^।\n]{0,8}(?:करें|करो|कर|जाओ|जाएं)[^।\n]{0,40}",
)

# The markup of a chat, or a fence like ours: no document needs either to speak to its reader.
_MARKUP = (
    r"<\s?\|[^|<>\n]{1,40}\|\s?>[^\n]{0,60}",
    r"\[\s?/?\s?inst\s?\][^\n]{0,60}|<<\s?/?sys\s?>>[^\n]{0,60}|<(?:start|end)_of_turn>[^\n]{0,60}",
    r"(?:\A|\n)\s?\[(?:system|assistant|developer)\][^\n]{0,60}",
    r"</?(?:system|assistant|developer)(?:[ _-](?:prompt|message|note|instructions?))"
    r"?\s?>[^\n]{0,60}",
    r"[⟦〚⟬⦗⁅\[]{1,2}\s?[/\\]?\s?[a-z ]{3,20} [0-9a-f]{12,64}\s?[⟧〛⟭⦘⁆\]]{1,2}[^\n]{0,60}",
)

PATTERNS = (*_ENGLISH, *_PHRASES, *_CHINESE, *_FURTHER, *_MARKUP)


_LONGEST = 160


def _plain(pattern: str) -> str:
    """The pattern with letters of other scripts as `skeleton` writes them."""
    return "".join(skeleton(c) if not c.isascii() else c for c in pattern)


_PATTERNS = tuple(re.compile(_plain(pattern)) for pattern in PATTERNS)
_SPACED = re.compile(r"(?<!\w)\w(?:[ .\-_*]\w){2,}(?!\w)")
_STRUCK = re.compile("(?<=[a-z])[\u0300-\u036f]+")
_SPACES = re.compile(r"[ \t\u00a0_]+")  # names of files write blanks as _
_LINES = re.compile(r" ?\n[ \n]*")
_REPEATED = re.compile(r"([^\w\s])\1{3,}")
_DIGIT_LETTERS = str.maketrans("013457@$", "oieast" + "as")
_LEET = re.compile(r"[a-z013457@$]{4,}")
# Patterns look at so much at a time, so that no text can make them slow.
_SIGHT, _STEP = 900, 500


def steering(text: str) -> str | None:
    """The words with which the text speaks to a judge or a model, None where it does not."""
    read = visible(spelled_out(text))
    as_it_looks = _tidy(read)
    undisguised = _tidy(_undisguised(skeleton(read)))
    for words, reading in ((as_it_looks, skeleton(as_it_looks)), (undisguised, undisguised)):
        if found := _first(reading):
            return _words(words[found[0] : found[1]])
    return None


def _first(reading: str) -> tuple[int, int] | None:
    """Where the first words that any pattern knows begin and end."""
    for start in range(0, max(1, len(reading)), _STEP):
        sights = (pattern.search(reading, start, start + _SIGHT) for pattern in _PATTERNS)
        if found := [match.span() for match in sights if match]:
            return min(found)
    return None


def _tidy(text: str) -> str:
    """Blanks, empty lines and rows of one mark cut down to what the patterns need."""
    return _REPEATED.sub(r"\1\1\1", _LINES.sub("\n", _SPACES.sub(" ", text)))


def _undisguised(plain: str) -> str:
    """Letter-spaced words joined, digits that stand for letters read as such."""
    bare = _STRUCK.sub("", plain)
    joined = _SPACED.sub(lambda match: re.sub(r"[ .\-_*]", "", match.group()), bare)
    return _LEET.sub(_as_letters, joined)


def _as_letters(match: re.Match[str]) -> str:
    word = match.group()
    return word if word.isdigit() else word.translate(_DIGIT_LETTERS)


def _words(found: str) -> str:
    words = " ".join(found.split()).strip(" .!?:;|,\"'“”«»(*#>=-–—。，：！")
    return words if len(words) <= _LONGEST else words[: _LONGEST - 1] + "…"


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
    text = _changed(text, _CHAT_MARKUP, lambda found: found.translate(_PLAIN_MARKUP))
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
