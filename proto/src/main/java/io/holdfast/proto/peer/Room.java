package io.holdfast.proto.peer;

/** What room a replica's disk has for new data. The code is the wire format. */
public enum Room {
    ENOUGH(0),
    /** None now, but the cleaner is making some: writes come again a little later. */
    SOON(1),
    /** None until something is deleted or trimmed. */
    NONE(2);

    public final int code;

    Room(int code) {
        this.code = code;
    }

    /** The smaller room of two. */
    public Room and(Room other) {
        return code >= other.code ? this : other;
    }

    /**
     * The room with a code read from outside.
     *
     * @throws MalformedException when there is none
     */
    static Room of(int code) {
        for (Room room : values()) {
            if (room.code == code) {
                return room;
            }
        }
        throw new MalformedException("unknown room " + code);
    }
}
