"""Tests that raise signals find Python's own handlers, however the tests were started."""

import signal

import pytest


@pytest.fixture(autouse=True)
def interruptible():
    """A shell that starts something in the background has it ignore Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
