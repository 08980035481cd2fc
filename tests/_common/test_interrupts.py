"""Signals wait for the end of what must not be interrupted, and no longer."""

import os
import signal
import threading

import pytest

from relae._common.interrupts import interrupt, uninterrupted


@pytest.fixture
def handled():
    before = signal.signal(signal.SIGUSR1, interrupt)
    yield
    signal.signal(signal.SIGUSR1, before)


def send():
    os.kill(os.getpid(), signal.SIGUSR1)


@pytest.mark.usefixtures("handled")
def test_a_signal_interrupts_at_once_or_after_the_block():
    done = []

    def work():
        with uninterrupted():
            with uninterrupted():
                send()
                done.append("inside")
            done.append("still inside")
        done.append("never")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["inside", "still inside"]
    with pytest.raises(KeyboardInterrupt):
        send()
    with uninterrupted():  # nothing is left of the signals before
        pass


@pytest.mark.usefixtures("handled")
def test_an_error_in_the_block_gives_way_to_the_signal():
    with pytest.raises(KeyboardInterrupt) as raised, uninterrupted():
        raise ValueError(send())
    assert isinstance(raised.value.__context__, ValueError)


@pytest.mark.usefixtures("handled")
def test_a_block_in_another_thread_keeps_no_signal_from_this_one():
    entered, leave = threading.Event(), threading.Event()

    def hold():
        with uninterrupted():
            entered.set()
            leave.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    entered.wait(30)
    try:
        with pytest.raises(KeyboardInterrupt):
            send()
    finally:
        leave.set()
        thread.join()
