#!/bin/sh
# Makes the files of a release in target-folder/release-files.
#   tools/release/make.sh target-folder [triple...]      default: all
# PROFILE: the profile of an earlier release, to build the same module again.
set -eu
cd "$(dirname "$0")/../.."
target=$1 && shift
[ $# -gt 0 ] || set -- x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu x86_64-unknown-linux-musl aarch64-unknown-linux-musl
. tools/release/common.sh
HELPER=
files=$target/release-files work=$target/release-build
profile=$work/x86_64-unknown-linux-gnu.profdata
mkdir -p "$work"
if [ -z "${PROFILE:-}" ]; then
    rm -f "$profile"
elif ! [ "$PROFILE" -ef "$profile" ]; then
    cp "$PROFILE" "$profile"
fi
rm -rf "$files" "$work/staged"
mkdir -p "$files" "$work/staged"

archive() { # name, folder, files...
    name=$1 folder=$2 && shift 2
    tar -C "$folder" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
        --transform "s,^,$name/," -cf - "$@" | gzip -9n >"$files/$name.tar.gz"
    echo "$name.tar.gz"
}

for triple; do
    arch=${triple%%-*} libc=${triple##*-}
    staged=$work/staged/$triple
    echo "The module for $arch, $libc ..."
    profile=$(tools/release/profile.sh "$target" "$triple")
    tools/release/build.sh module "$triple" "$work" "$staged" "$profile"
    [ -z "$profile" ] || cp "$profile" "$files/dq-$version-$arch-linux-$libc.profdata"
    cp LICENSE CHANGELOG.md "$staged/"
    archive "dq-$version-$arch-linux-$libc" "$staged" libdq.so LICENSE CHANGELOG.md
    archive "dq-$version-$arch-linux-$libc-debug" "$staged" libdq.so.debug
    [ "$triple" != x86_64-unknown-linux-gnu ] ||
        SUMMARY=$summary MAINTAINER=$maintainer python3 tools/release/software.py "$staged/libdq.so" "$DQ_SERVER" "$version" "$files"
    [ "$libc" = musl ] || continue
    # The program needs no library of any system.
    echo "The program for $arch ..."
    tools/release/build.sh program "$triple" "$work" "$staged"
    archive "dq-program-$version-$arch-linux" "$staged" dq LICENSE
    of_glibc=$work/staged/$arch-unknown-linux-gnu/libdq.so
    [ -e "$of_glibc" ] || continue
    one=$files/dq-$version-$arch-linux
    tools/servers/servers.sh "packed-$arch" >/dev/null
    tools/release/pack.sh "$staged/dq" "$one" "valkey-server=target/servers/packed-$arch/server" \
        "libdq.so=$of_glibc" "libdq-musl.so=$staged/libdq.so"
    echo "${one##*/}"
    python3 tools/release/registries.py "$one" "$version" "$arch" "$files"
    case $arch in x86_64) debian=amd64 ;; aarch64) debian=arm64 ;; esac
    [ "$arch" != "$(uname -m)" ] || HELPER=$one
    export HELPER
    for package in "$(tools/release/deb.sh "$of_glibc" $debian "$files" "$one")" \
        "$(tools/release/rpm.sh "$of_glibc" "$arch" "$files" "$one")"; do
        echo "${package##*/}"
    done
done
[ -z "$HELPER" ] || "$HELPER" licenses >"$files/dq-$version-licenses.txt"
# What `make bench-page` has put there: every round, and the plots.
figures=$target/bench/figures
[ ! -d "$figures" ] || archive "dq-benchmarks-$version" "$figures" $(cd "$figures" && ls)
tools/release/sbom.sh "$target" "$files"
(cd "$files" && sha256sum -- * >SHA256SUMS)
echo "All of it is in $files"
