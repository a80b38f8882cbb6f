/* Columns of few rows, each of which a thread has whole: an element a load, or neighbours by
 * vectors. */
#include "engine/nest.h"
#include "ops/reduce_columns.h"
#include "ops/reduce_shape.h"

enum {
    ALONE_BYTES = 48 << 20,  /* up to which a thread an element is as soon through as vectors, */
    RESULT_COST = 4,         /* where a result costs as much as so many elements; */
    MANY_RESULTS = 1 << 20,  /* of halves so many, of more rows than few */
    BUSY = 3 << 15,          /* threads that a device is busy with, however many rows they have, */
    BUSY_WITH_FEW = 3 << 14, /* or with these, which are read at once */
    FEW_ROWS = 8,
    FEW_WIDE_ROWS = 32, /* of 8 bytes an element */
    FEW_OF_LONG_ROWS = 16,
    FEW_SINGLE_ROWS = 12,      /* of 8 bytes an element, too */
    MOST_BETWEEN_ROWS = 20,    /* of columns that begin anywhere */
    SEVERAL_BETWEEN = 1 << 20, /* vectors of such, of which a thread has two */
    SOME_RUN = 128,            /* columns side by side, of which few go on in the next row, */
    LONG_RUN = 512,            /* or next to none */
};

/* Whether columns lie side by side, and results on vectors. */
static bool are_neighbours(const gk_reduce_plan *plan, const gk_array *array, const void *result) {
    const int last = plan->kept - 1;
    return last >= 0 && plan->layout.axis[last].stride == (int64_t)gk_dtype_size(array->dtype) &&
           (uintptr_t)result % GK_REDUCE_VECTOR_BYTES == 0;
}

/* Whether such columns are whole vectors in each row. */
static bool are_wide(const gk_reduce_plan *plan, const gk_array *array, uint32_t columns) {
    const gk_axes *layout = &plan->layout;
    const int last = plan->kept - 1;
    return layout->axis[last].length.value % columns == 0 &&
           gk_place_bits(array, layout, last) % (columns * gk_dtype_size(array->dtype)) == 0;
}

/* Axes that a thread goes along by itself: it finds each element from the one before. */
static int axes_of_thread(const gk_reduce_plan *plan) {
    const int reduced = plan->layout.ndim - plan->kept;
    const bool alone = plan->walk == GK_WALK_LITTLE && plan->gathered && plan->how.lanes == 1;
    return alone && reduced <= GK_FEW_AXES ? reduced : 0;
}

bool gk_goes_scattered(const gk_reduce_plan *plan) {
    return axes_of_thread(plan) == GK_FEW_AXES || plan->between > 0;
}

/* Columns of a thread whose rows begin anywhere. Kernels are made for results of the usual dtype.
 */
static uint32_t most_between(gk_dtype dtype, gk_result_of of) {
    const size_t size = gk_dtype_size(dtype);
    const bool wider = of == GK_INDEX || (of != GK_EXTREME && !gk_is_float(dtype));
    return GK_REDUCE_BETWEEN_COLUMNS(size, wider ? sizeof(int64_t) : size);
}

/* Whether so many of them, of the elements of a word, are sooner through than an element a load, or
   a block of columns: fitted to 3,800 columns of 2 to 64 rows of bytes and halves, each all ways.
 */
static bool pays_between(const gk_reduction *how, const gk_array *array, size_t run, uint32_t most,
                         gk_result_of of) {
    const size_t size = gk_dtype_size(array->dtype), rows = how->length;
    const size_t threads = how->outer * how->inner / most;
    const bool is_long = run >= LONG_RUN, is_whole = most == GK_REDUCE_VECTOR_BYTES / size;
    if (of == GK_PARTIAL || rows > MOST_BETWEEN_ROWS)
        return false;
    if (rows > FEW_ROWS) /* a block of columns has several threads of each */
        return is_whole && is_long && threads >= 1 << 20 && (size == 1 || of == GK_TOTAL);
    if (!is_whole)
        return threads >= (size_t)(size == 1 ? 1 << 19 : 1 << 18) &&
               (is_long || rows <= 2 || (rows <= 4 && run >= SOME_RUN));
    if (rows > 4 && size == 2 && run % 2 == 0 && gk_bytes(array) < GK_REDUCE_OF_MEMORY)
        return false; /* words are as good there */
    return threads >= (size_t)(rows <= 2 ? 1 << 16 : 1 << 17) &&
           (rows <= 4 || is_long || of == GK_EXTREME);
}

/* So many a thread, or 0. */
static uint32_t columns_between(const gk_reduce_plan *plan, const gk_array *array,
                                gk_result_of of) {
    const uint32_t most = most_between(array->dtype, of);
    const uint32_t run = plan->layout.axis[plan->kept - 1].length.value;
    const bool has_place = plan->kept < GK_LITTLE_AXES - GK_FEW_AXES; /* see gk_sure_of_few */
    const bool serves = most > 1 && has_place && run >= most;
    return serves && pays_between(&plan->how, array, run, most, of) ? most : 0;
}

/* Columns of a thread, some apart: of words in the fewest rows more, where states leave registers
   for that. */
static uint32_t several_of_thread(const gk_reduce_plan *plan, gk_dtype dtype, gk_result_of of) {
    const size_t size = gk_dtype_size(dtype);
    const bool few_rows = plan->how.length <= GK_REDUCE_FEWEST_ROWS;
    if (size == GK_WORD && few_rows && of != GK_INDEX && !plan->in_wider)
        return GK_REDUCE_MANY;
    return GK_REDUCE_SEVERAL(size);
}

void gk_plan_few(gk_reduce_plan *plan, const gk_array *array, const void *result, gk_result_of of) {
    const uint32_t columns = gk_few_columns(array->dtype);
    const uint32_t several = several_of_thread(plan, array->dtype, of);
    const size_t results = plan->how.outer * plan->how.inner;
    const size_t busy = plan->how.length <= FEW_ROWS ? BUSY_WITH_FEW : BUSY;
    const int axes = axes_of_thread(plan);
    const bool side_by_side = axes > 0 && are_neighbours(plan, array, result);
    plan->wide =
        side_by_side && columns > 1 && results / columns >= busy && are_wide(plan, array, columns);
    plan->between = side_by_side && !plan->wide ? columns_between(plan, array, of) : 0;
    bool pay = axes == 1 && !plan->wide && results / several >= busy;
    if (plan->between > 0)
        pay = plan->between == GK_REDUCE_BETWEEN_OF_WIDER &&
              results / plan->between >= SEVERAL_BETWEEN;
    plan->several = pay && several > 1 ? several : 0;
}

/* Of how many results on blocks of columns, which load a vector of them at a time, are sooner
   through than threads that load an element at a time: fitted to 8,000 short columns, each both
   ways. A vector of bytes has sixteen states to end, two elements of 8 bytes are as soon loaded
   alone, and results of another dtype are stored one by one. */
static size_t enough_for_vectors(size_t size, bool between, gk_result_of of) {
    if (of == GK_PARTIAL)
        return SIZE_MAX;
    switch (size) {
    case 1:
        return of != GK_EXTREME ? SIZE_MAX : between ? 1 << 19 : 3 << 15;
    case 2:
        return !between ? 5 << 14 : of == GK_TOTAL ? 1 << 19 : 3 << 16;
    case 4:
        return !between ? 1 << 17 : of == GK_EXTREME ? 3 << 16 : SIZE_MAX;
    default:
        return of == GK_EXTREME ? SIZE_MAX : 1 << 14;
    }
}

/* What short columns an element a thread is better for, or, of many, a vector of four. */
static bool are_better_alone(const gk_reduce_plan *plan, const gk_reduce_plan *alone,
                             const gk_array *array, bool is_run, gk_result_of of) {
    const gk_reduction *how = &plan->how;
    const size_t size = gk_dtype_size(array->dtype), results = how->outer * how->inner;
    const uintptr_t row = how->inner * size;
    uintptr_t bits = (uintptr_t)array->data | row;
    if (plan->pitched)
        bits |= (uintptr_t)how->apart | (uintptr_t)how->over | (uintptr_t)how->beyond;
    if (!is_run || alone->between > 0 || (alone->wide && how->length <= FEW_ROWS))
        return true;
    const bool between = bits % GK_REDUCE_VECTOR_BYTES != 0;
    const size_t few = size == 8 && of != GK_INDEX ? FEW_WIDE_ROWS : FEW_ROWS;
    if (!alone->wide && how->length > few && results >= enough_for_vectors(size, between, of))
        return false;
    if (size == 2 && how->length > FEW_ROWS && results > MANY_RESULTS)
        return false;
    if (size <= 2 || between)
        return true;
    return (how->length + RESULT_COST) * results * size <= ALONE_BYTES;
}

/* What threads that have vectors of them, or elements that are as good, are better for than a block
   of columns, which has more loads under way. Indices of 8-byte elements have two numbers of that
   size each. */
static bool are_few_rows(const gk_reduce_plan *plan, const gk_reduce_plan *alone, gk_dtype dtype,
                         gk_result_of of) {
    const bool singly = gk_few_columns(dtype) == 1 && of != GK_INDEX;
    if (singly)
        return plan->how.length <= FEW_SINGLE_ROWS;
    return alone->wide && plan->how.length <= FEW_OF_LONG_ROWS && plan->how.lanes >= GK_REDUCE_WARP;
}

/* Whether scattered columns had better be taken by vectors, of rows that are listed, than element
   by element of bytes or halves, or where there are more axes than a thread goes along: if these
   are as many threads as a device is busy with. */
static bool is_better_listed(const gk_reduce_plan *plan, const gk_reduce_plan *alone,
                             const gk_array *array, uint64_t reduced) {
    const size_t width = gk_vector_width(array->dtype);
    const size_t results = plan->how.outer * plan->how.inner;
    size_t run;
    (void)gk_run_axes(array, reduced, &run);
    const bool busy = run >= width && results / width >= BUSY_WITH_FEW;
    return busy && run == plan->how.inner &&
           ((width > 4 && !alone->wide && alone->between == 0) ||
            alone->layout.ndim > alone->kept + GK_FEW_AXES);
}

bool gk_plan_alone(gk_reduce_plan *plan, const gk_array *array, uint64_t reduced, bool is_run,
                   gk_result_of of) {
    gk_reduce_plan alone = *plan;
    if (!plan->short_columns || alone.how.outer * alone.how.inner > INT32_MAX)
        return false;
    alone.walk = GK_WALK_LITTLE;
    alone.how.lanes = 1;
    if (!gk_plan_gathered(&alone, array, reduced))
        return false;
    gk_plan_few(&alone, array, NULL, of);
    bool pays = are_better_alone(plan, &alone, array, is_run, of) ||
                are_few_rows(plan, &alone, array->dtype, of);
    if (plan->scattered)
        pays = !is_better_listed(plan, &alone, array, reduced);
    if (!pays)
        return false;
    *plan = alone;
    return true;
}

/* The axis of neighbouring results, in vectors of `columns` of them. */
static void count_vectors(gk_little *little, const gk_axes *layout, int last, uint32_t columns) {
    const gk_divisor length = gk_divisor_of(layout->axis[last].length.value / columns);
    little->results /= columns;
    little->axis[GK_LITTLE_AXES - 1].stride *= (int32_t)columns;
    if (last > 0) {
        little->axis[GK_LITTLE_AXES - 1].length = gk_packed_length(length);
        little->axis[GK_LITTLE_AXES - 1].multiplier = length.multiplier;
    }
}

/* What the kernel looks at, see gk_sure_of_few. */
static void say_what_is_sure(gk_little *little, const gk_reduce_plan *plan, size_t size) {
    int64_t sure = (int64_t)size - (int64_t)(2 * plan->between * size);
    for (int i = 0; i < plan->kept; i++)
        if (plan->layout.axis[i].stride > 0)
            sure += plan->layout.axis[i].stride * (plan->layout.axis[i].length.value - 1);
    little->axis[GK_SURE_OF_FEW].length = (uint32_t)sure;
    little->axis[GK_SURE_OF_FEW].multiplier = (uint32_t)((uint64_t)sure >> 32);
}

gk_little gk_plan_little(const gk_reduce_plan *plan, const gk_reduction *how,
                         const gk_array *array) {
    const gk_axes *layout = &plan->layout;
    gk_little little = {.a = array->data, .result = how->result};
    little.divisor = how->divisor;
    little.reciprocal = how->reciprocal;
    little.results = (uint32_t)(how->outer * how->inner);
    little.length = (uint32_t)how->length;
    little.lanes = (uint32_t)__builtin_ctz(how->lanes) & 15;
    little.across = plan->across;
    little.runs = plan->runs;
    little.reduced = (uint32_t)(layout->ndim - plan->kept) & 7;
    little.kept = (uint32_t)plan->kept & 7;
    little.stored = how->stored & 31U;
    little.last = how->last & 3U;
    little.order = how->order & 3U;
    for (int i = 0; i < layout->ndim; i++) {
        bool is_kept = i < plan->kept;
        int place = is_kept ? GK_LITTLE_AXES - plan->kept + i : layout->ndim - 1 - i;
        little.axis[place].stride = (int32_t)layout->axis[i].stride;
        if (i == 0 || i == plan->kept)
            continue;
        little.axis[place].length = gk_packed_length(layout->axis[i].length);
        little.axis[place].multiplier = layout->axis[i].length.multiplier;
    }
    little.wide = plan->wide;
    little.between = plan->between > 0;
    little.several = plan->several > 0;
    if (plan->between)
        say_what_is_sure(&little, plan, gk_dtype_size(array->dtype));
    if (plan->wide)
        count_vectors(&little, layout, plan->kept - 1, gk_few_columns(array->dtype));
    return little;
}
