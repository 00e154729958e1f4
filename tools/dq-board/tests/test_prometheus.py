"""History from a real Prometheus, which scrapes what redis_exporter would export."""

import http.server
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import threading
import time
import unittest

from playwright.sync_api import expect
from support import HOUR, BoardTest, free_port

NAME = 'we"ird\\q'


class Exporter:
    """Ten deliveries and one failure a second, none more than 4.321 ms late; and another, much busier queue."""

    def __init__(self):
        begun = time.time()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                seconds = time.time() - begun
                lines = []
                for name, factor in [(NAME, 1), ("other", 1000)]:
                    name = name.replace("\\", "\\\\").replace('"', '\\"')
                    for metric, rate in [("delivered_total", 10), ("nacked_total", 0.5), ("timed_out_total", 0.5)]:
                        lines.append(f'dq_queue_{metric}{{queue="{name}"}} {factor * rate * seconds}')
                    lines.append(f'dq_queue_lateness_us_max{{queue="{name}"}} 4321')
                    for bound, share in [("1000", 0), ("5000", 1), ("+Inf", 1)]:
                        lines.append(f'dq_queue_lateness_us_bucket{{queue="{name}",le="{bound}"}} {share * 10 * seconds}')
                body = ("\n".join(lines) + "\n").encode()
                self.send_response(200)
                self.send_header("content-type", "text/plain")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class FromPrometheus(BoardTest):
    def prometheus(self, folder, exporter):
        config = pathlib.Path(folder, "prometheus.yml")
        config.write_text(f"global: {{scrape_interval: 1s}}\nscrape_configs: [{{job_name: dq, static_configs: [{{targets: ['127.0.0.1:{exporter.port}']}}]}}]\n")
        port = free_port()
        words = ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder}/data", f"--web.listen-address=127.0.0.1:{port}"]
        with open(os.path.join(folder, "log"), "ab") as log:
            process = subprocess.Popen(words, stdout=log, stderr=log)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process, f"http://127.0.0.1:{port}"

    @unittest.skipUnless(shutil.which("prometheus") or os.environ.get("CI"), "there is no Prometheus")
    def test_its_past_is_shown_and_the_future_without_it(self):
        server = self.server()
        server.client.execute_command("DQ.ADD", NAME, "job", "x", "DELAY", HOUR // 2)
        exporter = Exporter()
        self.addCleanup(exporter.close)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        process, url = self.prometheus(folder.name, exporter)
        config = pathlib.Path(folder.name, "board.toml")
        config.write_text(f'[board.prometheus]\nurl = "{url}/"\nlabels = \'job="dq"\'\n')
        page = self.window()
        board = self.board(server, "--config", str(config))
        page.goto(board.url + "queue?queue=0:we%22ird%5Cq")
        readout = page.locator(".readout")
        expect(readout).to_have_text(re.compile(r"[1-9][\d,]* jobs? delivered\. The next hour: 1 job due"))
        expect(page.locator(".legend li:visible")).to_have_text(["delivered", "failed", "lateness, 99 %", "due", "unknown"])
        expect(page.locator("path.past")).to_have_attribute("d", re.compile("^M.*z"))
        expect(page.locator("path.late")).to_have_attribute("d", re.compile("^M"))
        page.get_by_role("img").focus()
        page.keyboard.press("ArrowLeft")
        expect(readout).to_have_text(re.compile(r"[\d,]+ jobs? delivered, \d+ failed, 99 % at most 4\.3 ms late"))
        # Not the deliveries of the other queue, a thousand times as many.
        self.assertLess(int(re.search(r"([\d,]+) jobs? delivered", readout.inner_text())[1].replace(",", "")), 1000)
        process.kill()
        process.wait()
        expect(page.get_by_role("alert").filter(has_text="Prometheus: ")).to_be_visible()
        page.keyboard.press("Escape")
        expect(readout).to_contain_text("The next hour: 1 job due")
        self.assertEqual(page.wrong, [])
