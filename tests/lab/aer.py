# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Advanced Error Reporting of PCI Express: QEMU's monitor has a guest's qhca report errors."""

DEVICE = "/sys/bus/pci/drivers/qhca/0*"

# Seconds until the kernel has handled an error; a fatal one has a reset of the slot.
LONG = 120


def count(node, severity, name):
    """How many errors the guest's kernel has counted: severity is "correctable" or "nonfatal",
    and the name is the kernel's."""
    return int(node.out(f"awk '$1 == \"{name}\" {{print $2}}' {DEVICE}/aer_dev_{severity}"))


def recoveries(node):
    """How many times the kernel has recovered devices after errors that are not correctable."""
    return int(node.out("dmesg | grep -c 'AER: device recovery successful' || :"))


def inject(node, error, severity=None, name=None):
    """Has the device report an error by QEMU's name, and waits until the kernel has recovered
    from it unless it is correctable, and counted it. The kernel does not look at the device
    for a fatal error before it has reset the slot, and so counts none."""
    before, recovered = name and count(node, severity, name), recoveries(node)
    said = node.hmp(f"pcie_aer_inject_error {node.first_device['id']} {error}")
    assert said.startswith("OK"), said
    if severity != "correctable":
        node.wait_until("[ $(dmesg | grep -c 'AER: device recovery successful') "
                        f"-gt {recovered} ]", LONG, f"recovery from {error}")
    if name:
        node.wait_until(f"grep -qx '{name} {before + 1}' {DEVICE}/aer_dev_{severity}", LONG,
                        f"the count of {error}")
