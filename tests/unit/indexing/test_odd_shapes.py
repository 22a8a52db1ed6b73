"""Files of odd shapes: the time and the memory they take grow with them, and none takes the others down."""

from __future__ import annotations

import os

import pytest

from rag_kit.errors import ReadError
from rag_kit.indexing import DocumentIndex, IngestOptions, ingest, read, split
from rag_kit.indexing.readers.limits import ReadLimits
from rag_kit.indexing.splitting.packing import split_spans


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "text",
    [
        "| a | b |\n| --- | --- |\n" + "| some cell | 12.5 |\n" * 40_000,
        "| a | b |\n" * 60_000,
        "." * 600_000,
        "……" * 300_000,
        'He said so.""' * 40_000,
        "a\n" + (" " * 99 + "\n") * 20_000 + "b",
        "So." + "[1]" * 200_000,
        "So.[1" + ",2" * 300_000,
    ],
    ids=["table", "rows", "stops", "ellipses", "quotes", "spaces", "citations", "citation"],
)
def test_the_time_of_a_split_grows_with_the_text(text):
    """Each of these took minutes: every row of a table was matched to the table's end, every run looked at anew."""
    spans = list(split_spans(text))
    assert spans[0].start == 0 and spans[-1].end >= len(text.rstrip()) - 1
    assert all(0 < span.end - span.start <= 1000 for span in spans)


def test_headings_and_table_headers_do_not_multiply_a_file(tmp_path):
    """A heading or a header line as long as a book is not copied into each chunk below it."""
    heading = "# " + "word " * 20_000 + "\n\n" + "One sentence of text. " * 20_000
    header = "| a " * 20_000 + "|\n" + "|---" * 20_000 + "|\n" + "| b | c |\n" * 20_000
    for text in (heading, header):
        (tmp_path / "a.md").write_text(text)
        chunks = split(read(tmp_path / "a.md"))
        carried = sum(len(str(value)) for chunk in chunks for value in chunk.metadata.values())
        assert carried < 2 * len(text)
    (chunk, *_) = split(read_text("# " + "long " * 100 + "\n\n## 深\n\nText.", tmp_path))
    assert chunk.metadata["heading"].endswith(" > 深") and len(chunk.metadata["heading"]) == 204


def read_text(text, tmp_path):
    (tmp_path / "text.md").write_text(text)
    return read(tmp_path / "text.md")


def test_a_file_beyond_the_limits_is_named_and_the_others_are_read(tmp_path):
    """A CSV with 100,000 columns, and one text of countless sections: two files are reported, good ones are in."""
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "good.md").write_text("# Pump\n\nIt starts at 40 degrees.")
    columns = ",".join(f"c{number}" for number in range(100_000))
    (folder / "wide.csv").write_text(f"{columns}\n" + "1\n" * 100)
    (folder / "sections.md").write_text("# a\n\nb\n\n" * 3_000)
    limits = ReadLimits(max_characters=20_000_000, max_chunks=2_000)
    report = ingest(folder, tmp_path / "index", options=IngestOptions(limits=limits))
    assert report.added == 1
    reasons = dict(report.failed)
    assert set(reasons) == {"wide.csv", "sections.md"}
    assert "max_characters" in reasons["wide.csv"]
    assert "over 2000 chunks" in reasons["sections.md"] and "chunk_size" in reasons["sections.md"]
    with DocumentIndex.open(tmp_path / "index") as index:
        assert index.stats()["chunks"] == 1


def test_names_that_print_alike_are_two_files(tmp_path):
    """A name with a byte that is no UTF-8, and one that spells the escape of that byte, have each their identity."""
    folder = tmp_path / "docs"
    folder.mkdir()
    strange = os.fsencode(folder) + b"/caf\xe9.txt"
    try:
        with open(strange, "w") as file:
            file.write("The first text.")
    except OSError:
        pytest.skip("this file system takes valid UTF-8 names only")
    (folder / "caf\\xe9.txt").write_text("The second text.")
    (folder / "back\\slash.txt").write_text("The third text.")
    assert ingest(folder, tmp_path / "index").added == 3
    with DocumentIndex.open(tmp_path / "index") as index:
        files = {document.metadata["file"]: document.page_content for document in index.get(index.ids())}
    assert files == {
        "caf\\xe9.txt": "The first text.",
        "caf\\\\xe9.txt": "The second text.",
        "back\\slash.txt": "The third text.",
    }


def test_deep_json_is_named_for_what_it_is(tmp_path):
    """It is valid JSON; only the depth cannot be read, and the message says so."""
    (tmp_path / "deep.json").write_text("[" * 100_000 + "]" * 100_000)
    with pytest.raises(ReadError, match=r"deep\.json: it is nested too deeply"):
        read(tmp_path / "deep.json")
