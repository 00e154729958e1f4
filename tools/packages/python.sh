#!/bin/sh
# The Python library as wheel and sdist.
#   python.sh build FOLDER          puts them there
#   python.sh check FOLDER WORK     installs the wheel into a clean environment in WORK, and runs the README's first block
#                                   against the server at DQ_URL
set -eu
cd "$(dirname "$0")/../../clients/python"

build() { # the wheel is made of the sdist
    rm -f "$1"/dq_redis-*
    "$(../../tools/install/uv.sh)" build -q -o "$1" .
}

check() {
    printf '%s\n' "$1"/dq_redis-*.whl >"$2/wanted"
    ../../tools/install/venv.sh "$2/venv" "$2/wanted"
    cmp ../../LICENSE "$2"/venv/lib/python*/site-packages/dq_redis-*.dist-info/licenses/LICENSE
    tar -xzOf "$1"/dq_redis-*.tar.gz --wildcards 'dq_redis-*/LICENSE' | cmp - ../../LICENSE
    {
        cat <<'BEFORE'
import os, signal

done = []

def print(said, order):
    done.append(order)
    os.kill(os.getpid(), signal.SIGTERM)

BEFORE
        sed -n '/^```python$/,/^```$/p' README.md | sed '1d; /^```$/,$d' |
            sed 's/"redis:\/\/localhost"/os.environ["DQ_URL"]/; s/timedelta(minutes=30)/0/'
        echo 'assert done == [17], done'
    } >"$2/block.py"
    cd "$2" && venv/bin/python block.py
}

"$@"
