"""Two processes with the official engine: one writes into the other's memory, which must then hold those bytes."""

import ctypes
import hashlib
import signal
import subprocess
import sys

from mooncake.engine import TransferEngine

LENGTH = 1 << 20
HALF = LENGTH // 2


def registered():
    """An engine on the loopback interface, and memory that it may reach."""
    engine = TransferEngine()
    assert engine.initialize("127.0.0.1", "P2PHANDSHAKE", "tcp", "") == 0, "the engine did not start"
    memory = (ctypes.c_ubyte * LENGTH)()
    assert engine.register_memory(ctypes.addressof(memory), LENGTH) == 0, "memory was not registered"
    return engine, memory


def receive():
    engine, memory = registered()
    print(engine.get_rpc_port(), ctypes.addressof(memory), flush=True)
    sys.stdin.readline()
    print(hashlib.sha256(memory).hexdigest(), flush=True)


def send():
    engine, memory = registered()
    memory[:] = bytes(i * 31 // 7 % 256 for i in range(LENGTH))
    receiver = subprocess.Popen(
        [sys.executable, __file__, "receive"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        port, there = map(int, receiver.stdout.readline().split())
        here = ctypes.addressof(memory)
        # The halves change places, so that one of them alone can't pass for both.
        status = engine.batch_transfer_sync_write(
            f"127.0.0.1:{port}", [here, here + HALF], [there + HALF, there], [HALF, HALF]
        )
        assert status == 0, f"the write ended with {status}"
        found = receiver.communicate("done\n", timeout=20)[0].strip()
    finally:
        receiver.kill()
    expected = hashlib.sha256(bytes(memory[HALF:]) + bytes(memory[:HALF])).hexdigest()
    assert found == expected, f"the other side holds {found}, not {expected}"


# A stuck side ends, and its partner with it.
signal.alarm(60)
receive() if sys.argv[1:] == ["receive"] else send()
