#!/bin/sh
# The Node library as npm's tarball.
#   node.sh build FOLDER          puts it there
#   node.sh check FOLDER WORK     installs it into clean folders in WORK, once beside each client, and runs the README's
#                                 first block against the server at DQ_URL
set -eu
cd "$(dirname "$0")/../../clients/node"

build() {
    rm -f "$1"/dq-redis-*.tgz
    folder=$(../../tools/testing/node.sh)
    (cd "$folder" && npm pack --silent --pack-destination "$1") >/dev/null
}

# The version that the library is tested with.
version() { # package
    sed -n "s/^    \"$1\": \"\(.*\)\",*\$/\1/p" package.json | tail -n 1
}

check() {
    for client in ioredis redis; do
        work=$2/$client
        mkdir -p "$work"
        echo '{ "private": true }' >"$work/package.json"
        {
            cat <<'BEFORE'
const done = [];
console.log = (said, order) => {
  done.push(order);
  process.kill(process.pid, 'SIGTERM');
};
BEFORE
            sed -n '/^```javascript$/,/^```$/p' README.md | sed '1d; /^```$/,$d' |
                sed "s/'redis:\/\/localhost'/process.env.DQ_URL/; s/delay: 30 \* 60_000/delay: 0/"
            echo "if (done.join() !== '17') throw new Error(\`closed: \${done}\`);"
        } >"$work/block.mjs"
        npm install --prefix "$work" --loglevel=error --no-audit --no-fund "$1"/dq-redis-*.tgz \
            "$client@$(version $client)" >/dev/null
        (cd "$work" && node block.mjs && node -e "require('dq-redis').Queue.name; require('dq-redis/testing').TestServer.name")
    done
}

"$@"
