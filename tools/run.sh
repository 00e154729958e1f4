#!/bin/sh
# Starts a server with the module, in the foreground; its data is kept in ./data.
#   tools/run.sh port module
set -eu
cd "$(dirname "$0")/.."
port=$1 module=$2
tools/port.sh "$port"
server=$(tools/server.sh)
mkdir -p data

client=redis-cli
command -v redis-cli >/dev/null || ! command -v valkey-cli >/dev/null || client=valkey-cli
[ "$port" = 6379 ] || client="$client -p $port"
cat <<END
$("$server" --version | cut -d ' ' -f 1-3) with dq on port $port; Ctrl-C ends it. To try in another terminal:

  $client DQ.ADD mails welcome 'Hello, Ann!' DELAY 3000
  $client DQ.BPOP mails 10
  $client DQ.STATS mails
  $client DQ.ACK mails welcome

END
# Only this machine can connect: the server that is tried out here has no password.
exec "$server" --port "$port" --bind 127.0.0.1 -::1 --dir data --appendonly yes --loadmodule "$module"
