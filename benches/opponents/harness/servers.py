"""The servers that jobs are kept by: each subject gets a fresh one, on the last core."""

import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path

import redis

import machine


class Server:
    """A process of its own session, in a folder of its own."""

    def __init__(self, command):
        self.port = machine.free_port()
        self.folder = tempfile.TemporaryDirectory(prefix="dq-opponents-")
        with machine.on_server_core():
            self.process = subprocess.Popen(
                [str(word) for word in command(self.port)],
                cwd=self.folder.name,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        try:
            machine.wait_until(lambda: machine.listens(self.port), "the server listens")
        except TimeoutError:
            self.__exit__()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        machine.end(self.process)
        self.folder.cleanup()

    def cpu_s(self):
        return machine.cpu_s(self.process.pid)


class Redis(Server):
    appendonly = ["no"]

    def __init__(self, programs):
        options = ["--save", "", "--bind", "127.0.0.1", "--loadmodule", programs.module]
        options += ["--appendonly", *self.appendonly]
        super().__init__(lambda port: [programs.server, "--port", port, *options])
        self.client = redis.Redis(port=self.port)

    def memory(self):
        return self.client.info("memory")["used_memory"]

    def connections(self):
        """But for this one."""
        return self.client.info("clients")["connected_clients"] - 1

    def net_bytes(self):
        """Both ways."""
        stats = self.client.info("stats")
        return stats["total_net_input_bytes"] + stats["total_net_output_bytes"]


class EverySecond(Redis):
    appendonly = ["yes", "--appendfsync", "everysec"]


class Always(Redis):
    appendonly = ["yes", "--appendfsync", "always"]


class Postgres(Server):
    """As it comes: what was committed is on the disk. It refuses to be root's."""

    def __init__(self, programs):
        binaries = postgres()
        account = "postgres" if os.getuid() == 0 else None
        self.data = Path(tempfile.mkdtemp(prefix="dq-postgres-"))
        if account:
            shutil.chown(self.data, account)
        group = account and pwd.getpwnam(account).pw_gid
        run = ["setpriv", f"--reuid={account}", f"--regid={group}", "--clear-groups"] if account else []
        make = [*run, binaries / "initdb", "-D", self.data, "-U", "postgres", "-A", "trust"]
        subprocess.run(make, check=True, stdout=subprocess.DEVNULL)
        options = ["-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="]
        super().__init__(lambda port: [*run, binaries / "postgres", "-D", self.data, "-p", port, *options])
        # It listens before it takes anybody.
        ask = [binaries / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        machine.wait_until(lambda: subprocess.run(ask).returncode == 0, "PostgreSQL takes clients")

    def __exit__(self, *_):
        super().__exit__()
        shutil.rmtree(self.data, ignore_errors=True)

    def cpu_s(self):
        """Each connection has a process; those that have ended are in what their parent has waited for."""
        ticks = os.sysconf("SC_CLK_TCK")
        ours = [self.process.pid, *map(int, Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split())]
        return sum(sum(map(int, stat(pid)[11:15])) for pid in ours) / ticks


def stat(pid):
    """Its fields behind the name."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def postgres():
    """Where its programs are, or None."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    path = shutil.which("initdb")
    return found[-1].parent if found else Path(path).parent if path else None


class Beanstalkd(Server):
    def __init__(self, programs):
        super().__init__(lambda port: [programs.beanstalkd, "-l", "127.0.0.1", "-p", port])

    def memory(self):
        return machine.resident_bytes(self.process.pid)

    def net_bytes(self):
        """All it reads and writes is from and to its clients: it keeps no log here."""
        with open(f"/proc/{self.process.pid}/io") as file:
            io = dict(line.split(": ") for line in file.read().splitlines())
        return int(io["rchar"]) + int(io["wchar"])
