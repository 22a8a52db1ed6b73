"""Fail when a test was skipped for a reason that is not on the allow-list.

Each line of the list is a regular expression; one that matches the whole reason allows the skip. ``#`` starts a
comment. Usage: ``check_skips.py junit.xml allowed-skips.txt``.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from xml.etree import ElementTree


def main(report: str, allowed: str) -> int:
    """Print the skips that are not allowed; 1 if there are any."""
    lines = [line.strip() for line in Path(allowed).read_text(encoding="utf-8").splitlines()]
    patterns = [re.compile(line) for line in lines if line and not line.startswith("#")]
    refused = allowed_count = 0
    for case in ElementTree.parse(report).iter("testcase"):
        for skip in case.findall("skipped"):
            if skip.get("type") == "pytest.xfail":
                continue
            reason = (skip.get("message") or "").strip()
            if any(pattern.fullmatch(reason) for pattern in patterns):
                allowed_count += 1
                continue
            refused += 1
            print(f"skipped, and not on the allow-list: {case.get('classname')}.{case.get('name')}: {reason}")
    print(f"skips: {allowed_count} allowed, {refused} refused")
    return 1 if refused else 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:3]))
