"""``tune``: search for the settings that suit a set of questions best."""

from __future__ import annotations

import hashlib
import json
import math
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from rag_kit.concurrency import check_seconds, run_coroutine, run_in_thread
from rag_kit.documents import to_plain
from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.metric import Metric
from rag_kit.evaluation.scorers import get_metric
from rag_kit.evaluation.tuning.result import TuningResult
from rag_kit.evaluation.tuning.search import Search
from rag_kit.evaluation.tuning.space import PipelineSpace, SearchSpace
from rag_kit.evaluation.tuning.split import split_examples
from rag_kit.evaluation.tuning.study import StudyFolder, import_optuna
from rag_kit.evaluation.tuning.writing import importable

if TYPE_CHECKING:
    from rag_kit.evaluation.judge.judge import Judge

#: When a setting is given up before it has answered every question; `tune` says more.
Pruning = Literal["paired", "median", "halving", "none"]


def tune(
    make_pipeline: Callable[[dict[str, Any]], Any] | PipelineSpace,
    dataset: Iterable[Example],
    metric: str | Metric,
    *,
    space: SearchSpace | Mapping[str, Any] | None = None,
    out: Path | str,
    judge: Judge | None = None,
    n_trials: int = 50,
    max_calls: int | None = None,
    max_seconds: float | None = None,
    max_money: float | None = None,
    prices: Any = None,
    held_aside: float = 0.3,
    pruning: Pruning = "paired",
    min_coverage: float = 0.8,
    level: float = 0.95,
    max_concurrency: int = 8,
    timeout: float | None = None,
    seed: int = 0,
    progress: bool | Callable[[str], None] = True,
) -> TuningResult:
    """Search for the setting of a pipeline with the best mean of a metric, and judge it on other questions.

    The questions are cut in two. Settings are tried on the first part, the default one first, the others as Optuna's
    TPE proposes them (Bergstra et al., 2011). Each is asked block after block of questions, and is given up where
    ``pruning`` says so. The winner and the default setting are then asked the second part, which no setting has
    seen: its paired interval says what was gained, and ``result.verdict`` whether that can be told from noise.

    Everything is written to ``out`` as it comes: an Optuna study, and the scores of each setting as ``evaluate`` keeps
    them. The same call with the same folder goes on where it was killed, and asks nothing again that has a score;
    with a larger ``n_trials`` or cap it goes on where it ended. Which settings are tried depends on the arguments
    alone, not on kills and caps.

    Args:
        make_pipeline: Makes the pipeline of a setting (blocking, or a coroutine function): anything that ``evaluate``
            takes. Or a space that makes its own, such as `RetrieverSpace`; then ``space`` is left out.
        dataset: The questions: an ``EvaluationSet``, or a list of examples.
        metric: What is compared, by name, or an object.
        space: What may be changed: a `SearchSpace`, or plain data of one.
        out: Folder of this search.
        judge: For metrics that need one.
        n_trials: Most settings, the default one included.
        max_calls: Most model calls of pipelines and judge. This and the other caps hold for all sittings together;
            the search ends early enough for its winner to be judged within them.
        max_seconds: Most seconds.
        max_money: Most money; needs ``prices``.
        prices: As for ``evaluate``.
        held_aside: Share of the questions for the second part; 0 for none.
        pruning: ``"paired"``: a setting is given up when it is worse than the best one on the same questions
            (sign-flip test, one-sided 5%); ``"median"`` and ``"halving"``: Optuna's pruners; ``"none"``.
        min_coverage: Least share of questions with a value, of those that the default setting has; a setting with
            fewer cannot win.
        level: Share of the intervals.
        max_concurrency: Questions asked at a time.
        timeout: Seconds for one question.
        seed: Of the cut and of all proposals.
        progress: A line for each setting on stderr, or a function that gets it.

    Returns:
        The settings tried, the best, and how it did on the questions held aside.

    Raises:
        InvalidInputError: If an argument is not allowed, the folder holds another search, or the default setting
            has no value on any question.
        MissingExtraError: If Optuna is not installed.

    Example:
        >>> import tempfile
        >>> from rag_kit.evaluation.examples import Example
        >>> from rag_kit.evaluation.outputs import Passage
        >>> questions = [Example(str(n), f"Question {n}?", relevant={"lake": 1}) for n in range(20)]
        >>> def make_pipeline(settings):
        ...     found = ["The pump.", "The lake."] if settings["shy"] else ["The lake."]
        ...     return lambda question: [Passage("lake" if "lake" in text else "pump", text) for text in found]
        >>> space = {"shy": [True, False]}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     result = tune(make_pipeline, questions, "mrr@10", space=space, out=folder, progress=False)
        >>> dict(result.best), result.held_aside.difference, result.held_aside.better
        ({'shy': False}, 0.5, True)
    """
    return run_coroutine(atune(**locals()))


async def atune(
    make_pipeline: Callable[[dict[str, Any]], Any] | PipelineSpace,
    dataset: Iterable[Example],
    metric: str | Metric,
    *,
    space: SearchSpace | Mapping[str, Any] | None = None,
    out: Path | str,
    judge: Judge | None = None,
    n_trials: int = 50,
    max_calls: int | None = None,
    max_seconds: float | None = None,
    max_money: float | None = None,
    prices: Any = None,
    held_aside: float = 0.3,
    pruning: Pruning = "paired",
    min_coverage: float = 0.8,
    level: float = 0.95,
    max_concurrency: int = 8,
    timeout: float | None = None,
    seed: int = 0,
    progress: bool | Callable[[str], None] = True,
) -> TuningResult:
    """`tune`, for code that runs in an event loop already."""
    for name, value in (("n_trials", n_trials), ("max_concurrency", max_concurrency)):
        if type(value) is not int or not 1 <= value <= 100_000:
            raise InvalidInputError(f"{name} is {value!r:.80}; give a whole number from 1 to 100000")
    if type(seed) is not int:
        raise InvalidInputError(f"seed is {seed!r:.80}; give a whole number")
    _check_share("held_aside", held_aside, 0, 0.9)
    _check_share("min_coverage", min_coverage, 0, 1)
    _check_share("level", level, 1e-9, 1 - 1e-9)
    if pruning not in get_args(Pruning):
        raise InvalidInputError(f"pruning is {pruning!r:.80}; allowed are {', '.join(get_args(Pruning))}")
    check_seconds("timeout", timeout)
    caps = {"calls": max_calls, "seconds": max_seconds, "money": max_money}
    for kind, cap in caps.items():
        _check_cap(f"max_{kind}", cap, whole=kind == "calls")
    if max_money is not None and prices is None:
        raise InvalidInputError("max_money was given without prices; give prices as for evaluate")
    if not callable(progress) and not isinstance(progress, bool):
        raise InvalidInputError(
            f"progress is {progress!r:.80}; give True, False or a function that gets a line"
        )
    the_space, make = _space_of(make_pipeline, space)
    await run_in_thread(import_optuna)
    the_metric = await run_in_thread(get_metric, metric)
    if (the_metric.needs_judge or the_metric.needs_embeddings) and judge is None:
        raise InvalidInputError(f"{the_metric.name} needs a judge; give judge=Judge(...)")
    examples, left_out = _usable(dataset, the_metric)
    split = split_examples(examples, held_aside, seed)
    questions = hashlib.sha256()
    for example in sorted(examples, key=lambda example: example.id):
        questions.update(json.dumps(example.to_json(), sort_keys=True).encode())
    header = {  # what must be the same for a search to be taken up again
        "version": 2,
        "metric": the_metric.name,
        "metric_settings": to_plain(the_metric.settings()),
        "higher_is_better": the_metric.higher_is_better,
        "judge": None if judge is None else to_plain(judge.fingerprint()),
        "space": the_space.to_json(),
        "default": the_space.default,
        "identity": to_plain(await run_in_thread(the_space.identity)),
        "questions": questions.hexdigest(),
        "counts": {"search": len(split.search), "held": len(split.held), "left_out": left_out},
        "tags": list(split.tags),
        "held_aside": held_aside,
        "seed": seed,
        "pruning": pruning,
        "min_coverage": min_coverage,
    }
    folder = await run_in_thread(
        lambda: StudyFolder(Path(out), header, higher_is_better=the_metric.higher_is_better)
    )
    try:
        search = Search(
            make=make,
            space=the_space,
            metric=the_metric,
            judge=judge,
            split=split,
            folder=Path(out),
            study=folder.study,
            n_trials=n_trials,
            caps=caps,
            pruning=pruning,
            min_coverage=min_coverage,
            max_concurrency=max_concurrency,
            timeout=timeout,
            prices=prices,
            seed=seed,
            notify=_notifier(progress),
        )
        reason = await search.run()
        ended = {"reason": reason, "level": level, "maker": importable(make_pipeline)}
        return await run_in_thread(search.end, ended)
    except OSError as error:
        raise InvalidInputError(
            f"{str(out)!r} cannot be written ({error.strerror or error}); what stands in it is kept. Make room, and "
            "call again with the same arguments"
        ) from error
    finally:
        await run_in_thread(folder.close)


def _space_of(make_pipeline: Any, space: Any) -> tuple[SearchSpace, Callable[[dict[str, Any]], Any]]:
    if isinstance(make_pipeline, PipelineSpace):
        if space is not None:
            raise InvalidInputError(
                f"{type(make_pipeline).__name__} is a space and makes its pipelines; leave space out, or give a "
                "function with it"
            )
        return make_pipeline, make_pipeline.make
    if not callable(make_pipeline) or isinstance(make_pipeline, type):
        raise InvalidInputError(
            f"make_pipeline is {make_pipeline!r:.120}; give a function from a setting (a dict) to a pipeline, or a "
            "RetrieverSpace"
        )
    if space is None:
        raise InvalidInputError("space is missing; say what may be changed, such as {'k': {'int': [1, 20]}}")
    return SearchSpace.of(space), make_pipeline


def _usable(dataset: Any, metric: Metric) -> tuple[list[Example], int]:
    """The questions that have what the metric reads, and how many have not."""
    if isinstance(dataset, str | bytes | Mapping | Path) or not isinstance(dataset, Iterable):
        raise InvalidInputError(
            f"dataset is {dataset!r:.80}; give an EvaluationSet (EvaluationSet.load reads one), or a list of examples"
        )
    examples = list(dataset)
    for example in examples:
        if not isinstance(example, Example):
            raise InvalidInputError(f"dataset holds a {type(example).__name__}; give Example objects")
    if len({example.id for example in examples}) != len(examples):
        raise InvalidInputError("two examples of dataset have the same id; ids must be unique")
    usable = [example for example in examples if example.needs_met(metric.example_needs)]
    if not usable:
        needs = ", ".join(sorted(metric.example_needs)) or "nothing"
        raise InvalidInputError(
            f"none of the {len(examples)} examples has what {metric.name} reads ({needs}); give examples with it, or "
            "another metric"
        )
    return usable, len(examples) - len(usable)


def _check_share(name: str, value: Any, least: float, most: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise InvalidInputError(f"{name} is {value!r:.80}; give a number between {round(least)} and {most:g}")


def _check_cap(name: str, cap: Any, *, whole: bool) -> None:
    right = type(cap) is int or (not whole and type(cap) is float and math.isfinite(cap))
    if cap is not None and not (right and cap > 0):
        raise InvalidInputError(
            f"{name} is {cap!r:.80}; give a {'whole ' * whole}number above 0, or None for no cap"
        )


def _notifier(progress: bool | Callable[[str], None]) -> Callable[[str], None]:
    if callable(progress):
        return progress
    return (lambda line: print(line, file=sys.stderr)) if progress else (lambda line: None)
