"""Answer against reference, letter by letter: Ragas's BLEU, ROUGE, chrF, exact match, presence and likeness.

What they get wrong is said in the cell's ``reason``; the ``ours_`` metric of the same name is right there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.judge.ragas_import import ragas_version
from rag_kit.evaluation.metric import Metric, Source, Stage
from rag_kit.evaluation.scorers.ragas_more.classes import (
    Lazy,
    ascore,
    cell,
    check_length,
    one_of,
)

if TYPE_CHECKING:
    from rag_kit.evaluation.examples import Example
    from rag_kit.evaluation.judge import Judge
    from rag_kit.evaluation.outputs import Output

MOST = 200_000
_MOST_CELLS = 10_000_000  # of ROUGE-L's table of words, which Python fills in 5 seconds
_WORDS = re.compile(r"[a-z0-9]+")

BLEU_TOKENIZERS = ("13a", "zh", "char", "intl", "none")
ROUGE_TYPES = {"rouge_1": "rouge1", "rouge_2": "rouge2", "rouge_l": "rougeL"}
DISTANCES = ("levenshtein", "hamming", "jaro", "jaro_winkler")


class RagasText(Metric):
    """Base: one of Ragas's classes on answer and reference."""

    source: ClassVar[Source] = "ragas"
    stage: ClassVar[Stage] = "end_to_end"
    example_needs = frozenset({"reference"})

    def __init__(
        self,
        name: str,
        build: Callable[[ModuleType], Any],
        settings: Mapping[str, Any],
        packages: tuple[str, ...] = (),
    ) -> None:
        self.name = name
        self._ragas = Lazy(f"the metric {name!r}", build, packages)
        self._settings = {"ragas": ragas_version(), **settings}

    def settings(self) -> dict[str, Any]:
        """Ragas's version and what its class was made with."""
        return dict(self._settings)

    def _golds(self, example: Example) -> tuple[str, ...]:
        return (example.reference or "",)

    def _check(self, reference: str, answer: str) -> None:
        """Refuse what would take minutes."""

    def _remark(self, reference: str, answer: str) -> str:
        """What Ragas gets wrong about these texts."""
        return ""

    async def score(self, example: Example, output: Output, judge: Judge | None) -> Cell:
        """Ragas's value; the best where there are several right answers."""
        answer, best = output.answer or "", None
        ragas = await self._ragas.get()
        golds = self._golds(example)
        for gold in golds:
            check_length(self.name, MOST, answer=answer, reference=gold)
            self._check(gold, answer)
            remark = self._remark(gold, answer)
            details: dict[str, Any] = {"compared_with": gold} if len(golds) > 1 else {}
            found = cell(await ascore(ragas, reference=gold, response=answer), remark, **details)
            if best is None or (found.value or 0.0) > (best.value or 0.0):
                best = found
        return best or Cell.not_applicable("the example has no right answer")


class Bleu(RagasText):
    """BLEU (Papineni et al., 2002) by Ragas, which hands sentence by sentence to sacreBLEU.

    Two faults of Ragas 0.4.3: the default tokenizer sees a Chinese sentence as one word, so that identical texts
    score 0 (give ``tokenize="zh"``); and of an answer of several sentences (parted by ``". "``) only the first is
    compared, with each sentence of the reference. It knows no weights. `ours_bleu` has neither fault.

    Args:
        tokenize: ``"13a"``, ``"zh"``, ``"char"``, ``"intl"`` or ``"none"``.
        lowercase: Whether case does not matter.
        smooth_method: ``"exp"``, ``"floor"``, ``"add-k"`` or ``"none"``.
        smooth_value: The amount for ``floor`` and ``add-k``.
        use_effective_order: Whether texts shorter than four words are compared by what n-grams they have.
    """

    def __init__(
        self,
        *,
        tokenize: Literal["13a", "zh", "char", "intl", "none"] = "13a",
        lowercase: bool = False,
        smooth_method: Literal["exp", "floor", "add-k", "none"] = "exp",
        smooth_value: float | None = None,
        use_effective_order: bool = False,
        name: str = "bleu",
    ) -> None:
        one_of("tokenize", tokenize, BLEU_TOKENIZERS)  # the others download a model
        one_of("smooth_method", smooth_method, ("exp", "floor", "add-k", "none"))
        settings = {
            "tokenize": tokenize, "lowercase": lowercase, "smooth_method": smooth_method,
            "smooth_value": smooth_value, "use_effective_order": use_effective_order,
        }  # fmt: skip
        super().__init__(name, lambda ragas: ragas.BleuScore(kwargs=settings), settings, ("sacrebleu",))

    def _remark(self, reference: str, answer: str) -> str:
        if ". " in answer:
            return "Ragas compares only the first sentence of the answer; see ours_bleu"
        if self._settings["tokenize"] in ("13a", "none") and _unspaced(reference):
            return 'this tokenizer takes unspaced text for one word; give tokenize="zh", or see ours_bleu'
        return ""


class Rouge(RagasText):
    """ROUGE (Lin, 2004) by Ragas: words of ASCII letters and digits, stemmed.

    Its tokenizer drops every other character, so that identical Chinese texts score 0: see `ours_rouge_l`.

    Args:
        kind: ``"rouge_1"``, ``"rouge_2"`` or ``"rouge_l"``.
        mode: ``"fmeasure"``, ``"precision"`` or ``"recall"``.
    """

    def __init__(
        self,
        kind: Literal["rouge_1", "rouge_2", "rouge_l"] = "rouge_l",
        *,
        mode: Literal["fmeasure", "precision", "recall"] = "fmeasure",
        name: str | None = None,
    ) -> None:
        one_of("kind", kind, tuple(ROUGE_TYPES))
        one_of("mode", mode, ("fmeasure", "precision", "recall"))
        super().__init__(
            name or kind,
            lambda ragas: ragas.RougeScore(rouge_type=ROUGE_TYPES[kind], mode=mode),
            {"kind": kind, "mode": mode},
            ("rouge_score.rouge_scorer",),
        )

    def _check(self, reference: str, answer: str) -> None:
        if self._settings["kind"] != "rouge_l":
            return
        rows, columns = (len(_WORDS.findall(text.lower())) for text in (reference, answer))
        if rows * columns > _MOST_CELLS:
            raise InvalidInputError(
                f"the texts have {rows:,} and {columns:,} words; Ragas's rouge_l compares word with word, at most "
                f"{_MOST_CELLS:,} pairs; use ours_rouge_l"
            )

    def _remark(self, reference: str, answer: str) -> str:
        return f"Ragas's words are ASCII; see ours_{self._settings['kind']}" if _foreign(reference) else ""


class Chrf(RagasText):
    """chrF (Popović, 2015) by Ragas: n-grams of characters, so that Chinese needs no tokenizer.

    Args:
        char_order: Longest n-gram of characters.
        word_order: Longest n-gram of words; 2 is chrF++.
        beta: How much more recall counts than precision.
        remove_whitespace: Whether white space does not count.
        eps_smoothing: sacreBLEU's option of that name.
    """

    def __init__(
        self,
        *,
        char_order: int = 6,
        word_order: int = 0,
        beta: int = 2,
        remove_whitespace: bool = True,
        eps_smoothing: bool = False,
        name: str = "chrf",
    ) -> None:
        for key, value, least in (
            ("char_order", char_order, 1),
            ("word_order", word_order, 0),
            ("beta", beta, 1),
        ):
            if type(value) is not int or not least <= value <= 20:
                raise InvalidInputError(
                    f"{key}={value!r} is not allowed; give a whole number from {least} to 20"
                )
        settings = {
            "char_order": char_order, "word_order": word_order, "beta": beta,
            "remove_whitespace": remove_whitespace, "eps_smoothing": eps_smoothing,
        }  # fmt: skip
        super().__init__(name, lambda ragas: ragas.CHRFScore(kwargs=settings), settings, ("sacrebleu",))


class ExactMatch(RagasText):
    """1 where the answer is the reference, or one of the example's ``answers``, character by character.

    Full-width digits, case and a final full stop count as differences: see `ours_exact_match`.
    """

    example_needs: frozenset[str] = frozenset()
    example_any = frozenset({"reference", "answers"})

    def __init__(self, *, name: str = "exact_match") -> None:
        super().__init__(name, lambda ragas: ragas.ExactMatch(), {})

    def _golds(self, example: Example) -> tuple[str, ...]:
        return (*((example.reference,) if example.reference else ()), *example.answers)


class StringPresence(ExactMatch):
    """1 where one of the example's ``answers`` (without them, the reference) stands in the answer.

    Any place counts: "cat" is found in "concatenate". `ours_string_presence` wants whole words and numbers.
    """

    def __init__(self, *, name: str = "string_presence") -> None:
        RagasText.__init__(self, name, lambda ragas: ragas.StringPresence(), {})

    def _golds(self, example: Example) -> tuple[str, ...]:
        return tuple(filter(None, example.answers)) or (example.reference or "",)


class StringSimilarity(RagasText):
    """Likeness of answer and reference by edit distance, 1 for identical texts.

    Args:
        distance: ``"levenshtein"``, ``"hamming"``, ``"jaro"`` or ``"jaro_winkler"``.
    """

    def __init__(
        self,
        *,
        distance: Literal["levenshtein", "hamming", "jaro", "jaro_winkler"] = "levenshtein",
        name: str = "string_similarity",
    ) -> None:
        one_of("distance", distance, DISTANCES)

        def build(ragas: ModuleType) -> Any:
            return ragas.NonLLMStringSimilarity(distance_measure=ragas.DistanceMeasure(distance))

        super().__init__(name, build, {"distance": distance}, ("rapidfuzz.distance",))


def bleu(name: str) -> Bleu:
    """Ragas's BLEU as it comes."""
    return Bleu(name=name)


def rouge(name: str) -> Rouge:
    """The ROUGE of that name."""
    return Rouge(name)  # type: ignore[arg-type]


def chrf(name: str) -> Chrf:
    """Ragas's chrF as it comes."""
    return Chrf(name=name)


def exact_match(name: str) -> ExactMatch:
    """Ragas's exact match."""
    return ExactMatch(name=name)


def string_presence(name: str) -> StringPresence:
    """Ragas's presence of a string."""
    return StringPresence(name=name)


def string_similarity(name: str) -> StringSimilarity:
    """Ragas's likeness of strings, by Levenshtein's distance."""
    return StringSimilarity(name=name)


def _unspaced(text: str) -> bool:
    from rag_kit.text._patterns import SPECIAL

    return bool(SPECIAL.search(text))


def _foreign(text: str) -> bool:
    return any(character.isalnum() and not character.isascii() for character in text)
