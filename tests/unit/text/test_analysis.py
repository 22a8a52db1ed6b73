from __future__ import annotations

import json
import logging
import subprocess
import sys
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_kit.errors import InvalidInputError
from rag_kit.text import Analyzer, analysis, content_words, default_analyzer, fold
from rag_kit.text.analysis import warm_up


def test_english_is_stemmed_and_loses_stop_words() -> None:
    """Inflections meet, case and punctuation do not matter, stop words are gone."""
    analyze = default_analyzer()
    assert analyze("The Cats' running, and the cat's RUNS.") == ["cat", "run", "cat", "run"]
    assert Analyzer(stem=False, stop_words=False)("The cats") == ["the", "cats"]
    assert Analyzer(stop_words=["cats", "猫"])("the cats 猫") == ["the"]


@pytest.mark.parametrize(
    ("text", "whole", "parts"),
    [
        ("GPT-4o", "gpt4o", {"gpt", "4o", "4", "o"}),
        ("E_1042", "e_1042", {"e", "1042"}),
        ("v2.0.1", "v2.0.1", {"v2", "v", "2", "0", "1"}),
        ("snake_case_name", "snake_case_name", {"snake", "case", "name"}),
        ("covid-19", "covid19", {"covid", "19"}),
        ("2019-2020", "2019-2020", {"2019", "2020"}),
        ("FY2022", "fy2022", {"fy", "2022"}),
        ("XR20", "xr20", {"xr", "20"}),
        ("XR-20", "xr20", {"xr", "20"}),
        ("20XR's", "20xr", {"xr", "20"}),
        ("C++", "c++", {"c"}),
    ],
)
def test_identifiers_stay_whole_and_give_their_parts(text: str, whole: str, parts: set[str]) -> None:
    """An identifier is found by itself and by each part, inside Chinese text too."""
    for around in ("{}", "see {}, please", "使用{}模型"):
        terms = default_analyzer()(around.format(text))
        assert whole in terms
        assert parts <= set(terms)


def test_numbers_and_acronyms() -> None:
    """Thousands separators are dropped, decimals stay whole, U.S.A. is USA."""
    assert default_analyzer()("1,234,567 and 3.14 in the U.S.A.") == ["1234567", "3.14", "usa"]


def test_chinese_gives_words_pairs_and_characters() -> None:
    """A known long word is a term, an unknown name is found by its pairs, one character by itself."""
    terms = set(default_analyzer()("他毕业于清华大学，师从鲁迅尧。"))
    assert {"清华大学", "清华", "鲁迅", "迅尧", "他"} <= terms


@pytest.mark.parametrize(
    ("traditional", "simplified"), [("機器學習", "机器学习"), ("乾燥", "干燥"), ("瞭解", "了解")]
)
def test_traditional_meets_simplified(traditional: str, simplified: str) -> None:
    """Both scripts give the same terms."""
    assert default_analyzer()(traditional) == default_analyzer()(simplified)


def test_mixed_text_in_one_string() -> None:
    """English and Chinese rules hold side by side."""
    terms = default_analyzer()("LangChain支持GPT-4o的embeddings")
    assert {"langchain", "支持", "gpt4o", "embed"} <= set(terms)


def test_other_scripts_by_word() -> None:
    """Combining marks do not cut words; scripts without spaces give pairs."""
    assert default_analyzer()("हिन्दी भाषा café Москве") == ["हिन्दी", "भाषा", "café", "москве"]
    assert {"サーバー", "サー"} <= set(default_analyzer()("サーバー"))
    assert {"한국어", "한국"} <= set(default_analyzer()("한국어"))


@given(st.text())
def test_fold_twice_changes_nothing(text: str) -> None:
    """Folding is idempotent and never raises."""
    assert fold(fold(text)) == fold(text)


@given(st.text())
def test_any_text_gives_bounded_terms(text: str) -> None:
    """No input raises, gives an empty term or one longer than 128 characters."""
    assert all(0 < len(term) <= 128 for term in default_analyzer()(text))


def test_fold_unifies_widths_and_invisible_marks() -> None:
    """Full-width letters, ligatures, soft hyphens and case do not matter."""
    assert fold("ＧＰＴ ﬁne in\u00adfor\u200bmation ẞ") == "gpt fine information ss"


def test_settings_round_trip_and_refuse_others() -> None:
    """Settings survive JSON; unknown or newer ones are refused by name."""
    analyzer = Analyzer(stem=False, stop_words=["x"])
    assert Analyzer.from_settings(json.loads(json.dumps(analyzer.settings()))) == analyzer
    for wrong in (
        {"version": 99},
        {},
        {**analyzer.settings(), "language": "en"},
        {**analyzer.settings(), "new": 1},
    ):
        with pytest.raises(InvalidInputError, match=r"version|unknown keys"):
            Analyzer.from_settings(wrong)


def test_wrong_arguments_are_refused() -> None:
    """The message names what is allowed."""
    with pytest.raises(InvalidInputError, match="list of words"):
        Analyzer(stop_words="the")
    with pytest.raises(InvalidInputError, match="must be a str"):
        default_analyzer()(None)  # type: ignore[arg-type]


def test_word_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache of words is emptied rather than grown without end."""
    monkeypatch.setattr("rag_kit.text.analysis._CACHE_LIMIT", 10)
    analyzer = Analyzer()
    analyzer(" ".join(f"word{n}" for n in range(100)))
    assert len(analyzer._terms) <= 10


def test_threads_agree() -> None:
    """Many threads on a fresh analyzer get the terms that one gets."""
    texts = [f"running runner{n} studies flies 北京大学{n}" for n in range(300)]
    expected = [Analyzer()(text) for text in texts]
    analyzer, results = Analyzer(), {}
    threads = [
        threading.Thread(target=lambda n=n: results.update({n: [analyzer(text) for text in texts]}))
        for n in range(6)
    ]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert all(results[n] == expected for n in range(6))


def test_content_words_keep_the_topic() -> None:
    """Question words and auxiliaries are left out in both languages."""
    assert content_words("What does the river carry?") == ["river", "carri"]
    assert content_words("长江的长度是多少？") == ["长江", "长度"]
    assert content_words("什么是？") == []


def test_jieba_stands_in_for_rjieba(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without rjieba, jieba cuts the same words, and their parts of speech, and logs nothing."""
    text = "小明硕士毕业于中国科学院计算所"
    words, tagged = analysis.load_segmenter()(text), analysis.tag_words(text)
    monkeypatch.setitem(sys.modules, "rjieba", None)
    analysis.load_segmenter.cache_clear()
    Analyzer()  # reads jieba's dictionary, which no call on an event loop may wait for
    assert analysis.load_segmenter.cache_info().currsize == 1
    assert analysis.load_segmenter().__module__ == "jieba"
    assert (analysis.load_segmenter()(text), analysis.tag_words(text)) == (words, tagged)
    assert logging.getLogger("jieba").getEffectiveLevel() >= logging.ERROR
    analysis.load_segmenter.cache_clear()


def test_import_loads_no_dictionary() -> None:
    """Importing the package is light, and only Chinese text loads a Chinese dictionary."""
    code = (
        "import sys, rag_kit.text as t; chinese = {'jieba', 'rjieba'}\n"
        "assert not sys.modules.keys() & {'Stemmer', 'numpy', *chinese}\n"
        "from rag_kit.text.analysis import warm_up; warm_up(); "
        "t.Analyzer()('plain words'); t.content_words('Which Ελληνικά?')\n"
        "assert not sys.modules.keys() & chinese\n"
        "assert '北京大学' in t.Analyzer()('北京大学') and 'rjieba' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    "missing", ["", pytest.param("sys.modules['rjieba'] = None; ", marks=pytest.mark.slow)]
)
def test_the_first_chinese_text_blocks_no_event_loop(missing: str) -> None:
    """rjieba's dictionary is part of its module; jieba's file is read when an analyzer is made, not by a call."""
    code = (
        f"import asyncio, sys; {missing}from rag_kit.text import Analyzer\n"
        "from blockbuster import blockbuster_ctx\n"
        "analyzer = Analyzer()\n"
        "async def first():\n"
        "    with blockbuster_ctx():\n        return analyzer('北京大学')\n"
        "assert '北京大学' in asyncio.run(first())"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


async def test_no_blocking_call_after_construction() -> None:
    """In an event loop where blocking calls raise, a constructed analyzer works."""
    from support.blocking import blockbuster_ctx

    warm_up()
    analyzer = Analyzer()
    with blockbuster_ctx():
        assert analyzer("新词 fresh words कखग")
        assert content_words("新词 fresh")


@settings(max_examples=20)
@given(st.text(alphabet="ab-_.'1,+#", max_size=30))
def test_odd_joins_do_not_raise(text: str) -> None:
    """Any run of joining marks is cut without error."""
    default_analyzer()(text)


def test_long_runs_are_not_remembered() -> None:
    """The memory of an analyzer is bounded by letters, not by entries alone; the terms are the same each time."""
    analyzer = Analyzer()
    runs = [f"{'abcdefghij' * 3_000}{n}" for n in range(50)]
    assert [analyzer(run) for run in runs] == [analyzer(run) for run in runs]
    assert sum(map(len, analyzer._terms)) < 50_000
