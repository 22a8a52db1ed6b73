"""From settings to results: the folder is opened, what it holds is taken up, the run is done, everything is saved."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from rag_kit.concurrency import run_in_thread
from rag_kit.concurrency.branch import current_branch
from rag_kit.evaluation.runs.folder import FORMAT, Known, RunFolder
from rag_kit.evaluation.runs.keys import digest
from rag_kit.evaluation.runs.manifest import clean, commit, describe_metric, now, versions
from rag_kit.evaluation.runs.planning import Plan
from rag_kit.evaluation.runs.progress import Reporter
from rag_kit.evaluation.runs.results import Results
from rag_kit.evaluation.runs.settings import Settings


async def run_session(settings: Settings) -> Results:
    """Do a run.

    Raises:
        ResultsLockedError: If another run writes to the folder.
        InvalidInputError: If the folder holds something else.
    """
    if settings.out is None:
        return await _run(settings, None)
    folder = await run_in_thread(RunFolder, settings.out)
    try:
        return await _run(settings, folder)
    finally:
        await _to_the_end(folder.close)


async def _run(settings: Settings, folder: RunFolder | None) -> Results:
    from rag_kit.evaluation.runs.runner import Runner

    def prepare() -> tuple[Plan, dict[str, Any]]:
        fingerprint = None if settings.judge is None else clean(settings.judge.fingerprint())
        known = Known() if folder is None else folder.read()
        before = {} if folder is None else folder.manifest()
        plan = Plan(settings, fingerprint, known, before.get("pipeline") or {})
        manifest = _manifest(settings, plan, fingerprint, before)
        if folder is not None:
            folder.write_manifest({**manifest, "status": "running"})
            folder.save(plan.rows)
        return plan, manifest

    plan, manifest = await run_in_thread(prepare)
    reused = sum(task.done for task in plan.tasks)
    reporter = Reporter(settings.progress, settings.name, len(plan.tasks), reused)
    runner = Runner(settings, plan, folder, reporter)
    status = "failed"
    try:
        await runner.run()
        status = "stopped" if runner.stopped else "complete"
    except (asyncio.CancelledError, KeyboardInterrupt):
        status = "interrupted"
        raise
    finally:
        reporter.close()
        manifest |= {
            "status": status,
            "ended": now(),
            "stopped_by": runner.stopped,
            "done": _done(runner, reused),
        }
        manifest |= {"usage": _usage(plan), "pipeline": plan.pipeline()}
        await _to_the_end(lambda: _save(folder, plan, manifest))
    names = tuple(metric.name for metric in settings.metrics)
    return Results(settings.name, plan.rows, names, manifest, len(settings.examples))


def _save(folder: RunFolder | None, plan: Plan, manifest: Mapping[str, Any]) -> None:
    """Bring what was computed into rows, and write the manifest beside them."""
    if folder is not None:
        folder.save(plan.rows)
        folder.write_manifest(manifest)


async def _to_the_end(function: Any) -> None:
    """Run a blocking function on a thread and wait for it, also while the run is being cancelled."""
    if (branch := current_branch.get()) is not None and branch.abandoned:
        function()  # no thread would do it: nobody waits for this run any more
        return
    cancelled = None
    waiting = asyncio.ensure_future(run_in_thread(function))
    while not waiting.done():
        try:
            await asyncio.shield(waiting)
        except asyncio.CancelledError as error:
            if waiting.cancelled():
                raise
            cancelled = error
    waiting.result()
    if cancelled is not None:
        raise cancelled


def _done(runner: Any, reused: int) -> dict[str, Any]:
    """What this very run did."""
    return {
        "reused": reused, "asked": runner.asked, "scored": runner.scored, "calls": runner.calls,
        "tokens": runner.tokens, "money": runner.money,
    }  # fmt: skip


def _usage(plan: Plan) -> dict[str, Any]:
    """What all rows took, those of earlier runs included."""
    rows = plan.rows
    cells = [cell for row in rows for cell in row.cells.values()]
    return {
        "pipeline": {
            "calls": sum(r.output.calls for r in rows),
            "tokens": sum(r.output.tokens for r in rows),
        },
        "judge": {"calls": sum(cell.calls for cell in cells), "tokens": sum(cell.tokens for cell in cells)},
    }


def _manifest(
    settings: Settings, plan: Plan, judge: Mapping[str, Any] | None, before: Mapping[str, Any]
) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "name": settings.name,
        "created": before.get("created") or now(),
        "started": now(),
        "examples": len(settings.examples),
        "dataset": {
            "name": settings.dataset,
            "fingerprint": digest([example.to_json() for example in settings.examples]),
        },
        "pipeline": plan.pipeline(),
        "metrics": [describe_metric(each, plan.metric_keys[each.name]) for each in settings.metrics],
        "judge": judge,
        "settings": clean(settings.plain()),
        "prices": {name: dict(price) for name, price in settings.prices.table.items()} or None,
        "versions": versions(),
        "commit": commit(),
    }
