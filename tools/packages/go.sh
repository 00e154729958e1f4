#!/bin/sh
# The Go library as a module proxy serves it: what a tag clients/go/v0.1.0 would give.
#   go.sh build FOLDER          puts it there, as FOLDER/go/<module>/@v/...
#   go.sh check FOLDER WORK     gets the module from there into a clean cache in WORK, and runs the README's first block
#                               against the server at DQ_URL
set -eu
cd "$(dirname "$0")/../../clients/go"
module=$(sed -n 's/^module //p' go.mod)
version=v$(sed -n 's/^const Version = "\(.*\)"/\1/p' doc.go)

# Modules of their own are no part of it, as for the proxy.
build() {
    at=$1/go/$module/@v
    rm -rf "$1/go"
    mkdir -p "$at"
    cp go.mod "$at/$version.mod"
    printf '{"Version":"%s"}\n' "$version" >"$at/$version.info"
    echo "$version" >"$at/list"
    python3 - "$at/$version.zip" "$module@$version" <<'ZIP'
import os, sys, zipfile

target, prefix = sys.argv[1:]
with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as out:
    for folder, folders, files in os.walk("."):
        folders[:] = sorted(each for each in folders if not os.path.exists(os.path.join(folder, each, "go.mod")))
        for name in sorted(files):
            path = os.path.normpath(os.path.join(folder, name))
            out.write(path, f"{prefix}/{path}")
    out.write("../../LICENSE", f"{prefix}/LICENSE")
ZIP
}

program() {
    cat <<BEFORE
package main

import (
	"context"
	"log"
	"os"
	"time"

	dq "$module"
)

type Order struct{ Number int }

var stop context.CancelFunc

func closeOrder(_ context.Context, _ *dq.Job, order Order) error {
	if order.Number != 17 {
		log.Fatal(order)
	}
	stop()
	return nil
}

func main() {
	var ctx context.Context
	ctx, stop = context.WithTimeout(context.Background(), time.Minute)
	if err := run(ctx); err != nil || ctx.Err() != context.Canceled {
		log.Fatal(err, ctx.Err())
	}
}

BEFORE
    sed -n '/^```go$/,/^```$/p' README.md | sed '1d; /^```$/,$d' |
        sed 's/"redis:\/\/localhost"/os.Getenv("DQ_URL")/; s/30 \* time.Minute/0/'
}

check() {
    program >"$2/main.go"
    proxy=file://$(cd "$1" && pwd)/go
    cd "$2"
    # What was fetched before need not be fetched again; the checksum database does not know what is not published.
    fetched=file://$(go env GOMODCACHE)/cache/download
    export GOFLAGS=-modcacherw GONOSUMDB="$module" GOPROXY="$proxy,$fetched,$(go env GOPROXY)" GOMODCACHE="$2/cache"
    go mod init ten-lines
    go get "$module@$version"
    go run .
}

"$@"
