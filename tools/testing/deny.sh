#!/bin/sh
# Licences, versions and sources of all crates in use; then advisories, if their database can be reached.
#   tools/testing/deny.sh target-folder
set -eu
cd "$(dirname "$0")/../.."
target=$1
CARGO=${CARGO:-cargo}
version=0.20.2
PATH=$target/tools/bin:$PATH
[ "$("$CARGO" deny --version 2>/dev/null)" = "cargo-deny $version" ] || {
    echo "Building cargo-deny $version (some minutes) ..."
    "$CARGO" install -q --locked --root "$target/tools" --version $version cargo-deny
}

deny() { # configuration, folder of Cargo.toml, checks...
    config=$1 folder=$2 && shift 2
    echo "$folder/Cargo.toml: $*"
    "$CARGO" deny --log-level error --locked --config "$config" --manifest-path "$folder/Cargo.toml" \
        check --hide-inclusion-graph "$@"
}

# With a stricter configuration each check must fail.
canary=$target/deny-canary.toml
sed '/"MIT",/d; /bitflags@1/d; s/^unknown-git.*/&\nallow-registry = []/' tools/lint/deny.toml >"$canary"
for check in licenses bans sources; do
    ! deny "$canary" . $check >"$target/deny-canary.log" 2>&1 && grep -q "$check FAILED" "$target/deny-canary.log" ||
        { cat "$target/deny-canary.log" >&2; echo "What is not allowed is not noticed: $check" >&2; exit 1; }
done

folders=$(git ls-files '*Cargo.lock' | xargs -n 1 dirname)
failed=
for folder in $folders; do
    deny tools/lint/deny.toml "$folder" licenses bans sources || failed=yes
done
if "$CARGO" deny --log-level error --config tools/lint/deny.toml fetch db; then
    for folder in $folders; do
        deny tools/lint/deny.toml "$folder" advisories || failed=yes
    done
else
    echo "The database of advisories cannot be reached: advisories were NOT checked." >&2
fi
[ -z "$failed" ]
