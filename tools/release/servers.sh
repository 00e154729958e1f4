#!/bin/sh
# Gets servers to try a release with, under target/built: on musl, and for 64-bit ARM, run by QEMU.
#   tools/release/servers.sh
set -eu
cd "$(dirname "$0")/../.."
built=$PWD/target/built
. tools/servers/debian.sh
. tools/servers/emulated.sh

arm64=$built/redis-arm64
"$arm64/redis-server" --version >/dev/null 2>&1 || {
    rm -rf "$arm64"
    unpack_arm64 "$arm64" redis-server
    emulate "$arm64" /usr/bin/redis-server
    "$arm64/redis-server" --version >/dev/null
}
echo "redis-arm64: $arm64/redis-server"
tools/servers/built-servers.sh musl musl-arm64
