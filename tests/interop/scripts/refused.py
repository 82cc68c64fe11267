# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Posts a request that must fail, and prints its status: libibverbs' text, number and name.

    refused.py DEVICE GID-INDEX PORT WHAT [HOST]

With HOST it is the client, which posts. The server has a QP and a region, and posts no
receive. WHAT:

    no-receive  a SEND, whose QP repeats it once
    local-key   a SEND from memory whose key does not exist
    remote-key  a WRITE with a key that does not exist
    domain      a WRITE to a region of another protection domain than the QP's
    right       a WRITE to a region that may only be read
    range       a WRITE past the end of the region
"""

import ctypes
import socket
import sys

from pyverbs import enums as e
from pyverbs.addr import AHAttr, GID, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, SendWR

SIZE = 4096
READ = e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_READ

name, index, port, what, *host = sys.argv[1:]
context = Context(name=name)
pd = PD(context)
cq = CQ(context, 16)
mr = MR(pd, SIZE, e.IBV_ACCESS_LOCAL_WRITE)
offered = MR(PD(context) if what == "domain" else pd, SIZE,
             READ if what == "right" else READ | e.IBV_ACCESS_REMOTE_WRITE)
caps = QPCap(max_send_wr=4, max_recv_wr=4)
qp = QP(pd, QPInitAttr(qp_type=e.IBV_QPT_RC, scq=cq, rcq=cq, cap=caps))


def connect(other_qpn, other_gid):
    route = GlobalRoute(dgid=GID(other_gid), sgid_index=int(index), hop_limit=64)
    attr = QPAttr()
    attr.qp_access_flags = READ | e.IBV_ACCESS_REMOTE_WRITE
    attr.port_num = 1
    attr.path_mtu = e.IBV_MTU_1024
    attr.ah_attr = AHAttr(gr=route, is_global=1, port_num=1)
    attr.dest_qp_num = other_qpn
    attr.min_rnr_timer = 12
    attr.timeout = 18
    attr.retry_cnt = 7
    attr.rnr_retry = 1
    attr.max_rd_atomic = attr.max_dest_rd_atomic = 1
    qp.to_rts(attr)


def request(far_key, far_address):
    key = mr.lkey ^ 1 if what == "local-key" else mr.lkey
    send = what in ("no-receive", "local-key")
    wr = SendWR(opcode=e.IBV_WR_SEND if send else e.IBV_WR_RDMA_WRITE, num_sge=1,
                sg=[SGE(mr.buf, 64, key)], send_flags=e.IBV_SEND_SIGNALED)
    if not send:
        wr.set_wr_rdma(far_key ^ (what == "remote-key"), far_address + SIZE * (what == "range"))
    return wr


def completion():
    while True:
        number, found = cq.poll()
        if number:
            return found[0].status


if host:
    peer = socket.create_connection((host[0], int(port)))
else:
    with socket.create_server(("", int(port))) as listener:
        peer, _ = listener.accept()
with peer:
    lines = peer.makefile("rw")
    print(qp.qp_num, context.query_gid(1, int(index)).gid, offered.rkey, offered.buf,
          file=lines, flush=True)
    qpn, gid, key, address = lines.readline().split()
    connect(int(qpn), gid)
    # Both are connected from here on.
    print("connected", file=lines, flush=True)
    lines.readline()
    if host:
        qp.post_send(request(int(key), int(address)))
        status = completion()
        text = ctypes.CDLL("libibverbs.so.1").ibv_wc_status_str
        text.restype = ctypes.c_char_p
        name = next(n for n in dir(e) if n.startswith("IBV_WC_") and n.endswith("_ERR") and
                    getattr(e, n) == status)
        print(f"Failed status {text(status).decode()} ({status}), {name}")
    else:
        lines.readline()
