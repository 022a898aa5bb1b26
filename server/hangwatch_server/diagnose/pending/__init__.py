"""Which operations are pending, entered by somebody and not finished: one module per kind."""
