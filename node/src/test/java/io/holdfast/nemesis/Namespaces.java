package io.holdfast.nemesis;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;

/** Moves threads into network namespaces. */
final class Namespaces {
    private static final int CLONE_NEWNET = 0x40000000;
    private static final String FOLDER = "/run/netns/";

    private Namespaces() {}

    /**
     * Moves this thread into a namespace, for good. Sockets, threads and processes that it makes
     * from now on are in it as well.
     */
    // Java has no such call.
    @SuppressWarnings("restricted")
    static void enter(String name) {
        Linker linker = Linker.nativeLinker();
        MethodHandle open =
                linker.downcallHandle(
                        linker.defaultLookup().findOrThrow("open"),
                        FunctionDescriptor.of(
                                ValueLayout.JAVA_INT, ValueLayout.ADDRESS, ValueLayout.JAVA_INT),
                        Linker.Option.firstVariadicArg(2));
        MethodHandle setns =
                linker.downcallHandle(
                        linker.defaultLookup().findOrThrow("setns"),
                        FunctionDescriptor.of(
                                ValueLayout.JAVA_INT, ValueLayout.JAVA_INT, ValueLayout.JAVA_INT));
        MethodHandle close =
                linker.downcallHandle(
                        linker.defaultLookup().findOrThrow("close"),
                        FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.JAVA_INT));
        try (Arena arena = Arena.ofConfined()) {
            int file = (int) open.invokeExact(arena.allocateFrom(FOLDER + name), 0);
            int result = file < 0 ? file : (int) setns.invokeExact(file, CLONE_NEWNET);
            if (file >= 0) {
                int ignored = (int) close.invokeExact(file);
            }
            if (result != 0) {
                throw new IllegalStateException("cannot enter network namespace " + name);
            }
        } catch (RuntimeException | Error e) {
            throw e;
        } catch (Throwable e) {
            throw new IllegalStateException("native call", e);
        }
    }
}
