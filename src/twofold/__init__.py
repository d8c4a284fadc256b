"""Two networks, unlabelled data, and why it does not collapse."""
