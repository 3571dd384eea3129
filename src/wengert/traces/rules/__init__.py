"""Rules of users: functions with derivatives of their own, and calls of them."""
