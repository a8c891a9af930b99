package io.holdfast.client.cli;

import io.holdfast.client.admin.AdminClient;
import io.holdfast.client.admin.AdminException;
import io.holdfast.client.admin.CreateVolume;
import io.holdfast.client.bench.Fio;
import java.io.PrintWriter;
import java.time.Duration;

/**
 * The volume of a benchmark: made for the run and deleted once, at its end or when the process is
 * told to end in the middle of it (SIGINT, SIGTERM), whichever comes first.
 */
final class BenchVolume implements AutoCloseable {
    /** An interrupted run waits this long for the end of the volume; then it says how to go on. */
    private static final Duration CLEANUP_TIMEOUT = Duration.ofSeconds(15);

    private final String name;
    private final ClusterOptions cluster;
    private final Fio fio;
    private final PrintWriter err;
    private final Thread hook = Thread.ofPlatform().unstarted(this::interrupted);
    private boolean done;

    private BenchVolume(String name, ClusterOptions cluster, Fio fio, PrintWriter err) {
        this.name = name;
        this.cluster = cluster;
        this.fio = fio;
        this.err = err;
    }

    /**
     * Refuses to run beside another run, or over what one has left behind.
     *
     * @throws CliException with {@link ExitCode#NAME_TAKEN} when the volume is there
     */
    static void refuseLeftover(String name, AdminClient admin, ClusterOptions cluster)
            throws AdminException {
        try {
            var _ = admin.volume(name);
        } catch (AdminException e) {
            if (CliException.of(e).exitCode() == ExitCode.NO_SUCH_VOLUME) {
                return;
            }
            throw e;
        }
        throw new CliException(
                ExitCode.NAME_TAKEN,
                "volume "
                        + name
                        + " is there: another bench runs now, or an earlier one was killed",
                "If none runs, it is a leftover. Delete it with: " + deleteCommand(name, cluster));
    }

    /**
     * Makes the volume.
     *
     * @param fio is stopped before the volume is deleted
     * @param err where to say that it could not be deleted
     */
    static BenchVolume create(
            String name,
            long bytes,
            AdminClient admin,
            ClusterOptions cluster,
            Fio fio,
            PrintWriter err)
            throws AdminException {
        BenchVolume made = new BenchVolume(name, cluster, fio, err);
        Runtime.getRuntime().addShutdownHook(made.hook);
        try {
            admin.create(new CreateVolume(name, bytes, null, null, null, null, null));
            return made;
        } catch (AdminException | RuntimeException e) {
            // A creation that fails may have happened all the same.
            made.close();
            throw e;
        }
    }

    private static String deleteCommand(String name, ClusterOptions cluster) {
        return "holdfast volume delete " + name + " --yes --force" + cluster.sameCluster();
    }

    private void interrupted() {
        Thread work = Thread.ofPlatform().daemon(true).start(this::delete);
        try {
            if (!work.join(CLEANUP_TIMEOUT)) {
                complain("the cluster does not answer");
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private synchronized void delete() {
        if (done) {
            return;
        }
        done = true;
        fio.stop();
        // Its own client: the command's may be in the middle of a request.
        try (AdminClient admin = cluster.connect()) {
            admin.delete(name, true);
        } catch (AdminException e) {
            if (CliException.of(e).exitCode() != ExitCode.NO_SUCH_VOLUME) {
                complain(e.getMessage());
            }
        }
    }

    private void complain(String why) {
        err.println("volume " + name + " is not deleted (" + why + ")");
        err.println("  Delete it with: " + deleteCommand(name, cluster));
        err.flush();
    }

    /** Deletes the volume; says so when it cannot. */
    @Override
    public void close() {
        delete();
        try {
            var _ = Runtime.getRuntime().removeShutdownHook(hook);
        } catch (IllegalStateException _) {
            // The process ends already; the hook finds that all is done.
        }
    }
}
