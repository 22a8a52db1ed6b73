"""The one wrapper that runs any metric of ``ragas.metrics.collections``."""

from __future__ import annotations

import copy
import inspect
import math
import warnings
from collections.abc import Mapping, Sequence
from enum import Enum
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from pydantic import BaseModel

from rag_kit.concurrency import run_coroutine, run_in_thread
from rag_kit.documents import to_plain
from rag_kit.errors import InvalidInputError, MissingExtraError, ModelOutputError
from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.judge.replies import PerLoop
from rag_kit.evaluation.metric import Metric, Source, Stage
from rag_kit.evaluation.ragas_metrics.adapter import Calls, ObservedPrompt, ragas_embeddings, ragas_llm
from rag_kit.evaluation.ragas_metrics.columns import needs_of, read_column, rubric, scores_of
from rag_kit.evaluation.ragas_metrics.guards import GUARDS, Guard, reply_fault
from rag_kit.evaluation.ragas_metrics.importing import import_ragas, ragas_version, require_ragas
from rag_kit.evaluation.ragas_metrics.names import KINDS, NAMES, Kind
from rag_kit.evaluation.ragas_metrics.prompts import LANGUAGES, adapted_prompts, prompts_of

if TYPE_CHECKING:
    from asyncio import Lock

    from rag_kit.evaluation.examples import Example
    from rag_kit.evaluation.judge import Judge
    from rag_kit.evaluation.outputs import Output

_LONG = 20_000  # characters above which a computation without a judge leaves the event loop
_MOST_REPLIES = 50


def is_ragas_metric(value: Any) -> bool:
    """Whether it is an object, a class or a ``partial`` of Ragas's; said without importing Ragas."""
    made = value.func if isinstance(value, partial) else value
    kinds = getattr(made if isinstance(made, type) else type(made), "__mro__", ())
    return any(
        kind.__module__ == "ragas.metrics.collections.base" and kind.__name__ == "BaseMetric"
        for kind in kinds
    )


class RagasMetric(Metric):
    """Any metric of ``ragas.metrics.collections``, with the judge in place of its LLM and embeddings.

    Ragas's own class computes the value and its own prompts are sent, so the number is the one that Ragas gives with
    the same model. Which columns it reads is taken from the signature of its ``ascore``: ``user_input``, ``response``,
    ``retrieved_contexts``, ``reference``, ``reference_contexts`` come from the example and the output, any other from
    the example's metadata; where one is missing, the cell is ``not_applicable`` and says which. Where the language of
    the judge, or of the question, is Chinese, the examples in the prompts are translated by the judge, once, as
    Ragas's ``adapt`` does it; ``details["prompts"]`` of each cell says in which language they were sent. Known faults
    of Ragas are caught by `rag_kit.evaluation.ragas_metrics.guards`, one line a class.

    Args:
        metric: A name such as ``"faithfulness"``, the name of a class of Ragas's, the class, a ``partial`` of it, or an
            object. Its ``llm`` and ``embeddings`` are not asked, the judge is: ``llm=ragas_llm(None)`` will do.
        name: The metric's name in tables; default: its own.
        low: Smallest possible value; default: the class's.
        high: Greatest possible value; likewise.
        higher_is_better: Likewise.
        **settings: What the class is made with, such as ``strictness=1`` or ``rubrics={1: "Rude.", 3: "Kind."}``.

    Raises:
        InvalidInputError: If there is no such metric, or settings come with an object.
        MissingExtraError: If Ragas is not installed.
    """

    source: Source = "ragas"
    output_needs = frozenset()

    def __init__(
        self,
        metric: Any,
        name: str | None = None,
        *,
        low: float | None = None,
        high: float | None = None,
        higher_is_better: bool | None = None,
        **settings: Any,
    ) -> None:
        require_ragas(f"the metric {metric if isinstance(metric, str) else type(metric).__name__!r}")
        if isinstance(metric, partial):
            metric, settings = metric.func, {**metric.keywords, **settings}
            name = name or settings.get("name")
        settings = {key: each for key, each in settings.items() if key not in ("llm", "embeddings", "name")}
        self._given: Any = None
        self._object_made: Any = None
        if isinstance(metric, str):
            self.ragas_class, fixed = NAMES.get(metric, (metric, {}))
            settings = {**fixed, **settings}
            self.name = name or metric
            if self.ragas_class not in KINDS:
                metric = _class(metric)
        if isinstance(metric, type):
            self.ragas_class, self.name = metric.__name__, name or _snake(metric.__name__)
            self._make = metric
        elif not isinstance(metric, str):
            if settings:
                raise InvalidInputError(
                    f"settings {sorted(settings)} come with an object; give them to its class"
                )
            self._given = self._object_made = metric
            self.ragas_class = type(metric).__name__
            self.name = name or str(metric.name)
        if "MultiModal" in self.ragas_class:
            raise InvalidInputError(
                f"{self.ragas_class} asks with pictures over a client of its own; the judge asks with text"
            )
        if settings and self._given is None and settings != NAMES.get(str(metric), ("", {}))[1]:
            _check_settings(getattr(self, "_make", None) or _class(self.ragas_class), settings)
        if "rubrics" in settings:
            settings["rubrics"] = rubric(settings["rubrics"], "rubrics")
        self._settings = settings
        kind = self._kind(metric)
        self.stage: Stage = kind.stage
        self.needs_judge = kind.llm
        self.needs_embeddings = kind.embeddings and self._weight_of_vectors() > 0
        self._reads, self._best_of, self._packages = kind.reads, kind.best_of, kind.packages
        needs = {*kind.needs, *(["reference"] if self._setting("with_reference") else [])}
        for field, names in needs_of(needs, best_of=kind.best_of).items():
            setattr(self, field, names)
        scores = scores_of(self._setting("rubrics") or {})
        self.low = low if low is not None else min(scores, default=kind.low)
        self.high = high if high is not None else max(scores, default=kind.high)
        self.higher_is_better = kind.higher_is_better if higher_is_better is None else higher_is_better
        self._guard = next((GUARDS[each] for each in self._classes(metric) if each in GUARDS), Guard())
        self._adapted: WeakKeyDictionary[Judge, dict[str, Any]] = WeakKeyDictionary()
        self._locks: PerLoop[Lock] = PerLoop(_lock)

    async def score(self, example: Example, output: Output, judge: Judge | None) -> Cell:
        """Ragas's value."""
        if self.needs_embeddings and judge is not None and judge.embeddings is None:
            return Cell.not_applicable(
                "the judge has no embedding model; give it one, or: rag-kit models install minilm"
            )
        metric = await self._object()
        given = self._columns(metric, example, output)
        if not self._best_of:
            return await self._compute(metric, given, example, judge)
        best: Cell | None = None
        for reference in dict.fromkeys(filter(None, (example.reference, *example.answers))):
            cell = await self._compute(metric, {**given, "reference": reference}, example, judge)
            if best is None or (cell.value or 0.0) > (best.value or 0.0):
                best = cell
        return best or Cell.not_applicable("the example has no right answer")

    def settings(self) -> dict[str, Any]:
        """Ragas's version, its class, what that is made with; ``prompts`` names no prompt file: Ragas's are sent."""
        own = self._settings if self._given is None else _public(self._given)
        known: dict[str, Any] = {"ragas": ragas_version(), "class": self.ragas_class, "with": to_plain(own)}
        if self.needs_judge:
            known |= {
                "prompts": [],
                "sent": "Ragas's own prompts; for Chinese with examples translated by the judge (Ragas's adapt)",
            }
        return known

    async def prompts(self, judge: Judge, language: str) -> dict[str, Any]:
        """The prompts of Ragas's that are sent in a language, by attribute of its class; translated once a judge.

        Args:
            judge: Who translates.
            language: ``"en"`` or ``"zh"``.

        Raises:
            ModelError: If the judge cannot translate them.
        """
        metric = await self._object()
        own = prompts_of(metric)
        if language not in LANGUAGES:
            return own
        async with self._locks.here():
            kept = self._adapted.setdefault(judge, {})
            if language not in kept:
                try:
                    kept[language] = await adapted_prompts(metric, judge, language)
                except ModelOutputError as error:  # not asked again for each row
                    kept[language] = error
        if isinstance(found := kept[language], ModelOutputError):
            raise found
        return {**own, **found}

    async def _compute(
        self, metric: Any, given: Mapping[str, Any], example: Example, judge: Judge | None
    ) -> Cell:
        cell = self._guard.before(given) if self._guard.before is not None else None
        if cell is not None:
            return cell
        remark = self._guard.remark(given) if self._guard.remark is not None else ""
        if judge is None or not (self.needs_judge or self.needs_embeddings):
            return _cell(await _without_judge(metric, given), remark)
        scores = scores_of(given.get("rubrics") or getattr(metric, "rubrics", None) or {})
        calls = Calls(judge, lambda data, reply: reply_fault(data, reply, scores))
        asking, details = await self._asking(metric, calls, judge.language_for(example.question))
        if self.ragas_class == "SemanticSimilarity":
            # Ragas embeds these without awaiting
            await calls.embed([given["reference"] or " ", given["response"] or " "])
        why: str | None = None
        result: Any = None
        try:
            result = await asking.ascore(**given)
        except Exception:
            why = self._guard.after(calls.replies) if self._guard.after is not None else None
            if why is None:
                raise
        if calls.failure is not None and why is None:
            raise calls.failure
        replies = [to_plain(reply.model_dump(mode="json")) for reply in calls.replies[:_MOST_REPLIES]]
        details = {**details, **({"replies": replies} if replies else {})}
        why = why or (self._guard.after(calls.replies) if self._guard.after is not None else None)
        if why is not None:
            return Cell.undefined(why, **details)
        return _cell(result, result.reason or _first_no(calls.replies), **details)

    async def _asking(self, metric: Any, calls: Calls, language: str) -> tuple[Any, dict[str, Any]]:
        """A copy of the object that asks through these calls, and which prompts it sends."""
        asking = copy.copy(metric)
        if self.needs_embeddings:
            asking.embeddings = ragas_embeddings(calls)
        if not self.needs_judge:
            return asking, {}
        asking.llm = ragas_llm(calls)
        own, sent = prompts_of(metric), await self.prompts(calls.judge, language)
        for name, prompt in sent.items():
            setattr(asking, name, ObservedPrompt(prompt, calls))
        languages = {
            name: "english" if prompt is own[name] else LANGUAGES[language] for name, prompt in sent.items()
        }
        return asking, {"prompts": languages}

    def _columns(self, metric: Any, example: Example, output: Output) -> dict[str, Any]:
        """The arguments of ``ascore``; an optional one that has no value is left out."""
        given = {}
        for name, parameter in _parameters(metric).items():
            if name == "reference" and getattr(metric, "with_reference", None) is False:
                continue
            column = self._reads.get(name) or _column(name, parameter)
            value = read_column(column, example, output)
            if value is not None or parameter.default is inspect.Parameter.empty:
                given[name] = value
        return given

    async def _object(self) -> Any:
        if self._object_made is None:
            self._object_made = await run_in_thread(self._build)
        return self._object_made

    def _build(self) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the packages below Ragas
            made = getattr(self, "_make", None) or _class(self.ragas_class)
            parts: dict[str, Any] = {}
            parameters = inspect.signature(made).parameters
            if "llm" in parameters:
                parts["llm"] = ragas_llm(None)
            if "embeddings" in parameters:
                parts["embeddings"] = ragas_embeddings(None)
            try:
                for package in self._packages:
                    import_module(package)
                return made(**{**parts, **self._settings})
            except ImportError as error:
                raise MissingExtraError("eval", f"the metric {self.name!r}") from error
            except (TypeError, ValueError) as error:
                raise InvalidInputError(
                    f"{self.ragas_class} cannot be made with {self._settings!r:.200}: {error}"
                ) from error

    def _kind(self, metric: Any) -> Kind:
        found = next((KINDS[each] for each in self._classes(metric) if each in KINDS), None)
        if found is not None:
            return found
        made = metric if isinstance(metric, type) else type(metric)
        needs = tuple(
            _column(name, parameter)
            for name, parameter in _parameters(made).items()
            if parameter.default is inspect.Parameter.empty
        )
        asks = inspect.signature(made).parameters if self._given is None else vars(metric)
        ends = getattr(metric, "allowed_values", None)
        low, high = ends if isinstance(ends, tuple) and len(ends) == 2 else (0.0, 1.0)
        return Kind("end_to_end", needs, "llm" in asks, "embeddings" in asks, float(low), float(high))

    def _classes(self, metric: Any) -> Sequence[str]:
        if isinstance(metric, str):
            return [self.ragas_class]
        return [each.__name__ for each in (metric if isinstance(metric, type) else type(metric)).__mro__]

    def _setting(self, name: str) -> Any:
        return self._settings.get(name) if self._given is None else getattr(self._given, name, None)

    def _weight_of_vectors(self) -> float:
        weights = self._setting("weights")
        return float(weights[1]) if isinstance(weights, (list, tuple)) and len(weights) == 2 else 1.0


def ragas_metric(name: str) -> RagasMetric:
    """The metric of a name in ``NAMES``."""
    return RagasMetric(name)


def _class(name: str) -> Any:
    """A class of Ragas's by its name.

    Raises:
        InvalidInputError: If there is none.
    """
    collections = import_ragas(f"the metric {name!r}")
    if not is_ragas_metric(getattr(collections, name, None)):
        raise InvalidInputError(
            f"unknown metric {name!r:.80}; allowed are {', '.join(NAMES)}, and the classes of ragas.metrics.collections"
        )
    return getattr(collections, name)


def _check_settings(made: Any, settings: Mapping[str, Any]) -> None:
    """See that a class takes the settings: Ragas's take any word, and do nothing with it.

    Raises:
        InvalidInputError: If it does not.
    """
    known = {
        name for name, each in inspect.signature(made).parameters.items() if each.kind is not each.VAR_KEYWORD
    }
    known -= {"llm", "embeddings", "name"}
    if unknown := sorted(set(settings) - known):
        raise InvalidInputError(
            f"{made.__name__} takes no {unknown[0]!r}; it takes {', '.join(sorted(known)) or 'no settings'}"
        )


def _parameters(metric: Any) -> dict[str, inspect.Parameter]:
    kinds = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    found = inspect.signature(metric.ascore).parameters
    return {name: each for name, each in found.items() if each.kind not in kinds and name != "self"}


def _column(name: str, parameter: inspect.Parameter) -> str:
    """The column of an argument; a ``user_input`` that is a list of messages is the conversation."""
    return "messages" if name == "user_input" and "Message" in str(parameter.annotation) else name


def _public(metric: Any) -> dict[str, Any]:
    """The settings of an object that decide its value: plain attributes, and the texts of its prompts."""
    found: dict[str, Any] = {}
    for name, value in vars(metric).items():
        if isinstance(value, Enum):
            value = value.value
        if name not in ("llm", "embeddings") and isinstance(value, (str, int, float, list, tuple, dict)):
            found[name] = value
    for name, prompt in prompts_of(metric).items():
        examples = [
            [part.model_dump(mode="json") for part in pair] for pair in getattr(prompt, "examples", ())
        ]
        found[name] = {"instruction": getattr(prompt, "instruction", ""), "examples": examples}
    return found


async def _without_judge(metric: Any, given: Mapping[str, Any]) -> Any:
    """Ragas's result, on a thread where the texts are long."""
    if sum(len(value) for value in given.values() if isinstance(value, str)) > _LONG:
        return await run_in_thread(lambda: run_coroutine(metric.ascore(**given)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what Ragas warns of is said in the cell's reason
        return await metric.ascore(**given)


def _cell(result: Any, reason: str = "", **details: Any) -> Cell:
    reason = reason or result.reason or ""
    value = float(result.value)
    if math.isnan(value):
        return Cell.undefined(
            reason or "Ragas has no value for this: the judge found nothing to judge", **details
        )
    if not math.isfinite(value):
        return Cell.error(f"Ragas gave the value {value!r}", **details)
    return Cell.ok(value, reason, **details)


def _first_no(replies: Sequence[BaseModel]) -> str:
    """The first statement that the judge did not accept."""
    for reply in replies:
        for items in (value for value in vars(reply).values() if isinstance(value, list)):
            for one in items:
                if 0 in (getattr(one, "verdict", 1), getattr(one, "attributed", 1)):
                    return f"not supported: {one.statement}"
    return ""


def _snake(name: str) -> str:
    known = next((key for key, (made, fixed) in NAMES.items() if made == name and not fixed), None)
    return known or "".join(f"_{sign.lower()}" if sign.isupper() else sign for sign in name).strip("_")


def _lock() -> Lock:
    from asyncio import Lock

    return Lock()
