#!/bin/sh
# Prints the path of a Python that has redis-py: the system's, or one under target/venv.
set -eu
cd "$(dirname "$0")/.."
venv=$PWD/target/venv

for python in python3 "$venv/bin/python"; do
    "$python" -c 'import redis' 2>/dev/null && command -v "$python" && exit 0
done
echo "Getting redis-py into target/venv ..." >&2
python3 -m venv --clear "$venv" >&2
"$venv/bin/python" -m pip -q --disable-pip-version-check install redis >&2
echo "$venv/bin/python"
