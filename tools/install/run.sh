#!/bin/sh
# Starts a server with the module, in the foreground. Its data is kept in ./data, or in ./data-PORT on another port than
# 6379: two servers that share a folder would deliver jobs twice and overwrite each other's files.
#   tools/install/run.sh port module
set -eu
port=$1 module=$2
case $module in /*) ;; *) module=$PWD/$module ;; esac
cd "$(dirname "$0")/../.."
tools/install/port.sh "$port"
server=$(tools/servers/server.sh)
[ -f "$module" ] || { echo "MODULE=$2: there is no such file" >&2; exit 1; }
# A downloaded module is not executable, as servers require.
if [ ! -x "$module" ]; then
    chmod +x "$module"
    echo "Made $2 executable: servers load no other module."
fi
folder=data
[ "$port" = 6379 ] || folder=data-$port
mkdir -p "$folder"

# The server inherits the lock, which is released when it ends. macOS has no flock, but perl.
lock() {
    if command -v flock >/dev/null; then
        flock -n 9
    else
        perl -e 'open(LOCK, ">&=", 9) && flock(LOCK, 6) or exit 1'
    fi
}
exec 9>>"$folder/lock"
if ! lock; then
    echo "./$folder belongs to a server that is running (process $(tail -n 1 "$folder/lock"))." >&2
    exit 1
fi
echo $$ >"$folder/lock"

client=redis-cli
command -v redis-cli >/dev/null || ! command -v valkey-cli >/dev/null || client=valkey-cli
[ "$port" = 6379 ] || client="$client -p $port"
hint() {
    cat <<END

$("$server" --version | cut -d ' ' -f 1-3) with dq on port $port, data in ./$folder; Ctrl-C ends it.
To try in another terminal:

  $client DQ.ADD mails welcome 'Hello, Ann!' DELAY 3000
  $client DQ.BPOP mails 10
  $client DQ.STATS mails
  $client DQ.ACK mails welcome

For tests with dq's libraries:

  export DQ_SERVER='$server' DQ_MODULE='$module'

END
}

# Prints the server's log, and once it is ready some commands to try. Ctrl-C is left to the server.
log() {
    trap '' INT TERM
    exec 9>&-
    while IFS= read -r line; do
        printf '%s\n' "$line"
        case $line in *'Ready to accept connections'*) hint; break ;; esac
    done
    exec cat
}
temporary=$(mktemp -d)
mkfifo "$temporary/log"
log <"$temporary/log" &
exec >"$temporary/log"
rm -r "$temporary"
# Only this machine can connect, as the server has no password.
exec "$server" --port "$port" --bind 127.0.0.1 -::1 --dir "$folder" --appendonly yes --loadmodule "$module"
