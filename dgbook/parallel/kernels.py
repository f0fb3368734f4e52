"""Kernels that move traces between states and what is sent."""

from dgbook.gpu import cuda, jit


def make_copy():
    """Kernel that copies values from places to places.

    One thread per value, and no two values go to the same place.
    """

    @jit
    def copy(source, there, target, here):
        i = cuda.grid(1)
        if i < there.size:
            target[here[i]] = source[there[i]]

    return copy


def make_product(rows, columns, nodes):
    """Kernel that multiplies traces by a matrix per face on the way.

    One thread per value of the result, which is stored by face, row
    and node; what is multiplied by face, column and node.
    """

    @jit
    def product(matrices, source, there, target, here):
        i = cuda.grid(1)
        if i < here.size:
            node = i % nodes
            row = i // nodes  # of all faces' matrices
            first = row // rows * columns * nodes + node
            total = matrices[row * columns] * source[there[first]]
            for j in range(1, columns):
                value = source[there[first + j * nodes]]
                total += matrices[row * columns + j] * value
            target[here[i]] = total

    return product
