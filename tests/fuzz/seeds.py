#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Writes the seeds of the fuzz targets: inputs that do one thing each.

libFuzzer changes the inputs of a corpus.  From random bytes alone it takes long to connect
what belongs together, such as a READ, the work of the device, and the responses; a seed has
that already.  A target takes its bytes from the front of the input (input.h), and so the
functions here write them in the order in which the functions of the same concept read them in
fuzz_cmd.c, fuzz_packet.c, fuzz_wqe.c, fuzz_vf.c and tso_post.c.  Every string of bytes is an
input, so a seed that a change of a target has made mean something else does no harm; but it
should be corrected here.

    seeds.py [FOLDER]       writes FOLDER/cmd, FOLDER/packet, FOLDER/wqe, FOLDER/vf and
                            FOLDER/tso; without FOLDER the corpus beside this file

Files of the corpus that this program does not write are inputs that once failed.
"""

import pathlib
import sys

CORPUS = pathlib.Path(__file__).resolve().parent / "corpus"
PREFIX = "seed-"                # of the names that this program writes


def word(value, size=2):
    return value.to_bytes(size, "little")


# -- fuzz_packet ------------------------------------------------------------

(RC, RC_SRQ, UC, UD, GSI, RC_RTR, RC_INIT, RC_SQD, RC_ERR, UD_SQE, RC_V6, XRC_INI, XRC_TGT,
 XRC_TGT2, RAW, SNIFFER) = range(16)

# Indices of pick_opcode()'s tables.
(SEND_FIRST, SEND_MIDDLE, SEND_LAST, SEND_LAST_IMM, SEND_ONLY, SEND_ONLY_IMM, WRITE_FIRST,
 WRITE_MIDDLE, WRITE_LAST, WRITE_LAST_IMM, WRITE_ONLY, WRITE_ONLY_IMM, READ) = range(13)
COMPARE_SWAP, FETCH_ADD, SEND_ONLY_INV, FLUSH, ATOMIC_WRITE = 15, 16, 18, 20, 21
READ_FIRST, READ_MIDDLE, READ_LAST, READ_ONLY, ACK, ATOMIC_ACK = 0, 1, 2, 3, 4, 7

NO_PAYLOAD = {READ, COMPARE_SWAP, FETCH_ADD, FLUSH}
REMOTE = {WRITE_FIRST, WRITE_ONLY, WRITE_ONLY_IMM, READ, COMPARE_SWAP, FETCH_ADD,
          SEND_ONLY_INV, FLUSH, ATOMIC_WRITE}
NOTHING, FULL, EIGHT = 0, 1, 5                  # pick_length()
# The key of the region that may be written, its first byte, the packet's length.
THERE = bytes([0, 6, 0])
KEPT = bytes([0, 0])                            # change_frame(): nothing


def rest(ack=True, syndrome=0, value=1, path=0):
    """pick_rest(), pick_path() and change_frame()."""
    return bytes([2 if ack else 0, syndrome, value, path]) + KEPT


def request(queue, opcode, length=EIGHT, remote=THERE, **more):
    out = bytes([0, queue, opcode, 0])
    if opcode not in NO_PAYLOAD:
        out += bytes([length])
    if opcode in REMOTE:
        out += remote
    return out + rest(**more)


def datagram(queue, length=EIGHT, **more):
    return bytes([0, queue, 0, 0, length]) + rest(**more)


def response(queue, opcode, length=FULL, **more):
    out = bytes([96, queue, opcode, 0])
    if opcode in (READ_FIRST, READ_MIDDLE, READ_LAST, READ_ONLY):
        out += bytes([length])
    return out + rest(**more)


def packets_post(queue, opcode, size=100):
    """post_send(): opcode is an index of its table."""
    out = bytes([166, queue]) + word(64) + bytes([opcode])
    if opcode not in (5, 6, 10):
        out += word(size)
    return out + bytes([1]) + (b"\0" if queue in (UD, GSI, UD_SQE) else b"")


def packets_run(turns=16):
    return bytes([206, turns - 1])


def packets_time(step):
    return bytes([226, step, 20])


def long_write(queue):
    # The length of all is the first packet's, and once 256 more.
    return (request(queue, WRITE_FIRST, FULL, bytes([0, 6, 2, 2]), ack=False)
            + request(queue, WRITE_MIDDLE, FULL, ack=False) + request(queue, WRITE_LAST, FULL))


def bundle(queue, opcode, size, remote=THERE):
    """request() with @size bytes; change_frame() says in the BTH that its packets have 256."""
    out = bytes([0, queue, opcode, 0, 6, 0]) + word(size)
    if opcode in REMOTE:
        out += remote
    return out + rest()[:-len(KEPT)] + bytes([176, 0, 36, 1, 0])


def message(kind, how=1):
    """frame_send_message(): with 4096 bytes, and the token of the victim's question. @how with 128:
    without a GID."""
    return bytes([164, kind - 1, how])


def large(size, how=1, flags=0x18):
    """frame_send_large(): segments with 1448 bytes each"""
    return bytes([165, how]) + word(size) + bytes([flags])


def packet_seeds():
    again = bytes([136, 0]) + KEPT
    poll = bytes([244])
    serve = bytes([7, 0, 0, 0])                 # paging_step(): the next fault
    work = packets_run() + poll
    yield "send", request(RC, SEND_ONLY) + work
    yield "send-of-three-packets", (request(RC, SEND_FIRST, FULL, ack=False)
                                    + request(RC, SEND_MIDDLE, FULL, ack=False)
                                    + request(RC, SEND_LAST_IMM, EIGHT) + work)
    yield "send-to-srq", request(RC_SRQ, SEND_ONLY_IMM) + request(RC_SRQ, SEND_ONLY) + work
    yield "send-and-invalidate", request(RC, SEND_ONLY_INV, remote=bytes([1, 6, 0])) + work
    yield "write", request(RC, WRITE_ONLY) + request(RC, WRITE_ONLY_IMM) + work
    yield "write-of-three-packets", long_write(RC) + work
    yield "write-through-window", request(RC, WRITE_ONLY, remote=bytes([134, 3, 0, 0])) + work
    yield "read", request(RC, READ, remote=bytes([0, 6, 1]) + word(900)) + work
    yield "read-again", (request(RC, READ, remote=bytes([0, 6, 1]) + word(900)) + work + again
                         + work)
    yield "atomics", (request(RC, COMPARE_SWAP) + request(RC, FETCH_ADD)
                      + request(RC, ATOMIC_WRITE) + work + again + work)
    yield "flush", request(RC, WRITE_ONLY) + request(RC, FLUSH) + work
    yield "unreliable-write", long_write(UC) + work
    yield "datagrams", datagram(UD) + datagram(UD, path=232) + datagram(GSI) + work
    yield "ipv6", request(RC_V6, WRITE_ONLY) + request(RC_V6, SEND_ONLY) + work
    yield "xrc", request(XRC_TGT, SEND_ONLY) + request(XRC_TGT, WRITE_ONLY) + work
    yield "own-read", (packets_post(RC, 1, 600) + packets_run() + response(RC, READ_FIRST)
                       + response(RC, READ_MIDDLE) + response(RC, READ_LAST) + work)
    yield "own-write-acknowledged", packets_post(RC, 2) + packets_run() + response(RC, ACK) + work
    yield "own-atomic", packets_post(RC, 6) + packets_run() + response(RC, ATOMIC_ACK) + work
    yield "own-write-refused", (packets_post(RC, 2) + packets_run()
                                + response(RC, ACK, syndrome=3) + work)
    yield "own-send-without-receive", (packets_post(RC, 0) + packets_run()
                                       + response(RC, ACK, syndrome=5) + packets_time(3) + work)
    yield "own-write-repeated", (packets_post(RC, 2) + packets_run() + packets_time(3)
                                 + packets_time(3) + response(RC, ACK) + work)
    yield "own-datagram", packets_post(UD, 0) + packets_post(RAW, 0) + work
    yield "reset", request(RC, WRITE_FIRST, FULL, bytes([0, 6, 2, 2])) + bytes([238, RC, 3]) + work
    yield "bundle", (bundle(RC, SEND_ONLY, 600) + bundle(RC, WRITE_ONLY, 1000)
                     + bundle(RC, WRITE_FIRST, 512, bytes([0, 6, 2, 3]))
                     + bundle(RC, WRITE_LAST, 768) + work)
    yield "large-segment", large(8000) + large(9000, 1 | 8) + large(3000, 1 | 16) + work
    yield "bundle-of-xrc", bundle(XRC_TGT, SEND_ONLY, 600) + bundle(UC, WRITE_ONLY, 600) + work
    yield "agreement", (64, message(1) + message(3) + message(1, 129) + message(3, 129)
                        + packets_post(RC, 2, 2000) + packets_run() + message(2) + message(4)
                        + packets_post(RC, 2, 2000) + packets_run() + response(RC, ACK) + work)
    yield "write-to-absent-page", (4, long_write(RC) + packets_run() + serve + serve + work)


def packet_files():
    for name, seed in packet_seeds():
        # The first byte is make_victim()'s: 4 is on demand, 64 without rules of flows.
        how, script = seed if isinstance(seed, tuple) else (0, seed)
        yield name, bytes([how]) + script


# -- fuzz_cmd ---------------------------------------------------------------

# Opcodes in the order of the templates, with their weights (cmd_mailbox.c).
TEMPLATES = [
    ("NOP", 1), ("QUERY_CAPS", 1), ("INIT_HCA", 4), ("TEARDOWN_HCA", 1), ("MAP_CHUNKS", 6),
    ("UNMAP_CHUNKS", 2), ("QUERY_COUNTERS", 2), ("QUERY_PORT", 1), ("SET_PORT", 3),
    ("SET_GID", 4), ("SET_MCAST", 2), ("CREATE_ETHQ", 4), ("DESTROY_ETHQ", 1), ("CREATE_EQ", 6),
    ("DESTROY_EQ", 2), ("QUERY_EQ", 2), ("CREATE_CQ", 8), ("DESTROY_CQ", 3), ("QUERY_CQ", 2),
    ("MODIFY_CQ", 4), ("CREATE_SRQ", 5), ("DESTROY_SRQ", 2), ("QUERY_SRQ", 2),
    ("MODIFY_SRQ", 2), ("RESIZE_SRQ", 3), ("CREATE_FLOW", 3), ("DESTROY_FLOW", 2),
    ("CREATE_QP", 12), ("DESTROY_QP", 4), ("QUERY_QP", 3), ("MODIFY_QP", 30),
    ("ATTACH_MCAST", 3), ("DETACH_MCAST", 2), ("INVALIDATE_KEY", 3), ("INVALIDATE_RANGE", 3),
    ("INVALIDATE_ALL", 2), ("MAP_POOL_BLOCK", 3), ("UNMAP_POOL_BLOCK", 2), ("MAP_POOL_KEY", 3),
    ("FAULT_RESUME", 1), ("SET_CLOCK", 1), ("SET_GVM", 1), ("SET_QP_COUNTERS", 3),
    ("QUERY_COUNTER_SET", 1), ("SET_RSS", 2),
]
PT, QP, CQ, SRQ, EQ = range(5)                  # tables
RESET, STARTED, ENABLED = 0, 3, 4               # begin(): started with small caches


def command(name, mailbox=b"", index=0, param=b"\0", slot=0):
    """command(): the mailbox is what the template's function reads."""
    at = 0
    for known, weight in TEMPLATES:
        if known == name:
            break
        at += weight
    else:
        raise ValueError(name)
    # The input has the flags, the number and that it is small, and the parameter; it spoils
    # nothing twice, and runs a little.
    return (bytes([0, at, slot]) + mailbox + bytes([0, 0, index]) + param
            + bytes([0, 0, 0, 3]))


def ring(depth, vector=0):
    return bytes([2, depth, vector])


def cmd_tables():
    out = command("INIT_HCA", bytes([0]))
    for table in (PT, QP, CQ, SRQ, EQ):
        for chunk in range(2):
            out += command("MAP_CHUNKS", bytes([0, 2 * table + chunk]), chunk, bytes([table]))
    return out


def bring_up(queue, kind):
    return bytes([104, queue, kind, 0x40, queue, 0, 0, 0])


def cmd_post(queue, opcode, slot=0, posted=1):
    out = bytes([110, queue, slot, opcode << 5 | 1])
    if opcode != 3:
        out += word(200)
    return out + bytes([posted - 1])


def cmd_time(step, turns=32):
    return bytes([216, step, turns])


def cmd_seeds():
    cq = bytes([0x20, 4])                       # fill_cq(): two entries, EQ 0
    flow = bytes([0x42, 2, 0, 1]) + bytes(16) + bytes(4)
    yield "queries", bytes([STARTED]), (command("QUERY_CAPS") + command("QUERY_COUNTERS")
                                        + command("QUERY_PORT") + command("QUERY_EQ")
                                        + command("QUERY_CQ") + command("QUERY_QP", index=2))
    yield "from-enabled-to-ready", bytes([ENABLED]), (
        cmd_tables() + command("CREATE_EQ", ring(3)) + command("CREATE_CQ", cq)
        + command("QUERY_CQ") + command("DESTROY_CQ") + command("DESTROY_EQ")
        + command("TEARDOWN_HCA"))
    yield "chunks-come-and-go", bytes([ENABLED]), (
        cmd_tables() + command("UNMAP_CHUNKS", param=bytes([CQ, 0]))
        + command("CREATE_CQ", cq) + command("TEARDOWN_HCA") + command("INIT_HCA", bytes([1])))
    for name, kind in (("reliable", 0), ("unreliable", 1), ("datagram", 2)):
        yield f"{name}-queue-pair-at-work", bytes([STARTED]), (
            bring_up(2, kind) + cmd_post(2, 0) + cmd_time(2) + cmd_post(2, 1, 1, 2)
            + cmd_time(2) + cmd_time(4) + command("QUERY_QP", index=2)
            + command("DESTROY_QP", index=2))
    yield "read-and-atomic", bytes([STARTED]), (
        bring_up(2, 0) + cmd_post(2, 2) + cmd_post(2, 3, 1, 2) + cmd_time(2) + cmd_time(4))
    yield "queue-pair-to-error", bytes([STARTED]), (
        bring_up(2, 0) + cmd_post(2, 0) + command("MODIFY_QP", bytes([9, 0, 2]), 2)
        + cmd_time(2) + command("MODIFY_QP", bytes([10, 0, 2]), 2) + bring_up(2, 0))
    yield "shared-receive-queue", bytes([STARTED]), (
        command("CREATE_SRQ", bytes([2, 1, 1, 3, 0]), 1) + command("QUERY_SRQ", index=1)
        + command("MODIFY_SRQ", index=1) + command("RESIZE_SRQ", bytes([4, 1, 1, 4, 0]), 1)
        + command("DESTROY_SRQ", index=1))
    yield "cq-resize-and-moderation", bytes([STARTED]), (
        command("CREATE_CQ", cq, 1) + command("MODIFY_CQ", bytes([0x50, 6]), 1, b"\1")
        + command("MODIFY_CQ", bytes([0x40, 8]), 1, b"\2") + command("QUERY_CQ", index=1))
    yield "ethernet", bytes([STARTED]), (
        command("SET_PORT", bytes([7]) + word(1500) + bytes([0, 7]))
        + command("CREATE_ETHQ", bytes([6, 6, 0]))
        + bytes([172, 1, 1, 0, 0, 8, 8]) + bytes([182, 3, 0, 5]) + cmd_time(1)
        + command("DESTROY_ETHQ"))
    yield "ethernet-segments", bytes([STARTED]), (
        command("SET_PORT", bytes([7]) + word(1500) + bytes([0, 7]))
        + command("CREATE_ETHQ", bytes([6, 6, 0]))
        + bytes([172, 0x10, 9, 0, 0, 0, 8, 12]) + cmd_time(1) + cmd_time(1)
        + bytes([172, 0x10, 9, 7, 50, 0, 0, 8, 12]) + cmd_time(1) + command("DESTROY_ETHQ"))
    yield "ethernet-queues", bytes([STARTED]), (
        command("SET_PORT", bytes([7]) + word(1500) + bytes([0, 7]))
        + command("CREATE_ETHQ", bytes([6, 6, 0]))
        + command("CREATE_ETHQ", bytes([6, 6, 0]), 3) + command("SET_RSS", bytes([0xfd]))
        + bytes([172, 1, 1, 0, 0, 8, 8]) + bytes([182, 3, 0, 5]) + bytes([182, 7, 0, 5])
        + cmd_time(1) + command("DESTROY_ETHQ") + bytes([182, 3, 0, 5])
        + command("DESTROY_ETHQ", index=3))
    yield "flow-rules", bytes([STARTED]), (
        bring_up(2, 0) + command("CREATE_FLOW", flow, 1)
        + bytes([182, 3, 0, 5]) + command("DESTROY_FLOW", index=1))
    yield "groups", bytes([STARTED]), (
        command("SET_GID", bytes([0]), 1) + command("SET_MCAST", bytes([3])) + bring_up(2, 2)
        + command("ATTACH_MCAST", bytes([1]), 2) + cmd_post(2, 0) + cmd_time(2)
        + command("DETACH_MCAST", bytes([1]), 2))
    yield "keys-invalidated", bytes([STARTED]), (
        bring_up(2, 0) + cmd_post(2, 1) + command("INVALIDATE_KEY", index=2, param=b"\3")
        + command("INVALIDATE_RANGE", bytes([0, 30]), 2) + command("INVALIDATE_ALL", param=b"\3")
        + cmd_time(2))
    yield "pool", bytes([STARTED]), (
        command("MAP_POOL_BLOCK", bytes([1, 2]), 1) + command("MAP_POOL_KEY", index=2)
        + command("UNMAP_POOL_BLOCK", index=1))
    yield "reset-at-work", bytes([STARTED]), (
        bring_up(2, 0) + cmd_post(2, 1) + bytes([242, 4]) + command("NOP") + cmd_time(3))


# -- fuzz_wqe ---------------------------------------------------------------

PROCESS, KERNEL, PAGED = 0x20, 0x21, 0x60       # the first byte; 0x20: no raw packet QP
WQE_RC, WQE_SRQ, WQE_UC, WQE_UD, WQE_GSI, WQE_SELF = range(6)
(W_SEND, W_SEND_IMM, W_SEND_INV, W_WRITE, W_WRITE_IMM, W_READ, W_COMPARE_SWAP, W_FETCH_ADD,
 W_BIND, W_LOCAL_INV, W_REG, W_ATOMIC_WRITE, W_FLUSH, W_NOP) = range(14)


def segment(length=4):
    """pick_address(), pick_length(), pick_key(): so many times eight bytes, at most."""
    return bytes([4, 0, 2 if length == 8 else 4, *([] if length == 8 else [length]), 0])


def wqe_post(queue, opcode, segments=(segment(200),), inline=None, extra=b"", side=0):
    out = bytes([side, queue, opcode, 1])
    if inline is None:
        out += bytes([0, len(segments)]) + b"".join(segments)
    else:
        out += bytes([255, inline])
    # Here are the key to invalidate, and the address and key of the peer.
    out += bytes([0, 4, 0, 0]) + extra
    if queue in (WQE_UD, WQE_GSI) and opcode not in (W_BIND, W_REG, W_FLUSH):
        out += b"\0"
    return out + bytes([0, 0])                  # nothing spoilt, and the doorbell


def wqe_receive(queue, segments=(segment(250),), side=1):
    return bytes([72 + side, queue, len(segments) - 1]) + b"".join(segments) + b"\0"


def wqe_work(times=4):
    return bytes([160, 47]) * times + bytes([216, 31, 217, 31])


def limits(how, number):
    return bytes([104, how, number])


def wqe_seeds():
    eight = (segment(8),)
    yield "write-and-read", PROCESS, (wqe_post(WQE_RC, W_WRITE) + wqe_post(WQE_RC, W_READ)
                                      + wqe_work())
    # A packet has 256 bytes, and only the second message of each kind is a bundle.
    long = [segment(200)] * 3
    yield "bundles", PROCESS, (wqe_post(WQE_RC, W_WRITE, long) + wqe_work()) * 2 + (
        wqe_post(WQE_RC, W_READ, long) + wqe_work()) * 2
    yield "send", PROCESS, (wqe_receive(WQE_RC) + wqe_post(WQE_RC, W_SEND_IMM) + wqe_work())
    yield "send-to-srq", PROCESS, (wqe_receive(WQE_SRQ) + wqe_receive(WQE_SRQ)
                                   + wqe_post(WQE_SRQ, W_SEND) + wqe_work())
    yield "several-segments", PROCESS, wqe_post(WQE_RC, W_WRITE, [segment(n) for n in (8, 60, 99)]) + (
        wqe_work())
    yield "inline", PROCESS, wqe_post(WQE_UC, W_WRITE_IMM, inline=40) + wqe_work()
    yield "atomics", PROCESS, (wqe_post(WQE_RC, W_COMPARE_SWAP, eight)
                               + wqe_post(WQE_SELF, W_FETCH_ADD, eight)
                               + wqe_post(WQE_RC, W_ATOMIC_WRITE, eight) + wqe_work())
    yield "flush", PROCESS, (wqe_post(WQE_RC, W_WRITE)
                             + wqe_post(WQE_RC, W_FLUSH, (), extra=bytes([30, 0, 0])) + wqe_work())
    yield "datagram", PROCESS, (wqe_receive(WQE_UD) + wqe_post(WQE_UD, W_SEND)
                                + wqe_post(WQE_GSI, W_SEND) + wqe_work())
    yield "window", PROCESS, wqe_post(WQE_RC, W_BIND, (), extra=bytes(
        [0, 4, 1, 4, 64, 0, 0xff, 0x0f])) + wqe_work()
    yield "fast-registration", KERNEL, (
        wqe_post(WQE_SRQ, W_REG, (), extra=bytes([4, 1, 4, 64, 0xff, 0x0f, 2, 0]))
        + wqe_post(WQE_SRQ, W_LOCAL_INV, ()) + wqe_work())
    # (wqe_limits.c: from side 0 or 1; a request or a receive)
    yield "segments-within-limit", PROCESS, limits(0, 3 << 1)
    yield "segments-beyond-limit", PROCESS, limits(0, 4 << 1) + limits(1, 12 << 1)
    yield "inline-beyond-limit", PROCESS, limits(0, 49 << 1 | 1)
    yield "receive-within-limit", PROCESS, limits(2, 1)
    yield "receive-beyond-limit", PROCESS, limits(2, 2) + limits(3, 6)
    yield "absent-page", PAGED, (wqe_post(WQE_RC, W_WRITE) + wqe_work()
                                 + bytes([6, 0, 0, 0]) * 3 + wqe_work())
    yield "queue-pair-reset", PROCESS, (wqe_post(WQE_RC, W_READ) + bytes([240, WQE_RC, 0, 3])
                                        + wqe_post(WQE_RC, W_WRITE) + wqe_work())


# -- fuzz_vf ----------------------------------------------------------------

# The operations of villain_works(), each with a budget behind it.
V_REGISTER, V_DOORBELL, V_COMMAND, V_SCRIBBLE, V_FRAMES, V_REQUEST, V_AGAIN, V_TIME = (
    0, 1, 2, 4, 7, 10, 12, 13)
TO_PF, TO_NEIGHBOUR = 255, 0
OWN, PF, NEIGHBOUR = range(3)                   # forge(): whose address
V_TAGGED, V_WRITE, V_MAC, V_BROADCAST, V_GARBLED = 1, 2, 4, 8, 16
VF_SET_MAC, VF_SET_VLAN, VF_SET_RATE, VF_SET_BLOCKS = 1, 2, 4, 8     # set_villain()


def vf_op(number, *data, budget=31):
    return bytes([number, *data, budget])


def vf_frames(to, how, source, number=1, psn=0, smac=1):
    garble = [20, 0, 40, 1, 50, 2] if how & V_GARBLED else []
    return vf_op(V_FRAMES, number - 1, to, how, source, psn, smac, *garble)


def vf_command(opcode, index, payload, out=63):
    return vf_op(V_COMMAND, opcode, index, 0, len(payload) // 8, out, len(payload), *payload)


def vf_seeds():
    forged = b"".join(vf_frames(to, V_WRITE | V_MAC, source, psn=psn)
                      for to, source in ((TO_PF, NEIGHBOUR), (TO_NEIGHBOUR, PF))
                      for psn in range(2))
    yield "forged-requests", 0, forged
    yield "forged-acknowledgements", 0, (vf_frames(TO_PF, V_MAC, NEIGHBOUR)
                                         + vf_frames(TO_NEIGHBOUR, V_MAC, PF))
    yield "forged-behind-a-tag", 0, vf_frames(TO_PF, V_WRITE | V_MAC | V_TAGGED, NEIGHBOUR)
    yield "own-address", VF_SET_BLOCKS, (vf_frames(TO_PF, V_WRITE | V_MAC, OWN)
                                         + vf_frames(TO_NEIGHBOUR, V_WRITE | V_MAC, OWN))
    yield "other-macs", 0, b"".join(vf_frames(TO_PF, 0, OWN, smac=n) for n in (0, 1, 2))
    flood = vf_frames(TO_PF, V_BROADCAST | V_MAC, OWN, number=16) * 6
    yield "flood", 0, flood
    yield "flood-at-a-rate", VF_SET_RATE | VF_SET_VLAN, flood + vf_op(V_TIME) * 3 + flood
    yield "garbled", 0, vf_frames(TO_PF, V_WRITE | V_MAC | V_GARBLED, OWN)
    set_mac = word(2, 4) + word(0, 4) + bytes([2, 0, 0, 0, 0, 1]) + bytes(18)
    yield "mac-of-the-pf", 0, vf_command(0x11, 0, set_mac) + forged
    yield "mac-of-the-pf-refused", VF_SET_MAC, vf_command(0x11, 0, set_mac) + forged
    set_vf = word(0x7f, 4) + bytes(60)
    yield "host-domain", 0, b"".join(vf_command(op, 2, set_vf) for op in range(0x80, 0x85))
    yield "requests", 0, b"".join(vf_op(V_REQUEST, qp, to, 100, code, 1, 0)
                                  for qp, to, code in ((0, 0, 2), (1, 2, 0), (1, 0, 0), (2, 0, 0)))
    yield "resets", 0, flood + vf_op(V_AGAIN, 1) + flood + vf_op(V_AGAIN, 65) + forged
    yield "registers", 0, (vf_op(V_REGISTER, 255, 0, 2) + vf_op(V_AGAIN, 255)
                           + vf_op(V_DOORBELL, 0, 0, 39, 2) + vf_op(V_SCRIBBLE, 0, 32, 0, 0, 255))


# -- fuzz_tso ---------------------------------------------------------------

TSO_V6, TSO_SEQ, TSO_OPTIONS = 1, 2, 0x60       # put_headers()
MSS_1448, MSS_100, MSS_8, MSS_512 = range(4)
OTHER_PEER, OTHER_SOURCE, TAGGED, LONG_IP, TO_GROUP, TO_ITSELF = range(192, 198)
IN_VLAN = 1                                     # put_numbers()
TSO_FINISH, TSO_MTU = bytes([168]), 236


def tso_post(payload, mss=MSS_1448, how=0, odd=0, cuts=(), flags=0x98, tag=0, spoil=b"\0"):
    """@cuts: lengths of the fragments but the last"""
    return (bytes([0, len(cuts), how, odd]) + bytes([0, 9, 10, 1]) + bytes([flags, mss])
            + word(payload - 1) + b"\0" + bytes(cuts) + bytes([tag]) + spoil + b"\0")


def tso_run(segments):
    return bytes([112, segments - 1])


def tso_pause(index):
    return bytes([216, index])


def tso_rarely(index):
    return bytes([242, index])


def tso_seeds():
    agree = tso_post(4000) + TSO_FINISH
    yield "ipv4", 0, agree + tso_post(60000, how=TSO_OPTIONS) + TSO_FINISH
    yield "ipv6", 0, agree + tso_post(20000, how=TSO_V6) + TSO_FINISH
    yield "small-segments", 0, agree + tso_post(700, MSS_8) + tso_post(5000, MSS_100) + TSO_FINISH
    yield "vlan", 0, (tso_post(4000, tag=IN_VLAN) + TSO_FINISH) * 2
    yield "smaller-offer", 1, agree + tso_post(9000, MSS_512) + TSO_FINISH
    yield "longest-headers", 2, agree + tso_post(9000, MSS_512, how=TSO_V6 | 0x50) + TSO_FINISH
    yield "extension-header", 0, agree + tso_post(4000, how=TSO_V6, odd=LONG_IP) + TSO_FINISH
    yield "fragments", 0, agree + tso_post(9000, cuts=(14, 20, 7, 100, 127, 255)) + TSO_FINISH
    # A descriptor points to no memory: the rest of the frame is dropped.
    yield "absent-memory", 0, agree + tso_post(
        30000, cuts=(100, 255, 255), spoil=bytes([192, 3, 2, 164])) + TSO_FINISH
    yield "alone", 0, agree + b"".join(
        tso_post(4000, odd=odd) for odd in range(OTHER_PEER, TO_ITSELF + 1)) + TSO_FINISH
    yield "changed-meanwhile", 0, agree + tso_post(30000) + tso_run(5) + (
        bytes([184, 100, 29, 77])) + TSO_FINISH
    yield "taken-back", 0, agree + tso_post(30000) + tso_run(5) + tso_rarely(1) + (
        tso_post(9000) + TSO_FINISH)
    yield "agreement-ends", 0, agree + b"".join(
        tso_pause(n) + tso_post(9000) + TSO_FINISH for n in (2, 2, 4, 2))
    yield "lost-answers", 0, agree + tso_rarely(0) + b"".join(
        tso_pause(n) + tso_post(9000) + TSO_FINISH for n in (2, 3, 4))
    yield "link-down-and-blocked", 0, agree + tso_rarely(2) + agree + tso_rarely(2) + agree + (
        tso_post(9000) + tso_rarely(3) + tso_run(9) + tso_rarely(3) + TSO_FINISH)
    yield "smaller-mtu", 0, agree + bytes([TSO_MTU, 1]) + tso_post(9000) + TSO_FINISH


def files():
    """{(target, name): bytes}"""
    out = {("packet", name): data for name, data in packet_files()}
    out.update({("cmd", name): how + script for name, how, script in cmd_seeds()})
    out.update({("wqe", name): bytes([how]) + script for name, how, script in wqe_seeds()})
    out.update({("vf", name): bytes([how]) + script for name, how, script in vf_seeds()})
    out.update({("tso", name): bytes([how]) + script for name, how, script in tso_seeds()})
    return {(target, PREFIX + name): data for (target, name), data in out.items()}


def main(folder=CORPUS):
    for (target, name), data in files().items():
        path = pathlib.Path(folder) / target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


if __name__ == "__main__":
    main(*sys.argv[1:])
