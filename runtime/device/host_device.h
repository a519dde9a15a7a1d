// The project's one place that asks who compiles it: functions marked so run on the host and, under nvcc, on the
// device.
#pragma once

#ifdef __CUDACC__
#define RECKON_HOST_DEVICE __host__ __device__
#else
#define RECKON_HOST_DEVICE
#endif
