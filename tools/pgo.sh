#!/bin/sh
# Builds the module twice: first so that it counts what it does, with which it is given the benchmark's training
# traffic (benches/suite/train.rs); then for what it has counted. The second is target/pgo/release/libdq.so.
#   tools/pgo.sh target-folder train...      train: a command that runs the traffic with DQ_MODULE
set -eu
target=$1
shift
folder=$target/pgo
raw=$folder/raw
profile=$folder/dq.profdata
CARGO=${CARGO:-cargo}
profdata=$(tools/llvm.sh profdata)

build() { # how
    "$CARGO" rustc -q --release --lib --target-dir "$folder" -- "$1"
}

rm -rf "$raw" "$profile"
echo "A build that counts ..."
build "-Cprofile-generate=$raw"
echo "Traffic ..."
module=$(echo "$folder"/release/libdq.*o)
# One file, whatever number of processes: none of them writes at the same time.
LLVM_PROFILE_FILE="$raw/%m.profraw" DQ_MODULE=$module "$@"
"$profdata" merge -o "$profile" "$raw"
rm -rf "$raw"
echo "A build for what was counted ..."
build "-Cprofile-use=$profile"
