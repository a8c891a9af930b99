package io.holdfast.node;

import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAPackage;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAnyPackage;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static org.junit.jupiter.api.Assertions.assertEquals;

import com.tngtech.archunit.base.DescribedPredicate;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.domain.JavaCodeUnitAccess;
import com.tngtech.archunit.core.importer.ImportOption;
import com.tngtech.archunit.junit.AnalyzeClasses;
import com.tngtech.archunit.junit.ArchTest;
import com.tngtech.archunit.lang.ArchRule;
import java.time.Clock;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.Calendar;
import java.util.Date;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Predicate;
import java.util.regex.Pattern;

/** The direction of dependencies inside the modules; between modules Maven sees to it. */
@AnalyzeClasses(packages = "io.holdfast", importOptions = ImportOption.DoNotIncludeTests.class)
class ArchitectureTest {
    private static final String[] ADAPTERS = {
        "io.holdfast.node.store..",
        "io.holdfast.node.peer..",
        "io.holdfast.node.coordination..",
        "io.holdfast.node.admin..",
    };

    @ArchTest
    static final ArchRule CORE_USES_THE_JDK_AND_MESSAGES_ONLY =
            classes()
                    .that()
                    .resideInAPackage("io.holdfast.node.replica..")
                    .should()
                    .onlyDependOnClassesThat(
                            resideInAnyPackage(
                                    "io.holdfast.node.replica..",
                                    "io.holdfast.proto.peer..",
                                    "java.lang..",
                                    "java.util",
                                    "java.util.function..",
                                    "java.nio..",
                                    "java.io..",
                                    "org.jspecify..",
                                    "org.slf4j.."));

    @ArchTest
    static final ArchRule CORE_HAS_NO_CLOCK_THREADS_CHANCE_OR_INPUT =
            noClasses()
                    .that()
                    .resideInAPackage("io.holdfast.node.replica..")
                    .should()
                    .dependOnClassesThat(
                            resideInAnyPackage(
                                            "java.util.concurrent..",
                                            "java.nio.file..",
                                            "java.nio.channels..",
                                            "java.net..",
                                            "java.time..")
                                    .or(
                                            DescribedPredicate.describe(
                                                    "threads, chance or files",
                                                    type ->
                                                            type.isEquivalentTo(Thread.class)
                                                                    || type.getName()
                                                                            .startsWith(
                                                                                    "java.util.Random")
                                                                    || type.getName()
                                                                            .equals(
                                                                                    "java.util.UUID")
                                                                    || type.getName()
                                                                            .startsWith(
                                                                                    "java.io.File"))))
                    .allowEmptyShould(true);

    @ArchTest
    static final ArchRule CORE_READS_NO_CLOCK =
            noClasses()
                    .that()
                    .resideInAPackage("io.holdfast.node.replica..")
                    .should()
                    .callMethod(System.class, "nanoTime")
                    .orShould()
                    .callMethod(System.class, "currentTimeMillis");

    /**
     * Wall clocks jump, so nothing that data depends on may read one. What is named here survives
     * that, and says why.
     */
    private static final Map<String, String> WALL_CLOCK_READERS =
            Map.of(
                    "io.holdfast.node.Node",
                    "the schedule of scrubs outlives restarts; a jump makes one early or late",
                    "io.holdfast.client.cli.ScrubCommand",
                    "shows when a scrub will end, and paces lines of progress");

    /** Where time enters; from there on it is an argument or a source handed over. */
    private static final Map<String, String> STOPWATCH_READERS =
            Map.ofEntries(
                    Map.entry("io.holdfast.node.runtime.DataLoop", "the data loop's time"),
                    Map.entry("io.holdfast.node.runtime.DataThread", "the data loop's time"),
                    Map.entry("io.holdfast.node.peer.NettyPeerLinks", "the data loop's time"),
                    Map.entry("io.holdfast.client.nbd.NbdServer", "the data loop's time"),
                    Map.entry("io.holdfast.node.store.Threads", "the store's; simulated in tests"),
                    Map.entry(
                            "io.holdfast.node.coordination.AtomixCoordinator",
                            "says now and then that it still waits for the catalogue"),
                    Map.entry("io.holdfast.node.Node", "how long it waits before it joins"),
                    Map.entry("io.holdfast.node.admin.Readiness", "how long it has been so"),
                    Map.entry("io.holdfast.node.admin.VolumeMaker", "how long it waits"),
                    Map.entry("io.holdfast.node.tool.StoreCommand", "paces lines of progress"));

    @ArchTest
    static void wallClocksAreReadInNamedPlacesOnly(JavaClasses production) {
        assertReaders(WALL_CLOCK_READERS, production, ArchitectureTest::readsWallClock);
    }

    @ArchTest
    static void timeEntersInNamedPlacesOnly(JavaClasses production) {
        assertReaders(
                STOPWATCH_READERS, production, access -> is(access, System.class, "nanoTime"));
    }

    /**
     * Neither may a place be missing from the list, nor stay there when it has no need any more.
     */
    private static void assertReaders(
            Map<String, String> named,
            JavaClasses production,
            Predicate<JavaCodeUnitAccess<?>> reads) {
        Map<String, List<String>> found = new TreeMap<>();
        for (JavaClass type : production) {
            type.getCodeUnitAccessesFromSelf().stream()
                    .filter(reads)
                    .forEach(access ->
                            found.computeIfAbsent(outermost(type), name -> new ArrayList<>())
                                    .add(access.getDescription()));
        }
        assertEquals(new TreeSet<>(named.keySet()), found.keySet(), () -> "found: " + found);
    }

    private static String outermost(JavaClass type) {
        return type.getEnclosingClass().map(ArchitectureTest::outermost).orElse(type.getName());
    }

    private static boolean readsWallClock(JavaCodeUnitAccess<?> access) {
        String owner = access.getTargetOwner().getName();
        String name = access.getTarget().getName();
        return is(access, System.class, "currentTimeMillis")
                || (owner.startsWith("java.time.") && name.equals("now"))
                || (is(access, Clock.class, name) && CLOCK_FACTORY.matcher(name).matches())
                || is(access, InstantSource.class, "system")
                || is(access, Calendar.class, "getInstance")
                || (is(access, Date.class, "<init>")
                        && access.getTarget().getParameterTypes().isEmpty());
    }

    private static final Pattern CLOCK_FACTORY = Pattern.compile("(system|tick).*");

    private static boolean is(JavaCodeUnitAccess<?> access, Class<?> owner, String name) {
        return access.getTargetOwner().isEquivalentTo(owner)
                && access.getTarget().getName().equals(name);
    }

    @ArchTest
    static final ArchRule PORTS_KNOW_CORE_AND_MESSAGES_ONLY =
            classes()
                    .that()
                    .resideInAPackage("io.holdfast.node.port..")
                    .should()
                    .onlyDependOnClassesThat(
                            resideInAnyPackage(
                                    "io.holdfast.node.port..",
                                    "io.holdfast.node.replica..",
                                    "io.holdfast.proto..",
                                    "java..",
                                    "org.jspecify.."));

    @ArchTest
    static final ArchRule RUNTIME_KNOWS_NO_ADAPTER =
            noClasses()
                    .that()
                    .resideInAPackage("io.holdfast.node.runtime..")
                    .should()
                    .dependOnClassesThat(resideInAnyPackage(ADAPTERS));

    @ArchTest
    static final ArchRule SCRUB_KNOWS_NO_ADAPTER =
            noClasses()
                    .that()
                    .resideInAPackage("io.holdfast.node.scrub..")
                    .should()
                    .dependOnClassesThat(resideInAnyPackage(ADAPTERS));

    @ArchTest
    static final ArchRule RUNTIME_KNOWS_NO_SCRUB =
            noClasses()
                    .that()
                    .resideInAnyPackage(
                            "io.holdfast.node.runtime..",
                            "io.holdfast.node.replica..",
                            "io.holdfast.node.port..",
                            "io.holdfast.node.store..")
                    .should()
                    .dependOnClassesThat(resideInAPackage("io.holdfast.node.scrub.."));

    @ArchTest
    static final ArchRule STORE_KNOWS_NO_OTHER_ADAPTER = knowsNoOther("io.holdfast.node.store..");

    @ArchTest
    static final ArchRule PEER_KNOWS_NO_OTHER_ADAPTER = knowsNoOther("io.holdfast.node.peer..");

    @ArchTest
    static final ArchRule COORDINATION_KNOWS_NO_OTHER_ADAPTER =
            knowsNoOther("io.holdfast.node.coordination..");

    @ArchTest
    static final ArchRule ADMIN_KNOWS_NO_OTHER_ADAPTER = knowsNoOther("io.holdfast.node.admin..");

    private static ArchRule knowsNoOther(String adapter) {
        return noClasses()
                .that()
                .resideInAPackage(adapter)
                .should()
                .dependOnClassesThat(
                        resideInAnyPackage(ADAPTERS)
                                .and(DescribedPredicate.not(resideInAPackage(adapter))));
    }

    @ArchTest
    static final ArchRule ATOMIX_IS_HIDDEN_IN_COORDINATION =
            only("io.atomix..", "io.holdfast.node.coordination..");

    @ArchTest
    static final ArchRule ROCKSDB_IS_HIDDEN_IN_THE_STORE =
            only("org.rocksdb..", "io.holdfast.node.store..");

    @ArchTest
    static final ArchRule MICROMETER_IS_HIDDEN_IN_ADMIN_AND_MAIN =
            noClasses()
                    .that()
                    .resideOutsideOfPackages("io.holdfast.node.admin..", "io.holdfast.node")
                    .should()
                    .dependOnClassesThat(resideInAPackage("io.micrometer.."));

    @ArchTest
    static final ArchRule NETTY_STAYS_OUT_OF_WHAT_HAS_NO_SOCKETS =
            noClasses()
                    .that()
                    .resideInAnyPackage(
                            "io.holdfast.node.replica..",
                            "io.holdfast.node.port..",
                            "io.holdfast.node.coordination..",
                            "io.holdfast.node.admin..")
                    .should()
                    .dependOnClassesThat(resideInAPackage("io.netty.."));

    /** Maps with primitive keys are no transport. */
    @ArchTest
    static final ArchRule STORE_TAKES_ONLY_COLLECTIONS_FROM_NETTY =
            noClasses()
                    .that()
                    .resideInAPackage("io.holdfast.node.store..")
                    .should()
                    .dependOnClassesThat(
                            resideInAPackage("io.netty..")
                                    .and(
                                            DescribedPredicate.not(
                                                    resideInAPackage(
                                                            "io.netty.util.collection.."))));

    @ArchTest
    static final ArchRule CLIENT_DOES_NOT_KNOW_THE_NODE =
            noClasses()
                    .that()
                    .resideInAnyPackage(
                            "io.holdfast.client..", "io.holdfast.config..", "io.holdfast.proto..")
                    .should()
                    .dependOnClassesThat(resideInAPackage("io.holdfast.node.."));

    private static ArchRule only(String library, String user) {
        return noClasses()
                .that()
                .resideOutsideOfPackage(user)
                .should()
                .dependOnClassesThat(resideInAPackage(library));
    }
}
