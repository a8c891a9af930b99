package io.holdfast.simulation;

import io.holdfast.client.BlockDevice.Outcome;
import io.holdfast.proto.peer.ClientReply.Refusal;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;

/**
 * What the production store and volume clients do only now and then, by name: a summary lists what
 * they never did.
 */
enum Rare {
    // ---- the store ----
    STORE_FAILED("store: failed"),
    STORE_REFUSED("store: damaged stores refused"),
    STORE_DISK_REPLACED("store: failing disks replaced"),
    STORE_CLOSED_CLEANLY("store: closed cleanly"),
    STORE_CLOSED_UNCLEANLY("store: closed uncleanly"),
    STORE_TAIL_CUT("store: torn tails cut"),
    STORE_KILLED_IN_WRITE("store: killed in a write"),
    STORE_KILLED_AT_START("store: killed while it was opened"),
    STORE_NOT_STARTED("store: starts that failed"),
    STORE_CHECKPOINT("store: checkpoints"),
    STORE_SEGMENT_MADE("store: segments made"),
    STORE_SEGMENT_REMOVED("store: segments removed"),
    STORE_BYTES_MOVED("store: bytes moved by the cleaner"),
    STORE_FULL("store: full"),
    STORE_FULL_FOR_NOW("store: full until it is cleaned"),
    STORE_RECORD_DAMAGED("store: records damaged"),
    STORE_DISK_ERROR("store: disk errors"),
    STORE_READ_FAILED("store: reads failed"),
    STORE_SECTOR_LOST("store: sectors lost with power"),
    EXTENTS_UNREADABLE("store: extents taken as doubtful"),
    EXTENTS_SENT("extents sent"),
    BASE_INSTALLED("bases installed"),
    ENTRIES_GONE("entries gone"),
    STARTED_OVER("replicas started over"),
    COPY_OF_ANOTHER_WRITE("copies of another write"),
    BLOCK_REPAIRED("blocks repaired"),
    REPAIR_REFUSED("blocks not repaired for want of room"),

    // ---- volume clients ----
    REQUEST_REPEATED("requests repeated by volume clients"),
    REQUEST_TIMED_OUT("requests of volume clients that timed out"),
    MERGED_WRITE("merged writes sent"),
    MERGED_WRITE_MET_ANOTHER("merged writes that met another"),
    CORRUPT_BLOCK_SENT("corrupt blocks sent to volume clients"),
    BLOCK_RECOVERED("blocks recovered by volume clients"),
    BLOCK_UNREADABLE("blocks that no replica had"),
    SESSION_OPENED("sessions of volume clients"),
    CLAIM_GRANTED("claims of volume clients"),
    WRITE_REFUSED("writes refused: another holds the volume"),
    LEFT_OPEN("volume clients left open"),
    AGENT_KILLED("agents killed");

    /** Refusals that end a request of a volume client's, all but those that its own bugs cause. */
    private static final Set<Refusal> REFUSALS =
            EnumSet.complementOf(
                    EnumSet.of(
                            Refusal.NOT_LEADER,
                            Refusal.BUSY,
                            Refusal.UNKNOWN_SHARD,
                            Refusal.INVALID));

    /** How calls of one may end; no node is shut down here with a client of its own. */
    private static final Set<Outcome> FAILURES =
            EnumSet.complementOf(EnumSet.of(Outcome.OK, Outcome.SHUTTING_DOWN));

    private final String text;

    Rare(String text) {
        this.text = text;
    }

    /** Name of its counter. */
    String counter() {
        return text;
    }

    /** Name of the counter of a refusal. */
    static String told(Refusal why) {
        return "volume clients told " + why;
    }

    /** Name of the counter of a call's end. */
    static String ended(Outcome outcome) {
        return "calls that ended with " + outcome;
    }

    /** Names of all of these counters. */
    static List<String> counters() {
        return Stream.of(
                        Arrays.stream(values()).map(Rare::counter),
                        REFUSALS.stream().map(Rare::told),
                        FAILURES.stream().map(Rare::ended))
                .flatMap(names -> names)
                .toList();
    }
}
