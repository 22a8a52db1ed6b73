"""BLEU and ROUGE on this kit's tokens, which are right for Chinese; sacreBLEU and rouge_score do the sums."""

from __future__ import annotations

import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Literal

from rag_kit.concurrency.bridge import run_in_thread
from rag_kit.errors import InvalidInputError
from rag_kit.evaluation._files import import_extra
from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.judge.judge import Judge
from rag_kit.evaluation.metric import Metric
from rag_kit.evaluation.outputs import Output
from rag_kit.text import fold
from rag_kit.text.analysis import load_segmenter
from rag_kit.text.citations.check import renumber
from rag_kit.text.language import HAN, SPECIAL, unicode_runs

Unit = Literal["characters", "words"]
_MAX_PAIRS = 10_000_000  # of ROUGE-L's table of tokens, which Python fills in 5 seconds
_KINDS = {"ours_rouge_1": "rouge1", "ours_rouge_2": "rouge2", "ours_rouge_l": "rougeL"}
_HAN = re.compile(f"[{HAN}]+")


def tokens_of(text: str, unit: Unit = "characters") -> list[str]:
    """Return the tokens of a text, with case, width and script folded.

    Chinese is cut into ``"characters"`` or, by jieba, into ``"words"``. Words of other scripts, numbers and marks are
    always one token; kana, Hangul and Thai are cut by character.

    Example:
        >>> tokens_of("我们去公园，on 3.5 legs.")
        ['我', '们', '去', '公', '园', ',', 'on', '3.5', 'legs', '.']
        >>> tokens_of("我们去公园，on 3.5 legs.", "words")
        ['我们', '去', '公园', ',', 'on', '3.5', 'legs', '.']
    """
    split_han: Callable[[str], list[str]] = load_segmenter() if unit == "words" else list
    tokens: list[str] = []
    # runs of one script, such as Chinese or Latin, and single marks
    for match in re.finditer(rf"(?:{unicode_runs().pattern})|[^\w\s]|_", fold(text)):
        token = match[0]
        if _HAN.match(token):
            tokens.extend(split_han(token))
        elif SPECIAL.match(token):
            tokens.extend(token)
        else:
            tokens.append(token)
    return tokens


class _Overlap(Metric):
    """A function of the tokens of reference and answer, from 0 to 1."""

    source, stage = "ours", "end_to_end"
    example_needs = frozenset({"reference"})
    min_tokens = 1

    def __init__(self, name: str, tokens: Unit) -> None:
        if tokens not in ("characters", "words"):
            raise InvalidInputError(f"tokens={tokens!r:.80} is not allowed; give characters or words")
        self.name, self.tokens = name, tokens

    def settings(self) -> dict[str, Any]:
        """Give the settings that decide the value."""
        return {"version": 4, "tokens": self.tokens}

    async def score(self, example: Example, output: Output, judge: Judge | None) -> Cell:
        """Return the value, without marks of citations; it is undefined where the reference has no n-gram."""
        texts = [renumber(text or "", {}, output.contexts) for text in (example.reference, output.answer)]
        return await run_in_thread(self.compute, *texts)

    def compute(self, reference: str, answer: str) -> Cell:
        """Return the cell of two texts: undefined if the reference is too short, InvalidInputError if they are long."""
        expected, actual = tokens_of(reference, self.tokens), tokens_of(answer, self.tokens)
        if len(expected) < self.min_tokens:
            return Cell.undefined(
                f"the reference has {len(expected)} tokens; {self.name} compares {self.min_tokens} at a time"
            )
        return Cell.ok(self.overlap(expected, actual))

    def overlap(self, expected: list[str], actual: list[str]) -> float:
        """Return the value of two lists of tokens."""
        raise NotImplementedError


class OursBleu(_Overlap):
    """BLEU (Papineni et al., 2002) of the whole answer by sacreBLEU, on this kit's tokens.

    Unlike Ragas's `bleu` it cuts Chinese, counts every sentence, and texts of under four tokens can score 1.

    Args:
        order: Longest n-gram; all sizes weigh the same.
        tokens: ``"characters"`` or ``"words"``, for Chinese.
    """

    def __init__(self, name: str = "ours_bleu", *, order: int = 4, tokens: Unit = "characters") -> None:
        if type(order) is not int or not 1 <= order <= 20:
            raise InvalidInputError(f"order={order!r:.80} is not allowed; give a whole number from 1 to 20")
        super().__init__(name, tokens)
        self.order = order

    def settings(self) -> dict[str, Any]:
        """Give the settings that decide the value."""
        return {**super().settings(), "order": self.order}

    def overlap(self, expected: list[str], actual: list[str]) -> float:
        """Return sacreBLEU's value of two lists of tokens."""
        create = import_extra("sacrebleu.metrics.bleu", f"the metric {self.name!r}").BLEU
        bleu = create(tokenize="none", smooth_method="exp", max_ngram_order=self.order, effective_order=True)
        value: float = bleu.sentence_score(" ".join(actual), [" ".join(expected)]).score
        return min(1.0, value / 100)


class OursRouge(_Overlap):
    """ROUGE (Lin, 2004), the F1 by rouge_score, on this kit's tokens.

    Args:
        name: ``"ours_rouge_1"``, ``"ours_rouge_2"`` (n-grams) or ``"ours_rouge_l"`` (longest common subsequence).
        tokens: ``"characters"`` or ``"words"``, for Chinese.
    """

    def __init__(self, name: str = "ours_rouge_l", *, tokens: Unit = "characters") -> None:
        if name not in _KINDS:
            raise InvalidInputError(f"name={name!r:.80} is not allowed; give one of {', '.join(_KINDS)}")
        super().__init__(name, tokens)
        self.min_tokens = 2 if name == "ours_rouge_2" else 1

    def overlap(self, expected: list[str], actual: list[str]) -> float:
        """Return rouge_score's F1 of two lists of tokens."""
        if self.name == "ours_rouge_l" and len(expected) * len(actual) > _MAX_PAIRS:
            raise InvalidInputError(
                f"the texts have {len(expected):,} and {len(actual):,} tokens; {self.name} compares at most "
                f"{_MAX_PAIRS:,} pairs, so cut them to what is to be compared"
            )
        kind = _KINDS[self.name]
        module = import_extra("rouge_score.rouge_scorer", f"the metric {self.name!r}")
        scorer = module.RougeScorer([kind], tokenizer=SimpleNamespace(tokenize=str.split))
        return float(scorer.score("\n".join(expected), "\n".join(actual))[kind].fmeasure)
