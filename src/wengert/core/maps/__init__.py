"""Index maps: where elements of one array are in another, as numbers that compose."""
