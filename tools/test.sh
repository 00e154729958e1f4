#!/bin/sh
# Runs tests, and says below all that they print what failed among them.
#   tools/test.sh cargo test --no-fail-fast ...
set -eu
output=$(mktemp)
trap 'rm -f "$output" "$output.status"' EXIT
{ "$@" 2>&1 || echo $? >"$output.status"; } | tee "$output"

awk '
    / Running | Doc-tests / { sub(/^ *(Running )?(unittests )?/, ""); sub(/ \(.*/, ""); of = $0 }
    /^test .* \.\.\. FAILED$/ { failed = failed "\n  " of ": " $2 }
    /^test result:/ { passed += $4; failures += $6; left_out += $8 }
    END { printf "\n%d tests passed, %d failed, %d left out%s\n", passed, failures, left_out, failed }
' "$output"
if [ -e "$output.status" ]; then exit "$(cat "$output.status")"; fi
