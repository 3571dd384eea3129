"""What Python calls where there is native code: entries, what they ask of arguments, what runs when they are called."""
