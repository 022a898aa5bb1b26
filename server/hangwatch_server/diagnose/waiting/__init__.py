"""Who waits for whom: the graph of ranks and pending operations, its roots and the ways to them."""
