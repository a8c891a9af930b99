package io.holdfast.node.coordination;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.AppenderBase;
import io.holdfast.config.NodeConfig;
import io.holdfast.node.port.Coordinator.NodeState;
import io.holdfast.proto.catalogue.Catalogue;
import io.holdfast.proto.catalogue.Change;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Predicate;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.slf4j.LoggerFactory;

/** Real Atomix clusters in this JVM. */
class AtomixCoordinatorIT {
    private static final int START_SECONDS = 90;

    @TempDir Path directory;
    private final List<AtomixCoordinator> open = new ArrayList<>();
    private List<Integer> ports = List.of();

    @BeforeEach
    void ports() throws IOException {
        ports = TestNodes.freePorts(3);
    }

    @AfterEach
    void closeAll() {
        open.forEach(AtomixCoordinator::close);
    }

    @Test
    void aChangeOnOneNodeIsSeenByAllAndEachEpochHasOneWinner() throws Exception {
        List<AtomixCoordinator> nodes = List.of(node(1), node(2), node(3));
        startAll(nodes);

        Change.Result created = change(nodes.get(0), create("a"));
        assertThat(created).isEqualTo(new Change.Result(true, 1, 1, ""));
        for (AtomixCoordinator node : nodes) {
            awaitCatalogue(node, c -> c.version() == 1 && c.volume("a").isPresent());
            assertThat(node.members()).containsOnlyKeys(1, 2, 3).containsValue(NodeState.ALIVE);
        }

        for (long epoch = 1; epoch <= 20; epoch++) {
            List<CompletableFuture<Change.Result>> claims = new ArrayList<>();
            for (int i = 0; i < 3; i++) {
                claims.add(
                        nodes.get(i)
                                .change(
                                        new Change.ClaimLeader(
                                                1, 0, i + 1, nodes.get(i).incarnation(), epoch)));
            }
            int winner = 0;
            for (int i = 0; i < 3; i++) {
                if (claims.get(i).get(10, TimeUnit.SECONDS).applied()) {
                    assertThat(winner).as("second winner of epoch %d", epoch).isZero();
                    winner = i + 1;
                }
            }
            assertThat(winner).as("winner of epoch %d", epoch).isPositive();
            int leader = winner;
            long recorded = epoch;
            awaitCatalogue(
                    nodes.get(0),
                    c ->
                            c.volumes().getFirst().shards().getFirst().epoch() == recorded
                                    && c.volumes().getFirst().shards().getFirst().leader()
                                            == leader);
        }
        awaitEqual(nodes);
    }

    @Test
    void aNodeAloneServesWhatItSavedTimesOutAndJoinsWhenTheOthersComeLater() throws Exception {
        CatalogueState before = new CatalogueState();
        before.apply(create("saved"));
        NodeConfig first = TestNodes.config(1, ports, directory);
        new SavedCatalogue(first.dataDirectory()).save(before.catalogue());

        AtomixCoordinator one = node(1);
        CompletableFuture<Void> started = one.start();
        assertThat(one.catalogue()).isEqualTo(before.catalogue());
        assertThatThrownBy(() -> one.change(create("early")).get(30, TimeUnit.SECONDS))
                .isInstanceOf(ExecutionException.class)
                .hasCauseInstanceOf(TimeoutException.class);
        assertThat(one.members())
                .containsEntry(1, NodeState.ALIVE)
                .containsEntry(2, NodeState.DEAD)
                .containsEntry(3, NodeState.DEAD);
        assertThatThrownBy(() -> started.get(35, TimeUnit.SECONDS))
                .isInstanceOf(TimeoutException.class);

        AtomixCoordinator two = node(2);
        AtomixCoordinator three = node(3);
        startAll(List.of(one, two, three));
        started.get(1, TimeUnit.SECONDS);

        // What node 1 had saved came back to the empty cluster; the early change did not happen.
        awaitCatalogue(two, c -> c.equals(before.catalogue()));
        assertThat(change(three, create("later")).volume()).isEqualTo(2);
        awaitEqual(List.of(one, two, three));
    }

    @Test
    void aChangeWithoutAMajorityTimesOutAndCloseDoesNotHang() throws Exception {
        List<AtomixCoordinator> nodes = List.of(node(1), node(2), node(3));
        startAll(nodes);
        change(nodes.get(0), create("a"));
        nodes.get(1).close();
        nodes.get(2).close();

        CompletableFuture<Change.Result> lonely = nodes.get(0).change(create("b"));
        assertThatThrownBy(() -> lonely.get(20, TimeUnit.SECONDS))
                .isInstanceOf(ExecutionException.class)
                .hasCauseInstanceOf(TimeoutException.class);
        assertThat(nodes.get(0).catalogue().volume("a")).isPresent();

        long begin = System.nanoTime();
        nodes.get(0).close();
        assertThat(Duration.ofNanos(System.nanoTime() - begin)).isLessThan(Duration.ofSeconds(15));
        assertThatThrownBy(() -> nodes.get(0).change(create("c")).get(1, TimeUnit.SECONDS))
                .hasCauseInstanceOf(IllegalStateException.class);
    }

    @Test
    void aMemberThatLeftAndCameBackSeesWhatItMissed() throws Exception {
        List<AtomixCoordinator> nodes = List.of(node(1), node(2), node(3));
        startAll(nodes);
        nodes.get(2).close();
        change(nodes.get(0), create("missed"));

        AtomixCoordinator again = node(3);
        startAll(List.of(again));
        awaitEqual(List.of(nodes.get(0), nodes.get(1), again));
        assertThat(change(again, new Change.MarkReady(1)).applied()).isTrue();
        awaitEqual(List.of(nodes.get(0), nodes.get(1), again));
    }

    @Test
    void aClusterOfOneKeepsItsCatalogueAcrossRestarts() throws Exception {
        ports = ports.subList(0, 1);
        AtomixCoordinator node = node(1);
        startAll(List.of(node));
        change(node, create("a"));
        Catalogue before = node.catalogue();
        node.close();

        AtomixCoordinator again = node(1);
        assertThat(again.catalogue()).isEqualTo(before);
        startAll(List.of(again));
        assertThat(change(again, create("b")).volume()).isEqualTo(2);
        assertThat(again.members()).containsExactly(java.util.Map.entry(1, NodeState.ALIVE));
    }

    @Test
    void aClusterThatLostItsLogGetsTheSavedCatalogueBack() throws Exception {
        ports = ports.subList(0, 1);
        AtomixCoordinator node = node(1);
        startAll(List.of(node));
        change(node, create("a"));
        change(node, new Change.ClaimLeader(1, 0, 1, node.incarnation(), 4));
        Catalogue before = node.catalogue();
        node.close();
        deleteLog(1);

        AtomixCoordinator again = node(1);
        startAll(List.of(again));
        assertThat(again.catalogue()).isEqualTo(before);
        assertThat(change(again, new Change.MarkReady(1)))
                .isEqualTo(new Change.Result(true, before.version() + 1, 0, ""));
    }

    @Test
    void otherMembersThanTheClusterWasFormedByAreRefused() throws Exception {
        List<Integer> three = ports;
        ports = three.subList(0, 1);
        AtomixCoordinator node = node(1);
        startAll(List.of(node));
        node.close();

        ports = three;
        AtomixCoordinator again = node(1);
        assertThatThrownBy(() -> again.start().get(START_SECONDS, TimeUnit.SECONDS))
                .hasMessageContaining("was formed by nodes [n1]");
    }

    @Test
    void anAddressInUseFailsTheStart() throws Exception {
        try (ServerSocket taken =
                new ServerSocket(ports.getFirst(), 1, InetAddress.getLoopbackAddress())) {
            AtomixCoordinator node = node(1);
            assertThatThrownBy(() -> node.start().get(START_SECONDS, TimeUnit.SECONDS))
                    .hasMessageContaining("cannot bind 127.0.0.1:" + taken.getLocalPort());
        }
    }

    @Test
    void watchersSeeRisingVersionsBeginningWithThePresentOne() throws Exception {
        ports = ports.subList(0, 1);
        AtomixCoordinator node = node(1);
        List<Long> versions = new CopyOnWriteArrayList<>();
        node.watch(catalogue -> versions.add(catalogue.version()));
        node.watch(catalogue -> {
            throw new IllegalStateException("a watcher's own failure");
        });
        startAll(List.of(node));
        for (int i = 0; i < 10; i++) {
            change(node, create("v" + i));
        }
        assertThat(versions).startsWith(0L).endsWith(10L).isSorted().doesNotHaveDuplicates();
    }

    @Test
    void aStopInTheMiddleOfAStartIsQuiet() throws Exception {
        CountDownLatch joining = new CountDownLatch(1);
        List<String> complaints = new CopyOnWriteArrayList<>();
        AppenderBase<ILoggingEvent> listener =
                new AppenderBase<>() {
                    @Override
                    protected void append(ILoggingEvent event) {
                        if (event.getFormattedMessage().startsWith("joining as")) {
                            joining.countDown();
                        }
                        if (event.getLevel().isGreaterOrEqual(Level.WARN)) {
                            complaints.add(event.getFormattedMessage());
                        }
                    }
                };
        Logger logger = (Logger) LoggerFactory.getLogger("io.holdfast.node.coordination");
        Level before = logger.getLevel();
        logger.setLevel(Level.INFO);
        listener.start();
        logger.addAppender(listener);
        try {
            AtomixCoordinator node = node(1);
            CompletableFuture<Void> started = node.start();
            assertThat(joining.await(START_SECONDS, TimeUnit.SECONDS)).isTrue();
            node.close();
            assertThat(started).isCompletedExceptionally();
        } finally {
            logger.detachAppender(listener);
            logger.setLevel(before);
        }
        assertThat(complaints).isEmpty();
    }

    private AtomixCoordinator node(int number) throws IOException {
        AtomixCoordinator node =
                new AtomixCoordinator(
                        TestNodes.config(number, ports, directory),
                        AtomixCoordinator.CALL_TIMEOUT,
                        TestNodes.SEGMENT_BYTES);
        open.add(node);
        return node;
    }

    private static void startAll(List<AtomixCoordinator> nodes) throws Exception {
        List<CompletableFuture<Void>> starts =
                nodes.stream().map(AtomixCoordinator::start).toList();
        for (CompletableFuture<Void> start : starts) {
            start.get(START_SECONDS, TimeUnit.SECONDS);
        }
    }

    private static Change create(String name) {
        return new Change.CreateVolume(Volumes.volume(name));
    }

    private static Change.Result change(AtomixCoordinator node, Change change) throws Exception {
        return node.change(change).get(20, TimeUnit.SECONDS);
    }

    private static void awaitCatalogue(AtomixCoordinator node, Predicate<Catalogue> wanted)
            throws InterruptedException {
        CountDownLatch seen = new CountDownLatch(1);
        node.watch(catalogue -> {
            if (wanted.test(catalogue)) {
                seen.countDown();
            }
        });
        assertThat(seen.await(20, TimeUnit.SECONDS)).as("%s", node.catalogue()).isTrue();
    }

    private static void awaitEqual(List<AtomixCoordinator> nodes) throws InterruptedException {
        long newest = nodes.stream().mapToLong(n -> n.catalogue().version()).max().orElseThrow();
        for (AtomixCoordinator node : nodes) {
            awaitCatalogue(node, catalogue -> catalogue.version() >= newest);
            assertThat(node.catalogue()).isEqualTo(nodes.getFirst().catalogue());
        }
    }

    private void deleteLog(int number) throws IOException {
        Path log = directory.resolve("node" + number).resolve("coordination");
        try (var files = Files.list(log)) {
            for (Path file : files.toList()) {
                Files.delete(file);
            }
        }
    }
}
