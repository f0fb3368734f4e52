"""Numbers that every CUDA device from compute capability 7.5 on shares."""

WARP = 32  # lanes: threads that run in step
FULL_MASK = 0xFFFFFFFF  # all lanes of a warp
MAX_THREADS = 1024  # in a block
STATIC_SHARED_LIMIT = 48 * 1024  # bytes a block; what needs more must ask for it at the launch
