#!/bin/sh
# Fails, naming the process that has it, if a port is taken.
#   tools/install/port.sh port
set -eu
port=$1
case $port in '' | 0* | *[!0-9]* | ??????*) port=0 ;; esac
if [ "$port" -lt 1 ] || [ "$port" -gt 65535 ]; then
    echo "PORT=$1 is no port number" >&2
    exit 1
fi

# A server that runs on another C library has the name of its loader (ld-linux-x86-64, ld-linux-aarch64).
name_of() { # process
    name=$(cat "/proc/$1/comm")
    case $name in ld-*) name=$(tr '\0 ' '\n\n' <"/proc/$1/cmdline" | sed -n 's|.*/\([^/]*-server\)$|\1|p' | head -n 1) ;; esac
    echo "${name:-$(cat "/proc/$1/comm")}"
}

holder() { # -> who listens on the port; fails if nobody does
    if [ -r /proc/net/tcp ]; then
        hex=$(printf ':%04X' "$port")
        # Columns: 2 the local address, 4 the state (0A: listening), 10 the socket's number.
        socket=$(cat /proc/net/tcp /proc/net/tcp6 2>/dev/null |
            awk -v port="$hex" '$4 == "0A" && substr($2, length($2) - 4) == port { print $10; exit }')
        [ -n "$socket" ] || return 1
        # Other users' processes cannot be inspected.
        fd=$(find /proc/[0-9]*/fd -lname "socket:\[$socket\]" 2>/dev/null | head -n 1)
        process=${fd#/proc/} process=${process%%/*}
        [ -z "$process" ] || { echo "$(name_of "$process") (process $process)"; return 0; }
    else
        name=$(lsof -nP -iTCP:"$port" -sTCP:LISTEN 2>/dev/null | awk 'NR == 2 { print $1 " (process " $2 ")" }')
        [ -n "$name" ] || return 1
        echo "$name"
        return 0
    fi
    echo "another user's process"
}

who=$(holder) || exit 0
echo "Port $port is taken by $who. Use another one: make run PORT=$((port < 65535 ? port + 1 : 6380))" >&2
for service in redis-server redis valkey-server valkey; do
    if command -v systemctl >/dev/null && systemctl -q is-active $service 2>/dev/null; then
        echo "(The system service $service is running; to stop it: sudo systemctl stop $service)" >&2
        break
    fi
done
exit 1
