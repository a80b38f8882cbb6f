/* What comes before what: a clock for each stream and the host, after C. Fidge and F. Mattern. */
#include <stdlib.h>
#include <string.h>

#include "fake.h"

static stream streams[ACTORS]; /* by actor; the first one is the host */
static int known = 1;

void fake_join(clock_vector *into, const clock_vector *from) {
    for (int i = 0; i < known; i++)
        if (from->at[i] > into->at[i])
            into->at[i] = from->at[i];
}

static handle usual(handle named) {
    return (uintptr_t)named <= 1 ? NULL : named; /* 0 and 1 both name the legacy default stream */
}

/* Memory whose addresses tests take for handles: gpukern asks whether there is any at a number. */
char fake_streams[4096];

size_t fake_stream_number(handle named) {
    size_t offset = (size_t)((uintptr_t)named - (uintptr_t)fake_streams);
    return offset < sizeof fake_streams ? offset : (size_t)named;
}

static int is_made_up(handle named) {
    return fake_stream_number(named) < sizeof fake_streams;
}

/* The default streams, and those that a test makes up, are other ones in each context. */
static stream *find(handle named, handle context) {
    for (int i = 1; i < known; i++)
        if (streams[i].is_live && streams[i].handle == named &&
            (!is_made_up(named) || streams[i].context == context))
            return &streams[i];
    return NULL;
}

/* A number that is used again goes on where it was, so that what is known of it stays right. */
static stream *add(handle named, int is_blocking, handle context) {
    int actor = 1;
    while (actor < known && streams[actor].is_live)
        actor++;
    if (actor == ACTORS)
        fake_violation("there are %d streams: are they ever destroyed?", ACTORS);
    known += actor == known;
    stream *made = &streams[actor];
    made->handle = named;
    made->context = context;
    made->actor = actor;
    made->is_live = 1;
    made->is_blocking = is_blocking;
    return made;
}

/* What a test makes up are streams that wait for no other. */
stream *fake_stream(handle named, const char *function) {
    handle context = fake_context(function);
    named = usual(named);
    stream *found = find(named, context);
    if (!found && !is_made_up(named))
        fake_violation("%s: %p is no stream", function, named);
    if (!found)
        found = add(named, (uintptr_t)named == 2, context);
    if (found->context != context)
        fake_violation("%s: the stream %p is of another context", function, named);
    return found;
}

handle fake_new_stream(int is_blocking, handle context) {
    handle made = malloc(1);
    (void)add(made, is_blocking, context);
    return made;
}

void fake_end_stream(handle named) {
    find(named, NULL)->is_live = 0; /* its handle is never used again: malloc has it still */
}

/* The legacy stream and those that block wait for one another. */
epoch fake_submit(stream *on) {
    fake_join(&on->clock, &streams[HOST].clock);
    for (int i = 1; i < known; i++) {
        stream *other = &streams[i];
        if (other->context == on->context && other->is_live &&
            ((!on->handle && other->is_blocking) || (on->is_blocking && !other->handle)))
            fake_join(&on->clock, &other->clock);
    }
    return (epoch){on->actor, ++on->clock.at[on->actor]};
}

epoch fake_host_acts(void) {
    return (epoch){HOST, ++streams[HOST].clock.at[HOST]};
}

void fake_host_waits(const clock_vector *for_what) {
    fake_join(&streams[HOST].clock, for_what);
    fake_settle(&streams[HOST].clock);
}

void fake_host_waits_for_all(void) {
    for (int i = 1; i < known; i++)
        fake_join(&streams[HOST].clock, &streams[i].clock);
    fake_settle(&streams[HOST].clock);
}
