"""Finds the words with which a text speaks to the judge or a model instead of to its reader.

A hint for a person's eyes, never a filter: whatever is found stays in the evidence, fenced, and the
run goes on. The patterns look for commands (a command's place in the sentence, an address), because
prose about judges and instructions is ordinary.
"""

from __future__ import annotations

import re

from core.models.disguise import skeleton, spelled_out, visible

_LONGEST = 160

# Where a command begins: at the head of a sentence, cell or line, or after a word that opens one.
_HEAD = (
    r"(?:(?:\A|[.!?:;|\n\"'“”«(\[>*#=/\-–—,。，：！]|\b(?:please|kindly|now|then|instead|therefore|"
    r"simply|just|always|and|must|you should|you will|you shall|have to|want you to|need you to))"
    r"\s*)"
)
_READER = (
    r"(?:judges?|debaters?|adjudicator|reviewers?|ai|a\.i\.|llms?|language models?|large language "
    r"models?|assistants?|chatbots?|chatgpt|gpt|claude|gemini|fact.?checkers?|graders?|evaluators?|"
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
    r"return|find|decide|conclude|confirm|agree|say|state|answer|affirm|count|assume)"
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
    rf"\b(?:you|judges?|reviewers?|ai|model|assistant|debaters?) (?:must|should|will|shall|"
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
    r"orders?)\s?[:=]|system (?:override|prompt)\s?[:=]|(?:developer|debug|admin|override|god)"
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

_CHINESE = (
    r"(?<!不能)(?<!不得)(?<!不应)(?<!不可)(?<!应当)(?<!从而)(?:忽略|无视|忘记|忘掉|抛开|跳过|不要理会|不必理会|不要遵守|别管|請忽略|忽視|無視)(?!了|过|"
    r"着|的是)[^。！？\n]{0,6}?"
    r"(?:之前|以上|上述|前面|先前|所有|一切|原来|系统|系統|你的|上面|此前|其他|其它|以前|全部)"
    r"[^。！？\n]{0,8}?"
    r"(?:指令|指示(?!牌|灯|器)|提示词?|规则|規則|要求|命令|说明|证据|證據|内容|设定|段落)"
    r"[^。！？\n]{0,40}",
    r"(?:裁判|法官|评审|审核员|審核員|(?<![a-z])ai|人工智能|模型|大模型|语言模型|助手|核查员|辩手)"
    r"(?:们)?(?:你好)?\s?[，,：:！!]\s?"
    r"(?:请|請|你|您|必须|务必|应当?|直接|判|输出|回答|忽略|本|不要|把|将)[^。！？\n]{0,60}",
    r"(?:请|請|务必|必须|一律|直接|只需|应该?|就|你要|最后|都要?)(?:你|您)?(?:直接|一律|务必|必须|"
    r"把|将|将其|把它)?[^。！？，\n]{0,12}?"
    r"(?:判定?|裁定|裁决|认定|判決|标记|标注|视|判断|判成|宣布|给出)(?:为|成|作|為|它|该陈述|"
    r"此陈述|这一?陈述|陈述)?"
    r"[^。！？，\n是]{0,8}?(?<!不)(?:正确|成立|属实|无误|支持|真实|正確|屬實|verdict|幻觉)(?!与否|或|"
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


def _plain(pattern: str) -> str:
    """The pattern with letters of other scripts as `skeleton` writes them."""
    return "".join(skeleton(c) if not c.isascii() else c for c in pattern)


_PATTERNS = tuple(
    re.compile(_plain(pattern)) for pattern in (*_ENGLISH, *_CHINESE, *_FURTHER, *_MARKUP)
)
_SPACED = re.compile(r"(?<!\w)\w(?:[ .\-_*]\w){2,}(?!\w)")
_STRUCK = re.compile("(?<=[a-z])[\u0300-\u036f]+")
_SPACES = re.compile(r"[ \t\u00a0]+")
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
