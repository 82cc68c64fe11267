# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The driver's devlink parameters, and reloads that apply them."""

import json


def device(node):
    """The handle of a guest's qhca device, which may have virtual functions."""
    return "pci/" + node.out("for f in /sys/bus/pci/drivers/qhca/0*; do "
                             "[ -e $f/physfn ] || basename $f; done")


def set_parameter(node, name, value, check=True):
    """Sets a parameter, which takes effect with the next reload."""
    return node.exec(f"devlink dev param set {device(node)} name {name} "
                     f"value {value} cmode driverinit", check=check)


def parameter(node, name):
    shown = json.loads(node.out(f"devlink -j dev param show {device(node)} name {name}"))
    (entry,) = shown["param"][device(node)]
    (value,) = entry["values"]
    assert value["cmode"] == "driverinit"
    return value["value"]


def reload(node):
    """Stops, resets and starts the device, and sets its interface up again."""
    node.exec(f"devlink dev reload {device(node)}", timeout=60)
    node.configure()


def geometry(node, caches):
    """{cache: (sets, blocks)} that the next reload applies."""
    return {cache: (parameter(node, f"{cache}_cache_sets"), parameter(node, f"{cache}_cache_blocks"))
            for cache in caches}


def set_geometry(node, **caches):
    """set_geometry(node, pt=(4, 2)): sets and blocks; in force afterwards."""
    for name, (sets, blocks) in caches.items():
        set_parameter(node, f"{name}_cache_sets", sets)
        set_parameter(node, f"{name}_cache_blocks", blocks)
    reload(node)
