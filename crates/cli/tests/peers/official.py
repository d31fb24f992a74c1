"""A target with the engine of Mooncake's own Python package; see docs/channel.md."""

import json
import mmap
import ctypes
import os
import socket
import struct

from mooncake.engine import TransferEngine


class Target:
    """The engine and the memory of one layout at a time."""

    def __init__(self, stream):
        self.stream = stream
        self.engine = None
        self.memory = {}

    def exactly(self, count):
        data = bytearray()
        while len(data) < count:
            piece = self.stream.recv(min(count - len(data), 1 << 20))
            if not piece:
                raise EOFError
            data += piece
        return bytes(data)

    def receive(self):
        header, payload = struct.unpack("<II", self.exactly(8))
        return json.loads(self.exactly(header)), self.exactly(payload)

    def send(self, message, payload=b""):
        header = json.dumps(message).encode()
        self.stream.sendall(struct.pack("<II", len(header), len(payload)) + header + payload)

    def hello(self, ask, _):
        assert ask["protocol"] == 1, f"version {ask['protocol']} of the channel, this target speaks 1"
        assert ask["memory"] == "host", f"memory {ask['memory']!r}, this target has host memory"
        self.engine = TransferEngine()
        status = self.engine.initialize("127.0.0.1", "P2PHANDSHAKE", "tcp", "")
        assert status == 0, f"the engine did not start ({status})"
        return {"answer": "hello", "protocol": 1, "name": f"127.0.0.1:{self.engine.get_rpc_port()}"}, b""

    def serve(self, ask, _):
        self.release({}, b"")
        regions = []
        for allocation in ask["layout"]["allocations"]:
            pages = mmap.mmap(-1, allocation["len"])
            address = ctypes.addressof(ctypes.c_char.from_buffer(pages))
            status = self.engine.register_memory(address, allocation["len"])
            assert status == 0, f"allocation {allocation['id']} was not registered ({status})"
            self.memory[allocation["id"]] = (pages, address)
            regions.append({"allocation": allocation["id"], "start": 0, "len": allocation["len"], "address": address})
        return {"answer": "serving", "regions": regions}, b""

    def range(self, ask, length):
        pages, _ = self.memory[ask["allocation"]]
        begin, end = ask["offset"], ask["offset"] + length
        assert 0 <= begin <= end <= len(pages), f"[{begin}, {end}) is outside {len(pages)} bytes"
        return pages, begin, end

    def write(self, ask, payload):
        pages, begin, end = self.range(ask, len(payload))
        pages[begin:end] = payload
        return {"answer": "done"}, b""

    def read(self, ask, _):
        pages, begin, end = self.range(ask, ask["len"])
        return {"answer": "bytes"}, pages[begin:end]

    def release(self, _, __):
        for _, address in self.memory.values():
            status = self.engine.unregister_memory(address)
            assert status == 0, f"memory at {address:#x} was not unregistered ({status})"
        self.memory.clear()
        return {"answer": "done"}, b""


def main():
    host, port = os.environ["MOONCAKE_PD_CHANNEL"].rsplit(":", 1)
    with socket.create_connection((host, int(port))) as stream:
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        target = Target(stream)
        target.send({"token": os.environ["MOONCAKE_PD_TOKEN"]})
        asks = {name: getattr(target, name) for name in ("hello", "serve", "write", "read", "release")}
        while True:
            try:
                ask, payload = target.receive()
            except (EOFError, ConnectionError):
                return
            try:
                answer = asks[ask["ask"]](ask, payload)
            except Exception as error:  # The source is told, whatever it is.
                answer = {"answer": "error", "error": f"{type(error).__name__}: {error}"}, b""
            target.send(*answer)


main()
