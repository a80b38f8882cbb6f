/* Memory and CUDA graphs. While a stream is being captured its work goes into a graph and runs when
   that is launched, perhaps many times, perhaps never. For device memory that means:
   - What a call takes and gives back on the captured stream is a piece of the graph's own, which
     the next call on that stream takes again: a launch waits between nodes that take memory and
     free it. Of large ones it is a pair of such nodes.
   - An array made by a captured call has to be there for every launch: it is taken now, outside of
     the graph, and belongs to the array and to the graph, until both are gone.
   - An ordinary array that dies meanwhile cannot be freed on that stream: that is done later.
   The functions are called with the device's context current. */
#ifndef GK_CAPTURE_H
#define GK_CAPTURE_H

#include <stdbool.h>

#include "device/cuda/driver.h"

typedef struct gk_captures gk_captures;

gk_captures *gk_captures_new(void); /* NULL: out of host memory */
void gk_captures_free(gk_captures *captures);

/* Whether work on the stream goes into a graph. */
CUresult gk_is_captured(const gk_driver *driver, CUstream stream, bool *captured);

/* Let this thread do what a capture under way forbids though nothing of it is captured: load
   kernels, make streams, end graphs. Returns the mode that gk_restrict takes back. */
CUstreamCaptureMode gk_relax(const gk_driver *driver);
void gk_restrict(const gk_driver *driver, CUstreamCaptureMode mode);

/* Remember that the captured allocation is a node, so that its release is to be one. */
CUresult gk_captures_note_node(gk_captures *captures, CUdeviceptr pointer);

/* Make the graph under capture on the stream an owner of the block, beside the caller; once that
   one has released a block of so many bytes, others may take it as a piece. 0: nobody may. */
CUresult gk_captures_share(gk_captures *captures, const gk_driver *driver, CUstream stream,
                           CUdeviceptr pointer, size_t bytes);

/* Own, beside that graph, a piece that has been released on the stream, of as many bytes or more;
   0: there is none. */
CUresult gk_captures_take_piece(gk_captures *captures, const gk_driver *driver, CUstream stream,
                                size_t bytes, CUdeviceptr *pointer);

/* Give a block back, whatever it is: at once in the order of the stream, or when that can be. */
void gk_captures_release(gk_captures *captures, const gk_driver *driver, CUstream stream,
                         CUdeviceptr pointer);

/* Free what was left for later and can be freed by now. */
void gk_captures_settle(gk_captures *captures, const gk_driver *driver);
/* And what was left on a stream that is about to go: what cannot be freed yet is left on the legacy
   default stream, when the other has come to its end. */
void gk_captures_leave(gk_captures *captures, const gk_driver *driver, CUstream stream);

#endif
