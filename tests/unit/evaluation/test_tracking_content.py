"""What is written of results, before any tracker is asked."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support.tracked_results import changed, some_results

from rag_kit.errors import ConfigurationError, InvalidInputError, MissingExtraError, TrackingError
from rag_kit.evaluation import Results, log_to_langsmith, log_to_mlflow, log_to_phoenix
from rag_kit.evaluation.tracking import content
from rag_kit.evaluation.tracking.mlflow_entries import (
    MAX_VALUE,
    entry_key,
    metrics_of,
    params_of,
    write_files,
)

WRITERS = (log_to_langsmith, log_to_mlflow, log_to_phoenix)


def test_importing_the_package_imports_no_client_of_a_tracker() -> None:
    """The functions are there without langsmith's client, mlflow, phoenix or httpx being imported."""
    program = (
        "import sys; import rag_kit.evaluation as e; e.log_to_langsmith, e.log_to_mlflow, e.log_to_phoenix, e.Tracked;"
        "print([n for n in ('langsmith', 'mlflow', 'phoenix', 'httpx') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "[]", done.stderr


def test_the_fingerprint_is_that_of_the_content(tmp_path: Path) -> None:
    """Saved and loaded results have the fingerprint of the results; another answer or name has another."""
    results = some_results()
    mark = content.fingerprint(results)
    assert content.fingerprint(Results.load(results.save(tmp_path / "run"))) == mark
    later = Results(results.name, results.rows, results.metrics, {**results.manifest, "started": "later"})
    assert content.fingerprint(later) == mark
    assert content.fingerprint(changed(results)) != mark
    assert content.fingerprint(Results("other", results.rows, results.metrics)) != mark


def test_a_set_without_a_name_gets_one_of_its_content() -> None:
    """Pipelines that were asked the same questions share the name of the dataset."""
    first = content.dataset_name(some_results(dataset=None))
    assert first == content.dataset_name(some_results(name="other", dataset=None)) != ""
    assert content.dataset_name(some_results()) == "tides 潮汐"
    long = some_results(name="名" * 9999, dataset="集" * 9999)
    assert len(content.dataset_name(long)) <= 250 and len(content.experiment_name(long, "0" * 24)) <= 250


def test_ids_that_no_store_can_hold_stay_apart() -> None:
    """Two ids that look the same once they are cleaned get different keys."""
    from rag_kit.evaluation import Example

    keys = {content.example_key(Example(name, "Q?")) for name in ("a\ud800", "a\ufffd", "a\x00")}
    assert len(keys) == 3
    for key in keys:
        key.encode("utf-8")


def test_metrics_of_mlflow_are_the_summary_and_no_more() -> None:
    """Means, intervals, coverage and counts; a metric without any value has no mean."""
    results = some_results()
    found = metrics_of(results)
    summary = results.summary()
    assert found["faithfulness/mean"] == summary["faithfulness"].mean
    assert found["faithfulness/low"] == summary["faithfulness"].low
    assert found["faithfulness/errors"] == 1 and found["faithfulness/coverage"] == 0.75
    assert found["答案正确/undefined"] == 1 and found["答案正确/missing"] == 1
    assert found["rows_failed"] == 1
    only_failed = Results("x", [results.rows[2]], ("faithfulness",))
    assert not {"faithfulness/mean", "faithfulness/low", "faithfulness/high"} & set(metrics_of(only_failed))


def test_params_are_bounded_and_hold_no_key() -> None:
    """Long values are cut, keys masked, and there are not more than the bound."""
    results = some_results()
    results.manifest["settings"]["many"] = {f"k{number}": number for number in range(1000)}
    found = params_of(results)
    assert found["settings.timeout"] == "5.0" and found["judge.model"] == "openai:gpt-5.5"
    assert max(map(len, found.values())) <= MAX_VALUE and len(found) <= 400
    assert "secret" not in json.dumps(found) and "abcdef1234567890" not in json.dumps(found)
    assert entry_key("../x") == ".._x" and entry_key("..") == "_.."


def test_files_are_the_folder_and_a_table(tmp_path: Path) -> None:
    """The folder loads again as results, and the table has one line for each row."""
    results = some_results(3)
    names = write_files(results, tmp_path)
    assert names == ["results/manifest.json", "results/rows.jsonl", "rows.json"]
    assert len(Results.load(tmp_path / "results")) == 7
    table = json.loads((tmp_path / "rows.json").read_text(encoding="utf-8"))
    line = dict(zip(table["columns"], table["data"][2], strict=True))
    assert line["faithfulness"] is None and line["faithfulness.status"] == "error"
    assert len(table["data"]) == 7


@pytest.mark.parametrize("write", WRITERS)
def test_wrong_arguments_are_refused_before_anything_is_sent(write, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names the argument and what is allowed."""
    results = some_results()
    nowhere = "http://127.0.0.1:9"
    for options, told in (
        ({"url": "ftp://host"}, "address"),
        ({"url": nowhere, "timeout": 0}, "timeout"),
        ({"url": nowhere, "timeout": None}, "timeout"),
        ({"url": nowhere, "max_retries": 99}, "max_retries"),
        ({"url": nowhere, "deadline": -1}, "deadline"),
        ({"url": nowhere, "experiment": " "}, "experiment"),
        ({"url": nowhere, "experiment": "x" * 300}, "experiment"),
    ):
        if write is log_to_mlflow and options["url"] == "ftp://host":
            continue  # MLflow's client knows other schemes
        with pytest.raises(InvalidInputError, match=told):
            write(results, **options)
    with pytest.raises(InvalidInputError, match="evaluate"):
        write(["no results"], url=nowhere)
    with pytest.raises(InvalidInputError, match="no rows"):
        write(Results("empty", []), url=nowhere)


@pytest.mark.parametrize("write", WRITERS)
def test_a_key_with_a_line_end_is_refused_and_not_shown(write) -> None:
    """It would end up in the message of the HTTP library."""
    with pytest.raises(ConfigurationError) as caught:
        write(some_results(), url="http://127.0.0.1:9", api_key="secret-part\nX-Other: 1")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("write", [log_to_langsmith, log_to_phoenix])
def test_widths_and_policies_are_checked(write) -> None:
    """max_concurrency and on_error take what they say."""
    for options in ({"max_concurrency": 0}, {"on_error": "ignore"}):
        with pytest.raises(InvalidInputError, match=next(iter(options))):
            write(some_results(), url="http://127.0.0.1:9", **options)


def test_without_a_key_the_hosted_langsmith_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names the variable."""
    for name in ("LANGSMITH_API_KEY", "LANGCHAIN_API_KEY", "LANGSMITH_ENDPOINT", "LANGCHAIN_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ConfigurationError, match="LANGSMITH_API_KEY"):
        log_to_langsmith(some_results())


def test_without_an_address_mlflow_is_not_guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names the variable and gives examples."""
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    with pytest.raises(ConfigurationError, match="MLFLOW_TRACKING_URI"):
        log_to_mlflow(some_results())


def test_a_database_needs_mlflow_and_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without MLflow the error names the extra; its reporting is switched off before it is imported."""
    monkeypatch.setitem(sys.modules, "mlflow", None)
    monkeypatch.delenv("MLFLOW_DISABLE_TELEMETRY", raising=False)
    with pytest.raises(MissingExtraError, match=r"rag-kit\[mlflow\]"):
        log_to_mlflow(some_results(), url=f"sqlite:///{tmp_path / 'm.db'}")
    import os

    assert os.environ["MLFLOW_DISABLE_TELEMETRY"] == "true"
    assert issubclass(MissingExtraError, ImportError) and not issubclass(MissingExtraError, TrackingError)
