#!/bin/sh
# Prints the path of a tool of LLVM (profdata, objcopy) that can read the compiler's output: of the same LLVM.
#   tools/release/llvm.sh name
set -eu
tool=llvm-$1
rustc=${RUSTC:-rustc}
found=$(ls "$("$rustc" --print sysroot)"/lib/rustlib/*/bin/"$tool" 2>/dev/null | head -n 1)
[ -z "$found" ] || { echo "$found"; exit 0; }
major=$("$rustc" -vV | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p')
for name in "$tool-$major" "$tool"; do
    ! "$name" --version 2>/dev/null | grep -q "LLVM version $major\." || { command -v "$name"; exit 0; }
done
exit 1
