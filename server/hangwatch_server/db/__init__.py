"""Everything durable: the only place with SQL, one function per question. Not for any decision."""
