#!/usr/bin/env python3
"""One rank of a job, as a program that finds libnccl by ctypes: small all-reduces, larger ones, then it waits for the
end of its standard input. rank.py RANK RANKS ID_FILE SMALL LARGE"""
import ctypes
import os
import sys
import time

rank, ranks, id_file, small, large = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
cuda, nccl = ctypes.CDLL(os.environ["RANK_CUDART"]), ctypes.CDLL("libnccl.so.2")


class UniqueId(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_byte * 128)]


def check(code):
    if code:
        sys.exit(f"error {code}")


check(cuda.cudaSetDevice(rank))
unique = UniqueId()
if rank == 0:
    check(nccl.ncclGetUniqueId(ctypes.byref(unique)))
    with open(id_file + ".draft", "wb") as file:
        file.write(bytes(unique))
    os.rename(id_file + ".draft", id_file)
while not os.path.exists(id_file):
    time.sleep(0.01)
ctypes.memmove(ctypes.byref(unique), open(id_file, "rb").read(), 128)
comm = ctypes.c_void_p()
nccl.ncclCommInitRank.argtypes = [ctypes.c_void_p, ctypes.c_int, UniqueId, ctypes.c_int]
check(nccl.ncclCommInitRank(ctypes.byref(comm), ranks, unique, rank))
buffer = ctypes.c_void_p()
check(cuda.cudaMalloc(ctypes.byref(buffer), ctypes.c_size_t(4 << 20)))
FLOAT, SUM = 7, 0
for count, calls in ((256, small), (1 << 20, large)):
    for _ in range(calls):
        check(nccl.ncclAllReduce(buffer, buffer, ctypes.c_size_t(count), FLOAT, SUM, comm, None))
check(cuda.cudaDeviceSynchronize())
print(f"ready {os.getpid()}", flush=True)
sys.stdin.read()
os._exit(7)
