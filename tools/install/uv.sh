#!/bin/sh
# Prints the path of uv, which installs and builds packages of Python in a tenth of pip's time: the system's, or one
# under target/tools.
set -eu
cd "$(dirname "$0")/../.."
command -v uv && exit
folder=$PWD/target/tools/uv
mkdir -p "$folder"
exec 9>>"$folder.lock"
! command -v flock >/dev/null || flock 9
if ! "$folder/bin/uv" --version >/dev/null 2>&1; then
    python=$(tools/install/python.sh pip)
    "$python" -m pip -q --disable-pip-version-check --no-input install --root-user-action ignore --upgrade --target "$folder" uv==0.13.9 >&2
fi
echo "$folder/bin/uv"
