#!/bin/sh
# Runs a command, which may begin with settings (NAME=value), with DQ_SERVER set: unchanged, or to the first server
# found.
#   tools/servers/on-server.sh command...
set -eu
DQ_SERVER=$("$(dirname "$0")/server.sh")
export DQ_SERVER
exec env "$@"
