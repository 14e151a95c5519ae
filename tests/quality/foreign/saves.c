/* Keeps a number in a file that it replaces whole: saves right|retries write|load DIR
 *
 * right: whatever fails ends it, with a message. retries: an fsync that failed is called again, and its 0 is believed. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int retries;

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static void sync_file(int file, const char *what) {
    if (fsync(file) == 0) return;
    if (retries && fsync(file) == 0) return;
    fail(what);
}

static void save(int number) {
    char text[32];
    int size = snprintf(text, sizeof text, "%d\n", number);
    int file = open("state.new", O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (file < 0) fail("state.new");
    for (int done = 0; done < size;) {
        ssize_t took = write(file, text + done, size - done);
        if (took < 0) fail("write");
        done += took;
    }
    sync_file(file, "fsync");
    close(file);
    if (rename("state.new", "state") < 0) fail("rename");
    int directory = open(".", O_RDONLY | O_DIRECTORY);
    if (directory < 0) fail(".");
    sync_file(directory, "fsync of the directory");
    close(directory);
}

int main(int argc, char **argv) {
    if (argc != 4 || chdir(argv[3]) < 0) {
        fprintf(stderr, "saves right|retries write|load DIR\n");
        return 64;
    }
    retries = strcmp(argv[1], "retries") == 0;
    if (strcmp(argv[2], "write") == 0) {
        for (int number = 1; number <= 2; number++) {
            save(number);
            FILE *events = fopen(getenv("CRASHLAB_EVENTS"), "a");
            if (!events) fail("events");
            fprintf(events, "ack %d\n", number);
            fclose(events);
        }
        return 0;
    }
    int number = 0;
    FILE *state = fopen("state", "r");
    if (state && fscanf(state, "%d", &number) != 1) number = 0;
    printf("%d\n", number);
    return 0;
}
