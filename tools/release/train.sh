#!/bin/sh
# Runs the benchmark's training traffic (benches/suite/train.rs) on a module that records a profile, and writes the
# profile for the next build.
#   tools/release/train.sh module profile target-folder
set -eu
module=$1 profile=$2 target=$3
CARGO=${CARGO:-cargo}
profdata=$(tools/release/llvm.sh profdata)
raw=$(mktemp -d)
trap 'rm -rf "$raw"' EXIT
echo "Traffic ..."
# One file for all processes: no two of them write at the same time.
LLVM_PROFILE_FILE="$raw/%m.profraw" DQ_MODULE=$module CARGO_TARGET_DIR=$target/harness \
    "$CARGO" bench -q --no-default-features --bench bench -- --train
"$profdata" merge -o "$profile" "$raw"
