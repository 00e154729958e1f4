"""A receiver that speaks only HTTP/2, with the library h2. Its first connections may stop answering, and stay open."""

import asyncio
import ssl
import threading

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, RequestReceived, StreamEnded


class Protocol(asyncio.Protocol):
    def __init__(self, receiver):
        self.receiver = receiver
        self.h2 = H2Connection(H2Configuration(client_side=False, header_encoding="ascii"))
        self.streams = {}

    def connection_made(self, transport):
        self.receiver.connections += 1
        self.is_silent = self.receiver.connections <= self.receiver.silent
        self.transport = transport
        self.h2.initiate_connection()
        transport.write(self.h2.data_to_send())

    def data_received(self, data):
        if self.is_silent:
            return
        for event in self.h2.receive_data(data):
            if isinstance(event, RequestReceived):
                self.streams[event.stream_id] = (dict(event.headers), bytearray())
            elif isinstance(event, DataReceived):
                self.streams[event.stream_id][1].extend(event.data)
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            elif isinstance(event, StreamEnded):
                self.receiver.requests.append(self.streams.pop(event.stream_id))
                self.answer(event.stream_id)
        self.transport.write(self.h2.data_to_send())

    def answer(self, stream):
        self.h2.send_headers(stream, [(":status", "204")], end_stream=True)


class Http2Receiver:
    def __init__(self, certificate=None, silent=0, protocol=Protocol):
        self.silent = silent
        self.requests = []
        self.connections = 0
        context = None
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            certificate.configure_cert(context)
            context.set_alpn_protocols(["h2"])
        self.loop = asyncio.new_event_loop()
        listening = self.loop.create_server(lambda: protocol(self), "127.0.0.1", 0, ssl=context)
        self.server = self.loop.run_until_complete(listening)
        port = self.server.sockets[0].getsockname()[1]
        self.url = f"{'https' if certificate else 'http'}://localhost:{port}/hook"
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()

    def close(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.server.close()
        self.loop.close()
