"""Reading data sets: what is accepted, and how every fault is named."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation import EvaluationSet, load_dataset
from rag_kit.evaluation.ranking.metrics import qrels

CORPUS = [
    {"_id": "d1", "title": "Tides", "text": "The moon pulls the sea.", "year": 1999, "mesh": ["a", "b"]},
    {"_id": 2, "title": None, "text": "A lamp needs oil."},
]
QUERIES = [{"_id": "q1", "text": "What moves the sea?"}, {"_id": "q2", "text": "What burns?"}]
QRELS = "query-id\tcorpus-id\tscore\nq1\td1\t1\n"


def write(folder: Path, corpus=CORPUS, queries=QUERIES, qrels=QRELS, qa=None) -> Path:
    folder.mkdir(exist_ok=True)
    for name, rows in (("corpus", corpus), ("queries", queries), ("qa", qa)):
        if rows is not None:
            text = rows if isinstance(rows, str) else "".join(json.dumps(row) + "\n" for row in rows)
            (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")
    (folder / "qrels.tsv").write_text(qrels, encoding="utf-8")
    return folder


def refusal(folder: Path) -> str:
    with pytest.raises(InvalidInputError) as caught:
        load_dataset(folder)
    return str(caught.value)


def test_title_and_text_are_joined_and_other_fields_are_metadata(tmp_path):
    """A document's content is title, newline, text; further fields and its id are metadata."""
    documents = load_dataset(write(tmp_path / "tides")).documents()
    assert documents[0].page_content == "Tides\nThe moon pulls the sea."
    assert documents[0].metadata == {"title": "Tides", "year": 1999, "mesh": ["a", "b"], "corpus_id": "d1"}
    assert (documents[1].id, documents[1].page_content) == ("2", "A lamp needs oil.")


def test_beir_folder_and_gzip_give_the_same_set(tmp_path):
    """qrels/test.tsv and .gz files read like the plain layout, down to the fingerprint."""
    plain = write(tmp_path / "plain")
    beir = write(tmp_path / "beir")
    (beir / "qrels").mkdir()
    (beir / "qrels.tsv").rename(beir / "qrels" / "test.tsv")
    for name in ("corpus", "queries"):
        file = beir / f"{name}.jsonl"
        (beir / f"{name}.jsonl.gz").write_bytes(gzip.compress(file.read_bytes()))
        file.unlink()
    assert load_dataset(beir).fingerprint() == load_dataset(plain).fingerprint()
    assert load_dataset(beir).name == "beir"


def test_queries_without_relevant_documents_are_not_judged(tmp_path):
    """A query without qrels, or with grade 0 only, is left out of the scorable queries."""
    dataset = load_dataset(write(tmp_path, qrels="q1\td1\t1\nq2\td1\t0\n"))
    assert qrels(dataset) == {"q1": {"d1": 1}}
    assert dataset["q2"].relevant == {"d1": 0}


@pytest.mark.parametrize(
    ("line", "named"),
    [("q1\tghost\t1\n", "qrels.tsv:3: document ghost"), ("qx\td1\t1\n", "qrels.tsv:3: query qx")],
)
def test_dangling_qrels_are_refused_by_name(tmp_path, line, named):
    """A judgement about an unknown document or query is refused by name, with file and line."""
    assert named in refusal(write(tmp_path, qrels=QRELS + line))


def test_only_the_first_few_dangling_qrels_are_named(tmp_path):
    """Many dangling judgements give five names and a count."""
    text = refusal(write(tmp_path, qrels=QRELS + "".join(f"q1\tghost{n}\t1\n" for n in range(40))))
    assert "ghost4" in text and "ghost5" not in text and "35 more" in text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"corpus": '{"_id": "a", "text": "x"}\n{broken\n'}, "corpus.jsonl:2: not valid JSON"),
        ({"corpus": '{"_id": "a", "text": "x"}\n[1]\n'}, "corpus.jsonl:2: a JSON list"),
        ({"corpus": [*CORPUS, CORPUS[0]]}, "corpus.jsonl:3: the id 'd1' occurs twice"),
        ({"corpus": [{"_id": "d1", "title": "no text"}]}, "text is None"),
        ({"corpus": [{"_id": " ", "text": "x"}]}, "corpus.jsonl:1: '_id' is ' '"),
        ({"corpus": ""}, "document d1"),
        ({"queries": [*QUERIES, QUERIES[0]]}, "queries.jsonl:3: the id 'q1' occurs twice"),
        ({"queries": [{"_id": "q1", "text": "  "}]}, "queries.jsonl:1: 'text' is '  '"),
        ({"queries": ""}, "query q1"),
        ({"qrels": "q1 d1 1\n"}, "qrels.tsv:1: 'q1 d1 1"),
        ({"qrels": "q1\td1\tgood\n"}, "qrels.tsv:1: 'q1\\td1\\tgood"),
        ({"qrels": f"q1\td1\t{'9' * 5000}\n"}, "qrels.tsv:1: 'q1\\td1\\t999"),
        ({"qrels": "q1\td1\t1\nq1\td1\t2\n"}, "qrels.tsv:2: query 'q1' and document 'd1' have two grades"),
        ({"qrels": "query-id\tcorpus-id\tscore\n"}, "or of no relevant document"),
        ({"qrels": "q1\td1\t0\n"}, "or of no relevant document"),
        (
            {"qa": [{"id": "q1", "answers": ["x"], "doc_ids": ["ghost"]}]},
            "qa.jsonl:1 names what the set does not hold: 'document ghost'",
        ),
        (
            {"qa": [{"id": "qx", "answers": ["x"], "doc_ids": []}]},
            "qa.jsonl:1 names what the set does not hold: 'query qx'",
        ),
        ({"qa": [{"id": "q1", "answers": "x"}]}, "qa.jsonl:1: 'answers' must be a list of str"),
        (
            {"qa": [{"id": "q1", "answers": ["moon"], "answer_starts": [3], "doc_ids": ["d1"]}]},
            "'moon' does not start at character 3",
        ),
        (
            {"qa": [{"id": "q1", "answers": ["moon"], "answer_starts": [4, 5], "doc_ids": ["d1"]}]},
            "1 answers but 2",
        ),
    ],
)
def test_faults_are_named_by_file_and_line(tmp_path, change, message):
    """Each malformed file is refused with a message that says where and what."""
    assert message in refusal(write(tmp_path, **change))


def test_missing_parts_and_folders_are_named(tmp_path):
    """A missing folder or file is refused, and the message says what a set needs."""
    assert "is not a folder" in refusal(tmp_path / "nowhere")
    write(tmp_path)
    (tmp_path / "queries.jsonl").unlink()
    assert "has no queries.jsonl or queries.jsonl.gz" in refusal(tmp_path)


def test_bytes_that_are_no_text_are_refused(tmp_path):
    """Files that are not UTF-8 or not complete gzip are refused by name."""
    write(tmp_path)
    (tmp_path / "queries.jsonl").write_bytes(b'{"_id": "q1", "text": "ok"}\n{"_id": "q2", "text": "\xff"}\n')
    assert "queries.jsonl:2: not valid UTF-8" in refusal(tmp_path)
    (tmp_path / "queries.jsonl").unlink()
    (tmp_path / "queries.jsonl.gz").write_bytes(gzip.compress(b'{"_id": "q1", "text": "ok"}\n')[:-12])
    assert "queries.jsonl.gz: not a complete gzip file" in refusal(tmp_path)


def test_byte_order_mark_blank_lines_and_windows_line_ends_are_read(tmp_path):
    """Byte order marks and line ends that editors leave in files do not matter."""
    write(tmp_path)
    (tmp_path / "queries.jsonl").write_bytes(b'\xef\xbb\xbf{"_id": "q1", "text": "a"}\r\n\r\n')
    (tmp_path / "qrels.tsv").write_bytes(b"query-id\tcorpus-id\tscore\r\nq1\td1\t1\r\n")
    assert [example.question for example in load_dataset(tmp_path)] == ["a"]


def test_answers_become_gold_of_the_examples(tmp_path):
    """Every place of every accepted answer is a span in what is indexed; verdicts and parts of words are none."""
    qa = [
        {
            "id": "q1",
            "answers": ["moon", "The moon "],
            "doc_ids": ["d1"],
            "answer_starts": [4, 0],
            "type": "what",
        },
        {"id": "q2", "answers": ["oil", "yes"], "doc_ids": ["2"], "long_answer": "It burns oil."},
        {"id": "q3", "answers": [], "doc_ids": []},
    ]
    corpus = [CORPUS[0], {"_id": "2", "text": "Oil boils; yes, oil or lamp oil."}]
    queries = [*QUERIES, {"_id": "q3", "text": "Why?"}, {"_id": "q4", "text": "When?"}]
    found = load_dataset(write(tmp_path / "tides", corpus=corpus, queries=queries, qa=qa))
    one, two, three, four = found
    texts = {passage.id: passage.text for passage in found.corpus or ()}
    assert [(span.text, span.start) for span in one.spans] == [("moon", 10), ("The moon", 6)]
    assert [span.start for span in two.spans] == [16, 28]
    assert all(texts[s.document].startswith(s.text, s.start) for s in one.spans + two.spans)
    assert one.answers == ("moon", "The moon ") and one.tags == {"language": "en", "type": "what"}
    assert (one.reference, two.reference) == ("moon", "It burns oil.")
    assert one.reference_contexts == ("Tides\nThe moon pulls the sea.",)
    assert (two.answerable, three.answerable, four.answerable) == (True, False, None)
    assert (
        EvaluationSet.load(tmp_path / "tides")
        == found
        == EvaluationSet.load(found.save(tmp_path / "tides.jsonl"))
    )
