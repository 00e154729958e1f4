#!/bin/sh
# Gets what the programs of examples/web need, under DQ_SUITE_OUT, for what is installed here.
set -eu
cd "$(dirname "$0")/../../.."
out=${DQ_SUITE_OUT:-$PWD/target/suite}/web
mkdir -p "$out/node"
exec 9>>"$out/lock"
! command -v flock >/dev/null || flock 9
tools/install/venv.sh "$out/python" tests/blocks/web/requirements.txt >/dev/null
! tools/install/setup.sh --check node20 || cmp -s tests/blocks/web/package-lock.json "$out/node/package-lock.json" || {
    cp tests/blocks/web/package.json tests/blocks/web/package-lock.json "$out/node"
    (cd "$out/node" && npm ci --loglevel=error --no-audit --no-fund >&2) || { rm "$out/node/package-lock.json"; exit 1; }
    ln -sfn ../../../node "$out/node/node_modules/dq-redis"
}
! tools/install/setup.sh --check cargo || ${CARGO:-cargo} fetch -q --locked --manifest-path examples/web/axum/Cargo.toml
