"""How far it reaches: reckoned from what was measured."""

from statistics import median

from tables import all_rows, markdown

# The part of a core that is planned with: the rest is for bursts, snapshots and whatever else.
BUSY = 0.6


class Measured:
    """The inputs, each from a row of the tables above; us, or bytes."""

    def __init__(self, core):
        find = finder(core)
        self.add = find("DQ.ADD (far) at 1e6 jobs")
        self.pop, self.ack = find("DQ.POP"), find("DQ.ACK")
        self.batch = find("POP COUNT")
        self.lone = find("DQ.ADD (far), pipeline 1") - find("DQ.ADD (far), pipeline 64")
        self.wake = find("one wake-up", "other")
        steps = ["DQ.ADD", "DQ.POP", "DQ.ACK"]
        self.aof = sum(extra(find, f"{step} with AOF") for step in steps)
        self.replica = sum(extra(find, f"{step} with a replica") for step in steps)


def finder(core):
    def find(start, side="ours"):
        begun = [row for row in all_rows(core) if row["what"].startswith(start)]
        found = [row for row in begun if row["what"] == start] or begun
        if not found:
            raise SystemExit(f"no row begins with {start!r}")
        return median(found[0][side])

    return find


def extra(find, start):
    return max(0, find(start) - find(start, "other"))


def sections(core):
    it = Measured(core)
    ways = [
        ("in bulk: pipelined adds, `POP COUNT 50`, one `ACK` of 50", it.add + it.batch),
        ("pipelined: `ADD`, `POP`, `ACK` of one job each", it.add + it.pop + it.ack),
        ("one at a time: every command alone on its way, a waiting worker woken for each job",
         it.add + it.lone + it.wake + it.ack + it.lone),
    ]
    return {"scale-core": core_table(it, ways)}


def per_s(us):
    return thousands(BUSY * 1e6 / us)


def thousands(number):
    """Two digits that count: it is a plan."""
    digits = len(f"{number:.0f}")
    return f"{round(number, 2 - digits):,.0f}"


def core_table(it, ways):
    table = [["a job's life: added, delivered, acknowledged", "us", "jobs/s", "with AOF", "with AOF and a replica"]]
    for way, us in ways:
        table.append([way, f"{us:.1f}", per_s(us), per_s(us + it.aof), per_s(us + it.aof + it.replica)])
    return markdown(table)
