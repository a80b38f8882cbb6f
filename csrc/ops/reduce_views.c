/* Reductions of elements that are no run in memory: where they lie, and which kernels take them. */
#include "ops/reduce_shape.h"

#include "engine/nest.h"

#include <stdlib.h>

enum {
    WARP = 32,            /* threads */
    FEW_BLOCKS = 64,      /* that leave a device idle */
    FEW_FOUND = 4096,     /* elements that one block finds before a second launch begins */
    LISTED = 512,         /* bytes of a line: of what ends between vectors, */
    LISTED_HALVES = 128,  /* the same of halves, */
    LISTED_VECTORS = 32,  /* of whole vectors, */
    LISTED_APART = 2048,  /* and of every second element, without what lies between */
    SHORT_LINE = 128,     /* vectors: most of what a warp loads goes on in the next one */
    LINE = 8,             /* elements near one another that are worth a load; of more than so */
    SMALL = 2,            /* many bytes one is, where they come as they lie */
    MOST_APART = 3,       /* elements from one to the next: a copy reads and writes as much */
    LEAST_TURNED = 6,     /* times more than an element that is moved for each, in another order, */
    MANY_TURNED = 250000, /* of so many a copy is better, */
    MANY_TURNED_HALVES = 80000,
    SOON_BESIDE = 16,   /* elements later what is beside one is in the cache yet */
    FEW_LONE = 1 << 14, /* rows that are found, of which a warp has one at a time if short too */
    NEAR = 32,          /* bytes: what memory is read by */
};

#define NO_STRIDE INT64_MIN

/* views whose rows are runs ----------------------------------------------------------------------
 */

/* Bytes from each element along some axes to the next, which are `otherwise` where there is one,
   and NO_STRIDE where they are not always the same. */
static int64_t stride_along(const gk_array *array, uint64_t axes, int64_t otherwise) {
    int64_t stride = otherwise, beyond = 0;
    bool found = false;
    for (int i = array->ndim - 1; i >= 0; i--) {
        if (!(axes >> i & 1) || array->shape[i] == 1)
            continue;
        if (found && array->strides[i] != beyond)
            return NO_STRIDE;
        stride = found ? stride : array->strides[i];
        beyond = array->strides[i] * array->shape[i];
        found = true;
    }
    return stride;
}

uint64_t gk_run_axes(const gk_array *array, uint64_t reduced, size_t *columns) {
    int64_t beyond = (int64_t)gk_dtype_size(array->dtype);
    uint64_t axes = 0;
    *columns = 1;
    for (int i = array->ndim - 1; i >= 0; i--) {
        if (array->shape[i] == 1)
            continue;
        if (gk_is_reduced(reduced, i) || array->strides[i] != beyond)
            break;
        beyond *= array->shape[i];
        *columns *= (size_t)array->shape[i];
        axes |= (uint64_t)1 << i;
    }
    return axes;
}

/* Whether runs of so many columns each, where a row is several, can be taken like matrices that are
   stacked: blocks that have some of them are filled. */
static bool are_matrices(const gk_reduce_plan *plan, size_t columns, gk_dtype dtype) {
    const gk_reduction *how = &plan->how;
    const bool whole = !how->narrow && 1 << how->group == GK_REDUCE_COLUMN_THREADS;
    return columns == how->inner ||
           (whole && !plan->short_columns && gk_fills_block(how, columns, dtype));
}

void gk_plan_of_run(gk_reduction *how, gk_dtype dtype) {
    how->apart = (int64_t)(how->inner * gk_dtype_size(dtype));
    how->over = (int64_t)how->length * how->apart;
    how->reach = (int64_t)how->outer * how->over;
}

/* Rows of a bundle, and bytes from one of them and from one bundle to the next; a single bundle,
   where they all lie evenly. */
typedef struct pitch {
    size_t bundle;
    int64_t near, far;
} pitch;

/* False: they lie more unevenly. */
static bool pitch_along(const gk_array *array, uint64_t axes, pitch *made) {
    int64_t beyond = 0;
    size_t count = 1;
    int levels = 0;
    *made = (pitch){0};
    for (int i = array->ndim - 1; i >= 0; i--) {
        if (!(axes >> i & 1) || array->shape[i] == 1)
            continue;
        if (levels == 0 || array->strides[i] != beyond) {
            if (++levels > 2 || array->strides[i] < 0)
                return false;
            *(levels == 1 ? &made->near : &made->far) = array->strides[i];
            made->bundle = levels == 1 ? 0 : count;
        }
        beyond = array->strides[i] * array->shape[i];
        count *= (size_t)array->shape[i];
    }
    made->bundle = levels < 2 ? count : made->bundle;
    return levels < 2 || count <= UINT32_MAX; /* of which kernels count the bundles */
}

/* Matrices begin so far from one another, and their rows, of so many bytes, lie `apart`. */
static void lie_at(gk_reduction *how, const pitch *matrices, int64_t apart, int64_t row) {
    const size_t each = matrices->bundle, bundles = each > 0 ? how->outer / each : 0;
    how->reach = (int64_t)(bundles - 1) * matrices->far + (int64_t)(each - 1) * matrices->near +
                 (int64_t)(how->length - 1) * apart + row;
    how->over = matrices->near;
    how->apart = apart;
    how->bundle = bundles > 1 ? (uint32_t)each : 0;
    how->beyond = bundles > 1 ? matrices->far : 0;
}

bool gk_plan_pitched(gk_reduce_plan *plan, const gk_array *array, uint64_t reduced) {
    const bool columns = plan->walk == GK_WALK_COLUMNS;
    const int64_t size = (int64_t)gk_dtype_size(array->dtype);
    size_t run = 1; /* columns */
    const uint64_t inner = columns ? gk_run_axes(array, reduced, &run) : 0;
    gk_reduction *how = &plan->how;
    const size_t outer = how->outer * how->inner / run;
    pitch rows;
    int64_t row = (int64_t)run * size, apart = stride_along(array, reduced, row);
    plan->pitched = false;
    if (plan->walk == GK_WALK_LITTLE || !pitch_along(array, ~(reduced | inner), &rows))
        return false;
    const uintptr_t bits = (uintptr_t)array->data | (uintptr_t)rows.near | (uintptr_t)rows.far;
    const bool whole = (bits | (uintptr_t)apart) % (uintptr_t)size == 0;
    const bool matrices = how->narrow ? apart == row : apart >= row;
    const bool runs = columns ? matrices && are_matrices(plan, run, array->dtype) : apart == size;
    plan->pitched = whole && runs;
    if (!plan->pitched)
        return false;
    if (columns) {
        how->outer = outer;
        how->inner = run;
    }
    lie_at(how, &rows, apart, row);
    return true;
}

bool gk_lie_as_matrices(const gk_array *array, uint64_t reduced, gk_reduction *how) {
    const int64_t size = (int64_t)gk_dtype_size(array->dtype);
    uint64_t behind = 0;
    bool between = false;
    pitch front;
    how->outer = how->length = how->inner = 1;
    for (int i = array->ndim - 1; i >= 0; i--) {
        const size_t length = (size_t)array->shape[i];
        if (length == 1)
            continue;
        if (gk_is_reduced(reduced, i)) {
            if (between)
                return false;
            how->length *= length;
        } else if (how->length == 1) {
            how->inner *= length;
            behind |= (uint64_t)1 << i;
        } else {
            between = true;
            how->outer *= length;
        }
    }
    const int64_t apart = stride_along(array, reduced, size);
    const int64_t step = stride_along(array, behind, size);
    if (how->outer * how->length * how->inner == 0 || apart < 0 || step < 0 ||
        !pitch_along(array, ~(reduced | behind), &front))
        return false;
    const uintptr_t bits = (uintptr_t)array->data | (uintptr_t)apart | (uintptr_t)step |
                           (uintptr_t)front.near | (uintptr_t)front.far;
    how->step = step;
    lie_at(how, &front, apart, (int64_t)(how->inner - 1) * step + size);
    return bits % (uintptr_t)size == 0;
}

/* Kept axes up to the last that is reduced, or, where `packed`, all of them; reduced ones, and the
   others. */
gk_array gk_as_taken(const gk_array *array, uint64_t reduced, bool packed) {
    gk_array moved = *array;
    int next = 0, last = array->ndim;
    while (!packed && last > 0 &&
           (!gk_is_reduced(reduced, last - 1) || array->shape[last - 1] == 1))
        last--;
    for (int turn = 0; turn < 3; turn++) /* in front, reduced, behind */
        for (int i = 0; i < array->ndim; i++)
            if (turn == (gk_is_reduced(reduced, i) ? 1 : i < last ? 0 : 2)) {
                moved.shape[next] = array->shape[i];
                moved.strides[next++] = array->strides[i];
            }
    return moved;
}

/* elements that lie anywhere ---------------------------------------------------------------------
 */

bool gk_append_axes(const gk_array *array, int first, int end, gk_axes *layout) {
    const int start = layout->ndim;
    for (int i = first; i < end; i++) {
        int64_t length = array->shape[i], stride = array->strides[i];
        int last = layout->ndim - 1;
        if (length == 1)
            continue;
        if (last >= start && layout->axis[last].stride == stride * length)
            length *= layout->axis[last].length.value;
        else if (++last == GK_LAYOUT_DIMENSIONS)
            return false;
        layout->axis[last].length = gk_divisor_of((uint32_t)length);
        layout->axis[last].stride = stride;
        layout->ndim = last + 1;
    }
    return true;
}

uintptr_t gk_place_bits(const gk_array *array, const gk_axes *layout, int but) {
    uintptr_t bits = (uintptr_t)array->data;
    for (int i = 0; i < layout->ndim; i++)
        bits |= i == but ? 0 : (uintptr_t)layout->axis[i].stride;
    return bits;
}

/* Whether a load takes any of its elements whole. */
static bool has_whole_elements(const gk_array *array, const gk_axes *layout) {
    return gk_place_bits(array, layout, -1) % gk_dtype_size(array->dtype) == 0;
}

/* Whether the kernel of a little array takes these axes. It divides by all lengths but those of the
   outermost axes, of both kinds. */
static bool are_little(const gk_axes *layout, int kept) {
    for (int i = 0; i < layout->ndim; i++) {
        bool divides = i != 0 && i != kept;
        if (llabs(layout->axis[i].stride) > INT32_MAX ||
            (divides && layout->axis[i].length.value >= GK_COMPACT_LENGTHS))
            return false;
    }
    return layout->ndim <= GK_LITTLE_AXES;
}

/* A little array: kept axes, then reduced ones. */
static bool plan_gathered_little(gk_reduce_plan *plan, const gk_array *array, uint64_t reduced) {
    gk_array lies = gk_as_taken(array, reduced, true);
    gk_axes *layout = &plan->layout;
    int axes = 0; /* that are kept, of which some may be one in the layout */
    for (int i = 0; i < array->ndim; i++)
        axes += !gk_is_reduced(reduced, i);
    if (!gk_append_axes(&lies, 0, axes, layout))
        return false;
    const int kept = plan->kept = layout->ndim;
    if (!gk_append_axes(&lies, axes, lies.ndim, layout) || !has_whole_elements(array, layout) ||
        !are_little(layout, kept))
        return false;
    int last = layout->ndim - 1;
    plan->across = kept > 0 && last >= kept &&
                   llabs(layout->axis[kept - 1].stride) < llabs(layout->axis[last].stride);
    return true;
}

/* Whether elements come in the order that they lie in: what else is in a sector is read soon. */
static bool are_in_order(const gk_axes *layout) {
    for (int i = 1; i < layout->ndim; i++)
        if (llabs(layout->axis[i].stride) > llabs(layout->axis[i - 1].stride))
            return false;
    return true;
}

/* Whether elements of a large array along its last axis are worth a load each, in place of a copy
   of all. Where they are in no order sectors are fetched again: more often than a copy reads and
   writes, if elements of others lie between. */
static bool are_worth_a_load(const gk_array *array, const gk_axes *layout) {
    const int64_t size = (int64_t)gk_dtype_size(array->dtype);
    const int last = layout->ndim - 1;
    const int64_t stride = llabs(layout->axis[last].stride);
    const bool in_order = are_in_order(layout);
    if (stride > NEAR ||
        (!in_order && gk_bytes(array) > GK_REDUCE_CACHED && stride > MOST_APART * size))
        return false;
    return (size > SMALL && in_order) || layout->axis[last].length.value >= LINE;
}

/* Bytes that memory moves for each element in the order of the layout: a whole sector, if no more
   of it is taken soon. */
static int64_t moved_for_each(const gk_axes *layout, int64_t size) {
    const int last = layout->ndim - 1;
    const int64_t stride = llabs(layout->axis[last].stride);
    const int64_t line = layout->axis[last].length.value;
    if (stride != size)
        return stride < NEAR ? stride : NEAR;
    return line * size < NEAR ? NEAR / line : size;
}

/* How many elements come before the next one in memory does. */
static size_t count_behind_nearest(const gk_axes *layout) {
    size_t count = 1, behind = 1;
    int64_t near = INT64_MAX;
    for (int i = layout->ndim - 1; i >= 0; i--) {
        if (llabs(layout->axis[i].stride) < near) {
            near = llabs(layout->axis[i].stride);
            behind = count;
        }
        count *= layout->axis[i].length.value;
    }
    return behind;
}

/* Whether elements come in another order than they lie in, with so much beside each that a copy in
   their own order is sooner made: fitted to 64 turned sums of 0.1 to 12 MB. */
static bool are_better_copied(const gk_array *array, const gk_axes *layout) {
    const int64_t size = (int64_t)gk_dtype_size(array->dtype);
    const size_t many = size <= SMALL ? MANY_TURNED_HALVES : MANY_TURNED;
    return gk_count(array) >= many && !are_in_order(layout) &&
           count_behind_nearest(layout) > SOON_BESIDE &&
           moved_for_each(layout, size) >= LEAST_TURNED * size;
}

/* Whether a warp has a row at a time that it finds: a long one, or where there are few. */
static bool are_lone(const gk_reduction *how, size_t width) {
    return how->lone_rows && (how->length >= GK_REDUCE_LONE_ROW * width || how->outer < FEW_LONE);
}

/* Whether each of long rows is a line of elements that lie evenly apart: no run, and not every
   second element, which comes in vectors. */
static bool are_lines(const gk_reduce_plan *plan, const gk_axes *layout, int64_t apart,
                      int64_t size) {
    return plan->walk == GK_WALK_ROWS && apart != NO_STRIDE && apart != 0 && apart != size &&
           apart != 2 * size && are_in_order(layout);
}

/* The shortest lines, in bytes, that are sooner listed than found for each vector: fitted to 4,000
   sums of 0.3 to 500 MB, each both ways. */
static size_t shortest_listed(const gk_axes *layout, size_t size) {
    const int last = layout->ndim - 1;
    const int64_t stride = layout->axis[last].stride;
    if (stride == 2 * (int64_t)size && size > SMALL)
        return LISTED_APART;
    if (stride != (int64_t)size)
        return SIZE_MAX;
    if (layout->axis[last].length.value * size % GK_REDUCE_VECTOR_BYTES == 0)
        return LISTED_VECTORS;
    return size <= SMALL ? LISTED_HALVES : LISTED;
}

/* A large one, in the order of a run. */
static bool plan_gathered_run(gk_reduce_plan *plan, const gk_array *array, uint64_t reduced) {
    gk_array lies = gk_as_taken(array, reduced, plan->packed);
    gk_axes *layout = &plan->layout;
    const size_t size = gk_dtype_size(array->dtype);
    if (gk_count(array) > INT32_MAX || !gk_append_axes(&lies, 0, lies.ndim, layout) ||
        !has_whole_elements(array, layout))
        return false;
    if (layout->ndim == 0)
        layout->axis[layout->ndim++].length = gk_divisor_of(1);
    const int64_t apart = stride_along(array, reduced, 0);
    const bool lines = are_lines(plan, layout, apart, (int64_t)size);
    if (gk_bytes(array) > GK_REDUCE_SCATTERED && !lines && !are_worth_a_load(array, layout))
        return false;
    if (plan->walk != GK_WALK_COLUMNS && are_better_copied(array, layout))
        return false;
    const int last = layout->ndim - 1;
    const size_t width = gk_vector_width(array->dtype), line = layout->axis[last].length.value;
    plan->how.short_rows = plan->walk == GK_WALK_SHORT;
    plan->how.lone_rows = are_lone(&plan->how, width);
    plan->how.tiles = lines ? GK_REDUCE_LINE : 0;
    plan->how.apart = apart == NO_STRIDE ? 0 : apart;
    if (plan->walk == GK_WALK_COLUMNS)
        return gk_plan_listed(plan, array, reduced);
    const bool ends_between =
        plan->how.apart == 0 && (line >= width || layout->ndim == 2) && line % width != 0;
    plan->how.lines = plan->of_reals && plan->how.apart == 0 && plan->walk == GK_WALK_ROWS &&
                      line * size >= shortest_listed(layout, size);
    plan->how.broken = !plan->how.lines && ends_between && line < SHORT_LINE * width;
    if (plan->how.apart == 0 && plan->walk == GK_WALK_ROWS && !plan->how.lines &&
        plan->how.outer * plan->how.segments < FEW_BLOCKS &&
        plan->how.outer * plan->how.length > FEW_FOUND)
        return false; /* each thread would have to find many */
    plan->how.reach = (int64_t)size;
    for (int i = 0; i < layout->ndim; i++)
        if (layout->axis[i].stride > 0)
            plan->how.reach += layout->axis[i].stride * (layout->axis[i].length.value - 1);
    return true;
}

bool gk_plan_gathered(gk_reduce_plan *plan, const gk_array *array, uint64_t reduced) {
    plan->layout = (gk_axes){0};
    plan->gathered = plan->walk == GK_WALK_LITTLE ? plan_gathered_little(plan, array, reduced)
                                                  : plan_gathered_run(plan, array, reduced);
    return plan->gathered;
}

bool gk_plan_lanes(gk_reduce_plan *plan, const gk_array *array, uint64_t reduced) {
    gk_reduce_plan lanes = *plan;
    const gk_axes *layout = &lanes.layout;
    const bool whole = plan->how.lanes >= WARP && plan->how.lanes < GK_REDUCE_COLUMN_THREADS &&
                       1 << plan->how.group == GK_REDUCE_COLUMN_THREADS;
    const bool columns =
        plan->walk == GK_WALK_COLUMNS && whole && !plan->how.narrow && plan->how.segments == 1;
    lanes.runs = plan->walk == GK_WALK_SHORT &&
                 GK_REDUCE_VECTOR_BYTES <= GK_REDUCE_LINE_LOADS * gk_dtype_size(array->dtype);
    if (gk_bytes(array) < GK_REDUCE_TURNED || !(lanes.runs || columns))
        return false;
    if (columns)
        lanes.how.lanes = GK_REDUCE_COLUMN_THREADS / plan->how.lanes;
    lanes.walk = GK_WALK_LITTLE;
    if (plan->how.outer * plan->how.inner > INT32_MAX ||
        !gk_plan_gathered(&lanes, array, reduced) || layout->ndim != lanes.kept + 1)
        return false;
    int64_t near = layout->axis[lanes.runs ? lanes.kept - 1 : lanes.kept].stride;
    if (lanes.across != lanes.runs || llabs(near) > NEAR)
        return false;
    *plan = lanes;
    return true;
}

void gk_plan_packed(gk_reduce_plan *plan, const gk_array *packed) {
    gk_array rows = {.data = packed->data, .dtype = packed->dtype, .ndim = 2};
    rows.shape[0] = (int64_t)(plan->how.outer * plan->how.inner);
    rows.shape[1] = (int64_t)plan->how.length;
    gk_make_contiguous(&rows);
    if (plan->walk == GK_WALK_LITTLE)
        (void)gk_plan_gathered(plan, &rows, (uint64_t)1 << 1);
}
