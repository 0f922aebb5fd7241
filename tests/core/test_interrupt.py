"""Ctrl+C for synchronous agents, whose commands run in other threads."""

import os
import signal
import threading

import pytest

from anyshell import interruptible


async def test_ctrl_c_ends_commands_of_other_threads(driver, sleeper) -> None:
    program = driver(
        """
        from concurrent.futures import ThreadPoolExecutor
        from anyshell import interruptible
        shell = session()
        with ThreadPoolExecutor() as pool, interruptible():
            signal.signal(signal.SIGALRM, lambda *_: None)
            call = pool.submit(shell.run_sync, sys.argv[1], timeout=600)
            say('ready')
            try:
                call.result()
            except KeyboardInterrupt:
                say(call.result().cancelled)
        shell.close()
        """,
        sleeper.command,
    )
    assert program.line() == 'ready'
    await sleeper.started()
    program.process.send_signal(signal.SIGINT)

    assert program.line() == 'True'
    assert sleeper.pids == []


def test_the_former_handler_is_called_and_comes_back() -> None:
    called: list[int] = []
    former = signal.signal(signal.SIGINT, lambda number, _frame: called.append(number))
    try:
        mine = signal.getsignal(signal.SIGINT)
        with interruptible(), interruptible():
            os.kill(os.getpid(), signal.SIGINT)

        assert called == [signal.SIGINT]
        assert signal.getsignal(signal.SIGINT) is mine
    finally:
        signal.signal(signal.SIGINT, former)


def test_a_handler_that_ignores_goes_on_ignoring() -> None:
    former = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with interruptible():
            os.kill(os.getpid(), signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, former)


async def test_a_command_that_starts_after_a_ctrl_c_is_not_ended_by_it(shell) -> None:
    former = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with interruptible():
            async with shell() as session:
                os.kill(os.getpid(), signal.SIGINT)

                assert (await session.run('echo hi')).stdout == 'hi\n'
    finally:
        signal.signal(signal.SIGINT, former)


def test_other_threads_can_not_set_it_up() -> None:
    raised: list[RuntimeError] = []

    def work() -> None:
        try:
            with interruptible():
                pass
        except RuntimeError as error:
            raised.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(20)

    with pytest.raises(RuntimeError, match='must be entered in the main thread'):
        raise raised[0]
