#!/bin/sh
# Builds the published files of one target, and puts them into a folder.
#   tools/release/build.sh module|counting|program triple work-folder output-folder [profile]
# `counting` is the module that records the profile.
#
# Zig links: against the glibc of RHEL 7 and Debian 8, whatever this system has, and against musl.
# Two builds in two folders give the same bytes: no file contains a path of this machine. Zig records where it was
# called, so that is always /mnt, in a mount namespace of its own.
set -eu
cd "$(dirname "$0")/../.."
what=$1 triple=$2 work=$3 output=$4 profile=${5:-}

if [ "$PWD" != /mnt ] && unshare -rm mount --bind . /mnt 2>/dev/null; then
    inside() { case $1 in "$PWD"/*) echo "/mnt/${1#"$PWD"/}" ;; *) echo "$1" ;; esac; }
    # shellcheck disable=SC2016 # for the shell inside
    exec unshare -rm sh -c 'mount --bind "$0" /mnt && cd /mnt && exec tools/release/build.sh "$@"' \
        "$PWD" "$what" "$triple" "$(inside "$work")" "$(inside "$output")" "$(inside "$profile")"
fi
export CARGO="${CARGO:-cargo}"
arch=${triple%%-*} libc=${triple##*-}
[ "$libc" = musl ] && version= || version=.2.17

python=$(tools/install/venv.sh "$work/python" tools/release/requirements.txt)
zig=$("$python" -c 'import os, ziglang; print(os.path.dirname(ziglang.__file__))')
PATH=${python%/*}:$PATH
export ZIG_GLOBAL_CACHE_DIR="$work/zig" ZIG_LOCAL_CACHE_DIR="$work/zig"
sysroot=$(rustc --print sysroot)
[ -d "$sysroot/lib/rustlib/$triple/lib" ] || rustup -q target add "$triple"

# The target's headers: by default bindgen would take those of this machine.
headers() {
    kernel=$arch machine=$arch
    [ "$arch" != x86_64 ] || kernel=x86
    [ "$triple" != x86_64-unknown-linux-gnu ] || machine=x86
    generic=$libc
    [ "$libc" != gnu ] || generic=glibc
    for folder in "libc/include/$machine-linux-$libc" "libc/include/generic-$generic" \
        "libc/include/$kernel-linux-any" libc/include/any-linux-any include; do
        printf " -isystem '%s'" "$zig/lib/$folder"
    done
}
BINDGEN_EXTRA_CLANG_ARGS=$(headers)
export BINDGEN_EXTRA_CLANG_ARGS

unit=$(printf '\037')
renamed() { printf '%s--remap-path-prefix=%s=%s' "$unit" "$1" "$2"; }
flags=$(renamed "${CARGO_HOME:-$HOME/.cargo}" cargo; renamed "$work" target; renamed "$PWD" dq; renamed "$sysroot" rust)
for folder in "${CARGO_HOME:-$HOME/.cargo}" "$work" "$zig" "$PWD"; do
    CFLAGS="${CFLAGS:+$CFLAGS }'-ffile-prefix-map=$folder=.'"
done
export CFLAGS CC_SHELL_ESCAPED_FLAGS=1

build() { # folder, flags, command of cargo-zigbuild, its arguments...
    folder=$1 flag=$2 command=$3 && shift 3
    CARGO_ENCODED_RUSTFLAGS=$flag$flags CARGO_TARGET_DIR=$folder \
        cargo-zigbuild "$command" -q --locked --release --target "$triple$version" "$@"
}

# A library that a server loads shares the server's C library: with musl, too.
shared=-Ctarget-feature=-crt-static

# Linked by this machine's own linker, as Zig's has no profiler. Everything else is as for the module: symbols contain a
# hash of the build's options, and the profile is by symbols.
counting() {
    build "$work/counting" "$shared$unit-Cprofile-generate$unit-Clinker=cc" rustc --lib --crate-type cdylib
    cp "$work/counting/$triple/release/libdq.so" "$output/"
}

module() {
    build "$work" "$shared${profile:+$unit-Cprofile-use=$profile}" rustc --lib --crate-type cdylib
    built=$work/$triple/release/libdq.so
    objcopy=$(tools/release/llvm.sh objcopy)
    "$objcopy" --only-keep-debug "$built" "$output/libdq.so.debug"
    "$objcopy" --strip-all --add-gnu-debuglink="$output/libdq.so.debug" "$built" "$output/libdq.so"
    chmod 755 "$output/libdq.so"
    chmod 644 "$output/libdq.so.debug"
}

program() {
    export CARGO_PROFILE_RELEASE_STRIP=symbols
    (cd tools && build "$work" -Ctarget-feature=+crt-static zigbuild -p dq)
    install -m 755 "$work/$triple/release/dq" "$output/dq"
}

mkdir -p "$output"
"$what"
