# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The rings of the Ethernet queue go while the stack sends as fast as it can.

The guest's kernel fills pages and objects that are freed, and looks at them when
they are used again: a frame that is posted into a ring which has been given back
is reported, or ends in a panic. Without FULL=1 interop/test_matrix.py has a flood, too.
"""

import pytest

from lab import content, script
from lab.pair import Node

# A panic ends QEMU, so that nobody waits for the guest.
POISON = "slub_debug=FZPU page_poison=1 init_on_free=1 panic=-1"
PEER = "10.77.0.9"         # nobody has this address
ROUNDS = 10


@pytest.mark.full
@pytest.mark.parametrize("kernel", ["default", "backports"])
def test_flood(kernel):
    """Frames end in a hub, behind a port that nobody is connected to."""
    node = Node("a", "qhca", 1, netdevs=["hubport,hubid=0"], cpus=2, append=POISON, kernel=kernel,
                args=["-no-reboot", "-netdev", "hubport,hubid=0,id=sink"])
    with node, content(node):
        floods = [node.spawn(script("guest/scripts/flood.sh", PEER)) for _ in range(3)]
        done = node.exec(script("guest/scripts/ethernet-operations.sh", ROUNDS, PEER),
                         check=False, timeout=180 * ROUNDS)
        assert done.ok, done
        for flood in floods:
            assert flood.poll() is None, "a sender ended"
            flood.kill()
            flood.wait(60, check=False)
        # What the rings left behind is looked at when it is used again.
        node.exec("rmmod qhca_ib qhca")
        node.exec("echo 3 > /proc/sys/vm/drop_caches; head -c 300M /dev/zero > /dev/shm/all; rm /dev/shm/all",
                  timeout=120)
        assert node.leaks() == ""
