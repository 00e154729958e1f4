#!/bin/sh
# Prepares the tests of the worker libraries and their behaviour suite, under target/suite.
#   tools/testing/suite.sh [language...]    builds the probes of these languages (default: of the environment's LANGUAGES,
#                                   else of all), and prints the Python that the suite runs with
# With CI=true, missing tools of a language are installed; otherwise its probe is left out.
set -eu
cd "$(dirname "$0")/../.."
out=${DQ_SUITE_OUT:-$PWD/target/suite}

# A second process waits, and nothing is rebuilt if nothing has changed: tests may be running on it.
mkdir -p "$out"
exec 9>>"$out/suite.lock"
! command -v flock >/dev/null || flock 9
python=$(tools/install/venv.sh "$out/venv" clients/suite/requirements.txt)

build_go() {
    (cd clients/go && go build -o "$out/probes/go" ./internal/probe)
}

build_node() {
    folder=$(DQ_SUITE_OUT=$out tools/testing/node.sh)
    for client in ioredis redis; do
        printf '#!/bin/sh\nexec node "%s/probe/probe.mjs" %s\n' "$folder" "$client" >"$out/probes/node-$client"
        chmod +x "$out/probes/node-$client"
    done
}

build_java() {
    (cd clients/java && mvn -q -B -Dstyle.color=never -Ddq.target="$out/java" -f all.xml -pl :dq-redis,:dq-redisson,:dq-redis-tests \
        test-compile dependency:copy-dependencies -DexcludeGroupIds=io.github.redis-dq)
    # In a jar, as Java archives no classes of folders. What a probe loads until it finds no server is there for all of its
    # starts, which take most of what a scenario takes.
    probes=$out/java/probes
    mkdir -p "$probes"
    jar --create --file "$probes/probes.jar" \
        -C "$out/java/classes" io -C "$out/java/redisson/classes" io -C "$out/java/tests/test-classes" io
    for client in jedis lettuce redisson; do
        set -- java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -cp "$probes/probes.jar:$out/java/tests/libraries/*"
        printf '%s\n' '{"do":"queue","queue":"q","name":"q","url":"redis://127.0.0.1:1"}' '{"do":"worker","queues":["q"]}' |
            "$@" -XX:ArchiveClassesAtExit="$probes/$client.jsa" io.github.redisdq.probe.Probe $client >"$probes/$client.log" 2>&1
        launcher=$out/probes/java-$client
        { echo '#!/bin/sh'; printf 'exec'; printf " '%s'" "$@" -XX:SharedArchiveFile="$probes/$client.jsa" \
            io.github.redisdq.probe.Probe $client; } >"$launcher"
        chmod +x "$launcher"
    done
}

# Built in the folder of the library's own tests, so that what both need is built once.
build_rust() {
    ${CARGO:-cargo} build -q --locked --manifest-path clients/rust/Cargo.toml --target-dir "$out/rust" -p dq-probe
    cp "$out/rust/debug/dq-probe" "$out/probes/rust"
}

sources() { (cd "clients/$1" && find . \( -name node_modules -o -name dist -o -name target \) -prune -o -type f -exec cksum {} + | sort); }

# An outdated probe, removed or no longer buildable, must not run.
mkdir -p "$out/probes"
[ $# -gt 0 ] || {
    # shellcheck disable=SC2046 # a list of words
    set -- $(echo "${LANGUAGES:-go node java rust}" | tr ',' ' ')
}
for language; do
    language=${language%%-*}
    [ -f "clients/$language/README.md" ] && [ "$language" != python ] || continue
    need=$language
    [ "$need" != node ] || need=node20
    [ "$need" != rust ] || need="cargo cc"
    # shellcheck disable=SC2086 # a list of words
    if [ "${CI:-}" = true ]; then
        tools/install/setup.sh $need >&2
    elif ! tools/install/setup.sh --check $need; then
        echo "$language is not installed here: its library is not tested." >&2
        rm -rf "$out/probes/$language"*
        continue
    fi
    new=$(sources "$language")
    [ "$new" != "$(cat "$out/probes/$language.built" 2>/dev/null)" ] || continue
    "build_$language" >&2
    printf '%s\n' "$new" >"$out/probes/$language.built"
done
echo "$python"
