#!/bin/sh
# Reads valgrind's logs. Fails, showing them, if a report has the module in its stack, or if a log is missing or
# incomplete.
#   tools/testing/valgrind-check.sh log...
#   tools/testing/valgrind-check.sh canary     rejects exactly the bad ones among sample logs
set -eu

check() { # logs...
    for log; do
        grep -q 'Memcheck, a memory error detector' "$log" && grep -q 'ERROR SUMMARY' "$log" ||
            { echo "$log: not a whole log" >&2; return 1; }
    done
    # A report is a paragraph: its lines begin with ==pid==, and an empty one ends it. Frames of the module are in
    # Rust's files, or in the library itself if no file is given.
    awk '
        function ends() {
            if (report ~ /(at|by) 0x[0-9A-F]+: / && report ~ /\.rs:[0-9]+\)|libdq[^ ]*\)/) {
                printf "%s", report
                found = 1
            }
            report = ""
        }
        { line = $0; sub(/^==[0-9]+== ?/, "", line) }
        line == "" || FNR == 1 { ends() }
        { report = report $0 "\n" }
        END { ends(); exit found }
    ' "$@"
}

canary() {
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    head='==1== Memcheck, a memory error detector'
    tail='==1== \n==1== ERROR SUMMARY: 1 errors'
    frames='==1==    at 0x4843: malloc (vg_replace_malloc.c:381)\n==1==    by 0x1: zmalloc (zmalloc.c:1)'
    lost='==1== \n==1== 64 bytes in 1 blocks are definitely lost in loss record 1 of 2\n'
    printf '%b\n' "$head\n$lost$frames\n$tail" >"$folder/of-the-server"
    printf '%b\n' "$head\n$lost$frames\n==1==    by 0x2: insert (store.rs:120)\n$tail" >"$folder/lost"
    printf '%b\n' "$head\n==1== \n==1== Invalid read of size 8\n==1==    at 0x9: ??? (in /a/libdq.so)\n$tail" \
        >"$folder/invalid"
    printf '%b\n' "$head\n$lost$frames" >"$folder/cut"
    check "$folder/of-the-server" || { echo "rejects what is not the module's" >&2; return 1; }
    for bad in lost invalid cut; do
        if check "$folder/$bad" >/dev/null 2>&1; then
            echo "takes no notice: $bad" >&2
            return 1
        fi
    done
    # One bad log among good ones, wherever it is.
    if check "$folder/lost" "$folder/of-the-server" >/dev/null; then
        echo "takes no notice of the first log" >&2
        return 1
    fi
}

if [ "${1:-}" = canary ]; then
    canary
else
    check "$@"
fi
