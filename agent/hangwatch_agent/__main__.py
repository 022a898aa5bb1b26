"""`python -m hangwatch_agent`: the `hangwatch` command of this very installation."""

from hangwatch_agent.cli import main

if __name__ == "__main__":
    main()
