#!/bin/sh
# Prints the path of an llvm-profdata that reads what the compiler's builds write: of the compiler's own LLVM.
set -eu
rustc=${RUSTC:-rustc}
found=$(ls "$("$rustc" --print sysroot)"/lib/rustlib/*/bin/llvm-profdata 2>/dev/null | head -n 1)
[ -z "$found" ] || { echo "$found"; exit 0; }
major=$("$rustc" -vV | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p')
for name in "llvm-profdata-$major" llvm-profdata; do
    ! "$name" --version 2>/dev/null | grep -q "LLVM version $major\." || { command -v "$name"; exit 0; }
done
exit 1
