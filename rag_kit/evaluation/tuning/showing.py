"""A search's result for the terminal and for Jupyter. Texts of others are shown, never interpreted."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from rag_kit.documents import clean_text

if TYPE_CHECKING:
    from rag_kit.evaluation.tuning.result import Trial, TuningResult

_MOST = 10
_WIDTH = 160


def text(result: TuningResult) -> str:
    """The verdict, the winner, and the best settings."""
    usage = result.usage
    lines = [
        clean_text(result.verdict),
        f"best: {_settings(result.best_trial)}",
        f"ended: {clean_text(result.stopped)}; {_counts(result)}; {usage.get('calls', 0)} model calls, "
        f"{usage.get('seconds', 0):.0f} s",
        *(f"note: {clean_text(note)}" for note in result.notes),
        "",
        f"{'':>4} {clean_text(result.metric):>12}  settings",
    ]
    for trial in _ranked(result)[:_MOST]:
        lines.append(f"{trial.number:>4} {_value(trial):>12}  {_settings(trial)}"[:_WIDTH])
    return "\n".join(lines)


def html(result: TuningResult) -> str:
    """The same as a table."""
    rows = "".join(
        f"<tr><td>{trial.number}</td><td>{_value(trial)}</td><td>{trial.state}</td>"
        f"<td>{escape(_settings(trial))}</td></tr>"
        for trial in _ranked(result)[:_MOST]
    )
    notes = "".join(f"<li>{escape(clean_text(note))}</li>" for note in result.notes)
    return (
        f"<div><p><b>{escape(clean_text(result.verdict))}</b></p><p>{escape(clean_text(result.stopped))}; "
        f"{escape(_counts(result))}</p><ul>{notes}</ul><table><thead><tr><th>setting</th>"
        f"<th>{escape(clean_text(result.metric))}</th><th>state</th><th>values</th></tr></thead>"
        f"<tbody>{rows}</tbody></table></div>"
    )


def _ranked(result: TuningResult) -> list[Trial]:
    """Complete ones first, the best on top; the default is always shown."""
    sign = -1.0 if result.higher_is_better else 1.0

    def place(trial: Trial) -> tuple[bool, float, int]:
        return (trial.state != "complete", sign * (trial.value or 0.0), trial.number)

    ranked = sorted(result.trials, key=place)
    shown = ranked[:_MOST]
    return ranked if result.trials[0] in shown else [*shown[:-1], result.trials[0]]


def _counts(result: TuningResult) -> str:
    states = [trial.state for trial in result.trials]
    told = [f"{states.count(state)} {state}" for state in ("complete", "pruned", "failed", "unfinished")]
    return f"{len(states)} settings ({', '.join(each for each in told if not each.startswith('0 '))})"


def _value(trial: Trial) -> str:
    mark = "" if trial.state == "complete" else f" ({trial.state})"
    return ("-" if trial.value is None else f"{trial.value:.4f}") + mark


def _settings(trial: Trial) -> str:
    told = ", ".join(f"{name}={value!r}" for name, value in trial.settings.items())
    return clean_text(("default: " if trial.number == 0 else "") + told)
