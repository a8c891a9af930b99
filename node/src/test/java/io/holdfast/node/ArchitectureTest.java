package io.holdfast.node;

import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAPackage;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAnyPackage;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;

import com.tngtech.archunit.base.DescribedPredicate;
import com.tngtech.archunit.core.importer.ImportOption;
import com.tngtech.archunit.junit.AnalyzeClasses;
import com.tngtech.archunit.junit.ArchTest;
import com.tngtech.archunit.lang.ArchRule;

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
