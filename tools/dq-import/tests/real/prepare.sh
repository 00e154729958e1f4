#!/bin/sh
# Downloads the real libraries that the import is tested against: BullMQ, two versions of Redisson, and dq's for Java.
#   DQ_SUITE_OUT=... tests/real/prepare.sh folder
# Reports what cannot be downloaded; the tests then skip it, except where CI is set.
set -u
here=$(cd "$(dirname "$0")" && pwd)
folder=$1

bullmq() {
    mkdir -p "$folder/bullmq"
    cp "$here/bullmq/package.json" "$here"/bullmq/*.mjs "$folder/bullmq"
    [ ! -d "$folder/bullmq/node_modules/bullmq" ] || return 0
    command -v npm >/dev/null || { echo "BullMQ: no npm here." >&2; return 1; }
    npm --prefix "$folder/bullmq" install --silent --ignore-scripts --omit=optional \
        --no-package-lock --no-audit --no-fund >&2
}

redisson() { # version
    [ ! -f "$folder/redisson-$1/redisson-$1.jar" ] || return 0
    command -v mvn >/dev/null || { echo "Redisson: no mvn here." >&2; return 1; }
    mvn -q -B -f "$here/redisson/pom.xml" -Dredisson.version="$1" \
        -DoutputDirectory="$folder/redisson-$1" dependency:copy-dependencies >&2
}

# dq's Java library together with Redisson, for an application that moves from Redisson to dq: as the behaviour suite has it.
dq_java() {
    command -v mvn >/dev/null || { echo "dq for Java: no mvn here." >&2; return 1; }
    "$here/../../../testing/suite.sh" java >/dev/null && rm -rf "$folder/dq-java" && ln -s "$DQ_SUITE_OUT/java" "$folder/dq-java"
}

bullmq || echo "BullMQ cannot be had." >&2
for version in 3.52.0 3.16.8; do # today's packing of members, and the former one
    redisson $version || echo "Redisson $version cannot be had." >&2
done
dq_java || echo "dq for Java cannot be built." >&2
