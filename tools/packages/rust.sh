#!/bin/sh
# The Rust library as the crate that cargo would publish.
#   rust.sh build FOLDER          puts it there
#   rust.sh check FOLDER WORK     builds the README's first block with it in WORK, and runs it against the server at DQ_URL
set -eu
cd "$(dirname "$0")/../../clients/rust"
cargo=${CARGO:-cargo}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
crate=dq-redis-$version

build() {
    rm -f "$1"/dq-redis-*.crate
    packed=$(mktemp -d)
    # Built there by `check`.
    $cargo package -q --locked --no-verify --allow-dirty -p dq-redis --target-dir "$packed"
    cp "$packed/package/$crate.crate" "$1"
    rm -rf "$packed"
}

check() {
    tar -xzf "$1/$crate.crate" -C "$2"
    cmp ../../LICENSE "$2/$crate/LICENSE"
    grep -q '^repository = ' "$2/$crate/Cargo.toml"
    mkdir -p "$2/lines/src"
    cp Cargo.lock "$2/lines"
    cat >"$2/lines/Cargo.toml" <<LINES
[package]
name = "lines"
version = "0.1.0"
edition = "2021"

[dependencies]
dq-redis = { path = "../$crate" }
tokio = { version = "1", features = ["full"] }

$(sed -n "/^# As Axum/,\$p" probe/Cargo.toml)

[profile.dev]
debug = "line-tables-only"

[workspace]
LINES
    # The job is due now, and the worker stops when it is closed.
    sed -n '/^```rust,no_run$/,/^```$/p' README.md | sed '1d; /^```$/,$d' |
        sed 's/"redis:\/\/localhost"/\&std::env::var("DQ_URL").expect("DQ_URL")/; s/from_secs(1800)/ZERO/
            s/^    Ok(())$/    std::process::Command::new("kill").arg(std::process::id().to_string()).status()?;\n&/' >"$2/lines/src/main.rs"
    cd "$2/lines"
    # The crates that it needs were built before for the suite's probe, with the same features and profile.
    target=${DQ_SUITE_OUT:-$2}/lines
    [ ! -d "${DQ_SUITE_OUT:-}/rust" ] || target=$DQ_SUITE_OUT/rust
    $cargo run -q --target-dir "$target" >said
    grep -x 'closed order 17' said
}

"$@"
