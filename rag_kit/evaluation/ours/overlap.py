"""BLEU and ROUGE on this kit's tokens, which are right for Chinese; sacreBLEU and rouge_score do the sums."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from rag_kit.concurrency import run_in_thread
from rag_kit.errors import InvalidInputError, MissingExtraError
from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.metric import Metric, Source, Stage
from rag_kit.evaluation.ours.tokens import Tokenizer, Unit

if TYPE_CHECKING:
    from rag_kit.evaluation.examples import Example
    from rag_kit.evaluation.judge.judge import Judge
    from rag_kit.evaluation.outputs import Output

MOST = 200_000
_MOST_PAIRS = 10_000_000  # of ROUGE-L's table of tokens, which Python fills in 5 seconds
_KINDS = {"rouge_1": "rouge1", "rouge_2": "rouge2", "rouge_l": "rougeL"}


class _Overlap(Metric):
    """A function of the tokens of reference and answer, from 0 to 1."""

    source: Source = "ours"
    stage: Stage = "end_to_end"
    example_needs = frozenset({"reference"})
    least = 1

    def __init__(self, name: str, tokens: Unit, punctuation: bool) -> None:
        self.name = name
        self._tokens = Tokenizer(tokens, punctuation=punctuation)

    def settings(self) -> dict[str, Any]:
        """What decides the value."""
        return {"version": 2, **self._tokens.settings()}

    async def score(self, example: Example, output: Output, judge: Judge | None) -> Cell:
        """The value; undefined where the reference has no n-gram.

        Raises:
            InvalidInputError: If a text is too long.
        """
        return await run_in_thread(self.compute, example.reference or "", output.answer or "")

    def compute(self, reference: str, answer: str) -> Cell:
        """The cell of two texts.

        Raises:
            InvalidInputError: If one is longer than 200,000 characters.
            MissingExtraError: If the library is not installed.
        """
        for what, text in (("reference", reference), ("answer", answer)):
            if len(text) > MOST:
                raise InvalidInputError(
                    f"the {what} has {len(text):,} characters; {self.name} reads at most {MOST:,}, so cut it to what "
                    "is to be compared"
                )
        wanted, given = self._tokens(reference), self._tokens(answer)
        if len(wanted) < self.least:
            return Cell.undefined(
                f"the reference has {len(wanted)} tokens; {self.name} compares {self.least} at a time"
            )
        try:
            return Cell.ok(self.overlap(wanted, given))
        except ImportError:
            raise MissingExtraError("eval", f"the metric {self.name!r}") from None

    def overlap(self, wanted: list[str], given: list[str]) -> float:
        """The value of two lists of tokens."""
        raise NotImplementedError


class OursBleu(_Overlap):
    """BLEU (Papineni et al., 2002) of the whole answer by sacreBLEU, on this kit's tokens.

    Beside Ragas's `bleu`: Chinese is cut into tokens, every sentence counts, and texts shorter than four tokens can
    score 1 (effective order).

    Args:
        order: Longest n-gram; all sizes weigh the same.
        tokens: ``"characters"`` or ``"words"``, for Chinese.
        punctuation: Whether marks count as tokens.
        smooth: Whether a size of n-gram without a match takes little (sacreBLEU's ``exp``) instead of everything.
    """

    def __init__(
        self,
        *,
        order: int = 4,
        tokens: Unit = "characters",
        punctuation: bool = True,
        smooth: bool = True,
        name: str = "ours_bleu",
    ) -> None:
        if type(order) is not int or not 1 <= order <= 20:
            raise InvalidInputError(f"order={order!r:.80} is not allowed; give a whole number from 1 to 20")
        super().__init__(name, tokens, punctuation)
        self.order, self.smooth = order, bool(smooth)

    def settings(self) -> dict[str, Any]:
        """What decides the value."""
        return {**super().settings(), "order": self.order, "smooth": self.smooth}

    def overlap(self, wanted: list[str], given: list[str]) -> float:
        """sacreBLEU's value."""
        from sacrebleu.metrics.bleu import BLEU

        bleu = BLEU(
            tokenize="none",
            smooth_method="exp" if self.smooth else "none",
            max_ngram_order=self.order,
            effective_order=True,
        )
        found: float = bleu.sentence_score(" ".join(given), [" ".join(wanted)]).score
        return min(1.0, found / 100)


class OursRouge(_Overlap):
    """ROUGE (Lin, 2004) by rouge_score, on this kit's tokens.

    Args:
        kind: ``"rouge_1"``, ``"rouge_2"`` (shared n-grams) or ``"rouge_l"`` (longest common subsequence).
        mode: ``"fmeasure"``, ``"precision"`` or ``"recall"``.
        tokens: ``"characters"`` or ``"words"``, for Chinese.
        punctuation: Whether marks count as tokens.
    """

    def __init__(
        self,
        kind: Literal["rouge_1", "rouge_2", "rouge_l"] = "rouge_l",
        *,
        mode: Literal["fmeasure", "precision", "recall"] = "fmeasure",
        tokens: Unit = "characters",
        punctuation: bool = True,
        name: str | None = None,
    ) -> None:
        modes = ("fmeasure", "precision", "recall")
        for what, value, allowed in (("kind", kind, tuple(_KINDS)), ("mode", mode, modes)):
            if value not in allowed:
                raise InvalidInputError(
                    f"{what}={value!r:.80} is not allowed; give one of {', '.join(allowed)}"
                )
        super().__init__(name or f"ours_{kind}", tokens, punctuation)
        self.kind, self.mode = kind, mode
        self.least = 2 if kind == "rouge_2" else 1

    def settings(self) -> dict[str, Any]:
        """What decides the value."""
        return {**super().settings(), "kind": self.kind, "mode": self.mode}

    def overlap(self, wanted: list[str], given: list[str]) -> float:
        """rouge_score's value.

        Raises:
            InvalidInputError: If ROUGE-L would take too long.
        """
        from rouge_score.rouge_scorer import RougeScorer

        if self.kind == "rouge_l" and len(wanted) * len(given) > _MOST_PAIRS:
            raise InvalidInputError(
                f"the texts have {len(wanted):,} and {len(given):,} tokens; {self.name} compares at most "
                f"{_MOST_PAIRS:,} pairs, so cut them to what is to be compared"
            )
        scorer = RougeScorer([_KINDS[self.kind]], tokenizer=_Cut())
        found = scorer.score("\n".join(wanted), "\n".join(given))[_KINDS[self.kind]]
        return float(getattr(found, self.mode))


class _Cut:
    """A tokenizer, as rouge_score wants one, for texts that are cut already."""

    tokenize: Callable[[str], list[str]] = staticmethod(str.split)


def ours_bleu(name: str) -> OursBleu:
    """Up to four tokens, characters."""
    return OursBleu(name=name)


def ours_rouge(name: str) -> OursRouge:
    """The ROUGE of that name, characters."""
    return OursRouge(name.removeprefix("ours_"), name=name)  # type: ignore[arg-type]
