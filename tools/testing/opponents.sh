#!/bin/sh
# Gets the queues that dq is compared with, in the versions pinned in benches/opponents, into target/opponents, and
# builds the programs. What these versions need besides is that of the day: the lock files are written here.
#   tools/testing/opponents.sh folder
# Reports what cannot be had, and leaves it out of the comparison.
set -eu
cd "$(dirname "$0")/../.."
sources=$PWD/benches/opponents out=$1
mkdir -p "$out"

without() { # what
    echo "Goes on without $1." >&2
    skipped="$skipped $1"
}

changed() { # part: its sources differ from those that it was built from
    new=$(find "$sources/$1" "clients/$1" -type f ! -path '*/__pycache__/*' ! -path '*/node_modules/*' ! -path '*/target/*' ! -name Cargo.lock ! -name go.sum -exec cksum {} + | sort)
    [ "$new" != "$(cat "$out/$1.built" 2>/dev/null)" ]
}

built() { # part
    printf '%s\n' "$new" >"$out/$1.built"
}

get_python() { # -> the harness needs it, too
    cksum <"$sources/python/requirements.txt" >"$out/python.new"
    cmp -s "$out/python.new" "$out/python.built" && return 0
    rm -rf "$out/python"
    echo "Getting Celery, Dramatiq, RQ, taskiq, greenstalk and redis-py ..."
    python3 -m venv "$out/python" && "$out/python/bin/python" -m pip -q --disable-pip-version-check install \
        -r "$sources/python/requirements.txt" && mv "$out/python.new" "$out/python.built"
}

get_node() {
    tools/install/setup.sh node && changed node || return
    echo "Getting BullMQ ..."
    rm -rf "$out/node" && cp -R "$sources/node" "$out/node" || return
    (cd "$out/node" && npm install --no-save --omit=optional --ignore-scripts --no-audit --no-fund --silent) || return
    built node
}

# And our own library, as it is now.
add_node_library() {
    is_there node/node_modules/bullmq && tools/install/setup.sh node20 || return
    library=$(tools/testing/node.sh) || return
    rm -rf "$out/node/node_modules/dq-redis" && mkdir "$out/node/node_modules/dq-redis" &&
        cp -R "$library/package.json" "$library/dist" "$out/node/node_modules/dq-redis"
}

get_go() {
    tools/install/setup.sh go && changed go || return
    echo "Getting asynq ..."
    mkdir -p "$out/go" && (cd "$sources/go" && go build -mod=mod -o "$out/go/program" .) && built go
}

get_rust() {
    tools/install/setup.sh cargo cc && changed rust || return
    echo "Getting apalis ..."
    mkdir -p "$out/rust" && CARGO_TARGET_DIR="$out/rust/target" cargo build -q --release --manifest-path "$sources/rust/Cargo.toml" &&
        ln -f "$out/rust/target/release/program" "$out/rust/program" && built rust
}

get_java() {
    tools/install/setup.sh java && changed java || return
    echo "Getting Redisson and Jedis ..."
    rm -rf "$out/java" && (cd "$sources/java" &&
        mvn -q -B -Dout="$out/java" compile dependency:copy-dependencies) && built java
}

# Debian's package would also install a service, and start it.
get_beanstalkd() {
    command -v beanstalkd >/dev/null || [ -x "$out/beanstalkd/usr/bin/beanstalkd" ] && return
    command -v apt-get >/dev/null || return
    echo "Getting beanstalkd ..."
    rm -rf "$out/beanstalkd" && mkdir -p "$out/beanstalkd" && (cd "$out/beanstalkd" &&
        apt-get -qq -o APT::Sandbox::User="$(id -un)" download beanstalkd && dpkg-deb -x beanstalkd_*.deb .)
}

is_there() { # path
    [ -e "$out/$1" ]
}

skipped=
tools/install/setup.sh fetch
get_python
get_node || true
is_there node/node_modules/bullmq || without BullMQ
add_node_library || without "the Node library"
get_go || true
is_there go/program || without asynq
get_rust || true
is_there rust/program || without apalis
get_java || true
is_there java/dependency || without Redisson
get_beanstalkd || true
command -v beanstalkd >/dev/null || is_there beanstalkd/usr/bin/beanstalkd || without beanstalkd
[ -z "$skipped" ] || echo "Could not be had:$skipped" >&2
