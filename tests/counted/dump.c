/* Linked into the extension in a coverage run: gcov's own function is hidden there. */
void __gcov_dump(void);

__attribute__((visibility("default"))) void counted_dump(void) {
    __gcov_dump();
}
