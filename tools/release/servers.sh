#!/bin/sh
# Servers to try a release with, under target/built: one on musl, and one of ARM's 64 bits, which QEMU runs.
#   tools/release/servers.sh
set -eu
cd "$(dirname "$0")/../.."
built=$PWD/target/built
folder=$built/redis-arm64
program=$folder/redis-server

arm64() {
    "$program" --version >/dev/null 2>&1 && return 0
    apt=$folder/apt architecture=arm64
    . tools/debian.sh
    rm -rf "$folder" && mkdir -p "$folder/root"
    prepare_apt deb bookworm
    private_apt -y --no-install-recommends --download-only install redis-server
    for package in "$apt"/cache/archives/*.deb; do
        dpkg-deb -x "$package" "$folder/root"
    done
    rm -rf "$apt"
    # shellcheck disable=SC2016 # for the script that is written here
    printf '#!/bin/sh\nroot=${0%%/*}/root\nexec %s -L "$root" "$root/usr/bin/redis-server" "$@"\n' "$(command -v qemu-aarch64-static)" >"$program"
    chmod +x "$program"
    "$program" --version >/dev/null
}

arm64
echo "redis-arm64: $program"
tools/built-servers.sh musl
