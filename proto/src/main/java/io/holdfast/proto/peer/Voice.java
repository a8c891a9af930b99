package io.holdfast.proto.peer;

/** What a replica's promise to a candidate is worth. The code is the wire format. */
public enum Voice {
    /** It has everything that it ever acknowledged. */
    VOTER(0),
    /** It lost power and may have forgotten: counts after a power loss of a majority only. */
    LEARNER(1),
    /** It has nothing to rely on, and promises only to the node that it has everything from. */
    DEPENDENT(2);

    public final int code;

    Voice(int code) {
        this.code = code;
    }

    /**
     * The voice with a code read from outside.
     *
     * @throws MalformedException when there is none
     */
    static Voice of(int code) {
        for (Voice voice : values()) {
            if (voice.code == code) {
                return voice;
            }
        }
        throw new MalformedException("unknown voice " + code);
    }
}
