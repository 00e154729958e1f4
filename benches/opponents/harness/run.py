"""make bench-opponents: dq and what people use instead, through the clients that they use.

    run.py --out FOLDER --module FILE --server PROGRAM [--quick] [--libraries | --tenants | --flows | --steps] [--only WORD...]

A word of --only is a subject or (part of) a system's name. Everything that is compared runs in turn, round by round.
Prints tables; the same as JSON beside those of `make bench`.
"""

import argparse
import json
import signal
import sys
import time
from pathlib import Path

import machine
import report
import speed
from subjects import OF_LIBRARIES, SUBJECTS, Plan, batch, durable, tenants
from systems import SYSTEMS, Programs


# Each is measured by a run of its own.
OWN = {"tenants": tenants, "batch": batch, "durable": durable}
FILES = {"tenants": "tenants", "batch": "flows", "durable": "steps"}


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--module", type=Path, required=True)
    parser.add_argument("--server", required=True)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--libraries", action="store_true", help="what the table of the worker libraries needs")
    parser.add_argument("--tenants", action="store_true", help="one tenant with many jobs beside many with one")
    parser.add_argument("--flows", action="store_true", help="a batch of jobs, and one that runs after all of them")
    parser.add_argument("--steps", action="store_true", help="steps of jobs and signals, beside PostgreSQL")
    parser.add_argument("--only", nargs="*", default=[])
    options = parser.parse_args()
    known = [*(system.name for system in SYSTEMS), *SUBJECTS, *OF_LIBRARIES]
    for word in options.only:
        if not any(means(word, name) for name in known):
            parser.error(f"{word}? There are {', '.join(known)}")
    return options


def means(word, name):
    return word.lower() in name.lower()


def wanted(names, words):
    """All of them where no word means one of them."""
    return [name for name in names if any(means(word, name) for word in words)] or list(names)


def sample(programs, system, subject, plan, results):
    measures = {**SUBJECTS, **OF_LIBRARIES, **OWN}
    try:
        results.add(subject, system.name, measures[subject](programs, system, plan))
    except Exception as error:  # one that fails leaves the others alone
        results.fail(subject, system.name, f"{type(error).__name__}: {error}")


def of_libraries(systems, subject):
    return [system for system in systems if system.name in speed.names(subject)]


def measure(programs, parts, plan, results, keep):
    for subject, taking_part in parts.items():
        start = time.monotonic()
        for turn in range(plan.rounds[subject]):
            for at in range(len(taking_part)):
                system = taking_part[(turn + at) % len(taking_part)]
                sample(programs, system, subject, plan, results)
        print(f"{subject}: {time.monotonic() - start:.1f} s", file=sys.stderr)
        keep("opponents-part.json", results)


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))  # not before all that it started has ended
    options = arguments()
    programs = Programs(options.out, options.module, options.server)
    about = {"machine": machine.description(), "server": machine.output(options.server, "--version")}
    about["mode"] = "quick" if options.quick else "full"
    there = [system for system in SYSTEMS if system.is_there(programs)]
    plan = Plan(options.quick, options.libraries)
    about["warm_up"], about["paced_before"] = plan.warm_up, plan.paced_before
    about["paced_before_java"] = plan.paced_before_java
    results = report.Results(about, programs, there, [it for it in SYSTEMS if it not in there])
    machine.pin_to_client_core()
    names = wanted([system.name for system in SYSTEMS], options.only)
    systems = [system for system in there if system.name in names]
    subjects = wanted([*SUBJECTS, *OF_LIBRARIES] if options.libraries else SUBJECTS, options.only)

    own = next((name for name in OWN if vars(options)[FILES[name]]), None)
    if own:
        parts = {own: [system for system in systems if own in system.subjects]}
    elif options.libraries:
        parts = {subject: of_libraries(systems, subject) for subject in subjects if speed.names(subject)}
    else:
        parts = {subject: [it for it in systems if subject in it.subjects] for subject in subjects}

    def keep(name, results):
        options.json.mkdir(parents=True, exist_ok=True)
        (options.json / name).write_text(json.dumps(results.json(), indent=1) + "\n")
        return options.json / name

    measure(programs, parts, plan, results, keep)
    print(results.text())
    known = options.json / "libraries.json"
    # What is quick takes no other's place.
    if options.libraries and not results.failures and (not options.only or (known.exists() and not options.quick)):
        if options.only:
            results.add_to(json.loads(known.read_text()))
        print("\n".join(["", *report.aligned(speed.table(results.subjects))]))
        keep("libraries.json", results)
    if own and not options.only and not results.failures:
        keep(f"{FILES[own]}.json", results)
    whole = "opponents-quick.json" if options.quick else "opponents.json"
    is_whole = systems == there and subjects == list(SUBJECTS) and not options.libraries and not own
    path = keep(whole if is_whole else "opponents-part.json", results)
    print(f"The same, with all rounds: {path}")
    return 1 if results.failures else 0


if __name__ == "__main__":
    sys.exit(main())
