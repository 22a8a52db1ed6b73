"""The Chinese words of the schemas: class -> field -> description."""

_WHY = "理由，用一个短句说明。"
_USEFUL = "这句话对回答问题有多大用处：从 1（毫无用处）到 5（完全有用）。"

WORDING: dict[str, dict[str, str]] = {
    "Query": {"query": "一个问题或检索词，脱离上下文也能看懂。"},
    "Queries": {
        "queries": "若干问题或检索词，每个都能独立看懂，最有用的排在最前。",
    },
    "SubQuestions": {
        "queries": "若干子问题，每个只问一件事、能独立看懂，按应当回答的顺序排列；不需要子问题时为空列表。",
    },
    "Passages": {
        "passages": "若干短段落，写法如同能够回答这个问题的文档。",
    },
    "Grade": {
        "relevant": "通过为 true，不通过为 false。",
        "score": "有多大把握认为通过：从 0（肯定不通过）到 1（肯定通过）。",
        "reason": _WHY,
    },
    "PassageGrades": {
        "grades": "每个段落一项：段落编号、是否相关、0 到 1 的分数和理由。",
    },
    "PassageTexts": {"passages": "每个段落一项：它的编号，以及为它写的文字。"},
    "RankedPassages": {"ranking": "全部段落的编号，最相关的排在最前。"},
    "ChosenSentences": {
        "sentences": "有用的句子的编号；一句都没有时为空列表。",
    },
    "SelfQuery": {
        "query": "要在正文中查找的内容，不含过滤条件已经表达的部分；可以为空。",
        "filter": "过滤条件；问题没有提出条件时为 null。",
        "sort_by": "要求最新、最大等时用来排序的字段；否则为 null。",
        "descending": "最新或最大的排在最前时为 true。",
        "limit": "要求返回多少篇文档；没有说明时为 null。",
    },
    "DatabaseStatement": {
        "reason": "用哪些表或标签、怎样回答问题，或者为什么无法回答；用一个短句说明。",
        "statement": "一条只读取数据的语句；数据库无法回答问题时为空。",
    },
    "FilterCondition": {
        "field": "元数据字段的名称，与列出的完全一致。",
        "operator": "eq、ne、gt、gte、lt、lte、in、nin 或 contain 之一。",
        "value": "用来比较的值；in 和 nin 用列表；null 表示要找没有该字段的文档。",
    },
    "FilterGroup": {
        "join": '"and"：全部成立；"or"：至少一个成立；"not"：一个都不成立。',
        "conditions": "若干条件，或者嵌套的条件组。",
    },
    "Routes": {
        "choices": "适合这个问题的来源，最合适的排在最前；都不合适时为空列表。",
    },
    "RouteChoice": {
        "name": "来源的名称，与列出的完全一致。",
        "reason": "为什么合适，用一个短句说明。",
    },
    "Classification": {
        "intent": "'question' 为提问，'chat' 为闲聊，看不出想问什么则为 'unclear'。",
        "complexity": "什么都不用查为 'none'，查一次就够为 'single'，需要分几步查为 'multi'。",
        "reason": _WHY,
    },
    "NextHop": {
        "done": "已找到的内容足够，或者再也找不到更多时为 true。",
        "query": "下一个问题，能独立看懂；已经完成时为空。",
    },
    "UserFacts": {
        "facts": "若干短句，每句一个用户说过、长期有效的事实；没有时为空列表。",
    },
    "RelatedQuestions": {
        "queries": "这些段落能够回答的问题，每个都能独立看懂；没有时为空列表。",
    },
    "RetrieveNeeded": {
        "retrieve": "写下一句话需要查阅文档为 yes，否则为 no。",
    },
    "Critique": {
        "relevance": "段落是否有助于回答问题。",
        "support": "段落在多大程度上支持这句话：full 为完全，partial 为部分，none 为不支持。",
        "usefulness": _USEFUL,
    },
    "Usefulness": {"usefulness": _USEFUL},
    "Keywords": {
        "keywords": "一到三个关键词或名称，最重要的排在最前。",
    },
    "CitedSupport": {
        "reason": _WHY,
        "support": "段落说出了整条论断为 'full'，只说出一部分为 'partial'，否则为 'none'。",
    },
    "SupportLabels": {"labels": "每条论断一项：它的编号，以及它得到多少支持。"},
    "SupportLabel": {
        "id": "这条论断的编号。",
        "support": "段落说出了整条论断为 'full'，只说出一部分为 'partial'，否则为 'none'。",
    },
    "GeneratedQuestions": {
        "questions": "各个问题及其答案；这些段落不适合出题时为空列表。",
    },
    "GeneratedQuestion": {
        "question": "问题，能独立看懂。",
        "answers": "简短的答案，照抄段落中的原文；答案有几部分就写几项。",
        "reference": "完整的答案，用一两句话写成。",
        "quotes": "包含答案的句子，一字不改地照抄；用到的每个段落一句。",
    },
    "QuestionCheck": {
        "answerable": "段落完整地回答了问题时为 true。",
        "answer": "段落给出的答案；没有则为空。",
        "stands_alone": "不看段落也能看懂问题时为 true。",
        "needs_all": "回答问题需要用到每一个段落时为 true。",
        "reason": _WHY,
    },
}
"""Every described field; a test holds that none is missing."""
