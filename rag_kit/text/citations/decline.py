"""The sentence that says an answer is not in the documents, and how others put it.

A decline is read clause by clause. A clause says that the sources lack something, describes what they have, is a
courtesy (an apology, an advice, the question taken up), or states something else. An answer is a decline where the
first clause that is neither description nor courtesy says that something is lacking, and little else is stated.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from rag_kit.text.language import fold
from rag_kit.text.sentences import sentences

DECLINED = {"en": "The answer is not in the documents.", "zh": "文档中没有答案。"}
"""The decline sentence that the prompts ask for, by language."""

Kind = Literal["absent", "about", "courtesy", "other"]

_MAX = 3000
_STATED = 1 / 3
"""Share of a decline that may state something else, in characters."""
_HAN = re.compile(r"[\u4e00-\u9fff]")
_MARK = re.compile(r"[\[［【]\s*\d[^\]］】]{0,40}[\]］】]")
_EDGES = "*_`\"'“”「」 "


class _Rules(NamedTuple):
    """The patterns of a language: what names the sources, what each kind of clause holds, what parts clauses."""

    source: re.Pattern[str]
    absent: re.Pattern[str]
    absent_named: re.Pattern[str]
    absent_they: re.Pattern[str]
    courtesy: re.Pattern[str]
    about: re.Pattern[str]
    concludes: re.Pattern[str]
    clause: re.Pattern[str]

    def kind(self, clause: str, named: bool, about: bool) -> Kind:
        """What a clause is, where the sources were named, or a clause before was about them."""
        if (
            self.absent.search(clause)
            or (named and self.absent_named.search(clause))
            or (about and self.absent_they.search(clause))
        ):
            return "absent"
        if self.courtesy.search(clause):
            return "courtesy"
        return "about" if self.about.search(clause) else "other"


# The sources as an answer names them: "the provided documents", "these passages [1]", "the text that you shared".
_GIVEN = (
    r"provided|given|supplied|available|retrieved|shared|returned|above|present|current|listed|search"
    r"|source|context"
)
_NOUN = (
    r"documents?|documentation|passages?|contexts?|sources?|texts?|excerpts?|articles?|snippets?"
    r"|paragraphs?|results|"
    r"knowledge base|story|report|notes|information|content|materials?"
)
_SRC = (
    rf"\b(?:(?:the|this|these|those|your|any|all|both|no|as|from|in|by) (?:\w+ ){{0,2}}(?:{_NOUN})\b"
    rf"(?! (?:of(?! (?:who|what|whe|why|how))|manager|code|exchange))"
    rf"|(?:{_GIVEN}) (?:{_NOUN})\b|(?<![^ ]. )(?:documents|context|passages)\b)"
    r"(?: ?\[[\d,\]\[ –-]{1,60}+|,? (?:however|themselves|unfortunately|sadly|still),?| (?:that|which"
    r"|(?:you|i|we)(?:'ve)?|"
    rf"have|had|has|was|were|are|is|been|here|at (?:hand|my disposal)|to me|gave(?: me)?|uploaded|by the search"
    rf"|{_GIVEN})\b){{0,6}}"
)
_NOT = r"(?:(?:do|does|did|is|are|was|were|has|have|can|could)(?: not|n't)|cannot|never|(?<!had )not)\b"
_DO_NOT = r"(?:(?:do|does|did|can|could)(?: not|n't)|cannot|never)\b"
_ADVERBS = r"(?:,? (?:\w+ly|however|also|even|any|a|be|to|been|seem|appear|me|us)\b,?){0,5}"
_SAY = (
    r" (?:contain|include|mention|provide|hold|say|answer|state|specify|address|discuss|cover|give|offer"
    r"|reveal|identif|"
    r"name|describe|explain|clarify|indicate|tell|appear|seem|allow|list|disclose|refer|have|define|show"
    r"|make|detail|"
    r"report|directly|go into|touch|speak|record|resolve|elaborate|leave)"
)
_TOLD = (
    r" (?:mentioned|specified|stated|provided|given|addressed|discussed|disclosed|described|explained"
    r"|identified|named|"
    r"indicated|detailed|listed|covered|revealed|explicit|determined|answered|told|recorded|reported|defined)\b"
)
_FOUND = (
    r" (?:found|included|contained|available|present|clear|said|shown|answered|sufficient|enough|part of)\b"
)
_NO = r"\b(?:no|not (?:any|enough|sufficient)|insufficient|n't (?:any|enough|sufficient|sufficient)|nothing|without)\b"
_LACK = (
    r"\b(?:information|mention|reference|details?|data|indication|answer|discussion|definition|guidance"
    r"|figures?|"
    r"description|explanation|statement|entr(?:y|ies)|records?)\b"
)
_LACKS = (
    rf"(?: \w+ly)? (?:lack|fails? to|omits?\b|(?:is|are) (?:silent|insufficient|not sufficient|not enough)|"
    rf"(?:say|ha|have|contain|give|make|offer|include|provide|hold|shed|devote)s? {_NO}"
    rf"|leaves? (?:out|open|unanswered|this|that|the question)\b)"
)
_I = r"\b(?:i|we|one)(?:'m| am| are| was| were)?(?: \w+ly| also| still| therefore| thus)?"
_CANNOT = r" (?:cannot|can't|could not|couldn't|unable to|not able to|(?:do|did|was|were)(?: not|n't))"
_FIND = (
    r" (?:able to )?(?:answer|find|determine|provide|confirm|locate|say|give|establish|verify|calculate|see"
    r"|identify|"
    r"know|offer|have|tell|work out|conclude|judge)\b"
)

_EN = _Rules(
    source=re.compile(_SRC),
    absent=re.compile(
        rf"{_SRC} ?{_DO_NOT}{_ADVERBS}{_SAY}|{_SRC}{_LACKS}"
        rf"|{_SRC}(?:(?! that )[^.!?]){{0,60}}? (?:and|but),?(?: \w+ly,?)?(?: {_DO_NOT}{_ADVERBS}{_SAY}|{_LACKS})"
        rf"|\banswer\b[^.!?]{{0,40}}? {_NOT} (?:in|within) {_SRC}"
        rf"|\b(?:none|neither|nothing)\b[^.!?]{{0,9}}? {_SRC}{_ADVERBS}{_SAY}"
        rf"|{_NOT}{_ADVERBS}(?:{_TOLD}|{_FOUND})[^.!?]{{0,60}}?\b(?:in|by|from|within|using|with) {_SRC}"
        rf"|{_NO}[^.!?]{{0,25}}?{_LACK}[^.!?]*?{_SRC}|\bthere(?: is|'s| are| was) nothing\b[^.!?]*?{_SRC}"
        rf"|{_I}{_CANNOT}{_ADVERBS}{_FIND}[^.!?]*?(?:{_SRC}|\bquestion\b|\brequested\b|{_LACK})"
        rf"|\b(?:this|your|the) question\b[^.!?]{{0,60}}? (?:cannot|can't|could not|is not"
        rf"|isn't) (?:be )?(?:answered|covered)\b(?! with one)"
        rf"|^(?:i (?:do not|don't) know|unable to answer|insufficient (?:information|context)|not{_TOLD})"
        rf"|^i (?:cannot|can't|am unable to|'m unable to|am not able to) (?:\w+ly )?(?:answer|determine|provide"
        rf"|confirm|say)"
        r"|\bquestion\b[^.!?]{0,40}? (?:remains?|unanswered|left open)\b"
    ),
    # What says the same where the sources were named before: "Based on the documents, there is no mention ...".
    absent_named=re.compile(
        rf"\bthere(?: is|'s| are| was| were)(?: \w+ly)? ?{_NO}[^.!?]{{0,25}}?{_LACK}"
        rf"|{_NOT}{_ADVERBS}{_TOLD}(?:(?<!given)(?<!told)(?<!answered)|(?= in (?:any|it|them)\b))"
        rf"|{_I}{_CANNOT}{_ADVERBS}{_FIND}|(?:\b(?:not possible|impossible|unclear|not clear)|n't possible)\b"
        rf"|\bnone of (?:them|these)\b"
        rf"|^which {_DO_NOT}{_ADVERBS}{_SAY}"
    ),
    # ... and where a clause before was about the sources: "It covers the first season, but does not name the actor".
    absent_they=re.compile(
        rf"^(?:(?:but|however|and|although|though|nor|so|yet|while)\b,? ?)*(?:it|they|these|this|both"
        rf"|which)?(?: \w+ly)? ?"
        rf"(?:{_DO_NOT}{_ADVERBS}{_SAY}|{_LACKS}|{_NOT}(?: of| about| its| in| on| the)\b)"
    ),
    courtesy=re.compile(
        r"^(?:(?:but|however|and|so|therefore|as|alternatively)\b,? ?)*(?:please|you\b|i(?:'d| would| suggest"
        r"| recommend| apologi|"
        r" looked| searched| have| regret|'m sorry|'m afraid| am sorry)|if you|it (?:would|is|may"
        r"|might) (?:be )?(?:best|advisable|"
        r"recommended)|consider|would you like|to (?:find|answer|get|obtain)|for (?:more|accurate|further|the|this)"
        r"|further|hello|thank|sorry|unfortunately|regrettably|sadly|as an ai|my knowledge|after|based on [^,]*$"
        r"|according to [^,]*$|from [^,]*$|given [^,]*$|in the [^,]*$"
        r"|the question|your question|without|always|feel free|contact|try|consult|check|\w+$)"
        r"|\bwould be (?:needed|required|necessary|a better|able)\b|\bneed(?:ed)?\b|\b(?:recommend|suggest) "
        r"|\bconsult\b"
    ),
    about=re.compile(
        rf"{_SRC}|\b(?:it|they|these|this|which|section)\b[^.!?]{{0,25}}? (?:mention|discuss|describe|focus"
        rf"|cover|contain|"
        r"provide|include|list|refer|concentrat|talk|deal|explain|report|address|present|uses?\b(?! (?:in|of))"
        r"|name|compare|speak|relate|limit|end with|ends with|stop|do\b"
        r"|does\b|are about|"
        r"is about|limited|note|know)|(?<!\bthe )\bonly\b"
        r"|\b(?:the only (?:mention|reference|information|details?)|merely|instead|mainly|primarily)\b"
    ),
    concludes=re.compile(
        r"\b(?:infer(?:red)?|suggest(?:s|ing)? that|impl(?:y|ies|ied)|likely|probably|presumably|the answer is"
        r"|so (?:he|she) |"
        r"(?<!only )(?<!merely )(?<!just )(?:states?|says?|indicates?|shows?) that|makes? (?:it )?clear that"
        r"|concluded? that|do(?:es)? (?:give|say|state|tell|show|specify))\b"
    ),
    clause=re.compile(
        r"[;:]\s|(?<! not)(?<! not,),?\s(?=(?:but|yet|although|though|whereas|however|so|therefore|since|because"
        r"|as the|and they|and it)\b)"
        r"|,\s(?=(?:i|we|it|they|there|the|this|these|which|while|none|nothing|no|and \w+ly|and none)\b)"
    ),
)

_SRC_ZH = (
    r"(?:(?:^|(?<=[，,；;、“的给供定述上有个些篇段考关在从据份到几所索该此本列检库握且但而这后了]))"
    r"(?:文档|文件|资料|段落|材料|上下文|原文|文中|文本|文章|文献|文字|参考内容|参考|内容|信息|搜索结果|知识库|本文|上文|片段|摘录|节选))"
)
_NOT_ZH = r"(?:没有|没|并未|从未|均未|都未|尚未|未能|未|并不|不|无|缺乏|缺少|找不到)"
_SAY_ZH = (
    r"(?:提到|提及|说明|包含|涉及|给出|提供|指出|找到|出现|披露|透露|交代|列出|记载|介绍|讨论|描述|定义|回答|证据|信息|"
    r"内容|答案|数据|细节|规定|足够|直接|明确|具体|关于|有关|相关|写明|解释|含有?|任何|指导|谈到|谈及|报告|告诉|看到|说)"
)
_CANNOT_ZH = r"(?:无法|不能|没法|难以|无从|还不能|并不能)"

_ZH = _Rules(
    source=re.compile(_SRC_ZH),
    absent=re.compile(
        rf"{_SRC_ZH}[^因由被]{{0,10}}?{_NOT_ZH}.{{0,6}}?{_SAY_ZH}|{_SRC_ZH}.{{0,6}}(?:不足以|无关|看不出|{_CANNOT_ZH})"
        rf"|与.{{0,6}}问题.{{0,4}}无关|超出.{{0,12}}范围|(?:没有|[未没]能?)(?:检索到|查到|找到|足够的?|相关的?).{{0,24}}?(?:答案|信息|内容|说明|记载|所需)"
        rf"|问题.{{0,6}}?(?:得不到|没有|未)(?:回答|答案|解答)|(?:不在|不属于)(?:其中|其内|文中)"
        rf"|^(?:因此|所以|暂时|目前|我|还|也)*{_CANNOT_ZH}.{{0,16}}?(?:回答|作答|得知|确定|判断|确认|得出|给出|提供|说明)|我不知道"
    ),
    absent_named=re.compile(
        rf"^(?:因此|因而)?[^因由被]{{0,8}}?{_CANNOT_ZH}.{{0,16}}?(?:回答|作答|得知|确定|判断|确认|得|找到|给出|提供|知|计算)|不清楚|不明确|"
        rf"^[^因由被]{{0,8}}?(?:没有|未|没)(?:明确|具体|直接|详细)?(?:包含.*(?:信息|内容|数据|说明)|提到|提及|说明|给出|提供|指出|披露|透露|交代|列出|记载|谈到|谈及|定义|解释|报告|告诉|看到|写明|关于"
        rf"|有关|涉及|对)|^不(?:包含|包括|涉及).*(?:信息|内容|数据|说明)"
    ),
    absent_they=re.compile("(?!)"),
    courtesy=re.compile(
        r"抱歉|对不起|遗憾|(?<!而是)建议|请|您(?!的)|如果|感谢|问题|查阅|查询|咨询|需要知道|要得出|例如|^(?:根据|依据|从|对于|由于|仅凭|鉴于)|^在.{0,12}[中里内]$"
    ),
    about=re.compile(
        rf"{_SRC_ZH}|^(?:它们?|其)?(?:只|仅|而(?!是)|并|主要|虽然|尽管|不过|但|方法部分)|只是|主要|仅|多次|提到|提及|介绍|讨论|描述|涉及|涵盖|记载|关注|讲"
    ),
    concludes=re.compile(
        r"推断|推测|推知|(?:因此|所以).{0,8}是|可能是|应该是|(?<!只)(?<!仅)(?:指出|表明|显示|(?<!有)(?<!未)写明|清楚地写着)(?!的)"
    ),
    clause=re.compile(r"[，,；;：:]"),
)


def is_declined(answer: str) -> bool:
    """Whether an answer says that the documents do not hold it, and little else.

    Long and polite declines count too: with apologies, advice, and what the documents do contain. An answer that
    begins with a statement, or ends in a conclusion, is an answer, even where it adds what the documents lack.

    Args:
        answer: The whole answer; one of more than 3,000 characters is no decline.

    Example:
        >>> is_declined("The answer is not in the documents."), is_declined("文档中没有答案。")
        (True, True)
        >>> is_declined("I'm sorry, but the context does not give the price. It only lists the colours.")
        True
        >>> is_declined("It was built in 1890. The documents do not say by whom."), is_declined("Paris.[1]")
        (False, False)
    """
    if not answer.strip() or len(answer) > _MAX:
        return False
    size = stated = 0
    lead = ""
    for kind, clause, concludes in _clauses(answer):
        if kind in ("absent", "other"):
            lead = lead or kind
        if lead == "other" or (kind != "absent" and concludes) or (kind == "other" and _MARK.search(clause)):
            return False
        size += len(clause)
        stated += len(clause) if kind == "other" else 0
    return lead == "absent" and stated <= _STATED * size


def _clauses(answer: str) -> list[tuple[Kind, str, bool]]:
    """The clauses of an answer, each with its kind and whether it draws a conclusion."""
    found: list[tuple[Kind, str, bool]] = []
    named = about = False
    for sentence in sentences(answer):
        text = fold(sentence.text).strip(_EDGES)
        chinese = _HAN.search(text) is not None
        rules = _ZH if chinese else _EN
        for part in rules.clause.split(text):
            clause = part.strip(" ，,。.!！")
            if clause:
                named = named or rules.source.search(clause) is not None
                kind = rules.kind(clause, named, about)
                about = about or (kind in ("about", "absent") and named)
                found.append((kind, clause, rules.concludes.search(clause) is not None))
    return found
