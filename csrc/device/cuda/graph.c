/* What is captured on a stream of ours, launched as a CUDA graph. */
#include <stdlib.h>

#include "device/cuda/capture.h"
#include "device/cuda/device.h"

struct gk_graph {
    CUgraphExec executable;
};

/* Other threads may do meanwhile what a capture forbids. */
gk_status gk_cuda_capture(gk_backend *base, gk_stream stream, gk_error *error) {
    gk_cuda *cuda = (gk_cuda *)base;
    CUresult result;
    GK_IN_CONTEXT(
        cuda, result,
        cuda->driver.cuStreamBeginCapture((CUstream)stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    return gk_cuda_check(cuda, result, "starting a capture", error);
}

gk_status gk_cuda_capture_end(gk_backend *base, gk_stream stream, gk_graph **graph,
                              gk_error *error) {
    gk_cuda *cuda = (gk_cuda *)base;
    const gk_driver *driver = &cuda->driver;
    CUgraph captured = NULL;
    CUresult result;
    gk_graph *made = malloc(sizeof *made);
    GK_IN_CONTEXT(cuda, result, driver->cuStreamEndCapture((CUstream)stream, &captured));
    if (result == CUDA_SUCCESS && made) {
        CUstreamCaptureMode mode = gk_relax(driver); /* another stream may be under capture */
        GK_IN_CONTEXT(cuda, result, driver->cuGraphInstantiate(&made->executable, captured, 0));
        gk_restrict(driver, mode);
    }
    if (captured)
        (void)driver->cuGraphDestroy(captured); /* the executable has what it needs of it */
    if (result == CUDA_SUCCESS && made) {
        *graph = made;
        return GK_OK;
    }
    free(made);
    if (result == CUDA_SUCCESS)
        return gk_fail(error, GK_MEMORY_ERROR, "out of host memory for a graph");
    return gk_cuda_check(cuda, result, "ending a capture", error);
}

gk_status gk_cuda_graph_launch(gk_backend *base, gk_graph *graph, gk_stream stream,
                               gk_error *error) {
    gk_cuda *cuda = (gk_cuda *)base;
    CUresult result;
    GK_IN_CONTEXT(cuda, result, cuda->driver.cuGraphLaunch(graph->executable, (CUstream)stream));
    return gk_cuda_check(cuda, result, "launching a graph", error);
}

void gk_cuda_graph_free(gk_backend *base, gk_graph *graph) {
    gk_cuda *cuda = (gk_cuda *)base;
    CUresult result;
    if (!graph)
        return;
    CUstreamCaptureMode mode = gk_relax(&cuda->driver); /* a collection may come at any time */
    GK_IN_CONTEXT(cuda, result, cuda->driver.cuGraphExecDestroy(graph->executable));
    gk_restrict(&cuda->driver, mode);
    (void)result; /* fails only after a fault, which the next call reports */
    free(graph);
}
