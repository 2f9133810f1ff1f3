"""``python -m agcd.cli``."""

from agcd.cli import main

if __name__ == "__main__":  # and not where a worker process imports this again
    main()
