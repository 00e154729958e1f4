"""What is said of the way in as OpenAPI: it is valid, and a client that a generator makes of it works."""

import http.client
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

from openapi_spec_validator import validate
from openapi_spec_validator.validation.exceptions import OpenAPIValidationError
from support import PATIENCE_S, SECRET, InboundTest, job

USE = """
from made.client import AuthenticatedClient
from made.api.default import add_job, add_jobs, cancel_job, get_job, signal_job
from made.models import Error, JobState, NewJob, NewJobIfExists, Signal

with AuthenticatedClient(base_url="http://{at}", token="{secret}", raise_on_unexpected_status=True) as client:
    close = NewJob(payload={{"order": 17}}, id="close:17", delay=1800000, priority=5, backoff=[1000, 5000])
    assert add_job.sync("q", client=client, body=close).id == "close:17"
    assert add_job.sync_detailed("q", client=client, body=close).status_code == 200
    replaced = NewJob(payload="x", id="close:17", if_exists=NewJobIfExists.REPLACE, delay=60000)
    assert add_job.sync_detailed("q", client=client, body=replaced).status_code == 201
    keyed = add_job.sync("q", client=client, body=NewJob(payload_base64="/w=="), idempotency_key="k")
    assert keyed.id == "k"
    many = add_jobs.sync("q", client=client, body=[NewJob(payload=n) for n in range(3)])
    assert [one.status for one in many] == [201, 201, 201]
    wrong = add_job.sync("q", client=client, body=NewJob(payload="x", delay=-1))
    assert isinstance(wrong, Error) and wrong.argument == "delay"
    shown = get_job.sync("q", "close:17", client=client, wait=0.01)
    assert shown.state == JobState.DELAYED and shown.payload == "x", shown
    assert get_job.sync("q", "k", client=client).payload_base64 == "/w=="
    assert signal_job.sync_detailed("q", "k", client=client, body=Signal(name="n", value=1)).status_code == 201
    assert cancel_job.sync_detailed("q", "close:17", client=client, unreserved=True).status_code == 204
    assert isinstance(get_job.sync("q", "close:17", client=client), Error)
"""


class OpenApi(InboundTest):
    def document(self, push):
        connection = http.client.HTTPConnection(push.at, timeout=PATIENCE_S)
        connection.request("GET", "/openapi.json")
        text = connection.getresponse().read()
        connection.close()
        return text

    def test_it_is_valid(self):
        document = json.loads(self.document(self.inbound(self.server())))
        self.assertEqual(document["openapi"], "3.1.0")
        validate(document)
        # The same options as the module's own page.
        page = (pathlib.Path(__file__).parents[3] / "docs/commands.md").read_text()
        words = re.findall(r"^\| `([A-Z]+) ", page.split("## DQ.ADD\n")[1].split("\n## ")[0], re.M)
        properties = document["components"]["schemas"]["NewJob"]["properties"]
        self.assertGreater(len(words), 15)
        self.assertEqual([word for word in words if word.lower().replace("ondead", "on_dead") not in properties], [])
        cost = properties["cost"]
        self.assertEqual((cost["minimum"], cost["maximum"]), (1, 1_000_000))
        del document["info"]["title"]
        with self.assertRaises(OpenAPIValidationError):
            validate(document)

    def test_a_client_that_is_generated(self):
        server = self.server()
        push = self.inbound(server)
        folder = self.enterContext(tempfile.TemporaryDirectory())
        file = pathlib.Path(folder) / "openapi.json"
        file.write_bytes(self.document(push))
        words = ["generate", "--path", file, "--meta", "none", "--output-path", f"{folder}/made"]
        generator = pathlib.Path(sys.executable).parent / "openapi-python-client"
        subprocess.run([generator, *words], check=True, capture_output=True)
        use = USE.format(at=push.at, secret=SECRET)
        environment = {**os.environ, "PYTHONPATH": folder}
        done = subprocess.run([sys.executable, "-c", use], env=environment, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(job(server, "k")["payload"], b"\xff")


if __name__ == "__main__":
    unittest.main()
