"""What a model reads, to the letter."""

import pytest

from anyshell import output

CUT = '[... output truncated, showing last {} chars]\n'


@pytest.mark.parametrize(
    ('stdout', 'stderr', 'text'),
    [
        ('', '', ''),
        ('a\n', '', '[stdout]\na\n'),
        ('', 'b\n', '[stderr]\nb\n'),
        ('a\n', 'b\n', '[stdout]\na\n\n[stderr]\nb\n'),
        ('a', 'b', '[stdout]\na\n[stderr]\nb'),
        ('\n', '', '[stdout]\n\n'),
    ],
)
def test_only_streams_with_output_have_a_section(stdout, stderr, text) -> None:
    assert output.sections(stdout, stderr) == text


@pytest.mark.parametrize(
    ('text', 'limit', 'arguments', 'shown'),
    [
        ('12345', 5, {}, '12345'),
        ('12345', 4, {}, f'{CUT.format(4)}2345'),
        ('12345', 1, {}, f'{CUT.format(1)}5'),
        ('12345', 0, {}, CUT.format(0)),
        ('12345', 9, {'dropped': True}, f'{CUT.format(9)}12345'),
    ],
)
def test_the_tail_is_kept_under_a_line_that_says_so(text, limit, arguments, shown) -> None:
    assert output.cut(text, limit, **arguments) == shown


def run_result(stdout='', stderr='', *, exit_code=0, limit=100, **rest) -> str:
    return output.run_result(stdout, stderr, exit_code=exit_code, limit=limit, **rest)


@pytest.mark.parametrize(
    ('text', 'expected'),
    [
        (run_result(), '(no output)'),
        (run_result(exit_code=1), '(no output)\n[exit code: 1]'),
        (run_result('a\n'), '[stdout]\na\n'),
        (run_result('a\n', 'b\n', exit_code=2), '[stdout]\na\n\n[stderr]\nb\n\n[exit code: 2]'),
        (run_result('a', exit_code=137), '[stdout]\na\n[exit code: 137]'),
        (run_result('a', 'b', limit=3), f'{CUT.format(3)}]\nb'),
        (run_result('a', exit_code=1, limit=1), f'{CUT.format(1)}a\n[exit code: 1]'),
        (
            run_result(exit_code=None, timed_out=30),
            '[Command timed out after 30.0s]',
        ),
        (
            run_result('part\n', exit_code=None, timed_out=0.5),
            '[stdout]\npart\n\n[Command timed out after 0.5s]',
        ),
        (run_result(exit_code=None, cancelled=True), '[Command cancelled]'),
        (run_result(exit_code=2, dropped=True), f'{CUT.format(100)}\n[exit code: 2]'),
        (
            run_result('', 'e\n', exit_code=None, cancelled=True),
            '[stderr]\ne\n\n[Command cancelled]',
        ),
        (
            run_result('a\n', note='[advice]', exit_code=1),
            '[stdout]\na\n\n[advice]\n[exit code: 1]',
        ),
        (run_result(note='[advice]'), '(no output)\n[advice]'),
    ],
)
def test_a_run_reads_so(text, expected) -> None:
    assert text == expected


def test_a_started_command_reads_so() -> None:
    assert output.started("echo 'hi'", 'j1') == 'Started background command: "echo \'hi\'"\nID: j1'


@pytest.mark.parametrize(
    ('text', 'expected'),
    [
        (
            output.status('', '', exit_code=None, limit=9, dropped=False),
            '[status: running]\n(no output yet)',
        ),
        (
            output.status('', '', exit_code=0, limit=9, dropped=False),
            '[status: finished]\n[exit code: 0]\n(no output yet)',
        ),
        (
            output.status('a\n', 'b\n', exit_code=None, limit=99, dropped=False),
            '[status: running]\n[stdout]\na\n\n[stderr]\nb\n',
        ),
        (
            output.status('a\n', '', exit_code=143, limit=99, dropped=True),
            f'[status: finished]\n[exit code: 143]\n{CUT.format(99)}[stdout]\na\n',
        ),
        (
            output.status('', '', exit_code=None, limit=9, dropped=False, empty='(no new output)'),
            '[status: running]\n(no new output)',
        ),
        (
            output.stopped('sleep 9', '', '', exit_code=143, limit=9, dropped=False),
            "[stopped: 'sleep 9']\n[exit code: 143]\n(no output)",
        ),
        (
            output.stopped('x', 'a\n', '', exit_code=None, limit=99, dropped=False),
            "[stopped: 'x']\n[stdout]\na\n",
        ),
    ],
)
def test_a_job_reads_so(text, expected) -> None:
    assert text == expected


def test_a_command_that_goes_on_says_so_first_and_what_to_call_next() -> None:
    text = output.moved_to_background(
        'a\n', '', command_id='j2', seconds=5, limit=99, dropped=False
    )

    assert text == (
        '[status: running] The command is still running after 5.0s and goes on in the background; it has not failed.\n'
        'ID: j2\n'
        "Next: check_command(command_id='j2') for its output and exit code, "
        "or stop_command(command_id='j2') to end it.\n"
        '[stdout]\na\n'
    )


def test_a_command_that_goes_on_without_output_shows_none() -> None:
    text = output.moved_to_background('', '', command_id='j2', seconds=5, limit=9, dropped=False)

    assert text.endswith("or stop_command(command_id='j2') to end it.")


@pytest.mark.parametrize(
    ('known', 'which'),
    [
        ((), 'start_command has not been called yet, so there are none.'),
        (('j1', 'j3'), 'Known IDs: j1, j3.'),
    ],
)
def test_an_unknown_id_names_those_that_are_known(known, which) -> None:
    text = output.unknown_command_id('j9', known)

    assert text == f"[Error: unknown command ID 'j9']\n{which}"


@pytest.mark.parametrize(
    ('met', 'running', 'line'),
    [
        (True, True, '[ready: port:80]'),
        (True, False, '[ready: port:80]'),
        (False, True, '[not ready: port:80 has not come yet]'),
        (False, False, '[not ready: the command ended before port:80 came]'),
    ],
)
def test_a_wait_says_whether_it_came(met, running, line) -> None:
    assert output.waited('port:80', met=met, running=running) == line


def test_a_listing_has_a_line_for_each_job() -> None:
    assert output.listing([]) == '(no background commands)'
    rows = [('j1', 'sleep 9', 4.6, None), ('j2', 'true', 1, 0), ('j3', 'cat', 1, 'lost')]
    assert output.listing(rows) == (
        "j1: running for 5s: 'sleep 9'\nj2: finished, exit code 0: 'true'\nj3: ended and lost: 'cat'"
    )


@pytest.mark.parametrize(
    ('raw', 'shown'),
    [
        ('plain\n', 'plain\n'),
        ('\x1b[31mred\x1b[0m\n', 'red\n'),
        ('a\r\nb\r\n', 'a\nb\n'),
        (' 10%\r 50%\r100%\n', '100%\n'),
        ('long line\rshort\n', 'shortline\n'),
        ('long line\r\x1b[Kshort\n', 'short\n'),
        ('\x1b[2K\rdone', 'done'),
        ('\x1b]0;title\x07text', 'text'),
        ('\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\', 'link'),
        ('\x1b(Btext', 'text'),
        ('ab\b\bcd', 'cd'),
        ('\bx', 'x'),
        ('N\bNA\bA', 'NA'),
        ('a' * 50_000 + '\b' * 50_000 + 'x', 'x'),
        ('é\r日本\n', '日本\n'),
    ],
)
def test_clean_shows_what_a_terminal_would(raw, shown) -> None:
    assert output.clean(raw) == shown
