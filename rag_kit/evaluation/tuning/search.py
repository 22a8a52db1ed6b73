"""``tune``: search for the setting of a pipeline that suits a set of questions best."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rag_kit.concurrency.bridge import blocking, run_in_thread
from rag_kit.documents.files import AppendLog
from rag_kit.documents.identity import to_plain
from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.judge.judge import Judge
from rag_kit.evaluation.metric import Metric
from rag_kit.evaluation.runs.evaluating import take_examples
from rag_kit.evaluation.runs.gold import MAX_MISSING, check_share
from rag_kit.evaluation.runs.rows import digest
from rag_kit.evaluation.scorers import get_metric
from rag_kit.evaluation.tuning.result import FILE, TuningResult, open_study
from rag_kit.evaluation.tuning.sitting import Sitting
from rag_kit.evaluation.tuning.space import SearchSpace
from rag_kit.evaluation.wording import main_language
from rag_kit.models.clients import keep_query_vectors


async def atune(
    make_pipeline: Callable[[dict[str, Any]], Any],
    dataset: Iterable[Example],
    metric: str | Metric,
    *,
    space: SearchSpace | Mapping[str, Any],
    out: Path | str,
    judge: Judge | None = None,
    n_trials: int = 50,
    max_calls: int | None = None,
    max_seconds: float | None = None,
    set_aside: float = 0.3,
    pruning: Any = "paired",
    max_concurrency: int = 8,
    timeout: float | None = None,
    seed: int = 0,
    max_missing_gold: float | None = MAX_MISSING,
    progress: bool | Callable[[str], None] = True,
) -> TuningResult:
    """Search for the setting of a pipeline with the best mean of a metric, and judge it on other questions.

    `tune` is the same for scripts and Jupyter.

    The questions are cut in two. Settings are tried on the first part, the default one first, the others as Optuna's
    TPE proposes them (Bergstra et al., 2011), block after block of questions. The winner and the default are then
    asked the second part, which no setting has seen: ``result.verdict`` says what was gained, and whether that can be
    told from noise. A setting with values on less than four fifths of the questions that the default has cannot win.

    Everything is written to ``out`` as it comes: an Optuna study, and the scores of each setting as ``evaluate`` keeps
    them. The same call goes on where it was killed or ended (with a larger ``n_trials`` or cap), and asks nothing again
    that has a score.

    Args:
        make_pipeline: Takes a setting, and returns a pipeline for ``evaluate``; may be a coroutine function.
        dataset: The questions: an ``EvaluationSet``, or a list of examples.
        metric: The metric by which settings are compared: its name, or an object.
        space: The parameters and their values: a `SearchSpace`, or plain data of one.
        out: Folder of this search.
        judge: For metrics that need one.
        n_trials: Maximum number of settings, the default one included.
        max_calls: Maximum number of model calls of pipelines and judge, in all sittings together; the search ends
            early enough for its winner to be judged within them.
        max_seconds: Maximum number of seconds, likewise.
        set_aside: Share of the questions for the second part; 0 for none.
        pruning: ``"paired"``: a setting is given up when it is worse than the best one on the same questions
            (sign-flip test, one-sided 5%); ``"none"``; or a pruner of Optuna's.
        max_concurrency: Questions asked at a time.
        timeout: Seconds for one question.
        seed: Decides how the questions are cut in two, and what TPE proposes.
        max_missing_gold: As for ``evaluate``: share of the gold that the default's documents may lack.
        progress: A line for each setting on stderr, or a function that gets it.

    Raises:
        InvalidInputError: If an argument is not allowed, ``out`` holds another search, or the default has no value.
        MissingExtraError: If Optuna is not installed.
    """
    caps = {"calls": max_calls, "seconds": max_seconds}
    _check_numbers({"n_trials": n_trials, "max_calls": max_calls, "max_seconds": max_seconds}, set_aside)
    if pruning not in ("paired", "none") and not callable(getattr(pruning, "prune", None)):
        raise InvalidInputError(
            f"pruning is {pruning!r:.80}; allowed are 'paired', 'none' and a pruner of Optuna's"
        )
    if not callable(make_pipeline) or isinstance(make_pipeline, type):
        raise InvalidInputError(
            f"make_pipeline is {make_pipeline!r:.80}; give a function from a setting (a dict)"
        )
    check_share(max_missing_gold)
    the_space = space if isinstance(space, SearchSpace) else await run_in_thread(SearchSpace, space)
    the_metric = await run_in_thread(get_metric, metric)
    all_examples = take_examples(dataset)
    examples = [example for example in all_examples if not example.missing(the_metric.example_needs)]
    if not examples:
        raise InvalidInputError(
            f"none of the {len(all_examples)} examples has what {the_metric.name} reads "
            f"({', '.join(sorted(the_metric.example_needs))}); give examples with it, or another metric"
        )
    to_search, aside = _split(examples, set_aside, seed)
    left_out = len(all_examples) - len(examples)
    counts = {"search": len(to_search), "set_aside": len(aside), "left_out": left_out}
    header = {  # what must be the same for a search to be resumed
        "version": 6, "metric": the_metric.name, "metric_settings": to_plain(the_metric.settings()),
        "language": main_language(example.question for example in examples),
        "higher_is_better": the_metric.higher_is_better,
        "judge": None if judge is None else to_plain(judge.fingerprint()),
        "space": the_space.parameters, "default": the_space.default,
        "questions": digest(sorted(digest(example.to_json()) for example in examples)), "counts": counts,
        "set_aside": set_aside, "seed": seed,
        "pruning": pruning if isinstance(pruning, str) else type(pruning).__name__,
    }  # fmt: skip
    printing = partial(print, file=sys.stderr) if progress else lambda line: None
    report = progress if callable(progress) else printing
    folder = Path(out)
    log = await run_in_thread(AppendLog, folder / FILE)
    try:
        search = Sitting(
            make=make_pipeline, space=the_space, metric=the_metric, parts={"search": to_search, "set_aside": aside},
            result=TuningResult(folder, await run_in_thread(_prepare_study, log, folder, header)),
            n_trials=n_trials, caps=caps, pruning=pruning, seed=seed, report=report,
            arguments={"judge": judge, "timeout": timeout, "max_concurrency": max_concurrency},
            max_missing_gold=max_missing_gold,
        )  # fmt: skip
        with keep_query_vectors():
            return await search.run()
    except OSError as error:
        raise InvalidInputError(
            f"{str(out)!r} cannot be written ({error.strerror or error}); what stands in it is kept. Make room, and "
            "call again with the same arguments"
        ) from error
    finally:
        await run_in_thread(log.close)


tune = blocking(atune, "tune")


def _check_numbers(positive: Mapping[str, Any], set_aside: Any) -> None:
    """Raise `InvalidInputError` if a number that was given is not above 0, or ``set_aside`` not from 0 to 0.9."""
    for name, value in positive.items():
        if value is not None and not (isinstance(value, int | float) and value > 0):
            raise InvalidInputError(f"{name} is {value!r:.80}; give a number above 0")
    if not isinstance(set_aside, int | float) or not 0 <= set_aside <= 0.9:
        raise InvalidInputError(f"set_aside is {set_aside!r:.80}; give a number between 0 and 0.9")


def _split(examples: Sequence[Example], set_aside: float, seed: int) -> tuple[list[Example], list[Example]]:
    """Split the questions at random into those to search with and those set aside; the same question is in only one."""

    def draw_key(example: Example) -> str:  # random, the same whatever the case and the blanks
        return digest([seed, " ".join(example.question.casefold().split())])

    ordered = sorted(examples, key=lambda item: (draw_key(item), item.id))
    cut = len(ordered) - round(set_aside * len(ordered))
    # move the cut behind questions that are the same as the one before it
    while 0 < cut < len(ordered) and draw_key(ordered[cut]) == draw_key(ordered[cut - 1]):
        cut += 1
    searched, aside = ordered[:cut], ordered[cut:]
    if len(searched) < 2 or (set_aside and len(aside) < 2):
        raise InvalidInputError(
            f"{len(examples)} questions with set_aside={set_aside:g} are too few: the part to search with and the "
            "part to judge the winner with need at least 2 each, and 30 to tell anything"
        )
    return searched, aside


def _prepare_study(log: AppendLog, folder: Path, header: Mapping[str, Any]) -> Any:
    """Open or create the study in a folder whose ``log`` is locked; refuse one that has not the same header."""
    log.append([])  # appends nothing, but drops a last line that a kill has cut off
    log.close_file()  # for Optuna, which opens the file now; the lock stays
    (folder / f"{FILE}.lock").unlink(missing_ok=True)  # of Optuna, left by a kill; nobody else writes
    study = open_study(folder / FILE, "maximize" if header["higher_is_better"] else "minimize")
    expected, stored = json.loads(json.dumps(header)), study.user_attrs.get("search")
    if stored is None and not study.get_trials(deepcopy=False):
        study.set_user_attr("search", expected)
    elif different := [name for name in expected if (stored or {}).get(name) != expected[name]]:
        raise InvalidInputError(
            f"{str(folder)!r} holds another search: not the same {', '.join(different)}; give another folder as out, "
            "or the same arguments as before to resume it"
        )
    return study
