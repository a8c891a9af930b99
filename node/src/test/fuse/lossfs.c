/*
 * lossfs: a file system that loses, at a simulated power loss, what was not synced.
 *
 *   lossfs MOUNTPOINT BACKING_DIRECTORY      runs in the foreground until it is unmounted
 *
 * Every file has two copies, unlinked files in the backing directory: the live one, which readers
 * see (the page cache), and the durable one (the disk). A write goes to the live copy and is noted
 * as a change. fsync, fdatasync, and writes through a descriptor opened with O_SYNC or O_DSYNC
 * bring a file's changes to its durable copy. Names have a live and a durable table per directory
 * in the same way; only fsync of the directory makes changes of names durable.
 *
 * Control: the file /.lossfs-control, which no listing shows. Written to it, one command:
 *   loss SEED         lose power now; EBUSY while a file is open (kill the processes first)
 *   loss SEED drop    the same, and nothing that was not synced survives
 *   ignore-fsync END  from now on, syncs of files whose names end so do nothing and say they did
 *   ignore-fsync      syncs do their work again
 * Read from it: what the last power loss did, as NAME=NUMBER pairs in one line.
 *
 * What a power loss does, all of it drawn from SEED:
 *
 *   content   Each 512-byte sector that unsynced changes touch holds, independently of the others,
 *             its durable content or what it held after any one of the changes: so writes are lost,
 *             reordered and torn between sectors, but no sector is torn in itself. How is drawn per
 *             file: nothing survives, everything, a prefix with its last write torn, a suffix with
 *             its first one torn, whole writes at random, or sectors at random.
 *   size      Each unsynced change of the size (growing write, truncate, fallocate) survives or is
 *             lost by the same rules. What lies behind the resulting size is gone; what lies before
 *             it and was never written reads as zeroes (never as old bytes of other files).
 *   names     Strict POSIX: a random subset of the unsynced creations, renames and removals, in
 *             which each survivor's predecessors with the same name in the same directory survive,
 *             too. A rename is atomic. A synced file whose name was not synced can be lost as a
 *             whole, and a removed one can come back.
 *   after it  All files are served from their durable copies under new inode numbers, so the kernel
 *             has nothing of the old ones in its caches. Directories without a durable name are
 *             gone with all that is in them.
 *
 * Not durable: O_DIRECT (a disk has a cache of its own), sync_file_range (never comes here).
 *
 * What it cannot show:
 *   - File systems whose syncs give more (ext4, XFS: the sync of a new file keeps its name, names
 *     survive in order) are gentler in that; each of their outcomes is one of those drawn here.
 *   - fdatasync is fsync here: both keep the size, times and modes are never lost.
 *   - A loss of synced sectors next to written ones (larger physical sectors, shingled disks), bits
 *     that flip, a disk that fails a sync. A sync is over at once, so no power loss falls into one.
 *   - Writes through a shared writable mapping come here when the kernel writes them back.
 *   - Reads with RWF_NOWAIT: FUSE knows none.
 *
 * One thread; nothing in it is locked. Memory: the unsynced changes.
 */
#define FUSE_USE_VERSION 31
#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

enum { SECTOR = 512, CONTROL = 2, FIRST = 3, MAX_COMMAND = 256, MAX_REPORT = 1024 };

#define CONTROL_NAME ".lossfs-control"

/* ------------------------------------------------------------------ state */

/* An unsynced change of a file, in the order in which they were made. */
struct change {
    struct change *next;
    off_t offset; /* of the written bytes */
    size_t length; /* 0: the size was set */
    bool resizes; /* whether the size became `size` by it */
    off_t size;
    unsigned char data[];
};

struct entry {
    char *name;
    struct inode *inode;
};

struct table {
    struct entry *entries;
    size_t count, room;
};

struct inode {
    fuse_ino_t number;
    mode_t mode;
    uid_t uid;
    gid_t gid;
    struct timespec modified;
    size_t references; /* entries of tables, name changes, opens, and being on the way */
    size_t opens;
    /* files */
    int live, durable;
    off_t size, durable_size;
    bool sync_ignored;
    struct change *first, **end;
    /* directories */
    struct table names, durable_names;
};

/*
 * An unsynced change of names: `name` appears in `directory` for `inode` (from NULL), vanishes (to
 * NULL), or moves.
 */
struct rename_change {
    struct rename_change *next;
    struct inode *from, *to; /* directories */
    char *from_name, *to_name;
    struct inode *inode;
    bool chosen;
};

static struct inode **inodes;
static size_t inodes_room;
static fuse_ino_t next_number = FIRST;
static struct rename_change *renames, **renames_end = &renames;
static const char *backing;
static char ignored_end[MAX_COMMAND];
static char report[MAX_REPORT] = "none\n";
static int open_files;

static void *must(void *memory)
{
    if (!memory) {
        perror("lossfs");
        abort();
    }
    return memory;
}

static void check(bool holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "lossfs: %s: %s\n", what, strerror(errno));
        abort();
    }
}

static struct timespec now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    return time;
}

static int backing_file(void)
{
    char name[4096];
    snprintf(name, sizeof name, "%s/XXXXXX", backing);
    int file = mkostemp(name, O_CLOEXEC);
    check(file >= 0, "cannot make a file in the backing directory");
    unlink(name);
    return file;
}

static void give_number(struct inode *inode, fuse_ino_t number)
{
    while (number >= inodes_room) {
        size_t room = inodes_room ? 2 * inodes_room : 64;
        inodes = must(realloc(inodes, room * sizeof *inodes));
        memset(inodes + inodes_room, 0, (room - inodes_room) * sizeof *inodes);
        inodes_room = room;
    }
    inode->number = number;
    inodes[number] = inode;
}

static struct inode *find(fuse_ino_t number)
{
    return number < inodes_room ? inodes[number] : NULL;
}

static struct inode *new_inode(mode_t mode, uid_t uid, gid_t gid, fuse_ino_t number)
{
    struct inode *made = must(calloc(1, sizeof *made));
    made->mode = mode;
    made->uid = uid;
    made->gid = gid;
    made->modified = now();
    made->live = made->durable = -1;
    made->end = &made->first;
    if (S_ISREG(mode)) {
        made->live = backing_file();
        made->durable = backing_file();
    }
    give_number(made, number);
    made->references = 1;
    return made;
}

static void forget_changes(struct inode *inode)
{
    while (inode->first) {
        struct change *gone = inode->first;
        inode->first = gone->next;
        free(gone);
    }
    inode->end = &inode->first;
}

static void release(struct inode *inode);

static void clear_table(struct table *table)
{
    for (size_t i = 0; i < table->count; i++) {
        free(table->entries[i].name);
        release(table->entries[i].inode);
    }
    table->count = 0;
}

static void release(struct inode *inode)
{
    if (--inode->references > 0) {
        return;
    }
    inodes[inode->number] = NULL;
    forget_changes(inode);
    if (inode->live >= 0) {
        close(inode->live);
        close(inode->durable);
    }
    clear_table(&inode->names);
    clear_table(&inode->durable_names);
    free(inode->names.entries);
    free(inode->durable_names.entries);
    free(inode);
}

static struct entry *entry(struct table *table, const char *name)
{
    for (size_t i = 0; i < table->count; i++) {
        if (!strcmp(table->entries[i].name, name)) {
            return &table->entries[i];
        }
    }
    return NULL;
}

static void take(struct table *table, const char *name)
{
    struct entry *gone = entry(table, name);
    if (gone) {
        struct inode *inode = gone->inode;
        free(gone->name);
        *gone = table->entries[--table->count];
        release(inode);
    }
}

static void put(struct table *table, const char *name, struct inode *inode)
{
    inode->references++;
    take(table, name);
    if (table->count == table->room) {
        table->room = table->room ? 2 * table->room : 8;
        table->entries = must(realloc(table->entries, table->room * sizeof *table->entries));
    }
    table->entries[table->count].name = must(strdup(name));
    table->entries[table->count++].inode = inode;
}

/* ------------------------------------------------------------------ random numbers */

static uint64_t seed;

static uint64_t draw(void) /* splitmix64 */
{
    uint64_t z = seed += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static uint64_t below(uint64_t bound)
{
    return bound ? draw() % bound : 0;
}

static bool chance(unsigned percent)
{
    return below(100) < percent;
}

/* ------------------------------------------------------------------ names */

static void note_rename(
    struct inode *from, const char *from_name, struct inode *to, const char *to_name,
    struct inode *inode)
{
    struct rename_change *made = must(calloc(1, sizeof *made));
    made->inode = inode;
    inode->references++;
    if (from) {
        made->from = from;
        made->from_name = must(strdup(from_name));
        from->references++;
    }
    if (to) {
        made->to = to;
        made->to_name = must(strdup(to_name));
        to->references++;
    }
    *renames_end = made;
    renames_end = &made->next;
}

static bool names(struct rename_change *change, struct inode *directory, const char *name)
{
    return (change->from == directory && !strcmp(change->from_name, name)) ||
           (change->to == directory && !strcmp(change->to_name, name));
}

static bool share_a_name(struct rename_change *a, struct rename_change *b)
{
    return (a->from && names(b, a->from, a->from_name)) || (a->to && names(b, a->to, a->to_name));
}

/* Applies the chosen changes to the durable tables, and forgets them. */
static void make_names_last(void)
{
    struct rename_change **at = &renames;
    while (*at) {
        struct rename_change *change = *at;
        if (!change->chosen) {
            at = &change->next;
            continue;
        }
        if (change->from) {
            take(&change->from->durable_names, change->from_name);
            release(change->from);
        }
        if (change->to) {
            put(&change->to->durable_names, change->to_name, change->inode);
            release(change->to);
        }
        *at = change->next;
        release(change->inode);
        free(change->from_name);
        free(change->to_name);
        free(change);
    }
    renames_end = at;
}

static void forget_renames(void)
{
    while (renames) {
        struct rename_change *gone = renames;
        renames = gone->next;
        if (gone->from) {
            release(gone->from);
        }
        if (gone->to) {
            release(gone->to);
        }
        release(gone->inode);
        free(gone->from_name);
        free(gone->to_name);
        free(gone);
    }
    renames_end = &renames;
}

static void sync_names(struct inode *directory)
{
    for (struct rename_change *each = renames; each; each = each->next) {
        each->chosen = each->from == directory || each->to == directory;
    }
    /* A change from or to another directory lasts only on top of what it builds on there. */
    bool more = true;
    while (more) {
        more = false;
        for (struct rename_change *each = renames; each; each = each->next) {
            for (struct rename_change *later = each->next; later && !each->chosen;
                 later = later->next) {
                each->chosen = later->chosen && share_a_name(each, later);
                more |= each->chosen;
            }
        }
    }
    make_names_last();
}

/* ------------------------------------------------------------------ content */

static void write_at(int file, const void *data, size_t length, off_t offset)
{
    const char *from = data;
    while (length > 0) {
        ssize_t done = pwrite(file, from, length, offset);
        check(done > 0, "cannot write to the backing directory");
        from += done;
        offset += done;
        length -= (size_t)done;
    }
}

static void read_at(int file, void *data, size_t length, off_t offset)
{
    char *to = data;
    while (length > 0) {
        ssize_t done = pread(file, to, length, offset);
        check(done >= 0, "cannot read from the backing directory");
        if (done == 0) {
            memset(to, 0, length);
            return;
        }
        to += done;
        offset += done;
        length -= (size_t)done;
    }
}

static void set_size(int file, off_t size)
{
    check(ftruncate(file, size) == 0, "cannot resize a file in the backing directory");
}

static void note(struct inode *inode, struct change *change)
{
    change->next = NULL;
    *inode->end = change;
    inode->end = &change->next;
    inode->modified = now();
}

static void write_file(struct inode *inode, const void *data, size_t length, off_t offset)
{
    struct change *made = must(malloc(sizeof *made + length));
    made->offset = offset;
    made->length = length;
    made->size = offset + (off_t)length;
    made->resizes = made->size > inode->size;
    memcpy(made->data, data, length);
    write_at(inode->live, data, length, offset);
    if (made->resizes) {
        inode->size = made->size;
    }
    note(inode, made);
}

static void resize_file(struct inode *inode, off_t size)
{
    struct change *made = must(calloc(1, sizeof *made));
    made->resizes = true;
    made->size = size;
    set_size(inode->live, size);
    inode->size = size;
    note(inode, made);
}

static void sync_content(struct inode *inode)
{
    if (inode->sync_ignored && *ignored_end) {
        return;
    }
    for (struct change *each = inode->first; each; each = each->next) {
        if (each->length) {
            write_at(inode->durable, each->data, each->length, each->offset);
        } else if (each->size < inode->size) {
            set_size(inode->durable, each->size); /* what is cut off comes back as zeroes */
        }
    }
    forget_changes(inode);
    set_size(inode->durable, inode->size);
    inode->durable_size = inode->size;
}

/* ------------------------------------------------------------------ power loss */

struct losses {
    unsigned long names, names_lost, files, changes, sectors, sectors_lost, torn;
};

/* A sector that unsynced changes touch. `newest` is what the live copy holds after a change. */
struct sector {
    uint64_t number;
    unsigned char newest[SECTOR], kept[SECTOR];
};

struct sectors {
    struct sector **slots;
    size_t room; /* a power of two */
};

static struct sector *sector(struct sectors *all, struct inode *inode, uint64_t number, off_t cut)
{
    size_t slot = (size_t)(number * 0x9e3779b97f4a7c15u >> 20) & (all->room - 1);
    while (all->slots[slot] && all->slots[slot]->number != number) {
        slot = (slot + 1) & (all->room - 1);
    }
    struct sector *found = all->slots[slot];
    if (!found) {
        all->slots[slot] = found = must(malloc(sizeof *found));
        found->number = number;
        off_t start = (off_t)(number * SECTOR);
        off_t limit = inode->durable_size < cut ? inode->durable_size : cut;
        read_at(inode->durable, found->kept, SECTOR, start);
        memcpy(found->newest, found->kept, SECTOR);
        if (limit < start + SECTOR) {
            size_t from = limit > start ? (size_t)(limit - start) : 0;
            memset(found->newest + from, 0, SECTOR - from);
        }
    }
    return found;
}

enum fate { NOTHING, EVERYTHING, PREFIX, SUFFIX, WRITES, SECTORS, FATES };

/* Brings to the durable copy what of the file's changes survives. */
static void lose_content(struct inode *inode, bool drop, struct losses *losses)
{
    enum fate fate = drop ? NOTHING : (enum fate)below(FATES);
    unsigned percent = (unsigned)(10 + below(81));
    unsigned long count = 0;
    size_t touched = 1;
    for (struct change *each = inode->first; each; each = each->next) {
        count++;
        touched += each->length / SECTOR + 2;
    }
    unsigned long border = below(count), index = 0;
    struct sectors all = {.room = 64};
    while (all.room < 2 * touched) {
        all.room *= 2;
    }
    all.slots = must(calloc(all.room, sizeof *all.slots));

    off_t size = inode->durable_size, cut = INT64_MAX;
    for (struct change *each = inode->first; each; each = each->next, index++) {
        bool whole = fate == EVERYTHING || (fate == PREFIX && index < border) ||
                     (fate == SUFFIX && index > border) || (fate == WRITES && chance(percent));
        bool torn = fate == SECTORS || ((fate == PREFIX || fate == SUFFIX) && index == border);
        if (each->resizes && (whole || (torn && chance(50)))) {
            if (each->length == 0) {
                set_size(inode->durable, each->size); /* what is cut off comes back as zeroes */
            }
            if (each->length == 0 || each->size > size) {
                size = each->size;
            }
        }
        if (each->length == 0) {
            cut = each->size < cut ? each->size : cut;
            for (size_t i = 0; i < all.room; i++) {
                struct sector *at = all.slots[i];
                off_t start = at ? (off_t)(at->number * SECTOR) : 0;
                if (at && start + SECTOR > each->size) {
                    size_t from = each->size > start ? (size_t)(each->size - start) : 0;
                    memset(at->newest + from, 0, SECTOR - from);
                }
            }
            continue;
        }
        unsigned long survivors = 0, here = 0;
        off_t at = each->offset, end = each->offset + (off_t)each->length;
        while (at < end) {
            struct sector *to = sector(&all, inode, (uint64_t)at / SECTOR, cut);
            size_t from = (size_t)(at % SECTOR);
            size_t part = SECTOR - from;
            if (part > (size_t)(end - at)) {
                part = (size_t)(end - at);
            }
            memcpy(to->newest + from, each->data + (at - each->offset), part);
            here++;
            if (whole || (torn && chance(percent))) {
                memcpy(to->kept, to->newest, SECTOR);
                write_at(inode->durable, to->kept, SECTOR, (off_t)(to->number * SECTOR));
                survivors++;
            }
            at += (off_t)part;
        }
        losses->changes++;
        losses->torn += survivors > 0 && survivors < here;
    }
    for (size_t i = 0; i < all.room; i++) {
        struct sector *each = all.slots[i];
        if (each && (off_t)(each->number * SECTOR) < inode->size) {
            losses->sectors++;
            losses->sectors_lost += (off_t)(each->number * SECTOR) >= size ||
                                    memcmp(each->kept, each->newest, SECTOR) != 0;
        }
        free(each);
    }
    losses->files += count > 0;
    free(all.slots);
    set_size(inode->durable, size);
    inode->durable_size = size;
    forget_changes(inode);
}

static void lose_names(bool drop, struct losses *losses)
{
    unsigned long count = 0, index = 0;
    for (struct rename_change *each = renames; each; each = each->next) {
        count++;
    }
    enum fate fate = drop ? NOTHING : (enum fate)below(WRITES + 1);
    unsigned percent = (unsigned)(10 + below(81));
    unsigned long border = below(count);
    for (struct rename_change *each = renames; each; each = each->next, index++) {
        each->chosen = fate == EVERYTHING || (fate == PREFIX && index < border) ||
                       (fate == SUFFIX && index > border) || (fate == WRITES && chance(percent));
        for (struct rename_change *earlier = renames; earlier != each && each->chosen;
             earlier = earlier->next) {
            each->chosen = earlier->chosen || !share_a_name(earlier, each);
        }
        losses->names_lost += !each->chosen;
    }
    losses->names = count;
    make_names_last();
    forget_renames();
}

static void copy_content(struct inode *inode)
{
    static char buffer[1 << 20];
    set_size(inode->live, 0);
    for (off_t at = 0; at < inode->durable_size;) {
        size_t part = sizeof buffer;
        if ((off_t)part > inode->durable_size - at) {
            part = (size_t)(inode->durable_size - at);
        }
        read_at(inode->durable, buffer, part, at);
        write_at(inode->live, buffer, part, at);
        at += (off_t)part;
    }
    set_size(inode->live, inode->durable_size);
    inode->size = inode->durable_size;
}

/* Makes the live tables from the durable ones, and gives everything below a new number. */
static void restore(struct inode *directory)
{
    clear_table(&directory->names);
    for (size_t i = 0; i < directory->durable_names.count; i++) {
        struct entry *each = &directory->durable_names.entries[i];
        put(&directory->names, each->name, each->inode);
        inodes[each->inode->number] = NULL;
        give_number(each->inode, next_number++);
        if (S_ISDIR(each->inode->mode)) {
            restore(each->inode);
        }
    }
}

static int lose_power(uint64_t from, bool drop)
{
    if (open_files > 0) {
        return EBUSY;
    }
    struct losses losses = {0};
    seed = from;
    lose_names(drop, &losses);
    fuse_ino_t end = next_number;
    for (fuse_ino_t number = FIRST; number < end; number++) {
        struct inode *inode = find(number);
        if (inode && inode->first) {
            lose_content(inode, drop, &losses);
            copy_content(inode);
        }
    }
    restore(inodes[FUSE_ROOT_ID]);
    snprintf(
        report, sizeof report,
        "names=%lu names_lost=%lu files=%lu writes=%lu torn=%lu sectors=%lu sectors_lost=%lu\n",
        losses.names, losses.names_lost, losses.files, losses.changes, losses.torn, losses.sectors,
        losses.sectors_lost);
    return 0;
}

static bool ends_with(const char *name, const char *end)
{
    size_t length = strlen(name), part = strlen(end);
    return part <= length && !strcmp(name + length - part, end);
}

static void mark_ignored(struct inode *directory)
{
    for (size_t i = 0; i < directory->names.count; i++) {
        struct entry *each = &directory->names.entries[i];
        each->inode->sync_ignored = ends_with(each->name, ignored_end);
        if (S_ISDIR(each->inode->mode)) {
            mark_ignored(each->inode);
        }
    }
}

static int command(const char *text)
{
    unsigned long long from;
    char word[MAX_COMMAND] = "";
    if (sscanf(text, "loss %llu %200s", &from, word) >= 1) {
        return *word && strcmp(word, "drop") ? EINVAL : lose_power(from, *word);
    }
    if (!strncmp(text, "ignore-fsync", 12)) {
        *ignored_end = 0;
        sscanf(text + 12, " %200s", ignored_end);
        mark_ignored(inodes[FUSE_ROOT_ID]);
        return 0;
    }
    return EINVAL;
}

/* ------------------------------------------------------------------ requests of the kernel */

static struct stat attributes(struct inode *inode)
{
    struct stat made = {
        .st_ino = inode->number,
        .st_mode = inode->mode,
        .st_nlink = 1,
        .st_uid = inode->uid,
        .st_gid = inode->gid,
        .st_size = inode->size,
        .st_blocks = (inode->size + SECTOR - 1) / SECTOR,
        .st_blksize = 4096,
        .st_atim = inode->modified,
        .st_mtim = inode->modified,
        .st_ctim = inode->modified,
    };
    return made;
}

static struct fuse_entry_param parameters(struct inode *inode)
{
    /* No timeouts: a power loss changes everything behind the kernel's back. */
    struct fuse_entry_param made = {.ino = inode->number, .attr = attributes(inode)};
    return made;
}

static struct stat control_attributes(void)
{
    struct stat made = {.st_ino = CONTROL, .st_mode = S_IFREG | 0600, .st_nlink = 1};
    return made;
}

static void fs_init(void *unused, struct fuse_conn_info *connection)
{
    (void)unused;
    connection->want &= ~(unsigned)FUSE_CAP_WRITEBACK_CACHE;
}

static void fs_lookup(fuse_req_t request, fuse_ino_t parent, const char *name)
{
    if (parent == FUSE_ROOT_ID && !strcmp(name, CONTROL_NAME)) {
        struct fuse_entry_param made = {.ino = CONTROL, .attr = control_attributes()};
        fuse_reply_entry(request, &made);
        return;
    }
    struct inode *directory = find(parent);
    struct entry *found = directory ? entry(&directory->names, name) : NULL;
    if (!found) {
        fuse_reply_err(request, directory ? ENOENT : ESTALE);
        return;
    }
    struct fuse_entry_param made = parameters(found->inode);
    fuse_reply_entry(request, &made);
}

static void reply_attributes(fuse_req_t request, struct inode *inode)
{
    struct stat made = attributes(inode);
    fuse_reply_attr(request, &made, 0);
}

static void fs_getattr(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *file)
{
    (void)file;
    struct inode *inode = find(number);
    if (number == CONTROL) {
        struct stat made = control_attributes();
        fuse_reply_attr(request, &made, 0);
    } else if (inode) {
        reply_attributes(request, inode);
    } else {
        fuse_reply_err(request, ESTALE);
    }
}

static void fs_setattr(
    fuse_req_t request, fuse_ino_t number, struct stat *wanted, int what,
    struct fuse_file_info *file)
{
    (void)file;
    struct inode *inode = find(number);
    if (number == CONTROL) {
        struct stat made = control_attributes();
        fuse_reply_attr(request, &made, 0);
        return;
    }
    if (!inode) {
        fuse_reply_err(request, ESTALE);
        return;
    }
    if (what & FUSE_SET_ATTR_MODE) {
        inode->mode = (inode->mode & S_IFMT) | (wanted->st_mode & 07777);
    }
    if (what & FUSE_SET_ATTR_UID) {
        inode->uid = wanted->st_uid;
    }
    if (what & FUSE_SET_ATTR_GID) {
        inode->gid = wanted->st_gid;
    }
    if (what & FUSE_SET_ATTR_SIZE && wanted->st_size != inode->size) {
        resize_file(inode, wanted->st_size);
    }
    if (what & FUSE_SET_ATTR_MTIME) {
        inode->modified = what & FUSE_SET_ATTR_MTIME_NOW ? now() : wanted->st_mtim;
    }
    reply_attributes(request, inode);
}

static void opened(struct inode *inode)
{
    inode->opens++;
    inode->references++;
    open_files++;
}

/* Makes a file or directory; answers the request itself when it cannot. */
static struct inode *make(fuse_req_t request, fuse_ino_t parent, const char *name, mode_t mode)
{
    struct inode *directory = find(parent);
    if (!directory || entry(&directory->names, name) || !strcmp(name, CONTROL_NAME)) {
        fuse_reply_err(request, directory ? EEXIST : ESTALE);
        return NULL;
    }
    const struct fuse_ctx *caller = fuse_req_ctx(request);
    struct inode *made = new_inode(mode, caller->uid, caller->gid, next_number++);
    put(&directory->names, name, made);
    note_rename(NULL, NULL, directory, name, made);
    directory->modified = now();
    made->sync_ignored = *ignored_end && ends_with(name, ignored_end);
    return made;
}

static void fs_create(
    fuse_req_t request, fuse_ino_t parent, const char *name, mode_t mode,
    struct fuse_file_info *file)
{
    struct inode *made = make(request, parent, name, S_IFREG | (mode & 07777));
    if (made) {
        opened(made);
        struct fuse_entry_param answer = parameters(made);
        fuse_reply_create(request, &answer, file);
        release(made);
    }
}

static void fs_mknod(
    fuse_req_t request, fuse_ino_t parent, const char *name, mode_t mode, dev_t device)
{
    (void)device;
    if (!S_ISREG(mode)) {
        fuse_reply_err(request, EPERM);
        return;
    }
    struct inode *made = make(request, parent, name, mode);
    if (made) {
        struct fuse_entry_param answer = parameters(made);
        fuse_reply_entry(request, &answer);
        release(made);
    }
}

static void fs_mkdir(fuse_req_t request, fuse_ino_t parent, const char *name, mode_t mode)
{
    struct inode *made = make(request, parent, name, S_IFDIR | (mode & 07777));
    if (made) {
        struct fuse_entry_param answer = parameters(made);
        fuse_reply_entry(request, &answer);
        release(made);
    }
}

static void remove_name(fuse_req_t request, fuse_ino_t parent, const char *name, bool is_directory)
{
    struct inode *directory = find(parent);
    struct entry *found = directory ? entry(&directory->names, name) : NULL;
    int error = 0;
    if (!found) {
        error = directory ? ENOENT : ESTALE;
    } else if (is_directory != S_ISDIR(found->inode->mode)) {
        error = is_directory ? ENOTDIR : EISDIR;
    } else if (is_directory && found->inode->names.count > 0) {
        error = ENOTEMPTY;
    } else {
        note_rename(directory, name, NULL, NULL, found->inode);
        take(&directory->names, name);
        directory->modified = now();
    }
    fuse_reply_err(request, error);
}

static void fs_unlink(fuse_req_t request, fuse_ino_t parent, const char *name)
{
    remove_name(request, parent, name, false);
}

static void fs_rmdir(fuse_req_t request, fuse_ino_t parent, const char *name)
{
    remove_name(request, parent, name, true);
}

static void fs_rename(
    fuse_req_t request, fuse_ino_t parent, const char *name, fuse_ino_t new_parent,
    const char *new_name, unsigned flags)
{
    struct inode *from = find(parent), *to = find(new_parent);
    struct entry *source = from ? entry(&from->names, name) : NULL;
    struct entry *target = to ? entry(&to->names, new_name) : NULL;
    int error = 0;
    if (!from || !to) {
        error = ESTALE;
    } else if (!source) {
        error = ENOENT;
    } else if (flags & ~(unsigned)RENAME_NOREPLACE) {
        error = EINVAL;
    } else if (target && flags) {
        error = EEXIST;
    } else if (target && S_ISDIR(target->inode->mode)) {
        error = S_ISDIR(source->inode->mode) && !target->inode->names.count ? 0 : ENOTEMPTY;
    }
    if (!error && !(target && target->inode == source->inode)) {
        struct inode *moved = source->inode;
        note_rename(from, name, to, new_name, moved);
        put(&to->names, new_name, moved);
        take(&from->names, name);
        moved->sync_ignored = *ignored_end && ends_with(new_name, ignored_end);
        from->modified = to->modified = now();
    }
    fuse_reply_err(request, error);
}

static void fs_open(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *file)
{
    if (number == CONTROL) {
        file->direct_io = 1;
        fuse_reply_open(request, file);
        return;
    }
    struct inode *inode = find(number);
    if (!inode) {
        fuse_reply_err(request, ESTALE);
        return;
    }
    if (file->flags & O_TRUNC && inode->size > 0) {
        resize_file(inode, 0);
    }
    opened(inode);
    fuse_reply_open(request, file);
}

static void fs_release(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *file)
{
    (void)file;
    struct inode *inode = find(number);
    if (inode && inode->opens > 0) {
        inode->opens--;
        open_files--;
        release(inode);
    }
    fuse_reply_err(request, 0);
}

static void fs_read(
    fuse_req_t request, fuse_ino_t number, size_t length, off_t offset,
    struct fuse_file_info *file)
{
    (void)file;
    if (number == CONTROL) {
        size_t all = strlen(report);
        size_t from = (size_t)offset < all ? (size_t)offset : all;
        fuse_reply_buf(request, report + from, all - from < length ? all - from : length);
        return;
    }
    struct inode *inode = find(number);
    if (!inode) {
        fuse_reply_err(request, ESTALE);
        return;
    }
    if (offset >= inode->size) {
        length = 0;
    } else if ((off_t)length > inode->size - offset) {
        length = (size_t)(inode->size - offset);
    }
    char *buffer = must(malloc(length + 1));
    read_at(inode->live, buffer, length, offset);
    fuse_reply_buf(request, buffer, length);
    free(buffer);
}

static void fs_write(
    fuse_req_t request, fuse_ino_t number, const char *data, size_t length, off_t offset,
    struct fuse_file_info *file)
{
    if (number == CONTROL) {
        char text[MAX_COMMAND] = "";
        memcpy(text, data, length < sizeof text ? length : sizeof text - 1);
        int error = command(text);
        if (error) {
            fuse_reply_err(request, error);
        } else {
            fuse_reply_write(request, length);
        }
        return;
    }
    struct inode *inode = find(number);
    if (!inode) {
        fuse_reply_err(request, ESTALE);
        return;
    }
    write_file(inode, data, length, offset);
    if (file->flags & (O_SYNC | O_DSYNC)) {
        sync_content(inode);
    }
    fuse_reply_write(request, length);
}

static void fs_fsync(
    fuse_req_t request, fuse_ino_t number, int data_only, struct fuse_file_info *file)
{
    (void)data_only;
    (void)file;
    struct inode *inode = find(number);
    if (inode && number != CONTROL) {
        sync_content(inode);
    }
    fuse_reply_err(request, inode || number == CONTROL ? 0 : ESTALE);
}

static void fs_fsyncdir(
    fuse_req_t request, fuse_ino_t number, int data_only, struct fuse_file_info *file)
{
    (void)data_only;
    (void)file;
    struct inode *inode = find(number);
    if (inode) {
        sync_names(inode);
    }
    fuse_reply_err(request, inode ? 0 : ESTALE);
}

static void fs_fallocate(
    fuse_req_t request, fuse_ino_t number, int mode, off_t offset, off_t length,
    struct fuse_file_info *file)
{
    (void)file;
    struct inode *inode = find(number);
    int error = !inode ? ESTALE : mode & ~FALLOC_FL_KEEP_SIZE ? EOPNOTSUPP : 0;
    if (!error && mode == 0 && offset + length > inode->size) {
        resize_file(inode, offset + length);
    }
    fuse_reply_err(request, error);
}

static void fs_readdir(
    fuse_req_t request, fuse_ino_t number, size_t length, off_t offset,
    struct fuse_file_info *file)
{
    (void)file;
    struct inode *directory = find(number);
    if (!directory) {
        fuse_reply_err(request, ESTALE);
        return;
    }
    char *buffer = must(malloc(length));
    size_t used = 0;
    /* Offsets count from the end, so that removing what was listed skips nothing that was not. */
    size_t left = offset ? (size_t)offset - 1 : directory->names.count;
    if (left > directory->names.count) {
        left = directory->names.count;
    }
    for (; left > 0; left--) {
        struct entry *each = &directory->names.entries[left - 1];
        struct stat shown = attributes(each->inode);
        size_t needed = fuse_add_direntry(
            request, buffer + used, length - used, each->name, &shown, (off_t)left);
        if (needed > length - used) {
            break;
        }
        used += needed;
    }
    fuse_reply_buf(request, buffer, used);
    free(buffer);
}

static void fs_statfs(fuse_req_t request, fuse_ino_t number)
{
    (void)number;
    struct statvfs shown;
    if (statvfs(backing, &shown)) {
        fuse_reply_err(request, errno);
    } else {
        fuse_reply_statfs(request, &shown);
    }
}

static const struct fuse_lowlevel_ops operations = {
    .init = fs_init,
    .lookup = fs_lookup,
    .getattr = fs_getattr,
    .setattr = fs_setattr,
    .create = fs_create,
    .mknod = fs_mknod,
    .mkdir = fs_mkdir,
    .unlink = fs_unlink,
    .rmdir = fs_rmdir,
    .rename = fs_rename,
    .open = fs_open,
    .release = fs_release,
    .read = fs_read,
    .write = fs_write,
    .fsync = fs_fsync,
    .fsyncdir = fs_fsyncdir,
    .fallocate = fs_fallocate,
    .readdir = fs_readdir,
    .statfs = fs_statfs,
};

int main(int count, char *words[])
{
    if (count != 3) {
        fprintf(stderr, "usage: lossfs MOUNTPOINT BACKING_DIRECTORY\n");
        return 2;
    }
    backing = words[2];
    /* Ends, and with it the mount, with the test that started it. */
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    new_inode(S_IFDIR | 0755, getuid(), getgid(), FUSE_ROOT_ID);

    char *options[] = {words[0], "-o", "fsname=lossfs,subtype=lossfs,default_permissions", NULL};
    struct fuse_args arguments = FUSE_ARGS_INIT(3, options);
    struct fuse_session *session =
        fuse_session_new(&arguments, &operations, sizeof operations, NULL);
    if (!session || fuse_set_signal_handlers(session) || fuse_session_mount(session, words[1])) {
        return 1;
    }
    int result = fuse_session_loop(session);
    fuse_session_unmount(session);
    fuse_remove_signal_handlers(session);
    fuse_session_destroy(session);
    return result != 0;
}
