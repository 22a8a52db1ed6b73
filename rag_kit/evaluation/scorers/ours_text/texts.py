"""Answer against reference by this kit's own tokens: right for Chinese, for short texts and for several sentences."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from rag_kit.concurrency import run_in_thread
from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.metric import Metric, Source, Stage
from rag_kit.evaluation.scorers.ours_text.overlap import bleu, f_measure, rouge_l, rouge_n
from rag_kit.evaluation.scorers.ours_text.tokens import Tokenizer, Unit, plain

if TYPE_CHECKING:
    from rag_kit.evaluation.examples import Example
    from rag_kit.evaluation.judge import Judge
    from rag_kit.evaluation.outputs import Output

MOST = 200_000
_LONG = 5_000  # characters above which a computation leaves the event loop
_VERSION = 1


class OursText(Metric):
    """Base: a function of reference and answer, computed here."""

    source: ClassVar[Source] = "ours"
    stage: ClassVar[Stage] = "end_to_end"
    example_needs = frozenset({"reference"})

    def settings(self) -> dict[str, Any]:
        """The version of the rules."""
        return {"version": _VERSION}

    def compute(self, reference: str, answer: str) -> Cell:
        """The cell for one right answer."""
        raise NotImplementedError

    def _golds(self, example: Example) -> tuple[str, ...]:
        return (example.reference or "",)

    async def score(self, example: Example, output: Output, judge: Judge | None) -> Cell:
        """The best over the right answers.

        Raises:
            InvalidInputError: If a text is longer than 200,000 characters.
        """
        answer, golds = output.answer or "", self._golds(example)
        for what, text in (("answer", answer), *(("reference", gold) for gold in golds)):
            if len(text) > MOST:
                raise InvalidInputError(
                    f"the {what} has {len(text):,} characters; {self.name} reads at most {MOST:,}, so cut it to what "
                    "is to be compared"
                )
        if len(answer) + sum(map(len, golds)) > _LONG:
            return await run_in_thread(self._best, golds, answer)
        return self._best(golds, answer)

    def _best(self, golds: Sequence[str], answer: str) -> Cell:
        cells = [self.compute(gold, answer) for gold in golds]
        return max(cells, key=lambda cell: -1.0 if cell.value is None else cell.value)


class OursBleu(OursText):
    """BLEU (Papineni et al., 2002) of the whole answer, with weights of your own.

    Beside Ragas's `bleu`: Chinese is cut into tokens, every sentence counts, and texts shorter than four tokens can
    score 1. With ``tokens="characters"``, equal weights and a one-sentence answer it is sacreBLEU's value with
    effective order, on these tokens.

    Args:
        weights: One for each size of n-gram from 1 on; they are scaled to the sum 1.
        tokens: ``"characters"`` or ``"words"``, for Chinese.
        punctuation: Whether marks count as tokens.
        smooth: Whether a size of n-gram without a match takes little instead of everything.

    Example:
        >>> seed = OursBleu(weights=[0.5, 0.5], tokens="words")
        >>> round(seed.compute("埃菲尔铁塔的高度为330米", "埃菲尔铁塔的高度是330米").value, 4)
        0.7071
    """

    def __init__(
        self,
        *,
        weights: Sequence[float] = (0.25, 0.25, 0.25, 0.25),
        tokens: Unit = "characters",
        punctuation: bool = True,
        smooth: bool = True,
        name: str = "ours_bleu",
    ) -> None:
        numbers = not isinstance(weights, (str, bytes)) and isinstance(weights, Sequence)
        if (
            not numbers
            or not 1 <= len(weights) <= 20
            or any(
                isinstance(w, bool) or not isinstance(w, (int, float)) or not 0 <= w < float("inf")
                for w in weights
            )
            or not sum(weights)
        ):
            raise InvalidInputError(
                f"weights={weights!r:.80} is not allowed; give 1 to 20 numbers from 0, not all 0"
            )
        self.name = name
        self.weights, self.smooth = tuple(weights), bool(smooth)
        self._tokens = Tokenizer(tokens, punctuation=punctuation)

    def settings(self) -> dict[str, Any]:
        """What decides the value."""
        return {
            **super().settings(), **self._tokens.settings(), "weights": list(self.weights), "smooth": self.smooth,
        }  # fmt: skip

    def compute(self, reference: str, answer: str) -> Cell:
        """BLEU of one answer; undefined where the reference holds no token."""
        wanted, given = self._tokens(reference), self._tokens(answer)
        if not wanted:
            return Cell.undefined("the reference holds no word")
        return Cell.ok(min(1.0, bleu(wanted, given, self.weights, smooth=self.smooth)))


class OursRouge(OursText):
    """ROUGE (Lin, 2004) on this kit's tokens.

    Args:
        kind: ``"rouge_1"``, ``"rouge_2"`` (shared n-grams) or ``"rouge_l"`` (longest common subsequence).
        mode: ``"fmeasure"``, ``"precision"`` or ``"recall"``.
        tokens: ``"characters"`` or ``"words"``, for Chinese.
        punctuation: Whether marks count as tokens.

    Example:
        >>> metric = OursRouge("rouge_2")
        >>> round(metric.compute("今天天气很好，我们去公园散步吧", "今天天气很好，我们去公园跑步吧").value, 4)
        0.8571
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
        if kind not in ("rouge_1", "rouge_2", "rouge_l"):
            raise InvalidInputError(
                f"kind={kind!r:.80} is not allowed; give one of rouge_1, rouge_2, rouge_l"
            )
        if mode not in ("fmeasure", "precision", "recall"):
            raise InvalidInputError(
                f"mode={mode!r:.80} is not allowed; give one of fmeasure, precision, recall"
            )
        self.name = name or f"ours_{kind}"
        self.kind, self.mode = kind, mode
        self._tokens = Tokenizer(tokens, punctuation=punctuation)

    def settings(self) -> dict[str, Any]:
        """What decides the value."""
        return {**super().settings(), **self._tokens.settings(), "kind": self.kind, "mode": self.mode}

    def compute(self, reference: str, answer: str) -> Cell:
        """ROUGE of one answer; undefined where the reference is shorter than one n-gram."""
        wanted, given = self._tokens(reference), self._tokens(answer)
        size = 2 if self.kind == "rouge_2" else 1
        if len(wanted) < size:
            return Cell.undefined(
                f"the reference has {len(wanted)} tokens; {self.name} compares {size} at a time"
            )
        precision, recall = rouge_l(wanted, given) if self.kind == "rouge_l" else rouge_n(wanted, given, size)
        value = {"precision": precision, "recall": recall}.get(self.mode, f_measure(precision, recall))
        return Cell.ok(value, precision=precision, recall=recall)


class OursExactMatch(OursText):
    """1 where the answer is the reference, or one of the example's ``answers``, else 0.

    Case, width (``３３０`` is ``330``), traditional characters, spaces beside Chinese, quotes around the answer and
    marks at its end make no difference; a sign, a unit or an exponent does.

    Example:
        >>> OursExactMatch().compute("330米", "３３０ 米。").value
        1.0
    """

    example_needs: frozenset[str] = frozenset()
    example_any = frozenset({"reference", "answers"})

    def __init__(self, *, name: str = "ours_exact_match") -> None:
        self.name = name

    def _golds(self, example: Example) -> tuple[str, ...]:
        return (*((example.reference,) if example.reference else ()), *example.answers)

    def compute(self, reference: str, answer: str) -> Cell:
        """1 or 0; undefined where the reference holds nothing but marks."""
        wanted = plain(reference)
        return (
            Cell.ok(float(wanted == plain(answer)))
            if wanted
            else Cell.undefined("the reference holds no word")
        )


class OursStringPresence(OursExactMatch):
    """1 where one of the example's ``answers`` (without them, the reference) stands in the answer as whole words.

    Compared as in `OursExactMatch`; "cat" is not found in "concatenate", nor 33 in 330, nor 3 in 3.5.

    Example:
        >>> metric = OursStringPresence()
        >>> metric.compute("330 米", "它高３３０米。").value, metric.compute("33", "它高330米").value
        (1.0, 0.0)
    """

    def __init__(self, *, name: str = "ours_string_presence") -> None:
        super().__init__(name=name)

    def _golds(self, example: Example) -> tuple[str, ...]:
        return example.answers or (example.reference or "",)

    def compute(self, reference: str, answer: str) -> Cell:
        """1 or 0; undefined where the reference holds nothing but marks."""
        wanted = plain(reference)
        if not wanted:
            return Cell.undefined("the reference holds no word")
        pattern = _before(wanted[0]) + re.escape(wanted) + _after(wanted[-1])
        return Cell.ok(float(re.search(pattern, plain(answer)) is not None))


def _before(first: str) -> str:
    """What must not stand before: a letter before a letter, a digit or a decimal mark with one before a digit."""
    if first.isdigit():
        return r"(?<![0-9])(?<![0-9][.,])(?<![a-z])"
    return "(?<![a-z0-9])" if first.isascii() and first.isalpha() else ""


def _after(last: str) -> str:
    if last.isdigit():
        return r"(?![0-9])(?![.,][0-9])"
    return "(?![a-z0-9])" if last.isascii() and last.isalpha() else ""


def ours_bleu(name: str) -> OursBleu:
    """Four sizes of n-gram, equal weights, characters."""
    return OursBleu(name=name)


def ours_rouge(name: str) -> OursRouge:
    """The ROUGE of that name, characters."""
    return OursRouge(name.removeprefix("ours_"), name=name)  # type: ignore[arg-type]


def ours_exact_match(name: str) -> OursExactMatch:
    """Exact match that does not look at spelling variants."""
    return OursExactMatch(name=name)


def ours_string_presence(name: str) -> OursStringPresence:
    """Presence of whole words."""
    return OursStringPresence(name=name)
