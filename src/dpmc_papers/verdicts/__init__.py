"""Published claims, judged against our results."""
