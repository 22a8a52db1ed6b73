"""The winner as a Python file: it runs, makes the same pipeline, and holds no code of anyone."""

import ast
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from langchain_core.documents import Document
from support.tuning import SPACE, Told, make, questions, value

from rag_kit.documents import get_provenance
from rag_kit.errors import InvalidInputError
from rag_kit.evaluation import RetrieverSpace, TuningResult, tune
from rag_kit.evaluation.tuning.writing import importable, python_text

TESTS = Path(__file__).resolve().parents[2]
HOSTILE = [
    '"""\nimport os; os.abort()\n"""',
    "'); raise SystemExit(3) #",
    "\\",
    "{settings}",
    "a\u202eb\x00\x1b[2J\r\n",
    "\udc80",
    "__import__('os').abort()",
    "中文\u2028",
]


def test_the_file_makes_the_pipeline_of_the_setting(tmp_path):
    """A file with the user's own function runs in another process and gives the same answers."""
    result = tune(make, questions(), Told(), space=SPACE, out=tmp_path, n_trials=6, progress=False)
    path = result.write_python(tmp_path / "best.py")
    program = "import best; print(best.make()('Question 3?')); print(best.FOUND['metric'])"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=120,
        env={"PYTHONPATH": str(TESTS), "PATH": ""},
    )  # fmt: skip
    assert done.stdout.split() == [str(value(result.best, "Question 3?")), "ours_told"], done.stderr
    assert runpy.run_path(str(path))["SETTINGS"] == result.best
    assert TuningResult.load(tmp_path).write_python(tmp_path / "again.py").read_text() == path.read_text()


def test_the_file_of_a_retriever_finds_the_same(tmp_path):
    """What it makes over the documents ranks them as the pipeline of the search did."""
    documents = [
        Document(f"Animal {n} eats {food} in forest {n % 4}. It sleeps {n} hours.", id=f"d{n}")
        for n, food in enumerate(["roots", "fish", "grass", "bread", "leaves"] * 4)
    ]
    space = RetrieverSpace(documents, embeddings="none", k=(3, 6), chunk_sizes=(200, 30))
    found = []
    for settings in space.settings():
        path = tmp_path / "best.py"
        path.write_text(python_text(settings, {}, importable(space)), "utf-8")
        made = runpy.run_path(str(path))["make"](documents, embeddings="none")
        ranked = [(doc.id, get_provenance(doc)["score"]) for doc in made.invoke("fish in the forest")]
        assert ranked == [
            (doc.id, get_provenance(doc)["score"])
            for doc in space.make(settings).invoke("fish in the forest")
        ]
        found.append(tuple(ranked))
    assert len(found) == 16 and len(set(found)) > 8, "the settings differ in what they find"


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_texts_stay_literals(text, tmp_path):
    """Whatever a choice or a parameter's name holds, the file holds it as a text, on a line of its own."""
    settings = {text: [text, {text: None}], "safe": 1.5}
    path = tmp_path / "best.py"
    path.write_text(python_text(settings, {"metric": text}, None), "utf-8")
    names = runpy.run_path(str(path))
    assert names["SETTINGS"] == settings and names["FOUND"] == {"metric": text}
    kinds = {type(node) for node in ast.parse(path.read_text("utf-8")).body}
    assert kinds == {ast.Expr, ast.ImportFrom, ast.Assign}
    assert "\u202e" not in path.read_text("utf-8")


def test_a_whole_search_over_hostile_choices_writes_a_harmless_file(tmp_path):
    """From the space to the file, nothing is run."""
    space = {HOSTILE[0]: HOSTILE}
    result = tune(
        lambda settings: lambda question: str(len(settings[HOSTILE[0]]) / 100),
        questions(), Told(), space=space, out=tmp_path, progress=False,
    )  # fmt: skip
    names = runpy.run_path(str(result.write_python(tmp_path / "best.py")))
    assert names["SETTINGS"] == result.best == {HOSTILE[0]: max(HOSTILE, key=len)}
    assert "make" not in names, "a lambda cannot be imported"


@pytest.mark.parametrize("bad", [object(), float("nan"), lambda: 1])
def test_what_is_no_plain_value_is_not_written(bad):
    """Only what can be read back equal becomes a literal."""
    with pytest.raises(InvalidInputError, match="cannot be written"):
        python_text({"a": bad}, {}, None)


@pytest.mark.parametrize(
    "maker", [("os; import sys", "x"), ("os", "path as x\nimport os"), ("class", "x"), ("a..b", "c")]
)
def test_a_maker_is_a_name_or_nothing(maker):
    """Module and function are identifiers; anything else is refused."""
    with pytest.raises(InvalidInputError, match="no names"):
        python_text({}, {}, maker)


def test_only_functions_that_a_file_can_import_are_imported():
    """Lambdas, inner functions and methods are not."""
    assert importable(make) == ("support.tuning", "make")
    assert importable(lambda settings: None) is None
    assert importable("text".join) is None

    def inner(settings):
        return None

    assert importable(inner) is None


def test_a_folder_is_no_file(tmp_path):
    """The message names what was given."""
    result = tune(
        make, questions(), Told(), space={"kind": ["good"], "x": [0.5]}, out=tmp_path, progress=False
    )
    with pytest.raises(InvalidInputError, match="is a folder"):
        result.write_python(tmp_path)
