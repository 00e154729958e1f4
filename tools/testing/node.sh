#!/bin/sh
# Builds the Node library under target/suite/node, with the dependencies of its tests, and prints that folder.
set -eu
cd "$(dirname "$0")/../.."
work=${DQ_SUITE_OUT:-$PWD/target/suite}/node
mkdir -p "$work"
# A second process waits, and nothing is rebuilt if nothing has changed: tests may be running on it.
exec 9>>"$work/lock"
! command -v flock >/dev/null || flock 9
# A test of the library tries the ACLs of that page.
cp docs/operations.md "$work/operations.md"
# The examples of raw commands are checked with its types.
mkdir -p "$work/raw"
cp examples/node/*.mjs "$work/raw"
new=$(cd clients/node && find . \( -name node_modules -o -name dist \) -prune -o -type f -exec cksum {} + | sort)
[ "$new" != "$(cat "$work/built" 2>/dev/null)" ] || { echo "$work"; exit; }
# Build output stays; sources that were deleted here are deleted there.
rm -rf "$work/src" "$work/test" "$work/example" "$work/probe"
tar -C clients/node --exclude=node_modules --exclude=dist -cf - . | tar -C "$work" -xf -
cd "$work"
cmp -s package-lock.json node_modules/installed.json || {
    echo "Getting what tests the Node library into target/suite ..." >&2
    npm ci --loglevel=error --no-audit --no-fund >&2
    ln -s .. node_modules/dq-redis # for the example
    cp package-lock.json node_modules/installed.json
}
npm run --silent build >&2
printf '%s\n' "$new" >built
echo "$work"
