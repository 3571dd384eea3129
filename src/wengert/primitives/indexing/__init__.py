"""Parts of arrays, and elements at places of them."""
