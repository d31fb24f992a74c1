"""The official engine in a process of its own: `target BYTES`, or `sender NAME ADDRESS`.

Commands come by line; answers begin with "@", since the engine may print as well.
"""
import ctypes
import mmap
import sys
import time

from mooncake.engine import TransferEngine

PERIOD = 251
TABLE = bytes(range(PERIOD)) * (2 + (1 << 20) // PERIOD)


def engine_with(size):
    engine = TransferEngine()
    assert engine.initialize("127.0.0.1", "P2PHANDSHAKE", "tcp", "") == 0
    memory = mmap.mmap(-1, size)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    ctypes.memset(address, 0, size)
    assert engine.register_memory(address, size) == 0
    return engine, memory, address


def pattern(slot, seed, length):
    first = (31 * slot + seed) % PERIOD
    return TABLE[first:first + length]


def slots(count):
    """From which slot to which."""
    return [(1 + n, 1 + n * 7919 % count) for n in range(count)]


def target(size):
    engine, memory, address = engine_with(size)
    print(f"@ 127.0.0.1:{engine.get_rpc_port()} {address}", flush=True)
    for line in sys.stdin:
        command, *numbers = line.split()
        if command == "clear":
            ctypes.memset(address, 0, size)
            print("@ ok", flush=True)
        elif command == "check":
            count, length, seed = map(int, numbers)
            wrong = 0
            for source, to in slots(count):
                landed = memory[to * length:(to + 1) * length]
                wrong += landed != pattern(source, seed, length)
            print(f"@ {wrong}", flush=True)


def sender(name, there):
    engine, memory, here = None, None, None
    lists = None
    print("@ ok", flush=True)
    for line in sys.stdin:
        command, *numbers = line.split()
        if command == "prepare":
            count, length, portion, seed = map(int, numbers)
            if engine is None:
                # The largest case is the first.
                engine, memory, here = engine_with((count + 1) * length)
            for source, _ in slots(count):
                memory[source * length:(source + 1) * length] = pattern(source, seed, length)
            pairs = slots(count)
            lists = []
            for first in range(0, count, portion):
                part = pairs[first:first + portion]
                lists.append((
                    [here + source * length for source, _ in part],
                    [there + to * length for _, to in part],
                    [length] * len(part),
                ))
            print("@ ok", flush=True)
        elif command == "run":
            start = time.perf_counter_ns()
            for sources, places, lengths in lists:
                if engine.batch_transfer_sync_write(name, sources, places, lengths) != 0:
                    sys.exit("the write failed")
            print(f"@ {time.perf_counter_ns() - start}", flush=True)


if sys.argv[1] == "target":
    target(int(sys.argv[2]))
else:
    sender(sys.argv[2], int(sys.argv[3]))
