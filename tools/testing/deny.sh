#!/bin/sh
# Licences, versions and sources of all crates in use; then advisories, if their database can be reached.
#   tools/testing/deny.sh target-folder [twice]   twice: only crates in two versions, which needs no cargo-deny
set -eu
cd "$(dirname "$0")/../.."
target=$1
CARGO=${CARGO:-cargo}
version=0.20.2
folders=$(git ls-files '*Cargo.lock' | xargs -n 1 dirname)

# All versions of a crate but one must be among those that tools/lint/deny.toml skips.
twice() { # folder of Cargo.toml
    "$CARGO" tree --quiet --locked --manifest-path "$1/Cargo.toml" --workspace --all-features --duplicates --edges normal,build --depth 0 --prefix none \
        --target x86_64-unknown-linux-gnu >"$target/twice" || return
    sed -nE 's/^(\S+) v([0-9.]+).*/\1 \2/p' "$target/twice" | sort -u |
        awk -v where="$1" -F '[" @]+' 'FNR == NR { if (/crate = .*@/) skips[$5 "@" $6]; next }
            { is_skipped = 0; for (skip in skips) is_skipped += index($1 "@" $2 ".", skip ".") == 1
              if (!is_skipped && $1 in kept && kept[$1] != $2) { print where ": " $1 " " kept[$1] " and " $2; bad = 1 }
              if (!is_skipped) kept[$1] = $2 }
            END { exit bad }' tools/lint/deny.toml -
}

if [ "${2:-}" = twice ]; then
    failed=
    for folder in $folders; do twice "$folder" || failed=yes; done
    [ -z "$failed" ] && exit
    exit 1
fi
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
