"""python -m dgbook: see `dgbook.cli.main`."""

import sys

from dgbook.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
