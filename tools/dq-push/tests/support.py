"""A server with dq, dq http beside it, and receivers that keep what they were sent.

DQ_SERVER, DQ_MODULE: as in the module's own tests. DQ_PROGRAM: dq.
"""

import hashlib
import http.client
import json
import os
import queue
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.parse
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import redis

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../testing"))
from servers import PATIENCE_S, Server, free_port, wait_until  # noqa: E402, F401


class Push:
    """Runs the program with these lines as its configuration."""

    def __init__(self, server, config, *options, metrics=True, configured=True, before=(), **environment):
        self.file = tempfile.NamedTemporaryFile("w", suffix=".toml")
        self.file.write(config)
        self.file.flush()
        self.words = [*before, os.environ["DQ_PROGRAM"], "http"]
        if configured:
            self.words += ["--config", self.file.name]
        if server:
            self.words += ["-p", str(server.port)]
        if metrics:
            self.words += ["--metrics", "127.0.0.1:0"]
        self.words += options
        self.environment = {**os.environ, **environment}
        self.start()

    def start(self):
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            self.words, stdout=subprocess.PIPE, stderr=self.errors, env=self.environment, text=True
        )
        self.said = self.process.stdout.readline()

    def metrics(self):
        url = self.said.rsplit(" ", 1)[1].strip()
        lines = urllib.request.urlopen(url, timeout=PATIENCE_S).read().decode().splitlines()
        return dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))

    def health(self):
        return self.healthz()[0]

    def healthz(self):
        url = self.said.rsplit(" ", 1)[1].strip().replace("/metrics", "/healthz")
        try:
            with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def told(self):
        """All errors so far."""
        with open(f"/proc/self/fd/{self.errors.fileno()}") as errors:
            return errors.read()

    def read_again(self, config):
        with open(self.file.name, "w") as file:
            file.write(config)
        self.process.send_signal(signal.SIGHUP)

    def terminate(self):
        self.process.send_signal(signal.SIGTERM)

    def ended(self):
        """The exit code, and the errors."""
        code = self.process.wait(PATIENCE_S)
        self.process.stdout.close()
        self.errors.seek(0)
        return code, self.errors.read()

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.errors.close()

    def close(self):
        self.kill()
        self.file.close()


class Sentinel(Server):
    """A sentinel, which watches nothing at first."""

    def __init__(self):
        super().__init__(module=False)

    def start(self):
        file = os.path.join(self.folder, "sentinel.conf")
        with open(file, "w") as config:
            config.write(f"port {self.port}\ndir {self.folder}\n")
        log = open(os.path.join(self.folder, "log"), "ab")
        self.process = subprocess.Popen([os.environ["DQ_SERVER"], file, "--sentinel"], stdout=log, stderr=log)
        log.close()
        self.client = redis.Redis(port=self.port)
        wait_until("the sentinel answers", self.answers)

    def monitor(self, server):
        self.client.execute_command("SENTINEL", "MONITOR", "orders", "127.0.0.1", server.port, 1)


class Request:
    def __init__(self, path, headers, body):
        self.path, self.headers, self.body = path, headers, body
        self.id = headers["dq-id"]


class Receiver:
    """A receiver that answers as `answer` says: a status, or (status, headers, text)."""

    def __init__(self, answer=lambda request: 200, certificate=None, client_ca=None):
        self.requests = queue.Queue()
        self.connections = 0
        self.now = self.most = 0
        lock = threading.Lock()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self):
                super().setup()
                with lock:
                    receiver.connections += 1

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                request = Request(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
                request.method = self.command
                request.connection = self.connection
                with lock:
                    receiver.now += 1
                    receiver.most = max(receiver.most, receiver.now)
                receiver.requests.put(request)
                said = answer(request)
                with lock:
                    receiver.now -= 1
                status, headers, text = said if isinstance(said, tuple) else (said, {}, b"")
                try:
                    self.send_response(status)
                    for name, value in headers.items():
                        self.send_header(name, value)
                    self.send_header("content-length", str(len(text)))
                    self.end_headers()
                    self.wfile.write(text)
                except OSError:
                    self.close_connection = True

            do_GET = do_PUT = do_PATCH = do_POST

            def log_message(self, *_):
                pass

        class Threads(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, *_):
                pass

        self.server = Threads(("127.0.0.1", 0), Handler)
        self.port = self.server.server_port
        scheme = "http"
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            certificate.configure_cert(context)
            if client_ca:
                client_ca.configure_trust(context)
                context.verify_mode = ssl.CERT_REQUIRED
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
            scheme = "https"
        self.url = f"{scheme}://localhost:{self.port}/hook"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def next(self):
        try:
            return self.requests.get(timeout=PATIENCE_S)
        except queue.Empty:
            raise AssertionError(f"waited in vain: a call of {self.url}") from None

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def is_cut(connection):
    """Whether the other side has closed the connection."""
    connection.settimeout(0)
    try:
        return connection.recv(1, socket.MSG_PEEK) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def config(url, *lines, name="q", top='http.allow = ["localhost"]'):
    return "\n".join([top, "[[http.queue]]", f'name = "{name}"', f'url = "{url}"', *lines, ""])


class PushTest(unittest.TestCase):
    def server(self, *options, **about):
        server = Server(*options, **about)
        self.addCleanup(server.close)
        return server

    def receiver(self, *arguments, **about):
        receiver = Receiver(*arguments, **about)
        self.addCleanup(receiver.close)
        return receiver

    def push(self, *arguments, **about):
        push = Push(*arguments, **about)
        self.addCleanup(push.close)
        return push


# A token, not yet hashed.
SECRET = "dq_of-a-test"


def token(*lines, secret=SECRET, name="shop", queues='"q"', verbs='"add", "get", "cancel", "signal"'):
    hashed = hashlib.sha256(secret.encode()).hexdigest()
    head = ["[[http.token]]", f'name = "{name}"', f'hash = "sha256:{hashed}"', f"queues = [{queues}]", f"verbs = [{verbs}]"]
    return "\n".join([*head, *lines, ""])


class Answer:
    def __init__(self, answer):
        self.status, self.headers = answer.status, answer.headers
        self.body = answer.read()

    def json(self):
        return json.loads(self.body)


class InboundTest(PushTest):
    def inbound(self, server, config=None, *options, **about):
        """The program, with a way in alone."""
        push = self.push(server, config or token(), "--listen", "127.0.0.1:0", *options, **about)
        push.at = urllib.parse.urlsplit(next(word for word in push.said.split() if "/queues/" in word)).netloc
        return push

    def ask(self, push, method, path, body=None, secret=SECRET, **headers):
        connection = http.client.HTTPConnection(push.at, timeout=PATIENCE_S)
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        if secret:
            headers["authorization"] = f"Bearer {secret}"
        if isinstance(body, (dict, list)):
            body, headers["content-type"] = json.dumps(body), "application/json"
        connection.request(method, path, body, headers)
        try:
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def post(self, push, body, path="/queues/q/jobs", **about):
        return self.ask(push, "POST", path, body, **about)

    def begun(self, push, body=b"", **headers):
        """The status that a request has whose body goes on."""
        with socket.create_connection(push.at.split(":"), PATIENCE_S) as sock:
            lines = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
            head = ["POST /queues/q/jobs HTTP/1.1", f"host: {push.at}", f"authorization: Bearer {SECRET}", *lines, "", ""]
            sock.sendall("\r\n".join(head).encode() + body)
            answer = http.client.HTTPResponse(sock)
            answer.begin()
            return answer.status

    def refused(self, answer, status, argument=None):
        said = answer.json()
        self.assertEqual((answer.status, said.get("argument")), (status, argument), said)
        self.assertTrue(said["error"])
        return said["error"]


def job(server, id, name="q"):
    """The fields of DQ.GET, by name."""
    fields = server.client.execute_command("DQ.GET", name, id)
    if isinstance(fields, list):
        fields = dict(zip(fields[::2], fields[1::2]))
    return fields and {key.decode(): value for key, value in fields.items()}


def add(server, id, *options, payload=None, name="q"):
    payload = json.dumps({"id": id}) if payload is None else payload
    return server.client.execute_command("DQ.ADD", name, id, payload, *options)


def length(server, *state, name="q"):
    return server.client.execute_command("DQ.LEN", name, *state)
