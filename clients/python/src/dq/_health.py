"""Health checks for supervisors: an HTTP endpoint, or a file that is touched while all is well."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Callable, Optional

EACH_S = 1.0


class Health:
    """place: "127.0.0.1:8081", or the path of a file."""

    def __init__(self, place: str, is_healthy: Callable[[], bool]) -> None:
        host, _, port = place.rpartition(":")
        self._is_healthy = is_healthy
        self._address = (host.strip("[]"), int(port)) if port.isdigit() and "/" not in place else None
        self._path = Path(place)
        self._server: Optional[ThreadingHTTPServer] = None
        self._ended = threading.Event()

    @property
    def port(self) -> int:
        return self._server.server_port if self._server else 0

    def start(self) -> None:
        if self._address is not None:
            self._server = ThreadingHTTPServer(self._address, self._answers())
            self._server.daemon_threads = True
        run = self._server.serve_forever if self._server else self._touch
        threading.Thread(target=run, name="dq-health", daemon=True).start()

    def end(self) -> None:
        self._ended.set()
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()

    def _touch(self) -> None:
        while not self._ended.wait(EACH_S):
            if self._is_healthy():
                self._path.touch()

    def _answers(self) -> type[BaseHTTPRequestHandler]:
        is_healthy = self._is_healthy

        class Answers(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                code, line = (200, b"ok\n") if is_healthy() else (503, b"the server does not answer\n")
                self.send_response(code)
                self.send_header("Content-Type", "text/plain")
                self.send_header("Content-Length", str(len(line)))
                self.end_headers()
                self.wfile.write(line)

            def log_message(self, format: str, *args: object) -> None:
                """Logs nothing: there may be a request each second."""

        return Answers
