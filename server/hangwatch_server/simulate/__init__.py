"""A made-up job of any size whose agents speak the real wire, to see server and pages at scale.

`programs` says what each rank calls, `machine` runs the calls until nobody can move, `telemetry`
tells it as agents would; `faults` chooses what goes wrong, `play` puts all of it on a clock, and
`agents` beats. No process of the job exists: what a rank does is said of it, never observed.
"""
