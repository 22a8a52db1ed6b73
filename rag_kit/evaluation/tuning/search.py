"""``tune``: search for the setting of a pipeline that suits a set of questions best."""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import statistics
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_kit._redact import redact
from rag_kit.concurrency.bridge import acall_function, blocking, run_in_thread
from rag_kit.documents import clean_text
from rag_kit.documents.append_log import AppendLog
from rag_kit.documents.plain import to_plain
from rag_kit.errors import BudgetExceededError, InvalidInputError, MissingExtraError
from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.metric import Metric
from rag_kit.evaluation.runs.evaluating import aevaluate, resolve, take_examples
from rag_kit.evaluation.scorers import get_metric
from rag_kit.evaluation.statistics import sign_flip_test
from rag_kit.evaluation.tuning import result as kept
from rag_kit.evaluation.tuning.parameter import Parameter, label, quiet
from rag_kit.evaluation.tuning.result import FILE, Trial, TuningResult, record_name
from rag_kit.evaluation.tuning.space import SearchSpace

if TYPE_CHECKING:
    from rag_kit.evaluation.judge.judge import Judge
    from rag_kit.evaluation.runs.results import Results

_STARTUP = 8  # settings drawn at random before TPE's model of the space is believed
_ATTEMPTS = 25  # proposals of a sampler until one is new
_FEWEST = 8  # questions before a setting may be given up
_FAILURES = 5  # settings in a row; then the cause is hardly the settings
_MIN_COVERAGE = 0.8  # share of the questions that the default has a value for
_LEVEL = 0.05  # one-sided chance at which a setting is called worse


async def atune(
    make_pipeline: Callable[[dict[str, Any]], Any] | SearchSpace,
    dataset: Iterable[Example],
    metric: str | Metric,
    *,
    space: SearchSpace | Mapping[str, Any] | None = None,
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
    progress: bool | Callable[[str], None] = True,
) -> TuningResult:
    """Search for the setting of a pipeline with the best mean of a metric, and judge it on other questions.

    `tune` is the same for scripts and Jupyter.

    The questions are cut in two. Settings are tried on the first part, the default one first, the others as Optuna's
    TPE proposes them (Bergstra et al., 2011). Each is asked block after block of questions, and is given up where
    ``pruning`` says so. The winner and the default setting are then asked the second part, which no setting has
    seen: ``result.verdict`` says what was gained, and whether that can be told from noise. A setting with values on
    fewer than four fifths of the questions that the default has values on cannot win.

    Everything is written to ``out`` as it comes: an Optuna study, and the scores of each setting as ``evaluate`` keeps
    them. The same call with the same folder goes on where it was killed, and asks nothing again that has a score;
    with a larger ``n_trials`` or cap it goes on where it ended.

    Args:
        make_pipeline: Makes the pipeline of a setting (blocking, or a coroutine function): anything that ``evaluate``
            takes. Or a space that makes its own: `SearchSpace.of_retrievers`; then ``space`` is left out.
        dataset: The questions: an ``EvaluationSet``, or a list of examples.
        metric: What is compared, by name, or an object.
        space: What may be changed: a `SearchSpace`, or plain data of one.
        out: Folder of this search.
        judge: For metrics that need one.
        n_trials: Most settings, the default one included.
        max_calls: Most model calls of pipelines and judge. This and the other caps hold for all sittings together;
            the search ends early enough for its winner to be judged within them.
        max_seconds: Most seconds.
        set_aside: Share of the questions for the second part; 0 for none.
        pruning: ``"paired"``: a setting is given up when it is worse than the best one on the same questions
            (sign-flip test, one-sided 5%); ``"none"``; or a pruner of Optuna's.
        max_concurrency: Questions asked at a time.
        timeout: Seconds for one question.
        seed: Of the cut and of all proposals.
        progress: A line for each setting on stderr, or a function that gets it.

    Raises:
        InvalidInputError: If an argument is not allowed, the folder holds another search, or the default setting
            has no value on any question.
        MissingExtraError: If Optuna is not installed.
    """
    caps = {"calls": max_calls, "seconds": max_seconds}
    for name, value in {"n_trials": n_trials, "max_calls": max_calls, "max_seconds": max_seconds}.items():
        if value is not None and not (isinstance(value, int | float) and value > 0):
            raise InvalidInputError(f"{name} is {value!r:.80}; give a number above 0")
    if not isinstance(set_aside, int | float) or not 0 <= set_aside <= 0.9:
        raise InvalidInputError(f"set_aside is {set_aside!r:.80}; give a number between 0 and 0.9")
    if pruning not in ("paired", "none") and not callable(getattr(pruning, "prune", None)):
        raise InvalidInputError(
            f"pruning is {pruning!r:.80}; allowed are 'paired', 'none' and a pruner of Optuna's"
        )
    the_space, make = await run_in_thread(_space_of, make_pipeline, space)
    the_metric = await run_in_thread(get_metric, metric)
    given = take_examples(dataset)
    examples = [example for example in given if not example.missing(the_metric.example_needs)]
    if not examples:
        raise InvalidInputError(
            f"none of the {len(given)} examples has what {the_metric.name} reads "
            f"({', '.join(sorted(the_metric.example_needs))}); give examples with it, or another metric"
        )
    parts = split_examples(examples, set_aside, seed)
    texts = sorted(json.dumps(example.to_json(), sort_keys=True) for example in examples)
    header = {  # what must be the same for a search to be resumed
        "version": 4,
        "metric": the_metric.name,
        "metric_settings": to_plain(the_metric.settings()),
        "higher_is_better": the_metric.higher_is_better,
        "judge": None if judge is None else to_plain(judge.fingerprint()),
        "space": the_space.to_json(),
        "default": the_space.default,
        "identity": to_plain(the_space.identity),
        "questions": hashlib.sha256("\n".join(texts).encode()).hexdigest(),
        "counts": {
            "search": len(parts[0]),
            "set_aside": len(parts[1]),
            "left_out": len(given) - len(examples),
        },
        "set_aside": set_aside,
        "seed": seed,
        "pruning": pruning if isinstance(pruning, str) else type(pruning).__name__,
    }
    folder = Path(out)
    log = await run_in_thread(AppendLog, folder / FILE)
    try:
        search = _Search(
            make=make, space=the_space, metric=the_metric, parts=parts, folder=folder,
            study=await run_in_thread(_opened, log, folder, header), n_trials=n_trials, caps=caps,
            pruning=pruning, seed=seed, progress=progress,
            arguments={"judge": judge, "timeout": timeout, "max_concurrency": max_concurrency},
        )  # fmt: skip
        return await search.run()
    except OSError as error:
        raise InvalidInputError(
            f"{str(out)!r} cannot be written ({error.strerror or error}); what stands in it is kept. Make room, and "
            "call again with the same arguments"
        ) from error
    finally:
        await run_in_thread(log.close)


tune = blocking(atune, "tune")


class _Ended(Exception):
    """The search cannot go on; the text says why."""


class _Failed(Exception):
    """A setting has no pipeline, or too few values; the text says why."""


@dataclass
class _Search:
    """One sitting of a search. Scores lie in folders that ``evaluate`` resumes, finished trials in the study."""

    make: Callable[[dict[str, Any]], Any]
    space: SearchSpace
    metric: Metric
    parts: tuple[list[Example], list[Example]]
    folder: Path
    study: Any
    n_trials: int
    caps: Mapping[str, float | None]
    pruning: Any
    seed: int
    progress: bool | Callable[[str], None]
    arguments: Mapping[str, Any]

    async def run(self) -> TuningResult:
        """Search, then judge the winner."""
        await run_in_thread(self._read)
        try:
            ended = await self._try_settings()
        except _Ended as reason:
            ended = str(reason)
        try:
            await self._judge_winner()
        except (_Ended, _Failed) as reason:
            ended = f"{ended}; the winner could not be judged on all questions set aside: {reason}"
        if self._records.get("ended") != ended:
            await run_in_thread(self.study.set_user_attr, "ended", ended)
        return TuningResult(self.folder, self.study)

    def _read(self) -> None:
        """Read what earlier sittings wrote; from then on, the study is only written to."""
        self._records = dict(self.study.user_attrs)
        self._trials = kept.read_trials(self.study)
        self._began = time.monotonic() - self._records.get("elapsed", 0.0)

    @property
    def _used(self) -> dict[str, Any]:
        return {**kept.total_usage(self._records), "seconds": time.monotonic() - self._began}

    @property
    def _best(self) -> Trial:
        return kept.best_of(self._trials, self.metric.higher_is_better)

    def _record(self, settings: Mapping[str, Any], part: str) -> Mapping[str, Any]:
        """What is known of a setting on a part of the questions."""
        found: Mapping[str, Any] = self._records.get(record_name(settings, part), {})
        return found

    async def _try_settings(self) -> str:
        """Try settings until ``n_trials`` or the end of the space; returns why no more are tried."""
        failures = 0
        while (number := sum(trial.state != "unfinished" for trial in self._trials)) < self.n_trials:
            settings = await run_in_thread(self._propose, number)
            if settings is None:
                return f"every setting of the space was tried ({number})"
            trial = await self._try(number, settings)
            failures = failures + 1 if trial.state == "failed" else 0
            if failures == _FAILURES:
                return f"{_FAILURES} settings failed one after the other, the last one because {trial.reason}"
        return f"n_trials={self.n_trials}"

    def _propose(self, number: int) -> dict[str, Any] | None:
        """A setting that was not tried yet; it follows from the seed and the finished trials alone."""
        if number == 0:
            return self.space.default
        with quiet() as optuna:
            known = self.study.get_trials(deepcopy=False)
            memory = optuna.create_study(direction=self.study.direction.name.lower())
            memory.add_trials(known)  # a copy: proposals leave no trace in the file
            tried = {label(trial.user_attrs["settings"]) for trial in known}
            for attempt in range(_ATTEMPTS + 1):
                digest = hashlib.sha256(f"{self.seed}/{number}/{attempt}".encode()).digest()
                seed = int.from_bytes(digest[:4], "big")
                memory.sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=_STARTUP)
                if (
                    attempt == _ATTEMPTS and self.space.is_finite
                ):  # TPE repeats itself: one that is left, if any is
                    memory.sampler = optuna.samplers.BruteForceSampler(seed=seed)
                asked = memory.ask()
                settings = self.space.pick(partial(Parameter.suggest, trial=asked))
                if label(settings) not in tried:
                    return settings
                if attempt < _ATTEMPTS:  # the last sampler would stop a study that it has seen the end of
                    memory.tell(asked, state=optuna.trial.TrialState.FAIL)
        return None

    async def _try(self, number: int, settings: dict[str, Any]) -> Trial:
        """Evaluate a setting block after block of questions, and add its trial to the study."""
        state, reason, steps = "complete", "", {}
        ends = blocks(len(self.parts[0]))
        try:
            self._calls_left(settings, "search", ends[0])
            pipeline = await self._pipeline(settings)
            for end in ends:
                results = await self._ask(pipeline, settings, "search", end, retry_errors=end == ends[0])
                self._check_coverage(results, end)
                scores = results.values(self.metric.name)
                steps[end] = statistics.fmean(scores.values())
                if number and end < ends[-1]:
                    reason = await run_in_thread(self._reason_to_prune, settings, scores, steps)
                if reason:
                    state = "pruned"
                    break
        except _Failed as error:
            if number == 0:
                raise InvalidInputError(f"the default setting {settings!r:.300}: {error}") from error
            state, reason = "failed", str(error)
        trial = self.space.trial(
            settings, value=steps[ends[-1]] if state == "complete" else None, intermediate_values=steps,
            state={"complete": "COMPLETE", "pruned": "PRUNED", "failed": "FAIL"}[state],
            user_attrs={"settings": settings, "state": state, "reason": reason},
        )  # fmt: skip
        await run_in_thread(self._add, trial)
        self._report(number)
        return self._trials[number]

    def _add(self, trial: Any) -> None:
        with quiet():
            self.study.add_trial(trial)
        self._trials = kept.read_trials(self.study)

    def _report(self, number: int) -> None:
        trial, best = self._trials[number], self._best
        value = "-" if trial.value is None else f"{trial.value:.4f}"
        line = (
            f"setting {number} of {self.n_trials}: {trial.state}, {self.metric.name} {value} on {trial.asked} "
            f"questions; best {best.value:.4f} (setting {best.number}); {self._used['calls']} calls, "
            f"{self._used['seconds']:.0f} s"
        )
        if callable(self.progress):
            self.progress(line)
        elif self.progress:
            print(line, file=sys.stderr)

    def _check_coverage(self, results: Results, asked: int) -> None:
        """Fail a setting with too few values to be compared."""
        cells = results.cells(self.metric.name)
        wanted = sum(key in cells for key in self._record(self.space.default, "search")["scores"])
        found = len(results.values(self.metric.name))
        if not found or found < _MIN_COVERAGE * wanted:
            reasons = Counter(_plain(cell.reason) for cell in cells.values() if cell.value is None)
            raise _Failed(
                f"{found} of {asked} questions have a value, with the default {wanted}: "
                f"{reasons.most_common(1)[0][0] if reasons else 'no reason is known'}"
            )

    def _reason_to_prune(
        self, settings: dict[str, Any], scores: Mapping[str, float], steps: Mapping[int, float]
    ) -> str:
        """Why the pruning rule gives a setting up; empty if it does not."""
        if self.pruning == "none":
            return ""
        if self.pruning == "paired":
            return worse_than(self._best.scores, scores, self.metric.higher_is_better)
        with quiet():
            trial = self.space.trial(settings, state="RUNNING", intermediate_values=dict(steps))
            name = type(self.pruning).__name__
            return f"Optuna's {name} gave it up" if self.pruning.prune(self.study, trial) else ""

    async def _judge_winner(self) -> None:
        """Evaluate the default setting and a winner that is another one on the questions set aside."""
        total = len(self.parts[1])
        if not total or not self._trials or self._best.number == 0:
            return
        for trial in (self._trials[0], self._best):
            settings = dict(trial.settings)
            if self._record(settings, "set_aside").get("asked") != total:
                pipeline = await self._pipeline(settings)
                await self._ask(pipeline, settings, "set_aside", total, retry_errors=True)

    async def _ask(
        self, pipeline: Any, settings: dict[str, Any], part: str, end: int, *, retry_errors: bool
    ) -> Results:
        """Evaluate a setting on these questions; those with a score from before are not asked again."""
        examples = self.parts[part == "set_aside"][:end]
        calls = self._calls_left(settings, part, end)
        try:
            results = await aevaluate(
                pipeline, examples, [self.metric], out=self.folder / record_name(settings, part), name="tuned",
                version=record_name(settings, ""), max_calls=calls, deadline=self._left("seconds"),
                progress=False, retry_errors=retry_errors, **self.arguments,
            )  # fmt: skip
        except BudgetExceededError as error:
            raise _Ended(str(error)) from error
        await run_in_thread(self._save, settings, part, results)
        if len(results.rows) < len(examples):
            raise _Ended(str(results.manifest.get("stopped_by") or "a cap was reached"))
        return results

    def _save(self, settings: dict[str, Any], part: str, results: Results) -> None:
        """Write scores and usage so far to the study; a beginning of what an earlier sitting asked changes nothing."""
        if len(results.rows) < self._record(settings, part).get("asked", 0):
            return
        each: list[Any] = [one for row in results.rows for one in (row.output, *row.cells.values())]
        record = {
            "settings": settings, "scores": results.values(self.metric.name), "asked": len(results.rows),
            "calls": sum(one.calls for one in each), "tokens": sum(one.tokens for one in each),
        }  # fmt: skip
        seconds = round(self._used["seconds"], 3)
        for name, value in ((record_name(settings, part), record), ("elapsed", seconds)):
            self._records[name] = value
            self.study.set_user_attr(name, value)

    async def _pipeline(self, settings: dict[str, Any]) -> Any:
        """The pipeline of a setting."""
        try:
            async with asyncio.timeout(self._left("seconds")) as clock:
                made = await acall_function(self.make, settings)
            return await run_in_thread(resolve, made)
        except MissingExtraError:
            raise
        except Exception as error:
            if clock.expired():
                cap = f"max_seconds={self.caps['seconds']:g}"
                raise _Ended(f"{cap}: making a pipeline took too long") from error
            why = _plain(f"{type(error).__name__}: {error}")
            raise _Failed(f"the pipeline could not be made: {why}") from error

    def _left(self, kind: str) -> float | None:
        """What is left of a cap; ``None`` without one."""
        cap = self.caps[kind]
        return None if cap is None else max(0.0, cap - self._used[kind])

    def _calls_left(self, settings: Mapping[str, Any], part: str, end: int) -> int | None:
        """Model calls that may be made for these questions; ``None`` without a cap.

        Raises:
            _Ended: If a cap does not suffice for these and for judging the winner, by what a question took so far.
        """
        used, calls = self._used, None
        new = max(0, end - self._record(settings, part).get("asked", 0))
        later = 2 * len(self.parts[1]) if part == "search" else 0  # when the winner is judged
        for kind, cap in self.caps.items():
            if cap is None:
                continue
            each = min(cap, used[kind]) / used["asked"] if used["asked"] else 0.0
            left = cap - used[kind]
            if left <= 0 or left < each * (new + later):
                raise _Ended(
                    f"max_{kind}={cap:g}: {used[kind]:.3g} are used, {each * later:.3g} are kept to judge the winner"
                )
            if kind == "calls":
                calls = max(1, int(left - each * later))
        return calls


def split_examples(
    examples: Sequence[Example], set_aside: float, seed: int
) -> tuple[list[Example], list[Example]]:
    """The questions to search with and those set aside; any beginning of either is mixed by type as the whole is.

    The same examples and seed give the same parts in any order. Questions with the same words stay on one side.

    Raises:
        InvalidInputError: If a part has fewer than 2 questions.

    Example:
        >>> examples = [Example(str(n), f"Question {n}?", tags={"type": "ab"[n % 2]}) for n in range(20)]
        >>> search, held = split_examples(examples, 0.3, 0)
        >>> len(search), sorted(example.tags["type"] for example in held)
        (14, ['a', 'a', 'a', 'b', 'b', 'b'])
    """
    same_words: dict[str, list[Example]] = defaultdict(list)
    for example in sorted(examples, key=lambda example: example.id):
        same_words[" ".join(example.question.casefold().split())].append(example)
    types: dict[str, list[tuple[float, list[Example]]]] = defaultdict(list)
    for group in same_words.values():
        draw = hashlib.sha256(f"{seed}\n{group[0].id}".encode("utf-8", "backslashreplace")).digest()
        types[group[0].tags.get("type", "")].append((int.from_bytes(draw[:6], "big") / 256**6, group))
    placed = [
        ((place + draw) / len(members), group)
        for members in types.values()
        for place, (draw, group) in enumerate(sorted(members, key=lambda item: item[0]))
    ]
    parts: tuple[list[Example], list[Example]] = ([], [])
    for _, group in sorted(placed, key=lambda item: item[0]):
        parts[len(parts[1]) < round(set_aside * len(examples))].extend(group)
    if len(parts[0]) < 2 or (set_aside and len(parts[1]) < 2):
        raise InvalidInputError(
            f"{len(examples)} questions with set_aside={set_aside:g} leave {len(parts[0])} to search with and "
            f"{len(parts[1])} to judge the winner with; each part needs at least 2, and 30 to tell anything"
        )
    return parts


def blocks(count: int) -> list[int]:
    """Where a setting may be given up: after so many questions, each time twice as many, the last time all.

    Example:
        >>> blocks(100), blocks(14)
        ([13, 25, 50, 100], [14])
    """
    ends = [count]
    while (half := math.ceil(ends[0] / 2)) >= _FEWEST:
        ends.insert(0, half)
    return ends


def worse_than(best: Mapping[str, float], own: Mapping[str, float], higher_is_better: bool) -> str:
    """Why a setting is significantly worse than the best one on the questions of both; empty if it is not.

    Example:
        >>> best = {str(n): 1.0 for n in range(10)}
        >>> worse_than(best, {str(n): 0.5 for n in range(8)}, True)
        'worse than the best setting on the 8 questions so far: 0.5 against 1, p = 0.0039'
        >>> worse_than(best, {str(n): 0.5 for n in range(4)}, True)
        ''
    """
    shared = [key for key in own if key in best]
    sign = 1.0 if higher_is_better else -1.0
    differences = [sign * (own[key] - best[key]) for key in shared]
    if not differences or sum(differences) >= 0:
        return ""
    p = sign_flip_test(differences) / 2  # the test is two-sided and symmetric
    if p > _LEVEL:
        return ""
    means = [statistics.fmean(scores[key] for key in shared) for scores in (own, best)]
    return (
        f"worse than the best setting on the {len(shared)} questions so far: {means[0]:.3g} against {means[1]:.3g}, "
        f"p = {p:.2g}"
    )


def _space_of(make_pipeline: Any, space: Any) -> tuple[SearchSpace, Callable[[dict[str, Any]], Any]]:
    """The space, and what makes the pipeline of a setting."""
    if isinstance(make_pipeline, SearchSpace) and make_pipeline.make is not None and space is None:
        return make_pipeline, make_pipeline.make
    if not callable(make_pipeline) or isinstance(make_pipeline, type) or space is None:
        raise InvalidInputError(
            f"make_pipeline is {make_pipeline!r:.120} and space {space!r:.80}; give a function from a setting (a dict) "
            "to a pipeline with space={'k': {'int': [1, 20]}}, or SearchSpace.of_retrievers(documents) alone"
        )
    return (space if isinstance(space, SearchSpace) else SearchSpace(space)), make_pipeline


def _opened(log: AppendLog, folder: Path, header: Mapping[str, Any]) -> Any:
    """The study of a folder that is locked.

    Raises:
        InvalidInputError: If it is damaged, or that of another search.
    """
    log.append([])  # a line that a kill has cut off is dropped
    log.release()
    (folder / f"{FILE}.lock").unlink(missing_ok=True)  # of Optuna, left by a kill; nobody else writes
    study = kept.open_study(folder / FILE, "maximize" if header["higher_is_better"] else "minimize")
    wanted, found = json.loads(json.dumps(header)), study.user_attrs.get("search")
    if found is None and not study.get_trials(deepcopy=False):
        study.set_user_attr("search", wanted)
    elif other := [name for name in wanted if (found or {}).get(name) != wanted[name]]:
        raise InvalidInputError(
            f"{str(folder)!r} holds another search: not the same {', '.join(other)}; give another folder as out, or "
            "the same arguments as before to resume it"
        )
    return study


def _plain(reason: str) -> str:
    """A reason without keys and control characters, short."""
    return clean_text(redact(reason))[:300]
