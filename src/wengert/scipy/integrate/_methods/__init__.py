"""Methods of integration: their coefficients, their steps, and the systems that implicit ones solve."""
