"""``python -m hcnet``: the same as the command ``hcnet``."""

import signal
import sys


def start() -> int:
    """Run the command.  Ctrl-C before and after it leaves nothing to say."""
    listening = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if listening:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from hcnet.cli import main

    code = main()
    # An interrupt in code that a library has as text marks the process: if Python has run a module,
    # it would end by SIGINT, whatever the exit code.  The next code that is text takes the mark
    # away.
    exec("")
    return code


if __name__ == "__main__":
    sys.exit(start())
