#!/bin/sh
# Runs the simulation for a third of the time, forged payloads and the simulation on servers for a sixth each, and then
# the crash tests, with new seeds until the time is over or one of them fails.
#   tools/testing/soak.sh seconds command-that-runs-cargo-test...
set -eu
seconds=$1
shift
"$@" --no-run --test simulation --test integration --test live --test crash

log=$(mktemp)
trap 'rm -f "$log"' EXIT
end=$(($(date +%s) + seconds / 3))
first=$(date +%s) seed=$first
export DQ_SIM_STEPS=20000
while [ "$(date +%s)" -lt "$end" ]; do
    DQ_SEED=$seed "$@" -q --test simulation -- --skip canaries --skip exhaustive > "$log" 2>&1 || {
        cat "$log"
        echo "again: DQ_SEED=$seed DQ_SIM_STEPS=$DQ_SIM_STEPS cargo test --no-default-features --test simulation"
        exit 1
    } >&2
    seed=$((seed + 1))
done
echo "simulation: $((seed - first)) seeds of every shape, $DQ_SIM_STEPS operations each, no faults"

DQ_ACCEPTED_SECONDS=$((seconds / 6)) "$@" -q --test integration -- --exact accepted::what_is_accepted_stays --nocapture
DQ_SOAK_SECONDS=$((seconds / 6)) "$@" -q --test live -- --exact soak --nocapture
DQ_SOAK_SECONDS=$((seconds / 3)) "$@" -q --test crash -- --exact soak::soak --nocapture
