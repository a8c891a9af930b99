package io.holdfast.node;

import io.holdfast.client.crypto.ClusterKey;
import io.holdfast.client.crypto.KeyException;
import io.holdfast.config.ConfigException;
import io.holdfast.config.ConfigLoader;
import io.holdfast.config.NodeConfig;
import java.io.IOException;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Runs one storage node: {@code Main --config FILE}.
 *
 * <table>
 * <caption>Exit codes</caption>
 * <tr><td>0</td><td>stopped cleanly after SIGTERM or SIGINT</td></tr>
 * <tr><td>1</td><td>could not start, or not stop in time</td></tr>
 * <tr><td>2</td><td>command line, configuration or cluster key cannot be used</td></tr>
 * <tr><td>70</td><td>an invariant is broken: the replica must not go on</td></tr>
 * </table>
 */
public final class Main {
    private static final int STOPPED = 0;
    private static final int FAILED = 1;
    private static final int UNUSABLE = 2;
    private static final int BROKEN = 70;

    /** A stop that takes longer than this is ended; the journal is made for that. */
    private static final long STOP_MILLIS = 9_500;

    private static final Logger LOG = LoggerFactory.getLogger(Main.class);

    private Main() {}

    /** Starts a node and returns; the node's threads keep the process alive. */
    public static void main(String[] args) {
        if (args.length != 2 || !args[0].equals("--config")) {
            complain("usage: holdfast node --config FILE");
            System.exit(UNUSABLE);
        }
        try {
            NodeConfig config = ConfigLoader.load(Path.of(args[1]));
            ClusterKey key = ClusterKey.load(config.clusterKeyFile());
            run(config, key);
        } catch (ConfigException | KeyException e) {
            complain(e.getMessage());
            System.exit(UNUSABLE);
        }
    }

    /** Standard error, not the log: the person who started the node reads it. */
    private static void complain(@Nullable String what) {
        System.err.println(what);
    }

    private static void run(NodeConfig config, ClusterKey key) {
        try {
            Node node = new Node(config, key, Main::endBroken);
            node.start();
            Runtime.getRuntime()
                    .addShutdownHook(Thread.ofPlatform().name("stop").unstarted(() -> end(node)));
        } catch (KeyException e) {
            complain(
                    e.getMessage()
                            + "; put that key back into "
                            + config.clusterKeyFile()
                            + " and start again");
            System.exit(UNUSABLE);
        } catch (IOException | RuntimeException e) {
            LOG.error("{} cannot start: {}", config.self().id(), e.getMessage(), e);
            System.exit(FAILED);
        }
    }

    /** Runs in the shutdown hook, where only halt can set the exit code. */
    private static void end(Node node) {
        Thread.ofPlatform()
                .daemon(true)
                .name("stop-limit")
                .start(() -> {
                    try {
                        // A time limit for all of the stop, kept by a thread that cannot be held
                        // up by whatever hangs; a stop in time ends the process under it.
                        Thread.sleep(STOP_MILLIS);
                    } catch (InterruptedException e) {
                        Thread.currentThread().interrupt();
                        return;
                    }
                    LOG.error("not stopped within {} ms", STOP_MILLIS);
                    Runtime.getRuntime().halt(FAILED);
                });
        Runtime.getRuntime().halt(node.stop() ? STOPPED : FAILED);
    }

    /** No shutdown hook: nothing of a state that is wrong may be written any more. */
    private static void endBroken(Throwable broken) {
        LOG.error("an invariant is broken, the node ends at once", broken);
        Runtime.getRuntime().halt(BROKEN);
    }
}
