#!/bin/sh
# Prints the path of a Python that has what these tests need, and gets it first where it is not there. The browser
# is the system's (see tools/setup.sh).
#   tests/python.sh folder
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=$1
if ! cmp -s "$here/requirements.txt" "$folder/requirements.txt"; then
    [ -x "$folder/bin/python" ] || python3 -m venv "$folder" >&2
    "$folder/bin/python" -m pip -q --disable-pip-version-check install -r "$here/requirements.txt" >&2
    cp "$here/requirements.txt" "$folder/requirements.txt"
fi
echo "$folder/bin/python"
