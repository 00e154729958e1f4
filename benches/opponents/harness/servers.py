"""The servers that jobs are kept by: each subject gets a fresh one, on the last core."""

import subprocess
import tempfile

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
    def __init__(self, programs):
        options = ["--save", "", "--appendonly", "no", "--bind", "127.0.0.1", "--loadmodule", programs.module]
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
