package io.holdfast.simulation;

/** What {@link SimFaults} lets go wrong, by name: a summary lists what never did. */
enum Fault {
    CRASH("crashes"),
    CRASH_OF_SEVERAL("several crash at once"),
    CRASH_IN_MID_STEP("crashes in mid-step"),
    PAUSE("pauses"),
    PAUSE_IN_MID_STEP("pauses in mid-step"),
    FREEZE("freezes with clock"),
    SUSPENSION("suspensions"),
    STOP("nodes stopped"),
    POWER_LOSS("power losses"),
    POWER_LOSS_OF_MANY("power losses of many"),
    POWER_LOSS_OF_MAJORITY("power losses of a majority"),
    POWER_LOSS_IN_CATCH_UP("power losses in a catch-up"),
    POWER_LOSS_IN_MID_STEP("power losses in mid-step"),
    FULL_DISK("disks full"),
    SLOW_DISK("disks slow for a while"),
    WIPED_DISK("disks wiped"),
    DAMAGED_DISK("disks damaged"),
    FAILING_DISK("disks failing"),
    UNREADABLE_DISK("disks that cannot be read"),
    ROT("blocks damaged"),
    WRONG_HINT("living nodes called dead"),
    ISOLATION("nodes isolated"),
    ONE_WAY_PARTITION("one-way partitions"),
    PARTITION("partitions"),
    FLAPPING_LINK("flapping links");

    private final String text;

    Fault(String text) {
        this.text = text;
    }

    /** Name of its counter. */
    String counter() {
        return "fault: " + text;
    }
}
