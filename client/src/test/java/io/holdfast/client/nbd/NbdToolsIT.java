package io.holdfast.client.nbd;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Stock NBD clients against the server: Debian's libnbd-bin, python3-libnbd, qemu-utils and fio. A
 * tool that is missing fails its test.
 */
class NbdToolsIT {
    private static final int SIZE = 64 << 20;
    private static final long TOOL_TIMEOUT_SECONDS = 120;

    @TempDir private Path dir = Path.of("");
    private MemoryServer server = newServer();

    private static MemoryServer newServer() {
        try {
            return new MemoryServer(NbdLimits.DEFAULT, NbdEvents.NONE);
        } catch (Exception e) {
            throw new IllegalStateException("cannot start the server", e);
        }
    }

    @BeforeEach
    void addExports() throws Exception {
        server.onLoop(() -> {
            server.exports.add("disk", SIZE, false);
            server.exports.add("frozen", SIZE, true);
            server.exports.add("secret", SIZE, false);
        });
    }

    @AfterEach
    void stop() {
        server.close();
        for (MemoryDevice device : server.exports.devices.values()) {
            assertThat(device.closes).isEqualTo(device.opens);
        }
    }

    @Test
    void nbdinfoSeesEveryCapability() throws Exception {
        assertThat(run("nbdinfo", "libnbd-bin", server.uri("disk")))
                .contains("newstyle-fixed without TLS, using structured packets")
                .contains("export-size: 67108864")
                .contains("is_read_only: false")
                .contains("can_cache: true")
                .contains("can_df: true")
                .contains("can_fast_zero: false")
                .contains("can_flush: true")
                .contains("can_fua: true")
                .contains("can_multi_conn: true")
                .contains("can_trim: true")
                .contains("can_zero: true")
                .contains("block_size_minimum: 1\n")
                .contains("block_size_preferred: 4096")
                .contains("block_size_maximum: 33554432");
        assertThat(run("nbdinfo", "libnbd-bin", server.uri("frozen")))
                .contains("is_read_only: true");
    }

    @Test
    void nbdinfoListsWhatTheClientMaySee() throws Exception {
        assertThat(run("nbdinfo", "libnbd-bin", "--list", server.uri("")))
                .contains("export=\"disk\"")
                .contains("export=\"frozen\"")
                .doesNotContain("secret");
    }

    @Test
    void nbdcopyBothWaysGivesEqualBytes() throws Exception {
        var data = new byte[SIZE];
        new Random(42).nextBytes(data);
        Path source = Files.write(dir.resolve("source"), data);
        Path copy = dir.resolve("copy");
        run("nbdcopy", "libnbd-bin", source.toString(), server.uri("disk"));
        assertThat(Arrays.equals(server.exports.device("disk").contents(), data)).isTrue();
        run("nbdcopy", "libnbd-bin", server.uri("disk"), copy.toString());
        assertThat(Files.mismatch(source, copy)).isEqualTo(-1);
    }

    @Test
    void qemuIoPatternsHold() throws Exception {
        String output =
                run(
                        "qemu-io",
                        "qemu-utils",
                        "-n",
                        "-f",
                        "raw",
                        "-c",
                        "write -P 1 0 1M",
                        "-c",
                        "write -f -P 2 4097 70000",
                        "-c",
                        "write -z 8192 4096",
                        "-c",
                        "write -z -u -f 65536 4096",
                        "-c",
                        "aio_write -P 3 2M 4M",
                        "-c",
                        "aio_write -P 4 8M 32M",
                        "-c",
                        "aio_flush",
                        "-c",
                        "flush",
                        "-c",
                        "discard 60M 4M",
                        "-c",
                        "read -P 1 0 4097",
                        "-c",
                        "read -P 2 4097 4095",
                        "-c",
                        "read -P 0 8192 4096",
                        "-c",
                        "read -P 2 12288 53248",
                        "-c",
                        "read -P 0 65536 4096",
                        "-c",
                        "read -P 3 2M 4M",
                        "-c",
                        "read -P 4 8M 32M",
                        server.uri("disk"));
        assertThat(output).doesNotContain("Pattern verification failed").doesNotContain("error");
        MemoryDevice device = server.exports.device("disk");
        assertThat(device.fuaWrites).isGreaterThanOrEqualTo(2);
        assertThat(device.flushes).isPositive();
        assertThat(device.punches).isPositive();
        assertThat(device.keptZeroes).isPositive();
    }

    @Test
    void nbdshGetsTheErrorsOfTheStandardForIllegalRequests() throws Exception {
        Path script = dir.resolve("illegal.py");
        Files.writeString(
                script,
                """
                import nbd

                def error(call):
                    try:
                        call()
                    except nbd.Error as e:
                        return e.errno
                    return None

                def expect(wanted, call):
                    got = error(call)
                    assert got == wanted, "wanted %s, got %s" % (wanted, got)

                for structured in (False, True):
                    h = nbd.NBD()
                    h.set_strict_mode(0)
                    h.set_request_structured_replies(structured)
                    h.connect_uri("@DISK@")
                    size = h.get_size()
                    expect("EINVAL", lambda: h.pread(512, size))
                    expect("EINVAL", lambda: h.pread(512, size - 511))
                    expect("EINVAL", lambda: h.pread(512, 2**63 - 512))
                    expect("ENOSPC", lambda: h.pwrite(b"x" * 512, size - 511))
                    expect("ENOSPC", lambda: h.zero(512, size))
                    expect("EINVAL", lambda: h.trim(512, size))
                    expect("EINVAL", lambda: h.cache(512, size))
                    expect("EINVAL", lambda: h.zero(512, 0, nbd.CMD_FLAG_FAST_ZERO))
                    expect("EINVAL", lambda: h.pwrite(b"x" * 512, 0, nbd.CMD_FLAG_NO_HOLE))
                    expect("EINVAL", lambda: h.flush(nbd.CMD_FLAG_REQ_ONE))
                    expect("EOVERFLOW" if structured else "EINVAL", lambda: h.pread(33 << 20, 0))
                    expect("EINVAL", lambda: h.pwrite(bytes(33 << 20), 0))
                    expect(None, lambda: h.pread(0, 0))
                    expect(None, lambda: h.pwrite(b"", 0))
                    expect(None, lambda: h.zero(0, 0))
                    expect(None, lambda: h.trim(0, 0))
                    expect(None, lambda: h.cache(0, 0))
                    h.pwrite(b"in step", 5)
                    assert h.pread(7, 5) == b"in step"
                    h.shutdown()

                    frozen = nbd.NBD()
                    frozen.set_strict_mode(0)
                    frozen.set_request_structured_replies(structured)
                    frozen.connect_uri("@FROZEN@")
                    expect("EPERM", lambda: frozen.pwrite(b"x" * 512, 0))
                    expect("EPERM", lambda: frozen.trim(512, 0))
                    expect("EPERM", lambda: frozen.zero(512, 0))
                    frozen.flush()
                    assert frozen.pread(512, 0) == bytes(512)
                    frozen.shutdown()
                print("as the standard says")
                """
                        .replace("@DISK@", server.uri("disk"))
                        .replace("@FROZEN@", server.uri("frozen")));
        String runScript = "import runpy; runpy.run_path('%s')".formatted(script);
        assertThat(run("nbdsh", "python3-libnbd", "-c", runScript))
                .contains("as the standard says");
    }

    @Test
    void fioVerifiesWhatItWrote() throws Exception {
        assertThat(
                        run(
                                "fio",
                                "fio",
                                "--name=verify",
                                "--ioengine=nbd",
                                "--uri=" + server.uri("disk"),
                                "--rw=randwrite",
                                "--bsrange=512-128k",
                                "--bs_unaligned",
                                "--iodepth=32",
                                "--size=64m",
                                "--verify=crc32c",
                                "--verify_fatal=1",
                                "--verify_state_save=0",
                                "--randrepeat=1"))
                .contains("err= 0");
    }

    /** Runs a tool to its end, and returns what it printed. */
    private String run(String tool, String debianPackage, String... arguments) throws Exception {
        var command = new String[arguments.length + 1];
        command[0] = tool;
        System.arraycopy(arguments, 0, command, 1, arguments.length);
        Path output = Files.createTempFile(dir, tool, ".out");
        Process process;
        try {
            var builder =
                    new ProcessBuilder(command)
                            .directory(dir.toFile())
                            .redirectErrorStream(true)
                            .redirectOutput(output.toFile());
            // nbdsh runs the first python3 it finds, and Debian's has the module.
            builder.environment().merge("PATH", "/usr/bin", (path, bin) -> bin + ":" + path);
            process = builder.start();
        } catch (IOException e) {
            throw new AssertionError(
                    "cannot run %s: install Debian's %s".formatted(tool, debianPackage), e);
        }
        try {
            assertThat(process.waitFor(TOOL_TIMEOUT_SECONDS, TimeUnit.SECONDS))
                    .as("%s ends in time", tool)
                    .isTrue();
        } finally {
            process.destroyForcibly();
        }
        String printed = Files.readString(output);
        assertThat(process.exitValue()).as("%s said: %s", tool, printed).isZero();
        return printed;
    }
}
