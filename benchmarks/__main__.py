"""`python -m benchmarks`."""

import sys

try:
    from benchmarks.cli.main import main
except ModuleNotFoundError as missing:  # another Python than the environment's
    todo = "run `make setup` and use .venv/bin/python, or install this checkout"
    print(f"error: the package {missing.name} is missing from {sys.executable}; {todo}", file=sys.stderr)
    sys.exit(2)

sys.exit(main())
