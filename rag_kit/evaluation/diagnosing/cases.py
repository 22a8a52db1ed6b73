"""From what is low and what is high to the cause, and to the parts of this kit that remedy it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal, get_args

Level = Literal["high", "low"]

#: The causes. ``model`` to ``retrieval`` are the four of a low answer score; the other three are of a good answer.
CaseName = Literal["model", "noise", "coverage", "retrieval", "right", "right_noisy", "right_unsupported"]
CASES: tuple[CaseName, ...] = get_args(CaseName)

#: (answer, recall, precision) -> cause.
TABLE: Mapping[tuple[Level | None, ...], CaseName] = {
    ("low", "high", "high"): "model",
    ("low", "high", "low"): "noise",
    ("low", "low", "high"): "coverage",
    ("low", "low", "low"): "retrieval",
    ("high", "high", "high"): "right",
    ("high", "high", "low"): "right_noisy",
    ("high", "low", "high"): "right_unsupported",
    ("high", "low", "low"): "right_unsupported",
}


@dataclass(frozen=True)
class Text:
    """A text in both languages."""

    en: str
    zh: str

    def of(self, language: str) -> str:
        """The text of a language; English for any other than Chinese."""
        return self.zh if language == "zh" else self.en


@dataclass(frozen=True)
class Remedy:
    """What to do, and the part of this kit that does it.

    Args:
        part: ``"module:name"`` of the part.
        text: What it is for here.
    """

    part: str
    text: Text

    @property
    def name(self) -> str:
        """The part as one would import it, such as ``rag_kit.retrieval.RerankRetriever``."""
        return self.part.replace(":", ".")

    def load(self) -> Any:
        """The class or function itself."""
        module, _, name = self.part.partition(":")
        return getattr(import_module(module), name)


@dataclass(frozen=True)
class Case:
    """A cause and its remedies, the cheapest to try first.

    Args:
        name: Its key.
        title: A few words.
        cause: What is wrong.
        remedies: What to do.
    """

    name: CaseName
    title: Text
    cause: Text
    remedies: tuple[Remedy, ...] = ()


def _remedy(part: str, en: str, zh: str) -> Remedy:
    return Remedy(part, Text(en, zh))


_RERANK = _remedy(
    "rag_kit.retrieval:RerankRetriever",
    "Fetch more, rank them again and keep the best; ScoreGap cuts where the scores drop.",
    "先多取一些，再重新排序，只留下最好的；ScoreGap 会在分数骤降处截断。",
)
_COMPRESS = _remedy(
    "rag_kit.retrieval:CompressionRetriever",
    "Keep only the sentences of each passage that the question is about.",
    "每个段落只保留与问题有关的句子。",
)
_WINDOW = _remedy(
    "rag_kit.retrieval:SentenceWindowRetriever",
    "Bring the sentences before and after what was found along with it.",
    "命中一句时，把它前后的句子一并带上。",
)
_PARENTS = _remedy(
    "rag_kit.retrieval:ParentDocumentRetriever",
    "Search small pieces, hand the model the larger part that they stand in.",
    "用小片段检索，把它们所在的大段交给模型。",
)
_ENSEMBLE = _remedy(
    "rag_kit.retrieval:EnsembleRetriever",
    "Search in several ways (keywords, vectors) and fuse the rankings; compare() says which add to each other.",
    "同时用多种方式检索（关键词、向量）并融合排名；compare() 会说明哪些方式互补。",
)
_SPLIT = _remedy(
    "rag_kit.indexing:split",
    "Other chunks: change chunk_size and chunk_overlap, so that a chunk says by itself what it is about.",
    "换一种切分：调整 chunk_size 与 chunk_overlap，让每个片段单独看也说得清楚。",
)

CASE_OF: Mapping[CaseName, Case] = {
    "model": Case(
        "model",
        Text("The model", "模型"),
        Text(
            "The right passages were there, on top, and the answer is still wrong: the model does not make use of "
            "them, or the passages lack the context to be understood.",
            "正确的段落已经找到，而且排在前面，答案却仍然不对：模型没有用好它们，或者段落缺少上下文，让人看不懂。",
        ),
        (
            _remedy(
                "rag_kit.models:chat_model",
                "A stronger chat model.",
                "换用更强的对话模型。",
            ),
            _remedy(
                "rag_kit.prompts:load_prompt",
                "Your own wording of the answer prompt, from a folder of your own.",
                "在自己的文件夹里改写回答用的提示词。",
            ),
            _PARENTS,
            _WINDOW,
            _SPLIT,
            _remedy(
                "rag_kit.graphs:build_self_rag",
                "Let the model judge its own answer against the passages and write it again.",
                "让模型对照段落评判自己的答案，并重新作答。",
            ),
        ),
    ),
    "noise": Case(
        "noise",
        Text("Noise", "干扰过多"),
        Text(
            "What the answer needs was found, but among much that has nothing to do with it, or below it.",
            "答案所需的内容已经找到，但混在大量无关内容之中，或者排在它们后面。",
        ),
        (
            _RERANK,
            _ENSEMBLE,
            _COMPRESS,
            _remedy(
                "rag_kit.query_construction:SelfQueryRetriever",
                "Filter by what the question says of metadata (year, author, kind) before searching.",
                "先按问题中提到的元数据（年份、作者、类别）筛选，再检索。",
            ),
            _remedy(
                "rag_kit.graphs:build_crag",
                "Have every passage judged and drop those that do not help.",
                "逐段评判，去掉没有帮助的段落。",
            ),
        ),
    ),
    "coverage": Case(
        "coverage",
        Text("Too little was retrieved", "召回不足"),
        Text(
            "What was retrieved is to the point, but it is not all that the answer needs.",
            "召回的内容切题，但没有覆盖答案所需的全部信息。",
        ),
        (
            _remedy(
                "rag_kit.retrieval:index_retriever",
                "Return more passages: a greater k, here or in any retriever of this kit.",
                "返回更多段落：增大 k，这里和本工具包的任何检索器都可以。",
            ),
            _remedy(
                "rag_kit.retrieval:MultiQueryRetriever",
                "Ask in several wordings and join what they find.",
                "用几种不同的问法检索，再合并结果。",
            ),
            _remedy(
                "rag_kit.retrieval:DecompositionRetriever",
                "A question of several parts: search for each part.",
                "一个问题包含几个部分时，逐个部分检索。",
            ),
            _ENSEMBLE,
            _PARENTS,
            _WINDOW,
        ),
    ),
    "retrieval": Case(
        "retrieval",
        Text("Retrieval as a whole", "整个检索环节"),
        Text(
            "What the answer needs was not found, and what was found is mostly beside the point. The cause may lie "
            "in reading the files, in splitting, in the embedding model, in the search, or in the question.",
            "答案所需的内容没有找到，找到的大多无关。原因可能在文件解析、切分、向量模型、检索方式，或问题本身。",
        ),
        (
            _remedy(
                "rag_kit.indexing:read",
                "Look at what was read: columns, tables and headings must have come out in order.",
                "先看解析结果：分栏、表格和标题的顺序必须正确。",
            ),
            _remedy(
                "rag_kit.indexing:register_reader",
                "A reader of your own for files that come out wrong.",
                "解析不正确的文件，换成自己的读取函数。",
            ),
            _SPLIT,
            _remedy(
                "rag_kit.models:embedding_model",
                "A newer embedding model, or one for the language of the documents; then build the index again.",
                "换用更新的、或适合文档语言的向量模型，然后重建索引。",
            ),
            _ENSEMBLE,
            _RERANK,
            _WINDOW,
            _remedy(
                "rag_kit.retrieval:HyDERetriever",
                "The question and the documents use other words: search with a draft of the answer.",
                "问题与文档用词不同时，用一段假设的答案来检索。",
            ),
            _remedy(
                "rag_kit.graphs:build_adaptive_rag",
                "The question is not clear enough: ask back before searching.",
                "问题说得不够清楚时，先反问，再检索。",
            ),
        ),
    ),
    "right": Case(
        "right",
        Text("Right", "正确"),
        Text("The answer is right, and stands on what was retrieved.", "答案正确，而且以召回的内容为依据。"),
    ),
    "right_noisy": Case(
        "right_noisy",
        Text("Right, in spite of noise", "正确，但干扰较多"),
        Text(
            "The answer is right, but much that was retrieved has nothing to do with it: tokens are paid for nothing, "
            "and a weaker model may stumble.",
            "答案正确，但召回的内容大多无关：白白消耗词元，换成较弱的模型就可能出错。",
        ),
        (_RERANK, _COMPRESS),
    ),
    "right_unsupported": Case(
        "right_unsupported",
        Text("Right, but not from the passages", "正确，但依据不在段落中"),
        Text(
            "The answer is right, but the passages do not hold what it says: the model knew it, or guessed it, and "
            "next time it may guess wrong.",
            "答案正确，但段落里没有相应的内容：模型凭自己的知识或猜测作答，下一次可能猜错。",
        ),
        (
            _remedy(
                "rag_kit.text.citations:check_citations",
                "See which statements of the answer no passage holds.",
                "看看答案中的哪些说法没有段落支持。",
            ),
            _remedy(
                "rag_kit.retrieval:index_retriever",
                "Return more passages: a greater k.",
                "返回更多段落：增大 k。",
            ),
            _ENSEMBLE,
        ),
    ),
}
