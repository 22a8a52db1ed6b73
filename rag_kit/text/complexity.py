"""What a question needs, by its wording: talk, a fact, several facts, or a question back. English and Chinese."""

from __future__ import annotations

import re
from typing import NamedTuple

from rag_kit.text.analysis import content_words
from rag_kit.text.comparisons import entity_queries
from rag_kit.text.language import detect_language


class Kind(NamedTuple):
    """What a question needs.

    Attributes:
        intent: ``"chat"`` (talk), ``"question"``, or ``"unclear"`` (what it refers to is unknown).
        complexity: ``"none"`` (nothing to look up), ``"single"`` (one search) or ``"multi"`` (several facts).
        reason: Why, in one short sentence, in the language of the question.
    """

    intent: str
    complexity: str
    reason: str


_REASONS = {
    "chat": ("It is a greeting or talk about this conversation.", "这是寒暄，或谈的是对话本身。"),
    "pronoun": ("It refers to something that was not named.", "所指的对象没有说明。"),
    "empty": ("It names nothing to look for.", "没有说明要查什么。"),
    "comparison": ("It compares several things.", "它比较几个事物。"),
    "bridge": ("What it asks about must be found first.", "要先查出它所问的对象。"),
    "several": ("It asks for several things.", "它一次问了几件事。"),
    "single": ("It asks for one thing.", "它只问一件事。"),
}

_CHAT = re.compile(
    r"(?:(?:hi|hello|hey|greetings|good (?:morning|afternoon|evening|night|day)|howdy)(?: there| all| everyone)?"
    r"|(?:many |a lot )?thank(?:s| you)(?: very much| so much| a lot| again)?|great|ok(?:ay)?|cool|nice|perfect|got it"
    r"|(?:good)?bye|see you(?: later| soon)?|how are you(?: doing)?(?: today)?|how do you do|nice to meet you"
    r"|who are you|what(?:'s| is) your name|what can you do(?: for me)?|are you (?:a |an )?(?:bot|robot|human|ai)"
    r"|can you help(?: me)?|help|what'?s up|tell me a joke|i am bored)"
    r"|(?:你|您)好呀?|大家好|嗨|哈喽|早上好|下午好|晚上好|早安|晚安|(?:非常|太|多)?(?:谢谢|感谢)(?:你|您|啦)?(?:的帮助)?|多谢"
    r"|再见|拜拜|好的?|明白了?|知道了|(?:你|您)是谁|(?:你|您)叫什么(?:名字)?|(?:你|您)(?:会|能)(?:做|干)(?:些)?什么"
    r"|(?:你|您)是(?:机器人|人工智能|真人)吗?|(?:最近)?(?:你|您)?(?:怎么样|还好吗)|(?:在吗|在不在)|讲个笑话(?:吧)?|帮帮我",
    re.IGNORECASE,
)
_ENDS = " \t\n.!?,;:。！？，、；：~～…)("

_PRONOUN = re.compile(
    r"\b(?:(?:he|she|him|her|his|hers|they|them|their|theirs|it|its)\b"
    r"|(?:this|that|these|those)(?=\s*(?:[?.!,]|$|one\b|ones\b|is\b|was\b|are\b|were\b|do\b|does\b|did\b|mean\b|work\b)))"
    r"|\bthe (?:former|latter|other one|first one|second one|same)\b",
    re.IGNORECASE,
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
_BARE = re.compile(
    r"(?:and|but|or|so|then)?[ ,]*(?:what|how) about(?: .{0,25})?"
    r"|why(?: not| so)?|how(?: so| come)?|when|where|who|which"
    r"|which (?:one|ones)|how (?:many|much|long|often)|since when|really|more|tell me more"
    r"|那么?.{0,8}呢|为什么|为何|怎么样?|如何|何时|什么时候|哪里|在哪|哪个|谁|多少|多久|还有(?:吗|别的吗)?"
    r"|继续|然后呢|真的吗",
    re.IGNORECASE,
)
_GOES_ON = re.compile(r"(?:and|but|or) (?:in|for|with|on|at|since|before|after) .{0,25}", re.IGNORECASE)
_ZH_PRONOUN = re.compile(
    r"^(?:那么?|请问|但是?|而且?|所以)?[，,]?(?:它们?|他们?|她们?"
    r"|(?:这|那)(?:个|种|些|件|样|里|款|家|位|本|部)?(?=[是有在怎什多为能会可何要吗的呢哪由如贵好]|[？?]|$)"
    r"|前者|后者|该(?:公司|产品|设备|系统)|其(?![中他实余次它间]))"
)
_REPLY = re.compile(r"[(（][^()（）]+[)）]\s*$")

_EN_COMPARES = re.compile(
    r"\b(?:compare[ds]?|comparison|versus|vs\.?|differen(?:t|ce|ces) (?:between|from|to|than)|differs?|in common"
    r"|similarit(?:y|ies)|alike|(?:the )?same \w+(?: \w+)? as"
    r"|(?:older|younger|larger|bigger|smaller|longer|shorter|taller|higher|lower|heavier|lighter|faster|slower|earlier"
    r"|later|richer|poorer|cheaper|closer|farther|further|newer|better|worse|stronger|greater|(?:more|less|fewer) \w+)"
    r"(?: \w+){0,4} than)\b"
    r"|\bboth\b.{1,80}\band\b|\bbetween\b.{1,60}\band\b.{1,60}\b(?:which|who)\b"
    r"|^(?:which|who)\b.{1,60}\b\w{1,20}(?:er|est|more|most|first|last)\b.{1,80}\bor\b",
    re.IGNORECASE,
)
_ZH_COMPARES = re.compile(
    r"比较|对比|相比|区别|差异|差别|异同|优劣|有(?:何|什么|哪些)不同|(?:和|与|跟|同).{1,30}(?:一样|相同|不同)"
    r"|(?:哪|谁)(?:一?[个种家款位座条部名])?(?:人|国家|城市)?(?:更|最先|比较)"
    r"|.{1,30}比.{1,30}(?:更|还|[多少大小高低长短早晚快慢重轻]).{0,3}吗|都是.{1,30}吗|还是.{1,30}[更先大小高]"
)
#: Relations of people to things, as parts of a pattern.
ROLES = (
    r"director|author|writer|creator|founder|inventor|composer|singer|performer|producer|publisher|developer|designer"
    r"|architect|painter|owner|manufacturer|president|king|queen|ceo|leader|coach|captain|mayor|manager|husband|wife"
    r"|spouse|mother|father|parent|son|daughter|child|brother|sister|grandfather|grandmother|uncle|successor"
    r"|predecessor|birthplace|hometown|capital|headquarters|star|actor|actress|winner|discoverer|editor"
)
_KINDS = (
    r"person|man|woman|people|company|organi[sz]ation|city|country|state|county|team|club|band|university|school|film"
    r"|movie|book|novel|song|album|artist|player|actor|actress|director|author|writer|scientist|place|device|product"
)
_EN_BRIDGES = re.compile(
    rf"\bthe (?:[\w-]+ ){{0,2}}(?:{ROLES})(?:'s|’s)? (?:of|to) (?:the )?(?:[\w-]+ ){{0,2}}(?:{ROLES}|{_KINDS})\b"
    rf"|\b(?:when|where|what|which|who|how|whom|did|is|was|does|has)\b[^,?]{{0,60}}"
    rf"\bthe (?:[\w-]+ ){{0,2}}(?:{ROLES}) of\b"
    r"(?=.{1,100}\b(?:born|die[ds]?|live[ds]?|work(?:s|ed)?|stud(?:y|ied)|come|located|found(?:ed)?|made|married|play(?:s|ed)?"
    r"|educated|buried|from|move[ds]?|graduate[ds]?|wr(?:o|i)te|attend(?:ed)?|serve[ds]?|nationality|direct(?:ed)?)\b)"
    rf"|\b(?:of|by|from) the (?:same )?(?:{_KINDS}) (?:that|who|which|where)\b",
    re.IGNORECASE,
)
ROLES_ZH = (
    r"导演|作者|创始人|创办人|创建者|发明者|发明人|作曲|演唱者|主演|制片人|出版社|开发商|开发者"
    r"|设计师|设计者|建筑师|老板|生产商|制造商|总统"
    r"|国王|女王|皇帝|首相|总理|校长|市长|教练|队长|丈夫|妻子|配偶|母亲|父亲|儿子|女儿|哥哥|弟弟|姐姐|妹妹|祖父|继任者|前任|首都|省会|总部|故乡"
    r"|出生地|母公司|子公司|男主角|女主角|得主|冠军"
)
_ZH_BRIDGES = re.compile(
    rf"的(?:{ROLES_ZH})(?:的|在哪|是哪一?[年里国]|出生|毕业|去世|还|何时|什么时候|哪一?年|住|来自|属于"
    r"|位于|今年|有多|多[大高少])"
    rf"|(?:所在的?|所属的?)(?:国家|城市|省|公司|大学|球队|组织)的|(?:{ROLES_ZH})的(?:{ROLES_ZH})"
)
_EN_SEVERAL = re.compile(
    r"\?[^?]+\?|\b(?:what|who|when|where|how|why|which)\b.{3,100}?,? and"
    r" (?:what|who|when|where|how|why|which|in which|for how)\b",
    re.IGNORECASE | re.DOTALL,
)
_ZH_SEVERAL = re.compile(
    r"[？?][^？?]+[？?]|(?:什么|谁|哪|多少|何时|如何|怎么|为什么).{1,40}[，,、；;]"
    r"(?:并且|以及|又|同时|还有)?.{0,40}(?:什么|谁|哪|多少|何时|如何|怎么|为什么|几)"
    r"|分别(?:是|有|在|为|由|叫)",
    re.DOTALL,
)
_MAX = 500  # the patterns look no further, so that no text keeps them busy


def question_kind(question: str, *, has_history: bool = False) -> Kind:
    """Tell what a question needs.

    Talk is known by its wording as a whole. What points back without a history to point to is unclear. Comparisons,
    several questions in one, and things that are described by their relation to others need several facts. All else
    asks for one thing; a question whose hidden steps do not show in its words is not noticed.

    Args:
        question: The question. One that ends with a remark in brackets has been made clear by it.
        has_history: Whether there is a conversation that it may refer to.

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
    text = " ".join(question[:_MAX].split())
    chinese = detect_language(text) == "zh"

    def kind(intent: str, complexity: str, why: str) -> Kind:
        return Kind(intent, complexity, _REASONS[why][chinese])

    if _is_chat(text):
        return kind("chat", "none", "chat")
    bare = text.strip(_ENDS)
    if not has_history and not _REPLY.search(text):
        named = _NAMED.search(text) is not None
        if not content_words(bare) or (_BARE.fullmatch(bare) and not named) or _GOES_ON.fullmatch(bare):
            return kind("unclear", "single", "empty")
        if _points_back(text, chinese):
            return kind("unclear", "single", "pronoun")
    if (_ZH_COMPARES if chinese else _EN_COMPARES).search(text) or entity_queries(text):
        return kind("question", "multi", "comparison")
    if (_ZH_BRIDGES if chinese else _EN_BRIDGES).search(text):
        return kind("question", "multi", "bridge")
    if (_ZH_SEVERAL if chinese else _EN_SEVERAL).search(text):
        return kind("question", "multi", "several")
    return kind("question", "single", "single")


def _is_chat(text: str) -> bool:
    """Whether every part of a short text is talk: "Hi, how are you?"."""
    if len(text) > 100:
        return False
    parts = [part.strip(_ENDS) for part in re.split(r"[.!?,;。！？，；~～]+", text)]
    parts = [part for part in parts if part]
    return bool(parts) and all(_CHAT.fullmatch(part) for part in parts)


def _points_back(text: str, chinese: bool) -> bool:
    """Whether a pronoun stands for something that the question does not name."""
    if _NAMED.search(text):
        return False
    if chinese:
        return _ZH_PRONOUN.search(text) is not None and len(text) <= 24
    pronoun = _PRONOUN.search(text)
    if pronoun is None or EMPTY_IT.search(text):
        return False
    return len(content_words(text[: pronoun.start()])) == 0 and len(content_words(text)) <= 4


def pointing_word(question: str) -> str:
    """The word by which a question points to something that it does not name; "" if there is none.

    Example:
        >>> pointing_word("When does it start?"), pointing_word("它什么时候启动？"), pointing_word("Why?")
        ('it', '它', '')
    """
    text = " ".join(question[:_MAX].split())
    if detect_language(text) == "zh":
        found = re.search(r"它们?|他们?|她们?|[这那](?:个|种|些|件|款|家|位|本|部|里)|前者|后者", text)
    else:
        found = _PRONOUN.search(text)
    return found.group().strip() if found else ""
