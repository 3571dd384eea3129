"""Kernels: loops over static iteration spaces with affine index maps, as plain records that know nothing of graphs."""
