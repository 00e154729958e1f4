#!/bin/sh
# Builds the Node library under target/suite/node, with what its tests need, and prints that folder.
set -eu
cd "$(dirname "$0")/.."
work=${DQ_SUITE_OUT:-$PWD/target/suite}/node
mkdir -p "$work"
# What was built there stays there; what was taken away here goes.
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
echo "$work"
