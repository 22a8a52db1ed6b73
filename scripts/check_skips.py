"""Fail when a test was skipped for a reason that is not on the allow-list.

Each line of the list is a regular expression; one that matches the whole reason allows the skip. ``#`` starts a
comment. Usage: ``check_skips.py junit.xml allowed-skips.txt``. With ``--files`` the files of those tests are printed
instead (the report needs ``junit_family=xunit1``), to run them where nothing is lacking.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from xml.etree import ElementTree


def main(report: str, allowed: str, *, files: bool) -> int:
    """Print the skips that are not allowed and return 1 if there are any, or print the files that they are in."""
    lines = [line.strip() for line in Path(allowed).read_text(encoding="utf-8").splitlines()]
    patterns = [re.compile(line) for line in lines if line and not line.startswith("#")]
    refused = []
    allowed_count = 0
    for case in ElementTree.parse(report).iter("testcase"):
        for skip in case.findall("skipped"):
            if skip.get("type") == "pytest.xfail":
                continue
            reason = (skip.get("message") or "").strip()
            if any(pattern.fullmatch(reason) for pattern in patterns):
                allowed_count += 1
            else:
                refused.append((case, reason))
    if files:
        print("\n".join(sorted({case.attrib["file"] for case, _ in refused})))
        return 0
    for case, reason in refused:
        print(f"skipped, and not on the allow-list: {case.get('classname')}.{case.get('name')}: {reason}")
    print(f"skips: {allowed_count} allowed, {len(refused)} refused")
    return 1 if refused else 0


if __name__ == "__main__":
    arguments = [argument for argument in sys.argv[1:] if argument != "--files"]
    raise SystemExit(main(*arguments, files="--files" in sys.argv))
