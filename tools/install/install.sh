#!/bin/sh
# Installs the module where servers can load it, or removes it.
#   tools/install/install.sh [-u] module folder [DESTDIR]
#
# Without its symbols the module is a tenth as large. Crash logs of the server lose nothing: their addresses are those
# of the file that was built, which still has its symbols.
set -eu
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
