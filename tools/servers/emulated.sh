# shellcheck shell=sh disable=SC2034,SC2154 # debian.sh uses what is set here, and the caller sources it before
# Servers for 64-bit ARM, run by QEMU. To be sourced.

unpack_arm64() { # folder, Debian's packages... into folder/root
    folder=$1 && shift
    apt=$folder/apt architecture=arm64
    mkdir -p "$folder/root"
    prepare_apt deb bookworm
    private_apt -y --no-install-recommends --download-only install "$@"
    for package in "$apt"/cache/archives/*.deb; do
        dpkg-deb -x "$package" "$folder/root"
    done
    rm -rf "$apt"
}

# shellcheck disable=SC2016 # for the script that is written here
emulate() { # folder, program below folder/root: writes folder/redis-server
    printf '#!/bin/sh\nroot=${0%%/*}/root\nexec %s -L "$root" "$root%s" "$@"\n' "$(command -v qemu-aarch64-static)" "$2" >"$1/redis-server"
    chmod +x "$1/redis-server"
}
