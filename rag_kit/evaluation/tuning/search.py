"""The search itself: setting after setting, block of questions after block, until a cap or the end."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rag_kit.concurrency import run_in_thread
from rag_kit.concurrency.bridge import acall_function
from rag_kit.errors import BudgetExceededError, InvalidInputError, MissingExtraError, RagKitError
from rag_kit.evaluation.runs.asking import resolve
from rag_kit.evaluation.tuning.events import score_events, told
from rag_kit.evaluation.tuning.history import History, Part, Tried
from rag_kit.evaluation.tuning.optimiser import Optimiser
from rag_kit.evaluation.tuning.plan import Plan
from rag_kit.evaluation.tuning.pruning import reason_to_stop
from rag_kit.evaluation.tuning.split import blocks

if TYPE_CHECKING:
    from rag_kit.evaluation.examples import Example
    from rag_kit.evaluation.tuning.log import TuningLog
    from rag_kit.evaluation.tuning.spending import Spending

_FAILURES = 5
"""Settings that may fail one after the other before the search ends: then it is hardly the settings."""
_FIRST = 4
"""Questions asked before anything is known of what one costs."""


class _Ended(Exception):
    """The search cannot go on; the text says why."""


class _NotMadeError(Exception):
    """A setting has no pipeline; the text says why."""


class Search:
    """One sitting of a search.

    Args:
        plan: What is searched.
        log: Where it is written, open.
        history: What the log holds.
        spending: What may still be used.
    """

    def __init__(self, plan: Plan, log: TuningLog, history: History, spending: Spending) -> None:
        self.plan = plan
        self.log = log
        self.history = history
        self.spending = spending
        self._pipelines: dict[int, Any] = {}
        self._asked: set[tuple[int, Part, str]] = set()

    async def run(self) -> str:
        """Search, then judge the winner; why it ended."""
        try:
            why = await self._settings()
        except _Ended as ended:
            why = str(ended)
        try:
            await self._judge_winner()
        except _Ended as ended:
            why = f"{why}; the winner could not be judged on all questions held aside: {ended}"
        return why

    async def _settings(self) -> str:
        plan, history = self.plan, self.history
        optimiser = await run_in_thread(self._optimiser)
        failures = 0
        for number in range(plan.n_trials):
            known = history.tried.get(number)
            if known is None or known.end is None:
                if known is None:
                    settings = (
                        plan.space.default if number == 0 else await run_in_thread(optimiser.propose, number)
                    )
                    if settings is None:
                        return f"every setting of the space was tried ({number})"
                    self._look_ahead()
                    await self._write({"event": "trial", "trial": number, "settings": settings})
                await self._try(number)
                failures = failures + 1 if self._state(number) == "failed" else 0
                if failures == _FAILURES:
                    reason = history.trial(number).reason
                    return f"{_FAILURES} settings failed one after the other, the last one because {reason}"
            tried = history.tried[number]
            await run_in_thread(self._add_to, optimiser, tried)
        return f"n_trials={plan.n_trials}"

    def _optimiser(self) -> Optimiser:
        plan = self.plan
        return Optimiser(plan.space, seed=plan.seed, higher_is_better=plan.metric.higher_is_better)

    def _add_to(self, optimiser: Optimiser, tried: Tried) -> None:
        values = list(tried.values().values())
        mean = sum(values) / len(values) if values else None
        assert tried.end is not None, "only a setting that has ended is told"
        optimiser.add(
            tried.settings, tried.end["state"], mean, {} if mean is None else {len(tried.search): mean}
        )

    async def _try(self, number: int) -> None:
        """Ask block after block; writes how the setting ended."""
        questions = self.plan.split.search
        try:
            await self._make(number)
        except _NotMadeError as error:
            await self._end(number, "failed", str(error))
            return
        for end in blocks(len(questions)):
            await self._ask(number, "search", questions[:end], reserve=self._reserve())
            shown = [example.id for example in questions[:end]]
            if reason := self._too_few(number, shown):
                await self._end(number, "failed", reason)
                return
            if (
                number
                and end < len(questions)
                and (reason := await run_in_thread(self._prune, number, shown))
            ):
                await self._end(number, "pruned", reason)
                return
        await self._end(number, "complete", "")

    async def _make(self, number: int) -> None:
        settings = self.plan.space.settle(self.history.tried[number].settings)
        try:
            async with asyncio.timeout(self.spending.left("seconds")) as clock:
                pipeline = await acall_function(self.plan.make, settings)
            pipeline = await run_in_thread(resolve, pipeline)
        except BudgetExceededError as error:
            raise _Ended(str(error)) from error
        except MissingExtraError:
            raise
        except Exception as error:
            if clock.expired():
                raise _Ended(
                    f"max_seconds={self.spending.caps['seconds']:g}: making setting {number} took too long"
                ) from error
            why = told(f"{type(error).__name__}: {error}")
            if number:
                raise _NotMadeError(f"the pipeline could not be made: {why}") from error
            if isinstance(error, RagKitError):
                raise
            raise InvalidInputError(
                f"the pipeline of the default setting {settings!r:.300}: {why}"
            ) from error
        kept = (0, self.history.best())
        self._pipelines = {key: each for key, each in self._pipelines.items() if key in kept}
        self._pipelines[number] = pipeline

    def _too_few(self, number: int, shown: Sequence[str]) -> str | None:
        """Whether a setting has too few values to be compared; the default one must have any."""
        tried, default = self.history.tried[number], self.history.tried[0]
        values, least = tried.values(), default.values()
        have, wanted = sum(key in values for key in shown), sum(key in least for key in shown)
        if number == 0 and have == 0:
            raise InvalidInputError(
                f"{self.plan.metric.name} has no value for any of the first {len(shown)} questions with the default "
                f"setting: {_common(tried)}"
            )
        if number == 0 or have >= self.plan.min_coverage * wanted:
            return None
        return f"{have} of {len(shown)} questions have a value, with the default {wanted}: {_common(tried)}"

    def _prune(self, number: int, shown: Sequence[str]) -> str | None:
        values = self.history.tried[number].values()
        return reason_to_stop(
            self.plan.pruning,
            {key: values[key] for key in shown if key in values},
            self.history.finished(),
            {each: tried.values() for each, tried in self.history.tried.items() if each < number},
            higher_is_better=self.plan.metric.higher_is_better,
        )

    async def _judge_winner(self) -> None:
        """The winner and the default answer the questions held aside, side by side, so that pairs are complete."""
        best, held = self.history.best(), self.plan.split.held
        if best is None or not held or self._state(0) != "complete":
            return
        numbers = list(dict.fromkeys((0, best)))
        step = 4 * self.plan.max_concurrency
        for start in range(0, len(held), step):
            for number in numbers:
                try:
                    await self._ask(number, "held", held[start : start + step], reserve=0)
                except _NotMadeError as error:
                    raise _Ended(str(error)) from error

    async def _ask(self, number: int, part: Part, examples: Sequence[Example], *, reserve: int) -> None:
        """Ask those questions that have no score yet; each batch is written before the next one is begun."""
        known = self.history.tried[number].part(part)
        # what failed in an earlier sitting may have been the network
        missing = [
            example for example in examples
            if example.id not in known
            or (known[example.id]["status"] == "error" and (number, part, example.id) not in self._asked)
        ]  # fmt: skip
        if missing and number not in self._pipelines:
            await self._make(number)
        while missing:
            size = 4 * self.plan.max_concurrency if self.spending.measured else _FIRST
            batch, missing = missing[:size], missing[size:]
            if why := self.spending.ended(len(batch), reserve):
                raise _Ended(why)
            self._asked.update((number, part, example.id) for example in batch)
            await self._ask_batch(number, part, batch)

    async def _ask_batch(self, number: int, part: Part, batch: Sequence[Example]) -> None:
        from rag_kit.evaluation.runs import aevaluate

        plan, started = self.plan, time.monotonic()
        calls = self.spending.left("calls")
        try:
            results = await aevaluate(
                self._pipelines[number], list(batch), [plan.metric], judge=plan.judge, timeout=plan.timeout,
                max_concurrency=plan.max_concurrency, max_calls=None if calls is None else int(calls),
                deadline=self.spending.left("seconds"), prices=plan.prices, progress=False,
                version="tuned",  # nothing is kept by evaluate, so it need not hash the pipeline
            )  # fmt: skip
        except BudgetExceededError as error:
            raise _Ended(str(error)) from error
        seconds = time.monotonic() - started
        events = score_events(results, plan.metric.name, number, part, seconds, prices=plan.prices)
        for event in events:
            self.spending.add(event, questions=1, seconds=event["seconds"])
        for event in events:
            event["elapsed"] = round(self.spending.elapsed, 3)
        await self._write(*events)
        if self.spending.caps["money"] is not None and not self.spending.money_known:
            raise InvalidInputError(
                "max_money was given, and the price of a model that was asked is not known; name it in prices, or '*' "
                "for every other model, such as prices={'*': {'input': 0.15, 'output': 0.6}}"
            )
        if len(events) < len(batch):
            raise _Ended(
                str(results.manifest.get("stopped_by") or "a cap was reached while questions were asked")
            )

    def _state(self, number: int) -> str:
        end = self.history.tried[number].end
        return "unfinished" if end is None else str(end["state"])

    def _reserve(self) -> int:
        """Questions that must stay possible: the winner's and the default's on the part held aside."""
        asked = len(self.history.tried[0].held) if 0 in self.history.tried else 0
        return 2 * len(self.plan.split.held) - asked

    def _look_ahead(self) -> None:
        """End before a setting is begun that could not be asked its first block."""
        first = blocks(len(self.plan.split.search))[0]
        if 0 in self.history.tried and (why := self.spending.ended(first, self._reserve())):
            raise _Ended(why)

    async def _end(self, number: int, state: str, reason: str) -> None:
        elapsed = round(self.spending.elapsed, 3)
        await self._write(
            {"event": "end", "trial": number, "state": state, "reason": reason, "elapsed": elapsed}
        )
        trial, best = self.history.trial(number), self.history.best()
        value = "-" if trial.value is None else f"{trial.value:.4f}"
        shown = "" if best is None else f", best {self.history.trial(best).value:.4f} (setting {best})"
        self.plan.told(
            f"setting {number} of {self.plan.n_trials}: {state}, {self.plan.metric.name} {value} on {trial.asked} "
            f"questions{shown}; {self.history.calls} calls, {elapsed:.0f} s"
        )

    async def _write(self, *events: Mapping[str, Any]) -> None:
        for event in events:  # first, so that nothing is written that could not be read again
            self.history.add(event)
        await run_in_thread(self.log.append, *events)


def _common(tried: Tried) -> str:
    """The most frequent reason for which there is no value."""
    reasons = Counter(str(event["reason"]) for event in tried.search.values() if event["value"] is None)
    return reasons.most_common(1)[0][0] if reasons else "no reason is known"
