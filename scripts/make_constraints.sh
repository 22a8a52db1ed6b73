#!/usr/bin/env bash
# Writes constraints/py3.XX.txt (newest versions that work together, all extras) and
# constraints/lowest-py3.11.txt (the lowest direct versions that pyproject.toml promises). Needs uv.
set -euo pipefail
cd "$(dirname "$0")/.."
extras=(--all-extras)
common=(--no-annotate --no-header --quiet --no-emit-index-url --no-emit-find-links)
for version in 3.11 3.12 3.13; do
  uv pip compile pyproject.toml "${extras[@]}" "${common[@]}" --upgrade --python-version "$version" -o "constraints/py$version.txt"
done
uv pip compile pyproject.toml --extra eval --extra minilm --extra test "${common[@]}" --upgrade --resolution lowest-direct \
  --python-version 3.11 -o constraints/lowest-py3.11.txt
