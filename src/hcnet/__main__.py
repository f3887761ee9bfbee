"""``python -m hcnet``: the same as the command ``hcnet``."""

import signal
import sys


def start() -> int:
    """Run the command.  Ctrl-C before and after it leaves nothing to say."""
    listening = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if listening:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from hcnet.cli import main

    if listening:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return main()
    finally:
        if listening:
            signal.signal(signal.SIGINT, signal.SIG_IGN)


if __name__ == "__main__":
    sys.exit(start())
