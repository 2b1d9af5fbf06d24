"""From an exception to an entry: prepared, admitted or counted, announced."""
