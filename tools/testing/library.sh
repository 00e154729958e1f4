#!/bin/sh
# Checks and tests a library of clients/, against DQ_SERVER with DQ_MODULE. Builds are in DQ_SUITE_OUT.
#   tools/testing/library.sh python | node | go | java | rust | celery | dramatiq | taskiq | django [options of the test runner]
#   tools/testing/library.sh spring version-of-Boot...
#   tools/testing/library.sh suite | blocks | packages [options of pytest]
set -eu
cd "$(dirname "$0")/../.."

ruff() { "$python" -m ruff check "$@" && "$python" -m ruff format --check "$@"; }

maven() {
    mvn -q -B -Dstyle.color=never -f clients/java/all.xml -DargLine='-XX:TieredStopAtLevel=1 -XX:+UseSerialGC' "$@"
}

test_python() {
    python=$(tools/testing/suite.sh python)
    cd clients/python
    "$python" tools/stubs.py --check
    ruff . ../suite
    "$python" -m mypy
    examples=../../examples web=../../examples/web
    for program in example $examples/*.py $examples/python $examples/recipes $web/django $web/fastapi $web/flask ../django/example; do
        # The frameworks are not there.
        MYPYPATH=$program "$python" -m mypy --no-error-summary --explicit-package-bases --allow-untyped-decorators \
            --allow-subclassing-any "$program"
    done
    "$python" -m pytest tests example "$@"
}

test_node() {
    cd "$(tools/testing/node.sh)"
    npm run --silent check
    npm --silent test
}

test_go() {
    cd clients/go
    unformatted=$(gofmt -l .)
    [ -z "$unformatted" ] || { echo "gofmt: $unformatted" >&2; exit 1; }
    # Vet reads what the tests are built with, and need not look again when they are.
    for module in . dqotel example; do
        (cd $module && go vet -race ./... && go test -race -vet=off "$@" ./...)
    done
}

# Clippy and rustdoc check the crates while they are built for the tests: otherwise all dependencies would be checked
# again.
test_rust() {
    cargo=${CARGO:-cargo}
    export CARGO_TARGET_DIR="$DQ_SUITE_OUT/rust" RUSTC_WORKSPACE_WRAPPER="$PWD/tools/testing/checked.sh"
    cd clients/rust
    $cargo fmt --all --check
    $cargo test --locked --workspace --all-features --all-targets "$@"
    $cargo test --locked --workspace --all-features --doc "$@"
}

test_java() {
    maven -Ddq.target="$DQ_SUITE_OUT/java" -pl :dq-redis,:dq-redisson,:dq-redis-tests,:dq-example test
}

# The starter is built with Boot 3.5, and tested with each version, in a folder of its own.
test_spring() {
    for boot; do
        maven -Ddq.target="$DQ_SUITE_OUT/spring-$boot" -Dspring-boot.version="$boot" \
            -pl :dq-spring-boot-starter-tests,:dq-spring-example -am -Dtest='io.github.redisdq.spring.*Test,shop.*Test' \
            -Dsurefire.failIfNoSpecifiedTests=false test
    done
}

# The broker for a framework. Most tests wait for servers and workers of their own.
test_broker() { # name options...
    python=$(tools/install/venv.sh "${DQ_SUITE_OUT%/*}/brokers/$1" "clients/$1/tests/requirements.txt")
    cd "clients/$1" && shift
    ruff .
    "$python" -m pytest -n "${JOBS:-3}" --timeout 300 "$@"
}

test_suite() {
    python=$(tools/testing/suite.sh)
    cd clients/suite
    "$python" -m pytest -n "${JOBS:-6}" --timeout 180 "$@"
}

# Programs of the README and of the languages' pages, except what this Node cannot run.
test_blocks() {
    python=$(tools/testing/suite.sh python java rust)
    DQ_NODE=$(! tools/install/setup.sh --check node20 || tools/testing/node.sh)
    export DQ_NODE
    tests/blocks/web/prepare.sh
    "$python" -m pytest -q -p no:cacheprovider --rootdir tests/blocks tests/blocks "$@"
}

test_packages() {
    python=$(tools/testing/suite.sh python)
    "$python" -m pytest -q -n 3 -p no:cacheprovider --rootdir tests/packages tests/packages "$@"
}

name=$1 && shift
case $name in
    celery | dramatiq | taskiq | django) test_broker "$name" "$@" ;;
    *) "test_$name" "$@" ;;
esac
