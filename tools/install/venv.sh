#!/bin/sh
# Prints the path of a Python in that folder that has what the file lists, and gets it first where it is not there.
#   tools/install/venv.sh folder requirements.txt
set -eu
folder=$1
wanted=$2
if ! cmp -s "$wanted" "$folder/requirements.txt"; then
    [ -x "$folder/bin/python" ] || python3 -m venv "$folder" >&2
    "$folder/bin/python" -m pip -q --disable-pip-version-check install -r "$wanted" >&2
    cp "$wanted" "$folder/requirements.txt"
fi
echo "$folder/bin/python"
