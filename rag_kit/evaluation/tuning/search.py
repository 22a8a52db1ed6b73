"""The search itself: setting after setting, block of questions after block, until a cap or the end."""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import statistics
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_kit._redact import redact
from rag_kit.concurrency import run_in_thread
from rag_kit.concurrency.bridge import acall_function
from rag_kit.documents import clean_text
from rag_kit.errors import BudgetExceededError, InvalidInputError, MissingExtraError, RagKitError
from rag_kit.evaluation.runs.asking import resolve
from rag_kit.evaluation.tuning.result import Trial, TuningResult, add_usage, no_usage
from rag_kit.evaluation.tuning.space import Parameter, SearchSpace, label
from rag_kit.evaluation.tuning.split import Split, blocks
from rag_kit.evaluation.tuning.study import quiet
from rag_kit.evaluation.tuning.verdict import surely_worse

if TYPE_CHECKING:
    from rag_kit.evaluation.examples import Example
    from rag_kit.evaluation.judge.judge import Judge
    from rag_kit.evaluation.metric import Metric
    from rag_kit.evaluation.runs.results import Results

_STARTUP = 8  # settings drawn at random before TPE's model of the space is believed
_ATTEMPTS = 25  # proposals of TPE until one is new
_AT_RANDOM = 200  # further proposals in a space that is too large to be listed
_FEWEST = 3  # finished settings before Optuna's pruners give any up
_FAILURES = 5  # settings in a row; then the cause is hardly the settings


class _Ended(Exception):
    """The search cannot go on; the text says why."""


class _Failed(Exception):
    """A setting has no pipeline, or too few values; the text says why."""


@dataclass
class Search:
    """One sitting of a search. Its scores lie in folders that ``evaluate`` goes on with, its trials in the study.

    Args:
        make: Makes the pipeline of a setting.
        space: What may be changed.
        metric: What is compared.
        judge: For the metric.
        split: The questions of both parts.
        folder: Where scores are kept.
        study: The Optuna study.
        n_trials: Most settings.
        caps: ``calls``, ``seconds`` and ``money``; ``None`` for no cap.
        pruning: The rule.
        min_coverage: Least share of questions with a value, of those that the default setting has.
        max_concurrency: Questions asked at a time.
        timeout: Seconds for one question.
        prices: As for ``evaluate``.
        seed: Of the proposals.
        notify: Gets a line for each setting.
    """

    make: Callable[[dict[str, Any]], Any]
    space: SearchSpace
    metric: Metric
    judge: Judge | None
    split: Split
    folder: Path
    study: Any
    n_trials: int
    caps: Mapping[str, float | None]
    pruning: str
    min_coverage: float
    max_concurrency: int
    timeout: float | None
    prices: Any
    seed: int
    notify: Callable[[str], None]
    _began: float = field(default_factory=time.monotonic)
    _pipelines: dict[str, Any] = field(default_factory=dict)
    # setting -> scores, count and usage on the questions held aside
    _judged: dict[str, Any] = field(default_factory=dict)

    async def run(self) -> str:
        """Search, then judge the winner; returns why the search ended."""
        self.found = await run_in_thread(TuningResult.of, self.study)
        self._judged = await run_in_thread(lambda: dict(self.study.user_attrs.get("held", {})))
        for number, trial in enumerate(self.found.trials):
            if self.space.settle(trial.settings) != trial.settings:
                raise InvalidInputError(f"setting {number} of the folder is no whole setting of the space")
        self._before = float(self.found.usage["seconds"])
        try:
            why = await self._run_trials()
        except _Ended as ended:
            why = str(ended)
        try:
            await self._judge_winner()
        except _Ended as ended:
            why = f"{why}; the winner could not be judged on all questions held aside: {ended}"
        return why

    def end(self, ended: Mapping[str, Any]) -> TuningResult:
        """Write to the study why the search ended, unless it says so already, and return the result. It blocks."""
        if self.study.user_attrs.get("ended") != json.loads(json.dumps(ended)):
            self.study.set_user_attr("ended", ended)
        return TuningResult.of(self.study)

    @property
    def elapsed(self) -> float:
        """Seconds of all sittings."""
        return self._before + time.monotonic() - self._began

    async def _run_trials(self) -> str:
        """Try settings until ``n_trials`` or the end of the space; returns why no more are tried."""
        failures = 0
        for number in range(self.n_trials):
            known = self.found.trials[number] if number < len(self.found.trials) else None
            if known is None or known.state == "unfinished":
                if number:
                    self._check_caps(blocks(len(self.split.search))[0])
                settings = known.settings if known else await run_in_thread(self._propose, number)
                if settings is None:
                    return f"every setting of the space was tried ({number})"
                known = await self._run_trial(number, dict(settings), again=known is not None)
                failures = failures + 1 if known.state == "failed" else 0
                if failures == _FAILURES:
                    return f"{_FAILURES} settings failed one after the other, the last one because {known.reason}"
        return f"n_trials={self.n_trials}"

    def _propose(self, number: int) -> dict[str, Any] | None:
        """A setting that was not tried yet; it follows from the seed, the number and the settings before."""
        if number == 0:
            return self.space.default
        tried = {label(dict(trial.settings)) for trial in self.found.trials}
        study = self.found.study()  # a copy in memory: proposals leave no trace in the file
        every = self.space.settings()
        with quiet() as optuna:
            for attempt in range(_ATTEMPTS if every else _ATTEMPTS + _AT_RANDOM):
                seed = self._derived_seed(number, attempt)
                study.sampler = (
                    optuna.samplers.TPESampler(seed=seed, n_startup_trials=_STARTUP)
                    if attempt < _ATTEMPTS
                    else optuna.samplers.RandomSampler(seed=seed)
                )
                asked = study.ask()
                settings = self.space.pick(partial(Parameter.suggest, trial=asked))
                if label(settings) not in tried:
                    return settings
                study.tell(asked, state=optuna.trial.TrialState.FAIL)
        # with few choices TPE proposes the same good settings again and again: then one of the others, at random
        left = [settings for settings in every or () if label(settings) not in tried]
        return random.Random(self._derived_seed(number, _ATTEMPTS)).choice(left) if left else None

    def _derived_seed(self, number: int, attempt: int) -> int:
        """A seed that depends on the search's seed, the trial and the attempt, not on earlier draws."""
        return int.from_bytes(hashlib.sha256(f"{self.seed}/{number}/{attempt}".encode()).digest()[:4], "big")

    async def _run_trial(self, number: int, settings: dict[str, Any], *, again: bool) -> Trial:
        """Evaluate a setting block after block of questions; each block is written to the study."""
        trial = await run_in_thread(self._start_trial, settings)
        state, reason = "complete", ""
        try:
            for end in blocks(len(self.split.search)):
                results = await self._ask(settings, self.split.search[:end], "search", retry_errors=again)
                again = False
                scores = _scores(results, self.metric.name)
                await run_in_thread(self._save_block, trial, results, scores, end)
                self._check_coverage(number, results, scores, end)
                if number and end < len(self.split.search):
                    reason = await run_in_thread(self._reason_to_prune, trial, scores)
                    if reason:
                        state = "pruned"
                        break
        except _Failed as error:
            state, reason = "failed", str(error)
        await run_in_thread(self._finish_trial, trial, state, reason)
        self._forget_pipelines()
        known = self.found.trials[number]
        value = "-" if known.value is None else f"{known.value:.4f}"
        best = self.found.best_trial
        self.notify(
            f"setting {number} of {self.n_trials}: {state}, {self.metric.name} {value} on {known.asked} questions"
            + (f", best {best.value:.4f} (setting {best.number})" if best.value is not None else "")
            + f"; {self.found.usage['calls']} calls, {self.elapsed:.0f} s"
        )
        return known

    def _start_trial(self, settings: dict[str, Any]) -> Any:
        """A new trial of the study, whose parameters have the values of this setting."""
        with quiet() as optuna:
            fixed = {name: self.space.parameters[name].to_optuna(value) for name, value in settings.items()}
            self.study.sampler = optuna.samplers.PartialFixedSampler(
                fixed, optuna.samplers.RandomSampler(seed=0)
            )
            trial = self.study.ask()
            self.space.pick(partial(Parameter.suggest, trial=trial))
        trial.set_user_attr("settings", settings)
        return trial

    def _save_block(self, trial: Any, results: Results, scores: Mapping[str, float], asked: int) -> None:
        """Write the scores so far to the study, so that a killed search goes on from them."""
        trial.set_user_attr("scores", dict(scores))
        trial.set_user_attr("asked", asked)
        trial.set_user_attr("usage", _usage(results, self.metric.name, self.prices))
        if scores:
            trial.report(statistics.fmean(scores.values()), step=asked)
        self.found = TuningResult.of(self.study)

    def _finish_trial(self, trial: Any, state: str, reason: str) -> None:
        with quiet() as optuna:
            states = {"complete": "COMPLETE", "pruned": "PRUNED", "failed": "FAIL"}
            trial.set_user_attr("reason", reason)
            scores = trial.user_attrs.get("scores") or {}
            value = statistics.fmean(scores.values()) if state == "complete" else None
            self.study.tell(trial, value, state=optuna.trial.TrialState[states[state]])
            self.study.set_user_attr("elapsed", round(self.elapsed, 3))
        self.found = TuningResult.of(self.study)

    def _check_coverage(self, number: int, results: Results, scores: Mapping[str, float], asked: int) -> None:
        """Fail a setting with too few values to be compared; without any for the default one the search is refused."""
        name = self.metric.name
        cells = [row.cells[name] for row in results.rows if name in row.cells]
        reasons = Counter(_plain(cell.reason) for cell in cells if cell.value is None)
        common = reasons.most_common(1)[0][0] if reasons else "no reason is known"
        if number == 0:
            if not scores:
                raise InvalidInputError(
                    f"{name} has no value for any of the first {asked} questions with the default setting: {common}"
                )
            return
        asked_ids = {example.id for example in self.split.search[:asked]}
        wanted = sum(key in asked_ids for key in self.found.trials[0].scores)
        if len(scores) < self.min_coverage * wanted:
            raise _Failed(
                f"{len(scores)} of {asked} questions have a value, with the default {wanted}: {common}"
            )

    def _reason_to_prune(self, trial: Any, scores: Mapping[str, float]) -> str:
        """Why the pruning rule gives a setting up; empty if it does not."""
        if self.pruning == "none" or not scores:
            return ""
        if self.pruning == "paired":
            return surely_worse(scores, self.found.best_trial.scores, self.metric.higher_is_better) or ""
        with quiet() as optuna:
            first = blocks(len(self.split.search))[0]
            self.study.pruner = (
                optuna.pruners.MedianPruner(n_startup_trials=_FEWEST)
                if self.pruning == "median"
                else optuna.pruners.SuccessiveHalvingPruner(min_resource=first, reduction_factor=2)
            )
            name = type(self.study.pruner).__name__
            return f"Optuna's {name} gave it up" if trial.should_prune() else ""

    async def _judge_winner(self) -> None:
        """Evaluate the default setting and the winner on the questions held aside."""
        held = self.split.held
        if not held or not self.found.trials or self.found.trials[0].state != "complete":
            return
        best = self.found.best_trial
        for settings in dict.fromkeys(map(label, (dict(self.found.default), dict(best.settings)))):
            if self._judged.get(settings, {}).get("asked") == len(held):
                continue
            chosen = next(t.settings for t in self.found.trials if label(dict(t.settings)) == settings)
            try:
                results = await self._ask(dict(chosen), held, "held", retry_errors=True)
            except _Failed as error:
                raise _Ended(str(error)) from error
            self._judged[settings] = {
                "scores": _scores(results, self.metric.name),
                "asked": len(results.rows),
                "usage": _usage(results, self.metric.name, self.prices),
            }
            await run_in_thread(self.study.set_user_attr, "held", self._judged)
            self.found = await run_in_thread(TuningResult.of, self.study)
            if len(results.rows) < len(held):
                raise _Ended(str(results.manifest.get("stopped_by")))

    async def _ask(
        self, settings: dict[str, Any], examples: Sequence[Example], part: str, *, retry_errors: bool
    ) -> Results:
        """Evaluate a setting on these questions; those with a score from before are not asked again."""
        from rag_kit.evaluation.runs.evaluating import aevaluate

        key = _key(settings)
        pipeline = await self._pipeline(key, settings)
        reserve = self._check_caps(len(examples), part, known=self._questions_asked(settings, part))
        calls, seconds = self._remaining("calls"), self._remaining("seconds")
        try:
            results = await aevaluate(
                pipeline,
                list(examples),
                [self.metric],
                judge=self.judge,
                out=self.folder / f"{key}-{part}",
                name="tuned",
                version=key,  # the pipeline follows from the setting
                timeout=self.timeout,
                max_concurrency=self.max_concurrency,
                max_calls=None if calls is None else max(1, int(calls - reserve)),
                deadline=seconds,
                prices=self.prices,
                progress=False,
                retry_errors=retry_errors,
            )
        except BudgetExceededError as error:
            raise _Ended(str(error)) from error
        if self.caps["money"] is not None and None in _money(results, self.prices):
            raise InvalidInputError(
                "max_money was given, and the price of a model that was asked is not known; name it in prices, or '*' "
                "for every other model, such as prices={'*': {'input': 0.15, 'output': 0.6}}"
            )
        if part == "search" and len(results.rows) < len(examples):
            raise _Ended(
                str(results.manifest.get("stopped_by") or "a cap was reached while questions were asked")
            )
        return results

    async def _pipeline(self, key: str, settings: dict[str, Any]) -> Any:
        """The pipeline of a setting, made at its first use."""
        if key in self._pipelines:
            return self._pipelines[key]
        try:
            async with asyncio.timeout(self._remaining("seconds")) as clock:
                made = await acall_function(self.make, settings)
            pipeline = await run_in_thread(resolve, made)
        except BudgetExceededError as error:
            raise _Ended(str(error)) from error
        except MissingExtraError:
            raise
        except Exception as error:
            if clock.expired():
                raise _Ended(
                    f"max_seconds={self.caps['seconds']:g}: making a pipeline took too long"
                ) from error
            why = _plain(f"{type(error).__name__}: {error}")
            if settings != self.space.default:
                raise _Failed(f"the pipeline could not be made: {why}") from error
            if isinstance(error, RagKitError):
                raise
            raise InvalidInputError(
                f"the pipeline of the default setting {settings!r:.300}: {why}"
            ) from error
        self._pipelines[key] = pipeline
        return pipeline

    def _forget_pipelines(self) -> None:
        """Free all but those of the default and the best setting: a pipeline may hold an index."""
        kept = {_key(dict(self.found.default)), _key(dict(self.found.best))}
        self._pipelines = {key: made for key, made in self._pipelines.items() if key in kept}

    def _remaining(self, kind: str) -> float | None:
        """What is left under the cap of a kind of usage; ``None`` without a cap."""
        used = self.elapsed if kind == "seconds" else self.found.usage[kind] or 0
        cap = self.caps[kind]
        return None if cap is None else max(0.0, cap - used)

    def _questions_asked(self, settings: Mapping[str, Any], part: str) -> int:
        wanted = label(dict(settings))
        if part == "held":
            return int(self._judged.get(wanted, {}).get("asked", 0))
        return max((t.asked for t in self.found.trials if label(dict(t.settings)) == wanted), default=0)

    def _check_caps(self, questions: int, part: str = "search", known: int = 0) -> float:
        """Check that the caps suffice for these questions and for judging the winner.

        Returns:
            The model calls to reserve for the judging.

        Raises:
            _Ended: If a cap would be passed, by what a question took so far.
        """
        asked = sum(trial.asked for trial in self.found.trials)
        asked += sum(record["asked"] for record in self._judged.values())
        later = 0  # questions still to be asked when the winner is judged
        if part == "search":
            later = 2 * len(self.split.held) - self._questions_asked(self.space.default, "held")
        reserved_calls = 0.0
        for kind, cap in self.caps.items():
            left = self._remaining(kind)
            used = self.elapsed if kind == "seconds" else self.found.usage[kind] or 0
            each = used / asked if asked else 0.0
            if left is not None and (left <= 0 or left < each * (max(0, questions - known) + later)):
                reserve = min(left, each * later)
                more = f", {reserve:.3g} are kept to judge the winner" if reserve else ""
                raise _Ended(f"max_{kind}={cap:g}: {used:.3g} are used{more}")
            if kind == "calls":
                reserved_calls = each * later
        return reserved_calls


def _key(settings: Mapping[str, Any]) -> str:
    """Name of the folders that keep the scores of a setting."""
    return hashlib.sha256(label(settings).encode()).hexdigest()[:16]


def _scores(results: Results, metric: str) -> dict[str, float]:
    return {
        row.example.id: float(cell.value)
        for row in results.rows
        if (cell := row.cells.get(metric)) is not None and cell.value is not None
    }


def _money(results: Results, prices: Any) -> list[float | None]:
    pipeline, judge = results.money("pipeline", prices=prices), results.money("judge", prices=prices)
    return [None if a is None or b is None else a + b for a, b in zip(pipeline, judge, strict=True)]


def _usage(results: Results, metric: str, prices: Any) -> dict[str, Any]:
    total = no_usage()
    for row, money in zip(results.rows, _money(results, prices), strict=True):
        cell = row.cells.get(metric)
        calls, tokens = (cell.calls, cell.tokens) if cell is not None else (0, 0)
        add_usage(
            total,
            {
                "calls": row.output.calls + calls,
                "tokens": row.output.tokens + tokens,
                "money": money,
                "seconds": row.output.seconds,
            },
        )
    return total


def _plain(reason: str) -> str:
    """A reason without keys and control characters, short."""
    return clean_text(redact(reason))[:300]
