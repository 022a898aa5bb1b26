"""What was called at the same place of a group by its members, and who differs from whom."""
