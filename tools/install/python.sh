#!/bin/sh
# Prints the path of a Python that has redis-py, or the named module: the system's, or one under target/venv.
#   tools/install/python.sh [redis | pip]
set -eu
cd "$(dirname "$0")/../.."
venv=$PWD/target/venv
module=${1:-redis}

for python in python3 "$venv/bin/python"; do
    "$python" -c "import $module" 2>/dev/null && command -v "$python" && exit 0
done
echo "Getting $module into target/venv ..." >&2
mkdir -p target
exec 9>>target/venv.lock
! command -v flock >/dev/null || flock 9
# One whose making was interrupted has no pip.
"$venv/bin/python" -c 'import pip' 2>/dev/null || python3 -m venv --clear "$venv" >&2
[ "$module" = pip ] || "$venv/bin/python" -m pip -q --disable-pip-version-check install "$module" >&2
echo "$venv/bin/python"
