// A kernel that is only launched.

extern "C" __global__ void nothing(const float* x) {}
