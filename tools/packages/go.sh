#!/bin/sh
# The Go library as a module proxy serves it: what a tag clients/go/v0.1.0 would give.
#   go.sh build FOLDER          puts it there, as FOLDER/go/<module>/@v/...
#   go.sh check FOLDER WORK     gets the modules from there into a clean cache in WORK, and runs the README's first block
#                               against the server at DQ_URL, with a producer whose queue has OpenTelemetry's hooks
set -eu
cd "$(dirname "$0")/../../clients/go"
module=$(sed -n 's/^module //p' go.mod)
version=v$(sed -n 's/^const Version = "\(.*\)"/\1/p' doc.go)

# The library, and what it has besides for OpenTelemetry.
build() {
    rm -rf "$1/go"
    pack . "$module" "$1"
    pack dqotel "$module/dqotel" "$1"
}

# pack SOURCE MODULE FOLDER; folders that are modules of their own are left out, as a proxy does.
pack() {
    at=$3/go/$2/@v
    mkdir -p "$at"
    cp "$1/go.mod" "$at/$version.mod"
    printf '{"Version":"%s"}\n' "$version" >"$at/$version.info"
    echo "$version" >"$at/list"
    python3 - "$1" "$at/$version.zip" "$2@$version" <<'ZIP'
import os, sys, zipfile

source, target, prefix = sys.argv[1:]
with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as out:
    for folder, folders, files in os.walk(source):
        folders[:] = sorted(each for each in folders if not os.path.exists(os.path.join(folder, each, "go.mod")))
        for name in sorted(files):
            path = os.path.join(folder, name)
            out.write(path, f"{prefix}/{os.path.relpath(path, source)}")
ZIP
}

# The README's first block, and a producer that adds one more job and waits for the end of both.
programs() {
    sed -n '/^```go$/,/^```$/p' README.md | sed '1d; /^```$/,$d' |
        sed 's/"redis:\/\/localhost"/os.Getenv("DQ_URL")/; s/30 \* time.Minute/0/; s/^\t"log"$/&\n\t"os"/' >"$1/main.go"
    cat >"$1/producer/main.go" <<PRODUCER
package main

import (
	"context"
	"log"
	"os"
	"time"

	dq "$module"
	"$module/dqotel"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	queue, err := dq.Open(os.Getenv("DQ_URL"), "orders", dq.QueueOptions{Hooks: []dq.Hooks{dqotel.New()}})
	if err == nil {
		_, err = queue.Add(ctx, map[string]int{"Number": 17}, nil)
	}
	for left := 1; err == nil && left > 0; time.Sleep(time.Millisecond) {
		left, err = queue.Len(ctx, dq.All)
	}
	if err != nil {
		log.Fatal(err)
	}
}
PRODUCER
}

check() {
    mkdir "$2/producer"
    programs "$2"
    proxy=file://$(cd "$1" && pwd)/go
    cd "$2"
    # Modules that were downloaded before are reused; the checksum database does not know unpublished ones.
    fetched=file://$(go env GOMODCACHE)/cache/download
    export GOFLAGS="${GOFLAGS:-} -modcacherw" GONOSUMDB="$module,$module/dqotel" GOPROXY="$proxy,$fetched,$(go env GOPROXY)" GOMODCACHE="$2/cache"
    go mod init ten-lines
    go get "$module@$version" "$module/dqotel@$version"
    go build -o worker .
    ./worker >said &
    worker=$!
    go run ./producer || { kill "$worker"; exit 1; }
    kill "$worker"
    wait "$worker"
    grep -x 'closed order 17' said
}

"$@"
