"""The stream of a tab: all queues, then what has changed, compressed."""

import json
import time
import urllib.request
import zlib

from support import PATIENCE_S, BoardTest, wait_until


class Stream:
    """Reads a stream as a browser does, message by message."""

    def __init__(self, url, **headers):
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        self.answer = urllib.request.urlopen(urllib.request.Request(url + "api/live", headers=headers), timeout=PATIENCE_S)
        self.gzip = zlib.decompressobj(31) if self.answer.headers["content-encoding"] == "gzip" else None
        self.read, self.text = 0, b""

    def more(self):
        try:
            data = self.answer.read1(65536)
        except TimeoutError:
            raise AssertionError(f"waited in vain: more of the stream than {self.text!r}") from None
        self.read += len(data)
        self.text += self.gzip.decompress(data) if self.gzip else data
        return data

    def message(self):
        while b"\n\n" not in self.text:
            if not self.more():
                return None
        event, self.text = self.text.split(b"\n\n", 1)
        return json.loads(event.removeprefix(b"data: "))

    def until(self, wanted):
        message, end = None, time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            message = self.message()
            if wanted(message):
                return message
        raise AssertionError(f"waited in vain for another message than {message}")


class Streams(BoardTest):
    def full(self, board, queues):
        def known():
            rows = Stream(board.url).until(lambda it: it["kind"] == "all")["rows"]
            return sum("jobs" in row for row in rows) == queues

        wait_until("all queues are known, with their figures", known)

    def test_ten_thousand_queues_are_an_eighth_of_their_size(self):
        server = self.server()
        pipe = server.client.pipeline(transaction=False)
        for queue in range(10_000):
            pipe.execute_command("DQ.ADD", f"queue-{queue}", "job", "x", "DELAY", 1_000_000 + queue)
        pipe.execute()
        board = self.board(server)
        self.full(board, 10_000)
        streams = [Stream(board.url, accept_encoding="gzip"), Stream(board.url), Stream(board.url, accept_encoding="br, gzip;q=0")]
        each = [stream.until(lambda it: it["kind"] == "all") for stream in streams]
        packed, plain, unwanted = streams
        for whole in each:
            self.assertEqual({row["name"] for row in whole["rows"]}, {f"queue-{queue}" for queue in range(10_000)})
        self.assertIsNone(plain.gzip)
        self.assertIsNone(unwanted.gzip)
        self.assertGreater(plain.read, 500_000)
        self.assertLess(packed.read, plain.read / 8)

    def test_only_what_has_changed_is_sent_and_a_stream_ends_whole(self):
        server = self.server()
        for queue in range(50):
            server.client.execute_command("DQ.ADD", f"queue-{queue}", "job", "x", "DELAY", 1_000_000)
        board = self.board(server)
        self.full(board, 50)
        stream, late = Stream(board.url, accept_encoding="gzip"), Stream(board.url, accept_encoding="gzip")
        stream.until(lambda it: it["kind"] == "all")
        server.client.execute_command("DQ.ADD", "queue-7", "other", "x", "DELAY", 1_000_000)
        changes = []
        while not any(row["jobs"][0] == 2 for change in changes for row in change["rows"]):
            changes.append(stream.message())
        self.assertEqual({row["name"] for change in changes for row in change["rows"]}, {"queue-7"})
        server.client.delete("queue-8")
        self.assertEqual(stream.until(lambda it: it["gone"])["gone"], ["0:queue-8"])
        # A tab that reads later got the same, and both streams end as gzip requires.
        late.until(lambda it: it["kind"] == "some" and it["gone"])
        board.process.terminate()
        for each in [stream, late]:
            while each.more():
                pass
            self.assertTrue(each.gzip.eof)
            self.assertEqual(each.gzip.unused_data, b"")
