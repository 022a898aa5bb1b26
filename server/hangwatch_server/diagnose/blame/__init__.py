"""Who holds the others up, in what condition, and how sure that is."""
