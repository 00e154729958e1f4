#!/bin/sh
# Builds the module twice: first a build that records a profile under training traffic, then one optimized for that
# profile: target/pgo/release/libdq.so.
#   tools/release/pgo.sh target-folder
set -eu
target=$1
folder=$target/pgo
profile=$folder/dq.profdata
CARGO=${CARGO:-cargo}

build() { # how
    "$CARGO" rustc -q --release --lib --crate-type cdylib --target-dir "$folder" -- "$1"
}

rm -f "$profile"
echo "A build that counts ..."
build "-Cprofile-generate"
tools/release/train.sh "$(echo "$folder"/release/libdq.*o)" "$profile" "$target"
echo "A build for what was counted ..."
build "-Cprofile-use=$profile"
