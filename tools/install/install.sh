#!/bin/sh
# Installs the module where servers can load it, or removes it.
#   tools/install/install.sh [-u] module folder [DESTDIR]
#   tools/install/install.sh --prefix        prints where the system's server can load it from: /usr/local, or /usr
#
# Without its symbols the module is a tenth as large. Crash logs of the server lose nothing: their addresses are those
# of the file that was built, which still has its symbols.
set -eu

# Prints the unit of the system's server that executes no file in the folder, if there is one: Debian's has NoExecPaths=/
# and as ExecPaths only /usr/lib and /lib.
forbidding() { # folder
    folders=${DQ_UNITS:-/etc/systemd/system /run/systemd/system /usr/local/lib/systemd/system /usr/lib/systemd/system /lib/systemd/system}
    for unit in redis-server redis valkey-server valkey; do
        first=
        # shellcheck disable=SC2086 # a list of words
        for place in $folders; do
            [ -n "$first" ] || [ ! -f "$place/$unit.service" ] || first=$place/$unit.service
        done
        [ -n "$first" ] || continue
        set -- "$1" "$first"
        for place in $folders; do
            for part in "$place/$unit.service.d"/*.conf; do [ ! -f "$part" ] || set -- "$@" "$part"; done
        done
        folder=$1
        shift
        awk -F= -v folder="$folder" '
            function covers(list, count, i, paths, path) {
                count = split(list, paths, " ")
                for (i = 1; i <= count; i++) {
                    path = paths[i]
                    sub(/^[-+]+/, "", path)
                    sub(/\/+$/, "", path)
                    if (index(folder "/", path "/") == 1) return 1
                }
                return 0
            }
            $1 == "NoExecPaths" { none = $2 == "" ? "" : none " " $2 }
            $1 == "ExecPaths" { some = $2 == "" ? "" : some " " $2 }
            END { exit !(covers(none) && !covers(some)) }' "$@" && echo "$unit.service" && return
        set -- "$folder"
    done
}

if [ "$1" = --prefix ]; then
    if [ -n "$(forbidding /usr/local/lib/redis/modules)" ] && [ -z "$(forbidding /usr/lib/redis/modules)" ]; then
        echo /usr
    else
        echo /usr/local
    fi
    exit
fi

uninstall=
[ "$1" != -u ] || { uninstall=yes; shift; }
module=$1 folder=$2 destdir=${3:-}
installed=$folder/${module##*/}
target=$destdir$installed

case $folder in /*) ;; *) echo "PREFIX must be an absolute path, not $folder" >&2; exit 1 ;; esac
if [ -n "$uninstall" ]; then
    # A running server keeps the file that it has loaded; a server that starts does not find it.
    rm -f "$target"
    echo "Removed $target. A server whose configuration still loads it will not start."
    exit 0
fi

# Servers that have loaded the module continue to read its file: overwriting it would crash them. So the new file is
# written under another name and replaces the old one atomically, while they keep the old one.
mkdir -p "${target%/*}"
new=$(mktemp "$target.XXXXXX")
trap 'rm -f "$new"' EXIT
cp "$module" "$new"
case $module in *.dylib) option=-x ;; *) option=--strip-all ;; esac
strip "$option" "$new" || echo "Installed with its symbols." >&2
chmod 755 "$new"        # servers refuse a module that they may not execute
mv -f "$new" "$target"
trap - EXIT

cat <<END
Installed $target. For the server's configuration file (redis.conf, valkey.conf):

    loadmodule $installed

A server that has an older version loaded keeps it until it is restarted.
END
[ -n "$destdir" ] || unit=$(forbidding "$folder")
[ -z "${unit:-}" ] || cat >&2 <<END

$unit executes no files there (NoExecPaths), so its server would not start. Install with PREFIX=/usr, or allow it:
systemctl edit $unit, with the lines [Service] and ExecPaths=$folder
END
