"""A relay between a program and the server that it calls, in a thread of its own."""

import asyncio
import concurrent.futures
import contextlib
import socket
import threading

from servers import PATIENCE_S


class Relay:
    """`join` is called with each connection. options: those of asyncio.start_server."""

    def __init__(self, **options):
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        started = asyncio.start_server(self.serve, "localhost", 0, family=socket.AF_INET, **options)
        self.server = self.wait_for(started)
        self.port = self.server.sockets[0].getsockname()[1]

    async def serve(self, reader, writer):
        # asyncio would report a task of a connection that `end` cancels.
        with contextlib.suppress(asyncio.CancelledError):
            await self.join(reader, writer)

    def wait_for(self, coroutine):
        try:
            return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(PATIENCE_S)
        except concurrent.futures.TimeoutError:
            raise AssertionError(f"waited in vain: the relay's {coroutine.__qualname__}") from None

    async def carry_on(self, one, other):
        """Copies both ways between two connections, each a reader and a writer, until both have
        ended."""
        await asyncio.gather(self.carry(one[0], other[1]), self.carry(other[0], one[1]))

    @staticmethod
    async def carry(reader, writer):
        try:
            while data := await reader.read(65_536):
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        writer.close()

    async def end(self):
        self.server.close()
        carrying = asyncio.all_tasks() - {asyncio.current_task()}
        for task in carrying:
            task.cancel()
        await asyncio.gather(*carrying, return_exceptions=True)

    def close(self):
        self.wait_for(self.end())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()
