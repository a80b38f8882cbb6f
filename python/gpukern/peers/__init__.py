"""One small adapter for each contender; imported only when it takes part in a comparison."""
