"""What a question needs, by its wording: talk, a fact, several facts, or a question back. English and Chinese."""

from __future__ import annotations

import re
from typing import NamedTuple

from rag_kit.text.analysis import content_words
from rag_kit.text.language import detect_language


class Kind(NamedTuple):
    """What a question needs."""

    intent: str  # "chat" (talk), "question", or "unclear" (what it refers to is unknown)
    complexity: str  # "none" (nothing to look up), "single" (one search) or "multi" (several facts)
    reason: str  # why, in one short sentence, in the language of the question


# intent, complexity, and the reason in English and Chinese
_KINDS = {
    "chat": ("chat", "none", "It is a greeting, or about this conversation.", "这是寒暄，或谈的是对话本身。"),
    "pronoun": ("unclear", "single", "It refers to something that was not named.", "所指的对象没有说明。"),
    "empty": ("unclear", "single", "It names nothing to look for.", "没有说明要查什么。"),
    "comparison": ("question", "multi", "It compares several things.", "它比较几个事物。"),
    "bridge": ("question", "multi", "What it asks about must be found first.", "要先查出它所问的对象。"),
    "several": ("question", "multi", "It asks for several things.", "它一次问了几件事。"),
    "single": ("question", "single", "It asks for one thing.", "它只问一件事。"),
}

_CHAT = re.compile(
    r"(?:hi|hello|hey|good (?:morning|afternoon|evening|night|day))(?: there| all| everyone)?"
    r"|(?:many |a lot )?thank(?:s| you)(?: very much| so much| a lot| again)?|great|ok(?:ay)?|perfect|got it"
    r"|(?:good)?bye|see you(?: later| soon)?|how are you(?: doing)?(?: today)?|nice to meet you|who are you"
    r"|what(?:'s| is) your name|what can you do(?: for me)?|are you (?:a |an )?(?:bot|robot|human|ai)|(?:can you )?help"
    r"|(?:你|您)好呀?|大家好|(?:早上|下午|晚上)好|[早晚]安|(?:非常|多)?(?:谢谢|感谢)(?:你|您|啦)?(?:的帮助)?|多谢"
    r"|再见|拜拜|好的?|明白了?|知道了|(?:你|您)是谁|(?:你|您)叫什么(?:名字)?|(?:你|您)(?:会|能)(?:做|干)(?:些)?什么"
    r"|(?:你|您)是(?:机器人|人工智能|真人)吗?",
    re.IGNORECASE,
)
_ENDS = " \t\n.!?,;:。！？，、；：~～…)("

_POINTER = re.compile(
    r"\b(?:he|she|him|her|his|hers|they|them|their|theirs|it|its)\b|\bthe (?:former|latter|other one|same)\b"
    r"|\b(?:this|that|these|those)(?=\s*(?:[?.!,]|$|(?:ones?|is|was|are|were|do|does|did|mean|work)\b))",
    re.IGNORECASE,
)
_POINTER_ZH = re.compile(r"它们?|他们?|她们?|[这那](?:个|种|些|件|款|家|位|本|部|里)|前者|后者")
_OPENING_POINTER_ZH = re.compile(
    rf"^(?:那么?|请问|但是?|而且?|所以)?[，,]?(?:{_POINTER_ZH.pattern}|[这那](?=[是有在怎什多为]))"
)
#: "Is it true that ...", "How long does it take to ..." refer to nothing.
EMPTY_IT = re.compile(
    r"\bit (?:true|possible|legal|safe|necessary|allowed|worth|better|normal|correct|common|hard|easy|cold|hot"
    r"|rain\w*|snow\w*|takes?|costs?|mean(?:s)? (?:to|when|that|if)|called|that|to)\b",
    re.IGNORECASE,
)
_NAMED = re.compile(
    r"(?<=\S )[A-Z][\w'’-]*[a-z]|\b[A-Z]{2,}\w*|\d|[\"“「《『]"
    r"|(?<=[\u3400-\u9fff])[A-Za-z]{2,}|[A-Za-z]{2,}(?=[\u3400-\u9fff])"
)
_FRAGMENT = re.compile(
    r"(?:and|but|or) (?:in|for|with|on|at|since|before|after) .{0,25}"
    r"|(?:(?:and|but|or|so|then)[ ,]*)?(?:what|how) about(?: .{0,25})?|tell me more|那么?.{0,8}呢|然后呢|还有吗|继续",
    re.IGNORECASE,
)
_REPLY = re.compile(r"[(（][^()（）]+[)）]\s*$")

_COMPARES = re.compile(
    r"\b(?:compare[ds]?|comparison|versus|vs\.?|differen(?:t|ces?) (?:between|from|to|than)|differs?|in common|alike"
    r"|similarit(?:y|ies)|(?:the )?same \w+(?: \w+)? as|(?:\w{2,}er|worse|(?:more|less|fewer) \w+)(?: \w+){0,4} than)\b"
    r"|\bboth\b.{1,80}\band\b|\bbetween\b.{1,60}\band\b.{1,60}\b(?:which|who)\b"
    r"|^(?:which|who)\b.{1,60}\b\w{1,20}(?:er|est|more|most|first|last)\b.{1,80}\bor\b"
    r"|比较|对比|相比|区别|差异|差别|异同|优劣|(?:和|与|跟|同).{1,30}(?:一样|相同|不同)|(?:哪|谁).{0,4}?更"
    r"|.{1,30}比.{1,30}(?:更|还|[多少大小高低长短早晚快慢重轻]).{0,3}吗|都是.{1,30}吗",
    re.IGNORECASE,
)
#: Relations of people to things, as parts of a pattern.
ROLES = (
    r"director|author|writer|creator|founder|inventor|composer|singer|performer|producer|publisher|developer|designer"
    r"|architect|painter|owner|manufacturer|president|king|queen|ceo|leader|coach|captain|mayor|manager|husband|wife"
    r"|spouse|mother|father|parent|son|daughter|child|brother|sister|grandfather|grandmother|uncle|successor"
    r"|predecessor|birthplace|hometown|capital|headquarters|star|actor|actress|winner|discoverer|editor"
)
ROLES_ZH = (
    r"导演|作者|创始人|创办人|发明者|发明人|作曲|演唱者|主演|制片人|出版社|开发商|开发者|设计师|设计者|建筑师|老板"
    r"|制造商|总统|国王|女王|皇帝|首相|总理|校长|市长|教练|队长|丈夫|妻子|母亲|父亲|儿子|女儿|哥哥|弟弟|姐姐|妹妹"
    r"|祖父|继任者|前任|首都|省会|总部|故乡|出生地|母公司|子公司|得主|冠军"
)
# a thing named by its relation to another one, of which something more is asked
_BRIDGES = re.compile(
    rf"\bthe (?:[\w-]+ ){{0,2}}(?:{ROLES}) of (?:the )?[\w'’-]+(?: (?:of|the|and|[A-Z][\w'’-]*))* "
    r"(?!in\b|and\b|or\b|who\b)\w"
    rf"|的(?:{ROLES_ZH})(?:的|在哪|是哪|出生|毕业|去世|何时|什么时候|哪一?年|住|来自|属于|位于|有多|多[大高少])"
)
_ASKS = "(?:what|who|when|where|how|why|which)"
_ASKS_ZH = "(?:什么|谁|哪|多少|何时|如何|怎么|为什么)"
_SEVERAL = re.compile(
    rf"[?？][^?？]+[?？]|\b{_ASKS}\b.{{3,100}}?,? and {_ASKS}\b"
    rf"|{_ASKS_ZH}.{{1,40}}[，,、；;].{{0,40}}{_ASKS_ZH}|分别(?:是|有|在|为|由|叫)",
    re.IGNORECASE | re.DOTALL,
)
_MULTI = {"comparison": _COMPARES, "bridge": _BRIDGES, "several": _SEVERAL}
_MAX_CHARS = 500  # the patterns look no further, so that no text keeps them busy


def question_kind(question: str, *, has_history: bool = False) -> Kind:
    """Tell what a question needs.

    Talk is known by its wording as a whole. What points back without a history to point to is unclear. Comparisons,
    several questions in one, and things that are described by their relation to others need several facts. All else
    asks for one thing; a question whose hidden steps do not show in its words is not noticed. One that ends with a
    remark in brackets has been made clear by it, and with a history it may refer to that.

    Example:
        >>> question_kind("Hello!").complexity
        'none'
        >>> question_kind("When does it start?").intent
        'unclear'
        >>> question_kind("When does it start?", has_history=True).complexity
        'single'
        >>> [question_kind(q).complexity for q in ("Is BM25 faster than SPLADE?", "《活着》的作者毕业于哪所大学？")]
        ['multi', 'multi']
    """
    text = " ".join(question[:_MAX_CHARS].split())
    chinese = detect_language(text) == "zh"
    standalone = has_history or _REPLY.search(text) is not None
    intent, complexity, english_reason, chinese_reason = _KINDS[_kind_name(text, chinese, standalone)]
    return Kind(intent, complexity, chinese_reason if chinese else english_reason)


def _kind_name(text: str, chinese: bool, standalone: bool) -> str:
    """The key in `_KINDS` of a question that needs no earlier one, or may refer to nothing."""
    parts = [part.strip(_ENDS) for part in re.split(r"[.!?,;。！？，；~～]+", text[:100])]
    if any(parts) and all(_CHAT.fullmatch(part) for part in parts if part):
        return "chat"
    if not standalone and _refers_to_something_unnamed(text, chinese):
        return "pronoun"
    bare = text.strip(_ENDS)
    if not standalone and (not content_words(bare) or _FRAGMENT.fullmatch(bare)):
        return "empty"
    return next((name for name, pattern in _MULTI.items() if pattern.search(text)), "single")


# a longer question mostly names what its pronoun stands for
_MAX_CHARS_ZH, _MAX_WORDS = 24, 4


def _refers_to_something_unnamed(text: str, chinese: bool) -> bool:
    """Tell whether a pronoun stands for something that the question does not name."""
    if _NAMED.search(text):
        return False
    if chinese:
        return _OPENING_POINTER_ZH.search(text) is not None and len(text) <= _MAX_CHARS_ZH
    pointer = _POINTER.search(text)
    if pointer is None or EMPTY_IT.search(text):
        return False
    return not content_words(text[: pointer.start()]) and len(content_words(text)) <= _MAX_WORDS


def pointing_word(question: str) -> str:
    """The word by which a question points to something that it does not name; "" if there is none.

    Example:
        >>> pointing_word("When does it start?"), pointing_word("它什么时候启动？"), pointing_word("Why?")
        ('it', '它', '')
    """
    text = " ".join(question[:_MAX_CHARS].split())
    match = (_POINTER_ZH if detect_language(text) == "zh" else _POINTER).search(text)
    return match.group().strip() if match else ""
