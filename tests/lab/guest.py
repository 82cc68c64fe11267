# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""One guest: boot it, run commands in it, watch and end it."""

import contextlib
import itertools
import os
import pathlib
import re
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass

from . import accel, disk, paths, process
from .agent import Agent, AgentError
from .qmp import QMP, Closed
from .script import script

_serial = itertools.count(1)

# How many times as long as other kernels one that looks for faults may take for
# anything; and MiB that it needs for what it keeps books on.
PATIENCE, BOOKS = 8, 512

# Has kernels look for writes to memory that is free, and those built to find faults
# for DMA mappings that are left behind.
WATCHFUL = "slub_debug=FZPU page_poison=1 init_on_free=1 dma_debug_entries=65536"

# What bash does in a guest between two looks. It reads what nobody writes to, as `sleep`
# would be a process each time, which takes longer to start than the pause lasts.
PAUSE = "read -rt 0.03 <> /run/pause || :"

# Without the HPET: Linux stops it when the local APIC's timer is there, but QEMU's goes on
# ticking, 250 times a second, and wakes its main loop, in a guest at rest as well.
MACHINE = "q35,hpet=off"


# In a guest's QEMU arguments: 0 or 1, by turns in the QEMUs that the guest moves between, for
# what only one of them can have.
PLACE = "%place%"


class GuestError(Exception):
    """The guest or a command in it failed; the text describes the failure."""


@dataclass
class Result:
    """The result of a command in the guest."""
    command: str
    code: int
    out: str
    err: str

    @property
    def ok(self):
        return self.code == 0

    def __str__(self):
        return f"`{self.command}` ended with {self.code}\n{self.out}{self.err}"


def wait_for(condition, timeout, what, interval=0.05):
    """Polls a condition until it is true; returns what it returned."""
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {timeout} s")
        time.sleep(interval)


@contextlib.contextmanager
def content(*nodes):
    """Within this context no QEMU may end, and neither QEMU nor a kernel may complain."""
    yield
    for node in nodes:
        assert node.running, f"QEMU of {node.name} ended: {node.trouble()}"
        complaints = node.new_complaints()
        assert not complaints, f"kernel or QEMU of {node.name}: {complaints}"


# Guests that run, and what was found in those that ended.
_running = []
_left = []


def unheard():
    """Complaints of all guests' kernels and QEMUs that no caller has received yet.

    The list includes guests that have ended since; each line has the guest's name. A
    complaint that this function returns, or that fails content(), is reported once.
    """
    lines = [f"{g.name}: {line}" for g in _running for line in g.new_complaints()]
    lines, _left[:] = _left + lines, []
    return lines


def note_leaks(*nodes):
    """Has unheard() report what guests that are about to end have leaked."""
    for node in nodes:
        if node.running:
            _left.extend(f"{node.name}: {line}" for line in node.leaks().splitlines())


class Background:
    """A command that runs in the guest while the caller continues."""

    def __init__(self, guest, command, pid):
        self.guest = guest
        self.command = command
        self.pid = pid
        self.result = None

    def poll(self):
        """The Result once it has ended, else None."""
        if self.result is None:
            try:
                status = self.guest.agent.status(self.pid)
            except (AgentError, OSError) as error:
                raise GuestError(f"{self.guest.name}: `{self.command}`: {error}"
                                 f"{self.guest.trouble()}") from None
            if status is not None:
                code, out, err = status
                self.result = Result(self.command, code, out.decode(errors="replace"),
                                     err.decode(errors="replace"))
        return self.result

    def wait(self, timeout=60, check=True):
        """Waits for the end; a command that takes too long is killed."""
        timeout *= self.guest.patience
        deadline = time.monotonic() + timeout
        pause = 0.004
        while self.poll() is None:
            if not self.guest.running:
                raise GuestError(f"{self.guest.name}: QEMU ended during `{self.command}`")
            if time.monotonic() > deadline:
                self.kill()
                late = self._after_kill()
                raise GuestError(f"{self.guest.name}: `{self.command}` took longer than "
                                 f"{timeout} s and was killed\n{late}{self.guest.trouble()}")
            time.sleep(pause)
            pause = min(pause * 1.5, 0.1)
        if check and not self.result.ok:
            raise GuestError(f"{self.guest.name}: {self.result}{self.guest.trouble()}")
        return self.result

    def _after_kill(self):
        try:
            wait_for(lambda: self.poll() is not None, 30, "end of a killed command")
            return self.result.out + self.result.err
        except (TimeoutError, GuestError):
            return "(it cannot be killed)\n"

    def kill(self, sig="KILL"):
        """Sends a signal to the command and to all processes that it has started."""
        pid = self.guest.agent.exec(["/bin/kill", f"-{sig}", "--", f"-{self.pid}"])
        wait_for(lambda: self.guest.agent.status(pid) is not None, 60, "kill")


@dataclass
class Life:
    """A QEMU that a guest runs in, or moves to."""
    child: subprocess.Popen
    agent: Agent
    qmp: QMP
    place: int                  # what PLACE stands for

    def end(self):
        """Ends QEMU if it still runs; returns its exit code."""
        if self.child.poll() is None:
            # Not killed outright, so that sanitizers can report.
            try:
                self.child.send_signal(signal.SIGTERM)
                self.child.wait(10)
            except subprocess.TimeoutExpired:
                pass
        process.stop(self.child)
        self.qmp.close()
        self.agent.close()
        return self.child.returncode


class Guest:
    """A guest on a machine of type q35.

    All timeouts are for a usual kernel; for a slow one they are `patience` times
    as long.

    args      more QEMU arguments; see PLACE
    append    more kernel arguments
    kernel    'default', 'backports', 'debug', 'linux' or a release
    files     {name: host path} to find under /run/qhca/ in the guest
    env       environment of QEMU
    prefix    words before QEMU's command line, of a program that executes it (nsenter)
    build     the folder with the QEMU and the payload, of another checkout than this one
    movable   the root disk is a file that another QEMU finds as well (see move.py)
    """

    def __init__(self, name="a", *, kernel="default", memory=1024, cpus=1, args=(),
                 append="", files=None, qemu=None, accel_kind=None, console=None,
                 log_dir=None, env=None, prefix=(), payload=True, build=paths.BUILD,
                 movable=False):
        self.name = name
        self.release = paths.kernel_release(kernel)
        slow = paths.is_slow(self.release)
        self.patience = PATIENCE if slow else 1
        self.memory = memory + BOOKS if slow else memory
        self.cpus = cpus
        self.args = [str(a) for a in args]
        self.append = append
        self.files = dict(files or {})
        self.build = pathlib.Path(build)
        self.qemu = str(qemu or paths.qemu(self.build))
        self.accel = accel.options(self.qemu, accel_kind, cpus)
        self.clock = accel.kernel_arguments(self.qemu, accel_kind)
        self.console = console
        self.payload = payload
        self.movable = movable
        self.env = dict(os.environ, **(env or {}))
        self.prefix = list(prefix)
        self.log_dir = pathlib.Path(log_dir or paths.LOGS / "guest" / f"{os.getpid()}-{next(_serial)}")
        self.log_dir.mkdir(parents=True, exist_ok=True)
        self.console_log = self.log_dir / f"{name}.console"
        self.qemu_log = self.log_dir / f"{name}.qemu"
        self.dir = None
        self.child = None
        self.agent = None
        self.qmp_client = None
        self.place = 0
        self._mark = 0
        self._heard = {}            # numbers of reported complaints, by their source
        self._own_spaces = 0

    # -- life -------------------------------------------------------------

    def _payload_image(self):
        """Makes the second disk, which has what a checkout built for this guest."""
        stage = self.dir / "payload"
        (stage / "modules").mkdir(parents=True)
        (stage / "bin").mkdir()
        if self.payload:
            for module in paths.modules(self.release, self.build):
                shutil.copy(module, stage / "modules")
            if provider := paths.provider(self.build):
                shutil.copytree(provider, stage / "provider", symlinks=True)
            if programs := paths.programs(self.build):
                shutil.copytree(programs, stage / "bin", dirs_exist_ok=True)
        if paths.kernel_lists(self.release):
            shutil.copytree(paths.kernel_lists(self.release), stage / "kernel" / self.release)
        for name, path in self.files.items():
            target = stage / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if pathlib.Path(path).is_dir():
                shutil.copytree(path, target, dirs_exist_ok=True)
            else:
                shutil.copy(path, target)
        size = sum(f.stat().st_size + 4096 for f in stage.rglob("*") if f.is_file())
        image = self.dir / "payload.img"
        subprocess.run(["/sbin/mke2fs", "-q", "-t", "ext4", "-O", "^has_journal", "-m", "0",
                        "-E", "root_owner=0:0", "-d", str(stage), str(image),
                        f"{size * 5 // 4 // 1024 + 4096}k"],
                       check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        shutil.rmtree(stage)
        return image

    def _modules_disk(self):
        image = paths.modules_disk(self.release)
        return ["-drive", f"if=none,id=modules,file={image},format=raw,readonly=on",
                "-device", "virtio-blk-pci,drive=modules,serial=qhca-modules"] if image else []

    def _root_drive(self):
        """The root disk, whose changes are dropped in the end."""
        if self.movable:
            return f"if=none,id=root,file={self.dir / 'root.qcow2'},format=qcow2,cache=unsafe"
        return f"if=none,id=root,file={paths.guest_env()['image']},format=raw,snapshot=on"

    def command_line(self, agent_fd, qmp_fd):
        append = self.append
        # Two regions of the same page, which are allowed, are a fault to it.
        if paths.is_slow(self.release) and "dma_debug" not in append:
            append += " dma_debug=off"
        # no_timer_check: the kernel gives the timer a few ticks of a busy host
        # to show that it works, and panics.
        # What follows `nokaslr` saves a seventh of the time that a guest takes to boot.
        append = (f"console=ttyS0 no_timer_check quiet loglevel=5 panic=0 no5lvl mitigations=off "
                  f"nokaslr lsm=capability cryptomgr.notests init_on_alloc=0 "
                  f"tsc=reliable {self.clock} random.trust_cpu=1 "
                  f"qhca.name={self.name} qhca.console={'shell' if self.console else 'agent'} "
                  f"{append}")
        argv = [self.qemu, "-name", self.name, "-nodefaults", "-no-user-config",
                "-machine", MACHINE, *self.accel, "-m", str(self.memory), "-smp", str(self.cpus),
                "-display", "none",
                "-kernel", paths.kernel(self.release),
                "-initrd", paths.initramfs(self.release), "-append", append,
                "-drive", self._root_drive(),
                "-device", "virtio-blk-pci,drive=root,serial=qhca-root",
                "-drive", f"if=none,id=payload,file={self.dir / 'payload.img'},format=raw,readonly=on",
                "-device", "virtio-blk-pci,drive=payload,serial=qhca-payload",
                "-chardev", f"socket,id=qmp,fd={qmp_fd}", "-mon", "chardev=qmp,mode=control",
                "-device", "virtio-serial-pci,max_ports=2", "-chardev", f"socket,id=agent,fd={agent_fd}",
                "-device", "virtserialport,id=agentport,chardev=agent,name=org.qemu.guest_agent.0",
                "-device", "virtio-rng-pci"]
        if self.console == "stdio":
            argv += ["-chardev", f"stdio,id=console,mux=on,signal=off,logfile={self.console_log}",
                     "-serial", "chardev:console", "-mon", "chardev=console,mode=readline"]
        else:
            # Another QEMU that the guest moves to goes on with the file.
            argv += ["-chardev", f"file,id=console,path={self.console_log},append=on",
                     "-serial", "chardev:console"]
        # Last, so that PCI addresses are the same with any kernel.
        return argv + self.args + self._modules_disk()

    def launch(self, *more):
        """Starts a QEMU with the guest's command line and more arguments; a Life."""
        agent, agent_far = socket.socketpair()
        qmp, qmp_far = socket.socketpair()
        ends = agent, agent_far, qmp, qmp_far
        place = self.place if self.child is None else 1 - self.place
        try:
            argv = self.prefix + self.command_line(agent_far.fileno(), qmp_far.fileno()) + list(more)
            argv = [word.replace(PLACE, str(place)) for word in argv]
            (self.log_dir / f"{self.name}.command").write_text(shlex.join(argv) + "\n")
            with open(self.qemu_log, "ab") as log:
                # In a group of its own it does not end by the terminal's Ctrl-C before
                # QEMU has reported it to this program.
                child = process.spawn(
                    argv, pass_fds=(agent_far.fileno(), qmp_far.fileno()), env=self.env,
                    process_group=None if self.console == "stdio" else 0,
                    stdin=None if self.console == "stdio" else subprocess.DEVNULL,
                    stdout=None if self.console == "stdio" else log, stderr=log)
        except BaseException:
            for end in ends:
                end.close()
            raise
        agent_far.close()
        qmp_far.close()
        return Life(child, Agent(agent, self.patience), QMP(qmp), place)

    def live(self, life):
        """The guest is where that QEMU is, or nowhere; returns the Life that it had."""
        before = Life(self.child, self.agent, self.qmp_client, self.place)
        self.child, self.agent, self.qmp_client = (
            (life.child, life.agent, life.qmp) if life else (None, None, None))
        self.place = life.place if life else 0
        return before

    def start(self):
        """Starts QEMU; returns without waiting for the guest."""
        assert self.child is None, f"{self.name} runs already"
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix=f"qhca-{self.name}-"))
        try:
            self._payload_image()
            if self.movable:
                disk.overlay(self.dir / "root.qcow2", paths.guest_env()["image"])
            for log in self.console_log, self.qemu_log:
                log.write_bytes(b"")
            self._heard = {}
            self.live(self.launch())
            _running.append(self)
            self.qmp_client.start(60)
            self._mark = 0
        except Closed as error:
            text = self.qemu_log.read_text(errors="replace")
            self.close()
            raise GuestError(f"{self.name}: QEMU does not start: {text.strip() or error}") from None
        except BaseException:
            self.close()
            raise
        return self

    def wait_ready(self, timeout=180):
        """Waits until the guest accepts commands."""
        try:
            self.qmp_client.wait_event("VSERPORT_CHANGE", {"open": True}, self._mark,
                                       timeout * self.patience)
            self.agent.cmd("guest-ping", timeout=timeout)
            if paths.finds_faults(self.release):
                self._own_spaces = self._spaces()
        except (TimeoutError, Closed, AgentError) as error:
            raise GuestError(f"{self.name} is not up after {timeout} s: {error}{self.trouble()}") from None
        return self

    def boot(self, timeout=180):
        return self.start().wait_ready(timeout)

    @property
    def running(self):
        return self.child is not None and self.child.poll() is None

    def held(self):
        """QEMU's own memory, in KiB: without the guest's memory,
        which fills as the guest uses it, and without translated code."""
        total = 0
        with open(f"/proc/{self.child.pid}/smaps", encoding="ascii", errors="replace") as f:
            for line in f:
                if area := re.match(r"([0-9a-f]+)-([0-9a-f]+) (\S+)", line):
                    size = int(area[2], 16) - int(area[1], 16)
                    own = size < self.memory << 20 and "x" not in area[3]
                elif own and line.startswith("Rss:"):
                    total += int(line.split()[1])
        return total

    def reconnect_agent(self):
        """Connects to the guest's agent anew, as if its port had been closed on the host.

        When Linux 7.3 suspends the port it takes the host's end for closed, and it asks for
        the truth before it has room for the answer. The agent hears nothing from then on.
        """
        path = tempfile.mktemp(prefix="agent-", dir=self.dir)
        backend = {"addr": {"type": "unix", "data": {"path": path}}, "server": True, "wait": False}
        self.qmp("chardev-change", id="agent", backend={"type": "socket", "data": backend})
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(path)
        self.agent.use(sock)

    def reset(self, timeout=180):
        """Resets the machine, as its button does, and waits until it is up again."""
        self._mark = self.qmp_client.mark()
        self.qmp("system_reset")
        self.qmp_client.wait_event("RESET", None, self._mark, 30)
        self.agent.unsync()
        return self.wait_ready(timeout)

    def powerdown(self, timeout=30):
        """Shuts the guest down from within, and waits until QEMU has ended."""
        try:
            self.agent.exec(["/bin/sh", "-c", "sync; echo o > /proc/sysrq-trigger"])
        except (AgentError, TimeoutError, OSError):
            pass
        try:
            self.child.wait(timeout * self.patience)
        except subprocess.TimeoutExpired:
            raise GuestError(f"{self.name} does not power down{self.trouble()}") from None
        return self.close()

    def kill(self):
        """Kills QEMU, as if the host had lost the machine."""
        process.stop(self.child)

    def wait_exit(self, timeout=30):
        """Waits until QEMU ends by itself; returns its exit code."""
        return self.child.wait(timeout)

    def close(self):
        """Ends QEMU if it still runs, and removes its files. Returns its exit code."""
        code = None
        if self.child is not None:
            code = self.live(None).end()
        if self in _running:
            _left.extend(f"{self.name}: {line}" for line in self.new_complaints())
            _running.remove(self)
        if self.dir is not None:
            shutil.rmtree(self.dir, ignore_errors=True)
            self.dir = None
        return code

    def __enter__(self):
        if self.child is None:
            self.boot()
        return self

    def __exit__(self, *_):
        self.close()

    # -- commands ---------------------------------------------------------

    def spawn(self, command, stdin=None):
        """Starts a shell command (or argument list) in a session of its own."""
        if isinstance(command, str):
            argv, text = ["/bin/bash", "-c", command], command
        else:
            argv, text = [str(c) for c in command], shlex.join(str(c) for c in command)
        if isinstance(stdin, str):
            stdin = stdin.encode()
        try:
            pid = self.agent.exec(["/usr/bin/setsid", *argv], stdin)
        except (TimeoutError, AgentError, OSError) as error:
            raise GuestError(f"{self.name}: cannot run `{text}`: {error}{self.trouble()}") from None
        return Background(self, text, pid)

    def exec(self, command, timeout=60, check=True, stdin=None):
        """Runs a command to its end; GuestError if it fails and `check`."""
        return self.spawn(command, stdin).wait(timeout, check)

    def out(self, command, timeout=60):
        """The standard output of a command that must succeed, stripped."""
        return self.exec(command, timeout).out.strip()

    def wait_until(self, command, timeout=60, what=None):
        """Waits, in the guest, until a shell condition holds."""
        loop = f"until {{ {command} ; }} > /dev/null 2>&1; do {PAUSE}; done"
        try:
            self.exec(loop, timeout)
        except GuestError as error:
            raise TimeoutError(f"{self.name}: {what or command}: not within {timeout} s\n{error}") from None

    def write(self, path, data, mode=None):
        """Writes a file in the guest."""
        self.agent.write_file(path, data.encode() if isinstance(data, str) else data)
        if mode is not None:
            self.exec(["/bin/chmod", f"{mode:o}", path])

    def push(self, local, path, mode=0o755):
        self.write(path, pathlib.Path(local).read_bytes(), mode)

    def qmp(self, command, **arguments):
        return self.qmp_client.cmd(command, **arguments)

    def adapter_counters(self):
        """What the adapter of its one qhca counts: {name: value}"""
        (info,) = self.qmp("query-qhca")
        return {counter["name"]: counter["value"] for counter in info["adapter"]}

    def hmp(self, line):
        return self.qmp_client.cmd_raw("human-monitor-command", {"command-line": line})

    # -- what it says -----------------------------------------------------

    def console_text(self):
        if not self.console_log.exists():
            return ""
        return self.console_log.read_text(errors="replace")

    def wait_console(self, pattern, timeout=60):
        return wait_for(lambda: re.search(pattern, self.console_text()), timeout * self.patience,
                        f"{self.name}: {pattern!r} on the console")

    def kernel_complaints(self):
        """Lines on the console by which a kernel reports trouble."""
        bad = re.compile(r"BUG[: ]|WARNING:|Oops|Call Trace|general protection|"
                         r"Kernel panic|UBSAN|KASAN|lockdep|blocked for more than|soft lockup|"
                         r"pagealloc:")
        return [line for line in self.console_text().splitlines() if bad.search(line)]

    def qemu_complaints(self):
        """Lines in its log by which a sanitized QEMU reports trouble. It goes on after
        most of it."""
        bad = re.compile(r": runtime error: |ERROR: (Address|Leak)Sanitizer")
        text = self.qemu_log.read_text(errors="replace") if self.qemu_log.exists() else ""
        return [line for line in text.splitlines() if bad.search(line)]

    def new_complaints(self):
        """Complaints of the kernel and of QEMU that no caller has received yet."""
        new = []
        for name, lines in ("kernel", self.kernel_complaints()), ("QEMU", self.qemu_complaints()):
            new += lines[self._heard.get(name, 0):]
            self._heard[name] = len(lines)
        return new

    def _spaces(self, limit=None):
        """The number of address spaces that belong to no process. Waits up to ten
        seconds until it is at most the limit."""
        args = () if limit is None else (limit,)
        return int(self.out(script("lab/scripts/address-spaces.sh", *args)))

    def leaks(self):
        """The report of the kernel's leak detector, if it has one, about our modules.

        It looks twice, and not at what is younger than five seconds. Nor does it
        see what watches an address space, which it knows from the page tables: if
        that is left behind, so is the address space.
        """
        if not paths.finds_faults(self.release):
            return ""
        found = self.out(script("lab/scripts/scan-leaks.sh"), timeout=600)
        objects = [o for o in re.split(r"^(?=unreferenced object)", found, flags=re.M)
                   if "qhca" in o]
        spaces = self._spaces(self._own_spaces) - self._own_spaces
        if spaces > 0:
            objects.append(f"{spaces} address spaces that no process has\n")
        return "".join(objects)

    def trouble(self):
        """The last lines of the logs, for the text of an error."""
        parts = [""]
        if self.child is not None and not self.running:
            parts.append(f"QEMU ended with {self.child.returncode}")
        for path in (self.qemu_log, self.console_log):
            if path.exists():
                tail = path.read_text(errors="replace").strip().splitlines()[-25:]
                if tail:
                    parts.append(f"-- {path} --")
                    parts += tail
        return "\n".join(parts)
