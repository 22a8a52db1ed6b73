"""The words around a date, number or value that say how it is compared, English and Chinese."""

from __future__ import annotations

import re

_I = re.IGNORECASE
# Words between a cue and what it is about, which say nothing themselves.
_WORDS = """
a an and/or the any all both either of in on at for from with within during by to as is are was were be
been being that which who whose those these ones one this it its their they paper papers article
articles study studies work works publication publications document documents abstract abstracts record
records item items trial trials report reports research literature result results entry entries text
texts published dated written released printed appearing appeared appear issued conducted done made come
came out about regarding concerning involving involve involves covering cover covers mentioning mention
mentions mentioned deal deals dealing discuss discusses discussing address addresses addressing focus
focuses focused focusing relate relates related relating pertaining contain contains containing include
includes including included have has having had carry carries carrying bear bears bearing assigned
associated classified filed listed categorized categorised categories category concerned concern use
uses using mesh medical subject subjects heading headings descriptor descriptors term terms tag tags
tagged label labels labeled labelled labelling index indexed indexing keyword keywords topic topics
under year years value values field only just exactly also but anything everything something stuff
material evidence want wants need needs show give me us consider considers see look looking searching
search equal equals select selected such each every other among amongst present occur occurs patients
shows showing comes we i you would like mesh_terms if when where does do should must not_only named
called entitled respectively first then
"""
_LIGHT_WORDS = _WORDS.split()
LIGHT = rf"(?:(?:{'|'.join(sorted(map(re.escape, _LIGHT_WORDS), key=len, reverse=True))})(?:['’]s)?\b|[:=\"“”'‘’(]|\s)"
ZH_LIGHT = (
    r"(?:在|于|是|为|的|有|被|带有|带|含有|包含|包括|含|涉及|关于|有关|针对|研究|讨论|属于|主题词|主题|关键词|标签|标注|标记|"
    r"标引|索引|词|中|里|了|任何|那些|这些|论文|文章|文献|发表|出版|刊登|年份|时间|和|与|及|以|到|[\s\"“”‘’'「」『』《》:：(（])"
)
_NEGATION = (
    r"(?:\b(?:not(?!\s+(?:only|just|merely|simply)\b)|no|never|without|exclud(?:e|es|ing)|"
    r"with\s+the\s+exception\s+of|save\s+for|except(?:ing)?(?:\s+for)?|other\s+than|apart\s+from|"
    r"aside\s+from|besides|lack(?:s|ing)?|omit(?:s|ting)?|leav(?:e|ing)\s+out|ignor(?:e|ing)|skip(?:ping)?|minus|barring|"
    r"rather\s+than|instead\s+of|neither|nor|free\s+of|rul(?:e|ing)\s+out|outside(?:\s+of)?|"
    r"avoid(?:s|ing)?|unrelated\s+to|nothing|none|cannot|can['’]?t|won['’]?t|different\s+(?:from|than)|"
    r"(?:do|does|did|is|are|was|were|has|have|should|must)n['’]?t|"
    r"(?:any|every|all|no)\w*(?:\s+\w+)?\s+but)\b|\bnon-|!=\s*|<>\s*|≠\s*)"
)
_ZH_NEGATION = (
    r"(?:不(?!仅|但|只|同|过|少|断|管)|没有?|未(?!来)|无(?!论|线|锡)|(?<![南北西东中是并除莫])非(?!常|洲)|除去?了?(?!非)|排除|剔除|去掉|而非|(?<![性类级区特分个识差鉴])别)"
    r"(?:要|是|在|含|带)?"
)
# Possessive (*+): a run of such words is never taken apart again, so that no text makes the search slow.
NEGATED = re.compile(rf"(?:{_NEGATION}{LIGHT}*+|{_ZH_NEGATION}{ZH_LIGHT}*+)$", _I)
LEADING = re.compile(rf"(?<![a-z])(?:{LIGHT}|{ZH_LIGHT})*+$", _I)
ALL_LIGHT = re.compile(rf"(?:{LIGHT}|{ZH_LIGHT})*+", _I)
REACH = 160
"""How many characters before a date or value are looked at."""
TOPIC = re.compile(
    r"\b(?:about|on|regarding|concerning|involv\w+|cover\w*|mention\w*|deal\w*\s+with|discuss\w*|address\w*|"
    r"focus\w*\s+on|relat\w+\s+to|pertaining\s+to|topics?|subjects?)\s+(?:the\s+)?$|(?:关于|有关|针对|涉及|研究|讨论)\s*$",
    _I,
)
EXCLUDED_AFTER = re.compile(
    r"\s*(?:[\"”’'」』]\s*)?(?:(?:papers?|articles?|studies)\s+)?(?:(?:are|is|be|being|should\s+be|to\s+be|must\s+be)\s+)?"
    r"(?:excluded|left\s+out|omitted|ruled\s+out|removed)\b"
    r"|\s*[\"”’']?\s*(?:(?:is|are|was|were)(?:\s+not|n['’]t)\s+(?:a|an|the|among|one\s+of|in|listed|present|tagged|included|"
    r"mentioned|used|there)\b|(?:does|do|should|must|may)(?:\s+not|n['’]t)\s+(?:appear|occur|be|show)\b|(?:is|are)\s+(?:absent|missing)\b)"
    r"|\s*[\"”’'」』]?\s*(?:的?(?:文章|论文|研究|文献)?(?:除外|不要|不算))"
    r"|\s*[\"”’'」』]?\s*(?:以外|之外|无关|(?<=[A-Za-z年\"”])外(?![\u4e00-\u9fff]))",
    _I,
)
OPENING, CLOSING = "\"“'‘「『《", "\"”'’」』》"
STATE_OF = re.compile(r"截至|截止|ending\b", _I)
POSSESSION = re.compile(r"['’]s?\s+\w|的(?=[\u3400-\u9fff])")
CONNECTOR = re.compile(
    r"\b(?P<not>but\s+not|and\s+not|or\s+not)\b|\b(?P<or>or|and/or|nor)\b|(?P<zh_or>或者?是?|抑或)"
    r"|\b(?P<but>but|yet|though|whereas)\b|(?P<zh_but>但是?|不过|而(?!且))"
    r"|\b(?P<and>and|plus|as\s+well\s+as|along\s+with|together\s+with|&)\b|&|(?P<zh_and>以及|并且|而且|同时|和|与|及|且|并|也)"
    r"|(?P<comma>[,;、/])",
    _I,
)

_FILLER = (
    r"(?:\s*(?:the|year|years|end\s+of|start\s+of|turn\s+of|beginning\s+of|early|date|in|of|(?:about\s+)?around)\b)*"
    r"\s*"
)
_NOT = (
    r"\b(?:no|not|nothing|none|n['’]t|never|isn't|aren't|wasn't|weren't)\s+"
    r"(?:(?:published|dated|written|released|any|appearing|appear|printed|from)\s+)*"
)
_GT = (
    r"after|later\s+than|(?:more\s+)?recent\s+than|newer\s+than|younger\s+than|following|past|subsequent\s+to|beyond|"
    r"postdat(?:e|es|ing)|greater\s+than|larger\s+than|higher\s+than|bigger\s+than|longer\s+than|more\s+than|above|"
    r"over|exceed(?:s|ing)?"
)
_LT = (
    r"before|prior\s+to|earlier\s+than|older\s+than|preceding|predat(?:e|es|ing)|ahead\s+of|less\s+than|fewer\s+than|"
    r"smaller\s+than|lower\s+than|shorter\s+than|below|under"
)
_GTE = (
    r"since|starting\s+(?:in|from|with|at)|starting|beginning\s+(?:in|from|with|at)|as\s+from|at\s+least|"
    r"a\s+minimum\s+of|minimum|not\s+less\s+than|from\s+at\s+least"
)
_LTE = (
    r"up\s+to(?:\s+and\s+including)?|up\s+until|up\s+till|until|till|through|thru|by(?:\s+the\s+end\s+of)?|at\s+most|"
    r"a\s+maximum\s+of|maximum|ending(?:\s+(?:in|with))?|not\s+more\s+than"
)
_ZH_FILL = r"(?:发表|出版|刊登)?(?:于|在|是|为|的|年份|时间|\s)*"
_INCLUDED = r"(?:\s+or\s+(?:in|on|during|from|equal(?:s)?(?:\s+to)?|as\s+of))"
_IN_OR = r"(?:in|on|during|from|at|equal\s+to)\s+or\s+"
LEFT: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(rf"(?:{pattern})$", _I), operator)
    for pattern, operator in (
        (rf"\bup\s+to\s*,?\s*but\s+(?:not\s+including|excluding)\s*,?{_FILLER}", "$lt"),
        (rf"\b(?:{_IN_OR}(?:{_LT})|(?:{_LT}){_INCLUDED}){_FILLER}", "$lte"),
        (rf"\b(?:{_IN_OR}(?:{_GT})|(?:{_GT}){_INCLUDED}){_FILLER}", "$gte"),
        (rf"(?:{_NOT}(?:{_GT}){_FILLER}|\b(?:{_LTE}){_FILLER}|(?:<=|≤|=<)\s*)", "$lte"),
        (rf"(?:{_NOT}(?:{_LT}){_FILLER}|\b(?:{_GTE}){_FILLER}|(?:>=|≥|=>)\s*)", "$gte"),
        (rf"(?:\b(?:strictly\s+)?(?:{_GT}){_FILLER}|\bpost[-\s]?|>\s*)", "$gt"),
        (rf"(?:\b(?:strictly\s+)?(?:{_LT}){_FILLER}|\bpre[-\s]?|<\s*)", "$lt"),
        (
            rf"(?:不(?:晚于|迟于|超过|大于|高于|多于)|小于(?:或)?等于|截至|截止到?|直到|至多|最多|最晚){_ZH_FILL}",
            "$lte",
        ),
        (
            rf"(?:不(?:早于|先于|小于|低于|少于)|大于(?:或)?等于|至少|最少|最早|自从|自){_ZH_FILL}",
            "$gte",
        ),
        (rf"(?:晚于|迟于|大于|超过|高于|多于|新于){_ZH_FILL}", "$gt"),
        (rf"(?:早于|先于|小于|低于|少于|不到|不足|不满|未满){_ZH_FILL}", "$lt"),
    )
)
_END = (
    r"(?=\s*(?:$|[,.;:?!)]|(?:about|tagged|with|that|which|and|but|or|concerning|regarding|dealing|only|mention\w*|"
    r"involv\w*|cover\w*|labell?ed|indexed)\b))"
)
_COMPARATIVE = (
    r"(?:later|newer|after(?:wards?)?|onwards?|beyond|more\s+recent(?:ly)?|above|up|since|thereafter|subsequent(?:ly)?|"
    r"following\s+years|younger|higher|greater|more|over)"
)
RIGHT: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(rf"\s*(?:{pattern})", _I), operator)
    for pattern, operator in (
        (
            rf",?\s*at\s+the\s+earliest\b|\(含[^)]*\)(?:之|以)?后"
            rf"|,?\s*(?:and|or)\s+(?:any(?:thing)?\s+)?{_COMPARATIVE}\b|onwards?\b|forwards?\b|upwards?\b|\+(?!\w)|and\s+on\b{_END}"
            rf"|(?:-|–|—|to|until|till|through|up\s+to)\s*(?:the\s+)?(?:present|now|today|date)\b"
            r"|(?:及|或)(?:其|者)?(?:之|以)?后|以来|起(?!码)|开始|至今|到现在|到今天|往后|及更晚|或更晚|以上",
            "$gte",
        ),
        (
            r",?\s*at\s+the\s+latest\b|\(含[^)]*\)(?:之|以)?前"
            r"|,?\s*(?:and|or)\s+(?:any(?:thing)?\s+)?(?:earlier|before|older|prior|previous|lower|less|fewer|below|under)\b"
            r"|(?:及|或)(?:其|者)?(?:之|以)?前|(?:为)?止(?!痛|血)|及更早|或更早|以下|以内",
            "$lte",
        ),
        (r"之后|以后|过后|后(?!续|果)", "$gt"),
        (r"之前|以前|前(?!列|沿|瞻|臂)", "$lt"),
    )
)
ONWARD = re.compile(rf"\s+on\b{_END}", _I)
FROM = re.compile(r"(?:\bfrom\s+(?:the\s+)?(?:years?\s+)?|从|自)$", _I)
BETWEEN = re.compile(r"(?:\b(?:between|in\s+between)\s+(?:the\s+)?(?:years?\s+)?|介于|在)$", _I)
RANGE_TO = re.compile(
    r"\s*(?:-|–|—|~|～|\.\.\.?|\bto\b|\bthrough(?:\s+to)?\b|\bthru\b|\b(?:up\s+)?until\b|\b(?:up\s+)?till\b|"
    r"\b(?:right\s+)?up\s+to(?:\s+and\s+including)?\b|到|至|—)\s*(?:the\s+)?(?:years?\s+)?$",
    _I,
)
RANGE_AND = re.compile(r"\s*(?:\band\b|&|和|与|、)\s*(?:the\s+)?$", _I)
NOT_YEARS = re.compile(
    r"\s*(?:%|(?:[a-z]+\s+)?(?:patients|participants|subjects|people|persons|women|men|children|cases|samples|adults|infants|"
    r"births|hospitals|users|words|dollars|euros|mg|ml|kg|km|cm|mm|hz|kcal|calories|iu|times|days|hours|minutes)\b"
    r"|[名例位个人次条篇页元岁]|毫克)",
    _I,
)
