package io.holdfast.nemesis;

import java.util.Arrays;
import java.util.Optional;

/** Kinds of trouble, each under the name that the command line uses. */
enum Fault {
    /** kill -9 of a node, and its restart. */
    KILL("kill", Needs.NOTHING),
    /** kill -9 of all nodes at once, and their restart. */
    KILL_ALL("kill-all", Needs.NOTHING),
    /** SIGSTOP, later SIGCONT. */
    PAUSE("pause", Needs.NOTHING),
    /** A node and the others do not hear each other; its clients reach it. */
    ISOLATE("isolate", Needs.NETWORK),
    /** Nothing reaches a node, from nodes or clients. */
    UNPLUG("unplug", Needs.NETWORK),
    /** What a node sends to another is lost; the way back is open. */
    ONE_WAY("one-way", Needs.NETWORK),
    /** Two nodes do not hear each other; the third hears both. */
    PAIR("pair", Needs.NETWORK),
    /** A node is cut off from clients only. */
    CLIENTS("clients", Needs.NETWORK),
    /** A node's file system is full. */
    DISK("disk", Needs.DISKS);

    /** What this machine must let us make. */
    enum Needs {
        NOTHING,
        NETWORK,
        DISKS
    }

    final String word;
    final Needs needs;

    Fault(String word, Needs needs) {
        this.word = word;
        this.needs = needs;
    }

    static Optional<Fault> of(String word) {
        return Arrays.stream(values()).filter(fault -> fault.word.equals(word)).findFirst();
    }
}
