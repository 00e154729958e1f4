#!/bin/sh
# The broker for taskiq as wheel and sdist, and the Python library, which it needs.
#   taskiq.sh build FOLDER          puts them there
#   taskiq.sh check FOLDER WORK     installs the wheels and taskiq into a clean environment in WORK, and has taskiq's own worker
#                                   run one task from the queue `orders` of the server at DQ_URL
set -eu
cd "$(dirname "$0")/../../clients/taskiq"

build() { # the wheel is made of the sdist
    rm -f "$1"/dq_taskiq-*
    "$(../../tools/install/uv.sh)" build -q -o "$1" .
    ../../tools/packages/python.sh build "$1"
}

check() {
    printf '%s\n' "$1"/dq_redis-*.whl "$1"/dq_taskiq-*.whl >"$2/wanted"
    ../../tools/install/venv.sh "$2/venv" "$2/wanted"
    metadata=$(echo "$2"/venv/lib/python*/site-packages/dq_taskiq-*.dist-info)
    cmp ../../LICENSE "$metadata/licenses/LICENSE"
    grep -q '^Project-URL: Source, ' "$metadata/METADATA"
    tar -xzOf "$1"/dq_taskiq-*.tar.gz --wildcards 'dq_taskiq-*/LICENSE' | cmp - ../../LICENSE
    cat >"$2/shop.py" <<'TASKS'
import os
import signal

from dq_taskiq import DqBroker

broker = DqBroker(os.environ["DQ_URL"], queue_name="orders")


@broker.task(task_name="close")
async def close(order: int) -> None:
    os.kill(os.getppid(), signal.SIGTERM)


async def send() -> None:
    await close.kicker().with_labels(delay=0.2).kiq(17)
    await broker.shutdown()
TASKS
    cd "$2"
    venv/bin/python -c 'import asyncio, shop; asyncio.run(shop.send())'
    venv/bin/python -m taskiq worker shop:broker --workers 1
}

"$@"
