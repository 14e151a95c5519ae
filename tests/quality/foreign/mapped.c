/* Keeps a number in a mapped file that it changes in place: mapped write|load DIR
 *
 * The number stands at both ends of three pages, so that a file that was stored in part can be told. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SIZE (3 * 4096)

static void fail(const char *what) {
    perror(what);
    exit(1);
}

int main(int argc, char **argv) {
    char path[4096];
    struct stat status;
    if (argc != 3) {
        fprintf(stderr, "mapped write|load DIR\n");
        return 64;
    }
    snprintf(path, sizeof path, "%s/state", argv[2]);
    int file = open(path, O_RDWR | O_CREAT, 0644);
    if (file < 0 || fstat(file, &status) < 0) fail(path);
    if (strcmp(argv[1], "write") == 0) {
        if (ftruncate(file, SIZE) < 0) fail(path);
        char *state = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (state == MAP_FAILED) fail(path);
        for (char number = 1; number <= 2; number++) {
            memset(state, number, SIZE);
            if (msync(state, SIZE, MS_SYNC) < 0) fail("msync");
            FILE *events = fopen(getenv("CRASHLAB_EVENTS"), "a");
            if (!events) fail("events");
            fprintf(events, "ack %d\n", number);
            fclose(events);
        }
        munmap(state, SIZE);
        return 0;
    }
    char bytes[SIZE] = {0};
    if (status.st_size && read(file, bytes, SIZE) != SIZE) fail("read");
    for (int i = 1; i < SIZE; i++) {
        if (bytes[i] != bytes[0]) {
            fprintf(stderr, "byte %d is of another save\n", i);
            return 1;
        }
    }
    printf("%d\n", bytes[0]);
    return 0;
}
