"""The patterns by which `decline` reads a clause of an answer, English and Chinese."""

from __future__ import annotations

import re
from typing import NamedTuple


class Rules(NamedTuple):
    """The patterns of a language: each kind of clause has one. Python compiles them when they are first used."""

    source: str  # names the sources
    clause: str  # parts clauses
    absent: str  # says that the sources lack something
    unsaid: str  # says so in an answer that cites nothing, without a word on the sources
    absent_later: str  # says so where the sources were named before: "They do not name the actor"
    aside: str  # is about the sources, or a courtesy
    concludes: str  # draws an answer from what is there


# The sources as an answer names them: "the provided documents", "these passages", "your report"
_SOURCE = (
    r"\b(?:(?:the|this|these|those|your|any|all|no|neither|each|both|several|some|two|three|four|five|as|from|in|by|provided"
    r"|given|available)\b(?: [\w-]+){0,2}"
    r" (?:documents?|documentation|passages?|contexts?|sources?|texts?|excerpts?|filings?|exhibits?|evidence"
    r"|transcripts?|chunks|extracts?|datasets?|search results?|articles?|snippets?|paragraphs?|results|knowledge base"
    r"|story|report|notes|information|content|materials?)"
    # "the attached file", "the files provided"
    r"|\bthe (?:(?:provided|given|retrieved|supplied|available|above|attached)(?: \w+)? \w+"
    r"|[\w-]+(?: [\w-]+)? (?:provided|given|retrieved|supplied|available|above)\b)"
    r"|what (?:i|we) (?:have been|was|were|am|are) (?:given|shown|provided)|documents|passages|context"
    r"|(?:document|passage|source|text|excerpt) \[?\d\]?)\b"
    r"(?! (?:of\b(?! wh)|manager|code|exchange))"  # not "the source code", "the content of lead"
)
_STATE = (
    r"(?:mention|specif|stat|provid|address|discuss|disclos|describ|expla|identif|nam|indicat|detail|list|cover|reveal"
    r"|determin|report|record|defin|explicit)"
)
_TELL = (
    rf"(?:{_STATE}|contain|includ|refer|deal|present|offer|answer|giv|clarif|f(?:i|ou)nd\b|locat|sa[yi]|t[eo]ll?[ds]?\b|show"
    r"|hold|speak|elaborat|know|confirm|conclu|verif|calculat|resolv|touch|allow|appear|seem|see\b|directly|make|go\b|have"
    r"|establish|deriv|infer|judge|assess|ascertain|comment|comput|extract|break|note|quantif|document|outlin|illustrat"
    r"|suppl|furnish|yield|featur|pertain|relat|relevan|useful|help|concern|treat|examin|explor|account|shed|hint"
    r"|convey|express|spell|set out|come up|permit|enable|clear|evident|apparent|possible|work out|make out)"
)
_INFO = (
    r"(?:information|mention|reference|details?|data|indication|answer|discussion|definition|guidance|figures?|description"
    r"|explanation|statement|entr(?:y|ies)|records?|evidence or)\b"
)
_DO_NOT = r"(?:(?:do|does|did|could)(?: not|n't)|can't|cannot|never)"
_LACK = (
    r"(?:\w+ly )?(?:lack|fails?\b|omit|stops? short|(?:is|are) (?:silent|insufficient|not (?:sufficient|enough))"
    r"|leaves\b|leave (?:open|un\w+)"
    r"|(?:say|ha|have|contain|give|make|offer|include|provide)s? (?:no\b|nothing|insufficient|not enough))"
)


def _up_to_words(count: int, comma: str = ",?") -> str:
    """Return a pattern for at most ``count`` words, each after what ``comma`` allows, none of which is "that"."""
    return rf"(?:{comma} (?!that\b)[\w'-]+){{0,{count}}}?,?"


# "I was also unable to find"
_I_CANNOT = (
    r"\b(?:i|we|one)(?:'m| am| was| are)?(?: \w+ly| also| still| therefore)? "
    rf"(?:{_DO_NOT}|(?:unable|(?:not|wasn't) able) to){_up_to_words(2)} {_TELL}"
)
# What an answer without a word on the sources begins with: "Sorry, but ..."
_LEAD = r"^(?:(?:(?:i'm|i am) (?:afraid|sorry)(?: that| but)?|sorry|unfortunately|honestly|but)\b,? ?){0,3}"
_ABOUT = r"(?: (?:about|on|regarding|concerning)\b.*|$)"
# "no relevant information", "no mention of leave", but not "no mention of the merger was allowed"
_NONE = (
    r"no(?: (?:relevant|such|specific|further))? (?:information|mention|details?|data|answer|guidance|records?)"
    r"(?: (?:about|on|for|of|to|regarding|concerning)\b(?:(?! (?:in|is|are|was|were|may|can|could|has|have|had)\b).)*)?"
    r"(?:(?: (?:is|was|were|are|could be))? (?:found|given|available|provided|there))?$"
)
# The sources and what may stand before the verb: "The passages [1][2], however, describe the film but"
_SOURCE_THEN = (
    rf"{_SOURCE}(?: \[[\d\]\[, -]*)?(?:,? (?:however|unfortunately))?{_up_to_words(4, '')}"
    r"(?:(?:(?! that\b)[^.]){0,60}? (?:and|but))?"
)
ENGLISH = Rules(
    source=_SOURCE,
    clause=(
        r"[;:]\s"
        r"|(?<! not)(?<! not,),?\s(?=(?:but|yet|although|though|whereas|however|so|since|because"
        r"|and (?:it|they|\w+ly|none|i|the))\b)"
        r"|,\s(?=(?:i|we|it|they|there|the|this|these|which|while|none|nothing|no)\b)"
    ),
    absent=(
        # the documents do not say; the report is silent
        rf"{_SOURCE_THEN} (?:{_DO_NOT}{_up_to_words(3)} {_TELL}|{_LACK})"
        # neither passage names the author
        rf"|^(?:no|neither)(?: \w+)? (?:document|passage|text|source|excerpt|article){_up_to_words(3)} {_TELL}"
        # is not mentioned in the documents; no details on it are in your report; nothing in the passages
        rf"|\b(?:not|cannot|\w+n't|nothing|no|none|neither|without|insufficient)\b{_up_to_words(6)}"
        rf" (?:{_TELL}|{_INFO}|available|part|enough|clear)[^.]*? (?:in|by|from|within|using|with) {_SOURCE}"
        rf"|(?:\b(?:nothing|not)|n't)(?: \w+){{0,3}} (?:in|among) {_SOURCE}"
        rf"|\b(?:none|neither) of {_SOURCE}{_up_to_words(4)} {_TELL}"
        # I cannot answer the question; the question remains unanswered
        rf"|{_I_CANNOT}[^.]*?(?:{_SOURCE}|question|requested|{_INFO})"
        r"|\bquestion\b[^.]{0,60}? (?:(?:cannot|can't|is not|isn't) (?:be )?(?:answered|covered)(?! with one)|remains?"
        r"|unanswered|left)"
        rf"|\b(?:outside|beyond)(?: of)? (?:the )?(?:scope|coverage|range)?(?: of)? ?(?:what )?{_SOURCE}"
        rf"|\banswer\b[^.]{{0,60}}? (?:is|was|are)(?: not|n't)(?: \w+ly)? (?:{_STATE}|found|given|available|contain"
        r"|includ|there|present)"
        # nothing in here; found no figure
        rf"|\bnothing(?: \w+)? in here\b|{_SOURCE} and (?:find|found|see|saw) (?:no|nothing)\b"
        # insufficient information; not "Not data that is old must be kept"
        rf"|^(?:unable to|insufficient|not) (?:{_TELL}|{_INFO})(?!\w* \w+ (?:is|are|was|were|must|may|can)\b)"
    ),
    unsaid=(
        # I don't know; no idea; I'm not sure
        rf"{_LEAD}(?:(?:i|we) )?(?:really )?(?:do not|don't) know\b(?! (?:of|him|her|them|you)\b)"
        rf"|{_LEAD}no (?:idea|clue)$"
        r"|^(?:i'm|i am|we're|we are) not (?:sure|certain)(?:$| (?:about|how|what|when|where|wh\w+|if)\b)"
        # I found no information; there is nothing about parking; I don't have anything on file
        rf"|{_LEAD}(?:(?:i|we) (?:have|found|see)|there(?:'s| is| are| was)) (?:{_NONE}|nothing{_ABOUT})|{_LEAD}{_NONE}"
        rf"|{_LEAD}(?:i|we) (?:do not|don't) have (?:any(?:thing)?|{_INFO})(?: {_INFO}| on file){{0,2}}{_ABOUT}"
        # I was not able to find it; not something I can see
        rf"|{_LEAD}i(?:'m| am| was)? (?:{_DO_NOT}|(?:unable|not able) to) (?:find|locate|answer|tell)\b"
        rf"|{_LEAD}i (?:cannot|can't) {_TELL}|\bnot something (?:that )?(?:i\b|{_SOURCE})"
        rf"|^(?:i|we) (?:am|are|was|were)(?: not|n't) (?:told|given)\b|\b(?:i|we) (?:\w+ )?lack\b.{{0,30}}?{_INFO}"
        r"|\b(?:search|retrieval)\b.{0,20}? (?:return|yield|turn)\w*(?: up)? (?:any|nothing|no\b)"
        r"|^it (?:is|was)(?: not|n't)(?: \w+ly)? (?:stat|mention|specif|said|given|explain)\w* (?:if|how|wh\w+)\b"
        # parking is not mentioned anywhere
        r"|^[^,]{1,60}? (?:is|are|was|were)(?:n't| not)(?: \w+ly)? (?:mentioned|stated|specified|addressed|described)"
        r"(?: anywhere| here| at all)?$"
        # our handbook says nothing; nothing on parking in the handbook
        r"|\b(?:my|our|handbook)\b.{0,40}?\b(?:(?:do|does)(?: not|n't) (?:say|mention|state|specify|tell|answer)"
        r"|says? nothing|is silent)\b"
        r"|^nothing (?:on|about) .{1,30} in (?:the|our|my) handbook"
        # details on it are missing from the documents; that information isn't available to me
        rf"|{_INFO}[^.]*? (?:is|are) missing (?:from|in) {_SOURCE}"
        r"|\b(?:that|this|such) (?:information|detail|data|answer) (?:is not|isn't) (?:available|there|given)"
        r"(?: to me)?$"
    ),
    absent_later=(
        # there is no mention; not "The documents show that there was no information exchange"
        rf"^(?!{_SOURCE} \w+ that\b).*?\bthere(?: is|'s| are| was)(?:n't|(?: \w+ly)? (?:no|not|nothing))\b"
        rf".{{0,25}}?{_INFO}|{_I_CANNOT}"
        # cannot be computed
        rf"|(?:{_DO_NOT}|cannot) be(?: \w+ly)? (?:{_STATE}|calculat|comput|answer|establish|verif|confirm|deriv|infer"
        r"|found|know|assess)"
        # the value appears in neither; there is no way to tell
        rf"|(?:{_STATE}|given|appear|found|includ|contain)\w*{_up_to_words(3)} (?:nowhere|neither|none)\b"
        rf"|\bno way (?:to|of) {_TELL}|\bnothing (?:on|about|regarding)\b"
        r"|\b(?:unclear|impossible|(?:not|\w+n't) possible|none of (?:them|these)"
        rf"|neither(?: of (?:them|these))? {_TELL})"
        rf"|(?:is|are|was|were|been|has|have)(?: not|n't| never)(?: \w+ly)?(?: been)?"
        rf" (?:{_STATE}|given(?: in\b|$)|among\b|part of|there$)"
        # but they do not name the actor; and not the year
        r"|^(?:(?:but|however|and|although|though|nor|so|yet|while|as)\b,? ?)*(?:it|they|these|this|both|which)?"
        rf"(?: \w+ly)? ?(?:{_DO_NOT}(?! see\b){_up_to_words(3)} {_TELL}|{_LACK}|(?:do |does )?not"
        r" (?:of|about|its|his|her|their|in|on|the|how|wh\w+)\b)"
    ),
    aside=(
        rf"{_SOURCE}|\b(?:which|that|this|these|both) (?:is|are|would be|were) (?:\w+ )?(?:needed|required|necessary)"
        # they only describe the plot
        rf"|\b(?:it|they|these|this|which|section)\b[^.]{{0,25}}? (?:{_STATE}|contain|includ|refer|deal|speak"
        r"|focus|concentrat|talk|compar|(?:is|are) about|limit|stop|end|note|uses|do\b|does\b)"
        # the first covers leave; the rest of a list: and the audit log [1]
        rf"|^(?:and )?the (?:first|second|third|other) (?:{_STATE}|contain|deal)\w*s\b"
        r"|^and the(?: \w+){1,2}(?: \[\d+\])?$|\?$"
        # sorry; please ask; based on that; a single word
        r"|^(?:(?:but|however|and|so|therefore|alternatively|whereas)\b,? ?)*(?:please|you|i|if|consider|would|to|at"
        r"|it (?:would|is|may|might)|for|further|hello|thank|sorry|unfortunately|regrettably|sadly|as an ai|my|after"
        r"|based on|according to|from|given|in the|(?:the|your) question|without|always|feel|contact|try|check|\w+$)\b"
    ),
    concludes=(
        r"\b(?:infer(?:red)?|suggest(?:s|ing)? that|impl(?:y|ies|ied)|likely|probably|presumably|the answer is"
        r"|so (?:he|she)\b|(?<!only )(?<!merely )(?:states?|says?|indicates?|shows?) that|clear that|conclude"
        r"|do(?:es)? (?:give|say|state|tell|show|specify))\b"
    ),
)

_SOURCE_ZH = (
    r"(?<!没有)(?<!没)(?:^|(?<=[，“的给供述上有个些篇段考关在从据份几所索该此本库且但而这了书册同告知然管]))"
    r"(?:年报|公告|招股书|附件|手册|表格|文档|文件|资料|段落|材料|上下文|原文|文中"
    r"|文本|文章|文献|文字|参考(?:内容)?|内容|信息|报告|(?:搜索|检索)(?:到的)?(?:结果|内容)|知识库|本文|上文|片段|摘录|节选)"
    r"|^(?:所|已)?(?:给[出定]?|提供|检索到)的?(?:相关)?(?:证据|来源)|(?:文档|资料|手册|知识库)(?=[里中内]?(?:没有?|未|[查找]不到))"
)
_SAYS_ZH = (
    r"(?:规定|要求|指出|显示|表明|强调|注明)(?![中里内的没未])"  # what follows is said: 手册规定不得泄露信息
)
_TOPIC_ZH = r"提到|提及|介绍|讨论|描述|涉及|涵盖|记载|讲"
_STATE_ZH = (
    rf"(?:{_TOPIC_ZH}|说明|包含|包括|给出|提供|指[出明]|出现|披露|透露|交代|列出|定义|回答|证据|信息|内容|答案|数据|细节"
    r"|规定|直接|明确|具体|关于|有关|相关|(?<!填)写(?![入作好完成法])|[查看]到|公布|列[示举]|标[注示出]|提$|只字|约定|交待|解释|任何|指导|显示|表明|反映|体现|阐述|[列载标点]明|能[^，]{0,4}回答|谈到|谈及|报告|告诉|看到|说|含|收录(?!在)"
    r"|这一?[项点条])"
)
_CANNOT_ZH = (
    r"(?:无法|不能|没法|没有?办法|无力|难以|无从|不足以).{0,16}?(?:回答|作答|得知|确定|判断|确认|核实[这该此其上]|[看推读找]出|推知|得|找到|给出|提供|说明|知|计算|换算|推[断知算])"
    r"|(?:回答|解答|答)不(?:了|上|出)来?(?![来的])"
)
# What an answer begins with that names no source: 目前, 我这边, 这个问题
_LEAD_ZH = (
    r"^(?:因此|所以|抱歉|对不起|不好意思|恐怕|目前|暂时|现在|我们?(?:这边|这里|手头)?|这(?:个|里|边|方面|个?问题)|也|都|还"
    r"|并|尚|暂|实在|确实|完全|(?:关于[^，]{1,12}?|[^，]{2,6}(?:这块|方面))(?=我)){0,4}"
)
_ABOUT_ZH = "(?:相关|有关|关于|方面|您|你|足够)"
_INFO_ZH = "(?:信息|内容|资料|说明|记载|答案|规定|数据|记录|条款|介绍|描述|文件|依据|政策|文档)"
_KNOW_ZH = "不(?:太|很|是很)?(?:知道|清楚|了解|确定|晓得|掌握)"
_ASKED_ZH = "(?:多少|几|什么|谁|哪|是否|怎么|如何|何)"
_DOES_ZH = (
    "(?:收[到集]|提[供交]|向|把|泄[露漏]|修改|公开|透露|保存|使用|发送|删除|更新)"  # 没有泄露客户的资料
)
_FIND_ZH = "(?:没有?|未能?)(?:(?:查询?|找|搜索?|检索|看)到|发现)|[查找搜看]不到"
CHINESE = Rules(
    source=_SOURCE_ZH,
    clause=r"[，,；;：:]",
    absent=(
        rf"(?:{_SOURCE_ZH})(?!{_SAYS_ZH})[^因由被]{{0,10}}?(?:没有?+|未|不(?![要需必得应])|无|缺乏|缺少).{{0,6}}?{_STATE_ZH}"
        rf"|(?:{_SOURCE_ZH}).{{0,6}}(?:不足|无关|不相关|缺失|太少|看不出|[查找搜]不到|{_CANNOT_ZH})"
        r"|问题.{0,6}(?:无关|没有|未|得不到)|超出.*范围|答案不在"
        rf"|不在.{{0,8}}?(?:{_SOURCE_ZH}).{{0,6}}(?:范围|之[内列]|[中里内]$)"
        rf"|没有(?:任何|哪|一)[一个段份篇]?(?:段落|文档|文件|资料|材料|片段|文章|来源).{{0,6}}{_STATE_ZH}"
        rf"|未在.{{0,6}}(?:{_SOURCE_ZH}).{{0,4}}{_STATE_ZH}"
        r"|(?:没有|[未没]能?)(?:检索到|查询?到|找到|发现|足够的?|相关的?).{0,24}?(?:答案|信息|内容|说明|记载)"
        rf"|^(?:因此|所以|暂时|目前|我(?!们)|还|也|尚)*(?:{_CANNOT_ZH})|我不知道|不在其中|我(?!们).{{0,12}}(?:没有?|未能?)(?:找|查)到"
    ),
    unsaid=(
        # 这个问题我无法回答; not 我们无法提供发票: that answers
        rf"{_LEAD_ZH}(?:{_CANNOT_ZH})(?:(?<!提供)(?<!给出)(?<!得)|.{{0,12}}{_INFO_ZH})"
        # 我不清楚, 不知道有多少
        rf"|{_LEAD_ZH}(?<=我)(?:也|还|都|实在|并|暂时|目前)?(?:{_KNOW_ZH}|帮不上|[查找]不到)(?!的)"
        rf"|^(?:这个?问题)?不(?:太|很)?(?:知道|清楚|了解)(?:$|[^的]{{0,40}}{_ASKED_ZH}[^的]{{0,40}}$)"
        # 没有找到, 没有相关资料, 没有足够的信息
        rf"|{_LEAD_ZH}(?:{_FIND_ZH})(?:$|(?<=查不到)[^，的时者后]{{1,12}}$|(?<=[询索]到)[^，时者后]{{1,14}}$|.{{0,40}}{_ABOUT_ZH}.{{0,40}}{_INFO_ZH}$)"
        rf"|{_LEAD_ZH}(?:没有?+|[查暂]?无)(?!{_DOES_ZH})(?:.{{0,40}}{_ABOUT_ZH}.{{0,40}}{_INFO_ZH}|(?:资料|答案))$"
        rf"|{_LEAD_ZH}(?:没有|无)足够的?.{{0,6}}(?:信息|资料|数据|依据)"
        # 没有提到停车; not 未写明用途的付款不予报销: there those that lack something are spoken of
        r"|^(?!.{0,40}的.{0,12}(?:[可由按须应填转得归]|不予|无效))"
        rf"{_LEAD_ZH}(?:没有?|未)(?:明确|具体|直接)?(?:提到|提及|说明|写明|记载|涉及|谈到|讲到|给出|写到)(?![的书])(?!.*[便就])"
    ),
    absent_later=(
        rf"^(?!..{_SAYS_ZH})(?:原因|[^因由被]){{0,8}}?(?:{_CANNOT_ZH}|(?:没有|未[作予能]?|没(?!有)|^不){_STATE_ZH})|不清楚(?!的)"
        # 其中缺乏具体的价格信息
        rf"|^(?!由于).*?(?:缺[乏少]|(?:没有?+|无)(?!{_DOES_ZH}))[^的]{{0,12}}(?:的[^的]{{0,8}})?(?:信息|数据|资料|说明)$"
    ),
    aside=(
        rf"{_SOURCE_ZH}|^(?:它们?|其)?(?:而(?!是)|并|也(?:列出|给出|说明)|虽然|尽管|不过|但)|[只仅]|{_TOPIC_ZH}|抱歉|对不起|不好意思|恐怕|遗憾"
        r"|^(?:包括|例如|比如|如)|(?<!而是)建议|请|您(?!的)|感谢|问题|需要|^(?:根据|依据|从|对于|由于|鉴于|关于|至于|经(?:过?查|检索))"
        r"|^在.{0,12}[中里内]$"
    ),
    concludes=(
        r"推断|(?:因此|所以).{0,8}是|可能是|应该是|(?<![只仅])(?:指出|表明|显示|(?<!有)(?<!未)写明)(?!的)"
        r"|(?<![只仅])(?:规定|写)[^，]{0,10}[为是][^，]{0,4}[\d一二两三四五六七八九十百]"
    ),
)

# A last sentence that draws the conclusion: whatever was said before, the question stays without an answer.
CONCLUDED = re.compile(
    r"^(?:\W*(?:therefore|thus|hence|so|consequently|accordingly|as a result|for this reason|in conclusion|overall"
    r"|without (?:this|that|these|those|it|them)\b[^,]{0,80}|because of this)\b,?"
    r"|.{0,160}?\b(?:so|and therefore|hence)\b)"
    r"[^.]{0,120}?\b(?:cannot|can't|not possible|impossible|unable|insufficient|not enough|could not|couldn't)\b"
    r"[^.]{0,60}?(?:answer|determin|calculat|comput"
    r"|(?:say|tell|know|state)\b|\bbe (?:\w+ly )?(?:given|provid|verif|confirm|identif|assess|derive|establish))"
    # 因此不能计算; 无从得知; 根据已知信息无法回答该问题
    r"|(?:^|[，,；])(?:(?:因此|所以|故|因而|从而)也?(?:我(?!们))?(?:无法|不能|没法|没有?办法|难以|不足以)[^，。]{0,8}?"
    r"(?:回答|作答|得知|确定|判断|确认|核实|得出|给出|说明|计算|换算|推[断知算])|无从(?:得知|知晓|判断))[^，。]{0,20}[。.]?$"
    r"|(?:^|[，,；]|根据[^，]{1,16}?|这一?问题)我?(?:还|也|暂时)?(?:无法|不能|没法|没有?办法)(?:直接|准确)?"
    r"(?:回答|确定)[^，。]{0,12}(?:问题|答案)[。.]?$"
)
