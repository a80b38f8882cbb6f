/* Every function of the CUDA driver that is used, one line each. cuda.h maps each name to its
   current version (cuMemFree to cuMemFree_v2), and the loader asks for what it maps to. */
#ifndef GK_DRIVER_FUNCTIONS_H
#define GK_DRIVER_FUNCTIONS_H

/* clang-format off */
#define GK_DRIVER_FUNCTIONS(X) \
    X(cuInit) \
    X(cuGetErrorName) \
    X(cuGetErrorString) \
    X(cuDeviceGet) \
    X(cuDeviceGetCount) \
    X(cuDeviceGetName) \
    X(cuDeviceGetUuid) \
    X(cuDeviceGetAttribute) \
    X(cuDeviceTotalMem) \
    X(cuDevicePrimaryCtxRetain) \
    X(cuDevicePrimaryCtxRelease) \
    X(cuDevicePrimaryCtxGetState) \
    X(cuCtxGetCurrent) \
    X(cuCtxSetCurrent) \
    X(cuCtxPushCurrent) \
    X(cuCtxPopCurrent) \
    X(cuCtxSynchronize) \
    X(cuThreadExchangeStreamCaptureMode) \
    X(cuStreamIsCapturing) \
    X(cuStreamBeginCapture) \
    X(cuStreamEndCapture) \
    X(cuGraphInstantiate) \
    X(cuGraphLaunch) \
    X(cuGraphDestroy) \
    X(cuGraphExecDestroy) \
    X(cuUserObjectCreate) \
    X(cuUserObjectRelease) \
    X(cuGraphRetainUserObject) \
    X(cuModuleLoadData) \
    X(cuModuleUnload) \
    X(cuModuleGetFunction) \
    X(cuModuleGetGlobal) \
    X(cuLaunchKernelEx) \
    X(cuFuncSetAttribute) \
    X(cuFuncGetAttribute) \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessor) \
    X(cuOccupancyMaxPotentialBlockSize) \
    X(cuTensorMapEncodeTiled) \
    X(cuMemGetInfo) \
    X(cuMemPoolCreate) \
    X(cuMemPoolDestroy) \
    X(cuMemPoolSetAttribute) \
    X(cuMemPoolGetAttribute) \
    X(cuMemPoolTrimTo) \
    X(cuMemAllocFromPoolAsync) \
    X(cuMemAlloc) \
    X(cuMemFreeAsync) \
    X(cuMemsetD8Async) \
    X(cuMemcpyHtoDAsync) \
    X(cuMemcpyPeerAsync) \
    X(cuMemcpyDtoHAsync) \
    X(cuMemcpy2DAsync) \
    X(cuMemcpyDtoDAsync) \
    X(cuMemHostRegister) \
    X(cuMemHostUnregister) \
    X(cuMemHostGetDevicePointer) \
    X(cuStreamCreate) \
    X(cuStreamDestroy) \
    X(cuStreamSynchronize) \
    X(cuStreamWaitEvent) \
    X(cuEventCreate) \
    X(cuEventDestroy) \
    X(cuEventRecord) \
    X(cuEventSynchronize) \
    X(cuPointerGetAttributes)

/* Those that not every driver has which is new enough. */
#define GK_NEWER_DRIVER_FUNCTIONS(X) \
    X(cuFuncLoad) \
    X(cuFuncGetParamInfo) \
    X(cuStreamGetCaptureInfo) \
    X(cuEventElapsedTime)
/* clang-format on */

#endif
