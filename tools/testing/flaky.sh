#!/bin/sh
# Runs targets of make again and again beside four busy loops, and reports which tests failed how often.
#   tools/testing/flaky.sh times target...      output of failed runs: target/flaky/TARGET-NUMBER.log
set -eu
cd "$(dirname "$0")/../.."
times=$1 && shift
logs=$PWD/target/flaky
rm -rf "$logs" && mkdir -p "$logs"
busy=
# shellcheck disable=SC2086 # a list of words
trap 'kill $busy' EXIT
trap 'exit 1' HUP INT TERM
for loop in 1 2 3 4; do
    while :; do :; done &
    busy="$busy $!"
done

# Failed tests as cargo, unittest, pytest, go, node and Maven report them.
failures() {
    sed -n -e 's/^test \(.*\) \.\.\. FAILED$/\1/p' -e 's/^\(FAIL\|ERROR\): \([^ ]*\) (.*/\2/p' -e 's/^FAILED \([^ ]*\).*/\1/p' \
        -e 's/^ *--- FAIL: \([^ ]*\).*/\1/p' -e 's/^ *✖ \(.*\) (.*ms)$/\1/p' -e 's/^\[ERROR\]   \([A-Za-z]*\.[A-Za-z]*\)[: ].*/\1/p' "$1" | sort -u
}

for target; do
    number=1
    while [ "$number" -le "$times" ]; do
        log=$logs/$target-$number.log
        if make "$target" >"$log" 2>&1 </dev/null; then
            rm "$log"
        else
            found=$(failures "$log")
            echo "${found:-(something; see target/flaky/$target-$number.log)}" | sed "s/^/$target: /" >>"$logs/failed"
        fi
        number=$((number + 1))
    done
    echo "$target: $times runs, $(find "$logs" -name "$target-[0-9]*.log" | wc -l | tr -d ' ') of them failed"
done
[ -e "$logs/failed" ] || exit 0
echo "Failed, how often:"
LC_ALL=C sort "$logs/failed" | uniq -c | LC_ALL=C sort -rn
exit 1
