#!/bin/sh
# The transport for Celery as wheel and sdist.
#   celery.sh build FOLDER          puts them there
#   celery.sh check FOLDER WORK     installs the wheel and Celery into a clean environment in WORK, and has a worker run one
#                                   task from the queue `orders` of the server at DQ_URL: only the broker's URL says dq
set -eu
cd "$(dirname "$0")/../../clients/celery"

build() { # the wheel is made of the sdist
    rm -f "$1"/dq_celery-*
    "$(../../tools/install/uv.sh)" build -q -o "$1" .
}

check() {
    printf '%s\n' "$1"/dq_celery-*.whl celery >"$2/wanted"
    ../../tools/install/venv.sh "$2/venv" "$2/wanted"
    metadata=$(echo "$2"/venv/lib/python*/site-packages/dq_celery-*.dist-info)
    cmp ../../LICENSE "$metadata/licenses/LICENSE"
    grep -q '^Project-URL: Source, ' "$metadata/METADATA"
    tar -xzOf "$1"/dq_celery-*.tar.gz --wildcards 'dq_celery-*/LICENSE' | cmp - ../../LICENSE
    cat >"$2/shop.py" <<'TASKS'
import os
import signal

from celery import Celery

url = os.environ["DQ_URL"].replace("unix://", "dq+socket://").replace("redis://", "dq://")
app = Celery("shop", broker=url)
app.conf.task_default_queue = "orders"


@app.task
def close_order(order):
    os.kill(os.getpid(), signal.SIGTERM)
TASKS
    cd "$2"
    venv/bin/python -c 'import shop; shop.close_order.apply_async((17,), countdown=0.2)'
    venv/bin/python -m celery -A shop worker -P solo -l WARNING
}

"$@"
