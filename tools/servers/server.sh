#!/bin/sh
# Prints the path of a server that can load the module: Redis 7.0, Valkey 7.2 or newer.
#   tools/servers/server.sh        the first that is found; fails, saying why, if there is none
#   tools/servers/server.sh all    that one, and each of target/servers
set -eu
cd "$(dirname "$0")/../.."

fit() {
    version=$("$1" --version 2>/dev/null) || return 1
    version=${version##* v=}
    major=${version%%.*}
    case $major in '' | *[!0-9]*) return 1 ;; esac
    [ "$major" -ge 7 ]
}

# Debian's package redis-tools has the server's program under the name redis-check-rdb (redis-server only adds a link to
# it, and a service). The name by which it is called decides what it is.
link=$PWD/target/servers/system/redis-server
link_from_tools() {
    [ ! -e "$link" ] || return 0
    program=$(command -v redis-check-rdb) || return 1
    mkdir -p "${link%/*}" && ln -sf "$program" "$link"
}

first() {
    if [ -n "${DQ_SERVER:-}" ]; then
        path=$(command -v "$DQ_SERVER") || { echo "DQ_SERVER=$DQ_SERVER: there is no such program" >&2; return 1; }
        case $path in /*) ;; *) path=$PWD/$path ;; esac
        fit "$path" || {
            echo "DQ_SERVER=$DQ_SERVER is no Redis 7.0, Valkey 7.2 or newer: $("$path" --version 2>&1 </dev/null | head -n 1)" >&2
            return 1
        }
        echo "$path"
        return 0
    fi
    for name in redis-server valkey-server; do
        path=$(command -v $name) && fit "$path" && echo "$path" && return 0
    done
    link_from_tools && fit "$link" && echo "$link" && return 0
    for path in "$PWD"/target/servers/*/*-server; do
        [ -x "$path" ] && fit "$path" && echo "$path" && return 0
    done
    echo "no redis-server 7.0 (valkey-server 7.2) or newer found" >&2
    return 1
}

found=$(first)
echo "$found"
[ "${1:-}" = all ] || exit 0
for path in "$PWD"/target/servers/*/*-server; do
    [ "$path" = "$found" ] || [ "$path" = "$link" ] || { [ -x "$path" ] && echo "$path"; }
done
