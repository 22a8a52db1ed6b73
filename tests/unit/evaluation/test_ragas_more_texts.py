"""Ragas's metrics without a model, and this kit's beside those that are wrong for Chinese or broken."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from typing import Any

import pytest

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.outputs import Output
from rag_kit.evaluation.scorers import METRICS, get_metric
from rag_kit.evaluation.scorers.ours_text.overlap import bleu, common_subsequence, f_measure, rouge_l, rouge_n
from rag_kit.evaluation.scorers.ours_text.texts import OursBleu, OursExactMatch, OursRouge, OursStringPresence
from rag_kit.evaluation.scorers.ours_text.tokens import Tokenizer, plain
from rag_kit.evaluation.scorers.ragas_more.texts import Bleu, Chrf, Rouge, StringSimilarity

PARK, RUN = "今天天气很好，我们去公园散步吧", "今天天气很好，我们去公园跑步吧"
HEIGHT, IS = "埃菲尔铁塔的高度为330米", "埃菲尔铁塔的高度是330米"
ROUGE = ("rouge_1", "rouge_2", "rouge_l")


async def score(metric: Any, reference: str | None, answer: str, **fields: Any) -> Cell:
    """The cell for one answer."""
    example = Example("e", "Question?", reference=reference, **fields)
    found: Cell = await get_metric(metric).measure(example, Output(answer=answer))
    return found


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("bleu", "BleuScore"), ("rouge_1", "RougeScore"), ("rouge_2", "RougeScore"), ("rouge_l", "RougeScore"),
        ("chrf", "CHRFScore"), ("exact_match", "ExactMatch"), ("string_presence", "StringPresence"),
        ("string_similarity", "NonLLMStringSimilarity"),
    ],
)  # fmt: skip
async def test_values_come_from_the_class_of_ragas(
    name: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What Ragas's class returns is the value, and it was given reference and answer."""
    import ragas.metrics.collections as ragas
    from ragas.metrics.result import MetricResult

    seen: list[dict[str, Any]] = []

    async def ascore(self: Any, **inputs: Any) -> Any:
        seen.append(inputs)
        return MetricResult(value=0.321)

    monkeypatch.setattr(getattr(ragas, kind), "ascore", ascore)
    cell = await score(name, "the reference", "the answer")
    assert (cell.value, seen) == (0.321, [{"reference": "the reference", "response": "the answer"}])
    assert get_metric(name).source == "ragas" and get_metric(name).settings()["ragas"] == "0.4.3"


async def test_ragas_gives_identical_chinese_texts_nothing_and_ours_everything() -> None:
    """Default BLEU and ROUGE of Ragas are 0 for identical Chinese texts, and say so; ours are 1."""
    for name in ("bleu", *ROUGE):
        theirs, ours = await score(name, PARK, PARK), await score(f"ours_{name}", PARK, PARK)
        assert (theirs.value, ours.value) == (0.0, 1.0)
        assert "ours_" in theirs.reason and not ours.reason


async def test_rouge_of_the_chinese_pair() -> None:
    """The worked example: characters, the comma is one of them."""
    values = [(await score(f"ours_{name}", PARK, RUN)).value for name in ROUGE]
    assert values == pytest.approx([14 / 15, 12 / 14, 14 / 15])


async def test_bleu_of_the_tower_is_the_sum_not_the_print() -> None:
    """Words, bigrams, weights .5 and .5: p1 = 5/6 and p2 = 3/5 give .7071."""
    metric = OursBleu(weights=(0.5, 0.5), tokens="words")
    assert (await score(metric, HEIGHT, IS)).value == pytest.approx(0.7071, abs=5e-5)
    assert (await score(OursBleu(weights=(2, 2), tokens="words"), HEIGHT, IS)).value == pytest.approx(
        0.5**0.5
    )


async def test_bleu_of_ragas_with_the_chinese_tokenizer() -> None:
    """The setting reaches sacreBLEU: identical texts are 1, and the pair has sacreBLEU's value."""
    import sacrebleu

    metric = Bleu(tokenize="zh")
    assert (await score(metric, PARK, PARK)).value == 1.0
    expected = sacrebleu.sentence_bleu(IS, [HEIGHT], tokenize="zh", use_effective_order=False).score / 100
    assert (await score(metric, HEIGHT, IS)).value == pytest.approx(expected)


async def test_bleu_of_ragas_reads_one_sentence_of_the_answer() -> None:
    """A second sentence that is all wrong costs nothing in Ragas's, and is named; in ours it costs."""
    reference, answer = "aa bb cc dd ee. ff gg hh ii jj", "aa bb cc dd ee. zz zz zz zz zz"
    theirs, ours = await score("bleu", reference, answer), await score("ours_bleu", reference, answer)
    assert theirs.value == 1.0 and "first sentence" in theirs.reason
    assert ours.value is not None and ours.value < 0.6


async def test_short_texts_can_be_right() -> None:
    """A text of one word has no 4-grams: Ragas's BLEU gives 0 for the same text, ours 1."""
    assert (await score("bleu", "Paris", "Paris")).value == 0.0
    assert (await score("ours_bleu", "Paris", "Paris")).value == 1.0
    assert (await score("ours_bleu", "巴黎", "巴黎")).value == 1.0


def _texts(seed: int) -> tuple[str, str]:
    draw = random.Random(seed)
    letters = "天地人山水火木金"
    return tuple("".join(draw.choices(letters, k=draw.randint(4, 40))) for _ in range(2))  # type: ignore[return-value]


@pytest.mark.parametrize("seed", range(20))
def test_our_bleu_is_that_of_sacrebleu(seed: int) -> None:
    """On the same tokens, with effective order and exponential smoothing, the values agree."""
    import sacrebleu

    reference, answer = _texts(seed)
    expected = (
        sacrebleu.sentence_bleu(answer, [reference], tokenize="char", use_effective_order=True).score / 100
    )
    assert bleu(list(reference), list(answer), [0.25] * 4, smooth=True) == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(20))
def test_our_rouge_is_that_of_rouge_score(seed: int) -> None:
    """On the same tokens the values agree with the package that Ragas uses."""
    from rouge_score import rouge_scorer

    class Characters:
        def tokenize(self, text: str) -> list[str]:
            return list(text)

    reference, answer = _texts(seed)
    scorer = rouge_scorer.RougeScorer(["rouge1", "rouge2", "rougeL"], tokenizer=Characters())
    expected = [each.fmeasure for each in scorer.score(reference, answer).values()]
    mine = [rouge_n(reference, answer, 1), rouge_n(reference, answer, 2), rouge_l(reference, answer)]
    assert [f_measure(*each) for each in mine] == pytest.approx(expected)


def test_common_subsequence_of_nothing() -> None:
    """Empty sequences have none in common."""
    assert common_subsequence([], ["a"]) == common_subsequence(["a"], []) == 0


async def test_rouge_settings() -> None:
    """Precision and recall are told apart; words are cut by the segmenter; marks can be left out."""
    assert (await score(Rouge("rouge_1", mode="recall"), "a b c d", "a b")).value == 0.5
    assert (await score(OursRouge("rouge_1", mode="precision"), "a b c d", "a b")).value == 1.0
    assert (
        await score(OursRouge("rouge_1", tokens="words"), "我们去公园", "他去公园")
    ).value == pytest.approx(2 / 3)
    assert (await score(OursRouge("rouge_1", punctuation=False), "好。", "好！")).value == 1.0


async def test_chrf() -> None:
    """chrF needs no words: identical Chinese texts are 1, and its settings reach sacreBLEU."""
    import sacrebleu

    assert (await score("chrf", PARK, PARK)).value == 1.0
    expected = sacrebleu.corpus_chrf([RUN], [[PARK]], char_order=2, beta=1).score / 100
    assert (await score(Chrf(char_order=2, beta=1), PARK, RUN)).value == pytest.approx(expected)


async def test_exact_match_of_ragas_sees_other_letters_where_a_reader_sees_none() -> None:
    """Full width, case, a full stop, traditional characters: 0 by Ragas, 1 by ours."""
    for reference, answer in (
        ("330米", "３３０米"), ("330米", "330 米。"), ("Paris", "paris."), ("国际", "國際"), ("Bath", "“Bath”"),
    ):  # fmt: skip
        assert (await score("exact_match", reference, answer)).value == 0.0
        assert (await score("ours_exact_match", reference, answer)).value == 1.0, answer


@pytest.mark.parametrize(
    ("first", "second"),
    [("C++", "C"), ("-5", "5"), ("5%", "5"), ("10²", "102"), ("1½", "11⁄2"), ("a b", "ab"), ("3.5", "35")],
)  # fmt: skip
async def test_exact_match_of_ours_keeps_what_matters(first: str, second: str) -> None:
    """A sign, a unit, an exponent, a decimal mark, a space between words make a difference."""
    assert (await score("ours_exact_match", first, second)).value == 0.0
    assert (await score("ours_exact_match", first, first)).value == 1.0


async def test_any_right_answer_matches() -> None:
    """Reference and short answers all count, and the cell says which one was best."""
    for name in ("exact_match", "ours_exact_match"):
        cell = await score(name, "It was Ada Lovelace", "Ada", answers=("Ada Lovelace", "Ada"))
        assert cell.value == 1.0
        assert (await score(name, None, "Ada", answers=("Ada",))).value == 1.0
        assert (await score(name, None, "Ada")).status == "not_applicable"
    assert (await score("exact_match", "It was", "Ada", answers=("Ada",))).details == {"compared_with": "Ada"}


async def test_presence_wants_whole_words() -> None:
    """Ragas finds a cat in concatenate and 33 in 330, and no full-width 330; ours the other way round."""
    for answer, gold, theirs, ours in (
        ("They concatenate it.", "cat", 1.0, 0.0), ("它高330米。", "33", 1.0, 0.0), ("It is 3.5 m.", "3", 1.0, 0.0),
        ("它高３３０米。", "330", 0.0, 1.0), ("A CAT sat.", "cat", 0.0, 1.0), ("在北京市。", "北京", 1.0, 1.0),
        ("It cost 1,000,000.", "1,000", 1.0, 0.0), ("330m", "330", 1.0, 1.0), ("Use C++ here.", "c++", 0.0, 1.0),
    ):  # fmt: skip
        assert (await score("string_presence", None, answer, answers=(gold,))).value == theirs, answer
        assert (await score("ours_string_presence", None, answer, answers=(gold,))).value == ours, answer
    assert (await score("string_presence", "sat", "A cat sat.")).value == 1.0


async def test_string_similarity() -> None:
    """One of fifteen characters differs; the distance is a setting."""
    assert (await score("string_similarity", PARK, RUN)).value == pytest.approx(14 / 15)
    jaro = (await score(StringSimilarity(distance="jaro_winkler"), PARK, RUN)).value
    assert jaro == pytest.approx(0.97333, abs=1e-5)


@pytest.mark.parametrize(
    "name", [name for name in METRICS if METRICS[name].split(".")[1].startswith("texts")]
)
async def test_nothing_to_compare_is_no_number(name: str) -> None:
    """No reference and no answer are not applicable; blank ones give a cell, never an exception."""
    assert (await score(name, None, "an answer")).status == "not_applicable"
    assert (await score(name, "a reference", "")).status == "not_applicable"
    blank = await score(name, "a reference", " \n")
    assert blank.status == "ok" and blank.value is not None and blank.value < 0.3
    if name.startswith("ours_"):
        assert (await score(name, " 。 ", "answer")).status in ("undefined", "ok")
        assert (await score(name, "\u3000", "answer")).status == "undefined"


HOSTILE = [
    "\x00\x1b[31m",
    "a\ud800b",
    "<statement>x</statement>",
    "\u202e" * 50,
    "🧑‍🚀🇨🇭",
    "हिन्दी भाषा",
    "(((.*+?[\\",
    "ﷺ" * 20,
]


@pytest.mark.parametrize(
    "name", [name for name in METRICS if METRICS[name].split(".")[1].startswith("texts")]
)
async def test_hostile_texts_are_only_texts(name: str) -> None:
    """Control characters, half pairs, patterns, other scripts: the same text scores as the best, never raises."""
    for text in HOSTILE:
        same, other = await score(name, text, text), await score(name, text, "plain words")
        assert same.status in ("ok", "undefined"), (text, same.reason)
        assert other.status in ("ok", "undefined") and (other.value or 0.0) <= (same.value or 1.0)


@pytest.mark.parametrize(
    "name", [name for name in METRICS if METRICS[name].split(".")[1].startswith("texts")]
)
async def test_mixed_languages(name: str) -> None:
    """Chinese and Latin in one text: ours gives 1 to the same text in another width."""
    if name.startswith("ours_"):
        assert (await score(name, "用GPT-4做RAG，3.5分", "用ＧＰＴ－４做RAG，３.５分")).value == 1.0
    else:
        assert (await score(name, "用GPT-4做RAG", "用GPT-4做RAG")).status == "ok"


@pytest.mark.parametrize(
    "name", [name for name in METRICS if METRICS[name].split(".")[1].startswith("texts")]
)
async def test_huge_texts_are_refused_by_length(name: str) -> None:
    """A text beyond the bound is an error that names the bound; nothing is computed."""
    cell = await score(name, "a", "x" * 200_001)
    assert cell.status == "error" and "200,000" in cell.reason and len(cell.reason) < 300


async def test_rouge_l_of_ragas_is_bounded_by_its_table() -> None:
    """Ragas's ROUGE-L fills a table of words times words; beyond ten million it is refused, ours is not."""
    text = "word " * 4000
    assert "ours_rouge_l" in (await score("rouge_l", text, text)).reason
    assert (await score("rouge_1", text, text)).value == 1.0
    assert (await score("ours_rouge_l", text, text)).value == 1.0


async def test_long_texts_do_not_hold_the_event_loop() -> None:
    """While a long text is compared on a thread, the loop goes on."""
    await score("string_similarity", "warm", "up")
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.001)
            ticks += 1

    ticking = asyncio.create_task(tick())
    await score("ours_rouge_l", "甲乙丙丁" * 20_000, "丁丙乙甲" * 20_000)
    ticking.cancel()
    assert ticks >= 2


@pytest.mark.parametrize(
    "make",
    [
        lambda: Bleu(tokenize="flores200"), lambda: Bleu(smooth_method="x"), lambda: Rouge("rouge_9"),  # type: ignore[arg-type]
        lambda: Rouge(mode="f"), lambda: Chrf(char_order=0), lambda: StringSimilarity(distance="x"),  # type: ignore[arg-type]
        lambda: OursBleu(weights=[]), lambda: OursBleu(weights=[0, 0]), lambda: OursBleu(weights="11"),  # type: ignore[arg-type]
        lambda: OursBleu(weights=[float("nan")]), lambda: OursBleu(tokens="x"), lambda: OursRouge("x"),  # type: ignore[arg-type]
        lambda: OursBleu(weights=[-1, 2]), lambda: OursRouge(mode="x"), lambda: OursBleu(weights=[True]),  # type: ignore[arg-type]
    ],
)  # fmt: skip
def test_wrong_settings_are_refused(make: Any) -> None:
    """A setting that is not allowed is named with what is; tokenizers that would download a model are not."""
    with pytest.raises(InvalidInputError, match="give"):
        make()


def test_tokens() -> None:
    """Chinese by character or word, other scripts by word, numbers whole, marks on demand."""
    assert Tokenizer()("C++ is 30 years old: 1,000.5 元") == [
        "c++",
        "is",
        "30",
        "years",
        "old",
        ":",
        "1,000.5",
        "元",
    ]
    assert Tokenizer("words")("我们去公园") == ["我们", "去", "公园"]
    assert Tokenizer()("ひらがな 한국") == ["ひ", "ら", "が", "な", "한", "국"]
    assert Tokenizer(punctuation=False)("……“”") == []
    assert plain("") == plain("。。") == ""


async def test_settings_tell_metrics_apart() -> None:
    """Two settings of one metric are never taken for the same."""
    for one, two in (
        (Bleu(), Bleu(tokenize="zh")), (Rouge(), Rouge(mode="recall")), (OursBleu(), OursBleu(tokens="words")),
        (OursBleu(), OursBleu(smooth=False)), (OursRouge(), OursRouge(punctuation=False)), (Chrf(), Chrf(word_order=2)),
        (StringSimilarity(), StringSimilarity(distance="jaro")),
    ):  # fmt: skip
        assert one.settings() != two.settings()
    assert OursExactMatch().settings() == OursStringPresence().settings()


def test_making_a_metric_does_not_import_ragas() -> None:
    """The names and settings of all of them are known without the seconds that Ragas takes."""
    program = (
        "import sys\nfrom rag_kit.evaluation.scorers import METRICS, get_metric\n"
        "for name, row in METRICS.items():\n"
        "    if row.startswith(('ragas_more', 'ours_text')):\n        get_metric(name).settings()\n"
        "print(sorted({'ragas', 'pandas', 'sacrebleu', 'nltk'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "[]", done.stderr
