#!/usr/bin/env python3
"""A receiver that may be killed: it answers 2xx only for calls that are in its ledger, and 500 at random.

    sink.py port ledger seed
"""

import asyncio
import os
import random
import sys

ANSWER = "HTTP/1.1 {} x\r\ncontent-length: 0\r\n\r\n"


async def receive(reader, writer, ledger, chance):
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            fields = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if line)
            await reader.readexactly(int(fields["content-length"]))
            draw = chance.random()
            if draw < 0.05:
                break
            if draw < 0.3:
                status = 500
            else:
                os.write(ledger, f"{fields['dq-id']}\n".encode())
                status = 204
            # So the ledger may be ahead of the answers, but never behind.
            await asyncio.sleep(chance.random() * 0.01)
            writer.write(ANSWER.format(status).encode())
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def main(port, path, seed):
    ledger = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    chance = random.Random(seed)
    server = await asyncio.start_server(lambda *streams: receive(*streams, ledger, chance), "127.0.0.1", port)
    print("ready", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
