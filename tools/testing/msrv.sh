#!/bin/sh
# Checks everything with the oldest compiler that Cargo.toml names.
#   tools/testing/msrv.sh target-folder
set -eu
cd "$(dirname "$0")/../.."
target=$1
version=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
# All manifests name the same version.
for manifest in tools/Cargo.toml clients/rust/Cargo.toml; do
    grep -q "^rust-version = \"$version\"$" $manifest || { echo "$manifest names another compiler than $version" >&2; exit 1; }
done
rustup run "$version" cargo --version 2>/dev/null || rustup -q toolchain install "$version" --profile minimal
for manifest in Cargo.toml tools/Cargo.toml clients/rust/Cargo.toml; do
    rustup run "$version" cargo check -q --locked --manifest-path $manifest --target-dir "$target/msrv"
    echo "$manifest: built by $version"
done
