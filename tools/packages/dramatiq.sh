#!/bin/sh
# The broker for Dramatiq as wheel and sdist, and the Python library, which it needs.
#   dramatiq.sh build FOLDER          puts them there
#   dramatiq.sh check FOLDER WORK     installs the wheels and Dramatiq into a clean environment in WORK, and has Dramatiq's own
#                                     worker run one message from the queue `orders` of the server at DQ_URL
set -eu
cd "$(dirname "$0")/../../clients/dramatiq"

build() { # the wheel is made of the sdist
    rm -f "$1"/dq_dramatiq-*
    "$(../../tools/install/uv.sh)" build -q -o "$1" .
    ../../tools/packages/python.sh build "$1"
}

check() {
    printf '%s\n' "$1"/dq_redis-*.whl "$1"/dq_dramatiq-*.whl >"$2/wanted"
    ../../tools/install/venv.sh "$2/venv" "$2/wanted"
    metadata=$(echo "$2"/venv/lib/python*/site-packages/dq_dramatiq-*.dist-info)
    cmp ../../LICENSE "$metadata/licenses/LICENSE"
    grep -q '^Project-URL: Source, ' "$metadata/METADATA"
    tar -xzOf "$1"/dq_dramatiq-*.tar.gz --wildcards 'dq_dramatiq-*/LICENSE' | cmp - ../../LICENSE
    cat >"$2/shop.py" <<'ACTORS'
import os
import signal

import dramatiq
from dq_dramatiq import DqBroker

dramatiq.set_broker(DqBroker(url=os.environ["DQ_URL"]))


@dramatiq.actor(queue_name="orders")
def close_order(order):
    os.kill(os.getppid(), signal.SIGTERM)
ACTORS
    cd "$2"
    venv/bin/python -c 'import shop; shop.close_order.send_with_options(args=(17,), delay=200)'
    venv/bin/python -m dramatiq shop --processes 1 --threads 1
}

"$@"
