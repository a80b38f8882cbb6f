"""The panels that pictures of a comparison are made of: a file a kind, and what they share."""
