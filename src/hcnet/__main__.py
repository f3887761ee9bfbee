"""``python -m hcnet``: the same as the command ``hcnet``."""

import sys

from hcnet.cli import main

if __name__ == "__main__":
    sys.exit(main())
