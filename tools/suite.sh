#!/bin/sh
# Prepares what the worker libraries and their behaviour suite are tested with, under target/suite.
#   tools/suite.sh          prints the Python that has it
# A language's tools that are missing are installed with CI=true; else its probe is left out.
set -eu
cd "$(dirname "$0")/.."
out=${DQ_SUITE_OUT:-$PWD/target/suite}
venv=$out/venv
wanted="pytest>=8 pytest-xdist pytest-timeout opentelemetry-sdk mypy ruff build"

new=$(cat clients/python/pyproject.toml; echo "$wanted")
if [ "$new" != "$(cat "$venv/prepared" 2>/dev/null)" ]; then
    echo "Getting what tests the libraries into target/suite ..." >&2
    rm -rf "$venv"
    mkdir -p "$out"
    python3 -m venv "$venv" >&2
    # shellcheck disable=SC2086 # a list of words
    "$venv/bin/python" -m pip -q --disable-pip-version-check install -e 'clients/python[otel,test]' $wanted >&2
    echo "$new" >"$venv/prepared"
fi
echo "$venv/bin/python"
