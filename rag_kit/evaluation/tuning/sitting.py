"""One sitting of a search: settings are proposed, asked block after block of questions, given up or finished."""

from __future__ import annotations

import asyncio
import hashlib
import math
import statistics
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rag_kit._redact import redact
from rag_kit.concurrency.bridge import acall_function, run_in_thread
from rag_kit.documents import clean_text
from rag_kit.errors import BudgetExceededError, InvalidInputError, MissingExtraError
from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.metric import Metric
from rag_kit.evaluation.runs.evaluating import aevaluate, resolve
from rag_kit.evaluation.runs.gold import look_for_gold
from rag_kit.evaluation.runs.results import Results
from rag_kit.evaluation.statistics import sign_flip_tests
from rag_kit.evaluation.tuning.result import Trial, TuningResult, record_name, record_of
from rag_kit.evaluation.tuning.space import SearchSpace, label, quiet
from rag_kit.evaluation.wording import in_language

_STARTUP_TRIALS = 8  # settings drawn at random before TPE's model of the space is used
_MAX_PROPOSALS = 25  # of TPE's until one is new
_MIN_QUESTIONS = 8  # before a setting may be given up
_MAX_FAILURES = 5  # settings in a row that fail; then the cause is hardly the settings
_MIN_COVERAGE = 0.8  # share of the questions that the default has a value for
_PRUNING_LEVEL = 0.05  # one-sided p-value below which a setting is called worse
Scores = Mapping[str, float]  # by question
_STATES = {"complete": "COMPLETE", "pruned": "PRUNED", "failed": "FAIL"}


class _Ended(Exception):
    """The search cannot go on; the message says why."""


class _Failed(Exception):
    """A setting has no pipeline, or too few values; the message says why."""


@dataclass
class Sitting:
    """One call of `tune`, which may resume earlier ones: their answers are in folders, finished trials in the study."""

    make: Callable[[dict[str, Any]], Any]
    space: SearchSpace
    metric: Metric
    parts: Mapping[str, list[Example]]  # the questions to "search" with, and those "set_aside"
    result: TuningResult  # what earlier sittings wrote; this one adds to its records
    n_trials: int
    caps: Mapping[str, float | None]
    pruning: Any
    seed: int
    report: Callable[[str], object]
    arguments: Mapping[str, Any]
    max_missing_gold: float | None

    async def run(self) -> TuningResult:
        """Try settings until the search ends, then evaluate the best one and the default on the questions set aside."""
        result = self.result
        # these properties read files, so a thread reads them; ``setup`` is read to be cached for later
        self._records, _, attributes = await run_in_thread(
            lambda: (result.records, result.setup, result.study.user_attrs)
        )
        # as if no time lay between the sittings
        self._began = time.monotonic() - attributes.get("elapsed", 0.0)
        try:
            why_ended = await self._try_settings()
        except _Ended as error:
            why_ended = str(error)
        try:
            await self._judge_winner()
        except (_Ended, _Failed) as error:
            why_ended = f"{why_ended}; the winner could not be judged on all questions set aside: {error}"
        if why_ended != attributes.get("ended"):
            for name, value in (("elapsed", round(self._usage["seconds"], 3)), ("ended", why_ended)):
                await run_in_thread(self.result.study.set_user_attr, name, value)
        return self.result

    @property
    def _usage(self) -> dict[str, Any]:
        return {**self.result.counts, "seconds": time.monotonic() - self._began}

    @property
    def _seconds_left(self) -> float | None:
        cap = self.caps["seconds"]
        return None if cap is None else max(0.0, cap - time.monotonic() + self._began)

    def _count_asked(self, settings: Mapping[str, Any], part: str) -> int:
        record = self._records.get(record_name(settings, part), {})
        return int(record.get("asked", 0))

    async def _try_settings(self) -> str:
        """Try settings until ``n_trials`` or the end of the space; return why no more are tried."""
        failures = 0
        while (number := sum(trial.state != "unfinished" for trial in self.result.trials)) < self.n_trials:
            settings = await run_in_thread(self._propose, number)
            if settings is None:
                return f"every setting of the space was tried ({number})"
            trial = await self._try_setting(number, settings)
            failures = failures + 1 if trial.state == "failed" else 0
            if failures == _MAX_FAILURES:
                return f"{_MAX_FAILURES} settings failed one after the other, the last one because {trial.reason}"
        return f"n_trials={self.n_trials}"

    def _propose(self, number: int) -> dict[str, Any] | None:
        """Propose a setting that was not tried yet, by seed and finished trials alone; ``None`` if none is left."""
        if number == 0:
            return self.space.default
        with quiet() as optuna:
            trials = self.result.study.get_trials(deepcopy=False)
            study = optuna.create_study(direction=self.result.study.direction.name.lower())
            study.add_trials(trials)  # a copy in memory: proposals are not written to the file
            # all distributions but that of a float without a step have a finite number of values
            is_finite = all(getattr(values, "step", 1) for values in self.space.distributions.values())
            tried = {label(trial.user_attrs["settings"]) for trial in trials}
            for attempt in range(_MAX_PROPOSALS + 1):
                is_last = attempt == _MAX_PROPOSALS
                seed = _seed_of(f"{self.seed}/{number}/{attempt}")  # a resumed search proposes the same
                if is_last and is_finite:  # TPE repeats itself: this sampler finds a setting that is left
                    study.sampler = optuna.samplers.BruteForceSampler(seed=seed)
                else:
                    study.sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=_STARTUP_TRIALS)
                proposal = study.ask(self.space.distributions)
                settings = self.space.setting(proposal.params)
                if label(settings) not in tried:
                    return settings
                if not is_last:  # BruteForceSampler stops a study when it is told of the last setting
                    study.tell(proposal, state=optuna.trial.TrialState.FAIL)
        return None

    async def _try_setting(self, number: int, settings: dict[str, Any]) -> Trial:
        """Evaluate a setting block after block of questions, and add its trial to the study."""
        is_default = number == 0
        state, reason = "complete", ""
        steps: dict[int, float] = {}  # number of questions asked -> mean over them
        ends = _block_ends(len(self.parts["search"]))
        try:
            self._calls_left(settings, "search", ends[0])  # raises if the caps do not allow a block
            pipeline = await self._make_pipeline(settings)
            if is_default:  # raises if too much of the gold is not in its documents
                examples, corpus = [*self.parts["search"], *self.parts["set_aside"]], None
                await run_in_thread(look_for_gold, pipeline, examples, corpus, self.max_missing_gold)
            for end in ends:
                results = await self._evaluate(pipeline, settings, "search", end, retry_errors=end == ends[0])
                self._check_coverage(results, end)
                scores = results.values(self.metric.name)
                steps[end] = statistics.fmean(scores.values())
                if not is_default and end < ends[-1]:
                    reason = await run_in_thread(self._reason_to_prune, settings, scores, steps)
                if reason:
                    state = "pruned"
                    break
        except _Failed as error:
            if is_default:
                raise InvalidInputError(f"the default setting {settings!r:.300}: {error}") from error
            state, reason = "failed", str(error)
        await run_in_thread(self._add_trial, settings, state, reason, steps)
        trial = self.result.trials[number]
        self._report_trial(trial)
        return trial

    def _add_trial(self, settings: dict[str, Any], state: str, reason: str, steps: dict[int, float]) -> None:
        """Write a finished trial to the study, with the scores by which it is compared."""
        name = record_name(settings, "search")
        record = self._records.pop(name, {"scores": {}, "asked": 0, "calls": 0, "tokens": 0})
        record |= {"settings": settings, "state": state, "reason": reason}
        value = list(steps.values())[-1] if state == "complete" else None  # the mean over all questions
        trial = self.space.trial(
            settings, value=value, intermediate_values=steps, state=_STATES[state], user_attrs=record
        )
        with quiet():
            self.result.study.add_trial(trial)
        self._records[name] = record  # after those that finished before, as in the study
        self.result.study.set_user_attr("elapsed", round(self._usage["seconds"], 3))

    def _report_trial(self, trial: Trial) -> None:
        """Report the score of a trial, the best one so far, and what the search has used."""
        current, best = (f"{t.value or 0:.4f} (setting {t.number})" for t in (trial, self.result.best_trial))
        usage = f"{self._usage['calls']} calls, {self._usage['seconds']:.0f} s"
        line = f"{trial.state}: {current} on {trial.asked} questions; best {best} of {self.n_trials}; {usage}"
        self.report(in_language(line, self.result.language))

    def _check_coverage(self, results: Results, total: int) -> None:
        """Raise `_Failed` if a setting has too few values, compared with the default on the same questions."""
        cells = results.cells(self.metric.name)
        scores_of_default = self._records[record_name(self.space.default, "search")]["scores"]
        expected = sum(key in cells for key in scores_of_default)
        with_value = len(results.values(self.metric.name))
        if not with_value or with_value < _MIN_COVERAGE * expected:
            reasons = Counter(_clean_reason(cell.reason) for cell in cells.values() if cell.value is None)
            most_frequent = max(reasons, key=reasons.__getitem__, default="no reason is known")
            counts = f"{with_value} of {total} questions have a value, with the default {expected}"
            raise _Failed(f"{counts}: {most_frequent}")

    def _reason_to_prune(self, settings: dict[str, Any], scores: Scores, steps: Mapping[int, float]) -> str:
        """Return why the pruning rule gives up a setting after a block of questions; "" if it goes on."""
        if self.pruning == "paired":
            return _explain_worse(self.result.best_trial.scores, scores, self.metric.higher_is_better)
        if self.pruning == "none":
            return ""
        trial = self.space.trial(settings, state="RUNNING", intermediate_values=dict(steps))
        is_pruned = self.pruning.prune(self.result.study, trial)
        return f"Optuna's {type(self.pruning).__name__} gave it up" if is_pruned else ""

    async def _judge_winner(self) -> None:
        """Evaluate the best setting and the default one on the questions set aside, unless the default is the best."""
        total = len(self.parts["set_aside"])
        default, winner = self.result.trials[0], self.result.best_trial  # the first trial is the default
        if not total or winner == default:
            return
        for trial in (default, winner):
            settings = dict(trial.settings)
            if self._count_asked(settings, "set_aside") != total:  # else an earlier sitting has done it
                pipeline = await self._make_pipeline(settings)
                await self._evaluate(pipeline, settings, "set_aside", total, retry_errors=True)

    async def _evaluate(
        self, pipeline: Any, settings: dict[str, Any], part: str, end: int, *, retry_errors: bool
    ) -> Results:
        """Evaluate a setting on the first ``end`` questions of a part; those with a score are not asked again."""
        examples, name = self.parts[part][:end], record_name(settings, part)
        try:
            results = await aevaluate(
                pipeline, examples, [self.metric], out=self.result.folder / name, name="tuned", version=label(settings),
                max_calls=self._calls_left(settings, part, end), deadline=self._seconds_left, progress=False,
                retry_errors=retry_errors, max_missing_gold=None, **self.arguments,
            )  # fmt: skip
        except BudgetExceededError as error:
            raise self._ended_by(str(error)) from error
        if len(results.rows) >= self._count_asked(settings, part):  # else fewer than were asked before
            self._records[name] = record_of(results)
        if len(results.rows) < len(examples):
            raise self._ended_by(str(results.manifest.get("stopped_by") or "a cap was reached"))
        return results

    def _ended_by(self, reason: str) -> _Ended:
        """Make the exception that ends the search; if its time is over, it names the cap that the user set."""
        return _Ended(f"max_seconds={self.caps['seconds']}: {reason}" if self._seconds_left == 0 else reason)

    async def _make_pipeline(self, settings: dict[str, Any]) -> Any:
        """Call the user's function that makes the pipeline of a setting; raises `_Failed` if that fails."""
        try:
            async with asyncio.timeout(self._seconds_left) as clock:
                pipeline = await acall_function(self.make, settings)
            return await run_in_thread(resolve, pipeline)
        except MissingExtraError:
            raise
        except Exception as error:
            if clock.expired():
                raise self._ended_by("making a pipeline took too long") from error
            why = _clean_reason(f"{type(error).__name__}: {error}")
            raise _Failed(f"the pipeline could not be made: {why}") from error

    def _calls_left(self, settings: Mapping[str, Any], part: str, end: int) -> int | None:
        """Return how many model calls the first ``end`` questions of a part may use; ``None`` without a cap.

        Raises `_Ended` if a cap is too small for these and for judging the winner, by what a question took so far.
        """
        usage, calls_left = self._usage, None
        to_ask = max(0, end - self._count_asked(settings, part))
        to_judge = 2 * len(self.parts["set_aside"]) if part == "search" else 0  # by winner and default
        for name, cap in self.caps.items():  # "calls" and "seconds"
            if cap is None:
                continue
            used = usage[name]
            per_question = min(cap, used) / usage["asked"] if usage["asked"] else 0.0
            left, reserved = cap - used, per_question * to_judge
            if left <= 0 or left < per_question * to_ask + reserved:
                raise _Ended(
                    f"max_{name}={cap:g}: {used:.3g} are used, {reserved:.3g} are kept to judge the winner"
                )
            if name == "calls":
                calls_left = max(1, int(left - reserved))
        return calls_left


def _seed_of(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")  # of 32 bits, as NumPy takes it


def _block_ends(count: int) -> list[int]:
    """Return after how many questions each block ends; they about double: 10, 19, 37 if ``count`` is 37."""
    ends = [count]
    while (half := math.ceil(ends[0] / 2)) >= _MIN_QUESTIONS:
        ends.insert(0, half)
    return ends


def _explain_worse(best: Scores, scores: Scores, higher_is_better: bool) -> str:
    """Explain that a setting is significantly worse than the best one, on the questions that both have; "" if not."""
    shared = [key for key in scores if key in best]
    sign = 1.0 if higher_is_better else -1.0
    differences = [sign * (scores[key] - best[key]) for key in shared]
    if not differences or sum(differences) >= 0:
        return ""
    p = sign_flip_tests(np.array(differences)[:, None])[0] / 2  # the test is two-sided and symmetric
    if p > _PRUNING_LEVEL:
        return ""
    own_mean, best_mean = (statistics.fmean(values[key] for key in shared) for values in (scores, best))
    means = f"{own_mean:.3g} against {best_mean:.3g}, p = {p:.2g}"
    return f"worse than the best setting on the {len(shared)} questions so far: {means}"


def _clean_reason(reason: str) -> str:
    return clean_text(redact(reason))[:300]
