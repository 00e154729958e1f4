#!/bin/sh
# Prepares what the worker libraries and their behaviour suite are tested with, under target/suite.
#   tools/suite.sh [language...]    builds the probes of these languages (default: of the environment's LANGUAGES,
#                                   else of all), and prints the Python that the suite runs with
# A language's tools that are missing are installed with CI=true; else its probe is left out.
set -eu
cd "$(dirname "$0")/.."
out=${DQ_SUITE_OUT:-$PWD/target/suite}
venv=$out/venv
wanted="pytest>=8 pytest-xdist pytest-timeout opentelemetry-sdk mypy==2.4.1 ruff==0.17.6 build"

new=$(cat clients/python/pyproject.toml; echo "$wanted")
if [ "$new" != "$(cat "$venv/prepared" 2>/dev/null)" ]; then
    echo "Getting what tests the libraries into target/suite ..." >&2
    rm -rf "$venv"
    mkdir -p "$out"
    python3 -m venv "$venv" >&2
    # shellcheck disable=SC2086 # a list of words
    "$venv/bin/python" -m pip -q --disable-pip-version-check install -e 'clients/python[otel,test]' $wanted >&2
    echo "$new" >"$venv/prepared"
fi

build_go() {
    (cd clients/go && go build -o "$out/probes/go" ./internal/probe)
}

build_node() {
    folder=$(DQ_SUITE_OUT=$out tools/node.sh)
    for client in ioredis redis; do
        printf '#!/bin/sh\nexec node "%s/probe/probe.mjs" %s\n' "$folder" "$client" >"$out/probes/node-$client"
        chmod +x "$out/probes/node-$client"
    done
}

# Maven takes its time to find that there is nothing to do.
build_java() {
    new=$(cd clients/java && find pom.xml src -type f -exec cksum {} + | sort)
    [ "$new" != "$(cat "$out/java.built" 2>/dev/null)" ] || [ ! -x "$out/probes/java-redisson" ] || return 0
    (cd clients/java && mvn -q -B -Dstyle.color=never -Ddq.target="$out/java" test-compile dependency:copy-dependencies)
    for client in jedis lettuce redisson; do
        launcher=$out/probes/java-$client
        cat >"$launcher" <<EOF
#!/bin/sh
exec java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto \\
    -cp '$out/java/classes:$out/java/test-classes:$out/java/libraries/*' io.github.redisdq.probe.Probe $client
EOF
        chmod +x "$launcher"
    done
    printf '%s\n' "$new" >"$out/java.built"
}

# A probe that a change took away, or that cannot be built any more, must not run as it was.
mkdir -p "$out/probes"
[ $# -gt 0 ] || {
    # shellcheck disable=SC2046 # a list of words
    set -- $(echo "${LANGUAGES:-go node java}" | tr ',' ' ')
}
for language; do
    language=${language%%-*}
    [ -f "clients/$language/README.md" ] && [ "$language" != python ] || continue
    need=$language
    [ "$need" != node ] || need=node20
    if [ "${CI:-}" = true ]; then
        tools/setup.sh "$need" >&2
    elif ! tools/setup.sh --check "$need"; then
        echo "$language is not installed here: its library is not tested." >&2
        rm -rf "$out/probes/$language"*
        continue
    fi
    "build_$language" >&2
done
echo "$venv/bin/python"
