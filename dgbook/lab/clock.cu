// Do nothing for so many clock cycles of the multiprocessor.

extern "C" __global__ void wait_clocks(int cycles, int* passed)
{
    const long long start = clock64();
    long long waited = 0;
    while (waited < cycles)
        waited = clock64() - start;
    if (threadIdx.x == 0)
        passed[blockIdx.x] = int(waited);
}
