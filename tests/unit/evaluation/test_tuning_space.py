"""The space of a search as plain data."""

import json

import pytest
from support.tuning import Told, Wrong, questions

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation import SearchSpace, tune

FORM = {
    "search": ["hybrid", "bm25", None],
    "k": {"int": [1, 9], "step": 2, "default": 5},
    "rrf_k": {"int": [1, 100], "log": True},
    "weight": {"float": [0, 1], "step": 0.1},
}


def test_a_setting_has_every_parameter():
    """A setting that is left out has its default: as given, the first choice, or the middle of the range."""
    space = SearchSpace(FORM)
    assert space.default == {"search": "hybrid", "k": 5, "rrf_k": 10, "weight": 0.5}


def test_plain_data_come_back_the_same():
    """A space survives JSON."""
    space = SearchSpace(FORM)
    again = SearchSpace(json.loads(json.dumps(space.parameters)))
    assert (again.parameters, again.default) == (space.parameters, space.default)


def test_one_and_true_and_its_text_are_other_choices():
    """Values that Python calls equal stay apart."""
    choices = [1, True, "1", 1.5, [1], {"x": None}]
    space = SearchSpace({"a": choices})
    settings = [space.setting({"a": each})["a"] for each in space.distributions["a"].choices]
    assert settings == choices and settings[1] is True and settings[0] is not True


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({}, "give parameters by name"),
        ({"a": {"int": [1, 2], "float": [1, 2]}}, "one of choices, int and float"),
        ({"a": {"int": [1, 2], "steps": 1}}, "unknown: steps"),
        ({"a": {"int": [5, 2]}}, "low"),
        ({"a": {"float": [0, float("nan")]}}, "finite"),
        ({"a": {"int": [1, 5], "step": 2, "default": 2}}, "2 .*not contained|2 .*not in|not allowed"),
        ({"a": [1, 2, 1]}, "twice"),
        ({"a": [lambda: 1]}, "allowed are texts"),
        ({"a": {"choices": [1], "when": {"b": 1}}, "b": [1]}, "unknown: when"),
    ],
)
def test_a_malformed_space_is_refused(form, message):
    """The message names the parameter and what is allowed."""
    with pytest.raises(InvalidInputError, match=message):
        SearchSpace(form)


def values_of(result, name="x"):
    """Return the settings of a search, in order."""
    return [trial.settings[name] for trial in result.trials]


@pytest.mark.slow
def test_better_regions_are_searched_more(tmp_path):
    """Proposals follow the scores, in the direction of the metric; none comes twice."""

    def run(metric):
        result = tune(
            lambda settings: lambda question: str(settings["x"]),
            questions(16), metric, space={"x": {"float": [0, 1]}}, out=tmp_path / metric.name, n_trials=16,
            pruning="none", set_aside=0, progress=False,
        )  # fmt: skip
        assert len(set(values_of(result))) == 16
        return sum(values_of(result)[8:]) / 8

    assert run(Told()) > 0.65  # at random it is 0.5
    assert run(Wrong()) < 0.35


def test_a_finite_space_is_tried_to_the_end(tmp_path):
    """Every setting is tried once, then the search ends; Optuna says nothing and keeps the user's verbosity."""
    import optuna

    before = optuna.logging.get_verbosity()
    space = SearchSpace({"a": ["x", "y", 'z"\n'], "b": {"int": [1, 2]}})
    result = tune(
        lambda settings: lambda question: "0.5",
        questions(8),
        Told(),
        space=space,
        out=tmp_path,
        progress=False,
    )
    expected = [{"a": a, "b": n} for a in ("x", "y", 'z"\n') for n in (1, 2)]
    assert sorted(map(str, (dict(t.settings) for t in result.trials))) == sorted(map(str, expected))
    assert result.stopped == "every setting of the space was tried (6)"
    assert optuna.logging.get_verbosity() == before
