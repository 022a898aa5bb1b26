"""The heart: one small loop in which board, detection, diagnosis, captures and incidents meet.

The loop looks at each job on the board; `view.Watch` answers what the doors ask. No rule of
detection or diagnosis lives here.
"""
