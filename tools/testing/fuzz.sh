#!/bin/sh
# Fuzzes all targets, each for so many seconds, from what tests/simulation/corpus.rs gives it and what earlier runs have
# found.
#   tools/testing/fuzz.sh seconds [target...]        findings are in fuzz/artifacts
#   tools/testing/fuzz.sh keep operations            replaces fuzz/operations.hex, as few as their coverage allows
# Before that each target must find, within a minute, a fault that is planted in it.
set -eu
cd "$(dirname "$0")/../.."
seconds=$1
shift
[ $# -gt 0 ] || set -- dump effects operations
tools=$PWD/target/tools
found=$PWD/target/fuzz
PATH=$tools/bin:$PATH
# The queue is safe Rust: sanitizers would find nothing, at half the speed.
fuzz="cargo +nightly fuzz"
options="--sanitizer none --target-dir $PWD/target/fuzzing"

rm -rf "$found/seeds"
DQ_SEEDS=$found/seeds cargo test -q --no-default-features --test simulation corpus::seeds >/dev/null

for target; do
    corpus=$found/seeds/$target
    mkdir -p "$found/$target"
    # shellcheck disable=SC2086 # lists of words
    $fuzz build $options "$target"
    if [ "$seconds" = keep ]; then
        rm -rf "$found/kept" && mkdir "$found/kept"
        # shellcheck disable=SC2086
        $fuzz run $options "$target" "$found/kept" "$found/$target" "$corpus" -- \
            -merge=1 -max_len=512 -use_value_profile=0 2>/dev/null
        for input in "$found"/kept/*; do od -An -v -tx1 "$input" | tr -d ' \n' && echo; done >"fuzz/$target.hex"
        echo "$target: $(wc -l <"fuzz/$target.hex") inputs"
        continue
    fi
    # shellcheck disable=SC2086
    if DQ_FUZZ_CANARY=1 $fuzz run $options "$target" "$corpus" -- -max_total_time=60 \
        -artifact_prefix="$found/canary-" >"$found/canary.log" 2>&1; then
        echo "$target does not find what is wrong on purpose" >&2
        exit 1
    fi
    grep -q 'differs from its master\|is refused: \|^the reply' "$found/canary.log" ||
        { cat "$found/canary.log" >&2; exit 1; }
    # shellcheck disable=SC2086
    $fuzz run $options "$target" "$found/$target" "$corpus" -- -max_total_time="$seconds" \
        -max_len=2048 -timeout=20 -print_final_stats=1 2>"$found/$target.log" ||
        { tail -n 60 "$found/$target.log" >&2; exit 1; }
    echo "$target: $(grep -c . "$found/$target.log") lines in $found/$target.log"
    grep '^#.*DONE' "$found/$target.log"
done
