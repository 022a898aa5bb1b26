"""The scorecard: every program of `tests/programs` played for real, and what each tool said of it.

`playing` runs the cases on a stage, `peers` asks torch's own tools about the same jobs, `rows`
keeps what came out, `totals` counts it, `page` writes it. Not a test: a wrong verdict is a row.
"""
