/* An NVRTC that compiles nothing: the log and the code tell what it was given. A source with "ptx"
   in it becomes PTX, one with "silent" leaves no log, and one with "slow" is compiled until whoever
   watches has it end. A test has any function fail, and counts the programs that live. A symbol is
   made missing by compiling with -Dname=absent_name. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int status;
enum { SUCCESS = 0, BROKEN = 1, CANCELLED = 16 };
typedef int watching(void *context, void *unused);

typedef struct program {
    char source[256], name[64], log[1024];
    watching *watch;
    void *context;
} program;

static char failing[64];
static status failure;
static int live;

/* The function fails from now on, which may be none. */
void fake_nvrtc_fail(const char *function, status code) {
    snprintf(failing, sizeof failing, "%s", function);
    failure = code;
}

int fake_nvrtc_live(void) {
    return live;
}

#define ENTER()                                                                                    \
    do {                                                                                           \
        if (strcmp(failing, __func__) == 0)                                                        \
            return failure;                                                                        \
    } while (0)

const char *nvrtcGetErrorString(status code) {
    return code == BROKEN ? "it is broken" : "it failed";
}

status nvrtcVersion(int *major, int *minor) {
    ENTER();
    *major = 13;
    *minor = 4;
    return SUCCESS;
}

static void note(program *of, const char *what, const char *value) {
    size_t used = strlen(of->log);
    snprintf(of->log + used, sizeof of->log - used, "%s %s\n", what, value);
}

status nvrtcCreateProgram(program **made, const char *source, const char *name, int count,
                          const char *const *headers, const char *const *names) {
    ENTER();
    program *of = *made = calloc(1, sizeof *of);
    live++;
    snprintf(of->source, sizeof of->source, "%s", source);
    snprintf(of->name, sizeof of->name, "%s", name);
    for (int i = 0; i < count; i++)
        note(of, names[i], headers[i]);
    return SUCCESS;
}

status nvrtcDestroyProgram(program **gone) {
    free(*gone);
    *gone = NULL;
    live--;
    return SUCCESS;
}

status nvrtcAddNameExpression(program *of, const char *expression) {
    ENTER();
    note(of, "names", expression);
    return SUCCESS;
}

status nvrtcSetFlowCallback(program *of, watching *watch, void *context) {
    ENTER();
    of->watch = watch;
    of->context = context;
    return SUCCESS;
}

/* Control-C comes on the way. Whoever has said that it is to end says so again; after some seconds
   nobody has. */
static status compile_slowly(program *of) {
    raise(SIGINT);
    for (int i = 0; i < 20000 && !of->watch(of->context, NULL); i++)
        usleep(100);
    return of->watch(of->context, NULL) ? CANCELLED : BROKEN;
}

status nvrtcCompileProgram(program *of, int count, const char *const *options) {
    for (int i = 0; i < count; i++)
        note(of, "option", options[i]);
    if (strstr(of->source, "silent"))
        of->log[0] = '\0';
    ENTER();
    return strstr(of->source, "slow") ? compile_slowly(of) : SUCCESS;
}

status nvrtcGetProgramLogSize(program *of, size_t *bytes) {
    ENTER();
    *bytes = strlen(of->log) + 1;
    return SUCCESS;
}

status nvrtcGetProgramLog(program *of, char *log) {
    ENTER();
    strcpy(log, of->log);
    return SUCCESS;
}

/* Of the one that was asked for last. */
status nvrtcGetLoweredName(program *of, const char *expression, const char **symbol) {
    static char lowered[64];
    (void)of;
    ENTER();
    snprintf(lowered, sizeof lowered, "_%s", expression);
    *symbol = lowered;
    return SUCCESS;
}

static int is_ptx(const program *of) {
    return strstr(of->source, "ptx") != NULL;
}

/* What a program becomes: a word that says what it is, and its name. */
static size_t length_of(const program *of, const char *kind) {
    return strlen(kind) + strlen(of->name);
}

static void give(const program *of, const char *kind, char *code) {
    memcpy(code, kind, strlen(kind));
    memcpy(code + strlen(kind), of->name, strlen(of->name));
}

status nvrtcGetCUBINSize(program *of, size_t *bytes) {
    ENTER();
    *bytes = is_ptx(of) ? 0 : length_of(of, "cubin ");
    return SUCCESS;
}

status nvrtcGetCUBIN(program *of, char *code) {
    ENTER();
    give(of, "cubin ", code);
    return SUCCESS;
}

status nvrtcGetPTXSize(program *of, size_t *bytes) {
    ENTER();
    *bytes = length_of(of, "ptx ");
    return SUCCESS;
}

status nvrtcGetPTX(program *of, char *code) {
    ENTER();
    give(of, "ptx ", code);
    return SUCCESS;
}
