"""Loads the native library as a host would, and asks for the version of its C interface."""

import ctypes
import os
import sys

library, stub = sys.argv[1:]
if stub:
    ctypes.CDLL(os.path.join(stub, "libcuda.so.1"), mode=ctypes.RTLD_GLOBAL)
# Lazily: nothing here calls what an empty libcuda.so.1 lacks.
found = ctypes.CDLL(library, mode=os.RTLD_LAZY).ts_mooncake_abi_version()
assert found == 1, f"{library} has version {found} of its C interface, not 1"
