#!/bin/sh
# Builds Redis 7.0 from Debian's source package, in variants that no distribution packages, under target/built:
#   tools/servers/built-servers.sh [asan] [defrag] [musl] [musl-arm64]
#     asan      with AddressSanitizer, whose malloc is then the module's, too
#     defrag    with the jemalloc that comes with Redis: what `activedefrag yes` needs
#     musl      with the C library of Alpine
#     musl-arm64    the same for ARM, built by Zig and run by QEMU
set -eu
cd "$(dirname "$0")/../.."
built=$PWD/target/built
apt=$built/apt
. tools/servers/debian.sh
. tools/servers/emulated.sh

fetch() { # the source into $built/source, Debian's patches applied
    [ ! -d "$built/source" ] || return 0
    prepare_apt deb-src bookworm || return 1
    rm -rf "$built/fetched" && mkdir -p "$built/fetched"
    (cd "$built/fetched" && private_apt source --download-only redis) || return 1
    (cd "$built/fetched" && dpkg-source -q -x redis_*.dsc source) || return 1
    mv "$built/fetched/source" "$built/source"
    rm -rf "$apt" "$built/fetched"
}

build() { # variables for make...
    rm -rf "$folder" && mkdir -p "$folder"
    cp -a "$built/source" "$folder/source"
    # Ignores variables that a calling make has set.
    env -u MAKEFLAGS -u MFLAGS make -C "$folder/source/src" -j "$(nproc)" redis-server BUILD_TLS=no "$@" \
        >"$folder/log" 2>&1 || { tail -n 30 "$folder/log" >&2; return 1; }
    mv "$folder/source/src/redis-server" "$program"
    rm -rf "$folder/source"
}

get() {
    fetch || return 1
    case $name in
        # Frame pointers are needed to record the stacks of frees and allocations.
        asan) build SANITIZER=address MALLOC=libc OPTIMIZATION='-O1 -fno-omit-frame-pointer' ;;
        # Debian's patch tests `#if USE_SYSTEM_JEMALLOC == yes`, which is true if neither is defined.
        defrag) build MALLOC=jemalloc REDIS_CFLAGS=-DUSE_SYSTEM_JEMALLOC=2 ;;
        musl) build CC=musl-gcc MALLOC=libc OPTIMIZATION=-O1 ;;
        musl-arm64)
            python=$(tools/install/venv.sh "$PWD/target/release-build/python" tools/release/requirements.txt) || return 1
            zig="$python -m ziglang"
            build CC="$zig cc -target aarch64-linux-musl -dynamic" AR="$zig ar" MALLOC=libc OPTIMIZATION=-O1 || return 1
            mkdir "$folder/root"
            mv "$program" "$folder/root/redis-server"
            unpack_arm64 "$folder" musl && emulate "$folder" /redis-server
            ;;
        *) echo "$name: not known" >&2; return 1 ;;
    esac
}

mkdir -p "$built"
[ $# -gt 0 ] || set -- asan defrag
for name; do
    folder=$built/redis-$name program=$built/redis-$name/redis-server
    if ! "$program" --version >/dev/null 2>&1; then
        echo "Building redis-$name (a minute or two) ..."
        get || { echo "Could not build redis-$name." >&2; exit 1; }
        "$program" --version >/dev/null
    fi
    echo "redis-$name: $program"
done
rm -rf "$built/source"
