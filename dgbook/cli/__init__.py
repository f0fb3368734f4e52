"""The command line, python -m dgbook: options, runs, and a file per family."""
