# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Open MPI on two guests: programs/mpi/mpi.c, which checks all data, and NetPIPE.

Debian's /etc/openmpi/openmpi-mca-params.conf excludes UCX and libfabric, so that without
options Open MPI uses TCP. --mca chooses one of them.
"""

from lab.guest import GuestError
from lab.script import script

from . import Case, Program, must_use
from .fabric import RXE_RDM
from .ucx import HOPELESS, RXE_SL, environment

UCX_PML = "--mca pml ucx --mca osc ucx"
OFI_MTL = "--mca pml cm --mca mtl ofi"


def hosts(server, client):
    """Has the client's guest start programs in the server's by ssh; the key is made once."""
    key = client.out(script("interop/scripts/ssh-client.sh"), timeout=120)
    server.exec(script("interop/scripts/ssh-server.sh", key), timeout=120)
    return f"--host {client.guest.name}:1,{server.guest.name}:1 --allow-run-as-root"


def mpirun(options, program, packets):
    """A case's function. `packets` is what the devices must send at least; 0 where the
    program is not expected to use them."""
    def run(server, client):
        words = [hosts(server, client), options]
        if "ucx" in options:
            words += [f"-x {word}" for word in environment(server).split()]
        if "ofi" in options:
            words.append("-x FI_PROVIDER=verbs")
        command = f"mpirun -np 2 {' '.join(words)} {program}"
        timeout = 240 if server.kind == "qhca" or not packets else HOPELESS
        done = must_use(server, client, lambda: client.exec(command, timeout), packets)
        if "all data right" not in done.out and "qhca-mpi" in program:
            raise GuestError(str(done))
    return run


OPENMPI = Program("Open MPI", "openmpi-bin", (
    Case("all operations, Debian's default (TCP)", mpirun("", "qhca-mpi", 0)),
    Case("all operations, UCX", mpirun(UCX_PML, "qhca-mpi", 100), True, RXE_SL),
    Case("NetPIPE, UCX", mpirun(UCX_PML, "NPopenmpi -u 65536 -n 20", 100), known=RXE_SL),
    # Debian excludes all components of one-sided access but UCX's and those of one machine.
    Case("messages and collectives, libfabric", mpirun(OFI_MTL, "qhca-mpi two-sided", 100),
         known=RXE_RDM),
))
