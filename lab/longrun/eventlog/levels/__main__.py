"""``python -m longrun.eventlog.levels``: what each level survives, as a table. The code is 0, whatever it says."""

from longrun.eventlog.levels.subjects import LEVELS, rows, uncrashed


def main() -> None:
    """Print a row as soon as it is known: all of them take minutes."""
    for name in LEVELS:
        print(f"{name:<9} {'no crash':<13} {uncrashed(name)}", flush=True)
    for name, fault, text in rows():
        print(f"{name:<9} {fault:<13} {text}", flush=True)


if __name__ == "__main__":
    main()
