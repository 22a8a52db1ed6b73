"""Splitting, beside LangChain's recursive splitter: speed, and where the cuts fall."""

from __future__ import annotations

from functools import partial

from harness import Row, at_least, interleaved, median_ratio
from langchain_core.documents import Document
from langchain_text_splitters import RecursiveCharacterTextSplitter

from rag_kit.indexing.splitting.api import split

_ENGLISH = (
    "Ducks are mostly aquatic birds, and may be found in both fresh water and sea water. They are sometimes "
    "confused with several types of unrelated water birds with similar forms, such as loons or divers. The word "
    "duck comes from an Old English noun, a derivative of a verb that means to bend down low as if to get under "
    "something! Dr. Miller counted 3.5 million of them in the U.S. in 1998. Why do they stay? Nobody knows yet.\n\n"
)
_CHINESE = (
    "鸭子大多生活在水中，淡水和海水里都能见到。它们有时会和其他外形相似的水鸟混淆，例如潜鸟或䴙䴘。“鸭”这个词从何而来？"
    "学者们说法不一；有人认为它模仿了叫声，也有人认为它来自更古老的语言。1998年，研究人员在湖边数到了3.5万只！\n\n"
)
_ENDS = tuple("。！？；，、：.!?;,:\"'”’）)")


def _texts(characters: int) -> list[tuple[str, str, float]]:
    """Name, text and the least ratio to reach.

    Paragraphs as long as abstracts and encyclopedia entries, and short ones: where two or more paragraphs fit
    into a chunk, LangChain's splitter only joins them. It looks at no sentence, and is faster but for Chinese; an
    ingest takes ten times as long for the rest of its work.
    """
    found = []
    for name, unit in (("English", _ENGLISH), ("Chinese", _CHINESE)):
        long = unit.strip() * 12 + "\n\n"
        found.append((f"{name}, long paragraphs", long * (characters // len(long)), 0.2))
        found.append((f"{name}, short paragraphs", unit * (characters // len(unit)), 0.02))
    return found


def run(quick: bool = False) -> list[Row]:
    rows = []
    for name, text, least in _texts(200_000 if quick else 1_000_000):
        documents = [Document(page_content=text)]

        def ours_in(size: int, overlap: int, documents: list[Document] = documents) -> list[Document]:
            return split(documents, chunk_size=size, chunk_overlap=overlap)

        def theirs_in(size: int, overlap: int, documents: list[Document] = documents) -> list[Document]:
            splitter = RecursiveCharacterTextSplitter(
                chunk_size=size, chunk_overlap=overlap, add_start_index=True
            )
            return splitter.split_documents(documents)

        for chunk_size, overlap in ((200, 20), (1000, 100)):
            times = interleaved(
                {
                    "rag_kit": partial(ours_in, chunk_size, overlap),
                    "langchain": partial(theirs_in, chunk_size, overlap),
                },
                repeats=3 if quick else 7,
            )
            ours, theirs = ours_in(chunk_size, overlap), theirs_in(chunk_size, overlap)
            rows.append(
                at_least(
                    f"split {name}, {chunk_size}/{overlap}: speed against LangChain's recursive splitter",
                    median_ratio(times, "langchain", "rag_kit"),
                    least,
                    f"chunks that end at punctuation: {_at_stop(ours):.0%}, LangChain's {_at_stop(theirs):.0%}",
                )
            )
    return rows


def _at_stop(chunks: list[Document]) -> float:
    return sum(chunk.page_content.endswith(_ENDS) for chunk in chunks) / len(chunks)
