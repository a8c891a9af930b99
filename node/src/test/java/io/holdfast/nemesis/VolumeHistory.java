package io.holdfast.nemesis;

import io.holdfast.nemesis.Operation.State;
import io.holdfast.simulation.RegisterChecker;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/**
 * What clients asked of a volume's registers and were answered. A register is a block of 4 KiB;
 * registers lie in groups of neighbours, one group per stripe, so that requests can cover several
 * and all shards have some.
 *
 * <p>The history is cut into parts, so that hours of it fit into memory: when clients rest, every
 * register is read, the part is checked, and the next one begins with what was read. Writes in
 * doubt that nobody has seen go on into the next part.
 *
 * <p>Thread-safe for adding; {@link #check} and {@link #cut} are for when clients rest.
 */
final class VolumeHistory {
    static final int BLOCK_BYTES = 4096;
    static final int GROUP = 16;
    static final int GROUPS = 4;
    static final int REGISTERS = GROUP * GROUPS;
    private static final long STRIPE_BYTES = 4L << 20;

    /** Size of a volume that has all registers. */
    static final long VOLUME_BYTES = GROUPS * STRIPE_BYTES;

    /** A register whose history nothing can explain. */
    record Violation(String volume, int register, String what, List<String> history) {}

    final String volume;
    private final long epochNanos;
    private final List<List<Operation>> registers = new ArrayList<>();
    private final long[] initial = new long[REGISTERS];

    VolumeHistory(String volume, long epochNanos) {
        this.volume = volume;
        this.epochNanos = epochNanos;
        for (int i = 0; i < REGISTERS; i++) {
            registers.add(new ArrayList<>());
        }
    }

    /** Where a register lies in the volume. */
    static long offset(int register) {
        return register / GROUP * STRIPE_BYTES + (long) register % GROUP * BLOCK_BYTES;
    }

    /** Before the request is sent. */
    void add(Operation operation) {
        for (int i = 0; i < operation.count; i++) {
            List<Operation> register = registers.get(operation.first + i);
            synchronized (register) {
                register.add(operation);
            }
        }
    }

    /** One line. */
    String describe(Operation operation) {
        return operation.describe(epochNanos);
    }

    /** The first register, if any, whose history is not that of a register. */
    Optional<Violation> check() {
        for (int register = 0; register < REGISTERS; register++) {
            List<RegisterChecker.Operation> history = new ArrayList<>();
            for (Operation operation : registers.get(register)) {
                if (operation.kind == Operation.Kind.WRITE || operation.state == State.DONE) {
                    history.add(operation.at(register));
                }
            }
            Optional<String> wrong = RegisterChecker.check(initial[register], history);
            if (wrong.isPresent()) {
                List<String> lines = new ArrayList<>();
                lines.add("begins with " + initial[register]);
                registers.get(register).forEach(o -> lines.add(o.describe(epochNanos)));
                return Optional.of(new Violation(volume, register, wrong.get(), lines));
            }
        }
        return Optional.empty();
    }

    /**
     * Begins a new part. {@code now} is what every register was last read to hold, clients at rest.
     */
    void cut(long[] now) {
        for (int register = 0; register < REGISTERS; register++) {
            List<Operation> operations = registers.get(register);
            Set<Long> seen = new HashSet<>();
            for (Operation operation : operations) {
                if (operation.seen.length > 0) {
                    seen.add(operation.seen[register - operation.first]);
                }
            }
            int at = register;
            operations.removeIf(operation ->
                    !operation.isInDoubt()
                            || operation.settledNanos != RegisterChecker.NEVER
                            || seen.contains(operation.value + at - operation.first));
            initial[register] = now[register];
        }
    }
}
