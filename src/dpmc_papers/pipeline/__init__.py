"""Jobs and what they store: planning, running, results, costs."""
