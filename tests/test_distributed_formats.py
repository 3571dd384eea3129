"""Files of other libraries' formats as partitions, by the guide's recipes: the bits of arrays in memory.

Their libraries are the extra `formats`, which `.ci/run` installs after the README's tests.
"""

import numpy as np
import pytest

from wengert.distributed import partitions, value_and_grad

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(1000, 3)), (RNG.random(1000) < 0.5) * 1.0
W = np.array([0.1, -0.2, 0.3])


def loss(w, x, y):
    z = x @ w
    return np.sum(np.logaddexp(0.0, z) - y * z)


def rows(number):
    return slice(250 * number, 250 * number + 250)


def zarr_arrays(folder):
    zarr = pytest.importorskip("zarr", reason="the extra `formats` is not installed")
    for name, array in (("x", X), ("y", Y)):
        stored = zarr.create_array(folder / name, shape=array.shape, chunks=(250, *array.shape[1:]), dtype="f8")
        stored[:] = array
    return zarr, str(folder / "x"), str(folder / "y")


def read_zarr(folder):
    zarr, *paths = zarr_arrays(folder)
    return 4, lambda i: tuple(zarr.open_array(path, mode="r")[rows(i)] for path in paths)


def dask_of_zarr(folder):
    da = pytest.importorskip("dask.array", reason="the extra `dask` is not installed")
    return tuple(da.from_zarr(path) for path in zarr_arrays(folder)[1:])


def read_hdf5(folder):
    h5py = pytest.importorskip("h5py", reason="the extra `formats` is not installed")
    with h5py.File(folder / "data.h5", "w") as file:
        file["x"], file["y"] = X, Y

    def read(i):
        with h5py.File(folder / "data.h5") as file:
            return file["x"][rows(i)], file["y"][rows(i)]

    return 4, read


def table():
    arrow = pytest.importorskip("pyarrow", reason="the extra `formats` is not installed")
    return arrow.table({**{name: X[:, i] for i, name in enumerate("abc")}, "y": Y})


def columns_of(part):
    return np.column_stack([part.column(name).to_numpy() for name in "abc"]), part.column("y").to_numpy()


def read_parquet(folder):
    stored, path = table(), folder / "data.parquet"
    parquet = pytest.importorskip("pyarrow.parquet", reason="the extra `formats` is not installed")
    parquet.write_table(stored, path, row_group_size=250)
    return parquet.ParquetFile(path).num_row_groups, lambda i: columns_of(parquet.ParquetFile(path).read_row_group(i))


def arrow_batches(_folder):
    return [columns_of(batch) for batch in table().to_batches(max_chunksize=250)]


@pytest.mark.parametrize("recipe", [read_zarr, dask_of_zarr, read_hdf5, read_parquet, arrow_batches])
def test_recipes_have_the_bits_of_arrays(recipe, tmp_path):
    data = partitions(recipe(tmp_path))
    assert data.count == 4
    value, gradient = value_and_grad(loss, partitions((X, Y), count=4), jit=False)(W)
    found = value_and_grad(loss, data, jit=False)(W)
    assert found[0] == value
    np.testing.assert_array_equal(found[1], gradient)
