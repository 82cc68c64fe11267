# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Child processes that cannot outlive the program that started them."""

import atexit
import ctypes
import queue
import signal
import subprocess
import threading

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)
_requests = queue.Queue()
_children = set()
_lock = threading.Lock()
_thread = None


def _die_with_parent():
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    # A Ctrl-C since the fork was for the program that forked.
    if signal.signal(signal.SIGINT, signal.SIG_IGN) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _spawner():
    # The death signal fires when the *thread* that forked ends, so all
    # forks are made by this one, which lasts as long as the process.
    # A child begins as a copy of this thread, with Python's handler of Ctrl-C, whose
    # exception would end up in the child's standard error. So SIGINT is blocked until
    # the child has a handler, and perhaps a process group, of its own.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    while True:
        argv, kwargs, answer = _requests.get()
        try:
            answer.put(subprocess.Popen(argv, preexec_fn=_die_with_parent, **kwargs))
        except BaseException as error:
            answer.put(error)


def spawn(argv, **kwargs):
    """subprocess.Popen whose child is killed when this process ends."""
    global _thread
    with _lock:
        if _thread is None:
            _thread = threading.Thread(target=_spawner, daemon=True)
            _thread.start()
            atexit.register(stop_all)
    answer = queue.Queue()
    _requests.put((argv, kwargs, answer))
    child = answer.get()
    if isinstance(child, BaseException):
        raise child
    with _lock:
        _children.add(child)
    return child


def stop(child, timeout=60):
    """Ends a child at once and collects it."""
    if child.poll() is None:
        child.kill()
        child.wait(timeout)
    with _lock:
        _children.discard(child)


def stop_all():
    for child in list(_children):
        stop(child)
