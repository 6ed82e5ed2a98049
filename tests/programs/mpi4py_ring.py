"""mpi4py: buffers and pickled objects round a ring, matched probes inside (they serve its `recv`)."""

from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
right, left = (rank + 1) % size, (rank - 1) % size
total = 1
for turn in range(120):
    length = turn * 331 % 50000
    out = bytearray((turn * 7 + rank + i * 13) % 251 for i in range(length))
    inside = bytearray(length)
    request = comm.Irecv(inside, source=left, tag=1)
    comm.Send(out, dest=right, tag=1)
    request.Wait()
    expected = bytes((turn * 7 + left + i * 13) % 251 for i in range(length))
    assert inside == expected
    for byte in inside[::97]:
        total = (total * 31 + byte) % 1000000007
    if rank % 2 == 0:
        comm.send({"turn": turn, "data": bytes(out)}, dest=right, tag=2)
        found = comm.recv(source=left, tag=2)
    else:
        found = comm.recv(source=left, tag=2)
        comm.send({"turn": turn, "data": bytes(out)}, dest=right, tag=2)
    assert found["turn"] == turn and found["data"] == expected
    total = (total + comm.allreduce(turn)) % 1000000007
totals = comm.gather(total)
if rank == 0:
    for index, value in enumerate(totals):
        print(f"rank {index}: {value}")
