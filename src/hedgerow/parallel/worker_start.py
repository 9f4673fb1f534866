# SPDX-License-Identifier: Apache-2.0
"""Loaded by every worker that this machine starts: Ctrl-C is for the process that started it, which then ends it."""

import signal
import threading

if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
