"""The Chinese words of the schemas: class -> field -> description; the empty name is the class itself."""

_WHY = "理由，用一个短句说明。"
_USEFUL = "这句话对回答问题有多大用处：从 1（毫无用处）到 5（完全有用）。"

WORDING: dict[str, dict[str, str]] = {
    "Query": {"": "一个检索词或问题。", "query": "一个问题或检索词，脱离上下文也能看懂。"},
    "Queries": {
        "": "若干检索词，最有用的排在最前。",
        "queries": "若干问题或检索词，每个都能独立看懂，最有用的排在最前。",
    },
    "SubQuestions": {
        "": "需要先回答的子问题；没有要问的就为空。",
        "queries": "若干子问题，每个只问一件事、能独立看懂，按应当回答的顺序排列；不需要子问题时为空列表。",
    },
    "Passages": {
        "": "假想的段落：能够回答问题的文档可能会这样写。",
        "passages": "若干短段落，写法如同能够回答这个问题的文档。",
    },
    "Grade": {
        "": "评判的结论。",
        "relevant": "通过为 true，不通过为 false。",
        "score": "有多大把握认为通过：从 0（肯定不通过）到 1（肯定通过）。",
        "reason": _WHY,
    },
    "PassageGrades": {
        "": "对若干段落的评判。",
        "grades": "每个段落一项：段落编号、是否相关、0 到 1 的分数和理由。",
    },
    "RankedPassages": {"": "段落的编号，最相关的排在最前。", "ranking": "全部段落的编号，最相关的排在最前。"},
    "ChosenSentences": {
        "": "有用的句子的编号；没有则为空。",
        "sentences": "有用的句子的编号；一句都没有时为空列表。",
    },
    "SelfQuery": {
        "": "把问题拆成检索文本和过滤条件。",
        "query": "要在正文中查找的内容，不含过滤条件已经表达的部分；可以为空。",
        "filter": "过滤条件；问题没有提出条件时为 null。",
        "sort_by": "要求最新、最大等时用来排序的字段；否则为 null。",
        "descending": "最新或最大的排在最前时为 true。",
        "limit": "要求返回多少篇文档；没有说明时为 null。",
    },
    "FilterCondition": {
        "": "一个元数据字段与一个值的比较。",
        "field": "元数据字段的名称，与列出的完全一致。",
        "operator": "eq、ne、gt、gte、lt、lte、in、nin 或 contain 之一。",
        "value": "用来比较的值；in 和 nin 用列表；null 表示要找没有该字段的文档。",
    },
    "FilterGroup": {
        "": "用 and、or 或 not 连接的若干条件。",
        "join": '"and"：全部成立；"or"：至少一个成立；"not"：一个都不成立。',
        "conditions": "若干条件，或者嵌套的条件组。",
    },
    "Routes": {
        "": "适合这个问题的来源，最合适的排在最前；都不合适则为空。",
        "choices": "适合这个问题的来源，最合适的排在最前；都不合适时为空列表。",
    },
    "RouteChoice": {
        "": "一个合适的来源及其理由。",
        "name": "来源的名称，与列出的完全一致。",
        "reason": "为什么合适，用一个短句说明。",
    },
    "Classification": {
        "": "这个问题需要怎样处理。",
        "intent": "'question' 为提问，'chat' 为闲聊，看不出想问什么则为 'unclear'。",
        "complexity": "什么都不用查为 'none'，查一次就够为 'single'，需要分几步查为 'multi'。",
        "reason": _WHY,
    },
    "NextHop": {
        "": "下一个子问题，或者说明不再需要。",
        "done": "已找到的内容足够，或者再也找不到更多时为 true。",
        "query": "下一个问题，能独立看懂；已经完成时为空。",
    },
    "UserFacts": {
        "": "用户说过的关于自己的情况；没有则为空。",
        "facts": "若干短句，每句一个用户说过、长期有效的事实；没有时为空列表。",
    },
    "RelatedQuestions": {
        "": "用户接下来可能会问的问题；段落不能回答别的问题时为空。",
        "queries": "这些段落能够回答的问题，每个都能独立看懂；没有时为空列表。",
    },
    "RetrieveNeeded": {
        "": "接着往下写是否需要查资料。",
        "retrieve": "写下一句话需要查阅文档为 yes，否则为 no。",
    },
    "Critique": {
        "": "对一段回答的三项标注。",
        "relevance": "段落是否有助于回答问题。",
        "support": "段落在多大程度上支持这句话：full 为完全，partial 为部分，none 为不支持。",
        "usefulness": _USEFUL,
    },
    "Usefulness": {"": "对一段没有依据任何段落的回答的标注。", "usefulness": _USEFUL},
    "Keywords": {
        "": "要输入搜索引擎的内容：最多三个关键词。",
        "keywords": "一到三个关键词或名称，最重要的排在最前。",
    },
    "PassageRelevance": {
        "": "一个段落与问题的相关程度。",
        "reason": _WHY,
        "grade": "0：与问题毫无关系；1：话题相关，但什么都没有回答；2：只回答了一部分，或者答案夹在其他内容之中；"
        "3：谈的就是这个问题，并且包含答案。",
    },
    "CitedSupport": {
        "": "论断引用的段落是否支持它。",
        "reason": _WHY,
        "support": "段落说出了整条论断为 'full'，只说出一部分为 'partial'，否则为 'none'。",
    },
    "Nuggets": {
        "": "文本中能够回答问题的事实；什么都没有回答时为空。",
        "nuggets": "各条事实，最重要的排在最前。",
    },
    "Nugget": {
        "": "答案应当包含或可以包含的一条事实。",
        "text": "这条事实，能独立看懂。",
        "importance": "好的答案必须包含的为 'vital'，包含了更好的为 'okay'。",
    },
    "NuggetLabels": {"": "对每条事实的标注。", "labels": "每条事实一项：它的编号，以及答案是否包含它。"},
    "NuggetLabel": {
        "": "答案是否包含某一条事实。",
        "id": "这条事实的编号。",
        "support": "答案说出了它为 'full'，只说出一部分为 'partial'，没有说为 'none'。",
    },
    "GeneratedQuestions": {
        "": "段落能够回答的问题；一个都不能回答时为空。",
        "questions": "各个问题及其答案；这些段落不适合出题时为空列表。",
    },
    "GeneratedQuestion": {
        "": "一个问题、它的答案，以及所依据的原文。",
        "question": "问题，能独立看懂。",
        "answers": "简短的答案，照抄段落中的原文；答案有几部分就写几项。",
        "reference": "完整的答案，用一两句话写成。",
        "quotes": "包含答案的句子，一字不改地照抄；用到的每个段落一句。",
    },
    "QuestionCheck": {
        "": "第一次看到这个问题的人对它的看法。",
        "answerable": "段落完整地回答了问题时为 true。",
        "answer": "段落给出的答案；没有则为空。",
        "stands_alone": "不看段落也能看懂问题时为 true。",
        "needs_all": "回答问题需要用到每一个段落时为 true。",
        "reason": _WHY,
    },
}
"""Every described class and field; a test holds that none is missing."""
