# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Moves a guest to another QEMU on this host, and saves and restores it.

    with Pair(wire="switch", movable=True) as (a, b):
        print(move.migrate(b).downtime)

Both QEMUs have the same command line and the same disks. Their devices have the same MAC
addresses, and the new one uses the link only when the guest runs there. The link must let
it in: a switch has a port for each QEMU, and a peer whose netdev listens takes the second
one as soon as the first one has ended.
"""

import pathlib
import re
import shutil
from dataclasses import dataclass

from .guest import GuestError, wait_for
from .qmp import Closed, QMPError

# Bytes a second; QEMU's own limit is that of a network of a Gbit/s.
BANDWIDTH = 1 << 33

ENDED = "completed", "failed", "cancelled"

# QEMU's trace events that have what saving and loading takes, and how much it is.
TRACES = ("qhca_saved", "qhca_loaded", "vmstate_downtime_save", "vmstate_downtime_load")


@dataclass
class Move:
    """What QEMU reports of a migration."""
    downtime: int               # ms that the guest stood still
    total: int                  # ms of the whole
    ram: int                    # bytes sent of the guest's memory
    image: int = 0              # bytes of the device's image
    save: int = 0               # us that the source spent on the device
    load: int = 0               # and the destination


def _set_up(qmp, *, postcopy=False, answers=False, pauses=False, bandwidth=BANDWIDTH):
    """`answers`: the source hears from the destination, and ends only after it. `pauses`:
    the source waits between the stop of the guest and what comes then."""
    qmp.cmd("migrate-set-capabilities", capabilities=[
        {"capability": "events", "state": True},
        {"capability": "return-path", "state": answers},
        {"capability": "pause-before-switchover", "state": pauses},
        {"capability": "postcopy-ram", "state": postcopy}])
    qmp.cmd("migrate-set-parameters", max_bandwidth=bandwidth)
    for name in TRACES:
        qmp.cmd("trace-event-set-state", name=name, enable=True)


def _wait(qmp, mark, *states, timeout):
    """Waits until the migration is in one of the states; an error if it failed."""
    event = qmp.wait_event("MIGRATION", lambda data: data["status"] in (*states, *ENDED), mark,
                           timeout)
    if event["data"]["status"] not in states:
        raise GuestError(f"the migration ended: {qmp.cmd('query-migrate')}")


def measured(text, info):
    """The Move of what query-migrate and the traces say."""
    moved = Move(info.get("downtime", 0), info["total-time"], info["ram"]["transferred"])
    if found := re.search(r"qhca_saved .* (\d+) bytes", text, re.M):
        moved.image = int(found[1])
    for name in "save", "load":
        rows = re.findall(rf"vmstate_downtime_{name} .*idstr=\S*qhca\b.* downtime=(\d+)", text)
        setattr(moved, name, sum(int(us) for us in rows))
    return moved


def _log(guest):
    return guest.qemu_log.read_text(errors="replace")


def migrate(guest, *, postcopy=False, timeout=120):
    """Moves a guest, which goes on there if it has not been stopped; a Move. If it fails
    before the guest has left, the guest goes on where it was."""
    timeout *= guest.patience
    runs = guest.qmp("query-status")["running"]
    said = len(_log(guest))
    target = guest.launch("-incoming", "defer")
    try:
        target.qmp.start(60)
        uri = f"unix:{guest.dir / 'move'}"
        source, mark = guest.qmp_client, guest.qmp_client.mark()
        for qmp in source, target.qmp:
            _set_up(qmp, postcopy=postcopy, answers=True)
        target.qmp.cmd("migrate-incoming", uri=uri, exit_on_error=False)
        source.cmd("migrate", uri=uri)
        if postcopy:
            _wait(source, mark, "active", timeout=timeout)
            source.cmd("migrate-start-postcopy")
            _wait(source, mark, "postcopy-active", timeout=timeout)
        _wait(source, mark, "completed", timeout=timeout)
        _wait(target.qmp, 0, "completed", timeout=timeout)
        if runs:
            target.qmp.wait_event("RESUME", timeout=timeout)
    except (Closed, GuestError, QMPError, TimeoutError) as error:
        target.end()
        raise GuestError(f"{guest.name} does not move: {error}{guest.trouble()}") from None
    before = guest.live(target)
    try:
        info = before.qmp.cmd("query-migrate")
    finally:
        code = before.end()
    if code:
        raise GuestError(f"QEMU that {guest.name} has left ended with {code}{guest.trouble()}")
    return measured(_log(guest)[said:], info)


def cancel(guest, phase, timeout=60):
    """Begins to move a guest, and cancels that: in the phase "active", in which its memory
    goes there, or in "pre-switchover", in which it stands still. It goes on where it was."""
    timeout *= guest.patience
    target = guest.launch("-incoming", "defer")
    try:
        target.qmp.start(60)
        uri = f"unix:{guest.dir / 'move'}"
        source, mark = guest.qmp_client, guest.qmp_client.mark()
        # Too slow to end by itself.
        bandwidth = 1 << 20 if phase == "active" else BANDWIDTH
        for qmp in source, target.qmp:
            _set_up(qmp, answers=True, pauses=True, bandwidth=bandwidth)
        target.qmp.cmd("migrate-incoming", uri=uri, exit_on_error=False)
        source.cmd("migrate", uri=uri)
        _wait(source, mark, phase, timeout=timeout)
        source.cmd("migrate_cancel")
        event = source.wait_event("MIGRATION", lambda data: data["status"] in ENDED, mark, timeout)
        if event["data"]["status"] != "cancelled":
            raise GuestError(f"the migration is not cancelled: {source.cmd('query-migrate')}")
    finally:
        target.end()
    wait_for(lambda: guest.qmp("query-status")["running"], timeout, f"{guest.name} to go on")
    return phase


@dataclass
class Snapshot:
    """A guest's state in a file, and its root disk."""
    state: pathlib.Path
    disk: pathlib.Path


def save(guest, folder, timeout=120):
    """Saves a guest, which stands still from then on; a Snapshot in a folder."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    snapshot = Snapshot(folder / f"{guest.name}.state", folder / f"{guest.name}.qcow2")
    mark = guest.qmp_client.mark()
    _set_up(guest.qmp_client)
    guest.qmp("migrate", uri=f"file:{snapshot.state}")
    _wait(guest.qmp_client, mark, "completed", timeout=timeout * guest.patience)
    shutil.copy(guest.dir / "root.qcow2", snapshot.disk)
    return snapshot


def restore(guest, snapshot, timeout=120):
    """Ends the guest, and starts it again as it was saved."""
    guest.live(None).end()
    shutil.copy(snapshot.disk, guest.dir / "root.qcow2")
    guest.live(guest.launch("-incoming", "defer"))
    qmp = guest.qmp_client
    qmp.start(60)
    _set_up(qmp)
    qmp.cmd("migrate-incoming", uri=f"file:{snapshot.state}", exit_on_error=False)
    _wait(qmp, 0, "completed", timeout=timeout * guest.patience)
    qmp.wait_event("RESUME", timeout=timeout)
