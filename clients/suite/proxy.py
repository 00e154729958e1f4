"""A proxy that reads the protocol: it records what a worker sends, simulates a bad network, and breaks workers."""

import asyncio
import contextlib
import threading
from dataclasses import dataclass, field
from typing import Callable, Optional

Command = list[bytes]


class Cut:
    """Closes the connection instead of passing the command on."""


class CutBeforeReply:
    """The server carries out the command, but the client gets no answer."""


@dataclass
class CutAfterTwo:
    """The server gets the command twice, as from a connection that repeats an unanswered one; the client gets no
    answer."""

    command: Command


@dataclass
class Reply:
    """The client gets this answer, and the server no command."""

    raw: bytes


@dataclass
class Held:
    """The command reaches the server once this is set."""

    until: threading.Event


@dataclass
class Instead:
    """Passes on another or a changed command."""

    command: Command


Rule = Callable[[Command], object]


@dataclass
class Write:
    """What one read from a client contained: normally one write of that client."""

    connection: int
    commands: list[Command] = field(default_factory=list)


class Proxy:
    """Forwards to ``target`` (a port), in a thread of its own."""

    def __init__(self, target):
        self.target = target
        self.rules: list[Rule] = []
        self.replies: list[Callable[[Command, bytes], Optional[bytes]]] = []
        self.delay_s = 0.0
        self.writes: list[Write] = []
        self.connections = 0
        self._hung = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._writers = set()
        self._server = self._call(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port = self._server.sockets[0].getsockname()[1]

    def _call(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(10)

    def close(self):
        self.heal()
        self._call(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end(self):
        self._server.close()
        for writer in self._writers:
            writer.transport.abort()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def commands(self, name=None):
        """All commands that were sent, in order, or those of a name."""
        every = [command for write in list(self.writes) for command in write.commands]
        return [command for command in every if name is None or command[0].upper() == name]

    def hang(self):
        """Blocks the present connections: nothing passes any more, and none is closed."""
        self._hung = self.connections

    def heal(self):
        self._hung = 0

    def cut(self):
        """Closes all connections."""

        def end():
            for writer in list(self._writers):
                writer.transport.abort()

        self._loop.call_soon_threadsafe(end)

    async def _serve(self, reader, writer):
        self.connections += 1
        number = self.connections
        try:
            upstream_reader, upstream = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, upstream}
        commands = asyncio.Queue()
        answering = asyncio.create_task(self._answer(number, commands, upstream_reader, upstream, writer))
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await self._listen(number, reader, commands)
        await self._while_it_hangs(number)
        for each in (writer, upstream):
            each.transport.abort()
            self._writers.discard(each)
        answering.cancel()

    async def _listen(self, number, reader, commands):
        buffer = b""
        while True:
            chunk = await reader.read(1 << 20)
            if not chunk:
                return
            buffer += chunk
            write = Write(number)
            while True:
                command, rest = parse_command(buffer)
                if command is None:
                    break
                write.commands.append(command)
                commands.put_nowait((command, buffer[: len(buffer) - len(rest)]))
                buffer = rest
            if write.commands:
                self.writes.append(write)

    async def _while_it_hangs(self, number):
        while number <= self._hung:
            await asyncio.sleep(0.01)

    async def _answer(self, number, commands, reader, upstream, writer):
        try:
            while True:
                command, raw = await commands.get()
                await self._while_it_hangs(number)
                if not await self._one(number, command, raw, reader, upstream, writer):
                    break
        except (OSError, asyncio.IncompleteReadError):
            pass
        await self._while_it_hangs(number)
        writer.transport.abort()
        upstream.transport.abort()

    async def _one(self, number, command, raw, reader, upstream, writer):
        verdict = next((said for said in (rule(command) for rule in self.rules) if said is not None), None)
        while isinstance(verdict, Held) and not verdict.until.is_set():
            await asyncio.sleep(0.005)
        if isinstance(verdict, Cut):
            return False
        if isinstance(verdict, CutAfterTwo):
            upstream.write(2 * pack(verdict.command))
            for _ in range(2):
                await read_reply(reader)
            return False
        if isinstance(verdict, Reply):
            reply = verdict.raw
        else:
            if self.delay_s:
                await asyncio.sleep(self.delay_s)
            upstream.write(pack(verdict.command) if isinstance(verdict, Instead) else raw)
            reply = await read_reply(reader)
            if self.delay_s:
                await asyncio.sleep(self.delay_s)
            if isinstance(verdict, CutBeforeReply):
                return False
        await self._while_it_hangs(number)
        for change in self.replies:
            reply = change(command, reply) or reply
        writer.write(reply)
        await writer.drain()
        return True


# --- The protocol


def pack(command):
    parts = [b"*%d\r\n" % len(command)]
    parts += [b"$%d\r\n%s\r\n" % (len(word), word) for word in command]
    return b"".join(parts)


def parse_command(buffer):
    """The first command of a buffer and the rest; (None, buffer) if it is incomplete."""
    end = buffer.find(b"\r\n")
    if end < 0:
        return None, buffer
    count, at, words = int(buffer[1:end]), end + 2, []
    for _ in range(count):
        end = buffer.find(b"\r\n", at)
        if end < 0:
            return None, buffer
        length = int(buffer[at + 1 : end])
        at = end + 2 + length + 2
        if at > len(buffer):
            return None, buffer
        words.append(buffer[end + 2 : end + 2 + length])
    return words, buffer[at:]


async def read_reply(reader):
    """Reads the bytes of one reply, in RESP2 or RESP3."""
    parts = []
    left = 1
    while left:
        left -= 1
        line = await reader.readuntil(b"\r\n")
        parts.append(line)
        kind, rest = line[:1], line[1:-2]
        if kind in b"$=!" and rest != b"-1":
            parts.append(await reader.readexactly(int(rest) + 2))
        elif kind in b"*~>" and rest != b"-1":
            left += int(rest) + (kind == b">")  # a push comes before the reply
        elif kind == b"%":
            left += 2 * int(rest)
    return b"".join(parts)


# --- Ways to break a worker


def swallow(name, raw):
    """A rule: this command never reaches the server, which seems to answer ``raw``."""
    return lambda command: Reply(raw(command) if callable(raw) else raw) if command[0].upper() == name else None


def acks(count):
    """A rule: ACKs never reach the server, which seems to have found each of their jobs (1), or none (0)."""
    return swallow(b"DQ.ACK", lambda command: ack_reply(command, count))


def ack_reply(command, count):
    if command[3].upper() != b"IDS":
        return b":%d\r\n" % count
    return b"*%d\r\n" % int(command[4]) + b":%d\r\n" % count * int(command[4])


def ack_rows(command):
    """The jobs of an ACK: id, token, and its result, if it has some."""
    size = 3 if command[2].upper() == b"RESULTS" else 2
    words = command[5:] if command[3].upper() == b"IDS" else command[3:]
    return [words[at : at + size] for at in range(0, len(words), size)]


def touched(command):
    """The answer to a heartbeat: no lease is lost."""
    count = int(command[3]) if command[2].upper() == b"IDS" else 1
    return b"*%d\r\n" % count + b":4000000000000\r\n" * count


def held(name):
    """A rule: this command gets no answer."""
    return when(named(name), Held(threading.Event()))


def not_fatal(command):
    """A rule: a job that is given back is never dead."""
    return Instead([word for word in command if word.upper() != b"FATAL"]) if command[0].upper() == b"DQ.NACK" else None


def without(name, word, values=1):
    """A rule: removes the option from the command."""

    def rule(command):
        if command[0].upper() != name:
            return None
        for at in range(len(command) - 1, 1, -1):
            if command[at].upper() == word:
                return Instead(command[:at] + command[at + 1 + values :])
        return None

    return rule


def without_list(name, word):
    """A rule: removes the option with a count of values (``AFTER 2 a b``) from the command, or from all."""

    def rule(command):
        if name in (None, command[0].upper()) and word in command:
            at = command.index(word)
            return Instead(command[:at] + command[at + 2 + int(command[at + 1]) :])
        return None

    return rule


def with_value(name, word, change):
    """A rule: gives the option another value."""

    def rule(command):
        if command[0].upper() != name:
            return None
        for at in range(len(command) - 2, 0, -1):
            if command[at].upper() == word:
                return Instead([*command[: at + 1], change(command[at + 1]), *command[at + 2 :]])
        return None

    return rule


def once(rule):
    """Applies the rule only the first time that it matches."""
    said = []

    def first(command):
        if said:
            return None
        verdict = rule(command)
        if verdict is not None:
            said.append(True)
        return verdict

    return first


def named(name):
    return lambda command: command[0].upper() == name


def when(test, verdict):
    return lambda command: verdict if test(command) else None
