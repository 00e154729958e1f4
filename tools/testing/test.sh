#!/bin/sh
# Runs tests, and repeats failures at the end of the output. A skipped test is shown with its reason, not as "ok".
#   tools/testing/test.sh cargo test --no-fail-fast ...
set -eu
[ -z "${DQ_SERVER:-}" ] || echo "Tests against $("$DQ_SERVER" --version)"
# A login has a limit of 1024 open files; some tests have thousands of connections.
ulimit -n "$(ulimit -Hn)" 2>/dev/null || true
# How many tests run at once: most of them wait most of the time, so three for each processor, up to six; and one for each
# 512 MB that this machine, or container, has left, as each starts servers.
at_once() {
    cores=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
    free=$(awk '/^MemAvailable:/ { print int($2 / 1024) }' "${MEMINFO:-/proc/meminfo}" 2>/dev/null)
    limit=$(cat /sys/fs/cgroup/memory.max 2>/dev/null || echo max)
    [ "$limit" = max ] || limit=$(((limit - $(sed -n 's/^anon //p' /sys/fs/cgroup/memory.stat)) / 1048576))
    echo "$((3 * cores)) ${free:-max} $limit" | awk '{
        most = 6
        if ($1 < most) most = $1
        for (i = 2; i <= 3; i++) if ($i != "max" && int($i / 512) < most) most = int($i / 512)
        print most < 1 ? 1 : most
    }'
}
export RUST_TEST_THREADS="${RUST_TEST_THREADS:-$(at_once)}"
output=$(mktemp)
trap 'rm -f "$output" "$output.status"' EXIT
# mawk, Debian's default, buffers 4096 bytes of lines: minutes of silence while tests are built.
interactive=
! awk -W version 2>/dev/null | grep -q '^mawk' || interactive='-W interactive'
# shellcheck disable=SC2086 # none, or two words
{ "$@" 2>&1 || echo $? >"$output.status"; } | awk $interactive '
    / Running | Doc-tests / { of = $0; sub(/^ *(Running )?(unittests )?/, "", of); sub(/ \(.*/, "", of) }
    /^SKIPPED / {
        name = $2; sub(/:$/, "", name)
        reason = $0; sub(/^SKIPPED [^ ]*: /, "", reason)
        if (name in why) reason = why[name] "; " reason
        why[name] = reason
        next
    }
    /^test .* \.\.\. ok$/ && $2 in why {
        print "test " $2 " ... SKIPPED: " why[$2]
        delete why[$2]; skipped++; fflush()
        next
    }
    /^test .* \.\.\. FAILED$/ { failed = failed "\n  " of ": " $2 }
    /^test result:/ { passed += $4; failures += $6; left_out += $8 }
    { print; fflush() }
    END {
        for (name in why) { print "SKIPPED " name ": " why[name] }
        printf "\n%d tests passed, %d failed, %d skipped, %d left out%s\n", passed - skipped, failures, skipped, left_out, failed
    }
'
if [ -e "$output.status" ]; then exit "$(cat "$output.status")"; fi
