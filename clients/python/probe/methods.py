"""Calls of the queue's methods, from JSON and to it."""

import base64
from datetime import datetime, timedelta, timezone

from acting import MS

from dq.times import instant_to_ms, to_ms

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
DURATIONS = {"delay", "ttr", "ttl", "keep", "dedupe", "duration", "interval", "grace", "jitter", "timeout", "every"}
INSTANTS = {"at", "since", "until", "first"}


def from_json(name, value):
    if name in DURATIONS:
        return value * MS
    if name in INSTANTS:
        return EPOCH + value * MS
    if name == "jobs":
        is_data = not all(isinstance(each, dict) and "data" in each for each in value)
        return [{"data": each} if is_data else job_from_json(each) for each in value]
    if name == "then":
        return job_from_json(value)
    if name == "backoff":
        return [ms * MS for ms in value]
    if name in ("rate", "grouprate"):
        return (value[0], value[1] * MS)
    if name == "payload":
        return base64.b64decode(value["base64"]) if isinstance(value, dict) else value.encode()
    return value


def job_from_json(job):
    return {name: from_json(name, value) for name, value in job.items() if value is not None}


def to_json(value):
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime):
        return instant_to_ms(value)
    if isinstance(value, timedelta):
        return to_ms(value)
    if isinstance(value, dict):
        return {to_name(name): to_json(each) for name, each in value.items() if name != "fields"}
    if isinstance(value, (list, tuple)):
        return [to_json(each) for each in value]
    if hasattr(value, "__dataclass_fields__"):
        names = (name for name in value.__dataclass_fields__ if not name.startswith("_"))
        return to_json({name: getattr(value, name) for name in names})
    return value


def to_name(name):
    return name.decode() if isinstance(name, bytes) else name


def method_call(queue, order):
    args = {name: from_json(name, value) for name, value in (order.get("args") or {}).items() if value is not None}
    method = order["method"]
    if method in ("result", "wait", "add_and_wait", "cancel", "signal", "chain", "add_many", "join"):
        first = [args.pop(name) for name in ("jobs", "data") if name in args]
        return getattr(queue, method)(*first, **args)
    if method.startswith("group_"):
        return getattr(queue.group(args.pop("group")), method[6:])(**args)
    if method == "rules":
        rules = {name: job_from_json(rule) for name, rule in args.pop("rules").items()}
        return queue.rules(base64.b64decode(args.pop("program")["base64"]), rules, **args)
    if "payload" in args:
        args["data"] = args.pop("payload")
    if args.pop("backoff_default", False):
        args["backoff"] = "default"
    if method == "add" and "repeat" in args:
        count, id = args.pop("repeat"), args.pop("id")
        return queue.add_many([{**args, "id": f"{id}:{n}"} for n in range(count)])
    positional = []
    for name in ("expression", "interval", "data", "timeout", "tokens", "id", "ids", "cursor", "duration", "buckets"):
        named = (name == "id" and method in ("add", "every", "cron", "pop")) or name in (
            "cursor",
            "buckets",
            "duration",
        )
        if name in args and not named:
            value = args.pop(name)
            positional += value if name == "ids" else [value]
    if "token" in args:
        positional.append(args.pop("token"))
    if method in ("peek", "purge", "len") and "state" in args:
        positional.append(args.pop("state"))
    return getattr(queue, method)(*positional, **args)
