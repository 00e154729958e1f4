"""How far it reaches: reckoned from what was measured."""

from statistics import median

from tables import all_rows, markdown

# The part of a core that is planned with: the rest is for bursts, snapshots and whatever else.
BUSY = 0.6
# The part of a node's memory that is planned with: the rest is for copies while a snapshot is written, buffers, clients.
FILLED = 0.6
NODE_GB = 16
MASTERS = [1, 3, 10, 100]


class Measured:
    """The inputs, each from a row of the tables above; us, or bytes."""

    def __init__(self, core):
        find = finder(core)
        self.add = find("DQ.ADD (far) at 1e6 jobs")
        self.pop, self.ack = find("DQ.POP"), find("DQ.ACK")
        self.batch = find("POP COUNT")
        self.lone = find("DQ.ADD (far), pipeline 1") - find("DQ.ADD (far), pipeline 64")
        self.wake = find("one wake-up", "other")
        self.bytes = find("memory per job, 1e6 jobs")
        self.queue = find("memory per queue")
        steps = ["DQ.ADD", "DQ.POP", "DQ.ACK"]
        self.aof = sum(extra(find, f"{step} with AOF") for step in steps)
        self.replica = sum(extra(find, f"{step} with a replica") for step in steps)
        self.aof_bytes = sum(find(f"{step}, written to AOF") for step in steps)
        self.replica_bytes = sum(find(f"{step}, written to a replica") for step in steps)


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
    return {
        "scale-inputs": inputs(it),
        "scale-core": core_table(it, ways),
        "scale-cluster": cluster_table(it, ways[1][1] + it.aof + it.replica),
    }


def inputs(it):
    figures = [
        ("`add`: `DQ.ADD` among a million jobs", it.add, "us"),
        ("`pop`, `ack`", f"{it.pop:.2f}, {it.ack:.2f}", "us"),
        ("`batch`: `POP COUNT 50` and `ACK` of 50, per job", it.batch, "us"),
        ("`lone`: what a command costs more that comes alone (pipeline 1 - pipeline 64)", it.lone, "us"),
        ("`wake`: timer, delivery and reply to a waiting client", it.wake, "us"),
        ("`aof`: what appendfsync everysec adds to add + pop + ack", it.aof, "us"),
        ("`replica`: what a replica adds to them", it.replica, "us"),
        ("AOF, per job's life", it.aof_bytes, "bytes"),
        ("replication stream, per job's life", it.replica_bytes, "bytes"),
        ("`job`: memory per job (16 + 64 bytes)", it.bytes, "bytes"),
        ("`queue`: memory per queue, its first job included", it.queue, "bytes"),
    ]
    cells = [[what, it if isinstance(it, str) else f"{it:.2f}" if it < 10 else f"{it:.0f}", unit]
             for what, it, unit in figures]
    return markdown([["input", "measured", ""], *cells])


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


def cluster_table(it, us):
    memory = FILLED * NODE_GB * 1e9
    table = [["masters", "jobs/s, all queues together", "jobs/s, one queue", "jobs held", "or queues of one job",
              "AOF, MB/s per node", "replication, MB/s per node"]]
    for masters in MASTERS:
        rate = BUSY * 1e6 / us
        table.append([
            str(masters), thousands(masters * rate), thousands(rate),
            thousands(masters * memory / it.bytes), thousands(masters * memory / it.queue),
            f"{rate * it.aof_bytes / 1e6:.0f}", f"{rate * it.replica_bytes / 1e6:.0f}",
        ])
    return markdown(table)
