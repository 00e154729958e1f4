#!/bin/sh
# Prepares what the tests of the clients run, under target/clients: a copy of each language's example and
# probe, built with the libraries that the example names. A language whose tools are missing is skipped;
# with CI=true it is installed instead.
#   tests/clients/prepare.sh [language...]      default: all of them
set -eu
cd "$(dirname "$0")/../.."
clients=${DQ_CLIENTS:-$PWD/target/clients}
CARGO=${CARGO:-cargo}

# One launcher of a library: exec, so that signals reach the program.
launcher() { # library program command...
    mkdir -p "$clients/$1"
    path=$clients/$1/$2
    shift 2
    { echo '#!/bin/sh'; printf 'exec'; printf " '%s'" "$@"; echo ' "$@"'; } >"$path"
    chmod +x "$path"
}

prepare_python() {
    python=$(tools/install/python.sh pip)
    cmp -s "$work/requirements.txt" "$work/lib/requirements.txt" || {
        rm -rf "$work/lib"
        "$python" -m pip -q --disable-pip-version-check --no-input install --root-user-action ignore \
            --target "$work/lib" -r "$work/requirements.txt"
        cp "$work/requirements.txt" "$work/lib"
    }
    for library in redis_py redis_py_asyncio; do
        launcher $library example env "PYTHONPATH=$work/lib" "$python" "$work/$library.py"
        launcher $library probe env "PYTHONPATH=$work/lib" "$python" "$work/probe.py" $library
    done
}

prepare_node() {
    cmp -s "$work/package-lock.json" "$work/node_modules/installed.json" || {
        (cd "$work" && npm ci --loglevel=error --no-audit --no-fund >/dev/null)
        cp "$work/package-lock.json" "$work/node_modules/installed.json"
    }
    for library in node_redis ioredis; do
        launcher $library example node "$work/$library.mjs"
        launcher $library probe node "$work/probe_$library.mjs"
    done
}

prepare_go() {
    (cd "$work" && GOTOOLCHAIN=local GOFLAGS="${GOFLAGS:-} -mod=readonly" go build -o bin/ . ./probe)
    launcher go_redis example "$work/bin/dq-example"
    launcher go_redis probe "$work/bin/probe"
}

prepare_java() {
    (cd "$work" && mvn -q -B -Dstyle.color=never package)
    for library in Jedis Lettuce Redisson; do
        name=$(echo $library | tr '[:upper:]' '[:lower:]')
        classes=$work/target/$name.jsa
        set -- java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -cp "$work/target/dq-examples-1.jar:$work/target/libraries/*"
        # What it loads until it finds no server is there for all starts, which take half of the time.
        REDIS_URL=redis://127.0.0.1:1 "$@" -XX:ArchiveClassesAtExit="$classes" "${library}Example" add a b 0 >"$classes.log" 2>&1 || true
        launcher "$name" example "$@" -XX:SharedArchiveFile="$classes" "${library}Example"
        launcher "$name" probe "$@" -XX:SharedArchiveFile="$classes" "${library}Probe"
    done
}

prepare_rust() {
    CARGO_TARGET_DIR=$work/target "$CARGO" build -q --locked --features probe --manifest-path "$work/Cargo.toml" --bins
    launcher redis_rs example "$work/target/debug/dq-example"
    launcher redis_rs probe "$work/target/debug/probe"
}

[ $# -gt 0 ] || set -- python node go java rust
for language; do
    if [ "${CI:-}" = true ]; then
        tools/install/setup.sh "$language"
    elif ! tools/install/setup.sh --check "$language"; then
        echo "$language is not installed here: its clients are not tested." >&2
        continue
    fi
    work=$clients/$language
    mkdir -p "$work"
    # What a developer has built there stays there. What did not change is not built again.
    new=$work:$(tar --exclude=target --exclude=node_modules --exclude=venv -cf "$work/sources.tar" -C "examples/$language" . \
        -C "$PWD/tests/clients/$language" . && cksum <"$work/sources.tar")
    tar -C "$work" -xf "$work/sources.tar"
    [ "$new" != "$(cat "$work/prepared" 2>/dev/null)" ] || continue
    "prepare_$language"
    printf '%s\n' "$new" >"$work/prepared"
done
