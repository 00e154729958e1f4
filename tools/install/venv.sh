#!/bin/sh
# Prints the path of a Python in this folder that has the packages of the file, and first installs those that are
# missing.
#   tools/install/venv.sh folder requirements.txt
set -eu
folder=$1
wanted=$2

# uv takes a second. It does not read pip's settings: where these name the only package index, uv fails, and pip is
# used.
with_uv() {
    uv=$("$(dirname "$0")/uv.sh") &&
        "$uv" venv -q --allow-existing --no-python-downloads --python "$(command -v python3)" "$folder" >&2 &&
        "$uv" pip install -q --python "$folder/bin/python" -r "$wanted" >&2
}
with_pip() {
    python3 -m venv "$folder" >&2 && "$folder/bin/python" -m pip -q --disable-pip-version-check install -r "$wanted" >&2
}

mkdir -p "$folder"
# A second process that wants the same environment waits.
exec 9>>"$folder/lock"
! command -v flock >/dev/null || flock 9
# For a package that is installed from a folder of this project, its pyproject.toml counts, too.
# shellcheck disable=SC2046 # a list of words
new=$(cat "$wanted" $(sed -n 's|^-e \([^[]*\).*|\1/pyproject.toml|p' "$wanted"))
if [ "$new" != "$(cat "$folder/installed" 2>/dev/null)" ] || ! "$folder/bin/python" -c '' 2>/dev/null; then
    with_uv || with_pip
    printf '%s\n' "$new" >"$folder/installed"
fi
echo "$folder/bin/python"
